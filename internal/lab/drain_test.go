package lab

import (
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/conntrack"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/path"
	"github.com/bridgetoll/bridgetoll/internal/path/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// What connections leave in the namespaces of clients, proxy and server is there
// before a path is drained and gone after it.
func TestDrain(t *testing.T) {
	for _, c := range []struct {
		name    string
		spec    path.Spec
		tracked bool // Docker's rules see the load
	}{
		{"proxy", path.Spec{Mode: mode.PublishProxy, From: mode.FromHost, To: mode.ToLoopback}, true},
		{"nat", path.Spec{Mode: mode.PublishNAT, From: mode.FromRemoteContainer, To: mode.ToAddress}, true},
		{"native", path.Spec{Mode: mode.Native, From: mode.FromRemote, To: mode.ToAddress}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s *site
			p := build(t, started(t, &Lab{test: hooks{built: func(x *site) { s = x }}}), c.spec)
			pathtest.Exchange(t, p).Stop()
			var sockets, entries int
			// The ends of connections are the kernel's and the proxy's business.
			for deadline := time.Now().Add(3 * time.Second); time.Now().Before(deadline) && sockets == 0; time.Sleep(5 * time.Millisecond) {
				sockets, entries = left(t, s)
			}
			if sockets == 0 || (entries > 0) != c.tracked {
				t.Errorf("before: %d sockets, %d entries", sockets, entries)
			}
			// A connection that the proxy had not yet ended is swept by the next visit.
			var room sample.Room
			for deadline := time.Now().Add(3 * time.Second); ; time.Sleep(5 * time.Millisecond) {
				var err error
				if room, err = p.Drain(); err != nil {
					t.Fatal(err)
				}
				if room.Error != "" {
					t.Skipf("this kernel does not let them go: %s", room.Error)
				}
				if sockets, entries = left(t, s); sockets+entries+room.TimeWait+room.Tracked == 0 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("after: %d sockets, %d entries, %+v", sockets, entries, room)
				}
			}
			if room.Budget < 1000 || room.Budget > room.Ports {
				t.Errorf("room %+v", room)
			}
		})
	}
}

// The budget follows the ports that the namespace with the fewest has.
func TestBudgetIsOfThePorts(t *testing.T) {
	var s *site
	p := build(t, started(t, &Lab{test: hooks{built: func(x *site) { s = x }}}), path.Spec{Mode: mode.Bridge, From: mode.FromContainer, To: mode.ToContainer})
	if err := s.clients[0].ns.Do(func() error { return sysctl.Set("net.ipv4.ip_local_port_range", "40000 40099") }); err != nil {
		t.Fatal(err)
	}
	room, err := p.Drain()
	if err != nil || room.Ports != 100 || room.Budget != 100 || room.Limit != sample.LimitPorts {
		t.Errorf("room %+v, %v", room, err)
	}
}

// left are the sockets and entries in all namespaces of a site.
func left(t *testing.T, s *site) (sockets, entries int) {
	t.Helper()
	for _, at := range s.spots() {
		err := at.ns.Do(func() error {
			n, err := sock.Leftover(nil)
			if err != nil {
				return err
			}
			sockets += n
			u, err := conntrack.Read()
			entries += u.Entries
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return sockets, entries
}
