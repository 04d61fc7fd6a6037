package mode

import (
	"slices"
	"strings"
)

// HopKind is the class of a hop.
type HopKind string

// Hops whose counters can prove a path.
const (
	HopLoopback HopKind = "lo"
	HopWire     HopKind = "wire" // between the two machines
	HopVeth     HopKind = "veth" // a container's
	HopBridge   HopKind = "bridge"
	HopDNAT     HopKind = "DNAT"   // publishes the port
	HopSNAT     HopKind = "MASQ"   // rewrites the client's address
	HopProxy    HopKind = "proxy"  // docker-proxy, or toll's own with its algorithm
	HopIPVS     HopKind = "IPVS"   // the kernel's load balancer
	HopAccept   HopKind = "ACCEPT" // lets containers reach each other
	HopMacvlan  HopKind = "macvlan"
	HopIPvlan   HopKind = "ipvlan"
	HopOVS      HopKind = "ovs" // ports of an Open vSwitch bridge
	HopVXLAN    HopKind = "vxlan"
	HopESP      HopKind = "ESP" // transforms (xfrm states) of one machine
	HopNetkit   HopKind = "netkit"
	HopTunnel   HopKind = "tunnel" // between nodes: Geneve, IPIP, WireGuard
	HopTap      HopKind = "tap"    // a container's, whose other end is a process

	// Relays of rootless engines, which have sockets in two network namespaces or hold a tap.
	HopRootlessKit  HopKind = "rootlesskit"
	HopRootlessPort HopKind = "rootlessport"
	HopPasta        HopKind = "pasta"
	HopSlirp        HopKind = "slirp4netns"
	HopGvisor       HopKind = "gvisor-tap-vsock"
)

// Relays reports whether the hop is a process that copies what it receives.
func (k HopKind) Relays() bool {
	return slices.Contains([]HopKind{HopProxy, HopRootlessKit, HopRootlessPort, HopPasta, HopSlirp,
		HopGvisor}, k)
}

// Rule reports whether the hop is a rule of the packet filter.
func (k HopKind) Rule() bool { return k == HopDNAT || k == HopSNAT || k == HopAccept }

// OfContainer reports whether a container can have such a device. A tap device is a container's, or
// a rootless engine's.
func (k HopKind) OfContainer() bool {
	return slices.Contains([]HopKind{HopVeth, HopNetkit, HopTap, HopMacvlan, HopIPvlan}, k)
}

// Route is a route to a mode's server, or out of a mode's container.
type Route struct {
	From Placement
	To   Target
	Hops []HopKind // from client to server
}

// OnRequest reports whether the route is measured only if IPv6 is requested, because it resembles a
// route over IPv4, or because most clients do not dial its address.
func (r Route) OnRequest() bool {
	return r.To.Six() && (r.To != ToLoopback6 || len(r.Hops) == 1 ||
		slices.Contains(r.Hops, HopPasta) || slices.Contains(r.Hops, HopRootlessKit) ||
		slices.Contains(r.Hops, HopRootlessPort))
}

// String returns the hops as tables show them.
func (r Route) String() string {
	parts := make([]string, len(r.Hops))
	for i, h := range r.Hops {
		parts[i] = string(h)
	}
	return strings.Join(parts, "·")
}

// bothFamilies returns the routes over IPv4, then the same over IPv6. It omits routes from ::1 with
// NAT, because the kernel lets no packet from there leave the machine.
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
