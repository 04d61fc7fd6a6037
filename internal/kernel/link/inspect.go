package link

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Setting is a property of a device that affects which packets pass the device, and how.
type Setting struct {
	What, Value string
	// Diverts marks programs and filters that may redirect packets after the device has counted
	// them.
	Diverts bool
}

// Inspected is a device with its settings in a fixed order. Time and traffic do not change them.
type Inspected struct {
	Name     string
	Kind     string
	Settings []Setting
}

const nothing = "none"

const (
	Addresses  = "IPv4 address"
	Addresses6 = "IPv6 address"
)

// Inspect reads the named devices or, without names, all devices of the namespace. It leaves out
// devices that do not exist.
func Inspect(names ...string) ([]Inspected, error) {
	links, err := listLinks()
	if err != nil {
		return nil, err
	}
	control, err := traffic()
	if err != nil {
		return nil, err
	}
	offloads, err := openFeatures()
	if err != nil {
		return nil, err
	}
	defer offloads.close()
	steering := openSteering()
	defer steering.close()
	in := inspector{links: links, control: control, offloads: offloads, steering: steering}
	var out []Inspected
	for _, l := range links {
		if len(names) > 0 && !slices.Contains(names, l.Attrs().Name) {
			continue
		}
		d, err := in.device(l)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

type inspector struct {
	links    []netlink.Link
	control  trafficControl
	offloads featureReader
	steering *steering
}

func (in inspector) nameOf(index int) string {
	for _, l := range in.links {
		if l.Attrs().Index == index {
			return l.Attrs().Name
		}
	}
	return nothing
}

func (in inspector) device(l netlink.Link) (Inspected, error) {
	a := l.Attrs()
	out := Inspected{Name: a.Name, Kind: l.Type()}
	if a.Flags&net.FlagLoopback != 0 {
		out.Kind = "loopback"
	}
	set := func(what, value string) {
		out.Settings = append(out.Settings, Setting{What: what, Value: value})
	}
	set("MTU", strconv.Itoa(a.MTU))
	set("administrative state", map[bool]string{true: "up", false: "down"}[a.Flags&net.FlagUp != 0])
	set("master", in.nameOf(a.MasterIndex))
	set("queue length", strconv.Itoa(a.TxQLen))
	set("count of queues", fmt.Sprintf("%d to send, %d to receive", a.NumTxQueues, a.NumRxQueues))
	set("promiscuity", strconv.Itoa(a.Promisc))
	for _, size := range []struct {
		what string
		is   uint32
	}{{"gso_max_size", a.GSOMaxSize}, {"gso_max_segs", a.GSOMaxSegs},
		{"gro_max_size", a.GROMaxSize},
		{"gso_ipv4_max_size", a.GSOIPv4MaxSize}, {"gro_ipv4_max_size", a.GROIPv4MaxSize}} {
		set(size.what, strconv.FormatUint(uint64(size.is), 10))
	}
	set("device on top", in.onTop(a.Index))
	if mode := modeOf(l); mode != "" {
		set("mode", mode)
	}
	if err := in.port(l, set); err != nil {
		return out, err
	}
	if err := in.addresses(l, set); err != nil {
		return out, err
	}
	if err := in.features(a.Name, set); err != nil {
		return out, err
	}
	if cpus := in.steering.read(a.Name); cpus != "" {
		set("receive packet steering", cpus)
	}
	set("queueing discipline", in.control.disciplines(a.Index))
	diverting, err := in.diverting(l)
	out.Settings = append(diverting, out.Settings...)
	return out, err
}

func (in inspector) onTop(index int) string {
	var names []string
	for _, l := range in.links {
		if a := l.Attrs(); a.ParentIndex == index && a.NetNsID < 0 && l.Type() != "veth" &&
			l.Type() != "netkit" && a.Index != index {
			names = append(names, a.Name+" ("+l.Type()+")")
		}
	}
	return list(names)
}

func list(names []string) string {
	if len(names) == 0 {
		return nothing
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func modeOf(l netlink.Link) string {
	switch l := l.(type) {
	case *netlink.Macvlan:
		return fmt.Sprintf("macvlan mode %d", l.Mode)
	case *netlink.IPVlan:
		return fmt.Sprintf("ipvlan mode %d flag %d", l.Mode, l.Flag)
	case *netlink.Netkit:
		return fmt.Sprintf("netkit mode %d, policies %d and %d", l.Mode, l.Policy, l.PeerPolicy)
	case *netlink.Vxlan:
		return fmt.Sprintf("id %d, port %d, group %v, learning %t, proxy %t, checksum %t",
			l.VxlanId, l.Port, l.Group, l.Learning, l.Proxy, l.UDPCSum)
	case *netlink.Bridge:
		return fmt.Sprintf("VLAN filtering %t, multicast snooping %t, groups forwarded %v",
			of(l.VlanFiltering), of(l.MulticastSnooping), of(l.GroupFwdMask))
	}
	return ""
}

func of[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func (in inspector) port(l netlink.Link, set func(what, value string)) error {
	i := slices.IndexFunc(in.links, func(m netlink.Link) bool {
		return m.Attrs().Index == l.Attrs().MasterIndex
	})
	if i < 0 || in.links[i].Type() != "bridge" {
		return nil
	}
	p, err := dump(func() (netlink.Protinfo, error) { return netlink.LinkGetProtinfo(l) })
	if err != nil {
		return fmt.Errorf("read bridge port %s: %w", l.Attrs().Name, err)
	}
	set("bridge port setting", fmt.Sprintf(
		"hairpin %t, isolated %t, learning %t, flood %t, guard %t, neighbour suppression %t",
		p.Hairpin, p.Isolated, p.Learning, p.Flood, p.Guard, p.NeighSuppress))
	return nil
}

func (in inspector) addresses(l netlink.Link, set func(what, value string)) error {
	addrs, err := dump(func() ([]netlink.Addr, error) {
		return netlink.AddrList(l, netlink.FAMILY_ALL)
	})
	if err != nil {
		return fmt.Errorf("list addresses of %s: %w", l.Attrs().Name, err)
	}
	var four, six []string
	for _, a := range addrs {
		ip, ok := netip.AddrFromSlice(a.IP)
		if !ok {
			continue
		}
		ones, _ := a.Mask.Size()
		switch ip = ip.Unmap(); {
		case ip.Is4():
			four = append(four, netip.PrefixFrom(ip, ones).String())
		case a.Flags&unix.IFA_F_PERMANENT != 0 && !ip.IsLinkLocalUnicast():
			six = append(six, netip.PrefixFrom(ip, ones).String())
		}
	}
	set(Addresses, list(four))
	set(Addresses6, list(six))
	return nil
}

func (in inspector) features(name string, set func(what, value string)) error {
	all, err := in.offloads.of(name)
	if err != nil {
		return err
	}
	for _, f := range slices.Sorted(maps.Keys(all)) {
		set("offload "+f, map[bool]string{true: "on", false: "off"}[all[f]])
	}
	return nil
}

func (in inspector) diverting(l netlink.Link) ([]Setting, error) {
	a := l.Attrs()
	var out []Setting
	add := func(what, value string) {
		out = append(out, Setting{What: what, Value: value, Diverts: value != nothing})
	}
	xdp := nothing
	if x := a.Xdp; x != nil && x.Attached {
		xdp = fmt.Sprintf("program %d", x.ProgId)
	}
	add("XDP", xdp)
	filters, err := in.control.filters(a.Index)
	if err != nil {
		return nil, fmt.Errorf("list filters of %s: %w", a.Name, err)
	}
	add("tc filter", list(filters))
	programs, err := attached(a.Index, l.Type() == "netkit")
	if err != nil {
		return nil, fmt.Errorf("list BPF programs of %s: %w", a.Name, err)
	}
	add("BPF program", list(programs))
	return out, nil
}

// Attached lists BPF programs, tc filters and queueing disciplines by device. Only callers with
// CAP_NET_ADMIN see BPF programs.
func Attached() (map[string][]string, error) {
	links, err := listLinks()
	if err != nil {
		return nil, err
	}
	control, err := traffic()
	if err != nil {
		return nil, err
	}
	in := inspector{links: links, control: control}
	out := map[string][]string{}
	for _, l := range links {
		name := l.Attrs().Name
		found, err := in.diverting(l)
		if err != nil {
			return nil, err
		}
		for _, s := range found {
			if s.Diverts {
				out[name] = append(out[name], s.What+": "+s.Value)
			}
		}
		for _, d := range control[l.Attrs().Index] {
			if d.kind != "noqueue" && !d.hook() {
				out[name] = append(out[name], "queueing discipline: "+d.String())
			}
		}
	}
	return out, nil
}
