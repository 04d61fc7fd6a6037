package observe

import (
	"errors"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/writes"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// natted is a server behind a router that changes addresses and ports, and how to find it: by the
// published address, which its clients dial, and by its own one.
type natted struct {
	client, router, server *machine
}

func newNATted(t *testing.T) (n natted) {
	t.Helper()
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root can capture packets")
	}
	n.client, n.router = joined(t)
	n.server = behind(t, n.router)
	return n
}

// each calls f for both ways to find the server, with its addresses for TCP and UDP.
func (n natted) each(t *testing.T, f func(u testing.TB, from *machine, tcp, udp string)) {
	t.Helper()
	testwait.Unhindered(t, patience, func(u testing.TB) {
		f(u, n.client, "10.9.0.2:8080", "10.9.0.2:5300")
	})
	testwait.Unhindered(t, patience, func(u testing.TB) { f(u, n.router, "10.8.0.2:80", "10.8.0.2:53") })
}

func TestAttachBehindNAT(t *testing.T) {
	needsWrites(t)
	n := newNATted(t)
	n.server.serve(t, "10.8.0.2:80", lines(ms, false))
	dials := func(m *machine, at string) func() (net.Conn, error) {
		return func() (net.Conn, error) {
			c, _, err := m.dial(t.Context(), "tcp", at)
			return c, err
		}
	}
	const clients = 3
	stop := asking(t, dials(n.client, "10.9.0.2:8080"), clients)
	defer stop()
	n.each(t, func(u testing.TB, from *machine, at, _ string) {
		s, err := attach(u.Context(), from.pid, probing(dials(from, at)))
		if err != nil {
			u.Fatal(err)
		}
		got, err := s.watch(u.Context(), time.Second)
		if err := errors.Join(err, s.Close()); err != nil {
			u.Fatal(err)
		}
		if c := got.Client; c == nil || got.Connections != clients ||
			c.Requests+2*clients < got.Requests || c.Whole.Mean < got.Whole.Mean ||
			!slices.Equal(got.Dialled, []uint16{80, 8080}) {
			u.Errorf("%+v, clients %+v", got, c)
		}
	})
}

func TestAttachUDPBehindNAT(t *testing.T) {
	n := newNATted(t)
	if _, reads := records(t, writes.Of{Local: []uint16{1}, UDP: true}); !reads {
		pathtest.SkipOrFail(t, "reads cannot be recorded here")
	}
	serveNames(t, n.server, "10.8.0.2:53", ms, 1)
	const requests = 100
	n.each(t, func(u testing.TB, from *machine, _, at string) {
		ask := func(times int) {
			if _, err := resolves(u, n.client, "10.9.0.2:5300", times); err != nil {
				u.Error(err)
			}
		}
		ask(1) // so that a connection shows the port
		got := attachedUDP(u, from, at, func() { ask(requests) })
		if c := got.Client; c == nil || got.Requests != requests || c.Requests < requests-1 ||
			c.Whole.Mean < got.Whole.Mean || !slices.Equal(got.Dialled, []uint16{53, 5300}) {
			u.Errorf("%+v, clients %+v", got, c)
		}
	})
}

// TestAttachTellsWhereItLooked has no client.
func TestAttachTellsWhereItLooked(t *testing.T) {
	needsWrites(t)
	got, _ := attached(t, 0, ms, 100*ms, 1e9)
	if got.Client != nil || got.Open == nil || *got.Open != 0 ||
		!slices.Equal(got.Dialled, []uint16{got.Server.Port}) {
		t.Errorf("%+v", got)
	}
}

// TestLookForPortsOnce has a watch that records nothing of what clients do.
func TestLookForPortsOnce(t *testing.T) {
	s := &serving{Watch: &Watch{log: tokens.NewServer()}}
	if err := s.lookForPorts(); err != nil || !s.ports.next.IsZero() {
		t.Errorf("error %v, looks again at %v", err, s.ports.next)
	}
}
