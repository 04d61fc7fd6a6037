package mode

var publish = Mode{
	Name:      Publish,
	Summary:   "a published port by docker-proxy or NAT, as the engine decides for each client and address",
	Docker:    "-p PORT:PORT --network NAME",
	Short:     "-p",
	Caveat:    publishing,
	PerPort:   true,
	Routes:    published,
	Otherwise: withoutProxy,
	Decides:   byProxyAndFamily,
	Podman:    rewrittenTwice,
	Rungs: []Rung{
		{From: FromHost, To: ToAddress, Below: Bridge,
			Part: "NAT of a port published at the machine's own address"},
		{From: FromContainer, To: ToAddress, Below: Bridge,
			Part: "docker-proxy between container and published port"},
		{From: FromRemote, To: ToAddress, Below: PublishDefault, Part: dnsRules, Unseen: true},
		{From: FromRemoteContainer, To: ToAddress, Below: PublishDefault, Part: dnsRules,
			Unseen: true},
	},
}

var publishDefault = Mode{
	Name:      PublishDefault,
	Summary:   "publish, for a container on the default bridge",
	Docker:    "-p PORT:PORT, no --network (the default bridge)",
	Short:     "-p (docker0)",
	Caveat:    publishing,
	PerPort:   true,
	Routes:    published,
	Otherwise: withoutProxy,
	Decides:   byProxyAndFamily,
	Podman:    rewrittenTwice,
	Rungs: []Rung{
		{From: FromHost, To: ToAddress, Below: BridgeDefault,
			Part: "NAT of a port published at the machine's own address"},
		{From: FromContainer, To: ToAddress, Below: BridgeDefault,
			Part: "docker-proxy between container and published port"},
		{From: FromRemote, To: ToAddress, Below: Routed,
			Part: "NAT of a published port instead of a route, and no DNS server's rules"},
		{From: FromRemoteContainer, To: ToAddress, Below: Routed,
			Part: "NAT on both machines instead of routes, and no DNS server's rules for the server"},
	},
}

var publishNAT = Mode{
	Name:    PublishNAT,
	Summary: "a published port, rewritten by the kernel's NAT",
	Docker:  `-p PORT:PORT with "userland-proxy": false`,
	Short:   "-p (NAT)",
	Usual:   true,
	PerPort: true,
	Routes: bothFamilies([]Route{
		{FromHost, ToLoopback, []HopKind{HopDNAT, HopSNAT, HopBridge, HopVeth}},
		{FromHost, ToAddress, []HopKind{HopDNAT, HopSNAT, HopBridge, HopVeth}},
		{FromContainer, ToAddress, []HopKind{HopVeth, HopDNAT, HopBridge, HopVeth}},
		{FromRemote, ToAddress, []HopKind{HopWire, HopDNAT, HopBridge, HopVeth}},
		{FromRemoteContainer, ToAddress, []HopKind{
			HopVeth, HopBridge, HopSNAT, HopWire, HopDNAT, HopBridge, HopVeth}},
	}),
	Otherwise: []Route{{FromHost, ToAddress, []HopKind{HopDNAT, HopBridge, HopVeth}}},
	Decides:   byProxy + ", and from a container whether the engine is Podman",
	Podman:    rewrittenTwice,
	Rungs: []Rung{
		{From: FromHost, To: ToLoopback, Below: Bridge,
			Part: "NAT of a published port instead of the container's address"},
		{From: FromContainer, To: ToAddress, Below: Bridge,
			Part: "NAT of a published port, applied to bridged frames (br_netfilter)"},
		{From: FromRemote, To: ToAddress, Below: Routed,
			Part: "NAT of a published port instead of a route to the container's address"},
		{From: FromRemoteContainer, To: ToAddress, Below: Routed,
			Part: "NAT on both machines instead of routes to the containers' addresses"},
	},
}

var publishProxy = Mode{
	Name:    PublishProxy,
	Summary: "a published port, relayed by the docker-proxy process",
	Docker:  `-p PORT:PORT (default "userland-proxy": true)`,
	Short:   "-p (proxy)",
	Caveat:  "the server sees the bridge's address, not the client's",
	Usual:   true,
	PerPort: true,
	Routes: []Route{
		{FromHost, ToLoopback, []HopKind{HopLoopback, HopProxy, HopBridge, HopVeth}},
		{FromHost, ToLoopback6, []HopKind{HopLoopback, HopProxy, HopBridge, HopVeth}},
		{FromContainer, ToAddress, []HopKind{HopVeth, HopBridge, HopProxy, HopBridge, HopVeth}},
		{FromRemote, ToAddress, []HopKind{HopWire, HopProxy, HopBridge, HopVeth}},
		{FromHost, ToAddress6, []HopKind{HopLoopback, HopProxy, HopBridge, HopVeth}},
		{FromContainer, ToAddress6, []HopKind{
			HopVeth, HopBridge, HopProxy, HopBridge, HopVeth}},
		{FromRemote, ToAddress6, []HopKind{HopWire, HopProxy, HopBridge, HopVeth}},
	},
	Rungs: []Rung{
		{From: FromHost, To: ToLoopback, Below: PublishNAT, Part: proxyForNAT},
		{From: FromContainer, To: ToAddress, Below: PublishNAT, Part: proxyForNAT},
		{From: FromRemote, To: ToAddress, Below: PublishNAT,
			Part: proxyForNAT + ` and all rules ("iptables": false)`},
	},
}

var fast = Mode{
	Name:    Fast,
	Summary: "a published port on a loopback address, where eBPF redirects local clients past docker-proxy",
	Docker:  "-p and toll fast on PORT",
	Short:   "-p (toll fast)",
	PerPort: true,
	TCPOnly: true,
	Routes: []Route{
		{FromHost, ToLoopback, []HopKind{HopBridge, HopVeth}},
		{FromHost, ToLoopback6, []HopKind{HopBridge, HopVeth}},
	},
	Rungs: []Rung{
		{From: FromHost, To: ToLoopback, Below: Bridge,
			Part:   "a published address that is rewritten when the client connects",
			Unseen: true},
	},
}

var fastLinks = Mode{
	Name:    FastLinks,
	Summary: "fast, with larger packets on the bridge and the host's ends of containers' links (BIG TCP)",
	Docker:  "-p and toll fast on PORT --parts connect,links",
	Short:   "-p (fast+links)",
	PerPort: true,
	TCPOnly: true,
	Routes: []Route{
		{FromHost, ToLoopback, []HopKind{HopBridge, HopVeth}},
		{FromHost, ToLoopback6, []HopKind{HopBridge, HopVeth}},
	},
	Rungs: []Rung{
		{From: FromHost, To: ToLoopback, Below: Fast,
			Part: "larger packets on the bridge and the host's ends of containers' links (BIG TCP)", Unseen: true},
	},
}

var publishIngress = Mode{
	Name:    PublishIngress,
	Summary: "a port of Swarm's routing mesh: any node takes it, IPVS chooses the task",
	Docker:  "--publish mode=ingress (Swarm)",
	Short:   "-p (ingress)",
	Needs:   aSwarm,
	No6:     "Swarm's routing mesh is over IPv4 only",
	Caveat:  "the server sees the mesh's address, not the client's",
	PerPort: true,
	Rare:    true,
	Routes: []Route{
		{FromHost, ToAddress, []HopKind{HopDNAT, HopSNAT, HopBridge, HopIPVS, HopBridge,
			HopVeth}},
		{FromContainer, ToAddress, []HopKind{
			HopVeth, HopBridge, HopDNAT, HopSNAT, HopBridge, HopIPVS, HopBridge, HopVeth}},
		{FromRemote, ToAddress, []HopKind{HopWire, HopDNAT, HopBridge, HopIPVS, HopBridge,
			HopVeth}},
		{FromRemoteContainer, ToAddress, []HopKind{
			HopVeth, HopBridge, HopSNAT, HopWire, HopDNAT, HopBridge, HopIPVS, HopBridge,
			HopVeth}},
	},
	Rungs: []Rung{
		{From: FromHost, To: ToAddress, Below: PublishNAT, Part: ingressMesh},
		{From: FromContainer, To: ToAddress, Below: PublishNAT,
			Part: "NAT of the client's address, too, and " + ingressMesh},
		{From: FromRemote, To: ToAddress, Below: PublishNAT, Part: ingressMesh},
		{From: FromRemoteContainer, To: ToAddress, Below: PublishNAT, Part: ingressMesh},
	},
}

// published lists the routes of an engine with default settings.
var published = []Route{
	{FromHost, ToLoopback, []HopKind{HopLoopback, HopProxy, HopBridge, HopVeth}},
	{FromHost, ToLoopback6, []HopKind{HopLoopback, HopProxy, HopBridge, HopVeth}},
	{FromHost, ToAddress, []HopKind{HopDNAT, HopBridge, HopVeth}},
	{FromContainer, ToAddress, []HopKind{HopVeth, HopBridge, HopProxy, HopBridge, HopVeth}},
	{FromRemote, ToAddress, []HopKind{HopWire, HopDNAT, HopBridge, HopVeth}},
	{FromRemoteContainer, ToAddress, []HopKind{
		HopVeth, HopBridge, HopSNAT, HopWire, HopDNAT, HopBridge, HopVeth}},
	{FromHost, ToAddress6, []HopKind{HopLoopback, HopProxy, HopBridge, HopVeth}},
	{FromRemote, ToAddress6, []HopKind{HopWire, HopProxy, HopBridge, HopVeth}},
	{FromContainer, ToAddress6, []HopKind{HopVeth, HopBridge, HopProxy, HopBridge, HopVeth}},
}

// withoutProxy lists the routes that differ if the port has no docker-proxy, or if networks have
// IPv6 although they were made without requesting it.
var withoutProxy = []Route{
	{FromHost, ToLoopback, []HopKind{HopDNAT, HopSNAT, HopBridge, HopVeth}},
	{FromHost, ToAddress, []HopKind{HopDNAT, HopSNAT, HopBridge, HopVeth}},
	{FromContainer, ToAddress, []HopKind{HopVeth, HopDNAT, HopBridge, HopVeth}},
	{FromHost, ToAddress6, []HopKind{HopDNAT, HopBridge, HopVeth}},
	{FromHost, ToAddress6, []HopKind{HopDNAT, HopSNAT, HopBridge, HopVeth}},
	{FromContainer, ToAddress6, []HopKind{HopVeth, HopDNAT, HopBridge, HopVeth}},
}

// rewrittenTwice lists the routes through the rules of Podman's netavark, which also rewrite the
// source address of packets from the server's own network. With br_netfilter, the bridge switches
// the frames.
var rewrittenTwice = []Route{
	{FromContainer, ToAddress, []HopKind{HopVeth, HopDNAT, HopSNAT, HopBridge, HopVeth}},
	{FromContainer, ToAddress, []HopKind{HopVeth, HopBridge, HopDNAT, HopSNAT, HopBridge, HopVeth}},
	{FromContainer, ToAddress6, []HopKind{HopVeth, HopDNAT, HopSNAT, HopBridge, HopVeth}},
	{FromContainer, ToAddress6, []HopKind{HopVeth, HopBridge, HopDNAT, HopSNAT, HopBridge, HopVeth}},
	{FromHost, ToAddress6, []HopKind{HopDNAT, HopBridge, HopVeth}},
}

// What decides between the routes of published ports.
const (
	byProxy          = `"userland-proxy" in daemon.json`
	byProxyAndFamily = byProxy + ", and for address6 whether the container's network has IPv6"
)

const publishing = "through docker-proxy the server sees the bridge's address, not the client's"
