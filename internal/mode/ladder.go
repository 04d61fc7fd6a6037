package mode

import "slices"

// Rung is a mode on a ladder: reached from one placement, it differs from the
// rung below by one part.
type Rung struct {
	Mode  Name
	To    Target // of the mode's several, the one whose route fits
	Below Name   // "" at the bottom
	Part  string // what it has that the rung below has not, as a noun
}

// PartOn is the part where the modes are built on a real machine with Docker: its
// rules are there whatever the mode, so they are no part, and its network card is
// left alone.
func (r Rung) PartOn(ruled bool) string {
	switch {
	case ruled && r.Part == dockersRules:
		return "a container around the server, with the machine's network (Docker's rules are there for both)"
	case ruled && r.Part == cardOnBridge:
		return "a bridge beside Docker's, behind none of its rules for networks"
	}
	return r.Part
}

// The parts that several placements have in common.
const (
	dockersRules = "Docker's rules on the machine"
	proxyForNAT  = "docker-proxy instead of NAT"
	cardOnBridge = "the machine's network card as a port of the bridge"
	ovsForBridge = "Open vSwitch instead of the Linux bridge"
	netkitPair   = "a netkit pair instead of the veth pair and its bridge, without the DNS server's rules"
	netkitPairs  = "netkit pairs instead of veth pairs and bridges, without the DNS server's rules"
	dnsRules     = "connection tracking in each container for the rules of Docker's DNS server"
	ingressMesh  = "Swarm's routing mesh: IPVS in a network namespace of its own, and an overlay's bridge"
)

// ladders are trees, each rung after the one below it. A ladder starts at the
// mode that has the fewest parts.
//
// Where a mode is like two others, the one is below it of which it keeps more:
// netkit is routed, so it is held against routed.
var ladders = map[Placement][]Rung{
	FromHost: {
		{Native, ToLoopback, "", ""},
		{Host, ToLoopback, Native, dockersRules},
		{BridgeDefault, ToContainer, Host, "a network namespace of its own, with a veth pair on a bridge"},
		{Bridge, ToContainer, BridgeDefault, dnsRules},
		{PublishNAT, ToLoopback, Bridge, "NAT of a published port instead of the container's address"},
		{PublishProxy, ToLoopback, PublishNAT, proxyForNAT},
		{PublishIngress, ToAddress, PublishNAT, ingressMesh},
		{Routed, ToContainer, Bridge, "routed mode's rules instead of NAT's"},
		{Netkit, ToContainer, Routed, netkitPair},
		{Pipework, ToContainer, BridgeDefault, cardOnBridge},
		{OVS, ToContainer, Pipework, ovsForBridge},
	},
	FromContainer: slices.Concat([]Rung{
		{Host, ToLoopback, "", ""},
		{Shared, ToLoopback, Host, "a network namespace that both share, with no rules of Docker's but its DNS server's"},
		{BridgeDefault, ToContainer, Shared, "a network namespace for each, without these rules, joined by veth pairs and a bridge"},
		{Bridge, ToContainer, BridgeDefault, dnsRules},
		{PublishNAT, ToAddress, Bridge, "NAT of a published port, applied to bridged frames (br_netfilter)"},
		{PublishProxy, ToAddress, PublishNAT, proxyForNAT},
		{PublishIngress, ToAddress, PublishNAT, "NAT of the client's address, too, and " + ingressMesh},
		{Routed, ToContainer, Bridge, "a second bridge, and routing between the two"},
		{Netkit, ToContainer, Routed, netkitPairs},
		{Link, ToContainer, BridgeDefault, "the packet filter for bridged frames, with a rule for the linked pair"},
		{Pipework, ToContainer, BridgeDefault, cardOnBridge},
		{OVS, ToContainer, Pipework, ovsForBridge},
		{Overlay, ToContainer, Bridge, "the overlay's bridge, in a network namespace of its own, instead of Docker's"},
		{MacvlanBridge, ToContainer, Shared, "a network namespace for each, on macvlan sub-interfaces of one card"},
		{MacvlanVEPA, ToContainer, MacvlanBridge, "the wire to the switch and back (vepa)"},
	}, ipvlans),
	FromRemote: slices.Concat([]Rung{
		{Native, ToAddress, "", ""},
		{Host, ToAddress, Native, dockersRules},
		{Routed, ToContainer, Host, "a network namespace of its own, with a veth pair on a routed bridge"},
		{PublishNAT, ToAddress, Routed, "NAT of a published port instead of a route to the container's address"},
		{PublishProxy, ToAddress, PublishNAT, proxyForNAT + ` and all rules ("iptables": false)`},
		{PublishIngress, ToAddress, PublishNAT, ingressMesh},
		{Netkit, ToContainer, Routed, netkitPair},
		{Pipework, ToContainer, Host, "a network namespace of its own, with a veth pair on a bridge that the card is a port of"},
		{OVS, ToContainer, Pipework, ovsForBridge},
		{MacvlanBridge, ToContainer, Host, "a network namespace of its own, on a macvlan sub-interface of the card"},
	}, macvlans, ipvlans),
	FromRemoteContainer: slices.Concat([]Rung{
		{Host, ToAddress, "", ""},
		{Routed, ToContainer, Host, "a network namespace on each machine, with a veth pair on a routed bridge"},
		{PublishNAT, ToAddress, Routed, "NAT on both machines instead of routes to the containers' addresses"},
		{PublishIngress, ToAddress, PublishNAT, ingressMesh},
		{Pipework, ToContainer, Host, "a network namespace on each machine, with a veth pair on a bridge that the card is a port of"},
		{OVS, ToContainer, Pipework, ovsForBridge},
		{Overlay, ToContainer, Pipework, "a VXLAN tunnel between the bridges, and " + dnsRules},
		{OverlayEncrypted, ToContainer, Overlay, "ESP: the tunnel is encrypted"},
		{MacvlanBridge, ToContainer, Host, "a network namespace on each machine, on a macvlan sub-interface of its card"},
	}, macvlans, ipvlans),
}

// The variants of a sub-interface have the hops of the plain one.
var (
	macvlans = []Rung{
		{MacvlanPrivate, ToContainer, MacvlanBridge, "macvlan's mode private instead of bridge"},
		{MacvlanVEPA, ToContainer, MacvlanBridge, "macvlan's mode vepa instead of bridge"},
		{MacvlanPassthru, ToContainer, MacvlanBridge, "macvlan's mode passthru instead of bridge"},
	}
	ipvlans = []Rung{
		{IPvlanL2, ToContainer, MacvlanBridge, "ipvlan instead of macvlan: the card's own MAC address"},
		{IPvlanL3, ToContainer, IPvlanL2, "routing instead of switching (l3)"},
		{IPvlanL3S, ToContainer, IPvlanL3, "the machine's rules for what comes in (l3s)"},
	}
)

// Ladder is the ladder from p: every mode that is reached from there, each
// after the rung below it.
func Ladder(p Placement) []Rung { return slices.Clone(ladders[p]) }

// FindRung returns the rung of n on the ladder from p; ok is false if it has
// none.
func FindRung(p Placement, n Name) (r Rung, ok bool) {
	for _, r := range ladders[p] {
		if r.Mode == n {
			return r, true
		}
	}
	return Rung{}, false
}

// Climb returns the rungs of the ladder from p that lead from the bottom to
// each of the modes. Modes that have no rung there lead nowhere.
func Climb(p Placement, to []Name) []Rung {
	need := map[Name]bool{}
	for _, n := range to {
		for r, ok := FindRung(p, n); ok; r, ok = FindRung(p, r.Below) {
			need[r.Mode] = true
		}
	}
	return slices.DeleteFunc(Ladder(p), func(r Rung) bool { return !need[r.Mode] })
}
