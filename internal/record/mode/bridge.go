package mode

var bridge = Mode{
	Name:    Bridge,
	Summary: "a veth pair on a bridge, dialled by the container's own address",
	Docker:  "--network NAME (user-defined bridge)",
	Short:   "--network NAME",
	Caveat:  "the address is not reachable from other machines",
	Usual:   true,
	Routes:  bridged,
	Apart:   []Apart{unrouted(FromRemote), unrouted(FromRemoteContainer)},
	Rungs: []Rung{
		{From: FromHost, To: ToContainer, Below: BridgeDefault, Part: dnsRules, Unseen: true},
		{From: FromContainer, To: ToContainer, Below: BridgeDefault, Part: dnsRules,
			Unseen: true},
		{From: FromContainer, To: ToOutside, Below: BridgeDefault, Part: dnsRules,
			Unseen: true},
	},
}

var bridgeDefault = Mode{
	Name:    BridgeDefault,
	Summary: "a veth pair on the default bridge, without Docker's DNS server and its rules",
	Docker:  "no --network (the default bridge)",
	Short:   "default network",
	Caveat:  "the address is not reachable from other machines, and containers do not find each other by name",
	Routes:  bridged,
	Apart:   []Apart{unrouted(FromRemote), unrouted(FromRemoteContainer)},
	Rungs: []Rung{
		{From: FromHost, To: ToContainer, Below: Host,
			Part: "a network namespace of its own, with a veth pair on a bridge"},
		{From: FromContainer, To: ToContainer, Below: Shared,
			Part: "a network namespace for each, without the rules of Docker's DNS server, joined by veth pairs and a bridge"},
		{From: FromContainer, To: ToOutside, Below: Pipework, Part: natOut},
	},
}

var routed = Mode{
	Name: Routed,
	Summary: "a bridge without NAT: other machines have a route to the container's address " +
		"(-o com.docker.network.bridge.gateway_mode_ipv4=routed)",
	Docker:  "gateway_mode_ipv4=routed, an option of networks",
	Short:   "routed network",
	Caveat:  "peers need a route, and every published container port answers there",
	PerPort: true,
	Routes: bothFamilies([]Route{
		{FromHost, ToContainer, []HopKind{HopBridge, HopVeth}},
		{FromContainer, ToContainer, []HopKind{HopVeth, HopBridge, HopBridge, HopVeth}},
		{FromContainer, ToOutside, []HopKind{HopVeth, HopBridge, HopWire}},
		{FromRemote, ToContainer, []HopKind{HopWire, HopBridge, HopVeth}},
		{FromRemoteContainer, ToContainer, []HopKind{
			HopVeth, HopBridge, HopWire, HopBridge, HopVeth}},
	}),
	Rungs: []Rung{
		{From: FromHost, To: ToContainer, Below: Bridge,
			Part: "routed mode's rules instead of NAT's", Unseen: true},
		{From: FromContainer, To: ToContainer, Below: Bridge,
			Part: "a second bridge, and routing between the two"},
		{From: FromRemote, To: ToContainer, Below: Host,
			Part: "a network namespace of its own, with a veth pair on a routed bridge"},
		{From: FromRemoteContainer, To: ToContainer, Below: Host,
			Part: "a network namespace on each machine, with a veth pair on a routed bridge"},
		{From: FromContainer, To: ToOutside, Below: Bridge,
			Part: "routed mode's rules instead of NAT's"},
	},
}

var link = Mode{
	Name:    Link,
	Summary: "the default bridge with containers isolated, except for one pair and port",
	Docker:  "--link NAME with --icc=false (deprecated)",
	Short:   "--link",
	No6:     "Docker writes the rules of a link for IPv4 only",
	Caveat:  "deprecated",
	PerPort: true,
	Routes: []Route{
		{FromContainer, ToContainer, []HopKind{HopVeth, HopAccept, HopBridge, HopVeth}},
	},
	Rungs: []Rung{
		{From: FromContainer, To: ToContainer, Below: BridgeDefault,
			Part: "the packet filter for bridged frames, with a rule for the linked pair"},
	},
}

var natAlias = Mode{
	Name:    NATAlias,
	Summary: "an address of the LAN for each container: a macvlan alias of the card, with 1:1 NAT",
	Docker:  "none (macvlan, DNAT and SNAT by hand)",
	Short:   "1:1 NAT",
	No6:     "the aliases and rules that it is made of are for IPv4",
	Caveat:  "every container port answers at the alias",
	Routes: []Route{
		{FromHost, ToContainer, []HopKind{HopDNAT, HopBridge, HopVeth}},
		{FromContainer, ToContainer, []HopKind{HopVeth, HopDNAT, HopSNAT, HopBridge, HopVeth}},
	},
	Apart: []Apart{oneWay(FromRemote), oneWay(FromRemoteContainer)},
	Rungs: []Rung{
		{From: FromHost, To: ToContainer, Below: BridgeDefault,
			Part: "1:1 NAT of an alias of the card"},
		{From: FromContainer, To: ToContainer, Below: BridgeDefault,
			Part: "1:1 NAT of two aliases of the card, applied to bridged frames (br_netfilter)"},
	},
}

var pipework = Mode{
	Name:    Pipework,
	Summary: "a veth pair on a bridge that also has the machine's network card as a port",
	Docker:  "pipework BRIDGE CONTAINER ADDRESS",
	Short:   "pipework",
	Caveat:  "the container is a machine on the LAN, behind no rule of Docker's",
	Needs:   anAddress,
	Routes: bothFamilies([]Route{
		{FromHost, ToContainer, []HopKind{HopBridge, HopVeth}},
		{FromContainer, ToContainer, []HopKind{HopVeth, HopBridge, HopVeth}},
		{FromContainer, ToOutside, []HopKind{HopVeth, HopBridge, HopWire}},
		{FromRemote, ToContainer, []HopKind{HopWire, HopBridge, HopVeth}},
		{FromRemoteContainer, ToContainer, []HopKind{
			HopVeth, HopBridge, HopWire, HopBridge, HopVeth}},
	}),
	Rungs: []Rung{
		{From: FromHost, To: ToContainer, Below: BridgeDefault, Part: cardOnBridge,
			Unseen: true},
		{From: FromContainer, To: ToContainer, Below: BridgeDefault, Part: cardOnBridge,
			Unseen: true},
		{From: FromRemote, To: ToContainer, Below: Host,
			Part: "a network namespace of its own, with a veth pair on a bridge that the card is a port of"},
		{From: FromRemoteContainer, To: ToContainer, Below: Host,
			Part: "a network namespace on each machine, with a veth pair on a bridge that the card is a port of"},
		{From: FromContainer, To: ToOutside, Below: Host,
			Part: "a network namespace of its own, with a veth pair on a bridge that the card is a port of"},
	},
}

var ovs = Mode{
	Name:    OVS,
	Summary: "a veth pair on an Open vSwitch bridge that also has the machine's network card as a port",
	Docker:  "ovs-docker or pipework with Open vSwitch",
	Short:   "Open vSwitch",
	Caveat:  "the container is a machine on the LAN, behind no rule of Docker's",
	Needs:   anAddress,
	Rare:    true,
	Routes: bothFamilies([]Route{
		{FromHost, ToContainer, []HopKind{HopOVS, HopVeth}},
		{FromContainer, ToContainer, []HopKind{HopVeth, HopOVS, HopVeth}},
		{FromContainer, ToOutside, []HopKind{HopVeth, HopOVS, HopWire}},
		{FromRemote, ToContainer, []HopKind{HopWire, HopOVS, HopVeth}},
		{FromRemoteContainer, ToContainer, []HopKind{
			HopVeth, HopOVS, HopWire, HopOVS, HopVeth}},
	}),
	Rungs: []Rung{
		{From: FromHost, To: ToContainer, Below: Pipework, Part: ovsForBridge},
		{From: FromContainer, To: ToContainer, Below: Pipework, Part: ovsForBridge},
		{From: FromRemote, To: ToContainer, Below: Pipework, Part: ovsForBridge},
		{From: FromRemoteContainer, To: ToContainer, Below: Pipework, Part: ovsForBridge},
		{From: FromContainer, To: ToOutside, Below: Pipework, Part: ovsForBridge},
	},
}

var netkit = Mode{
	Name:    Netkit,
	Summary: "a netkit pair instead of the veth pair, routed",
	Docker:  "none (Cilium's replacement for veth; Linux 6.7)",
	Short:   "netkit",
	Caveat:  "peers need a route",
	Rare:    true,
	Routes: bothFamilies([]Route{
		{FromHost, ToContainer, []HopKind{HopNetkit}},
		{FromContainer, ToContainer, []HopKind{HopNetkit, HopNetkit}},
		{FromRemote, ToContainer, []HopKind{HopWire, HopNetkit}},
	}),
	Rungs: []Rung{
		{From: FromHost, To: ToContainer, Below: Routed, Part: netkitPair},
		{From: FromContainer, To: ToContainer, Below: Routed, Part: netkitPairs},
		{From: FromRemote, To: ToContainer, Below: Routed, Part: netkitPair},
	},
}

var bridged = bothFamilies([]Route{
	{FromHost, ToContainer, []HopKind{HopBridge, HopVeth}},
	{FromContainer, ToContainer, []HopKind{HopVeth, HopBridge, HopVeth}},
	{FromContainer, ToOutside, []HopKind{HopVeth, HopBridge, HopSNAT, HopWire}},
})

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
