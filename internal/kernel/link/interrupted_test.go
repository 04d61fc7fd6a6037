package link

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
)

// A list that the kernel interrupted each time, because veth pairs came and went without pause, has
// all devices that stayed.
func TestInterruptedListIsWhole(t *testing.T) {
	ns := netnstest.New(t)
	const stay = 1600 // so many that a list takes several answers of the kernel
	var batch strings.Builder
	for i := range stay / 2 {
		fmt.Fprintf(&batch, "link add stay%d type veth peer name stay%d\n", i, stay/2+i)
	}
	ipBatch(t, ns, batch.String())
	tid, err := ns.TID()
	if err != nil {
		t.Fatal(err)
	}
	another, err := netns.Join(fmt.Sprintf("/proc/self/task/%d/ns/net", tid))
	if err != nil {
		t.Fatal(err)
	}
	defer another.Close()
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() { stopped <- another.Do(func() error { return comeAndGo(stop) }) }()
	defer func() {
		close(stop)
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	}()
	const patience = 2 * time.Minute
	before := Interrupted()
	for began := time.Now(); Interrupted() == before; {
		if time.Since(began) > patience {
			t.Fatal("no list was interrupted each time")
		}
		n := 0
		err := ns.Do(func() error {
			all, err := ReadLinks()
			for _, l := range all {
				if strings.HasPrefix(l.Name, "stay") {
					n++
				}
			}
			return err
		})
		if err != nil || n != stay {
			t.Fatalf("%d of %d devices: %v", n, stay, err)
		}
	}
}

// comeAndGo adds and removes veth pairs until stop is closed.
func comeAndGo(stop chan struct{}) error {
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		v := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "goes"}, PeerName: "goes-too"}
		if err := netlink.LinkAdd(v); err != nil {
			return err
		}
		if err := netlink.LinkDel(v); err != nil {
			return err
		}
	}
}

// The last of the interrupted lists is taken, and counted; a whole one is not.
func TestDumpTakesTheLast(t *testing.T) {
	failure := errors.New("x")
	for name, c := range map[string]struct {
		interruptions, calls, counted int
		last, want                    error
	}{
		"whole": {0, 1, 0, nil, nil}, "twice": {2, 3, 0, nil, nil},
		"always": {dumpTries, dumpTries, 1, nil, nil}, "failed": {1, 2, 0, failure, failure},
	} {
		before, calls := Interrupted(), 0
		got, err := dump(func() (int, error) {
			if calls++; calls <= c.interruptions {
				return calls, netlink.ErrDumpInterrupted
			}
			return calls, c.last
		})
		if n := int(Interrupted() - before); got != c.calls || calls != c.calls || n != c.counted ||
			!errors.Is(err, c.want) {
			t.Errorf("%s: list %d of %d, %d counted, %v", name, got, calls, n, err)
		}
	}
}
