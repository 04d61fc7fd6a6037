package mode

import "slices"

const (
	inNamespace     = "a network namespace of its own, "
	rootlessKit     = "rootlesskit, a proxy that takes the port on the machine and dials in the engine's network"
	bridgeBehindTap = "NAT, a bridge and a veth pair in the engine's network, behind the tap device"
	networkOfUser   = "--network NAME (rootless)"
	// NoRootlessOut6 describes Docker Engine 28.5.2 with slirp4netns 1.2.0. With a default route
	// added in the engine's network, NAT, the tap device and slirp4netns carry IPv6 as they do
	// IPv4.
	NoRootlessOut6 = "rootless Docker's network has no IPv6 route to other machines: RootlessKit adds none by default, and with its --ipv6 the kernel drops the one that slirp4netns announces as soon as dockerd makes a network with IPv6"
	slirpOut       = "slirp4netns and a tap device, which join the engine's network to the machine"
)

// throughSlirp is the outward route of a container of rootless Docker.
var throughSlirp = throughDriver(HopVeth, HopBridge, HopSNAT)[0]

// throughDriver returns rootless Docker's outward routes, one for each network driver of
// RootlessKit: the given hops, the tap device, the driver and the wire.
func throughDriver(before ...HopKind) (out []Route) {
	for _, driver := range []HopKind{HopSlirp, HopPasta, HopGvisor} {
		out = append(out, Route{FromContainer, ToOutside,
			slices.Concat(before, []HopKind{HopTap, driver, HopWire})})
	}
	return out
}

var pasta = Mode{
	Name:     Pasta,
	Summary:  "pasta relays between the machine and the container: it splices connections to a loopback address, others cross a tap device",
	Docker:   "rootless podman run -p PORT:PORT (default)",
	Short:    "-p (pasta)",
	Out:      "--network pasta",
	Caveat:   "the container cannot reach the machine by the machine's own address",
	PerPort:  true,
	Rootless: true,
	Routes: append(bothFamilies([]Route{
		{FromHost, ToAddress, []HopKind{HopLoopback, HopPasta, HopTap}},
		{FromRemote, ToAddress, []HopKind{HopWire, HopPasta, HopTap}},
		{FromContainer, ToOutside, []HopKind{HopTap, HopPasta, HopWire}},
	}),
		Route{FromHost, ToLoopback, []HopKind{HopLoopback, HopPasta, HopLoopback}},
		Route{FromHost, ToLoopback6, []HopKind{HopLoopback, HopPasta, HopLoopback}}),
	Rungs: []Rung{
		{From: FromHost, To: ToLoopback, Below: Host,
			Part: inNamespace + "into whose loopback pasta splices"},
		{From: FromRemote, To: ToAddress, Below: Host,
			Part: inNamespace + "behind pasta and a tap device"},
		{From: FromContainer, To: ToOutside, Below: Host,
			Part: inNamespace + "behind pasta and a tap device"},
	},
}

var slirp4netns = behindTap(Slirp4netns, HopSlirp, "slirp4netns",
	"--network slirp4netns:port_handler=slirp4netns", "-p (slirp4netns)",
	"--network slirp4netns",
	"where the client dials 127.0.0.1")

var gvisorTapVsock = behindTap(GvisorTapVsock, HopGvisor, "gvisor-tap-vsock",
	"podman machine; port driver gvisor-tap-vsock", "-p (gvisor)",
	"gvisor-tap-vsock",
	"instead of the client's")

// behindTap returns a mode in which program relays through a tap device. hides completes the caveat
// that the server sees the program's address.
func behindTap(name Name, hop HopKind, program, docker, short, out, hides string) Mode {
	part := inNamespace + "behind " + program + " and a tap device"
	return Mode{
		Name:     name,
		Summary:  program + " relays between the machine's sockets and a TCP/IP stack of its own, which a tap device joins to the container",
		Docker:   docker,
		Short:    short,
		Out:      out,
		No6:      program + " publishes ports over IPv4 only",
		Caveat:   "the server sees " + program + "'s address " + hides,
		PerPort:  true,
		Rootless: true,
		Routes: []Route{
			{FromHost, ToLoopback, []HopKind{HopLoopback, hop, HopTap}},
			{FromHost, ToAddress, []HopKind{HopLoopback, hop, HopTap}},
			{FromRemote, ToAddress, []HopKind{HopWire, hop, HopTap}},
			{FromContainer, ToOutside, []HopKind{HopTap, hop, HopWire}},
		},
		Rungs: []Rung{
			{From: FromHost, To: ToLoopback, Below: Host, Part: part},
			{From: FromRemote, To: ToAddress, Below: Host, Part: part},
			{From: FromContainer, To: ToOutside, Below: Host, Part: part},
		},
	}
}

var rootlessPort = Mode{
	Name:     RootlessPort,
	Summary:  "rootlessport relays from the machine to the container's loopback, past the network's bridge",
	Docker:   "rootless podman run -p PORT:PORT --network NAME",
	Short:    "-p (rootlessport)",
	Out:      networkOfUser,
	Caveat:   "the server sees an address of the container's, not the client's",
	PerPort:  true,
	Rootless: true,
	Routes: []Route{
		{FromHost, ToLoopback, []HopKind{HopLoopback, HopRootlessPort, HopLoopback}},
		{FromHost, ToLoopback6, []HopKind{HopLoopback, HopRootlessPort, HopLoopback}},
		{FromHost, ToAddress, []HopKind{HopLoopback, HopRootlessPort, HopLoopback}},
		{FromHost, ToAddress6, []HopKind{HopLoopback, HopRootlessPort, HopLoopback}},
		{FromRemote, ToAddress, []HopKind{HopWire, HopRootlessPort, HopLoopback}},
		{FromRemote, ToAddress6, []HopKind{HopWire, HopRootlessPort, HopLoopback}},
		{FromContainer, ToOutside,
			[]HopKind{HopVeth, HopBridge, HopSNAT, HopTap, HopPasta, HopWire}},
	},
	Otherwise: throughDriver(HopVeth, HopBridge, HopSNAT)[:1], // as containers.conf chooses
	Rungs: []Rung{
		{From: FromHost, To: ToLoopback, Below: Host,
			Part: inNamespace + "into whose loopback the proxy rootlessport relays"},
		{From: FromRemote, To: ToAddress, Below: Host,
			Part: inNamespace + "into whose loopback the proxy rootlessport relays"},
		{From: FromContainer, To: ToOutside, Below: Bridge,
			Part: "pasta and a tap device, which join the engine's network to the machine"},
	},
}

var rootlessPublishTap = Mode{
	Name:     RootlessPublishTap,
	Summary:  "a published port of rootless Docker with the port driver slirp4netns: slirp4netns sends it over the tap device, and NAT rewrites it in the engine's network",
	Docker:   "-p PORT:PORT, rootless, port driver slirp4netns",
	Short:    "-p (rootless, tap)",
	Out:      networkOfUser,
	Caveat:   "the server sees slirp4netns's address where the client is on the machine",
	PerPort:  true,
	Rootless: true,
	NoOut6:   NoRootlessOut6,
	No6:      "slirp4netns publishes ports over IPv4 only",
	Routes: []Route{
		{FromHost, ToLoopback, inByTap(HopLoopback, HopSlirp)},
		{FromHost, ToAddress, inByTap(HopLoopback, HopSlirp)},
		{FromRemote, ToAddress, inByTap(HopWire, HopSlirp)},
		throughSlirp,
	},
	Decides: "RootlessKit's port driver",
	Otherwise: append([]Route{
		{FromHost, ToLoopback, inByTap(HopLoopback, HopGvisor)},
		{FromHost, ToAddress, inByTap(HopLoopback, HopGvisor)},
	}, throughDriver(HopVeth, HopBridge, HopSNAT)[1:]...),
	Rungs: []Rung{
		{From: FromHost, To: ToLoopback, Below: Slirp4netns, Part: bridgeBehindTap},
		{From: FromRemote, To: ToAddress, Below: Slirp4netns, Part: bridgeBehindTap},
		{From: FromContainer, To: ToOutside, Below: Bridge, Part: slirpOut},
	},
}

func inByTap(first, relay HopKind) []HopKind {
	return []HopKind{first, relay, HopTap, HopDNAT, HopBridge, HopVeth}
}

var rootlessPublishNAT = Mode{
	Name:     RootlessPublishNAT,
	Summary:  "a published port of rootless Docker: rootlesskit accepts connections, and NAT redirects them in the engine's network",
	Docker:   `-p PORT:PORT, rootless, "userland-proxy": false`,
	Short:    "-p (rootless, NAT)",
	Out:      networkOfUser,
	Caveat:   "from 127.0.0.1 the server sees the bridge's address, not the client's",
	PerPort:  true,
	Rootless: true,
	NoOut6:   NoRootlessOut6,
	No6:      "rootless Docker publishes no port over IPv6 without docker-proxy",
	Routes: []Route{
		{FromHost, ToLoopback,
			[]HopKind{HopLoopback, HopRootlessKit, HopDNAT, HopSNAT, HopBridge, HopVeth}},
		{FromHost, ToAddress, []HopKind{HopLoopback, HopRootlessKit, HopDNAT, HopBridge, HopVeth}},
		{FromRemote, ToAddress, []HopKind{HopWire, HopRootlessKit, HopDNAT, HopBridge, HopVeth}},
		throughSlirp,
	},
	// Before version 3, RootlessKit always dials from a loopback address.
	Decides: "RootlessKit's version (3 and later, or before)",
	Otherwise: append([]Route{
		{FromHost, ToAddress,
			[]HopKind{HopLoopback, HopRootlessKit, HopDNAT, HopSNAT, HopBridge, HopVeth}},
		{FromRemote, ToAddress,
			[]HopKind{HopWire, HopRootlessKit, HopDNAT, HopSNAT, HopBridge, HopVeth}},
	}, throughDriver(HopVeth, HopBridge, HopSNAT)[1:]...),
	Rungs: []Rung{
		{From: FromHost, To: ToLoopback, Below: PublishNAT, Part: rootlessKit},
		{From: FromRemote, To: ToAddress, Below: PublishNAT, Part: rootlessKit},
		{From: FromContainer, To: ToOutside, Below: Bridge, Part: slirpOut},
	},
}

var rootlessPublish = Mode{
	Name:     RootlessPublish,
	Summary:  "a published port of rootless Docker, relayed by rootlesskit and then, in the engine's network, by docker-proxy",
	Docker:   "-p PORT:PORT, rootless (default)",
	Short:    "-p (rootless)",
	Out:      networkOfUser,
	Caveat:   "the server sees the bridge's address, not the client's",
	PerPort:  true,
	Rootless: true,
	NoOut6:   NoRootlessOut6,
	Routes: []Route{
		{FromHost, ToLoopback, []HopKind{
			HopLoopback, HopRootlessKit, HopLoopback, HopProxy, HopBridge, HopVeth}},
		{FromHost, ToLoopback6, []HopKind{
			HopLoopback, HopRootlessKit, HopLoopback, HopProxy, HopBridge, HopVeth}},
		{FromHost, ToAddress, []HopKind{
			HopLoopback, HopRootlessKit, HopLoopback, HopProxy, HopBridge, HopVeth}},
		{FromRemote, ToAddress, []HopKind{
			HopWire, HopRootlessKit, HopLoopback, HopProxy, HopBridge, HopVeth}},
		throughSlirp,
	},
	Otherwise: throughDriver(HopVeth, HopBridge, HopSNAT)[1:],
	Rungs: []Rung{
		{From: FromHost, To: ToLoopback, Below: PublishProxy, Part: rootlessKit},
		{From: FromRemote, To: ToAddress, Below: PublishProxy, Part: rootlessKit},
		{From: FromContainer, To: ToOutside, Below: Bridge, Part: slirpOut},
	},
}
