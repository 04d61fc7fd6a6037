package mode

const aSwarm = "a Swarm"

var overlay = Mode{
	Name:    Overlay,
	Summary: "one network across machines: a bridge on each, joined by a VXLAN tunnel",
	Docker:  "--driver overlay (Swarm)",
	Short:   "overlay",
	Needs:   aSwarm,
	Usual:   true,
	Routes: append(bothFamilies([]Route{
		{FromContainer, ToContainer, []HopKind{HopVeth, HopBridge, HopVeth}},
		{FromRemoteContainer, ToContainer, []HopKind{
			HopVeth, HopBridge, HopVXLAN, HopWire, HopVXLAN, HopBridge, HopVeth}},
	}), Route{FromContainer, ToOutside, []HopKind{HopVeth, HopBridge, HopSNAT, HopWire}}),
	Apart: overlayApart,
	Rungs: []Rung{
		{From: FromContainer, To: ToContainer, Below: Bridge,
			Part:   "the overlay's bridge, in a network namespace of its own, instead of Docker's",
			Unseen: true, ListedWith: Pipework},
		{From: FromContainer, To: ToOutside, Below: Bridge,
			Part:   "a second veth pair, on docker_gwbridge, beside the one on the overlay's bridge",
			Unseen: true},
		{From: FromRemoteContainer, To: ToContainer, Below: Pipework,
			Part: "a VXLAN tunnel between the bridges, and " + dnsRules},
	},
}

var overlayEncrypted = Mode{
	Name:    OverlayEncrypted,
	Summary: "overlay whose tunnel is encrypted by IPsec (ESP, AES-GCM)",
	Docker:  "--driver overlay --opt encrypted (Swarm)",
	Short:   "overlay (encrypted)",
	Needs:   aSwarm,
	Rare:    true,
	Routes: bothFamilies([]Route{
		{FromRemoteContainer, ToContainer, []HopKind{
			HopVeth, HopBridge, HopVXLAN, HopESP, HopWire, HopESP, HopVXLAN, HopBridge,
			HopVeth}},
	}),
	Apart: overlayApart,
	Rungs: []Rung{
		{From: FromRemoteContainer, To: ToContainer, Below: Overlay,
			Part: "ESP: the tunnel is encrypted"},
	},
}

var overlayApart = []Apart{
	{From: FromHost,
		Why:    "an overlay's network is in a namespace of its own, which the machine is not part of",
		Around: "--from container, or publish the port"},
	{From: FromRemote,
		Why:    "an overlay's network is in a namespace of its own, which no machine is part of",
		Around: "--from remote-container, or publish the port"},
}
