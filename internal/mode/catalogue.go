package mode

// Catalogue lists the modes in the order in which they are shown: from the
// one without any container to the one with the most parts.
//
// The hops of publish-nat and publish-proxy are those of Docker Engine's own
// rules; see internal/lab for the version that they were read from.
var Catalogue = []Mode{
	{
		Name:    Native,
		Summary: "no container: the server is a process of the machine",
		Docker:  "no Docker on the machine",
		GivesUp: "everything: there is no container",
		Routes: []Route{
			{FromHost, ToLoopback, []HopKind{HopLoopback}},
			{FromRemote, ToAddress, []HopKind{HopWire}},
		},
	},
	{
		Name:      Host,
		Summary:   "the container uses the machine's own network",
		Docker:    "--network host",
		GivesUp:   "port isolation; the machine's sockets are visible in the container",
		Published: true,
		Routes: []Route{
			{FromHost, ToLoopback, []HopKind{HopLoopback}},
			{FromContainer, ToLoopback, []HopKind{HopLoopback}},
			{FromRemote, ToAddress, []HopKind{HopWire}},
		},
	},
	{
		Name:    Shared,
		Summary: "client and server containers in one network namespace, as in a pod",
		Docker:  "--network container:NAME",
		GivesUp: "the isolation between the two containers",
		Routes: []Route{
			{FromContainer, ToLoopback, []HopKind{HopLoopback}},
		},
	},
	{
		Name:          Bridge,
		Summary:       "a veth pair on a bridge, dialled by the container's own address",
		Docker:        "--network NAME (user-defined or default bridge)",
		GivesUp:       "nothing; the address is not reachable from other machines",
		PortIsolation: true,
		Routes: []Route{
			{FromHost, ToContainer, []HopKind{HopBridge, HopVeth}},
			{FromContainer, ToContainer, []HopKind{HopVeth, HopBridge, HopVeth}},
		},
	},
	{
		Name:          PublishNAT,
		Summary:       "a published port, rewritten by the kernel's NAT",
		Docker:        `-p PORT:PORT with "userland-proxy": false`,
		GivesUp:       "nothing",
		PortIsolation: true,
		Published:     true,
		Routes: []Route{
			{FromHost, ToLoopback, []HopKind{HopDNAT, HopSNAT, HopBridge, HopVeth}},
			{FromHost, ToAddress, []HopKind{HopDNAT, HopSNAT, HopBridge, HopVeth}},
			{FromContainer, ToAddress, []HopKind{HopVeth, HopDNAT, HopBridge, HopVeth}},
			{FromRemote, ToAddress, []HopKind{HopWire, HopDNAT, HopBridge, HopVeth}},
		},
	},
	{
		Name:          PublishProxy,
		Summary:       "a published port, relayed by the docker-proxy process",
		Docker:        `-p PORT:PORT (default "userland-proxy": true)`,
		GivesUp:       "nothing; the server sees the bridge's address, not the client's",
		PortIsolation: true,
		Published:     true,
		Routes: []Route{
			{FromHost, ToLoopback, []HopKind{HopLoopback, HopProxy, HopBridge, HopVeth}},
			{FromHost, ToLoopback6, []HopKind{HopLoopback, HopProxy, HopBridge, HopVeth}},
			{FromContainer, ToAddress, []HopKind{HopVeth, HopBridge, HopProxy, HopBridge, HopVeth}},
			{FromRemote, ToAddress, []HopKind{HopWire, HopProxy, HopBridge, HopVeth}},
		},
	},
}
