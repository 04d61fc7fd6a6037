package mode

import "slices"

// What modes of a family have in common.

var bridged = bothFamilies([]Route{
	{FromHost, ToContainer, []HopKind{HopBridge, HopVeth}},
	{FromContainer, ToContainer, []HopKind{HopVeth, HopBridge, HopVeth}},
})

// bothFamilies returns routes over IPv4, followed by the same over IPv6. NAT has no route from ::1:
// the kernel lets no packet from there leave the machine.
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

// of an engine with its defaults
var published = []Route{
	{FromHost, ToLoopback, []HopKind{HopLoopback, HopProxy, HopBridge, HopVeth}},
	{FromHost, ToLoopback6, []HopKind{HopLoopback, HopProxy, HopBridge, HopVeth}},
	{FromHost, ToAddress, []HopKind{HopDNAT, HopBridge, HopVeth}},
	{FromContainer, ToAddress, []HopKind{HopVeth, HopBridge, HopProxy, HopBridge, HopVeth}},
	{FromRemote, ToAddress, []HopKind{HopWire, HopDNAT, HopBridge, HopVeth}},
	{FromRemoteContainer, ToAddress, []HopKind{HopVeth, HopBridge, HopSNAT, HopWire, HopDNAT, HopBridge, HopVeth}},
	{FromHost, ToAddress6, []HopKind{HopLoopback, HopProxy, HopBridge, HopVeth}},
	{FromRemote, ToAddress6, []HopKind{HopWire, HopProxy, HopBridge, HopVeth}},
	{FromContainer, ToAddress6, []HopKind{HopVeth, HopBridge, HopProxy, HopBridge, HopVeth}},
}

// withoutProxy are those that differ if the engine starts no docker-proxy for the port, or has IPv6
// on networks that were made without asking for it.
var withoutProxy = []Route{
	{FromHost, ToLoopback, []HopKind{HopDNAT, HopSNAT, HopBridge, HopVeth}},
	{FromHost, ToAddress, []HopKind{HopDNAT, HopSNAT, HopBridge, HopVeth}},
	{FromContainer, ToAddress, []HopKind{HopVeth, HopDNAT, HopBridge, HopVeth}},
	{FromHost, ToAddress6, []HopKind{HopDNAT, HopBridge, HopVeth}},
	{FromHost, ToAddress6, []HopKind{HopDNAT, HopSNAT, HopBridge, HopVeth}},
	{FromContainer, ToAddress6, []HopKind{HopVeth, HopDNAT, HopBridge, HopVeth}},
}

const publishing = "nothing; through docker-proxy the server sees the bridge's address, not the client's"

// ipvlan returns a mode with a part that the mode below lacks.
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
			{FromRemote, ToContainer, []HopKind{HopWire, HopIPvlan}},
			{FromRemoteContainer, ToContainer, []HopKind{HopIPvlan, HopWire, HopIPvlan}},
		}),
		Apart: []Apart{subInterface("ipvlan", FromContainer)},
		Rungs: variant([]Placement{FromContainer, FromRemote, FromRemoteContainer}, below, part),
	}
	for i := range m.Rungs {
		m.Rungs[i].Unseen = name != IPvlanL2 // its devices are others than those below
	}
	return m
}

// variant returns the rungs of a mode with the hops of the one below.
func variant(from []Placement, below Name, part string) []Rung {
	var out []Rung
	for _, p := range from {
		out = append(out, Rung{From: p, To: ToContainer, Below: below, Part: part, Unseen: true})
	}
	return out
}

// other machines cannot reach a container's address
func unrouted(from Placement) Apart {
	return Apart{From: from,
		Why:    "other machines have no route to a container's address, and Docker's rules would drop what came",
		Around: "publish-nat, publish-proxy or routed"}
}

// no path to an alias is measured from another machine
func oneWay(from Placement) Apart {
	return Apart{From: from,
		Why:    "the card and its alias are on one network: both answer ARP for the alias, and replies leave by the card, so no counter tells which way was taken",
		Around: "publish, routed or macvlan-bridge"}
}

// the machine cannot reach its own sub-interfaces
func subInterface(kind string, instead Placement) Apart {
	return Apart{
		From:   FromHost,
		Why:    "the kernel keeps a network card and its " + kind + " sub-interfaces apart, so the machine cannot reach its own containers",
		Around: "--from " + string(instead) + "; on a real machine, make one more sub-interface of the card for the host itself",
	}
}

var overlayApart = []Apart{
	{From: FromHost, Why: "an overlay's network is in a namespace of its own, which the machine is not part of",
		Around: "--from container, or publish the port"},
	{From: FromRemote, Why: "an overlay's network is in a namespace of its own, which no machine is part of",
		Around: "--from remote-container, or publish the port"},
}

// The routes of Kubernetes's modes are those of a network plug-in with a bridge on each node and
// routes between them. Others lack some of the hops, or have more: see Mode.Fits.

var podRoutes = []Route{
	{FromHost, ToContainer, []HopKind{HopBridge, HopVeth}},
	{FromContainer, ToContainer, []HopKind{HopVeth, HopBridge, HopVeth}},
	{FromRemote, ToContainer, []HopKind{HopWire, HopBridge, HopVeth}},
	{FromRemoteContainer, ToContainer, []HopKind{HopVeth, HopBridge, HopWire, HopBridge, HopVeth}},
}

// portRoutes returns the routes to a port of the server's node, with the hops that rewrite it.
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

// a policy for clients from outside is not measured from the node itself
func ofTheNode(from Placement) Apart {
	return Apart{From: from, Why: "externalTrafficPolicy is about clients on other machines: from the node itself a node port of either policy has one way",
		Around: "nodeport; or --from remote,remote-container"}
}

// a service's name is not looked up on a node
func ofPods(from Placement) Apart {
	return Apart{From: from, Why: "the cluster's DNS server is for pods: a node asks another one", Around: "--from container,remote-container"}
}
