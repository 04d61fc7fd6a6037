package sample

import "testing"

func TestTogetherHasMeans(t *testing.T) {
	var all []Party
	for i := range int64(64) {
		all = append(all, Party{TCP: TCPInfo{Cwnd: 10 + i%2, MSS: 1448}})
	}
	if got := Together(all).TCP; got.Cwnd != 11 || got.MSS != 1448 {
		t.Errorf("%+v", got)
	}
	if got := Together(nil); got.TCP.Cwnd != 0 {
		t.Errorf("%+v", got)
	}
}
