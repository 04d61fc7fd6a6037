package link

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// SubInterface is a device on top of the network card Parent.
type SubInterface struct {
	Name   string // in its own namespace
	Parent string
	TID    int // the thread in whose namespace it is created
}

func addSubInterface[M any](s SubInterface, kind, mode string, modes map[string]M,
	device func(netlink.LinkAttrs, M) netlink.Link) error {
	m, ok := modes[mode]
	if !ok {
		return fmt.Errorf("add %s %s: unknown mode %q", kind, s.Name, mode)
	}
	return change(s.Parent, "add "+kind+" "+s.Name, func(parent netlink.Link) error {
		a := netlink.NewLinkAttrs()
		a.Name, a.ParentIndex, a.Namespace = s.Name, parent.Attrs().Index, netlink.NsPid(s.TID)
		return netlink.LinkAdd(device(a, m))
	})
}

var macvlanModes = map[string]netlink.MacvlanMode{
	"bridge": netlink.MACVLAN_MODE_BRIDGE, "private": netlink.MACVLAN_MODE_PRIVATE,
	"vepa": netlink.MACVLAN_MODE_VEPA, "passthru": netlink.MACVLAN_MODE_PASSTHRU,
}

// AddMacvlan creates a macvlan device in mode bridge, private, vepa or passthru.
func AddMacvlan(s SubInterface, mode string) error {
	return addSubInterface(s, "macvlan", mode, macvlanModes,
		func(a netlink.LinkAttrs, m netlink.MacvlanMode) netlink.Link {
			return &netlink.Macvlan{LinkAttrs: a, Mode: m}
		})
}

var ipvlanModes = map[string]netlink.IPVlanMode{
	"l2": netlink.IPVLAN_MODE_L2, "l3": netlink.IPVLAN_MODE_L3, "l3s": netlink.IPVLAN_MODE_L3S,
}

// AddIPvlan creates an ipvlan device in mode l2, l3 or l3s.
func AddIPvlan(s SubInterface, mode string) error {
	return addSubInterface(s, "ipvlan", mode, ipvlanModes,
		func(a netlink.LinkAttrs, m netlink.IPVlanMode) netlink.Link {
			return &netlink.IPVlan{LinkAttrs: a, Mode: m}
		})
}

// AddNetkit creates a netkit pair in L3 mode, without Ethernet headers and ARP, whose second end,
// peer, is in the network namespace of thread peerTID.
func AddNetkit(name, peer string, peerTID int) error {
	a := netlink.NewLinkAttrs()
	a.Name = name
	nk := &netlink.Netkit{LinkAttrs: a, Mode: netlink.NETKIT_MODE_L3,
		Policy: netlink.NETKIT_POLICY_FORWARD, PeerPolicy: netlink.NETKIT_POLICY_FORWARD}
	pa := netlink.NewLinkAttrs()
	// without a name it would get the first end's
	pa.Name, pa.Namespace = peer, netlink.NsPid(peerTID)
	nk.SetPeerAttrs(&pa)
	if err := netlink.LinkAdd(nk); err != nil {
		return fmt.Errorf("add netkit %s: %w", name, err)
	}
	return nil
}

// VXLAN is a tunnel device.
type VXLAN struct {
	Name string
	VNI  int
	Port uint16
	MTU  int
	// answer ARP from the neighbour table
	Proxy bool
	// report missing entries to netlink listeners
	L2Miss, L3Miss bool
	Learning       bool
	// checksum in the outer header
	UDPCsum bool
}

// AddVXLAN creates the device. Its outer packets keep using the calling thread's namespace after
// MoveTo.
func AddVXLAN(v VXLAN) error {
	a := netlink.NewLinkAttrs()
	a.Name, a.MTU = v.Name, v.MTU
	err := netlink.LinkAdd(&netlink.Vxlan{LinkAttrs: a, VxlanId: v.VNI, Port: int(v.Port),
		Proxy: v.Proxy, L2miss: v.L2Miss, L3miss: v.L3Miss, Learning: v.Learning,
		UDPCSum: v.UDPCsum})
	if err != nil {
		return fmt.Errorf("add vxlan %s: %w", v.Name, err)
	}
	return nil
}

// MoveTo moves the device to the network namespace of thread tid.
func MoveTo(name string, tid int) error {
	return change(name, "move "+name, func(l netlink.Link) error {
		return netlink.LinkSetNsPid(l, tid)
	})
}

// Rename renames the device, which must be down.
func Rename(name, to string) error {
	return change(name, "rename "+name+" to "+to, func(l netlink.Link) error {
		return netlink.LinkSetName(l, to)
	})
}

// DelAddr removes an address from the device.
func DelAddr(name string, addr netip.Prefix) error {
	return change(name, fmt.Sprintf("take address %s from %s", addr, name),
		func(l netlink.Link) error {
			return netlink.AddrDel(l, &netlink.Addr{IPNet: ipNet(addr)})
		})
}

// SetMTU sets the device's MTU in bytes.
func SetMTU(name string, mtu int) error {
	return change(name, fmt.Sprintf("set MTU %d on %s", mtu, name), func(l netlink.Link) error {
		return netlink.LinkSetMTU(l, mtu)
	})
}

// SetAddress sets the device's MAC address.
func SetAddress(name string, mac net.HardwareAddr) error {
	return change(name, fmt.Sprintf("set address %s on %s", mac, name), func(l netlink.Link) error {
		return netlink.LinkSetHardwareAddr(l, mac)
	})
}

// AddRoute routes the prefix through gateway.
func AddRoute(to netip.Prefix, gateway netip.Addr) error {
	r := &netlink.Route{Dst: ipNet(to), Gw: gateway.AsSlice()}
	if err := netlink.RouteAdd(r); err != nil {
		return fmt.Errorf("add route to %s by %s: %w", to, gateway, err)
	}
	return nil
}

// AddDeviceRoute routes the prefix to the device, which resolves addresses itself.
func AddDeviceRoute(to netip.Prefix, name string) error {
	return change(name, fmt.Sprintf("add route to %s by %s", to, name), func(l netlink.Link) error {
		return netlink.RouteAdd(&netlink.Route{
			Dst: ipNet(to), LinkIndex: l.Attrs().Index, Scope: netlink.SCOPE_LINK})
	})
}

// AddNeighbour adds a permanent entry for an IP address.
func AddNeighbour(name string, ip netip.Addr, mac net.HardwareAddr) error {
	return change(name, fmt.Sprintf("add neighbour %s to %s", ip, name),
		func(l netlink.Link) error {
			return netlink.NeighSet(&netlink.Neigh{
				LinkIndex: l.Attrs().Index, State: netlink.NUD_PERMANENT,
				IP: ip.AsSlice(), HardwareAddr: mac})
		})
}

// AddForwarding adds a permanent entry for the machine that gets a VXLAN device's frames for a MAC
// address.
func AddForwarding(name string, mac net.HardwareAddr, machine netip.Addr) error {
	return change(name, fmt.Sprintf("add forwarding of %s to %s", mac, name),
		func(l netlink.Link) error {
			return netlink.NeighSet(&netlink.Neigh{
				LinkIndex: l.Attrs().Index, Family: unix.AF_BRIDGE, Flags: netlink.NTF_SELF,
				State: netlink.NUD_PERMANENT, IP: machine.AsSlice(), HardwareAddr: mac})
		})
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// Carrying returns the indexes of the devices of the calling thread's namespace that are up, have a
// carrier, and pass packets. The kernel notices a new or lost carrier with a delay of up to a
// second. Until then a device without a carrier may be reported as running, and one with a carrier
// may drop packets.
func Carrying() (map[int]bool, error) {
	msgs, err := rawDump(unix.RTM_GETLINK, linkRequest(unix.AF_UNSPEC, skipCounts))
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	out := map[int]bool{}
	for _, b := range msgs {
		yes, err := carries(b)
		if err != nil {
			return nil, fmt.Errorf("list links: %w", err)
		}
		if yes {
			out[indexOf(b)] = true
		}
	}
	return out, nil
}

func carries(b []byte) (bool, error) {
	const both = unix.IFF_RUNNING | unix.IFF_LOWER_UP
	list, err := attributesOf(b, ifInfo)
	if err != nil || binary.NativeEndian.Uint32(b[8:])&both != both {
		return false, err
	}
	for _, a := range list {
		if typeOf(a) == unix.IFLA_OPERSTATE && len(a.Data) == 1 && a.Data[0] != netlink.OperUnknown {
			return true, nil
		}
	}
	// The state of a veth or netkit is unknown only until the kernel has noticed the carrier.
	s, err := parseLink(b)
	return err == nil && !s.Pair(), err
}

// NamespaceID returns the calling namespace's number, from 0 on, for the namespace of process pid,
// or -1 if no device of the one has its other end or parent in the other.
func NamespaceID(pid int) (int, error) {
	id, err := netlink.GetNetNsIdByPid(pid)
	if err != nil {
		return -1, fmt.Errorf("number of the network namespace of process %d: %w", pid, err)
	}
	return id, nil
}

// NumberOf returns the calling namespace's number for the namespace of a file descriptor, or -1 if
// it has none.
func NumberOf(fd int) (int, error) {
	id, err := netlink.GetNetNsIdByFd(fd)
	if err != nil {
		return -1, fmt.Errorf("number of a network namespace: %w", err)
	}
	return id, nil
}
