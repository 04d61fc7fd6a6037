package truth

import (
	"math"
	"path/filepath"
	"testing"
	"time"
)

// Lines of tcpdump 4.99.3.
const (
	dumpedRequest = "1764533506.162309123 IP 10.60.0.1.44838 > 10.61.1.2.7101: Flags [P.], " +
		"seq 26920:26947, ack 39881, win 63, options [nop,nop,TS val 1 ecr 2], length 27\n"
	dumpedAck = "1764533506.162310000 IP 10.61.1.2.7101 > 10.60.0.1.44838: Flags [.], " +
		"ack 26947, win 64, options [nop,nop,TS val 2 ecr 1], length 0\n"
	dumpedSYN = "1764533506.062310000 IP 10.60.0.1.44838 > 10.61.1.2.7101: Flags [S], " +
		"seq 26919, win 64240, options [mss 1460], length 0\n"
)

func TestInstants(t *testing.T) {
	got, err := instants([]byte(dumpedSYN + dumpedRequest + dumpedAck + dumpedRequest))
	p := packet{"10.60.0.1.44838", "10.61.1.2.7101", "26920"}
	if err != nil || len(got) != 1 || got[p] != 1764533506162309123 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := instants([]byte("1764533506.16 IP a > b: seq 1:2,")); err == nil {
		t.Error("a time without its ns is none")
	}
}

func TestApart(t *testing.T) {
	a := []betweenDevices{{0, 4e-6}, {20, 6e-6}, {40, 8e-6}}
	got, err := apart(a, []betweenDevices{{10, 7e-6}, {30, 9e-6}, {50, 10e-6}})
	if err != nil || math.Abs(got.at-2e-6) > 1e-12 || got.half > 1e-12 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := apart(nil, a); err == nil {
		t.Error("nothing to compare with")
	}
}

// tcpdump sees what a server's device delays, but not what the server does.
func TestDumped(t *testing.T) {
	needs(t, "ip", "nft", "tcpdump")
	w, err := newRouteWorld(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	}()
	plain, err := w.add(routeKind{})
	if err != nil {
		t.Fatal(err)
	}
	slow, err := w.add(routeKind{answer: answering{Sleep: 2 * time.Millisecond}, rules: 3000})
	if err != nil {
		t.Fatal(err)
	}
	a, err := w.dumped(plain, slow, func() error {
		_, err := w.compare(plain, slow, 2*time.Second)
		return err
	})
	if err != nil || a.at <= 0 || a.at > 2e-3 {
		t.Errorf("%s, %v", a, err)
	}
	if left, err := filepath.Glob(filepath.Join(w.dir, "dump*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
