// Package ipset copies the sets of ipset(8) between network namespaces. Rules of iptables name a
// set by its index, so the copy has the same indexes.
package ipset

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
)

// linux/netfilter/ipset/ip_set.h
const (
	protocol   = 7
	cmdCreate  = 2
	cmdDestroy = 3
	cmdList    = 7
	cmdAdd     = 9

	attrProtocol = 1
	attrName     = 2
	attrType     = 3
	attrRevision = 4
	attrFamily   = 5
	attrData     = 7
	attrElements = 8
	attrLine     = 9
	attrIndex    = 11

	// within attrData
	dataName = 18 // of a member of a list:set
	// only the kernel sets them
	dataElements   = 24
	dataReferences = 25
	dataMemory     = 26

	flags = unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER
)

const headerSize = 4 // struct nfgenmsg

// Save reads all sets of the calling thread's namespace, with their elements. It loads no module.
func Save() (out []raw.Message, err error) {
	if _, err := os.Stat("/sys/module/ip_set"); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	c, err := raw.Dial(unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, fmt.Errorf("read ipsets: %w", err)
	}
	defer func() { _ = c.Close() }()
	found, err := send(c, cmdList, netlink.Dump)
	if err != nil {
		return nil, fmt.Errorf("read ipsets: %w", err)
	}
	for _, m := range found {
		if m.Header.Type == unix.NFNL_SUBSYS_IPSET<<8|cmdList {
			out = append(out, raw.Message{Type: uint16(m.Header.Type), Data: m.Data})
		}
	}
	return out, nil
}

func send(c *netlink.Conn, command uint16, flags netlink.HeaderFlags,
	attrs ...netlink.Attribute) ([]netlink.Message, error) {
	b, err := netlink.MarshalAttributes(append(
		[]netlink.Attribute{{Type: attrProtocol, Data: []byte{protocol}}}, attrs...))
	if err != nil {
		return nil, err
	}
	return c.Execute(netlink.Message{Header: netlink.Header{
		Type:  netlink.HeaderType(unix.NFNL_SUBSYS_IPSET<<8 | command),
		Flags: netlink.Request | flags},
		Data: append([]byte{unix.AF_INET, unix.NFNETLINK_V0, 0, 0}, b...)})
}

// set is a message about a set. The first of a set's messages has its type.
type set struct {
	name  string
	index int
	attrs map[uint16]netlink.Attribute
}

var errHostile = errors.New("not an ipset")

func parse(m raw.Message) (set, error) {
	if m.Type != unix.NFNL_SUBSYS_IPSET<<8|cmdList || len(m.Data) < headerSize {
		return set{}, errHostile
	}
	list, err := netlink.UnmarshalAttributes(m.Data[headerSize:])
	if err != nil {
		return set{}, fmt.Errorf("%w: %w", errHostile, err)
	}
	s := set{attrs: map[uint16]netlink.Attribute{}}
	for _, a := range list {
		s.attrs[a.Type&^flags] = netlink.Attribute{Type: a.Type, Data: a.Data}
	}
	s.name, _, _ = strings.Cut(string(s.attrs[attrName].Data), "\x00")
	if i := s.attrs[attrIndex].Data; len(i) == 2 {
		s.index = int(binary.BigEndian.Uint16(i))
	}
	return s, nil
}

func (s set) take(kinds ...uint16) (out []netlink.Attribute) {
	for _, k := range kinds {
		if a, ok := s.attrs[k]; ok {
			out = append(out, a)
		}
	}
	return out
}

// settings returns the options with which the set was created, without those that only the kernel
// sets.
func (s set) settings() (netlink.Attribute, error) {
	a, err := addresses(s.attrs[attrData])
	if err != nil {
		return a, err
	}
	return each(a, func(a netlink.Attribute) (netlink.Attribute, error) {
		if slices.Contains([]uint16{dataElements, dataReferences, dataMemory}, a.Type&^flags) {
			return netlink.Attribute{}, nil
		}
		return a, nil
	})
}

func (s set) elements() (netlink.Attribute, error) {
	return each(s.attrs[attrElements], addresses)
}

// each replaces each attribute within a by the result of f, and drops those that f gives no type.
func each(a netlink.Attribute, f func(netlink.Attribute) (netlink.Attribute, error)) (
	netlink.Attribute, error) {
	list, err := netlink.UnmarshalAttributes(a.Data)
	if err != nil {
		return a, err
	}
	for i := range list {
		if list[i], err = f(netlink.Attribute{Type: list[i].Type, Data: list[i].Data}); err != nil {
			return a, err
		}
	}
	list = slices.DeleteFunc(list, func(a netlink.Attribute) bool { return a.Type == 0 })
	b, err := netlink.MarshalAttributes(list)
	return netlink.Attribute{Type: a.Type, Data: b}, err
}

// addresses marks the addresses within a as being in network byte order. The kernel demands this
// flag but does not set it in its own messages.
func addresses(a netlink.Attribute) (netlink.Attribute, error) {
	return each(a, func(a netlink.Attribute) (netlink.Attribute, error) {
		if a.Type&unix.NLA_F_NESTED == 0 {
			return a, nil
		}
		return each(a, func(a netlink.Attribute) (netlink.Attribute, error) {
			a.Type |= unix.NLA_F_NET_BYTEORDER
			return a, nil
		})
	})
}

// AddLists adds to which, indexes of saved sets, those of the lists that have one as a member.
// Lists cannot have lists as members.
func AddLists(saved []raw.Message, which map[uint16]bool) {
	var lists []set
	chosen := map[string]bool{}
	for _, m := range saved {
		s, err := parse(m)
		switch {
		case err != nil:
		case len(s.attrs[attrIndex].Data) == 0: // more elements
		case strings.HasPrefix(string(s.attrs[attrType].Data), "list:set"):
			lists = append(lists, s)
		default:
			chosen[s.name] = chosen[s.name] || which[uint16(s.index)]
		}
	}
	for _, s := range lists {
		if slices.ContainsFunc(s.members(), func(name string) bool { return chosen[name] }) {
			which[uint16(s.index)] = true
		}
	}
}

// AddForeign adds to which the indexes of saved sets that have a hardware address other than macs,
// which are strings of bytes.
func AddForeign(saved []raw.Message, macs map[string]bool, which map[uint16]bool) {
	index := map[string]uint16{}
	for _, m := range saved {
		s, err := parse(m)
		if err != nil {
			continue
		}
		if len(s.attrs[attrIndex].Data) > 0 { // the set's first message
			index[s.name] = uint16(s.index)
		}
		for _, e := range within(s.attrs[attrElements]) {
			if slices.ContainsFunc(within(e), func(a netlink.Attribute) bool {
				return a.Type == elementMAC && !macs[string(a.Data)]
			}) {
				which[index[s.name]] = true
			}
		}
	}
}

// members returns the names of a list's sets, up to a damaged one.
func (s set) members() (out []string) {
	_, _ = each(s.attrs[attrElements], func(a netlink.Attribute) (netlink.Attribute, error) {
		return each(a, func(a netlink.Attribute) (netlink.Attribute, error) {
			if a.Type&^flags == dataName {
				name, _, _ := strings.Cut(string(a.Data), "\x00")
				out = append(out, name)
			}
			return a, nil
		})
	})
	return out
}

// Restore makes the sets in the calling thread's namespace, which has none.
func Restore(saved []raw.Message) (refused []raw.Refused, err error) {
	if len(saved) == 0 {
		return nil, nil
	}
	c, err := raw.Dial(unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, fmt.Errorf("write ipsets: %w", err)
	}
	defer func() { _ = c.Close() }()
	var all, first []set
	for _, m := range saved {
		s, err := parse(m)
		if err != nil {
			refused = append(refused, raw.Refused{What: "an ipset", Err: err})
			continue
		}
		all = append(all, s)
		if s.attrs[attrType].Data != nil {
			first = append(first, s)
		}
	}
	slices.SortStableFunc(first, func(a, b set) int { return cmp.Compare(a.index, b.index) })
	free, err := create(c, first, &refused)
	for _, name := range free {
		_, e := send(c, cmdDestroy, netlink.Acknowledge, nameOf(name))
		err = errors.Join(err, e)
	}
	if err != nil {
		return refused, fmt.Errorf("write ipsets: %w", err)
	}
	for _, s := range all {
		if len(s.attrs[attrElements].Data) == 0 {
			continue
		}
		elements, err := s.elements()
		if err == nil {
			_, err = send(c, cmdAdd, netlink.Acknowledge, append(s.take(attrName), elements,
				netlink.Attribute{Type: attrLine, Data: make([]byte, 4)})...)
		}
		if err != nil {
			refused = append(refused, raw.Refused{What: "elements of ipset " + s.name, Err: err})
		}
	}
	return refused, nil
}

func nameOf(s string) netlink.Attribute {
	return netlink.Attribute{Type: attrName, Data: append([]byte(s), 0)}
}

var errIndexes = errors.New("indexes are too large")

// create makes empty sets. The kernel gives a new set the lowest free index, so create occupies
// unused indexes with other sets and returns their names.
func create(c *netlink.Conn, sets []set, refused *[]raw.Refused) (occupied []string, err error) {
	const most = 4096
	next := 0
	for _, s := range sets {
		for ; next < s.index; next++ {
			if len(occupied) == most {
				return occupied, errIndexes
			}
			name := fmt.Sprintf("toll-%d", next)
			_, err := send(c, cmdCreate, netlink.Acknowledge|netlink.Create|netlink.Excl,
				nameOf(name),
				netlink.Attribute{Type: attrType, Data: []byte("list:set\x00")},
				netlink.Attribute{Type: attrRevision, Data: []byte{0}},
				netlink.Attribute{Type: attrFamily, Data: []byte{unix.AF_UNSPEC}},
				netlink.Attribute{Type: attrData | unix.NLA_F_NESTED})
			if err != nil {
				return occupied, err
			}
			occupied = append(occupied, name)
		}
		data, err := s.settings()
		if err == nil {
			_, err = send(c, cmdCreate, netlink.Acknowledge|netlink.Create|netlink.Excl,
				append(s.take(attrName, attrType, attrRevision, attrFamily), data)...)
		}
		if err != nil {
			*refused = append(*refused, raw.Refused{What: "ipset " + s.name, Err: err})
			continue
		}
		next++
	}
	return occupied, nil
}
