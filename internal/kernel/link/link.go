// Package link makes and reads network devices, addresses and routes of the calling thread's
// network namespace. Call it inside netns.NS.Do.
package link

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// dumpTries is how often a list is requested that the kernel interrupted because something changed.
const dumpTries = 5

var interrupted atomic.Int64

// Interrupted returns how many lists this process took from the kernel although each try was
// interrupted, because devices, addresses or routes came and went without pause. Such a list may
// lack some, or have some twice.
func Interrupted() int64 { return interrupted.Load() }

func dump[T any](f func() (T, error)) (T, error) {
	var (
		out T
		err error
	)
	for range dumpTries {
		if out, err = f(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			return out, err
		}
	}
	interrupted.Add(1)
	return out, nil
}

func listLinks() ([]netlink.Link, error) {
	links, err := dump(netlink.LinkList)
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	return links, nil
}

func byName(name string) (netlink.Link, error) {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("find link %s: %w", name, err)
	}
	return l, nil
}

func change(name, what string, f func(netlink.Link) error) error {
	l, err := byName(name)
	if err != nil {
		return err
	}
	if err := f(l); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Up sets the device up.
func Up(name string) error { return change(name, "set "+name+" up", netlink.LinkSetUp) }

// AddVeth creates a veth pair whose second end, peer, is in the network namespace of thread
// peerTID.
func AddVeth(name, peer string, peerTID int) error {
	v := netlink.NewVeth(netlink.NewLinkAttrs())
	v.Name, v.PeerName, v.PeerNamespace = name, peer, netlink.NsPid(peerTID)
	if err := netlink.LinkAdd(v); err != nil {
		return fmt.Errorf("add veth %s: %w", name, err)
	}
	return nil
}

// AddBridge creates a bridge and sets it up.
func AddBridge(name string) error {
	b := &netlink.Bridge{LinkAttrs: netlink.NewLinkAttrs()}
	b.Name = name
	if err := netlink.LinkAdd(b); err != nil {
		return fmt.Errorf("add bridge %s: %w", name, err)
	}
	return Up(name)
}

// Remove removes the device, with the other end of a pair. It returns nil if the device does not
// exist.
func Remove(name string) error {
	l, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.LinkDel(l)
	}
	if errors.As(err, new(netlink.LinkNotFoundError)) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove link %s: %w", name, err)
	}
	return nil
}

// SetAlias sets the device's alias, a text of at most 255 bytes.
func SetAlias(name, alias string) error {
	return change(name, "set the alias of "+name, func(l netlink.Link) error {
		return netlink.LinkSetAlias(l, alias)
	})
}

// Aliases returns the aliases of the devices that have one, by name.
func Aliases() (map[string]string, error) {
	links, err := listLinks()
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, l := range links {
		if a := l.Attrs().Alias; a != "" {
			out[l.Attrs().Name] = a
		}
	}
	return out, nil
}

// SetMaster makes the device a port of the bridge.
func SetMaster(name, bridge string) error {
	b, err := byName(bridge)
	if err != nil {
		return err
	}
	return change(name, "make "+name+" a port of "+bridge, func(l netlink.Link) error {
		return netlink.LinkSetMaster(l, b)
	})
}

// SetHairpin lets the bridge send a frame back through the port it came from.
func SetHairpin(port string) error {
	return change(port, "set hairpin on "+port, func(l netlink.Link) error {
		return netlink.LinkSetHairpin(l, true)
	})
}

// AddAddr adds an address with its prefix length, without duplicate address detection for IPv6.
func AddAddr(name string, addr netip.Prefix) error {
	a := &netlink.Addr{IPNet: ipNet(addr)}
	if addr.Addr().Is6() {
		a.Flags = unix.IFA_F_NODAD
	}
	return change(name, fmt.Sprintf("add address %s to %s", addr, name),
		func(l netlink.Link) error {
			return netlink.AddrAdd(l, a)
		})
}

// AddDefaultRoute sets the default gateway.
func AddDefaultRoute(gateway netip.Addr) error {
	if err := netlink.RouteAdd(&netlink.Route{Gw: gateway.AsSlice()}); err != nil {
		return fmt.Errorf("add default route by %s: %w", gateway, err)
	}
	return nil
}

// Names lists the devices of the namespace.
func Names() ([]string, error) {
	links, err := listLinks()
	if err != nil {
		return nil, err
	}
	out := make([]string, len(links))
	for i, l := range links {
		out[i] = l.Attrs().Name
	}
	return out, nil
}

// Peer returns the index, in its own namespace, of the other end of a pair.
func Peer(name string) (index int, err error) {
	l, err := byName(name)
	if err != nil {
		return 0, err
	}
	if l.Attrs().ParentIndex == 0 {
		return 0, fmt.Errorf("find the other end of %s: it has none", name)
	}
	return l.Attrs().ParentIndex, nil
}

// NameOf returns the name of the device with that index.
func NameOf(index int) (string, error) {
	l, err := netlink.LinkByIndex(index)
	if err != nil {
		return "", fmt.Errorf("find link number %d: %w", index, err)
	}
	return l.Attrs().Name, nil
}

// HasAddr reports whether the device exists and has the address.
func HasAddr(name string, addr netip.Addr) (bool, error) {
	l, err := netlink.LinkByName(name)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find link %s: %w", name, err)
	}
	all, err := dump(func() ([]netlink.Addr, error) {
		return netlink.AddrList(l, netlink.FAMILY_ALL)
	})
	if err != nil {
		return false, fmt.Errorf("read addresses of %s: %w", name, err)
	}
	for _, a := range all {
		if got, ok := netip.AddrFromSlice(a.IP); ok && got.Unmap() == addr {
			return true, nil
		}
	}
	return false, nil
}

// Tentative reports whether duplicate address detection is unfinished for an IPv6 address of the
// device.
func Tentative(name string) (bool, error) {
	l, err := byName(name)
	if err != nil {
		return false, err
	}
	all, err := dump(func() ([]netlink.Addr, error) {
		return netlink.AddrList(l, netlink.FAMILY_V6)
	})
	if err != nil {
		return false, fmt.Errorf("read addresses of %s: %w", name, err)
	}
	return slices.ContainsFunc(all, func(a netlink.Addr) bool {
		return a.Flags&unix.IFA_F_TENTATIVE != 0 && a.Flags&unix.IFA_F_DADFAILED == 0
	}), nil
}

// Counters holds the counters of `ip -s link`.
type Counters struct {
	RxBytes, RxPackets, TxBytes, TxPackets uint64
}

// Stats reads the device's counters.
func Stats(name string) (Counters, error) {
	l, err := byName(name)
	if err != nil {
		return Counters{}, err
	}
	s := l.Attrs().Statistics
	if s == nil {
		return Counters{}, fmt.Errorf("read counters of %s: the kernel reported none", name)
	}
	return Counters{s.RxBytes, s.RxPackets, s.TxBytes, s.TxPackets}, nil
}

// Info describes a device in a result.
type Info struct {
	Kind     string // "veth", "bridge", "loopback", …
	MTU      int
	Qdisc    string
	Offloads map[string]bool
	// bit/s that the queueing disciplines allow; 0: unlimited, or it differs by packet
	Rate uint64
}

var offloads = map[string]string{
	"gro":         "rx-gro",
	"gso":         "tx-generic-segmentation",
	"tso":         "tx-tcp-segmentation",
	"tx-checksum": "tx-checksum-ip-generic",
	"scatter":     "tx-scatter-gather",
}

// Describe reads the device's settings.
func Describe(name string) (Info, error) {
	l, err := byName(name)
	if err != nil {
		return Info{}, err
	}
	info := Info{Kind: l.Type(), MTU: l.Attrs().MTU, Qdisc: qdisc(l)}
	if l.Attrs().Flags&net.FlagLoopback != 0 {
		info.Kind = "loopback"
	}
	if info.Offloads, err = shown(name); err != nil {
		return info, err
	}
	if slices.Contains(shapers, info.Qdisc) {
		info.Rate, err = rateOf(l.Attrs().Index)
	}
	return info, err
}

var shapers = []string{"tbf", "netem", "cake", "htb"}

func qdisc(l netlink.Link) string {
	qs, err := dump(func() ([]netlink.Qdisc, error) { return netlink.QdiscList(l) })
	if err != nil {
		return ""
	}
	for _, q := range qs {
		if q.Attrs().Parent == netlink.HANDLE_ROOT {
			return q.Type()
		}
	}
	return ""
}

func HasOVS() bool { return hasFamily("ovs_datapath") == nil }

func hasFamily(name string) error {
	if _, err := netlink.GenlFamilyGet(name); err != nil {
		return fmt.Errorf("find generic netlink family %s: %w", name, err)
	}
	return nil
}
