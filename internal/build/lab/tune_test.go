package lab

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/build/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/build/path"
	"github.com/bridgetoll/bridgetoll/internal/build/path/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// showRPS prints the CPUs to which a device's packets are steered; sysfs shows
// the namespace in which it was mounted.
const showRPS = "mount -t sysfs sysfs /mnt && cat /mnt/class/net/$0/queues/rx-0/rps_cpus"

// A tune is what the kernel then shows.
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
			claim{where: "A", command: "ip -o link", says: []string{"br-toll: mtu 9000", "veth-server@ mtu 9000", "veth-client@ mtu 9000", "eth0@ mtu 1500"}},
			claim{where: "server", command: "ip -o link", says: []string{"eth0@ mtu 9000"}},
			claim{where: "client", command: "ip -o link", says: []string{"eth0@ mtu 9000"}})},
		{"rmem=16M", says(
			claim{where: "server", command: "sysctl net.ipv4.tcp_rmem", says: []string{"4096 131072 16777216"}},
			claim{where: "client", command: "sysctl net.ipv4.tcp_rmem", says: []string{"4096 131072 16777216"}},
			claim{where: "A", command: "sysctl net.ipv4.tcp_rmem", says: []string{"4096 131072 16777216"}})},
		{"wmem=8k", says(claim{where: "client", command: "sysctl net.ipv4.tcp_wmem", says: []string{"4096 8192 8192"}})},
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
		{"nodelay=off", func(*testing.T, *site) {}}, // the load's own
		{"mtu=4000+gro=on+tso=off", says(claim{where: "server", command: "ip -o link", says: []string{"eth0@ mtu 4000"}})},
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
			pathtest.RightWay(t, p)
		})
	}
}

// Every mode carries traffic with every tune that it can have, and says why
// it cannot have the others.
func TestTunesOnEveryMode(t *testing.T) {
	l := started(t, &Lab{})
	for _, m := range pathtest.Modes(t) {
		r := m.Routes[len(m.Routes)-1]
		if vm() && slices.Contains(r.Hops, mode.HopOVS) {
			continue // on an emulated CPU a switch of its own for each path takes too long
		}
		t.Run(string(m.Name), func(t *testing.T) {
			t.Parallel()
			spec := path.Spec{Mode: m.Name, From: r.From, To: r.To}
			skipMissing(t, l, spec)
			for _, together := range [][]mode.Tunes{{"mtu=1280", "tso=on"}, {"mtu=9000", "gro=on", "tso=off", "rps=on"}} {
				for _, tune := range onPaths(possible(t, l, spec, r, together)) {
					t.Run(string(tune), func(t *testing.T) {
						t.Parallel()
						tuned := spec
						tuned.Tune = tune
						pathtest.RightWay(t, build(t, l, tuned))
					})
				}
			}
		})
	}
}

// onPaths are tunes as paths have them: each alone, but all on one path where every path
// takes its time.
func onPaths(tunes []mode.Tunes) []mode.Tunes {
	if !pathtest.Emulated() || len(tunes) == 0 {
		return tunes
	}
	all := tunes[0]
	for _, tune := range tunes[1:] {
		all = mode.Tunes(tune.Name(string(all)))
	}
	return []mode.Tunes{all}
}

// possible are those of the tunes that a path is not refused with, which must be those
// that it may have. The others are refused with a reason.
func possible(t *testing.T, l *Lab, spec path.Spec, r mode.Route, tunes []mode.Tunes) (out []mode.Tunes) {
	t.Helper()
	for _, tune := range tunes {
		spec.Tune = tune
		err := l.Check(context.Background(), spec)
		var u *path.UnsupportedError
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

// mayHave says, in other words than the lab's, on which routes a tune sets
// something.
func mayHave(tune mode.Tunes, m mode.Name, r mode.Route) bool {
	onlyWire := len(r.Hops) == 1 && r.Hops[0] == mode.HopWire
	veth := slices.Contains(r.Hops, mode.HopVeth)
	sub := slices.Contains(r.Hops, mode.HopMacvlan) || slices.Contains(r.Hops, mode.HopIPvlan)
	switched := slices.Contains(r.Hops, mode.HopOVS)
	switch tune {
	case "gro=on":
		return veth && (!switched || link.HasOVS())
	case "tso=on":
		return !onlyWire && !sub && (!switched || link.HasOVS())
	case "tso=off":
		return !onlyWire && !sub
	case "rps=on":
		return veth || r.Hops[0] == mode.HopLoopback
	case "mtu=9000":
		return !onlyWire && !sub && !switched && m != mode.Pipework
	}
	return !onlyWire
}

// What a tune cannot set is refused by name.
func TestTunesAreRefused(t *testing.T) {
	for _, tt := range []struct {
		spec   path.Spec
		reason string
		remedy string
	}{
		{path.Spec{Mode: mode.Host, From: mode.FromRemote, To: mode.ToAddress, Tune: "mtu=9000"}, "the path has no device except the wire", "--wire mtu=9000"},
		{path.Spec{Mode: mode.PublishProxy, From: mode.FromHost, To: mode.ToLoopback6, Tune: "mtu=1000"}, "IPv6 needs at least 1280", "mtu=1280"},
		{path.Spec{Mode: mode.Native, From: mode.FromHost, To: mode.ToLoopback, Tune: "gro=on"}, "no container veth pair", "a mode with a veth pair, such as bridge"},
		{path.Spec{Mode: mode.MacvlanBridge, From: mode.FromContainer, To: mode.ToContainer, Tune: "mtu=9000"}, "more than its card's 1500", "--wire mtu=9000"},
		{path.Spec{Mode: mode.Pipework, From: mode.FromRemote, To: mode.ToContainer, Tune: "mtu=9000"}, "a switch drops frames that are larger than the wire's 1500", "--wire mtu=9000"},
		{path.Spec{Mode: mode.MacvlanBridge, From: mode.FromContainer, To: mode.ToContainer, Tune: "rps=on"}, "neither a veth pair of its own", "a mode with a veth pair, such as bridge"},
	} {
		t.Run(tt.spec.String(), func(t *testing.T) {
			l := started(t, &Lab{})
			var u *path.UnsupportedError
			if err := l.Check(context.Background(), tt.spec); !errors.As(err, &u) {
				t.Fatalf("Check = %v", err)
			}
			if !strings.Contains(u.Missing, tt.reason) || u.Remedy != tt.remedy {
				t.Errorf("missing %q, remedy %q", u.Missing, u.Remedy)
			}
		})
	}
}
