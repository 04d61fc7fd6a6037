package lab

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

func output(t *testing.T, ns *space, name string, args ...string) string {
	t.Helper()
	var b strings.Builder
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = &b, os.Stderr
	if err := ns.Start(cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	return b.String()
}

type claim struct {
	where   string // "A", "B", "server", "client", "overlay on machine A"
	command string
	says    []string // each on one line, in any order; words may have others between them
	never   []string
}

func build(t *testing.T, l *Lab, spec path.Spec) *path.Path {
	t.Helper()
	p, err := l.Build(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func skipMissing(t *testing.T, l *Lab, spec path.Spec) {
	t.Helper()
	if err := l.Check(context.Background(), spec); err != nil {
		t.Skip(err)
	}
}

var truths = map[mode.Name][]claim{
	mode.Native: {
		{where: "A", command: "nft list ruleset", never: []string{"table"}},
		{where: "A", command: "ip -o route", says: []string{"198.18.0.0/24 dev eth0"}},
	},
	mode.Host:   docker,
	mode.Shared: append(docker, resolved("server")),
	mode.Bridge: append(docker, resolved("server")),
	mode.PublishNAT: append(docker, resolved("server"),
		claim{where: "A", command: "sysctl net.ipv4.conf.br-toll.route_localnet",
			says: []string{"= 1"}}),
	mode.PublishProxy: append(docker, resolved("server"),
		claim{where: "A", command: "sysctl net.ipv4.conf.br-toll.route_localnet",
			says: []string{"= 0"}}),
	mode.Publish: append(docker, resolved("server"), publishedTo("172.30.0.2"),
		claim{where: "A", command: "sysctl net.ipv4.conf.br-toll.route_localnet",
			says: []string{"= 0"}}),
	mode.PublishDefault: {
		publishedTo("172.17.0.2"),
		{where: "A", command: "bridge link", says: []string{"veth-server master docker0"}},
		{where: "A", command: "nft list table ip raw", says: []string{"ip daddr 172.17.0.2 drop"}},
		{where: "A", command: "ip -o link", never: []string{"br-toll"}},
		{where: "server", command: "nft list ruleset", never: []string{"table"}},
	},
	mode.Fast: append(docker, resolved("server"),
		claim{where: "A", command: "sysctl net.ipv4.conf.br-toll.route_localnet",
			says: []string{"= 0"}}),
	mode.FastLinks: append(docker, resolved("server"),
		claim{where: "A", command: "sysctl net.ipv4.conf.br-toll.route_localnet",
			says: []string{"= 0"}},
		claim{where: "A", command: "ip -d link show dev br-toll",
			says: []string{"gso_max_size 180000"}},
		claim{where: "A", command: "ip -d link show dev veth-server",
			says: []string{"gso_max_size 180000"}},
		claim{where: "server", command: "ip -d link show dev eth0",
			says: []string{"gso_max_size 65536"}}),
	mode.Routed: {
		{where: "A", command: "ip -o route", says: []string{"172.30.0.0/16 dev br-toll"}},
		{where: "A", command: "bridge link", says: []string{"veth-server master br-toll"}},
		{where: "A", command: "nft list table ip nat", never: []string{"172.30", "dnat"}},
		resolved("server"),
		{where: "server", command: "ip -o route", says: []string{"default via 172.30.0.1"}},
	},
	mode.BridgeDefault: {
		{where: "A", command: "ip -o route", says: []string{"172.17.0.0/16 dev docker0"}},
		{where: "A", command: "bridge link", says: []string{"veth-server master docker0"}},
		{where: "A", command: "nft list table ip raw", says: []string{"ip daddr 172.17.0.2 drop"}},
		{where: "server", command: "nft list ruleset", never: []string{"table"}},
	},
	mode.NATAlias: {
		{where: "A", command: "ip -d -o link", says: []string{"virtual0@eth0 macvlan mode bridge"}},
		{where: "A", command: "ip -o addr", says: []string{"virtual0 198.18.0.100/24"}},
		{where: "A", command: "nft list table ip nat",
			says: []string{"ip daddr 198.18.0.100 jump BRIDGE-VIRTUAL0", "dnat to 172.17.0.2",
				"ip saddr 172.17.0.2 snat to 198.18.0.100"}},
		{where: "server", command: "nft list ruleset", never: []string{"table"}},
	},
	mode.Link: {
		{where: "server", command: "nft list ruleset", never: []string{"table"}},
		{where: "A", command: "bridge link", says: []string{
			"veth-server master docker0", "veth-client master docker0"}},
		{where: "A", command: "sysctl net.bridge.bridge-nf-call-iptables", says: []string{"= 1"}},
	},
	mode.Pipework: {
		{where: "server", command: "nft list ruleset", never: []string{"table"}},
		{where: "A", command: "bridge link", says: []string{
			"eth0 master br1", "veth-server master br1"}},
		{where: "A", command: "ip -o addr", says: []string{"br1 198.18.0.1/24"},
			never: []string{"eth0    inet 198"}},
		{where: "server", command: "ip -o addr", says: []string{"eth0 198.18.0.10/24"}},
	},
	mode.MacvlanBridge:   macvlanTruths("bridge"),
	mode.MacvlanPrivate:  macvlanTruths("private"),
	mode.MacvlanVEPA:     macvlanTruths("vepa"),
	mode.MacvlanPassthru: macvlanTruths("passthru"),
	mode.IPvlanL2: {
		{where: "server", command: "ip -d -o link", says: []string{"eth0 ipvlan mode l2"}},
		{where: "server", command: "ip -o addr", says: []string{"eth0 198.18.0.10/24"}},
	},
	mode.IPvlanL3:  ipvlanRouted("l3"),
	mode.IPvlanL3S: ipvlanRouted("l3s"),
	mode.OVS: {
		{where: "A", command: "ip -o addr", says: []string{"br1 198.18.0.1/24"},
			never: []string{"eth0    inet 198"}},
		{where: "server", command: "ip -o addr", says: []string{"eth0 198.18.0.10/24"}},
		{where: "A", command: "ip -d -o link", says: []string{"veth-server promiscuity 1"},
			never: []string{"bridge_slave"}},
	},
	mode.PublishIngress: {
		{where: "A", command: "bridge link", says: []string{"veth-gw master docker_gwbridge"}},
		{where: "A", command: "sysctl net.ipv4.conf.docker_gwbridge.route_localnet",
			says: []string{"= 1"}},
		{where: "A", command: "nft list chain ip nat DOCKER-INGRESS",
			says: []string{"dport 8080 dnat to 172.18.0.2:8080"}},
		{where: "ingress_sbox", command: "ip -o addr",
			says: []string{"eth0 10.0.0.2/24", "eth0 10.0.0.3/32", "eth1 172.18.0.2/16"}},
		{where: "ingress_sbox", command: "ip -o route",
			says: []string{"default via 172.18.0.1 dev eth1"}},
		{where: "ingress_sbox", command: "cat /proc/self/net/ip_vs",
			says: []string{"FWM 00000100 rr", "-> 0A000004:0000 Masq 1"}},
		{where: "ingress_sbox", command: "sysctl net.ipv4.vs.conntrack", says: []string{"= 1"}},
		{where: "ingress_sbox", command: "nft list ruleset",
			says: []string{"dport 8080 mark set 0x00000100",
				"ip daddr 10.0.0.3 mark set 0x00000100",
				// nft shows an xtables match only where iptables is installed
				"ip daddr 10.0.0.0/24 snat to 10.0.0.2"}},
		{where: "overlay on machine A", command: "bridge link",
			says: []string{"vxlan0 master br0", "veth0 mtu 1450 master br0",
				"veth-server mtu 1450 master br0"}},
		{where: "overlay on machine A", command: "ip -d -o link",
			says: []string{"vxlan0 vxlan id 4096 dstport 4789"}},
		{where: "server", command: "ip -o addr", says: []string{"eth0 10.0.0.4/24"}},
		{where: "ingress_sbox", command: "nft list ruleset", never: []string{"127.0.0.11"}},
		resolved("server"),
		{where: "server", command: "nft list ruleset",
			says: []string{"ip daddr 10.0.0.4 dport 8080 redirect to :5201"}},
	},
	mode.Overlay:          overlayTruths("1450"),
	mode.OverlayEncrypted: overlayTruths("1424"),
	mode.Pod: {
		{where: "A", command: "nft list ruleset", never: []string{"table"}},
		{where: "A", command: "bridge -d link",
			says: []string{"veth-server master cni0", "hairpin on"}},
		{where: "A", command: "ip -o addr show dev cni0", says: []string{"10.244.1.1/24"}},
		{where: "A", command: "sysctl net.ipv4.ip_forward", says: []string{"= 1"}},
		{where: "server", command: "ip -o route",
			says: []string{"default via 10.244.1.1 dev eth0"}},
		{where: "server", command: "nft list ruleset", never: []string{"table"}},
	},
	mode.Pasta:           tapTruths("server", "eth0", "65520", "198.18.0.1/24", "198.18.0.2"),
	mode.Slirp4netns:     tapTruths("server", "tap0", "65520", "10.0.2.100/24", "10.0.2.2"),
	mode.GvisorTapVsock:  tapTruths("server", "tap0", "1500", "10.0.2.100/24", "10.0.2.1"),
	mode.RootlessPublish: rootlessPublished("127.0.0.1", "0"),
	mode.RootlessPort: append(podmanNetworks(), claim{where: engineName,
		command: "bridge link", says: []string{"veth-server master podman1"}}),
	mode.RootlessPublishNAT: rootlessPublished("127.0.0.1", "1"),
	mode.RootlessPublishTap: rootlessPublished("10.0.2.100", "0"),
	mode.Netkit: {
		{where: "A", command: "ip -d -o link", says: []string{"nk-server NOARP netkit"}},
		{where: "A", command: "ip -o route", says: []string{"172.30.0.2 dev nk-server"}},
		{where: "server", command: "ip -o link", says: []string{"eth0 NOARP"}},
	},
}

func tapTruths(end, device, mtu, addr, gateway string) []claim {
	return []claim{
		{where: "A", command: "nft list ruleset", never: []string{"table"}},
		{where: "A", command: "ip -o route", says: []string{"default via 198.18.0.2 dev eth0"}},
		{where: end, command: "ip -d -o link show dev " + device,
			says: []string{"mtu " + mtu + " tun type tap"}},
		{where: end, command: "ip -o addr", says: []string{device + " " + addr}},
		{where: end, command: "ip -o route",
			says: []string{"default via " + gateway + " dev " + device}},
	}
}

var docker = []claim{
	{where: "A", command: "ip -o link", says: []string{"br-toll:", "docker0:", "eth0@"}},
	{where: "A", command: "ip -o route", says: []string{
		"172.30.0.0/16 dev br-toll", "198.18.0.0/24 dev eth0"}},
	{where: "A", command: "sysctl net.ipv4.ip_forward", says: []string{"= 1"}},
}

// rootlessDocker is from rootless Docker Engine 28.5.2 with RootlessKit 3.3.0.
var rootlessDocker = []claim{
	{where: "A", command: "nft list ruleset", never: []string{"table"}},
	{where: "A", command: "ip -o link", never: []string{"docker0", "br-toll"}},
	{where: engineName, command: "ip -d -o link show dev tap0",
		says: []string{"mtu 65520 tun type tap"}},
	{where: engineName, command: "ip -o link show dev br-toll", says: []string{"mtu 1500"}},
	{where: engineName, command: "ip -o route", says: []string{
		"default via 10.0.2.2 dev tap0", "172.30.0.0/16 dev br-toll"}},
}

// podmanNetworks is from netavark 1.14.0.
func podmanNetworks() []claim {
	return []claim{
		{where: "A", command: "nft list ruleset", never: []string{"table"}},
		{where: "A", command: "ip -o link", never: []string{"podman1"}},
		{where: engineName, command: "ip -d -o link show dev eth0",
			says: []string{"mtu 65520 tun type tap"}},
		{where: engineName, command: "ip -o route", says: []string{
			"default via 198.18.0.2 dev eth0", "10.89.0.0/24 dev podman1"}},
		{where: engineName, command: "nft list ruleset", says: []string{"ct state invalid drop",
			"ip daddr 10.89.0.0/24 ct state established,related accept",
			"ip saddr 10.89.0.0/24 accept", "ip saddr 10.89.0.0/24 jump NETAVARK",
			"ip daddr 10.89.0.0/24 accept", "ip daddr != 224.0.0.0/4 masquerade"}},
		{where: engineName, command: "sysctl net.ipv4.conf.podman1.route_localnet",
			says: []string{"= 1"}},
	}
}

func rootlessPublished(at, routeLocalnet string) []claim {
	return slices.Concat(rootlessDocker, []claim{resolved("server"),
		{where: engineName, command: "bridge link",
			says: []string{"veth-server master br-toll"}},
		{where: engineName, command: "nft list table ip nat",
			says: []string{"ip daddr " + at + " dport 8080 dnat to 172.30.0.2:5201"}},
		{where: engineName, command: "sysctl net.ipv4.conf.br-toll.route_localnet",
			says: []string{"= " + routeLocalnet}}})
}

var rootlessLeaves = append(rootlessDocker, resolved("client"), noRouteBack,
	claim{where: engineName, command: "nft list chain ip nat POSTROUTING",
		says: []string{`oifname != "br-toll" ip saddr 172.30.0.0/16 masquerade`}})

func publishedTo(container string) claim {
	return claim{where: "A", command: "nft list table ip nat",
		says: []string{"dport 8080 dnat to " + container + ":5201"}}
}

func resolved(where string) claim {
	return claim{where: where, command: "nft list ruleset", says: []string{
		"type nat hook output priority -100", "ip daddr 127.0.0.11 jump DOCKER_OUTPUT",
		"ip daddr 127.0.0.11 tcp dport 53 dnat to 127.0.0.11:",
		"ip daddr 127.0.0.11 udp dport 53 dnat to 127.0.0.11:",
		"type nat hook postrouting priority srcnat", "ip daddr 127.0.0.11 jump DOCKER_POSTROUTING",
		"ip saddr 127.0.0.11 tcp sport snat to :53", "ip saddr 127.0.0.11 udp sport snat to :53"}}
}

func macvlanTruths(kind string) []claim {
	return []claim{
		resolved("server"),
		{where: "server", command: "ip -d -o link", says: []string{"eth0 macvlan mode " + kind}},
		{where: "server", command: "ip -o addr", says: []string{"eth0 198.18.0.10/24"}},
		{where: "A", command: "ip -d -o link", says: []string{"eth0 promiscuity 1"}},
	}
}

func ipvlanRouted(kind string) []claim {
	return []claim{
		resolved("server"),
		{where: "server", command: "ip -d -o link", says: []string{"eth0 ipvlan mode " + kind}},
		{where: "server", command: "ip -o route", says: []string{"default dev eth0 scope link"}},
		{where: "B", command: "ip -o route", says: []string{"172.30.0.0/16 via 198.18.0.1"}},
	}
}

func overlayTruths(mtu string) []claim {
	const a = "overlay on machine A"
	return []claim{
		{where: a, command: "ip -d -o link", says: []string{
			"vxlan0 mtu " + mtu +
				" master br0 vxlan id 4097 dstport 4789 proxy l2miss l3miss udpcsum",
			"veth-server mtu " + mtu + " master br0"}},
		{where: a, command: "ip -o addr", says: []string{"br0 172.30.0.1/16"}},
		{where: "A", command: "ip -o route", never: []string{"172.30"}},
		resolved("server"),
		{where: "server", command: "ip -o link",
			says: []string{"eth0 mtu " + mtu + " 02:42:ac:1e:00:02"}},
	}
}

var truthsFrom = map[mode.Name]map[mode.Placement][]claim{
	mode.Bridge: {
		mode.FromContainer: {{where: "A", command: "bridge link",
			says: []string{"veth-server master br-toll", "veth-client master br-toll"}},
			resolved("client")},
	},
	mode.BridgeDefault: {
		mode.FromContainer: {{where: "A", command: "bridge link",
			says: []string{"veth-server master docker0", "veth-client master docker0"}}},
	},
	mode.PublishNAT: {
		mode.FromRemoteContainer: {{where: "B", command: "nft list table ip nat",
			says: []string{"172.29.0.0/16 masquerade"}}, resolved("client")},
	},
	mode.Routed: {
		mode.FromContainer: {{where: "A", command: "bridge link",
			says: []string{"veth-client master br-toll2"}}},
		mode.FromRemote: {{where: "B", command: "ip -o route",
			says: []string{"172.30.0.0/16 via 198.18.0.1"}}},
		mode.FromRemoteContainer: {
			{where: "B", command: "ip -o route", says: []string{"172.30.0.0/16 via 198.18.0.1"}},
			{where: "A", command: "ip -o route", says: []string{"172.29.0.0/16 via 198.18.0.2"}},
		},
	},
	mode.Pod: {
		mode.FromContainer: {{where: "A", command: "bridge link",
			says: []string{"veth-client master cni0"}}},
		mode.FromRemote: {{where: "B", command: "ip -o route",
			says: []string{"10.244.1.0/24 via 198.18.0.1"}}},
		mode.FromRemoteContainer: {
			{where: "B", command: "bridge link", says: []string{"veth-client master cni0"}},
			{where: "B", command: "ip -o route", says: []string{"10.244.1.0/24 via 198.18.0.1"}},
			{where: "A", command: "ip -o route", says: []string{"10.244.2.0/24 via 198.18.0.2"}},
		},
	},
	mode.MacvlanVEPA: {
		mode.FromContainer: {{where: "B", command: "bridge -d link", says: []string{"hairpin on"}}},
	},
	mode.Overlay: {mode.FromRemoteContainer: overlayPeers},
	mode.OverlayEncrypted: {mode.FromRemoteContainer: append([]claim{
		{where: "A", command: "ip xfrm state",
			says: []string{"proto esp mode transport", "aead rfc4106(gcm(aes)) 64"}},
		{where: "A", command: "ip xfrm policy",
			says: []string{"src 198.18.0.1/32 dst 198.18.0.2/32 dport 4789", "dir out",
				"mark 0xd0c4e3"}},
		{where: "A", command: "nft list ruleset",
			says: []string{"udp dport 4789 0x1001 mark set 0x00d0c4e3",
				"meta missing udp dport 4789 0x1001 drop"}},
	}, overlayPeers...)},
}

// truthsOutside are of paths to machine B, which knows A's containers only where no rule rewrites
// their addresses.
var truthsOutside = map[mode.Name][]claim{
	mode.Native: {
		{where: "A", command: "nft list ruleset", never: []string{"table"}},
		{where: "B", command: "ip -o addr", says: []string{"eth0 198.18.0.2/24"}},
	},
	mode.Host: docker,
	mode.Bridge: append(docker,
		claim{where: "A", command: "bridge link", says: []string{"veth-client master br-toll"}},
		claim{where: "A", command: "nft list chain ip nat POSTROUTING",
			says: []string{`oifname != "br-toll" ip saddr 172.30.0.0/16 masquerade`}},
		claim{where: "client", command: "ip -o route",
			says: []string{"default via 172.30.0.1 dev eth0"}},
		noRouteBack, resolved("client")),
	mode.BridgeDefault: {
		{where: "A", command: "bridge link", says: []string{"veth-client master docker0"}},
		{where: "A", command: "nft list chain ip nat POSTROUTING",
			says: []string{`oifname != "docker0" ip saddr 172.17.0.0/16 masquerade`}},
		noRouteBack,
		{where: "client", command: "nft list ruleset", never: []string{"table"}},
	},
	mode.Routed: {
		{where: "A", command: "nft list table ip nat", never: []string{"172.30.0.0/16 masq"}},
		{where: "A", command: "bridge link", says: []string{"veth-client master br-toll"}},
		{where: "B", command: "ip -o route", says: []string{"172.30.0.0/16 via 198.18.0.1"}},
	},
	mode.Pipework: {
		{where: "A", command: "bridge link", says: []string{
			"eth0 master br1", "veth-client master br1"}},
		lanClient,
	},
	mode.Pod: {
		{where: "A", command: "nft list ruleset", never: []string{"table"}},
		{where: "A", command: "bridge link", says: []string{"veth-client master cni0"}},
		{where: "B", command: "ip -o route", says: []string{"10.244.1.0/24 via 198.18.0.1"}},
		{where: "client", command: "ip -o route",
			says: []string{"default via 10.244.1.1 dev eth0"}},
	},
	mode.MacvlanBridge:   macvlanOutside("bridge"),
	mode.MacvlanPrivate:  macvlanOutside("private"),
	mode.MacvlanVEPA:     macvlanOutside("vepa"),
	mode.MacvlanPassthru: macvlanOutside("passthru"),
	mode.IPvlanL2: {lanClient, {where: "client", command: "ip -d -o link",
		says: []string{"eth0 ipvlan mode l2"}}},
	mode.IPvlanL3:        ipvlanOutside("l3"),
	mode.IPvlanL3S:       ipvlanOutside("l3s"),
	mode.Pasta:           tapTruths("client", "eth0", "65520", "198.18.0.1/24", "198.18.0.2"),
	mode.Slirp4netns:     tapTruths("client", "tap0", "65520", "10.0.2.100/24", "10.0.2.2"),
	mode.GvisorTapVsock:  tapTruths("client", "tap0", "1500", "10.0.2.100/24", "10.0.2.1"),
	mode.RootlessPublish: rootlessLeaves,
	mode.RootlessPort: append(podmanNetworks(), noRouteBack, claim{where: engineName,
		command: "bridge link", says: []string{"veth-client master podman1"}}),
	mode.RootlessPublishNAT: rootlessLeaves,
	mode.RootlessPublishTap: rootlessLeaves,
	mode.OVS: {lanClient, {where: "A", command: "ip -d -o link",
		says: []string{"veth-client promiscuity 1"}}},
	mode.Overlay: {
		{where: "A", command: "bridge link", says: []string{"gw-client master docker_gwbridge"}},
		{where: "A", command: "nft list chain ip nat POSTROUTING",
			says: []string{`oifname != "docker_gwbridge" ip saddr 172.18.0.0/16 masquerade`}},
		{where: "A", command: "nft list table ip raw", says: []string{"ip daddr 172.18.0.2 drop"}},
		{where: "overlay on machine A", command: "bridge link",
			says: []string{"veth-client mtu 1450 master br0"}},
		{where: "client", command: "ip -o addr",
			says: []string{"eth0 172.30.0.2/16", "eth1 172.18.0.2/16"}},
		{where: "client", command: "ip -o route",
			says: []string{"default via 172.18.0.1 dev eth1"}},
		noRouteBack, resolved("client"),
	},
}

var (
	noRouteBack = claim{where: "B", command: "ip -o route", never: []string{"172."}}
	lanClient   = claim{where: "client", command: "ip -o addr",
		says: []string{"eth0 198.18.0.10/24"}}
)

func macvlanOutside(kind string) []claim {
	return []claim{resolved("client"), lanClient,
		{where: "client", command: "ip -d -o link", says: []string{"eth0 macvlan mode " + kind}},
		{where: "B", command: "bridge link", never: []string{"eth0"}}}
}

func ipvlanOutside(kind string) []claim {
	return []claim{resolved("client"),
		{where: "client", command: "ip -d -o link", says: []string{"eth0 ipvlan mode " + kind}},
		{where: "client", command: "ip -o addr", says: []string{"eth0 172.30.0.2/16"}},
		{where: "B", command: "ip -o route", says: []string{"172.30.0.0/16 via 198.18.0.1"}}}
}

var truthsOver6 = map[mode.Name][]claim{
	mode.Native: {{where: "A", command: "ip -6 -o addr",
		says: []string{"eth0 2001:2:0:18::1/64"}}},
	mode.Host: {{where: "A", command: "nft list table ip6 nat",
		says: []string{"ip6 daddr != ::1 fib daddr type local jump DOCKER"}}},
	mode.Shared: {{where: "server", command: "ip -6 -o addr",
		says: []string{"lo inet6 ::1/128"}}},
	mode.Bridge: network6,
	mode.BridgeDefault: {{where: "A", command: "ip -6 -o addr show dev docker0",
		says: []string{"fd54:6f6c:6c:17::1/64"}},
		{where: "A", command: "nft list table ip6 raw",
			says: []string{"ip6 daddr fd54:6f6c:6c:17::2 drop"}}},
	mode.PublishNAT: append(network6,
		claim{where: "A", command: "nft list chain ip6 nat DOCKER",
			says: []string{"ip6 saddr != fe80::/10 dport 8080 dnat to [fd54:6f6c:6c:30::2]:5201"}}),
	mode.Routed: {
		{where: "A", command: "nft list table ip6 nat", never: []string{"dnat", "masquerade"}},
		{where: "server", command: "ip -6 -o route",
			says: []string{"default via fd54:6f6c:6c:30::1"}},
	},
	mode.Pipework:         append(beside6, onLAN6...),
	mode.OVS:              append(beside6, onLAN6...),
	mode.MacvlanBridge:    append(beside6, lanServer6),
	mode.MacvlanPrivate:   append(beside6, lanServer6),
	mode.MacvlanVEPA:      append(beside6, lanServer6),
	mode.MacvlanPassthru:  append(beside6, lanServer6),
	mode.IPvlanL2:         append(beside6, lanServer6),
	mode.IPvlanL3:         append(beside6, ipvlanRouted6...),
	mode.IPvlanL3S:        append(beside6, ipvlanRouted6...),
	mode.Overlay:          append(beside6, overlay6...),
	mode.OverlayEncrypted: append(beside6, overlay6...),
	mode.Pasta: {{where: "server", command: "ip -6 -o addr show dev eth0 scope global",
		says: []string{"2001:2:0:18::1/64"}, never: []string{"tentative"}},
		{where: "server", command: "ip -6 -o route",
			says: []string{"default via 2001:2:0:18::2 dev eth0"}}},
	mode.Netkit: {
		{where: "A", command: "ip -6 -o route", says: []string{"fd54:6f6c:6c:30::2 dev nk-server"}},
		{where: "A", command: "sysctl net.ipv6.conf.all.forwarding", says: []string{"= 1"}},
		{where: "server", command: "ip -6 -o route", says: []string{"default dev eth0"}},
	},
}

// beside6 is from `ip6tables-save` of Docker Engine 28.5.2 with no IPv6 network: chains that reject
// nothing, and no router.
var beside6 = []claim{
	{where: "A", command: "nft list table ip6 filter",
		says:  []string{"hook forward priority filter; policy accept;", "jump DOCKER-FORWARD"},
		never: []string{"drop"}},
	{where: "A", command: "nft list table ip6 nat",
		says:  []string{"ip6 daddr != ::1 fib daddr type local jump DOCKER"},
		never: []string{"dnat", "masquerade"}},
	{where: "A", command: "sysctl net.ipv6.conf.all.forwarding", says: []string{"= 0"}},
}

var lanServer6 = claim{where: "server", command: "ip -6 -o addr show dev eth0 scope global",
	says: []string{"2001:2:0:18::a/64"}, never: []string{"tentative"}}

var onLAN6 = []claim{
	lanServer6,
	{where: "A", command: "ip -6 -o addr show dev br1 scope global",
		says: []string{"2001:2:0:18::1/64"}, never: []string{"tentative"}},
	{where: "A", command: "ip -6 -o addr show dev eth0", never: []string{"2001:"}},
}

var ipvlanRouted6 = []claim{
	{where: "server", command: "ip -6 -o route", says: []string{"default dev eth0"}},
	{where: "server", command: "ip -6 -o addr show dev eth0",
		says: []string{"fd54:6f6c:6c:30::2/64"}},
	{where: "B", command: "ip -6 -o route",
		says: []string{"fd54:6f6c:6c:30::/64 via 2001:2:0:18::1"}},
}

var overlay6 = []claim{
	{where: "server", command: "ip -6 -o addr show dev eth0 scope global",
		says: []string{"fd54:6f6c:6c:30::2/64"}, never: []string{"tentative"}},
	{where: "A", command: "ip -6 -o route", never: []string{"fd54"}},
}

var network6 = []claim{
	{where: "A", command: "ip -6 -o addr show dev br-toll scope global",
		says: []string{"fd54:6f6c:6c:30::1/64"}, never: []string{"tentative"}},
	{where: "A", command: "sysctl net.ipv6.conf.all.forwarding", says: []string{"= 1"}},
	{where: "A", command: "nft list table ip6 raw",
		says: []string{"ip6 daddr fd54:6f6c:6c:30::2 drop"}},
	{where: "server", command: "ip -6 -o addr show dev eth0 scope global",
		says: []string{"fd54:6f6c:6c:30::2/64"}, never: []string{"tentative"}},
	{where: "server", command: "ip -6 -o route", says: []string{"default via fd54:6f6c:6c:30::1"}},
}

var overlayPeers = []claim{
	{where: "overlay on machine A", command: "bridge fdb show dev vxlan0",
		says: []string{"02:42:ac:1e:00:03 dst 198.18.0.2 self permanent"}},
	{where: "overlay on machine A", command: "ip neigh show nud all",
		says: []string{"172.30.0.3 dev vxlan0 lladdr 02:42:ac:1e:00:03 PERMANENT"}},
	{where: "overlay on machine B", command: "bridge fdb show dev vxlan0",
		says: []string{"02:42:ac:1e:00:02 dst 198.18.0.1 self permanent"}},
}

func truthOf(l *Lab) func(*testing.T, *path.Path) {
	built := map[*path.Path]*site{}
	l.test.built = func(s *site) { built[s.path] = s }
	return func(t *testing.T, p *path.Path) {
		t.Helper()
		s := built[p]
		claims := truths[p.Spec.Mode]
		if p.Spec.To.Outside() {
			claims = truthsOutside[p.Spec.Mode]
		}
		if claims == nil {
			t.Errorf("nothing is known of %s", p.Spec.Mode)
		}
		if !p.Spec.To.Outside() {
			claims = append(claims[:len(claims):len(claims)],
				truthsFrom[p.Spec.Mode][p.Spec.From]...)
			if p.Spec.To.Six() {
				claims = append(claims, truthsOver6[p.Spec.Mode]...)
			}
		}
		for _, c := range claims {
			c.check(t, s)
		}
	}
}

func (s *site) find(where string) *space {
	all := append([]spot{{s.a.ns, "A"}, {s.b.ns, "B"}}, s.more...)
	for _, c := range s.boxes {
		name, _, _ := strings.Cut(c.name, " ")
		all = append(all, spot{c.ns, name})
	}
	for _, at := range all {
		if at.where == where {
			return at.ns
		}
	}
	return nil
}

func (c claim) check(t *testing.T, s *site) {
	t.Helper()
	ns := s.find(c.where)
	if ns == nil {
		t.Errorf("%s has no %s", s.path.Spec, c.where)
		return
	}
	args := strings.Fields(c.command)
	text := output(t, ns, args[0], args[1:]...)
	lines := strings.Split(text, "\n")
	for _, want := range c.says {
		found := false
		for _, l := range lines {
			found = found || inOrder(l, strings.Fields(want))
		}
		if !found {
			t.Errorf("%s: %s: no line says %q:\n%s", c.where, c.command, want, text)
		}
	}
	for _, bad := range c.never {
		if strings.Contains(text, bad) {
			t.Errorf("%s: %s: it says %q:\n%s", c.where, c.command, bad, text)
		}
	}
}

func inOrder(line string, words []string) bool {
	for _, w := range words {
		_, rest, ok := strings.Cut(line, w)
		if !ok {
			return false
		}
		line = rest
	}
	return true
}
