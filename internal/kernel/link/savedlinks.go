package link

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// made has the attributes of IFLA_INFO_DATA that MakeLink copies, by kind. Devices of other kinds
// (tunnels, WireGuard, tun, bonds) have programs, keys or cards behind them that a copy lacks.
var made = map[string][]uint16{
	"bridge": {nl.IFLA_BR_VLAN_FILTERING, nl.IFLA_BR_VLAN_PROTOCOL, nl.IFLA_BR_GROUP_FWD_MASK,
		nl.IFLA_BR_NF_CALL_IPTABLES, nl.IFLA_BR_NF_CALL_IP6TABLES, nl.IFLA_BR_NF_CALL_ARPTABLES},
	"dummy":   nil,
	"ipvlan":  {nl.IFLA_IPVLAN_MODE, nl.IFLA_IPVLAN_FLAG},
	"ipvtap":  {nl.IFLA_IPVLAN_MODE, nl.IFLA_IPVLAN_FLAG},
	"macvlan": {nl.IFLA_MACVLAN_MODE, nl.IFLA_MACVLAN_FLAGS},
	"macvtap": {nl.IFLA_MACVLAN_MODE, nl.IFLA_MACVLAN_FLAGS},
	"vlan":    {nl.IFLA_VLAN_ID, nl.IFLA_VLAN_FLAGS, nl.IFLA_VLAN_PROTOCOL},
	"vrf":     {nl.IFLA_VRF_TABLE},
}

// makes reports whether MakeLink makes devices of the kind. A copy has veth pairs in place of other
// devices.
func makes(kind string) bool {
	_, ok := made[kind]
	return ok
}

// MakeLink makes a device, which stays down and without master. ns is the file descriptor of the
// device's namespace, or -1 for the calling thread's. The device's Parent is in the calling
// thread's namespace.
func MakeLink(s Saved, ns int) error {
	kind := s.Kind
	switch kind { // a macvtap or ipvtap would make a file in /dev
	case "macvtap":
		kind = "macvlan"
	case "ipvtap":
		kind = "ipvlan"
	}
	info := []netlink.Attribute{{Type: unix.IFLA_INFO_KIND, Data: nl.ZeroTerminated(kind)}}
	if data := s.data(); len(data) > 0 {
		info = append(info, nested(unix.IFLA_INFO_DATA, data...))
	}
	kindOf := nested(unix.IFLA_LINKINFO, info...)
	err := create(s, linkMessage(s, ns, kindOf))
	if ns < 0 || !errors.Is(err, unix.EEXIST) {
		return err
	}
	// Before Linux 6.14 the name and the index must be free in this namespace, too.
	const name, index = "toll0", 1 << 30
	there := s
	s.Name, s.Index = name, index
	if err := create(s, linkMessage(s, -1, kindOf)); err != nil {
		return err
	}
	return move(index, there, ns)
}

func move(index int, to Saved, ns int) error {
	c, err := openSender()
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	err = c.send(unix.RTM_NEWLINK, 0, append(linkHeader(index, 0, 0), marshal(
		netlink.Attribute{Type: unix.IFLA_NET_NS_FD, Data: word(uint32(ns))},
		netlink.Attribute{Type: unix.IFLA_IFNAME, Data: nl.ZeroTerminated(to.Name)},
		netlink.Attribute{Type: unix.IFLA_NEW_IFINDEX, Data: word(uint32(to.Index))})...))
	if err != nil {
		return errors.Join(fmt.Errorf("move %s: %w", to.Name, err),
			c.send(unix.RTM_DELLINK, 0, linkHeader(index, 0, 0)))
	}
	return nil
}

// MakePair makes a veth pair. End a is in the calling thread's namespace, end b in the namespace
// with the file descriptor ns, or in the same one if ns is -1. Both stay down and without master.
func MakePair(a, b Saved, ns int) error {
	const peer = 1 // VETH_INFO_PEER
	a.Kind, b.Kind = "veth", "veth"
	return create(a, linkMessage(a, -1, nested(unix.IFLA_LINKINFO,
		netlink.Attribute{Type: unix.IFLA_INFO_KIND, Data: nl.ZeroTerminated("veth")},
		nested(unix.IFLA_INFO_DATA,
			netlink.Attribute{Type: peer, Data: linkMessage(b, ns)}))))
}

func create(s Saved, data []byte) error {
	if err := sendOne(unix.RTM_NEWLINK, netlink.Create|netlink.Excl, data); err != nil {
		return fmt.Errorf("add %s %s: %w", s.Kind, s.Name, err)
	}
	return nil
}

// ofBridge returns the attribute that sets options of a bridge.
func ofBridge(options ...netlink.Attribute) netlink.Attribute {
	return nested(unix.IFLA_LINKINFO,
		netlink.Attribute{Type: unix.IFLA_INFO_KIND, Data: nl.ZeroTerminated("bridge")},
		nested(unix.IFLA_INFO_DATA, options...))
}

func nested(kind uint16, list ...netlink.Attribute) netlink.Attribute {
	return netlink.Attribute{Type: kind | unix.NLA_F_NESTED, Data: marshal(list...)}
}

func linkMessage(s Saved, ns int, more ...netlink.Attribute) []byte {
	list := []netlink.Attribute{{Type: unix.IFLA_IFNAME, Data: nl.ZeroTerminated(s.Name)}}
	const mac = 6
	if len(s.MAC) == mac && !strings.HasPrefix(s.Kind, "ipv") && slices.Max(s.MAC) > 0 {
		list = append(list, netlink.Attribute{Type: unix.IFLA_ADDRESS, Data: s.MAC})
	}
	if mtu := s.mtu(); mtu > 0 {
		list = append(list, netlink.Attribute{Type: unix.IFLA_MTU, Data: word(uint32(mtu))})
	}
	if s.Group > 0 {
		list = append(list, netlink.Attribute{Type: unix.IFLA_GROUP, Data: word(s.Group)})
	}
	if s.Parent > 0 && !s.Pair() {
		list = append(list, netlink.Attribute{Type: unix.IFLA_LINK, Data: word(uint32(s.Parent))})
	}
	if ns >= 0 {
		list = append(list, netlink.Attribute{Type: unix.IFLA_NET_NS_FD, Data: word(uint32(ns))})
	}
	return append(linkHeader(s.Index, 0, 0), marshal(append(list, more...)...)...)
}

func (s Saved) mtu() int {
	const veth = 65535
	if s.Pair() {
		return min(s.MTU, veth)
	}
	return s.MTU
}

func linkHeader(index int, flags, change uint32) []byte {
	b := make([]byte, ifInfo)
	binary.NativeEndian.PutUint32(b[4:], uint32(index))
	binary.NativeEndian.PutUint32(b[8:], flags)
	binary.NativeEndian.PutUint32(b[12:], change)
	return b
}

// ByIndex returns the device with an index. ok is false if there is none.
func ByIndex(all []Saved, index int) (s Saved, ok bool) {
	i := slices.IndexFunc(all, func(s Saved) bool { return s.Index == index })
	if i < 0 {
		return s, false
	}
	return all[i], true
}

// Routed reports whether the device, an ipvlan in one of the modes L3, has no neighbours: others
// reach it by a route through the device below.
func (s Saved) Routed() bool {
	const l2 = 0 // IPVLAN_MODE_L2
	f, err := fieldsOf(s.Data, 0)
	mode := f[nl.IFLA_IPVLAN_MODE]
	return err == nil && strings.HasPrefix(s.Kind, "ipv") && len(mode) == 2 &&
		binary.NativeEndian.Uint16(mode) != l2
}

// Selects describes why a device passes only some packets, if it does by settings that MakeLink
// does not copy; else it returns "".
func (s Saved) Selects() string {
	const drops = 2 // NETKIT_DROP
	f, err := fieldsOf(s.Data, 0)
	switch {
	case err != nil:
	case s.Kind == "macvlan" || s.Kind == "macvtap":
		if f.number(nl.IFLA_MACVLAN_MODE) == nl.MACVLAN_MODE_SOURCE {
			return "macvlan in mode source"
		}
	case s.Kind == "netkit" && f.number(nl.IFLA_NETKIT_POLICY) == drops:
		return "netkit with policy blackhole"
	}
	return ""
}

func (s Saved) data() []netlink.Attribute {
	list, err := attributesOf(s.Data, 0)
	if err != nil {
		return nil
	}
	list = slices.DeleteFunc(list, func(a netlink.Attribute) bool {
		return !slices.Contains(made[s.Kind], typeOf(a)) || s.Kind == "bridge" && usual(a)
	})
	for i, a := range list {
		if strings.HasPrefix(s.Kind, "macv") && typeOf(a) == nl.IFLA_MACVLAN_MODE &&
			s.Selects() != "" {
			list[i].Data = word(nl.MACVLAN_MODE_BRIDGE) // the copy's machines have other addresses
		}
		const size, known = 8, 0xf // struct ifla_vlan_flags: flags, mask
		if s.Kind == "vlan" && typeOf(a) == nl.IFLA_VLAN_FLAGS && len(a.Data) == size {
			// the kernel prints a mask that it does not take
			flags := binary.NativeEndian.Uint32(a.Data)
			binary.NativeEndian.PutUint32(a.Data[4:], known|flags)
		}
	}
	return list
}

// usual reports whether an attribute has the default value. Such attributes are not sent, because a
// kernel without the feature would refuse them.
func usual(a netlink.Attribute) bool {
	if typeOf(a) == nl.IFLA_BR_VLAN_PROTOCOL {
		return len(a.Data) == 2 && binary.BigEndian.Uint16(a.Data) == unix.ETH_P_8021Q
	}
	return !nonZero(a)
}

func nonZero(a netlink.Attribute) bool { return len(a.Data) > 0 && slices.Max(a.Data) > 0 }

// AddVLAN makes a VLAN like s, with another name, on a device of the calling thread's namespace. ns
// is the file descriptor of the namespace that it gets. It stays down.
func AddVLAN(s Saved, name, on string, ns int) error {
	parent, err := byName(on)
	if err != nil {
		return err
	}
	s.Name, s.Index, s.MAC, s.Parent = name, 0, nil, parent.Attrs().Index
	return MakeLink(s, ns)
}

// Carries reports whether frames of a VLAN may leave by s, a port of a bridge that filters VLANs,
// with tags or without.
func (s Saved) Carries(vlan Saved) (tagged, untagged bool) {
	const size, without = 4, 4 // of struct bridge_vlan_info, BRIDGE_VLAN_INFO_UNTAGGED
	f, err := fieldsOf(vlan.Data, 0)
	list, errList := attributesOf(s.VLANs, 0)
	if err != nil || errList != nil || len(f[nl.IFLA_VLAN_ID]) != 2 {
		return false, false
	}
	id := binary.NativeEndian.Uint16(f[nl.IFLA_VLAN_ID])
	for _, a := range list {
		if typeOf(a) == bridgeVLANs && len(a.Data) == size &&
			binary.NativeEndian.Uint16(a.Data[2:]) == id {
			untagged = binary.NativeEndian.Uint16(a.Data)&without != 0
			tagged = !untagged
		}
	}
	return tagged, untagged
}

// FiltersVLANs reports whether s is a bridge that filters VLANs.
func (s Saved) FiltersVLANs() bool {
	return s.Kind == "bridge" && slices.ContainsFunc(s.data(), func(a netlink.Attribute) bool {
		return typeOf(a) == nl.IFLA_BR_VLAN_FILTERING
	})
}

// portSettings has the settings of bridge ports that affect packets, with their default values.
var portSettings = map[uint16]byte{
	unix.IFLA_BRPORT_MODE: 0, unix.IFLA_BRPORT_LEARNING: 1, unix.IFLA_BRPORT_UNICAST_FLOOD: 1,
	unix.IFLA_BRPORT_PROXYARP: 0, unix.IFLA_BRPORT_PROXYARP_WIFI: 0,
	unix.IFLA_BRPORT_MCAST_FLOOD: 1, unix.IFLA_BRPORT_MCAST_TO_UCAST: 0,
	unix.IFLA_BRPORT_BCAST_FLOOD: 1, unix.IFLA_BRPORT_NEIGH_SUPPRESS: 0,
	unix.IFLA_BRPORT_ISOLATED: 0, nl.IFLA_BRPORT_LOCKED: 0}

func (s Saved) port() []netlink.Attribute {
	list, err := attributesOf(s.Slave, 0)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(list, func(a netlink.Attribute) bool {
		usual, ok := portSettings[typeOf(a)]
		return !ok || len(a.Data) != 1 || a.Data[0] == usual
	})
}

// Alike reports whether the devices of two lists have the same settings.
func Alike(a, b []Saved) bool {
	return slices.EqualFunc(a, b, func(x, y Saved) bool {
		return x.Name == y.Name && x.Index == y.Index && x.Kind == y.Kind && x.MTU == y.MTU &&
			x.Group == y.Group && x.Up == y.Up && x.NoARP == y.NoARP && x.Lower == y.Lower &&
			x.Master == y.Master && x.Parent == y.Parent && x.ParentSpace == y.ParentSpace &&
			bytes.Equal(x.MAC, y.MAC) && x.LikePort(y) && x.Blocked() == y.Blocked() &&
			x.SpanningTree() == y.SpanningTree() &&
			bytes.Equal(marshal(x.data()...), marshal(y.data()...))
	})
}

// LikePort reports whether two bridge ports have the same settings and VLANs.
func (s Saved) LikePort(o Saved) bool {
	return bytes.Equal(marshal(s.port()...), marshal(o.port()...)) && bytes.Equal(s.VLANs, o.VLANs)
}

// Hairpin reports whether the device is a bridge port whose frames may leave by it again.
func (s Saved) Hairpin() bool {
	return slices.ContainsFunc(s.port(), func(a netlink.Attribute) bool {
		return typeOf(a) == unix.IFLA_BRPORT_MODE
	})
}

// SetLink sets what MakeLink leaves out: the master, which must exist, a bridge port's settings and
// VLANs, and flags, of them Up last. The kernel does not give the device an IPv6 link-local
// address.
func SetLink(s Saved) error {
	c, err := openSender()
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	set := func(what string, list ...netlink.Attribute) error {
		data := append(linkHeader(s.Index, 0, 0), marshal(list...)...)
		if err := c.send(unix.RTM_NEWLINK, 0, data); err != nil {
			return fmt.Errorf("set %s of %s: %w", what, s.Name, err)
		}
		return nil
	}
	const (
		genMode = 8 // IFLA_INET6_ADDR_GEN_MODE
		none    = 1
	)
	// A kernel without IPv6 refuses this.
	_ = set("address generation", nested(unix.IFLA_AF_SPEC, nested(unix.AF_INET6,
		netlink.Attribute{Type: genMode, Data: []byte{none}})))
	var errs []error
	if s.Master > 0 {
		errs = append(errs, set("master", netlink.Attribute{Type: unix.IFLA_MASTER,
			Data: word(uint32(s.Master))}))
	}
	if port := s.port(); s.Master > 0 && len(port) > 0 {
		errs = append(errs, set("settings as a bridge port", nested(unix.IFLA_LINKINFO,
			netlink.Attribute{Type: unix.IFLA_INFO_SLAVE_KIND, Data: nl.ZeroTerminated("bridge")},
			nested(unix.IFLA_INFO_SLAVE_DATA, port...))))
	}
	if s.Kind == "bridge" || s.Kind == "" { // a bridge takes its ports' MTU
		if mtu := s.mtu(); mtu > 0 {
			errs = append(errs, set("MTU", netlink.Attribute{Type: unix.IFLA_MTU,
				Data: word(uint32(mtu))}))
		}
	}
	errs = append(errs, s.setVLANs(c))
	var flags uint32
	if s.Up {
		flags |= unix.IFF_UP
	}
	if s.NoARP {
		flags |= unix.IFF_NOARP
	}
	if err := c.send(unix.RTM_NEWLINK, 0,
		linkHeader(s.Index, flags, unix.IFF_UP|unix.IFF_NOARP)); err != nil {
		errs = append(errs, fmt.Errorf("set flags of %s: %w", s.Name, err))
	}
	return errors.Join(errs...)
}

// linux/if_bridge.h
const (
	bridgeFlags = 0 // IFLA_BRIDGE_FLAGS
	bridgeVLANs = 2 // IFLA_BRIDGE_VLAN_INFO: flags, VLAN
	ofMaster    = 1 // BRIDGE_FLAGS_MASTER
	ofSelf      = 2 // BRIDGE_FLAGS_SELF
)

// setVLANs sets the VLANs in place of the default VLAN 1.
func (s Saved) setVLANs(c sender) error {
	list, err := attributesOf(s.VLANs, 0)
	if err != nil || len(list) == 0 {
		return err
	}
	where := uint16(ofMaster)
	if s.Kind == "bridge" {
		where = ofSelf
	}
	send := func(t uint16, vlans ...netlink.Attribute) error {
		b := linkHeader(s.Index, 0, 0)
		b[0] = unix.AF_BRIDGE
		flags := netlink.Attribute{Type: bridgeFlags,
			Data: binary.NativeEndian.AppendUint16(nil, where)}
		spec := nested(unix.IFLA_AF_SPEC, append([]netlink.Attribute{flags}, vlans...)...)
		return c.send(t, 0, append(b, marshal(spec)...))
	}
	first := netlink.Attribute{Type: bridgeVLANs,
		Data: binary.NativeEndian.AppendUint16([]byte{0, 0}, 1)}
	err = send(unix.RTM_DELLINK, first)
	for _, a := range list {
		const size = 4
		if typeOf(a) == bridgeVLANs && len(a.Data) == size {
			err = errors.Join(err, send(unix.RTM_SETLINK, a))
		}
	}
	if err != nil {
		return fmt.Errorf("set VLANs of %s: %w", s.Name, err)
	}
	return nil
}
