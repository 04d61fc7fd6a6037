package mode

const anAddress = "an address on the LAN"

const cardOnLAN = "the container is a machine on the LAN, and the card must be promiscuous"

var macvlanBridge = Mode{
	Name:    MacvlanBridge,
	Summary: "a sub-interface of the network card with a MAC address of its own; siblings talk directly",
	Docker:  "--driver macvlan (also pipework on a card)",
	Short:   "macvlan",
	Caveat:  cardOnLAN,
	Needs:   anAddress,
	Usual:   true,
	Routes: bothFamilies([]Route{
		{FromContainer, ToContainer, []HopKind{HopMacvlan, HopMacvlan}},
		{FromContainer, ToOutside, []HopKind{HopMacvlan, HopWire}},
		{FromRemote, ToContainer, []HopKind{HopWire, HopMacvlan}},
		{FromRemoteContainer, ToContainer, []HopKind{HopMacvlan, HopWire, HopMacvlan}},
	}),
	Apart: []Apart{subInterface("macvlan", FromContainer)},
	Rungs: []Rung{
		{From: FromContainer, To: ToContainer, Below: Shared,
			Part: "a network namespace for each, on macvlan sub-interfaces of one card"},
		{From: FromRemote, To: ToContainer, Below: Host,
			Part: "a network namespace of its own, on a macvlan sub-interface of the card"},
		{From: FromRemoteContainer, To: ToContainer, Below: Host,
			Part: "a network namespace on each machine, on a macvlan sub-interface of its card"},
		{From: FromContainer, To: ToOutside, Below: Host,
			Part: "a network namespace of its own, on a macvlan sub-interface of the card"},
	},
}

var macvlanPrivate = macvlanApart(Mode{
	Name:    MacvlanPrivate,
	Summary: "macvlan whose siblings cannot talk to each other",
	Caveat:  cardOnLAN,
	Needs:   anAddress,
}, "private", "private is the macvlan mode in which containers on one card cannot reach each other")

var macvlanVEPA = Mode{
	Name:    MacvlanVEPA,
	Summary: "macvlan whose siblings talk by way of the switch, which must reflect",
	Docker:  "--driver macvlan -o macvlan_mode=vepa",
	Short:   "macvlan (vepa)",
	Caveat:  cardOnLAN,
	Needs:   anAddress,
	Routes: bothFamilies([]Route{
		{FromContainer, ToContainer, []HopKind{HopMacvlan, HopWire, HopMacvlan}},
		{FromContainer, ToOutside, []HopKind{HopMacvlan, HopWire}},
		{FromRemote, ToContainer, []HopKind{HopWire, HopMacvlan}},
		{FromRemoteContainer, ToContainer, []HopKind{HopMacvlan, HopWire, HopMacvlan}},
	}),
	Apart: []Apart{subInterface("macvlan", FromContainer)},
	Rungs: append(variant([]Placement{FromRemote, FromRemoteContainer}, MacvlanBridge,
		"macvlan's mode vepa instead of bridge"),
		Rung{From: FromContainer, To: ToContainer, Below: MacvlanBridge,
			Part: "the wire to the switch and back (vepa)"}),
}

var macvlanPassthru = macvlanApart(Mode{
	Name:      MacvlanPassthru,
	Summary:   "macvlan that gives the whole network card to one container",
	Caveat:    "no other container can use the card",
	Needs:     anAddress,
	WholeCard: true,
}, "passthru", "passthru gives the card to one container, so there is no second one on it")

// macvlanApart completes a macvlan mode of the given kind, in which containers on one card cannot
// reach each other. why is the reason.
func macvlanApart(m Mode, kind, why string) Mode {
	m.Docker = "--driver macvlan -o macvlan_mode=" + kind
	m.Short = "macvlan (" + kind + ")"
	m.Routes = bothFamilies([]Route{
		{FromRemote, ToContainer, []HopKind{HopWire, HopMacvlan}},
		{FromRemoteContainer, ToContainer, []HopKind{HopMacvlan, HopWire, HopMacvlan}},
		{FromContainer, ToOutside, []HopKind{HopMacvlan, HopWire}},
	})
	m.Apart = []Apart{subInterface("macvlan", FromRemote),
		{From: FromContainer, Why: why, Around: string(MacvlanBridge)}}
	m.Rungs = variant([]Placement{FromRemote, FromRemoteContainer}, MacvlanBridge,
		"macvlan's mode "+kind+" instead of bridge")
	return m
}

var ipvlanL2 = ipvlan(IPvlanL2, "l2", MacvlanBridge,
	"ipvlan instead of macvlan: the card's own MAC address",
	"a sub-interface of the network card that shares its MAC address",
	"the container is a machine on the LAN with the machine's own MAC address")

var ipvlanL3 = ipvlan(IPvlanL3, "l3", IPvlanL2, "routing instead of switching (l3)",
	"ipvlan that routes: no broadcast, and other machines need a route",
	"peers need a route, and every container port answers there")

var ipvlanL3S = ipvlan(IPvlanL3S, "l3s", IPvlanL3, "the machine's rules for what comes in (l3s)",
	"ipvlan that routes and lets what it receives cross the machine's rules",
	"peers need a route, and every container port answers there")

func ipvlan(name Name, kind string, below Name, part, summary, caveat string) Mode {
	m := Mode{
		Name:    name,
		Summary: summary,
		Docker:  "--driver ipvlan -o ipvlan_mode=" + kind,
		Short:   "ipvlan (" + kind + ")",
		Caveat:  caveat,
		Rare:    true,
		Routes: bothFamilies([]Route{
			{FromContainer, ToContainer, []HopKind{HopIPvlan, HopIPvlan}},
			{FromContainer, ToOutside, []HopKind{HopIPvlan, HopWire}},
			{FromRemote, ToContainer, []HopKind{HopWire, HopIPvlan}},
			{FromRemoteContainer, ToContainer, []HopKind{HopIPvlan, HopWire, HopIPvlan}},
		}),
		Apart: []Apart{subInterface("ipvlan", FromContainer)},
		Rungs: variant([]Placement{FromContainer, FromRemote, FromRemoteContainer}, below, part),
	}
	if name == IPvlanL2 {
		m.Needs = anAddress
	}
	for i := range m.Rungs {
		m.Rungs[i].Unseen = name != IPvlanL2 // its devices differ from those below
	}
	return m
}

// variant returns inward rungs from the given placements, and the outward rung.
func variant(from []Placement, below Name, part string) []Rung {
	out := []Rung{{From: FromContainer, To: ToOutside, Below: below, Part: part, Unseen: true}}
	for _, p := range from {
		out = append(out, Rung{From: p, To: ToContainer, Below: below, Part: part, Unseen: true})
	}
	return out
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
