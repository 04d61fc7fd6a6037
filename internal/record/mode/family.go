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

const publishing = "through docker-proxy the server sees the bridge's address, not the client's"

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

var overlayApart = []Apart{
	{From: FromHost,
		Why:    "an overlay's network is in a namespace of its own, which the machine is not part of",
		Around: "--from container, or publish the port"},
	{From: FromRemote,
		Why:    "an overlay's network is in a namespace of its own, which no machine is part of",
		Around: "--from remote-container, or publish the port"},
}
