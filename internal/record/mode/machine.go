package mode

var native = Mode{
	Name:    Native,
	Summary: "no container: the server is a process of the machine",
	Docker:  "no Docker on the machine",
	Short:   "no container",
	Lost:    "everything: there is no container",
	Usual:   true,
	Routes: bothFamilies([]Route{
		{FromHost, ToLoopback, []HopKind{HopLoopback}},
		{FromHost, ToOutside, []HopKind{HopWire}},
		{FromRemote, ToAddress, []HopKind{HopWire}},
	}),
	Rungs: []Rung{
		{From: FromHost, To: ToLoopback},
		{From: FromRemote, To: ToAddress},
		{From: FromHost, To: ToOutside},
	},
}

var host = Mode{
	Name:    Host,
	Summary: "the container uses the machine's own network",
	Docker:  "--network host",
	Short:   "--network host",
	Lost:    "port isolation",
	Caveat:  "the machine's sockets are visible in the container",
	Usual:   true,
	Routes: bothFamilies([]Route{
		{FromHost, ToLoopback, []HopKind{HopLoopback}},
		{FromHost, ToOutside, []HopKind{HopWire}},
		{FromContainer, ToLoopback, []HopKind{HopLoopback}},
		{FromContainer, ToOutside, []HopKind{HopWire}},
		{FromRemote, ToAddress, []HopKind{HopWire}},
		{FromRemoteContainer, ToAddress, []HopKind{HopWire}},
	}),
	Otherwise: throughDriver(),
	Rungs: []Rung{
		{From: FromHost, To: ToLoopback, Below: Native, Part: dockersRules, Unseen: true},
		{From: FromContainer, To: ToLoopback},
		{From: FromRemote, To: ToAddress, Below: Native, Part: dockersRules, Unseen: true},
		{From: FromRemoteContainer, To: ToAddress},
		{From: FromHost, To: ToOutside, Below: Native, Part: dockersRules, Unseen: true},
		{From: FromContainer, To: ToOutside},
	},
}

var shared = Mode{
	Name:    Shared,
	Summary: "client and server containers in one network namespace, as in a pod",
	Docker:  "--network container:NAME",
	Short:   "container:NAME",
	Lost:    "the isolation between the two containers",
	Usual:   true,
	Routes: bothFamilies([]Route{
		{FromContainer, ToLoopback, []HopKind{HopLoopback}},
	}),
	Rungs: []Rung{
		{From: FromContainer, To: ToLoopback, Below: Host,
			Part: "a network namespace that both share, with no rules of Docker's but its DNS server's", Unseen: true},
	},
}
