package lab

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

// Of a mode's routes over IPv6, whose rules and relays are the same, the last one is tested.
// Outwards nothing is for single ports: bridge represents the others.
func TestSecondPort(t *testing.T) {
	l := started(t, &Lab{})
	others := []mode.Name{mode.Host, mode.Bridge, mode.BridgeDefault} // nothing is for single ports
	for _, m := range mode.OfDocker() {
		if !m.PerPort && !slices.Contains(others, m.Name) {
			continue
		}
		routes, six := m.Routes, false
		if slices.Contains(bothWays, m.Name) {
			routes = routes[len(routes)-1:]
		} else if !m.PerPort {
			routes = []mode.Route{pathtest.Longest(m)}
		}
		for _, r := range slices.Backward(routes) {
			if r.To.Outside() || six && r.To.Six() {
				continue
			}
			six = six || r.To.Six()
			spec := path.Spec{Mode: m.Name, From: r.From, To: r.To}
			t.Run(strings.Join([]string{string(m.Name), string(r.From), string(r.To)}, "-"),
				func(t *testing.T) { testSecondPort(t, l, spec) })
		}
	}
	t.Run("outside", func(t *testing.T) {
		testSecondPort(t, l, path.Spec{Mode: mode.Bridge, From: mode.FromContainer, To: mode.ToOutside})
	})
}

func testSecondPort(t *testing.T, l *Lab, spec path.Spec) {
	t.Parallel()
	skipMissing(t, l, spec)
	pathtest.SecondPort(t, l, spec, pathtest.Options{})
}

func TestSecondPortAround(t *testing.T) {
	l := started(t, &Lab{})
	container := netip.AddrPortFrom(tollNet.nth(firstDocker).Addr(), secondPort)
	published := netip.AddrPortFrom(outer.nth(machineA).Addr(), secondPort)
	for _, c := range []struct {
		name  string
		spec  path.Spec
		dial  netip.AddrPort
		first bool
		want  string
	}{
		{"proxy-by-nat", path.Spec{Mode: mode.PublishProxy, From: mode.FromHost,
			To: mode.ToLoopback}, published, true, "nat DOCKER publish (machine A): hit "},
		{"proxy-of-ipv6-by-nat", path.Spec{Mode: mode.PublishProxy, From: mode.FromHost,
			To: mode.ToLoopback6}, published, true, "nat DOCKER publish (machine A): hit "},
		{"proxy-by-bridge", path.Spec{Mode: mode.PublishProxy, From: mode.FromContainer,
			To: mode.ToAddress}, container, false, "saw no connection"},
		{"nat-by-bridge", path.Spec{Mode: mode.PublishNAT, From: mode.FromHost, To: mode.ToAddress},
			container, false, "nat DOCKER publish (machine A): saw no connection"},
		{"nat-by-switch", path.Spec{Mode: mode.PublishNAT, From: mode.FromContainer,
			To: mode.ToAddress}, container, false,
			"nat DOCKER publish (machine A): saw no connection"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.spec.Second = true
			p := build(t, l, c.spec)
			moves := []func() pathtest.Traffic{func() pathtest.Traffic {
				return pathtest.ExchangeAt(t, pathtest.SecondOf(p), c.dial)
			}}
			if c.first {
				moves = append(moves, func() pathtest.Traffic { return pathtest.Exchange(t, p) })
			}
			if w := pathtest.Seen(t, p, moves...); w.OK || !strings.Contains(w.Evidence, c.want) {
				t.Errorf("witness %+v, want %q", w, c.want)
			}
		})
	}
}

// In a real Docker Engine's rules for a second port (docker-28.5.2-*-crowd.rules) DNAT follows the
// first one's, and accept is inserted before it.
func TestRulesOfTwoPortsAreDockers(t *testing.T) {
	needLab(t)
	if _, err := exec.LookPath("nft"); err != nil {
		pathtest.SkipOrFail(t, "nft is not installed: apt-get install nftables")
	}
	for _, c := range []struct {
		file string
		spec path.Spec
	}{
		{"docker-28.5.2-default.rules", path.Spec{
			Mode: mode.PublishProxy, From: mode.FromContainer, To: mode.ToAddress}},
		{"docker-28.5.2-noproxy.rules", path.Spec{
			Mode: mode.PublishNAT, From: mode.FromContainer, To: mode.ToAddress}},
		{"docker-28.5.2-routed.rules", path.Spec{
			Mode: mode.Routed, From: mode.FromHost, To: mode.ToContainer}},
		{"docker-28.5.2-link.rules", path.Spec{
			Mode: mode.Link, From: mode.FromContainer, To: mode.ToContainer}},
	} {
		t.Run(c.file, func(t *testing.T) {
			one, err := os.ReadFile(filepath.Join("testdata", c.file))
			if err != nil {
				t.Fatal(err)
			}
			var a *space
			l := &Lab{ProxyPath: ownProxy, Engine: mode.Engine28, test: hooks{built: func(s *site) { a = s.a.ns }}}
			c.spec.Second = true
			build(t, l, c.spec)
			if got, want := normalRules(output(t, a, "nft", "list", "ruleset")), withSecond(string(one)); got != want {
				t.Errorf("the rules are\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func withSecond(rules string) string {
	other := strings.NewReplacer("8080", "5301", "5201", "5301")
	var out, first, second []string
	for line := range strings.Lines(rules) {
		if with := other.Replace(line); with != line {
			first, second = append(first, line), append(second, with)
			continue
		}
		if len(first) > 0 && strings.Contains(first[0], "iifname !=") &&
			strings.Contains(first[0], "accept") {
			first, second = second, first
		}
		out = append(append(append(out, first...), second...), line)
		first, second = nil, nil
	}
	return strings.Join(append(append(out, first...), second...), "")
}
