package dial

import (
	"slices"
	"testing"
)

func TestParse(t *testing.T) {
	whole := relayLine(3) + relayLine(1) + socketLine(7, ip("fe80::1%eth0"))
	for i := range whole {
		if _, complete, err := parse([]byte(whole[:i])); complete || err != nil {
			t.Errorf("%q is complete: %t, %v", whole[:i], complete, err)
		}
	}
	a, complete, err := parse([]byte(whole))
	if err != nil || !complete || a.socket != 7 || a.seen != ip("fe80::1") ||
		!slices.Equal(a.relays, []int{3, 1}) {
		t.Errorf("%+v, %t, %v", a, complete, err)
	}
	if _, _, err := parse([]byte("SSH-2.0-OpenSSH_9.2\r\n")); err == nil {
		t.Error("a server's own words are an answer")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(relayLine(3) + socketLine(7, ip("192.0.2.1"))))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, complete, err := parse(b)
		if complete && (err != nil || !a.seen.IsValid() || len(a.relays) > mostRelays) {
			t.Errorf("%+v, %v", a, err)
		}
		if n, ok := token(b); ok && isRequest(b) != (len(b) == requestSize) {
			t.Errorf("token %d", n)
		}
	})
}
