package docker

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/conntrack"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// Others' sockets in TIME_WAIT and conntrack entries must stay.
func TestBesideDrain(t *testing.T) {
	daemon(t)
	b := &Docker{}
	for _, spec := range []path.Spec{
		{Mode: mode.PublishProxy, From: mode.FromHost, To: mode.ToLoopback},
		{Mode: mode.Bridge, From: mode.FromHost, To: mode.ToContainer},
		{Mode: mode.Host, From: mode.FromContainer, To: mode.ToLoopback},
	} {
		t.Run(string(spec.Mode), func(t *testing.T) {
			p, err := b.Build(context.Background(), spec)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			stranger := leave(t)
			pathtest.Exchange(t, p).Stop()
			ours := func(end netip.AddrPort) bool { return end == p.Clients[0].Dial }
			var n int
			testwait.Met(time.Minute, func() bool {
				n = leftovers(t, b.engine.ns, ours)
				return n > 0
			})
			dial := p.Clients[0].Dial.String()
			tracked := slices.Contains(strings.Fields(table(t)), dial)
			if n == 0 || !tracked {
				t.Errorf("before: %d sockets, tracked: %v", n, tracked)
			}
			var headroom sample.Headroom
			// the next visit sweeps what had not ended yet
			if !testwait.Met(time.Minute, func() bool {
				if headroom, err = p.Drain(); err != nil {
					t.Fatal(err)
				}
				if headroom.Error != "" {
					t.Skipf("this kernel does not let them go: %s", headroom.Error)
				}
				n = leftovers(t, b.engine.ns, ours)
				return n == 0 && headroom.TimeWait == 0 &&
					!slices.Contains(strings.Fields(table(t)), dial)
			}) {
				t.Errorf("after: %d sockets, and of the table:\n%s", n, table(t))
			}
			if headroom.TimeWait != 0 || headroom.Budget < 1000 ||
				headroom.Budget > headroom.Ports || headroom.Tracking == 0 {
				t.Errorf("headroom %+v", headroom)
			}
			if n := leftovers(t, b.engine.ns, func(end netip.AddrPort) bool {
				return end == stranger
			}); n == 0 {
				t.Error("a stranger's socket was swept")
			}
			if !slices.Contains(strings.Fields(table(t)), stranger.String()) {
				t.Errorf("a stranger's entry was swept:\n%s", table(t))
			}
		})
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

func leave(t *testing.T) netip.AddrPort {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	_, _ = s.Read(make([]byte, 1))
	s.Close()
	return ln.Addr().(*net.TCPAddr).AddrPort()
}

func leftovers(t *testing.T, ns *netns.NS, of func(netip.AddrPort) bool) (n int) {
	t.Helper()
	err := ns.Do(func() (err error) {
		n, err = sock.Leftover(func(local, remote netip.AddrPort) bool {
			return of(local) || of(remote)
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func table(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	// The filter removes nothing.
	if err := conntrack.Remove(func(end netip.AddrPort) bool {
		b.WriteString(" " + end.String() + " ")
		return false
	}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
