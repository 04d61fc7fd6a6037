package mode

import "slices"

var bridged = bothFamilies([]Route{
	{FromHost, ToContainer, []HopKind{HopBridge, HopVeth}},
	{FromContainer, ToContainer, []HopKind{HopVeth, HopBridge, HopVeth}},
	{FromContainer, ToOutside, []HopKind{HopVeth, HopBridge, HopSNAT, HopWire}},
})

// bothFamilies returns routes over IPv4, then the same over IPv6. NAT has no route from ::1: the
// kernel lets no packet from there leave the machine.
func bothFamilies(routes []Route) []Route {
	out := slices.Clone(routes)
	for _, r := range routes {
		if r.To == ToLoopback && len(r.Hops) > 1 {
			continue
		}
		r.To = r.To.Over6()
		out = append(out, r)
	}
	return out
}

// published has the routes of an engine with its defaults.
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

// withoutProxy are the routes that differ without docker-proxy for the port, or with IPv6 on
// networks made without asking for it.
var withoutProxy = []Route{
	{FromHost, ToLoopback, []HopKind{HopDNAT, HopSNAT, HopBridge, HopVeth}},
	{FromHost, ToAddress, []HopKind{HopDNAT, HopSNAT, HopBridge, HopVeth}},
	{FromContainer, ToAddress, []HopKind{HopVeth, HopDNAT, HopBridge, HopVeth}},
	{FromHost, ToAddress6, []HopKind{HopDNAT, HopBridge, HopVeth}},
	{FromHost, ToAddress6, []HopKind{HopDNAT, HopSNAT, HopBridge, HopVeth}},
	{FromContainer, ToAddress6, []HopKind{HopVeth, HopDNAT, HopBridge, HopVeth}},
}

// rewrittenTwice are the routes by the rules of Podman's netavark, which also rewrite the source of
// what comes from the server's own network. With br_netfilter the frames are switched.
var rewrittenTwice = []Route{
	{FromContainer, ToAddress, []HopKind{HopVeth, HopDNAT, HopSNAT, HopBridge, HopVeth}},
	{FromContainer, ToAddress, []HopKind{HopVeth, HopBridge, HopDNAT, HopSNAT, HopBridge, HopVeth}},
	{FromContainer, ToAddress6, []HopKind{HopVeth, HopDNAT, HopSNAT, HopBridge, HopVeth}},
	{FromContainer, ToAddress6, []HopKind{HopVeth, HopBridge, HopDNAT, HopSNAT, HopBridge, HopVeth}},
	{FromHost, ToAddress6, []HopKind{HopDNAT, HopBridge, HopVeth}},
}

const publishing = "nothing; through docker-proxy the server sees the bridge's address, not the client's"

func ipvlan(name Name, kind string, below Name, part, summary, givesUp string) Mode {
	m := Mode{
		Name:          name,
		Summary:       summary,
		Docker:        "--driver ipvlan -o ipvlan_mode=" + kind,
		Short:         "ipvlan (" + kind + ")",
		GivesUp:       givesUp,
		PortIsolation: true,
		Rare:          true,
		Routes: bothFamilies([]Route{
			{FromContainer, ToContainer, []HopKind{HopIPvlan, HopIPvlan}},
			{FromContainer, ToOutside, []HopKind{HopIPvlan, HopWire}},
			{FromRemote, ToContainer, []HopKind{HopWire, HopIPvlan}},
			{FromRemoteContainer, ToContainer, []HopKind{HopIPvlan, HopWire, HopIPvlan}},
		}),
		Apart: []Apart{subInterface("ipvlan", FromContainer)},
		Rungs: variant([]Placement{FromContainer, FromRemote, FromRemoteContainer}, below, part),
	}
	for i := range m.Rungs {
		m.Rungs[i].Unseen = name != IPvlanL2 // its devices differ from those below
	}
	return m
}

// variant returns rungs inward from these placements, and the one outward.
func variant(from []Placement, below Name, part string) []Rung {
	out := []Rung{{From: FromContainer, To: ToOutside, Below: below, Part: part, Unseen: true}}
	for _, p := range from {
		out = append(out, Rung{From: p, To: ToContainer, Below: below, Part: part, Unseen: true})
	}
	return out
}

func unrouted(from Placement) Apart {
	return Apart{From: from,
		Why:    "other machines have no route to a container's address, and Docker's rules would drop what came",
		Around: "publish-nat, publish-proxy or routed"}
}

func oneWay(from Placement) Apart {
	return Apart{From: from,
		Why:    "the card and its alias are on one network: both answer ARP for the alias, and replies leave by the card, so no counter tells which way was taken",
		Around: "publish, routed or macvlan-bridge"}
}

func subInterface(kind string, instead Placement) Apart {
	return Apart{
		From: FromHost,
		Why: "the kernel keeps a network card and its " + kind +
			" sub-interfaces apart, so the machine cannot reach its own containers",
		Around: "--from " + string(instead) +
			"; on a real machine, make one more sub-interface of the card for the host itself",
	}
}

var overlayApart = []Apart{
	{From: FromHost,
		Why:    "an overlay's network is in a namespace of its own, which the machine is not part of",
		Around: "--from container, or publish the port"},
	{From: FromRemote,
		Why:    "an overlay's network is in a namespace of its own, which no machine is part of",
		Around: "--from remote-container, or publish the port"},
}

// Kubernetes's routes assume a network plug-in with a bridge on each node and routes between them.
// For others see Mode.Fits.

var podRoutes = []Route{
	{FromHost, ToContainer, []HopKind{HopBridge, HopVeth}},
	{FromContainer, ToContainer, []HopKind{HopVeth, HopBridge, HopVeth}},
	{FromRemote, ToContainer, []HopKind{HopWire, HopBridge, HopVeth}},
	{FromRemoteContainer, ToContainer, []HopKind{HopVeth, HopBridge, HopWire, HopBridge, HopVeth}},
	{FromContainer, ToOutside, []HopKind{HopVeth, HopBridge, HopWire}},
}

func portRoutes(rewritten ...HopKind) []Route {
	way := func(first ...HopKind) []HopKind {
		return slices.Concat(first, rewritten, []HopKind{HopBridge, HopVeth})
	}
	return []Route{
		{FromHost, ToAddress, way()},
		{FromContainer, ToAddress, way(HopVeth)},
		{FromRemote, ToAddress, way(HopWire)},
		{FromRemoteContainer, ToAddress, way(HopVeth, HopBridge, HopWire)},
	}
}

func aboveAll(from []Placement, to Target, below Name, part string) []Rung {
	var out []Rung
	for _, p := range from {
		out = append(out, Rung{From: p, To: to, Below: below, Part: part})
	}
	return out
}

func ofTheNode(from Placement) Apart {
	return Apart{
		From:   from,
		Why:    "externalTrafficPolicy is about clients on other machines: from the node itself a node port of either policy has one way",
		Around: "nodeport; or --from remote,remote-container"}
}

func ofPods(from Placement) Apart {
	return Apart{From: from, Why: "the cluster's DNS server is for pods: a node asks another one",
		Around: "--from container,remote-container"}
}
