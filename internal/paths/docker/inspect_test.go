package docker

import (
	"context"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/firewall"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestOwnRules(t *testing.T) {
	const bridge = "br-0123456789ab"
	o := ownRules{where: thisMachine, devices: []string{bridge},
		addrs:  []netip.Addr{netip.MustParseAddr("172.18.0.2"), netip.MustParseAddr("172.18.0.3")},
		subnet: netip.MustParsePrefix("172.18.0.0/16")}
	for _, c := range []struct {
		chain, words string
		want         bool
	}{
		{"POSTROUTING", "-s 172.18.0.0/16 ! -o " + bridge + " -j MASQUERADE", true},
		{"POSTROUTING", "-s 172.19.0.0/16 ! -o br-another -j MASQUERADE", false},
		{"POSTROUTING", "-s 172.18.0.2/32 -d 172.18.0.2/32 -p tcp --dport 80 -j MASQUERADE", true},
		{"POSTROUTING", "-s 172.18.0.9/32 -d 172.18.0.9/32 -p tcp --dport 80 -j MASQUERADE", false},
		{"DOCKER", "! -i " + bridge + " -p tcp --dport 8080 -j DNAT --to-destination 172.18.0.2:80",
			true},
		{"DOCKER", "! -i " + bridge + " -p tcp --dport 8081 -j DNAT --to-destination 172.18.0.9:80",
			false},
		{"DOCKER", "-d 172.18.0.9/32 ! -i " + bridge + " -o " + bridge +
			" -p tcp --dport 80 -j ACCEPT", false},
		{"DOCKER", "-s 172.18.0.3/32 -d 172.18.0.2/32 -p tcp --dport 80 -j ACCEPT", true},
		{"FORWARD", "-i " + bridge + " -j DROP", true},
		{"FORWARD", "-i br-another -j DROP", false},
		{"FORWARD", "-j DOCKER-USER", false},
		{"FORWARD", "-o " + bridge + " -m conntrack --ctstate ESTABLISHED -j ACCEPT", true},
		{"PREROUTING", "-d 172.18.0.9/32 ! -i " + bridge + " -j DROP", false},
		{"filter-forward-in__" + bridge, "-d 172.18.0.2/32 -p tcp --dport 5201 -j ACCEPT", true},
		{"filter-forward-in__" + bridge, "-d 172.18.0.9/32 -p tcp --dport 5201 -j ACCEPT", false},
		{"filter-forward-in__" + bridge, "-j DROP", true},
		{"filter-forward-in__br-another", "-j DROP", false},
	} {
		if got := o.about(firewall.Chain{Name: c.chain}, firewall.ParseRule(strings.Fields(c.words))); got != c.want {
			t.Errorf("%s %s: %v", c.chain, c.words, got)
		}
	}
	drop := []firewall.Chain{{V4: true, Table: "filter", Name: "FORWARD", Drop: true},
		{V6: true, Table: "filter", Name: "FORWARD", Drop: true},
		{V4: true, Table: "raw", Name: "PREROUTING"}}
	want := []path.Setting{{Where: thisMachine, Of: "policy of chain filter FORWARD",
		Value: "drop"}}
	if got := o.of(drop); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestBesideInspect(t *testing.T) {
	daemon(t)
	b := &Docker{}
	defer b.Close()
	ctx := context.Background()
	built := func(s path.Spec) *path.Path {
		p, err := b.Build(ctx, s)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	find := func(p *path.Path, before []path.Setting) []sample.Difference {
		now, err := p.Inspect()
		if err != nil {
			t.Fatal(err)
		}
		links := func(d sample.Difference) bool { // other tests attach programs meanwhile
			return d.What == "BPF links of the machine"
		}
		return slices.DeleteFunc(path.Differences(before, now), links)
	}
	onDefault := path.Spec{Mode: mode.BridgeDefault, From: mode.FromHost, To: mode.ToContainer}
	for _, spec := range []path.Spec{onDefault,
		{Mode: mode.Bridge, From: mode.FromContainer, To: mode.ToContainer}} {
		t.Run(string(spec.Mode), func(t *testing.T) {
			p := built(spec)
			defer p.Close()
			before, err := p.Inspect()
			if err != nil {
				t.Fatal(err)
			}
			others := []*path.Path{built(onDefault),
				built(path.Spec{Mode: mode.PublishProxy, From: mode.FromHost, To: mode.ToLoopback}),
				built(path.Spec{Mode: mode.Bridge, From: mode.FromHost, To: mode.ToContainer})}
			if d := find(p, before); len(d) > 0 {
				t.Errorf("while others are there: %+v", d)
			}
			for _, o := range others {
				if err := o.Close(); err != nil {
					t.Error(err)
				}
			}
			if d := find(p, before); len(d) > 0 {
				t.Errorf("when they have gone: %+v", d)
			}
			i := slices.IndexFunc(before, func(s path.Setting) bool {
				return s.Where == thisMachine && s.What == "" && s.Value == "bridge"
			})
			if i < 0 {
				t.Fatalf("no bridge among %+v", before)
			}
			bridge := before[i].Of
			for _, c := range []struct{ do, undo, want string }{
				{"tc qdisc add dev " + bridge + " root tbf rate 200mbit burst 32kb latency 50ms",
					"tc qdisc del dev " + bridge + " root; ip link set " + bridge + " txqueuelen 0",
					"queueing discipline of " + bridge},
				{"ip link set " + bridge + " mtu 600", "ip link set " + bridge + " mtu 1500",
					"MTU of " + bridge},
				{
					"nft add table ip x; nft add chain ip x y '{ type filter hook forward " +
						"priority 0; }'; nft add rule ip x y iifname " + bridge + " drop",
					"nft delete table ip x",
					"rule x y -i " + bridge},
				{
					"nft add table netdev x; nft add chain netdev x y '{ type filter hook " +
						"ingress device " + bridge + " priority 0; }'", "nft delete table netdev x",
					"chain netdev x y"},
			} {
				shell(t, c.do)
				if d := find(p, before); !slices.ContainsFunc(d, func(d sample.Difference) bool {
					return strings.HasPrefix(d.What, c.want)
				}) {
					t.Errorf("%s: found %+v", c.do, d)
				}
				shell(t, c.undo)
				counted := func(d sample.Difference) bool {
					return strings.HasPrefix(d.What, "number of changes to ")
				}
				if d := slices.DeleteFunc(find(p, before), counted); len(d) > 0 {
					t.Errorf("%s: %+v", c.undo, d)
				}
			}
		})
	}
}

func shell(t *testing.T, command string) {
	t.Helper()
	if out, err := exec.Command("sh", "-ec", command).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
}
