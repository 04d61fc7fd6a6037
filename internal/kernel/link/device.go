package link

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// SubInterface is a device on top of a network card.
type SubInterface struct {
	Name   string // in its namespace
	Parent string // the card, in the calling thread's namespace
	TID    int    // the thread in whose namespace it is born
}

func (s SubInterface) attrs() (netlink.LinkAttrs, error) {
	p, err := byName(s.Parent)
	if err != nil {
		return netlink.LinkAttrs{}, err
	}
	a := netlink.NewLinkAttrs()
	a.Name, a.ParentIndex, a.Namespace = s.Name, p.Attrs().Index, netlink.NsPid(s.TID)
	return a, nil
}

// macvlanModes are the modes by the names that `ip link` gives them.
var macvlanModes = map[string]netlink.MacvlanMode{
	"bridge": netlink.MACVLAN_MODE_BRIDGE, "private": netlink.MACVLAN_MODE_PRIVATE,
	"vepa": netlink.MACVLAN_MODE_VEPA, "passthru": netlink.MACVLAN_MODE_PASSTHRU,
}

// AddMacvlan makes a macvlan device in one of the modes bridge, private, vepa
// and passthru.
func AddMacvlan(s SubInterface, mode string) error {
	m, ok := macvlanModes[mode]
	if !ok {
		return fmt.Errorf("add macvlan %s: unknown mode %q", s.Name, mode)
	}
	a, err := s.attrs()
	if err != nil {
		return err
	}
	if err := netlink.LinkAdd(&netlink.Macvlan{LinkAttrs: a, Mode: m}); err != nil {
		return fmt.Errorf("add macvlan %s: %w", s.Name, err)
	}
	return nil
}

var ipvlanModes = map[string]netlink.IPVlanMode{
	"l2": netlink.IPVLAN_MODE_L2, "l3": netlink.IPVLAN_MODE_L3, "l3s": netlink.IPVLAN_MODE_L3S,
}

// AddIPvlan makes an ipvlan device in one of the modes l2, l3 and l3s.
func AddIPvlan(s SubInterface, mode string) error {
	m, ok := ipvlanModes[mode]
	if !ok {
		return fmt.Errorf("add ipvlan %s: unknown mode %q", s.Name, mode)
	}
	a, err := s.attrs()
	if err != nil {
		return err
	}
	if err := netlink.LinkAdd(&netlink.IPVlan{LinkAttrs: a, Mode: m}); err != nil {
		return fmt.Errorf("add ipvlan %s: %w", s.Name, err)
	}
	return nil
}

// AddNetkit makes a netkit pair in its routed (L3) mode, in which there are
// no Ethernet headers and no ARP; the second end, peer, is born in the network
// namespace of thread peerTID. Without a BPF program both ends forward.
func AddNetkit(name, peer string, peerTID int) error {
	a := netlink.NewLinkAttrs()
	a.Name = name
	nk := &netlink.Netkit{LinkAttrs: a, Mode: netlink.NETKIT_MODE_L3,
		Policy: netlink.NETKIT_POLICY_FORWARD, PeerPolicy: netlink.NETKIT_POLICY_FORWARD}
	pa := netlink.NewLinkAttrs()
	pa.Name, pa.Namespace = peer, netlink.NsPid(peerTID) // without a name it would take the first end's
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
	Port uint16 // UDP
	MTU  int
	// Proxy lets the device answer ARP from the neighbour table.
	Proxy bool
	// L2Miss and L3Miss report what the tables lack to netlink listeners.
	L2Miss, L3Miss bool
	Learning       bool
	// UDPCsum sends the outer header with its checksum.
	UDPCsum bool
}

// AddVXLAN makes the device. Its outer packets keep using the calling thread's
// namespace, also after MoveTo.
func AddVXLAN(v VXLAN) error {
	a := netlink.NewLinkAttrs()
	a.Name, a.MTU = v.Name, v.MTU
	err := netlink.LinkAdd(&netlink.Vxlan{LinkAttrs: a, VxlanId: v.VNI, Port: int(v.Port),
		Proxy: v.Proxy, L2miss: v.L2Miss, L3miss: v.L3Miss, Learning: v.Learning, UDPCSum: v.UDPCsum})
	if err != nil {
		return fmt.Errorf("add vxlan %s: %w", v.Name, err)
	}
	return nil
}

// MoveTo moves the device to the network namespace of thread tid.
func MoveTo(name string, tid int) error {
	l, err := byName(name)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetNsPid(l, tid); err != nil {
		return fmt.Errorf("move %s: %w", name, err)
	}
	return nil
}

// Rename gives the device, which must be down, another name.
func Rename(name, to string) error {
	l, err := byName(name)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetName(l, to); err != nil {
		return fmt.Errorf("rename %s to %s: %w", name, to, err)
	}
	return nil
}

// DelAddr takes an address from the device.
func DelAddr(name string, addr netip.Prefix) error {
	l, err := byName(name)
	if err != nil {
		return err
	}
	if err := netlink.AddrDel(l, &netlink.Addr{IPNet: ipNet(addr)}); err != nil {
		return fmt.Errorf("take address %s from %s: %w", addr, name, err)
	}
	return nil
}

// SetMTU sets the device's MTU in bytes.
func SetMTU(name string, mtu int) error {
	l, err := byName(name)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetMTU(l, mtu); err != nil {
		return fmt.Errorf("set MTU %d on %s: %w", mtu, name, err)
	}
	return nil
}

// SetAddress sets the device's MAC address.
func SetAddress(name string, mac net.HardwareAddr) error {
	l, err := byName(name)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetHardwareAddr(l, mac); err != nil {
		return fmt.Errorf("set address %s on %s: %w", mac, name, err)
	}
	return nil
}

// AddRoute sends what goes to the prefix by way of gateway.
func AddRoute(to netip.Prefix, gateway netip.Addr) error {
	r := &netlink.Route{Dst: ipNet(to), Gw: gateway.AsSlice()}
	if err := netlink.RouteAdd(r); err != nil {
		return fmt.Errorf("add route to %s by %s: %w", to, gateway, err)
	}
	return nil
}

// AddDeviceRoute sends what goes to the prefix out of the device, to be
// resolved there; 0.0.0.0/0 is everything that has no other route.
func AddDeviceRoute(to netip.Prefix, name string) error {
	l, err := byName(name)
	if err != nil {
		return err
	}
	r := &netlink.Route{Dst: ipNet(to), LinkIndex: l.Attrs().Index, Scope: netlink.SCOPE_LINK}
	if err := netlink.RouteAdd(r); err != nil {
		return fmt.Errorf("add route to %s by %s: %w", to, name, err)
	}
	return nil
}

// AddNeighbour tells the device for good which MAC address an IP address has.
func AddNeighbour(name string, ip netip.Addr, mac net.HardwareAddr) error {
	l, err := byName(name)
	if err != nil {
		return err
	}
	n := &netlink.Neigh{LinkIndex: l.Attrs().Index, State: netlink.NUD_PERMANENT, IP: ip.AsSlice(), HardwareAddr: mac}
	if err := netlink.NeighSet(n); err != nil {
		return fmt.Errorf("add neighbour %s to %s: %w", ip, name, err)
	}
	return nil
}

// AddForwarding tells a VXLAN device for good to which machine frames for a
// MAC address go.
func AddForwarding(name string, mac net.HardwareAddr, machine netip.Addr) error {
	l, err := byName(name)
	if err != nil {
		return err
	}
	n := &netlink.Neigh{LinkIndex: l.Attrs().Index, Family: afBridge, Flags: netlink.NTF_SELF,
		State: netlink.NUD_PERMANENT, IP: machine.AsSlice(), HardwareAddr: mac}
	if err := netlink.NeighSet(n); err != nil {
		return fmt.Errorf("add forwarding of %s to %s: %w", mac, name, err)
	}
	return nil
}

// afBridge is AF_BRIDGE, the family of forwarding tables.
const afBridge = 7

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
