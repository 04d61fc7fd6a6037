package lab

import (
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/conntrack"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

const patience = 30 * time.Second

func TestDrain(t *testing.T) {
	for _, c := range []struct {
		name    string
		spec    path.Spec
		tracked bool // Docker's rules see the load
	}{
		{"proxy", path.Spec{Mode: mode.PublishProxy, From: mode.FromHost, To: mode.ToLoopback},
			true},
		{"nat", path.Spec{Mode: mode.PublishNAT, From: mode.FromRemoteContainer,
			To: mode.ToAddress}, true},
		{"native", path.Spec{Mode: mode.Native, From: mode.FromRemote, To: mode.ToAddress}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s *site
			p := build(t, started(t, &Lab{test: hooks{built: func(x *site) { s = x }}}), c.spec)
			pathtest.Exchange(t, p).Stop()
			var sockets, entries int
			testwait.Met(patience, func() bool {
				sockets, entries = left(t, s)
				return sockets > 0
			})
			if sockets == 0 || (entries > 0) != c.tracked {
				t.Errorf("before: %d sockets, %d entries", sockets, entries)
			}
			// A connection that the proxy had not yet ended is swept by the next visit.
			var headroom sample.Headroom
			if !testwait.Met(patience, func() bool {
				var err error
				if headroom, err = p.Drain(); err != nil {
					t.Fatal(err)
				}
				if headroom.Error != "" {
					t.Skipf("this kernel does not let them go: %s", headroom.Error)
				}
				sockets, entries = left(t, s)
				return sockets+entries+headroom.TimeWait+headroom.Tracked == 0
			}) {
				t.Fatalf("after: %d sockets, %d entries, %+v", sockets, entries, headroom)
			}
			if headroom.Budget < 1000 || headroom.Budget > headroom.Ports {
				t.Errorf("headroom %+v", headroom)
			}
		})
	}
}

func TestBudgetIsOfThePorts(t *testing.T) {
	var s *site
	p := build(t, started(t, &Lab{test: hooks{built: func(x *site) {
		s = x
	}}}), path.Spec{Mode: mode.Bridge, From: mode.FromContainer, To: mode.ToContainer})
	if err := s.Clients[0].ns.Do(func() error {
		return sysctl.Set("net.ipv4.ip_local_port_range", "40000 40099")
	}); err != nil {
		t.Fatal(err)
	}
	headroom, err := p.Drain()
	if err != nil || headroom.Ports != 100 || headroom.Budget != 100 ||
		headroom.Limit != sample.LimitPorts {
		t.Errorf("headroom %+v, %v", headroom, err)
	}
}

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
