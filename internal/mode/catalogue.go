package mode

// Catalogue lists the modes in the order in which they are shown: from the
// one without any container to the ones with the most parts.
//
// The hops of Docker's modes are those of Docker Engine's own rules; see
// internal/lab for the version that each was read from.
var Catalogue = []Mode{
	{
		Name:    Native,
		Summary: "no container: the server is a process of the machine",
		Docker:  "no Docker on the machine",
		GivesUp: "everything: there is no container",
		Usual:   true,
		Routes: []Route{
			{FromHost, ToLoopback, []HopKind{HopLoopback}},
			{FromRemote, ToAddress, []HopKind{HopWire}},
		},
	},
	{
		Name:    Host,
		Summary: "the container uses the machine's own network",
		Docker:  "--network host",
		GivesUp: "port isolation; the machine's sockets are visible in the container",
		Usual:   true,
		Routes: []Route{
			{FromHost, ToLoopback, []HopKind{HopLoopback}},
			{FromContainer, ToLoopback, []HopKind{HopLoopback}},
			{FromRemote, ToAddress, []HopKind{HopWire}},
			{FromRemoteContainer, ToAddress, []HopKind{HopWire}},
		},
	},
	{
		Name:    Shared,
		Summary: "client and server containers in one network namespace, as in a pod",
		Docker:  "--network container:NAME",
		GivesUp: "the isolation between the two containers",
		Usual:   true,
		Routes: []Route{
			{FromContainer, ToLoopback, []HopKind{HopLoopback}},
		},
	},
	{
		Name:          Bridge,
		Summary:       "a veth pair on a bridge, dialled by the container's own address",
		Docker:        "--network NAME (user-defined bridge)",
		GivesUp:       "nothing; the address is not reachable from other machines",
		PortIsolation: true,
		Usual:         true,
		Routes:        bridged,
		Apart:         []Apart{unrouted(FromRemote), unrouted(FromRemoteContainer)},
	},
	{
		Name:          BridgeDefault,
		Summary:       "the same on the default bridge, whose containers have no DNS server of Docker's and no rules for it",
		Docker:        "no --network (the default bridge)",
		GivesUp:       "nothing; the address is not reachable from other machines, and containers do not find each other by name",
		PortIsolation: true,
		Routes:        bridged,
		Apart:         []Apart{unrouted(FromRemote), unrouted(FromRemoteContainer)},
	},
	{
		Name:          PublishNAT,
		Summary:       "a published port, rewritten by the kernel's NAT",
		Docker:        `-p PORT:PORT with "userland-proxy": false`,
		GivesUp:       "nothing",
		PortIsolation: true,
		Usual:         true,
		Routes: []Route{
			{FromHost, ToLoopback, []HopKind{HopDNAT, HopSNAT, HopBridge, HopVeth}},
			{FromHost, ToAddress, []HopKind{HopDNAT, HopSNAT, HopBridge, HopVeth}},
			{FromContainer, ToAddress, []HopKind{HopVeth, HopDNAT, HopBridge, HopVeth}},
			{FromRemote, ToAddress, []HopKind{HopWire, HopDNAT, HopBridge, HopVeth}},
			{FromRemoteContainer, ToAddress, []HopKind{HopVeth, HopBridge, HopSNAT, HopWire, HopDNAT, HopBridge, HopVeth}},
		},
	},
	{
		Name:          PublishProxy,
		Summary:       "a published port, relayed by the docker-proxy process",
		Docker:        `-p PORT:PORT (default "userland-proxy": true)`,
		GivesUp:       "nothing; the server sees the bridge's address, not the client's",
		PortIsolation: true,
		Usual:         true,
		Routes: []Route{
			{FromHost, ToLoopback, []HopKind{HopLoopback, HopProxy, HopBridge, HopVeth}},
			{FromHost, ToLoopback6, []HopKind{HopLoopback, HopProxy, HopBridge, HopVeth}},
			{FromContainer, ToAddress, []HopKind{HopVeth, HopBridge, HopProxy, HopBridge, HopVeth}},
			{FromRemote, ToAddress, []HopKind{HopWire, HopProxy, HopBridge, HopVeth}},
		},
	},
	{
		Name:          PublishIngress,
		Summary:       "a port of Swarm's routing mesh: any node takes it, IPVS chooses the task",
		Docker:        "--publish mode=ingress (Swarm)",
		GivesUp:       "nothing; the server sees the mesh's address, not the client's",
		PortIsolation: true,
		Routes: []Route{
			{FromHost, ToAddress, []HopKind{HopDNAT, HopSNAT, HopBridge, HopIPVS, HopBridge, HopVeth}},
			{FromContainer, ToAddress, []HopKind{HopVeth, HopBridge, HopDNAT, HopSNAT, HopBridge, HopIPVS, HopBridge, HopVeth}},
			{FromRemote, ToAddress, []HopKind{HopWire, HopDNAT, HopBridge, HopIPVS, HopBridge, HopVeth}},
			{FromRemoteContainer, ToAddress, []HopKind{
				HopVeth, HopBridge, HopSNAT, HopWire, HopDNAT, HopBridge, HopIPVS, HopBridge, HopVeth}},
		},
	},
	{
		Name:          Routed,
		Summary:       "a bridge without NAT: other machines have a route to the container's address",
		Docker:        "-o com.docker.network.bridge.gateway_mode_ipv4=routed",
		GivesUp:       "nothing; peers need a route, and every published container port answers there",
		PortIsolation: true,
		Routes: []Route{
			{FromHost, ToContainer, []HopKind{HopBridge, HopVeth}},
			{FromContainer, ToContainer, []HopKind{HopVeth, HopBridge, HopBridge, HopVeth}},
			{FromRemote, ToContainer, []HopKind{HopWire, HopBridge, HopVeth}},
			{FromRemoteContainer, ToContainer, []HopKind{HopVeth, HopBridge, HopWire, HopBridge, HopVeth}},
		},
	},
	{
		Name:          Link,
		Summary:       "the default bridge with containers kept apart, and one pair and port let through",
		Docker:        "--link NAME with --icc=false (deprecated)",
		GivesUp:       "nothing; deprecated",
		PortIsolation: true,
		Routes: []Route{
			{FromContainer, ToContainer, []HopKind{HopVeth, HopAccept, HopBridge, HopVeth}},
		},
	},
	{
		Name:          Pipework,
		Summary:       "a veth pair on a bridge that the machine's own network card is a port of",
		Docker:        "pipework BRIDGE CONTAINER ADDRESS",
		GivesUp:       "nothing; the container is a machine on the LAN, behind no rule of Docker's",
		PortIsolation: true,
		Routes: []Route{
			{FromHost, ToContainer, []HopKind{HopBridge, HopVeth}},
			{FromContainer, ToContainer, []HopKind{HopVeth, HopBridge, HopVeth}},
			{FromRemote, ToContainer, []HopKind{HopWire, HopBridge, HopVeth}},
			{FromRemoteContainer, ToContainer, []HopKind{HopVeth, HopBridge, HopWire, HopBridge, HopVeth}},
		},
	},
	{
		Name:          MacvlanBridge,
		Summary:       "a sub-interface of the network card with a MAC address of its own; siblings talk directly",
		Docker:        "--driver macvlan (also pipework INTERFACE CONTAINER ADDRESS)",
		GivesUp:       "nothing; the container is a machine on the LAN, and the card must be promiscuous",
		PortIsolation: true,
		Usual:         true,
		Routes: []Route{
			{FromContainer, ToContainer, []HopKind{HopMacvlan, HopMacvlan}},
			{FromRemote, ToContainer, []HopKind{HopWire, HopMacvlan}},
			{FromRemoteContainer, ToContainer, []HopKind{HopMacvlan, HopWire, HopMacvlan}},
		},
		Apart: []Apart{subInterface("macvlan", FromContainer)},
	},
	{
		Name:          MacvlanPrivate,
		Summary:       "macvlan whose siblings cannot talk to each other",
		Docker:        "--driver macvlan -o macvlan_mode=private",
		GivesUp:       "nothing; the container is a machine on the LAN, and the card must be promiscuous",
		PortIsolation: true,
		Routes: []Route{
			{FromRemote, ToContainer, []HopKind{HopWire, HopMacvlan}},
			{FromRemoteContainer, ToContainer, []HopKind{HopMacvlan, HopWire, HopMacvlan}},
		},
		Apart: []Apart{subInterface("macvlan", FromRemote), {From: FromContainer,
			Why:    "private is the macvlan mode in which containers on one card cannot reach each other",
			Around: "macvlan-bridge"}},
	},
	{
		Name:          MacvlanVEPA,
		Summary:       "macvlan whose siblings talk by way of the switch, which must reflect",
		Docker:        "--driver macvlan -o macvlan_mode=vepa",
		GivesUp:       "nothing; the container is a machine on the LAN, and the card must be promiscuous",
		PortIsolation: true,
		Routes: []Route{
			{FromContainer, ToContainer, []HopKind{HopMacvlan, HopWire, HopMacvlan}},
			{FromRemote, ToContainer, []HopKind{HopWire, HopMacvlan}},
			{FromRemoteContainer, ToContainer, []HopKind{HopMacvlan, HopWire, HopMacvlan}},
		},
		Apart: []Apart{subInterface("macvlan", FromContainer)},
	},
	{
		Name:          MacvlanPassthru,
		Summary:       "macvlan that gives the whole network card to one container",
		Docker:        "--driver macvlan -o macvlan_mode=passthru",
		GivesUp:       "nothing; no other container can use the card",
		PortIsolation: true,
		Routes: []Route{
			{FromRemote, ToContainer, []HopKind{HopWire, HopMacvlan}},
			{FromRemoteContainer, ToContainer, []HopKind{HopMacvlan, HopWire, HopMacvlan}},
		},
		Apart: []Apart{subInterface("macvlan", FromRemote), {From: FromContainer,
			Why:    "passthru gives the card to one container, so there is no second one on it",
			Around: "macvlan-bridge"}},
	},
	ipvlan(IPvlanL2, "l2", "a sub-interface of the network card that shares its MAC address",
		"nothing; the container is a machine on the LAN with the machine's own MAC address"),
	ipvlan(IPvlanL3, "l3", "ipvlan that routes: no broadcast, and other machines need a route",
		"nothing; peers need a route, and every container port answers there"),
	ipvlan(IPvlanL3S, "l3s", "ipvlan that routes and lets what it receives cross the machine's rules",
		"nothing; peers need a route, and every container port answers there"),
	{
		Name:          OVS,
		Summary:       "a veth pair on an Open vSwitch bridge that the machine's own network card is a port of",
		Docker:        "ovs-docker or pipework with an Open vSwitch bridge",
		GivesUp:       "nothing; the container is a machine on the LAN, behind no rule of Docker's",
		PortIsolation: true,
		Routes: []Route{
			{FromHost, ToContainer, []HopKind{HopOVS, HopVeth}},
			{FromContainer, ToContainer, []HopKind{HopVeth, HopOVS, HopVeth}},
			{FromRemote, ToContainer, []HopKind{HopWire, HopOVS, HopVeth}},
			{FromRemoteContainer, ToContainer, []HopKind{HopVeth, HopOVS, HopWire, HopOVS, HopVeth}},
		},
	},
	{
		Name:          Overlay,
		Summary:       "one network across machines: a bridge on each, joined by a VXLAN tunnel",
		Docker:        "--driver overlay (Swarm)",
		GivesUp:       "nothing",
		PortIsolation: true,
		Usual:         true,
		Routes: []Route{
			{FromContainer, ToContainer, []HopKind{HopVeth, HopBridge, HopVeth}},
			{FromRemoteContainer, ToContainer, []HopKind{HopVeth, HopBridge, HopVXLAN, HopWire, HopVXLAN, HopBridge, HopVeth}},
		},
		Apart: overlayApart,
	},
	{
		Name:          OverlayEncrypted,
		Summary:       "overlay whose tunnel is encrypted by IPsec (ESP, AES-GCM)",
		Docker:        "--driver overlay --opt encrypted (Swarm)",
		GivesUp:       "nothing",
		PortIsolation: true,
		Routes: []Route{
			{FromRemoteContainer, ToContainer, []HopKind{
				HopVeth, HopBridge, HopVXLAN, HopESP, HopWire, HopESP, HopVXLAN, HopBridge, HopVeth}},
		},
		Apart: overlayApart,
	},
	{
		Name:          Netkit,
		Summary:       "a netkit pair instead of the veth pair, routed",
		Docker:        "none (Cilium's replacement for veth; Linux 6.7)",
		GivesUp:       "nothing; peers need a route",
		PortIsolation: true,
		Routes: []Route{
			{FromHost, ToContainer, []HopKind{HopNetkit}},
			{FromContainer, ToContainer, []HopKind{HopNetkit, HopNetkit}},
			{FromRemote, ToContainer, []HopKind{HopWire, HopNetkit}},
		},
	},
}

var bridged = []Route{
	{FromHost, ToContainer, []HopKind{HopBridge, HopVeth}},
	{FromContainer, ToContainer, []HopKind{HopVeth, HopBridge, HopVeth}},
}

func ipvlan(name Name, kind, summary, givesUp string) Mode {
	return Mode{
		Name:          name,
		Summary:       summary,
		Docker:        "--driver ipvlan -o ipvlan_mode=" + kind,
		GivesUp:       givesUp,
		PortIsolation: true,
		Routes: []Route{
			{FromContainer, ToContainer, []HopKind{HopIPvlan, HopIPvlan}},
			{FromRemote, ToContainer, []HopKind{HopWire, HopIPvlan}},
			{FromRemoteContainer, ToContainer, []HopKind{HopIPvlan, HopWire, HopIPvlan}},
		},
		Apart: []Apart{subInterface("ipvlan", FromContainer)},
	}
}

// unrouted says why other machines cannot reach a container's address.
func unrouted(from Placement) Apart {
	return Apart{From: from,
		Why:    "other machines have no route to a container's address, and Docker's rules would drop what came",
		Around: "publish-nat, publish-proxy or routed"}
}

// subInterface says why the machine cannot talk to its own sub-interfaces.
func subInterface(kind string, instead Placement) Apart {
	return Apart{
		From:   FromHost,
		Why:    "the kernel keeps a network card and its " + kind + " sub-interfaces apart, so the machine cannot reach its own containers",
		Around: "--from " + string(instead) + "; on a real machine, make one more sub-interface of the card for the host itself",
	}
}

var overlayApart = []Apart{
	{From: FromHost, Why: "an overlay's network is in a namespace of its own, which the machine is no part of",
		Around: "--from container, or publish the port"},
	{From: FromRemote, Why: "an overlay's network is in a namespace of its own, which no machine is a part of",
		Around: "--from remote-container, or publish the port"},
}
