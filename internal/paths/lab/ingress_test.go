package lab

import (
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/conntrack"
	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

// The golden files are `nft list ruleset` of a real Docker Engine, whose kernel had no IPVS: chain
// DOCKER-INGRESS and the jumps to it are what iptables 1.8.9 made of libnetwork's commands.
func TestRulesOfIngressAreDockers(t *testing.T) {
	needLab(t)
	if _, err := exec.LookPath("nft"); err != nil {
		pathtest.SkipOrFail(t, "nft is not installed: apt-get install nftables")
	}
	s := &site{path: &path.Path{}}
	d, services := s.mesh()
	d.engine = mode.Engine28
	for file, chains := range map[string][]nft.Chain{
		"docker-28.5.2-ingress.rules":      d.withMesh(slices.Concat(d.nat(), d.filter(), d.raw())),
		"docker-28.5.2-ingress-task.rules": services[0].taskRules(false),
	} {
		t.Run(file, func(t *testing.T) {
			ns := netnstest.New(t)
			if err := ns.Do(func() error { return nft.Apply(chains) }); err != nil {
				pathtest.SkipOrFail(t, "%v", err)
			}
			got := normalRules(output(t, &space{NS: ns}, "nft", "list", "ruleset"))
			golden(t, file, strings.ReplaceAll(got, "ct state established,new",
				"ct state new,established"))
		})
	}
}

// IPVS remembers a client's port after a sweep.
func TestIngressTakesAPortAgain(t *testing.T) {
	var s *site
	l := started(t, &Lab{test: hooks{built: func(x *site) { s = x }}})
	spec := path.Spec{Mode: mode.PublishIngress, From: mode.FromRemote, To: mode.ToAddress}
	skipMissing(t, l, spec)
	p := build(t, l, spec)
	if err := s.b.ns.Do(func() error {
		return sysctl.Set("net.ipv4.ip_local_port_range", "40000 40000")
	}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		pathtest.Exchange(t, p).Stop()
		if headroom, err := p.Drain(); err != nil || headroom.Error != "" ||
			headroom.TimeWait+headroom.Tracked > 0 {
			t.Fatalf("drain: %+v, %v", headroom, err)
		}
	}
	text := output(t, s.boxes[0].ns, "cat", "/proc/self/net/ip_vs_conn")
	if n := strings.Count(text, "TCP "); n != 1 {
		t.Errorf("IPVS remembers %d connections, want one:\n%s", n, text)
	}
}

// Agents recognize the mesh's connections by this conntrack entry.
func TestIngressIsTracked(t *testing.T) {
	var s *site
	l := started(t, &Lab{test: hooks{built: func(x *site) { s = x }}})
	spec := path.Spec{Mode: mode.PublishIngress, From: mode.FromRemote, To: mode.ToAddress}
	skipMissing(t, l, spec)
	p := build(t, l, spec)
	defer pathtest.Exchange(t, p).Stop()
	err := s.boxes[0].ns.Do(func() error {
		d, services := s.mesh()
		self := ingressNet.nth(sandboxHost).Addr()
		r := conntrack.Rewrite{Proto: "tcp", To: d.ingress[0].to,
			Now: netip.AddrPortFrom(services[0].task, publishedPort), As: self}
		got, err := conntrack.Translations(r.Proto, r.Selects)
		if err == nil && (len(got) != 1 || got[0].From.Addr() != s.b.addr.Addr()) {
			t.Errorf("connections %v, want one from %s", got, s.b.addr.Addr())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
