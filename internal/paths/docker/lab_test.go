package docker

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/paths/lab"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// difference is an accepted one.
type difference struct {
	of    *regexp.Regexp
	modes []mode.Name // nil: all
	to    mode.Target // "": all
	old   bool        // before 28, the oldest engine whose rules the lab has
	why   string
}

func differs(of string) *regexp.Regexp { return regexp.MustCompile("^(" + of + ")$") }

// The test's daemon has both settings; a second daemon would cost time.
const thisDaemon = "this daemon has no proxy and keeps containers of the default network apart; " +
	"the lab's has one of the two settings"

var allowed = []difference{
	{of: differs(`(server|client) (eth0|port|bridge) txqlen`),
		why: "they are queued nowhere: their qdisc is noqueue in both"},
	{of: differs(`machine net\.ipv6\.conf\.(server|client)-bridge\.accept_ra`),
		why: "nobody advertises routes there"},
	{of: differs(`machine net\.ipv6\.conf\.\S+\.forwarding`),
		why: "the daemon makes its machine a router of IPv6 with the first network that has it, " +
			"and leaves it one"},
	{of: differs(`(server|client) net\.ipv4\.(ping_group_range|ip_unprivileged_port_start)`),
		why: "they are what a program may do, not how packets go"},
	{of: differs(`(server|client) net\.ipv6\.conf\.(all|default|lo)\.disable_ipv6`), old: true,
		why: "once Docker took IPv6 from all devices of a container"},
	{of: differs(
		`machine net\.ipv4\.(ip_forward|conf\.(lo|all|default)\.forwarding|conf\.all\.accept_redirects)|rules .* tried`), modes: []mode.Name{mode.Native},
		why: "the lab's machine has no Docker on it: what Docker's presence costs is " +
			"the difference"},
	{of: differs(`(server|client) net\.ipv6\.conf\.eth0\.disable_ipv6`),
		modes: []mode.Name{mode.MacvlanBridge},
		why:   "a card has one macvlan network: beside a path with IPv6 all have it"},
	{of: differs(`(server|client) routes`), modes: []mode.Name{mode.MacvlanBridge},
		why: "the lab's containers are on the wire's network, which has no router"},
	{of: differs(
		`(server|client) port as port hairpin|machine ` +
			`net\.ipv4\.conf\.(server|client)-bridge\.route_localnet`),
		modes: []mode.Name{mode.Link}, why: thisDaemon},
	{of: differs(`rules of the client nat postrouting tried`), modes: []mode.Name{mode.Link},
		why: thisDaemon},
	{of: differs(`rules translated filter forward tried`),
		modes: []mode.Name{mode.PublishNAT, mode.Publish, mode.PublishDefault}, why: thisDaemon},
	{of: differs(`rules of the client nat output tried`),
		modes: []mode.Name{mode.PublishProxy, mode.Publish, mode.PublishDefault},
		to:    mode.ToLoopback6,
		why: "the lab writes no rules for IPv6: Docker's is one, for the first packet " +
			"of a connection"},
	{of: differs(`rules .* tried`), old: true,
		why: "the lab has the rules of 28, which are others and in another order"},
}

// labEngine returns the engine whose rules the lab compares with the real one's.
func labEngine(e *engine) string {
	switch {
	case e.native():
		return mode.NFTables
	case e.Major() < 29:
		return mode.Engine28
	}
	return mode.Engine29
}

var othersRules = differs(`rules .* tried`)

// Docker makes these modes outside its networks, on a real switch, or in a namespace of dockerd's.
var unlike = []mode.Name{mode.Pipework, mode.OVS, mode.MacvlanVEPA, mode.IPvlanL2, mode.IPvlanL3,
	mode.IPvlanL3S, mode.Overlay}

// With together, other paths of the test are on Docker's machine.
func likeTheLab(t *testing.T, l *lab.Lab, p *path.Path, engine int, together bool) {
	t.Helper()
	if slices.Contains(unlike, p.Spec.Mode) || p.Spec.UDP { // UDP only has other rules
		return
	}
	// internal/paths/lab compares their rules with 28.5.2's: installed engines have fewer for IPv6
	if p.Route(0).OnRequest() {
		return
	}
	docker := collect(t, p, onDocker(p))
	before := threads(t)
	ours, err := l.Build(context.Background(), p.Spec)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := ours.Close(); err != nil {
			t.Error(err)
		}
	}()
	labs := collect(t, ours, inLab(t, before))
	const fewest = 100
	if len(docker) < fewest || len(labs) < fewest {
		t.Errorf("%d facts of Docker's, %d of the lab's", len(docker), len(labs))
	}
	both := maps.Clone(docker)
	maps.Copy(both, labs)
	for _, k := range slices.Sorted(maps.Keys(both)) {
		if docker[k] == labs[k] {
			continue
		}
		if together && othersRules.MatchString(k) {
			continue
		}
		if why := mayDiffer(k, p.Spec, engine); why != "" {
			t.Logf("%s: Docker %q, the lab %q: %s", k, docker[k], labs[k], why)
			continue
		}
		t.Errorf("%s: Docker %q, the lab %q", k, docker[k], labs[k])
	}
}

func mayDiffer(fact string, s path.Spec, engine int) string {
	const oldestOfLab = 28
	for _, d := range allowed {
		if d.of.MatchString(fact) && (d.modes == nil || slices.Contains(d.modes, s.Mode)) &&
			(d.to == "" || d.to == s.To) && (!d.old || engine < oldestOfLab) {
			return d.why
		}
	}
	return ""
}
