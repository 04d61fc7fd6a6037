package observe

import (
	"net/netip"
	"testing"
	"time"
)

// A pace is known only of connections that are there at both times, and only if nearly all are.
func TestPace(t *testing.T) {
	read := func(at int, sent ...uint64) *sends {
		out := &sends{at: time.Unix(int64(at), 0), sent: map[netip.AddrPort]uint64{}}
		for i, n := range sent {
			if n > 0 {
				out.sent[netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(i))] = n
			}
		}
		return out
	}
	many := make([]uint64, 100)
	for i := range many {
		many[i] = 10
	}
	fewer := append([]uint64{0, 0, 0}, many[3:]...)
	for _, tt := range []struct {
		name          string
		before, after *sends
		want          float64
	}{
		{"two connections", read(0, 100, 200), read(2, 300, 400), 200},
		{"a port that another client has", read(0, 100, 200), read(2, 300, 100), 0},
		{"three of a hundred ended", read(0, many...), read(1, fewer...), 0},
		{"three of a hundred came", read(0, fewer...), read(1, many...), 0},
		{"none is known", nil, read(1, 5), 0},
		{"none is known any more", read(0, 5), nil, 0},
	} {
		if got := tt.after.pace(tt.before); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
