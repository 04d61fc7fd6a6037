package nft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
)

// Listed is a chain, a table or a flow table of any family.
type Listed struct {
	Name string // "chain ip nat DOCKER"
	// Text has the number of rules and a checksum that ignores counters.
	Text string
	// Devices lists the devices whose frames the chain or flow table sees first; nil: it is not at
	// the hook of a device. A trailing * is a wildcard.
	Devices []string
}

// List lists the packet filters of all programs, including those that Read cannot represent.
func List() ([]Listed, error) {
	c, err := raw.Dial(unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, fmt.Errorf("open nftables: %w", err)
	}
	defer func() { _ = c.Close() }()
	rules := map[string]*ruleList{}
	l := lister{conn: c, rules: rules}
	err = l.each(unix.NFT_MSG_GETRULE, "rules", func(family byte, a attributes) {
		name := chainOf(family, a)
		if rules[name] == nil {
			rules[name] = &ruleList{}
		}
		rules[name].add(a)
	})
	if Unsupported(err) {
		return nil, nil
	}
	if err == nil {
		err = l.each(unix.NFT_MSG_GETTABLE, "tables", l.table)
	}
	if err == nil {
		err = l.each(unix.NFT_MSG_GETCHAIN, "chains", l.chain)
	}
	if err == nil {
		err = l.each(unix.NFT_MSG_GETFLOWTABLE, "flow tables", l.flowtable)
	}
	slices.SortStableFunc(l.out, func(a, b Listed) int { return strings.Compare(a.Name, b.Name) })
	return l.out, err
}

func chainOf(family byte, a attributes) string {
	return strings.Join([]string{"chain", familyName(family), a.text(unix.NFTA_RULE_TABLE),
		a.text(unix.NFTA_RULE_CHAIN)}, " ")
}

// Generation returns a number that grows with each change of the namespace's packet filters, even
// if the change is undone. It returns 0 without nf_tables.
func Generation() (uint32, error) {
	const header, genID = 4, 1 // struct nfgenmsg, NFTA_GEN_ID
	c, err := raw.Dial(unix.NETLINK_NETFILTER)
	if err != nil {
		return 0, fmt.Errorf("open nftables: %w", err)
	}
	defer func() { _ = c.Close() }()
	msgs, err := c.Execute(netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(
			unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETGEN), Flags: netlink.Request},
		Data: make([]byte, header),
	})
	switch {
	case Unsupported(err):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("read nftables' generation: %w", err)
	case len(msgs) == 0 || len(msgs[0].Data) < header:
		return 0, nil
	}
	a, err := decode(msgs[0].Data[header:])
	return a.number(genID), err
}

type lister struct {
	conn  *netlink.Conn
	rules map[string]*ruleList
	out   []Listed
}

func (l *lister) each(kind uint16, what string, f func(family byte, a attributes)) error {
	msgs, err := dump(l.conn, kind, make([]byte, headerSize))
	if err != nil {
		return fmt.Errorf("list nftables %s: %w", what, err)
	}
	for _, m := range msgs {
		a, err := decode(m.Data[headerSize:])
		if err != nil {
			return fmt.Errorf("list nftables %s: %w", what, err)
		}
		f(m.Data[0], a)
	}
	return nil
}

const headerSize = 4 // struct nfgenmsg: family, version, resource

func dump(c *netlink.Conn, kind uint16, request []byte) ([]netlink.Message, error) {
	msgs, err := c.Execute(netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(unix.NFNL_SUBSYS_NFTABLES<<8 | kind),
			Flags: netlink.Request | netlink.Dump},
		Data: request,
	})
	return slices.DeleteFunc(msgs, func(m netlink.Message) bool {
		return len(m.Data) < headerSize
	}), err
}

func (l *lister) table(family byte, a attributes) {
	text := "active"
	if f := a.get(unix.NFTA_TABLE_FLAGS); len(f) == 4 && binary.BigEndian.Uint32(f)&1 != 0 {
		text = "dormant"
	}
	l.out = append(l.out, Listed{Name: "table " + familyName(family) + " " +
		a.text(unix.NFTA_TABLE_NAME), Text: text})
}

func (l *lister) chain(family byte, a attributes) {
	name := strings.Join([]string{"chain", familyName(family), a.text(unix.NFTA_CHAIN_TABLE),
		a.text(unix.NFTA_CHAIN_NAME)}, " ")
	out := Listed{Name: name, Text: l.rules[name].String()}
	if hook, err := decode(a.get(unix.NFTA_CHAIN_HOOK)); err == nil && len(hook) > 0 {
		out.Devices = devicesOf(hook)
		policy := "drop"
		if a.number(unix.NFTA_CHAIN_POLICY) == 1 {
			policy = "accept"
		}
		out.Text = fmt.Sprintf("%s hook %d priority %d policy %s with %s",
			a.text(unix.NFTA_CHAIN_TYPE), hook.number(unix.NFTA_HOOK_HOOKNUM),
			int32(hook.number(unix.NFTA_HOOK_PRIORITY)), policy, out.Text)
	}
	l.out = append(l.out, out)
}

// linux/netfilter/nf_tables.h
const (
	flowtableTable = 1
	flowtableName  = 2
	flowtableHook  = 3
	flowtableDevs  = 3 // in the hook
	hookDevs       = 4
)

func (l *lister) flowtable(family byte, a attributes) {
	out := Listed{Name: strings.Join([]string{
		"flowtable", familyName(family), a.text(flowtableTable), a.text(flowtableName)}, " "),
		Text: "no devices"}
	if hook, err := decode(a.get(flowtableHook)); err == nil {
		out.Devices = names(hook.get(flowtableDevs))
	}
	if len(out.Devices) > 0 {
		out.Text = strings.Join(out.Devices, ", ")
	}
	l.out = append(l.out, out)
}

func devicesOf(hook attributes) []string {
	out := names(hook.get(hookDevs))
	if one := hook.text(unix.NFTA_HOOK_DEV); one != "" && !slices.Contains(out, one) {
		out = append(out, one)
	}
	return out
}

func names(list []byte) (out []string) {
	const prefix = 2 // NFTA_DEVICE_PREFIX: Linux 6.17
	all, err := decode(list)
	if err != nil {
		return nil
	}
	for _, a := range all {
		name := text(a.data)
		if a.kind == prefix {
			name += "*"
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Hooks reports whether the chain or flow table sees the device's frames.
func (l Listed) Hooks(device string) bool {
	return slices.ContainsFunc(l.Devices, func(d string) bool {
		before, all := strings.CutSuffix(d, "*")
		return d == device || all && strings.HasPrefix(device, before)
	})
}

// Hooks reports whether a chain sees the device's frames.
func (s Saved) Hooks(device string) bool {
	for _, a := range s.each(unix.NFT_MSG_NEWCHAIN) {
		hook, err := decode(a.get(unix.NFTA_CHAIN_HOOK))
		if err == nil && (Listed{Devices: devicesOf(hook)}).Hooks(device) {
			return true
		}
	}
	return false
}

var familyNames = map[byte]string{unix.NFPROTO_INET: "inet", unix.NFPROTO_IPV4: "ip",
	unix.NFPROTO_ARP:    "arp",
	unix.NFPROTO_NETDEV: "netdev", unix.NFPROTO_BRIDGE: "bridge", unix.NFPROTO_IPV6: "ip6"}

func familyName(f byte) string {
	if n, ok := familyNames[f]; ok {
		return n
	}
	return fmt.Sprintf("family %d", f)
}

type ruleList struct {
	n   int
	sum uint32
}

func (r *ruleList) String() string {
	switch {
	case r == nil || r.n == 0:
		return "no rules"
	case r.n == 1:
		return fmt.Sprintf("1 rule (checksum %06x)", r.sum&0xffffff)
	}
	return fmt.Sprintf("%d rules (checksum %06x)", r.n, r.sum&0xffffff)
}

func (r *ruleList) add(a attributes) {
	r.n++
	list, err := decode(a.get(unix.NFTA_RULE_EXPRESSIONS))
	if err != nil {
		return
	}
	for _, elem := range list {
		e, err := decode(elem.data)
		if err != nil {
			continue
		}
		name := e.text(unix.NFTA_EXPR_NAME)
		r.sum = crc32.Update(r.sum, crc32.IEEETable, []byte(name))
		if !slices.Contains(counting, name) {
			r.sum = crc32.Update(r.sum, crc32.IEEETable, e.get(unix.NFTA_EXPR_DATA))
		}
	}
}

// counting lists the expressions whose data change with the traffic.
var counting = []string{"counter", "quota", "last", "limit", "connlimit", "numgen"}

type attribute struct {
	kind uint16
	data []byte
}

type attributes []attribute

var errAttributes = errors.New("damaged netlink attributes")

// decode returns attributes whose data are parts of b.
func decode(b []byte) (attributes, error) {
	n := 0
	for rest := b; len(rest) > 0; n++ {
		size, err := sizeOf(rest)
		if err != nil {
			break
		}
		rest = rest[min(len(rest), aligned(size)):]
	}
	return make(attributes, 0, n).decode(b)
}

// decode appends attributes whose data are parts of b.
func (a attributes) decode(b []byte) (attributes, error) {
	const flags = unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER
	for len(b) > 0 {
		size, err := sizeOf(b)
		if err != nil {
			return a, err
		}
		a = append(a, attribute{binary.NativeEndian.Uint16(b[2:]) &^ flags,
			b[unix.NLA_HDRLEN:size:size]})
		b = b[min(len(b), aligned(size)):]
	}
	return a, nil
}

// sizeOf returns the size of the first attribute, with its header.
func sizeOf(b []byte) (int, error) {
	if len(b) < unix.NLA_HDRLEN {
		return 0, errAttributes
	}
	size := int(binary.NativeEndian.Uint16(b))
	if size < unix.NLA_HDRLEN || size > len(b) {
		return 0, errAttributes
	}
	return size, nil
}

func aligned(size int) int { return (size + unix.NLA_ALIGNTO - 1) &^ (unix.NLA_ALIGNTO - 1) }

func (a attributes) get(kind uint16) []byte {
	for _, x := range a {
		if x.kind == kind {
			return x.data
		}
	}
	return nil
}

func (a attributes) text(kind uint16) string { return text(a.get(kind)) }

func (a attributes) number(kind uint16) uint32 {
	if b := a.get(kind); len(b) == 4 {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func text(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return s
}
