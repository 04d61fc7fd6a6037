package observe

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// bridged are two machines, 10.7.0.1 and 10.7.0.2, at the ports of a bridge of a third one, which has
// 10.7.0.9.
type bridged struct{ host, client, server *machine }

func newBridged(t *testing.T) (b bridged) {
	t.Helper()
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root can capture packets")
	}
	b = bridged{newMachine(t), newMachine(t), newMachine(t)}
	err := b.host.Do(func() error {
		return errors.Join(sysctl.Set("net.ipv4.ip_forward", "1"), link.AddBridge("br0"),
			link.AddAddr("br0", netip.MustParsePrefix("10.7.0.9/24")), link.Up("br0"))
	})
	for i, m := range []*machine{b.client, b.server} {
		tid, errTID := m.TID()
		port := []string{"port1", "port2"}[i]
		err = errors.Join(err, errTID, b.host.Do(func() error {
			return errors.Join(link.AddVeth(port, "eth0", tid), link.SetMaster(port, "br0"), link.Up(port))
		}), m.Do(func() error {
			addr := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 7, 0, byte(i + 1)}), 24)
			return errors.Join(link.AddAddr("eth0", addr), link.Up("eth0"),
				link.AddDefaultRoute(netip.MustParseAddr("10.7.0.9")))
		}))
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// seen lets iptables see the frames of all bridges, or of br0, or of none.
func (b bridged) seen(t *testing.T, all string, one bool) {
	t.Helper()
	var lacks error
	err := b.host.Do(func() error {
		lacks = sysctl.Set("net.bridge.bridge-nf-call-iptables", all)
		return link.SetBridgeNF("br0", 0, one)
	})
	if err != nil {
		t.Fatal(err)
	}
	if lacks != nil {
		pathtest.SkipOrFail(t, "br_netfilter is not loaded: %v", lacks)
	}
}

// TestFrames has requests that go from port to port of a bridge, or over it as a router.
func TestFrames(t *testing.T) {
	b := newBridged(t)
	b.server.serve(t, "10.7.0.2:80", lines(0, false))
	filtered(t, b.host, `table ip t { chain d { type nat hook prerouting priority -100;
		ip daddr 10.7.0.9 tcp dport 8080 dnat to 10.7.0.2:80; };
		chain o { type nat hook output priority -100;
		ip daddr 10.7.0.9 tcp dport 8080 dnat to 10.7.0.2:80; }; }`)
	for name, tt := range map[string]struct {
		from *machine
		at   string
		all  string
		one  bool
		by   string // "": iptables sees none
	}{
		"all bridges":        {b.client, "10.7.0.2:80", "1", false, "bridge-nf-call-iptables=1"},
		"this bridge":        {b.client, "10.7.0.2:80", "0", true, "nf_call_iptables 1"},
		"unseen":             {b.client, "10.7.0.2:80", "0", false, ""},
		"from the host":      {b.host, "10.7.0.2:80", "1", true, ""},
		"published":          {b.client, "10.7.0.9:8080", "1", true, ""},
		"published, locally": {b.host, "10.7.0.9:8080", "1", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b.seen(t, tt.all, tt.one)
			testwait.Unhindered(t, patience, func(u testing.TB) {
				want := ""
				if tt.by != "" {
					want = "br0 " + tt.by
				}
				dial := func() (net.Conn, error) {
					c, _, err := tt.from.dial(context.Background(), "tcp", tt.at)
					return c, err
				}
				if got := settled(u, tt.from, tt.at, dial).Frames; bridgeOf(got) != want {
					u.Errorf("a route: %+v", got)
				}
				stop := asking(u, dial, 1)
				defer stop()
				s, err := attach(u.Context(), tt.from.pid, probing(dial))
				if err != nil {
					u.Fatal(err)
				}
				got, err := s.watch(u.Context(), time.Second)
				if err := errors.Join(err, s.Close()); err != nil {
					u.Fatal(err)
				}
				if bridgeOf(got.Frames) != want || got.Requests == 0 {
					u.Errorf("attached: %+v of %d requests", got.Frames, got.Requests)
				}
			})
		})
	}
}

func bridgeOf(f *sample.Frames) string {
	if f == nil {
		return ""
	}
	return f.Bridge + " " + f.Switch + f.Off // Off is of toll's own namespace only
}

// settled returns the way of a client's requests, which are made for that.
func settled(t testing.TB, from *machine, at string, dial func() (net.Conn, error)) *Way {
	t.Helper()
	way, err := Find(t.Context(), from.pid, probing(dial))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = way.Close() })
	way.Slots = 1
	share, err := way.Settle(func() ([]tokens.Exchange, error) { return nil, talks(from, at, 1, 200) })
	if err != nil || share < 0.5 {
		t.Fatalf("%g are followed: %v", share, err)
	}
	return way
}
