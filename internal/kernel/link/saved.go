package link

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// Values of Saved.ParentSpace for namespaces without a number.
const (
	Here      = -1 // the device's own namespace
	Elsewhere = -2 // an unknown namespace
)

// Saved is a network device as ReadLinks reads it and MakeLink makes it in another namespace.
type Saved struct {
	Name  string           `json:"name"`
	Index int              `json:"index"`
	Kind  string           `json:"kind"` // as rtnetlink names it; "": hardware, or the loopback
	MAC   net.HardwareAddr `json:"mac,omitempty"`
	MTU   int              `json:"mtu"`
	Group uint32           `json:"group,omitempty"`
	Up    bool             `json:"up"`
	NoARP bool             `json:"noarp,omitempty"`
	// Lower reports whether the device has a carrier, or needs none.
	Lower bool `json:"running"`
	// Held means that a program keeps the device without a carrier (protodown).
	Held   bool `json:"protodown,omitempty"`
	Master int  `json:"master,omitempty"` // index
	// Parent is the index of a veth's other end, or of the device below a VLAN or macvlan.
	Parent int `json:"parent,omitempty"`
	// ParentSpace is that device's namespace: as ReadLinks reads it, an id of this namespace; in a
	// replica.Machine, an index of its Spaces.
	ParentSpace int `json:"parent_namespace"`
	// Data is IFLA_INFO_DATA, and Slave a bridge port's IFLA_INFO_SLAVE_DATA. MakeLink and SetLink
	// use the attributes that they know.
	Data  []byte `json:"data,omitempty"`
	Slave []byte `json:"slave_data,omitempty"`
	// There means that the kernel makes the device in every new namespace, as it does lo.
	There bool `json:"-"`
	// VLANs has the VLANs of a filtering bridge or of its port (IFLA_AF_SPEC of AF_BRIDGE).
	VLANs []byte `json:"vlans,omitempty"`
}

// Pair reports whether the device is one of two ends.
func (s Saved) Pair() bool { return s.Kind == "veth" || s.Kind == "netkit" }

const (
	ifInfo     = unix.SizeofIfInfomsg
	skipCounts = 1 << 3 // RTEXT_FILTER_SKIP_STATS
	bridgeVLAN = 1 << 1 // RTEXT_FILTER_BRVLAN
)

// ReadLinks reads the devices of the calling thread's namespace. As a side effect, the kernel
// assigns numbers to the namespaces of the devices' parents.
func ReadLinks() ([]Saved, error) {
	msgs, err := rawDump(unix.RTM_GETLINK, linkRequest(unix.AF_UNSPEC, skipCounts))
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	var out []Saved
	filtering := false
	for _, b := range msgs {
		s, err := parseLink(b)
		if err != nil {
			return nil, fmt.Errorf("list links: %w", err)
		}
		filtering = filtering || s.FiltersVLANs()
		out = append(out, s)
	}
	if filtering {
		return out, readVLANs(out)
	}
	return out, nil
}

func readVLANs(links []Saved) error {
	msgs, err := rawDump(unix.RTM_GETLINK, linkRequest(unix.AF_BRIDGE, bridgeVLAN))
	if err != nil {
		return fmt.Errorf("list VLANs of bridges: %w", err)
	}
	for _, b := range msgs {
		f, err := fieldsOf(b, ifInfo)
		if err != nil {
			return fmt.Errorf("list VLANs of bridges: %w", err)
		}
		for i := range links {
			if links[i].Index == indexOf(b) {
				links[i].VLANs = vlansOf(f)
			}
		}
	}
	return nil
}

// vlansOf returns the VLANs of a bridge or port. The kernel leaves out the list of one that has
// none, which a new one does not lack: it has VLAN 1.
func vlansOf(f fields) []byte {
	if list := f[unix.IFLA_AF_SPEC]; len(list) > 0 {
		return list
	}
	return marshal(netlink.Attribute{Type: bridgeFlags, Data: []byte{0, 0}})
}

func linkRequest(family byte, mask uint32) []byte {
	b := make([]byte, ifInfo)
	b[0] = family
	return append(b, marshal(netlink.Attribute{Type: unix.IFLA_EXT_MASK, Data: word(mask)})...)
}

func parseLink(b []byte) (s Saved, err error) {
	f, err := fieldsOf(b, ifInfo)
	if err != nil {
		return s, err
	}
	info, err := fieldsOf(f[unix.IFLA_LINKINFO], 0)
	if err != nil {
		return s, err
	}
	flags := binary.NativeEndian.Uint32(b[8:])
	s = Saved{Name: deviceName(f, indexOf(b)), Index: indexOf(b),
		Kind: text(info[unix.IFLA_INFO_KIND]), MAC: f[unix.IFLA_ADDRESS],
		MTU: int(f.number(unix.IFLA_MTU)), Group: f.number(unix.IFLA_GROUP),
		Up: flags&unix.IFF_UP != 0, NoARP: flags&unix.IFF_NOARP != 0,
		Lower:  flags&unix.IFF_LOWER_UP != 0,
		Master: int(f.number(unix.IFLA_MASTER)), Parent: int(f.number(unix.IFLA_LINK)),
		ParentSpace: Here, Data: info[unix.IFLA_INFO_DATA]}
	if id := f[unix.IFLA_LINK_NETNSID]; len(id) == 4 {
		s.ParentSpace = int(int32(binary.NativeEndian.Uint32(id)))
		if s.ParentSpace < 0 {
			s.ParentSpace = Elsewhere
		}
	}
	if b := f[unix.IFLA_PROTO_DOWN]; len(b) == 1 && strings.HasPrefix(s.Kind, "macv") {
		s.Held = b[0] != 0 // others have worlds
	}
	if s.Parent == s.Index && !s.Pair() && !makes(s.Kind) { // a tunnel that was moved here
		s.Parent, s.ParentSpace = 0, Here
	}
	if text(info[unix.IFLA_INFO_SLAVE_KIND]) == "bridge" {
		s.Slave = info[unix.IFLA_INFO_SLAVE_DATA]
	}
	return s, nil
}

// deviceName returns a device's name, or "ifINDEX" if the name is not printable.
func deviceName(f fields, index int) string {
	name := text(f[unix.IFLA_IFNAME])
	if printable.Line(name) != name {
		return fmt.Sprintf("if%d", index)
	}
	return name
}

// fields has attributes by type.
type fields map[uint16][]byte

var errShort = errors.New("short netlink message")

func fieldsOf(b []byte, header int) (fields, error) {
	list, err := attributesOf(b, header)
	out := make(fields, len(list))
	for _, a := range list {
		out[typeOf(a)] = a.Data
	}
	return out, err
}

func attributesOf(b []byte, header int) ([]netlink.Attribute, error) {
	if len(b) < header {
		return nil, errShort
	}
	return netlink.UnmarshalAttributes(b[header:])
}

func typeOf(a netlink.Attribute) uint16 {
	return a.Type &^ (unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER)
}

// number returns the value of an attribute, or 0 if the attribute is missing.
func (f fields) number(kind uint16) uint32 {
	if b := f[kind]; len(b) == 4 {
		return binary.NativeEndian.Uint32(b)
	}
	return 0
}

func (f fields) has(kinds ...uint16) bool {
	return slices.ContainsFunc(kinds, func(k uint16) bool { return f[k] != nil })
}

func text(b []byte) string { return strings.TrimRight(string(b), "\x00") }

func word(n uint32) []byte { return binary.NativeEndian.AppendUint32(nil, n) }

// indexOf returns the device's index in the header of a message. struct ifinfomsg, ifaddrmsg and
// ndmsg all have it after four bytes.
func indexOf(b []byte) int { return int(int32(binary.NativeEndian.Uint32(b[4:]))) }

const longest = 1<<16 - 1 - unix.SizeofNlAttr

// marshal encodes attributes. It leaves out those that are too long.
func marshal(list ...netlink.Attribute) []byte {
	list = slices.DeleteFunc(slices.Clone(list), func(a netlink.Attribute) bool {
		return len(a.Data) > longest
	})
	for i := range list {
		list[i].Length = 0
	}
	b, _ := netlink.MarshalAttributes(list) // fails only for wrong lengths
	return b
}

// rawDump returns the answers to a request for a list, the last one if all were interrupted: see
// Interrupted.
func rawDump(t uint16, header []byte) (out [][]byte, err error) {
	c, err := raw.Dial(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	for range dumpTries {
		msgs, err := c.Execute(netlink.Message{Data: header,
			Header: netlink.Header{Type: netlink.HeaderType(t), Flags: netlink.Request | netlink.Dump}})
		if err != nil {
			return nil, err
		}
		out = make([][]byte, len(msgs))
		whole := true
		for i, m := range msgs {
			whole = whole && m.Header.Flags&netlink.DumpInterrupted == 0
			out[i] = m.Data
		}
		if whole {
			return out, nil
		}
	}
	interrupted.Add(1)
	return out, nil
}

// sender makes objects in the namespace in which it was opened.
type sender struct{ *netlink.Conn }

func openSender() (sender, error) {
	c, err := raw.Dial(unix.NETLINK_ROUTE)
	return sender{c}, err
}

// sendOne sends one message.
func sendOne(t uint16, flags netlink.HeaderFlags, data []byte) error {
	c, err := openSender()
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	return c.send(t, flags, data)
}

func (s sender) send(t uint16, flags netlink.HeaderFlags, data []byte) error {
	_, err := s.Execute(netlink.Message{Data: data, Header: netlink.Header{
		Type: netlink.HeaderType(t), Flags: netlink.Request | netlink.Acknowledge | flags}})
	return err
}
