package observe

import (
	"errors"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// TestAttachBehindNAT watches a server behind a router that changes addresses and ports, by its own
// address and by the published one, which its clients dial.
func TestAttachBehindNAT(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root can capture packets")
	}
	needsWrites(t)
	client, router := joined(t)
	server := behind(t, router)
	server.serve(t, "10.8.0.2:80", lines(ms, false))
	serveNames(t, server, "10.8.0.2:53", ms, 1)
	tcp := func(m *machine, at string) func() (net.Conn, error) {
		return func() (net.Conn, error) {
			c, _, err := m.dial(t.Context(), "tcp", at)
			return c, err
		}
	}
	const clients = 3
	stop := asking(t, tcp(client, "10.9.0.2:8080"), clients)
	defer stop()
	for _, tt := range []struct {
		from    *machine
		at, udp string
	}{{client, "10.9.0.2:8080", "10.9.0.2:5300"}, {router, "10.8.0.2:80", "10.8.0.2:53"}} {
		testwait.Unhindered(t, patience, func(u testing.TB) {
			s, err := attach(u.Context(), tt.from.pid, probing(tcp(tt.from, tt.at)))
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
		testwait.Unhindered(t, patience, func(u testing.TB) {
			const n = 100
			_, err := resolves(u, client, "10.9.0.2:5300", 1) // so that a connection shows the port
			if err != nil {
				u.Fatal(err)
			}
			got := attachedUDP(u, tt.from, tt.udp, func() {
				if _, err := resolves(u, client, "10.9.0.2:5300", n); err != nil {
					u.Error(err)
				}
			})
			if c := got.Client; c == nil || got.Requests != n || c.Requests < n-1 ||
				c.Whole.Mean < got.Whole.Mean || !slices.Equal(got.Dialled, []uint16{53, 5300}) {
				u.Errorf("%+v, clients %+v", got, c)
			}
		})
	}
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
