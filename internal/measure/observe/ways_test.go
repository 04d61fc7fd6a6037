package observe

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// plug connects a machine's eth0 with a port of a bridge of a host's. Both get addresses unless the
// gateway is the zero one; then only the machine does.
func plug(t testing.TB, host, m *machine, bridge, port, addr string, gateway netip.Addr) {
	t.Helper()
	tid, err := m.TID()
	if err == nil {
		err = host.Do(func() error {
			return errors.Join(link.AddVeth(port, "eth0", tid), link.SetMaster(port, bridge),
				link.Up(port))
		})
	}
	if err == nil {
		err = m.Do(func() error {
			return errors.Join(link.AddAddr("eth0", netip.MustParsePrefix(addr)), link.Up("eth0"),
				link.AddDefaultRoute(gateway))
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// bridgedHost returns a machine like Docker's host, 10.9.0.9, whose bridge has two containers,
// 10.8.0.2 and 10.8.0.3, the second of them behind as many further bridges, and another machine,
// 10.9.0.1, for which it publishes the second one's port 7001 as 8001.
func bridgedHost(t testing.TB, further int) (client, host, first, second *machine) {
	t.Helper()
	client, host, _ = routed(t)
	first, second = newMachine(t), newMachine(t)
	gateway := netip.MustParseAddr("10.8.0.1")
	last := "docker0"
	tid, err := host.TID()
	if err != nil {
		t.Fatal(err)
	}
	err = host.Do(func() (err error) {
		err = errors.Join(link.AddBridge("docker0"), link.Up("docker0"),
			link.AddAddr("docker0", netip.PrefixFrom(gateway, 24)),
			sysctl.Set("net.ipv4.conf.docker0.route_localnet", "1"))
		for i := range further {
			next, a, b := fmt.Sprint("br-", i), fmt.Sprintf("x%da", i), fmt.Sprintf("x%db", i)
			err = errors.Join(err, link.AddBridge(next), link.Up(next),
				link.AddVeth(a, b, tid), link.SetMaster(a, last), link.Up(a),
				link.SetMaster(b, next), link.Up(b))
			last = next
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	plug(t, host, first, "docker0", "v1", "10.8.0.2/24", gateway)
	plug(t, host, second, last, "v2", "10.8.0.3/24", gateway)
	filtered(t, host, `table ip t { chain d { type nat hook prerouting priority -100;
		tcp dport 8001 dnat to 10.8.0.3:7001; udp dport 5300 dnat to 10.8.0.3:53;
		tcp dport 8002 dnat to 10.8.0.1:7001; };
		chain o { type nat hook output priority -100;
		ip daddr 127.0.0.1 tcp dport 8001 dnat to 10.8.0.3:7001;
		ip daddr 127.0.0.1 udp dport 5300 dnat to 10.8.0.3:53; };
		chain p { type nat hook postrouting priority 100;
		ip saddr 127.0.0.1 oifname docker0 masquerade; };
		chain f { type filter hook forward priority 0; ct state invalid drop; }; }`)
	return client, host, first, second
}

// legsOf returns the parts of a trace on the network, each way, with the names of devices.
func legsOf(x *sample.Trace) (request, reply []string) {
	for _, g := range x.Segments {
		name, ok := strings.CutPrefix(string(g.Part), string(sample.PartNetwork+sample.InPart))
		switch {
		case g.Hop != string(sample.PartNetwork) || g.Part == sample.PartTransfer:
			continue
		case !ok:
			name = "undivided"
		case g.Device != "":
			name += " " + g.Device
		}
		if g.Reply {
			reply = append(reply, name)
		} else {
			request = append(request, name)
		}
	}
	return request, reply
}

// TestNetworkIsDivided checks which parts on the network a route has, and their order.
func TestNetworkIsDivided(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root can capture packets")
	}
	const routing = sample.LegRouting
	client, host, first, second := bridgedHost(t, 0)
	other, _, _, behind := bridgedHost(t, 1)
	for _, m := range []*machine{host, second, behind} {
		m.serve(t, ":7001", oneLine)
	}
	for name, tt := range map[string]struct {
		from    *machine
		at      string
		request []string
	}{
		"itself": {from: host, at: "127.0.0.1:7001", request: []string{"lo"}},
		"host":   {from: host, at: "10.8.0.3:7001", request: []string{"bridge docker0", "veth v2"}},
		"container": {from: first, at: "10.8.0.3:7001",
			request: []string{"veth v1", "bridge docker0", "veth v2"}},
		"to the host": {from: first, at: "10.8.0.1:7001",
			request: []string{"veth v1", "bridge docker0"}},
		"published, on loopback": {from: host, at: "127.0.0.1:8001",
			request: []string{"bridge docker0", "veth v2"}},
		"published, to the host": {from: first, at: "10.8.0.1:8002",
			request: []string{"veth v1", "bridge docker0"}},
		"published": {from: client, at: "10.9.0.9:8001",
			request: []string{"veth c", routing, "bridge docker0", "veth v2"}},
		"two bridges": {from: other, at: "10.9.0.9:8001",
			request: []string{"veth c", routing, "bridge docker0", "veth x0a", "bridge br-0", "veth v2"}},
	} {
		t.Run(name, func(t *testing.T) {
			testwait.Unhindered(t, patience, func(u testing.TB) {
				got := follows(u, tt.from, tt.at, 100)
				request, reply := legsOf(got)
				back := slices.Clone(tt.request)
				slices.Reverse(back)
				if got.Stamped { // by an earlier kernel, for a test of another package
					u.Fatalf("there %q, back %q", request, reply)
				}
				if got.Followed != 100 || !slices.Equal(request, tt.request) || !slices.Equal(reply, back) {
					u.Fatalf("%d followed, there %q, want %q; back %q: %+v", got.Followed, request,
						tt.request, reply, got.Broken)
				}
				sum := 0.0
				for _, g := range got.Segments {
					if sum += g.MidMean; g.Hop == string(sample.PartNetwork) &&
						g.Part != sample.PartTransfer && g.MidMean <= 0 {
						u.Errorf("no time in %+v", g)
					}
				}
				if off := sum - got.MidMean; max(off, -off) > 1e-9 {
					u.Errorf("segments sum to %g of %g", sum, got.MidMean)
				}
			})
		})
	}
}

// TestDatagramsAreDivided is TestNetworkIsDivided over UDP.
func TestDatagramsAreDivided(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root can capture packets")
	}
	client, host, first, second := bridgedHost(t, 0)
	serveNames(t, second, "10.8.0.3:53", 0, 1)
	for name, tt := range map[string]struct {
		from *machine
		at   string
		want []string
		back int // parts that are known; 0: all
	}{
		// The server has the kernel note when packets come, so that a bridge has the time of its port.
		"host":      {host, "10.8.0.3:53", []string{"bridge docker0", "veth v2"}, 1},
		"container": {first, "10.8.0.3:53", []string{"veth v1", "bridge docker0", "veth v2"}, 0},
		"loopback":  {host, "127.0.0.1:5300", []string{"bridge docker0", "veth v2"}, 1},
		"published": {client, "10.9.0.9:5300", []string{"undivided"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			testwait.Unhindered(t, patience, func(u testing.TB) {
				y, unseen, err := FindUDP(u.Context(), tt.from.pid, netip.MustParseAddrPort(tt.at),
					tt.from.udp(tt.at), func() error {
						_, err := resolves(u, tt.from, tt.at, 3)
						return err
					})
				if err := errors.Join(unseen, err); err != nil {
					u.Fatal(err)
				}
				defer y.Close()
				got, err := y.Follow(1, func() ([]tokens.Exchange, error) {
					return resolves(u, tt.from, tt.at, 100)
				})
				if err != nil {
					u.Fatal(err)
				}
				back := slices.Clone(tt.want)
				slices.Reverse(back)
				if tt.back > 0 {
					back = back[:tt.back]
				}
				if request, reply := legsOf(got); !slices.Equal(request, tt.want) ||
					!slices.Equal(reply, back) || got.Stamped != (tt.back > 0) {
					u.Fatalf("stamped %t, there %q, want %q; back %q", got.Stamped, request, tt.want,
						reply)
				}
			})
		})
	}
}
