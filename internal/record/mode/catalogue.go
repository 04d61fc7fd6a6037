package mode

// A new mode is a name here and a row below.
const (
	Native         Name = "native"
	Host           Name = "host"
	Shared         Name = "shared"
	Bridge         Name = "bridge"
	BridgeDefault  Name = "bridge-default"
	Publish        Name = "publish"
	PublishDefault Name = "publish-default"
	PublishNAT     Name = "publish-nat"
	PublishProxy   Name = "publish-proxy"
	Fast           Name = "fast"
	FastLinks      Name = "fast+links"
	PublishIngress Name = "publish-ingress"

	Pasta              Name = "pasta"
	Slirp4netns        Name = "slirp4netns"
	GvisorTapVsock     Name = "gvisor-tap-vsock"
	RootlessPort       Name = "rootlessport"
	RootlessPublishTap Name = "rootless-publish-tap"
	RootlessPublishNAT Name = "rootless-publish-nat"
	RootlessPublish    Name = "rootless-publish"

	Routed           Name = "routed"
	Link             Name = "link"
	NATAlias         Name = "nat-alias"
	Pipework         Name = "pipework"
	MacvlanBridge    Name = "macvlan-bridge"
	MacvlanPrivate   Name = "macvlan-private"
	MacvlanVEPA      Name = "macvlan-vepa"
	MacvlanPassthru  Name = "macvlan-passthru"
	IPvlanL2         Name = "ipvlan-l2"
	IPvlanL3         Name = "ipvlan-l3"
	IPvlanL3S        Name = "ipvlan-l3s"
	OVS              Name = "ovs"
	Overlay          Name = "overlay"
	OverlayEncrypted Name = "overlay-encrypted"
	Netkit           Name = "netkit"

	Pod           Name = "pod"
	HostPort      Name = "hostport"
	ClusterIP     Name = "clusterip"
	NodePort      Name = "nodeport"
	NodePortLocal Name = "nodeport-local"
	Headless      Name = "headless"
)

// catalogue lists the modes in display order, from the fewest parts to the most. A mode that
// resembles two others is above the one that it shares more with on a ladder.
//
// Docker's modes have the hops of Docker Engine's own rules; see internal/paths/lab for the
// versions.
var catalogue = []Mode{
	{
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
	},
	{
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
	},
	{
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
	},
	{
		Name:          Bridge,
		Summary:       "a veth pair on a bridge, dialled by the container's own address",
		Docker:        "--network NAME (user-defined bridge)",
		Short:         "--network NAME",
		Caveat:       "the address is not reachable from other machines",
		Usual:         true,
		Routes:        bridged,
		Apart:         []Apart{unrouted(FromRemote), unrouted(FromRemoteContainer)},
		Rungs: []Rung{
			{From: FromHost, To: ToContainer, Below: BridgeDefault, Part: dnsRules, Unseen: true},
			{From: FromContainer, To: ToContainer, Below: BridgeDefault, Part: dnsRules,
				Unseen: true},
			{From: FromContainer, To: ToOutside, Below: BridgeDefault, Part: dnsRules,
				Unseen: true},
		},
	},
	{
		Name:          BridgeDefault,
		Summary:       "the same on the default bridge, whose containers have no DNS server of Docker's and no rules for it",
		Docker:        "no --network (the default bridge)",
		Short:         "default network",
		Caveat:       "the address is not reachable from other machines, and containers do not find each other by name",
		Routes:        bridged,
		Apart:         []Apart{unrouted(FromRemote), unrouted(FromRemoteContainer)},
		Rungs: []Rung{
			{From: FromHost, To: ToContainer, Below: Host,
				Part: "a network namespace of its own, with a veth pair on a bridge"},
			{From: FromContainer, To: ToContainer, Below: Shared,
				Part: "a network namespace for each, without these rules, joined by veth pairs and a bridge"},
			{From: FromContainer, To: ToOutside, Below: Pipework, Part: natOut},
		},
	},
	{
		Name:          Publish,
		Summary:       "a published port as the engine has it: docker-proxy's or NAT's, by where the client is and what it dials",
		Docker:        "-p PORT:PORT --network NAME (user-defined bridge)",
		Short:         "-p",
		Caveat:       publishing,
		PerPort:       true,
		Routes:        published,
		Otherwise:     withoutProxy,
		Podman:        rewrittenTwice,
		Rungs: []Rung{
			{From: FromHost, To: ToAddress, Below: Bridge,
				Part: "NAT of a port published at the machine's own address"},
			{From: FromContainer, To: ToAddress, Below: Bridge,
				Part: "docker-proxy between container and published port"},
			{From: FromRemote, To: ToAddress, Below: PublishDefault, Part: dnsRules, Unseen: true},
			{From: FromRemoteContainer, To: ToAddress, Below: PublishDefault, Part: dnsRules,
				Unseen: true},
		},
	},
	{
		Name:          PublishDefault,
		Summary:       "a published port as the engine has it, of a container on the default bridge",
		Docker:        "-p PORT:PORT, no --network (the default bridge)",
		Short:         "-p (docker0)",
		Caveat:       publishing,
		PerPort:       true,
		Routes:        published,
		Otherwise:     withoutProxy,
		Podman:        rewrittenTwice,
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
	},
	{
		Name:          PublishNAT,
		Summary:       "a published port, rewritten by the kernel's NAT",
		Docker:        `-p PORT:PORT with "userland-proxy": false`,
		Short:         "-p (NAT)",
		Usual:         true,
		PerPort:       true,
		Routes: bothFamilies([]Route{
			{FromHost, ToLoopback, []HopKind{HopDNAT, HopSNAT, HopBridge, HopVeth}},
			{FromHost, ToAddress, []HopKind{HopDNAT, HopSNAT, HopBridge, HopVeth}},
			{FromContainer, ToAddress, []HopKind{HopVeth, HopDNAT, HopBridge, HopVeth}},
			{FromRemote, ToAddress, []HopKind{HopWire, HopDNAT, HopBridge, HopVeth}},
			{FromRemoteContainer, ToAddress, []HopKind{
				HopVeth, HopBridge, HopSNAT, HopWire, HopDNAT, HopBridge, HopVeth}},
		}),
		Otherwise: []Route{{FromHost, ToAddress, []HopKind{HopDNAT, HopBridge, HopVeth}}},
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
	},
	{
		Name:          PublishProxy,
		Summary:       "a published port, relayed by the docker-proxy process",
		Docker:        `-p PORT:PORT (default "userland-proxy": true)`,
		Short:         "-p (proxy)",
		Caveat:       "the server sees the bridge's address, not the client's",
		Usual:         true,
		PerPort:       true,
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
	},
	{
		Name:          Fast,
		Summary:       "a published port on a loopback address, past whose docker-proxy eBPF leads local clients",
		Docker:        "-p PORT:PORT and toll fast on",
		Short:         "-p (toll fast)",
		PerPort:       true,
		TCPOnly:       true,
		Routes: []Route{
			{FromHost, ToLoopback, []HopKind{HopBridge, HopVeth}},
			{FromHost, ToLoopback6, []HopKind{HopBridge, HopVeth}},
		},
		Rungs: []Rung{
			{From: FromHost, To: ToLoopback, Below: Bridge,
				Part:   "a published address that is rewritten when the client connects",
				Unseen: true},
		},
	},
	{
		Name:          FastLinks,
		Summary:       "the same, with larger packets on the bridge and the host's ends of containers' links (BIG TCP)",
		Docker:        "-p PORT:PORT and toll fast on --parts connect,links",
		Short:         "-p (fast+links)",
		PerPort:       true,
		TCPOnly:       true,
		Routes: []Route{
			{FromHost, ToLoopback, []HopKind{HopBridge, HopVeth}},
			{FromHost, ToLoopback6, []HopKind{HopBridge, HopVeth}},
		},
		Rungs: []Rung{
			{From: FromHost, To: ToLoopback, Below: Fast,
				Part: "larger packets on the bridge and the host's ends of containers' links (BIG TCP)", Unseen: true},
		},
	},
	pasta, slirp4netns, gvisorTapVsock, rootlessPort, rootlessPublishTap, rootlessPublishNAT,
	rootlessPublish,
	{
		Name:          PublishIngress,
		Summary:       "a port of Swarm's routing mesh: any node takes it, IPVS chooses the task",
		Docker:        "--publish mode=ingress (Swarm)",
		Short:         "-p (ingress)",
		No6:           "Swarm's routing mesh is over IPv4 only",
		Caveat:       "the server sees the mesh's address, not the client's",
		PerPort:       true,
		Rare:          true,
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
	},
	{
		Name:          Routed,
		Summary:       "a bridge without NAT: other machines have a route to the container's address",
		Docker:        "-o com.docker.network.bridge.gateway_mode_ipv4=routed",
		Short:         "routed network",
		Caveat:       "peers need a route, and every published container port answers there",
		PerPort:       true,
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
	},
	{
		Name:          Link,
		Summary:       "the default bridge with containers kept apart, and one pair and port let through",
		Docker:        "--link NAME with --icc=false (deprecated)",
		Short:         "--link",
		No6:           "Docker writes the rules of a link for IPv4 only",
		Caveat:       "deprecated",
		PerPort:       true,
		Routes: []Route{
			{FromContainer, ToContainer, []HopKind{HopVeth, HopAccept, HopBridge, HopVeth}},
		},
		Rungs: []Rung{
			{From: FromContainer, To: ToContainer, Below: BridgeDefault,
				Part: "the packet filter for bridged frames, with a rule for the linked pair"},
		},
	},
	{
		Name:          NATAlias,
		Summary:       "an address of the LAN for each container: a macvlan alias of the card, with 1:1 NAT",
		Docker:        "none (ip link add type macvlan, DNAT and SNAT by hand)",
		Short:         "1:1 NAT",
		No6:           "the aliases and rules that it is made of are for IPv4",
		Caveat:       "every container port answers at the alias",
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
	},
	{
		Name:          Pipework,
		Summary:       "a veth pair on a bridge that the machine's own network card is a port of",
		Docker:        "pipework BRIDGE CONTAINER ADDRESS",
		Short:         "pipework",
		Caveat:       "the container is a machine on the LAN, behind no rule of Docker's",
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
	},
	macvlanBridge, macvlanPrivate, macvlanVEPA, macvlanPassthru, ipvlanL2, ipvlanL3, ipvlanL3S,
	{
		Name:          OVS,
		Summary:       "a veth pair on an Open vSwitch bridge that the machine's own network card is a port of",
		Docker:        "ovs-docker or pipework with an Open vSwitch bridge",
		Short:         "Open vSwitch",
		Caveat:       "the container is a machine on the LAN, behind no rule of Docker's",
		Rare:          true,
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
	},
	{
		Name:          Overlay,
		Summary:       "one network across machines: a bridge on each, joined by a VXLAN tunnel",
		Docker:        "--driver overlay (Swarm)",
		Short:         "overlay",
		Usual:         true,
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
	},
	{
		Name:          OverlayEncrypted,
		Summary:       "overlay whose tunnel is encrypted by IPsec (ESP, AES-GCM)",
		Docker:        "--driver overlay --opt encrypted (Swarm)",
		Short:         "overlay (encrypted)",
		Rare:          true,
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
	},
	{
		Name:          Netkit,
		Summary:       "a netkit pair instead of the veth pair, routed",
		Docker:        "none (Cilium's replacement for veth; Linux 6.7)",
		Short:         "netkit",
		Caveat:       "peers need a route",
		Rare:          true,
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
	},
	pod, headless, clusterIP, hostPort, nodePortLocal, nodePort,
}
