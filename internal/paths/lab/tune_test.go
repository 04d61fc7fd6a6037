package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

// showRPS mounts sysfs, which shows the namespace in which it was mounted.
const showRPS = "mount -t sysfs sysfs /mnt && cat /mnt/class/net/$0/queues/rx-0/rps_cpus"

func sysfs(t *testing.T, ns *space, dev, file string) string {
	t.Helper()
	return strings.TrimSpace(output(t, ns, "unshare", "-m", "sh", "-c",
		"mount -t sysfs sysfs /mnt && cat /mnt/class/net/$0/$1", dev, file))
}

func hasQueues(t *testing.T, s *site, n int) {
	t.Helper()
	look := func(ns *space, dev string) {
		if got := strings.Fields(output(t, ns, "unshare", "-m", "sh", "-c", "mount -t sysfs sysfs /mnt && ls /mnt/class/net/$0/queues", dev)); len(got) != 2*n {
			t.Errorf("%s has the queues %v", dev, got)
		}
	}
	look(s.a.ns, "veth-server")
	look(s.a.ns, "veth-client")
	for _, c := range s.boxes {
		look(c.ns, "eth0")
	}
}

type sizes map[string]uint32

func hasSizes(t *testing.T, s *site, want sizes) {
	t.Helper()
	spaces := map[string]*space{s.a.name: s.a.ns, s.b.name: s.b.ns}
	for _, c := range s.boxes {
		spaces[c.name] = c.ns
	}
	seen := 0
	for where, ns := range spaces {
		err := ns.Do(func() error {
			names, err := link.Names()
			for _, name := range names {
				got, err := link.MaxSizes(name)
				if err != nil {
					return err
				}
				size, named := want[where+" "+name]
				if named {
					seen++
				} else {
					size = mode.MinBigTCP
				}
				if got != [4]uint32{size, size, size, size} {
					t.Errorf("%s in %s: %v, not %d", name, where, got, size)
				}
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	if seen != len(want) {
		t.Errorf("%d of %d devices are there", seen, len(want))
	}
}

func TestTunesAreSet(t *testing.T) {
	spec := path.Spec{Mode: mode.Bridge, From: mode.FromContainer, To: mode.ToContainer}
	offload := func(name string, on bool) func(*testing.T, *site) {
		return func(t *testing.T, s *site) {
			veths := 0
			for _, l := range s.path.Links {
				if l.Kind != "veth" || l.Where == s.a.name && l.Name == wireName {
					continue
				}
				veths++
				if l.Offloads[name] != on {
					t.Errorf("%s of %s in %s is %t", name, l.Name, l.Where, l.Offloads[name])
				}
			}
			if veths != 4 {
				t.Errorf("%d ends of veth pairs", veths)
			}
		}
	}
	says := func(claims ...claim) func(*testing.T, *site) {
		return func(t *testing.T, s *site) {
			for _, c := range claims {
				c.check(t, s)
			}
		}
	}
	for _, tt := range []struct {
		tune  mode.Tunes
		check func(*testing.T, *site)
	}{
		{"mtu=9000", says(
			claim{where: "A", command: "ip -o link",
				says: []string{"br-toll: mtu 9000", "veth-server@ mtu 9000",
					"veth-client@ mtu 9000", "eth0@ mtu 1500"}},
			claim{where: "server", command: "ip -o link", says: []string{"eth0@ mtu 9000"}},
			claim{where: "client", command: "ip -o link", says: []string{"eth0@ mtu 9000"}})},
		{"rmem=16M", says(
			claim{where: "server", command: "sysctl net.ipv4.tcp_rmem",
				says: []string{"4096 131072 16777216"}},
			claim{where: "client", command: "sysctl net.ipv4.tcp_rmem",
				says: []string{"4096 131072 16777216"}},
			claim{where: "A", command: "sysctl net.ipv4.tcp_rmem",
				says: []string{"4096 131072 16777216"}})},
		{"wmem=8k", says(claim{where: "client", command: "sysctl net.ipv4.tcp_wmem",
			says: []string{"4096 8192 8192"}})},
		{"gro=on", offload("gro", true)},
		{"gro=off", offload("gro", false)},
		{"tso=off", offload("tso", false)},
		{"tso=on", offload("tso", true)},
		{"rps=on", func(t *testing.T, s *site) {
			for _, dev := range []string{"veth-server", "veth-client"} {
				if got := strings.TrimSpace(output(t, s.a.ns, "unshare", "-m", "sh", "-c", showRPS, dev)); strings.Trim(got, "0,") == "" {
					t.Errorf("%s is steered to %q", dev, got)
				}
			}
		}},
		{"xps=on", func(t *testing.T, s *site) {
			for _, dev := range []string{"veth-server", "veth-client"} {
				if got := sysfs(t, s.a.ns, dev, "queues/tx-0/xps_cpus"); strings.Trim(got,
					"0,") == "" {
					t.Errorf("what %s sends is steered to %q", dev, got)
				}
			}
		}},
		{"gro=on+threaded=on", func(t *testing.T, s *site) {
			for _, dev := range []string{"veth-server", "veth-client"} {
				if got := sysfs(t, s.a.ns, dev, "threaded"); got != "1" {
					t.Errorf("%s: threaded is %q", dev, got)
				}
			}
			for _, c := range s.boxes {
				if got := sysfs(t, c.ns, "eth0", "threaded"); got != "1" {
					t.Errorf("%s: threaded is %q", c.name, got)
				}
			}
		}},
		{"queues=1", func(t *testing.T, s *site) { hasQueues(t, s, 1) }},
		{"queues=2", func(t *testing.T, s *site) { hasQueues(t, s, 2) }},
		{"bigtcp=180000", func(t *testing.T, s *site) {
			hasSizes(t, s, sizes{"machine A br-toll": 180000, "machine A veth-server": 180000,
				"machine A veth-client": 180000})
		}},
		{"bigtcp-container=131072", func(t *testing.T, s *site) {
			hasSizes(t, s, sizes{"server container eth0": 131072, "client container eth0": 131072})
		}},
		{"congestion=reno", says(
			claim{where: "server", command: "sysctl net.ipv4.tcp_congestion_control",
				says: []string{"= reno"}},
			claim{where: "client", command: "sysctl net.ipv4.tcp_congestion_control",
				says: []string{"= reno"}},
			claim{where: "A", command: "sysctl net.ipv4.tcp_congestion_control",
				says: []string{"= reno"}})},
		{"bridge-nf=on", says(claim{where: "A", command: "sysctl net.bridge",
			says: []string{"call-iptables = 1", "call-ip6tables = 1"}})},
		{"bridge-nf=off", func(t *testing.T, s *site) {
			claim{where: "A", command: "sysctl net.bridge",
				says: []string{"call-iptables = 0", "call-ip6tables = 0"}}.check(t, s)
			err := s.a.ns.Do(func() error {
				return nft.Apply([]nft.Chain{{Table: "filter", Name: "KEEP-APART",
					Hook: nft.Forward, Rules: []nft.Rule{
						rule(nft.Drop(), nft.In(tollNet.bridge), nft.Out(tollNet.bridge))}}})
			})
			if err != nil {
				t.Error(err)
			}
		}},
		{"nodelay=off", func(*testing.T, *site) {}},
		{"mtu=4000+gro=on+tso=off", says(claim{
			where: "server", command: "ip -o link", says: []string{"eth0@ mtu 4000"}})},
	} {
		t.Run(string(tt.tune), func(t *testing.T) {
			var s *site
			l := started(t, &Lab{test: hooks{built: func(b *site) { s = b }}})
			spec.Tune = tt.tune
			if err := l.Check(context.Background(), spec); err != nil {
				pathtest.SkipOrFail(t, "%s: %v", spec, err)
			}
			p := build(t, l, spec)
			tt.check(t, s)
			pathtest.CarriesTwice(t, p)
		})
	}
}

func TestBigTCPOfLoopback(t *testing.T) {
	var s *site
	l := started(t, &Lab{test: hooks{built: func(b *site) { s = b }}})
	spec := path.Spec{Mode: mode.PublishProxy, From: mode.FromHost, To: mode.ToLoopback,
		Tune: "bigtcp-lo=180000"}
	skipMissing(t, l, spec)
	p := build(t, l, spec)
	hasSizes(t, s, sizes{"machine A lo": 180000})
	pathtest.CarriesTwice(t, p)
}

func TestTunesAreTriedAndUndone(t *testing.T) {
	l := started(t, &Lab{})
	spec := path.Spec{Mode: mode.Bridge, From: mode.FromContainer, To: mode.ToContainer}
	skipMissing(t, l, spec)
	before := congestionOf(t, l)
	for _, tune := range []mode.Tunes{"congestion=reno", "bigtcp=180000", "queues=1", "xps=on",
		"gro=on+threaded=on"} {
		spec.Tune = tune
		if err := l.Check(context.Background(), spec); err != nil &&
			!errors.Is(err, machine.ErrUnsupported) {
			t.Errorf("%s: %v", tune, err)
		}
	}
	if after := congestionOf(t, l); after != before {
		t.Errorf("the namespace for trials has %q, it had %q", after, before)
	}
}

func congestionOf(t *testing.T, l *Lab) (name string) {
	t.Helper()
	err := l.trial.Do(func() (err error) {
		name, err = sysctl.Get(local.TCPCongestion)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func TestTunesOnEveryMode(t *testing.T) {
	l := started(t, &Lab{})
	for _, m := range pathtest.Modes(t) {
		r := pathtest.Longest(m)
		if vm() && slices.Contains(r.Hops, mode.HopOVS) {
			continue // on an emulated CPU a switch for each path takes too long
		}
		t.Run(string(m.Name), func(t *testing.T) {
			t.Parallel()
			spec := path.Spec{Mode: m.Name, From: r.From, To: r.To}
			skipMissing(t, l, spec)
			for _, together := range [][]mode.Tunes{{"mtu=1280", "tso=on"},
				{"mtu=9000", "gro=on", "tso=off", "rps=on"},
				{"gro=on+threaded=on"}, {"queues=1", "xps=on", "bigtcp=180000",
					"bigtcp-container=131072", "bigtcp-lo=180000", "congestion=reno",
					"bridge-nf=off"}} {
				for _, tune := range onPaths(possibleTunes(t, l, spec, r, together)) {
					t.Run(string(tune), func(t *testing.T) {
						t.Parallel()
						tuned := spec
						tuned.Tune = tune
						pathtest.Carries(t, build(t, l, tuned))
					})
				}
			}
		})
	}
}

// onPaths returns the tunes that paths have at once; TestTunesAreSet has each alone.
func onPaths(tunes []mode.Tunes) []mode.Tunes {
	if len(tunes) == 0 {
		return nil
	}
	all := tunes[0]
	for _, tune := range tunes[1:] {
		all = mode.Tunes(tune.Name(string(all)))
	}
	return []mode.Tunes{all}
}

// possibleTunes returns the accepted tunes, which must be those that mayHave allows; the others
// must be refused with a reason.
func possibleTunes(t *testing.T, l *Lab, spec path.Spec, r mode.Route,
	tunes []mode.Tunes) (out []mode.Tunes) {
	t.Helper()
	for _, tune := range tunes {
		spec.Tune = tune
		err := l.Check(context.Background(), spec)
		var u *machine.UnsupportedError
		switch {
		case err == nil:
			out = append(out, tune)
		case !errors.As(err, &u):
			t.Errorf("%s: %v", tune, err)
		case u.Missing == "" || u.Remedy == "":
			t.Errorf("%s: refused without reason or remedy: %+v", tune, u)
		case mayHave(tune, spec.Mode, r):
			t.Errorf("%s: refused: %v", tune, err)
		}
	}
	return out
}

func mayHave(tune mode.Tunes, m mode.Name, r mode.Route) bool {
	onlyWire := len(r.Hops) == 1 && r.Hops[0] == mode.HopWire
	veth := slices.Contains(r.Hops, mode.HopVeth)
	sub := slices.Contains(r.Hops, mode.HopMacvlan) || slices.Contains(r.Hops, mode.HopIPvlan)
	switched := slices.Contains(r.Hops, mode.HopOVS)
	tapped := r.Hops[0] == mode.HopWire && r.Hops[len(r.Hops)-1] == mode.HopTap
	switch tune {
	case "gro=on":
		return veth && (!switched || link.HasOVS())
	case "tso=on":
		return !onlyWire && !sub && !tapped && (!switched || link.HasOVS())
	case "tso=off":
		return !onlyWire && !sub && !tapped
	case "xps=on":
		return veth && manyCPUs()
	case "queues=1":
		return veth
	case "gro=on+threaded=on":
		return veth && (!switched || link.HasOVS())
	case "congestion=reno":
		return true
	case "bigtcp=180000":
		pair := veth || slices.Contains(r.Hops, mode.HopBridge) ||
			slices.Contains(r.Hops, mode.HopNetkit)
		return pair && m != mode.Overlay && m != mode.OverlayEncrypted &&
			m != mode.PublishIngress && hasBigTCP()
	case "bigtcp-container=131072":
		return (veth || slices.Contains(r.Hops, mode.HopNetkit)) && hasBigTCP()
	case "bridge-nf=off":
		return slices.Contains([]mode.Name{mode.Bridge, mode.BridgeDefault, mode.Pipework,
			mode.Overlay, mode.OverlayEncrypted}, m)
	case "bigtcp-lo=180000":
		return slices.Contains(r.Hops, mode.HopLoopback) && hasBigTCP()
	case "rps=on":
		return veth || r.Hops[0] == mode.HopLoopback
	case "mtu=9000":
		return !onlyWire && !sub && !switched && m != mode.Pipework
	}
	return !onlyWire
}

const (
	twoContainers = "two containers of one network: bridge --from container"
	needsNoRules  = "a mode whose bridge needs no rules, such as bridge"
)

func TestTunesAreRefused(t *testing.T) {
	for _, tt := range []struct {
		spec   path.Spec
		reason string
		remedy string
	}{
		{path.Spec{Mode: mode.Host, From: mode.FromRemote, To: mode.ToAddress, Tune: "mtu=9000"},
			"mtu=9000 has no effect: the path has no device except the wire", "--wire mtu=9000"},
		{path.Spec{Mode: mode.PublishProxy, From: mode.FromHost, To: mode.ToLoopback6,
			Tune: "mtu=1000"}, "mtu=1000: IPv6 needs at least 1280", "mtu=1280"},
		{path.Spec{Mode: mode.Native, From: mode.FromHost, To: mode.ToLoopback, Tune: "gro=on"},
			"gro=on has no effect: the path has no container veth pair",
			"a mode with a veth pair, such as bridge"},
		{path.Spec{Mode: mode.MacvlanBridge, From: mode.FromContainer, To: mode.ToContainer,
			Tune: "mtu=9000"}, "mtu=9000: a sub-interface cannot have a larger MTU than its " +
			"card, which has " +
			"1500", "--wire mtu=9000"},
		{path.Spec{Mode: mode.Pipework, From: mode.FromRemote, To: mode.ToContainer,
			Tune: "mtu=9000"}, "mtu=9000: a switch drops frames that are larger than the wire's " +
			"1500",
			"--wire mtu=9000"},
		{path.Spec{Mode: mode.MacvlanBridge, From: mode.FromContainer, To: mode.ToContainer,
			Tune: "rps=on"}, "rps=on has no effect: the path has neither a veth pair of its own " +
			"nor a " +
			"loopback device",
			"a mode with a veth pair, such as bridge"},
		{path.Spec{Mode: mode.Bridge, From: mode.FromHost, To: mode.ToContainer,
			Tune: "threaded=on"}, "threaded=on has no effect: a veth pair has no NAPI without " +
			"gro=on", "gro=on+threaded=on"},
		{path.Spec{Mode: mode.Bridge, From: mode.FromHost, To: mode.ToContainer,
			Tune: "queues=4096"}, fmt.Sprintf("queues=4096: a veth pair has at most %d here", possibleCPUs(t)),
			fmt.Sprintf("queues=%d", possibleCPUs(t))},
		{path.Spec{Mode: mode.Bridge, From: mode.FromHost, To: mode.ToContainer,
			Tune: "bigtcp-lo=180000"}, "bigtcp-lo=180000 has no effect: the path does not cross " +
			"a loopback device",
			"a mode whose path crosses lo, such as host"},
		{path.Spec{Mode: mode.Overlay, From: mode.FromRemoteContainer, To: mode.ToContainer,
			Tune: "bigtcp=180000"}, "bigtcp=180000: on a bridge, the kernel permits no larger " +
			"packets than on " +
			"its VXLAN port",
			"a mode without a tunnel, such as bridge"},
		{path.Spec{Mode: mode.Overlay, From: mode.FromContainer, To: mode.ToContainer,
			Tune: "bigtcp=180000"}, "bigtcp=180000: on a bridge, the kernel permits no larger " +
			"packets than on " +
			"its VXLAN port",
			"a mode without a tunnel, such as bridge"},
		{path.Spec{Mode: mode.MacvlanBridge, From: mode.FromContainer, To: mode.ToContainer,
			Tune: "bigtcp=180000"}, "bigtcp=180000 has no effect: the path has neither a bridge " +
			"nor a " +
			"container's pair",
			"a mode with a veth pair, such as bridge"},
		{path.Spec{Mode: mode.MacvlanBridge, From: mode.FromContainer, To: mode.ToContainer,
			Tune: "bridge-nf=off"}, "bridge-nf=off has no effect: no bridge of the path " +
			"forwards frames from " +
			"port to port", twoContainers},
		{path.Spec{Mode: mode.Bridge, From: mode.FromHost, To: mode.ToContainer,
			Tune: "bridge-nf=off"}, "bridge-nf=off has no effect: no bridge of the path " +
			"forwards frames from " +
			"port to port", twoContainers},
		{path.Spec{Mode: mode.Routed, From: mode.FromContainer, To: mode.ToContainer,
			Tune: "bridge-nf=off"}, "bridge-nf=off has no effect: no bridge of the path " +
			"forwards frames from " +
			"port to port", twoContainers},
		{path.Spec{Mode: mode.PublishProxy, From: mode.FromContainer, To: mode.ToAddress,
			Tune: "bridge-nf=off"}, "bridge-nf=off has no effect: no bridge of the path " +
			"forwards frames from " +
			"port to port", twoContainers},
		{path.Spec{Mode: mode.PublishNAT, From: mode.FromContainer, To: mode.ToAddress,
			Tune: "bridge-nf=off"}, "bridge-nf=off: the mode's rules would not see the bridged " +
			"frames that they " +
			"must match", needsNoRules},
		{path.Spec{Mode: mode.Link, From: mode.FromContainer, To: mode.ToContainer,
			Tune: "bridge-nf=off"}, "bridge-nf=off: the mode's rules would not see the bridged " +
			"frames that they " +
			"must match", needsNoRules},
		{path.Spec{Mode: mode.Bridge, From: mode.FromHost, To: mode.ToContainer,
			Tune: "congestion=teleport"},
			"congestion control teleport cannot be chosen in a network namespace",
			"one of those that can: " + allowedCongestion(t) +
				", or add it to net.ipv4.tcp_allowed_congestion_control"},
	} {
		t.Run(tt.spec.String(), func(t *testing.T) {
			l := started(t, &Lab{})
			var u *machine.UnsupportedError
			if err := l.Check(context.Background(), tt.spec); !errors.As(err, &u) {
				t.Fatalf("Check = %v", err)
			}
			if u.Missing != tt.reason || u.Remedy != tt.remedy {
				t.Errorf("remedy %q; missing %q, want %q", u.Remedy, u.Missing, tt.reason)
			}
		})
	}
}

func hasBigTCP() bool {
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return false
	}
	var major, minor int
	_, _ = fmt.Sscanf(string(b), "%d.%d", &major, &minor)
	return major > 6 || major == 6 && minor >= 3
}

func manyCPUs() bool { return cpusPossible() > 1 }

func possibleCPUs(t *testing.T) int {
	t.Helper()
	n := cpusPossible()
	if n == 0 {
		t.Fatal("the kernel does not say which CPUs it can have")
	}
	return n
}

func cpusPossible() int {
	b, err := os.ReadFile("/sys/devices/system/cpu/possible")
	if err != nil {
		return 0
	}
	_, last, _ := strings.Cut(strings.TrimSpace(string(b)), "-")
	n, _ := strconv.Atoi(last) // one CPU is "0"
	return n + 1
}

func allowedCongestion(t *testing.T) string {
	t.Helper()
	s, err := sysctl.Get("net.ipv4.tcp_allowed_congestion_control")
	if err != nil {
		t.Fatal(err)
	}
	return s
}
