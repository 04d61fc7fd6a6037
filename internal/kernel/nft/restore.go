package nft

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
)

// Restore makes the rules in the calling thread's namespace, which must have none. If the kernel
// refuses a rule, one that does nothing replaces it, so that rules keep their numbers.
//
// Anonymous sets and chains become named ones, with the names that the kernel had chosen. So a
// transaction may end between a set and the rule that uses it.
func (s Saved) Restore() ([]raw.Refused, error) {
	if len(s.Messages) == 0 {
		return nil, nil
	}
	t, err := newTransactor()
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(t.fd) }()
	numbers := map[string]int{}
	for i, m := range s.Messages {
		p, err := partOf(m, i, numbers)
		if err != nil {
			t.refused = append(t.refused, raw.Refused{What: p.what, Err: err})
			continue
		}
		if err := t.add(p); err != nil {
			return t.refused, err
		}
	}
	return t.refused, t.flush()
}

// Replace makes the rules in the calling thread's namespace in place of those there.
func (s Saved) Replace() ([]raw.Refused, error) {
	t, err := newTransactor()
	if err != nil {
		return nil, err
	}
	refused, err := t.send([]part{{kind: unix.NFT_MSG_DELTABLE}})
	for _, why := range refused {
		err = errors.Join(err, why)
	}
	if err = errors.Join(err, unix.Close(t.fd)); err != nil {
		return nil, fmt.Errorf("remove nftables rules: %w", err)
	}
	return s.Restore()
}

// part is a message that Restore sends.
type part struct {
	kind   uint16
	family byte
	attrs  attributes
	what   string
}

var (
	errHostile = errors.New("not an object of nftables")
	errCut     = errors.New("the message is damaged")
)

// copied lists the attributes that are copied, by kind of message. The kernel itself chooses
// handles, use counts and positions, and it refuses some other attributes that it prints.
var copied = map[uint16][]uint16{
	unix.NFT_MSG_NEWTABLE: {unix.NFTA_TABLE_NAME, unix.NFTA_TABLE_FLAGS, tableUserdata},
	unix.NFT_MSG_NEWCHAIN: {unix.NFTA_CHAIN_TABLE, unix.NFTA_CHAIN_NAME, unix.NFTA_CHAIN_HOOK,
		unix.NFTA_CHAIN_POLICY, unix.NFTA_CHAIN_TYPE, unix.NFTA_CHAIN_COUNTERS, chainFlags,
		chainUserdata},
	unix.NFT_MSG_NEWRULE: {unix.NFTA_RULE_TABLE, unix.NFTA_RULE_CHAIN, unix.NFTA_RULE_EXPRESSIONS,
		unix.NFTA_RULE_USERDATA},
	unix.NFT_MSG_NEWSET: {unix.NFTA_SET_TABLE, unix.NFTA_SET_NAME, unix.NFTA_SET_FLAGS,
		unix.NFTA_SET_KEY_TYPE, unix.NFTA_SET_KEY_LEN, unix.NFTA_SET_DATA_TYPE,
		unix.NFTA_SET_DATA_LEN, unix.NFTA_SET_POLICY, unix.NFTA_SET_DESC, unix.NFTA_SET_TIMEOUT,
		unix.NFTA_SET_GC_INTERVAL, unix.NFTA_SET_USERDATA, unix.NFTA_SET_OBJ_TYPE, setExpr,
		setExpressions},
	unix.NFT_MSG_NEWSETELEM: {unix.NFTA_SET_ELEM_LIST_TABLE, unix.NFTA_SET_ELEM_LIST_SET,
		unix.NFTA_SET_ELEM_LIST_ELEMENTS},
	unix.NFT_MSG_NEWOBJ: {unix.NFTA_OBJ_TABLE, unix.NFTA_OBJ_NAME, unix.NFTA_OBJ_TYPE,
		unix.NFTA_OBJ_DATA, objectUserdata},
	unix.NFT_MSG_NEWFLOWTABLE: {flowtableTable, flowtableName, flowtableHook, flowtableFlags},
}

// linux/netfilter/nf_tables.h
const (
	tableUserdata  = 6
	chainFlags     = 10
	chainUserdata  = 12
	setExpr        = 17
	setExpressions = 18
	objectUserdata = 8
	flowtableFlags = 7

	tableDormant = 1
	chainBase    = 1

	quotaInverted    = 1
	flowtableCounter = 2 // the only flag that is kept: not the hardware's
)

// partOf returns the part for a saved message. It removes what cannot be copied: the owner of a
// table (with whom the table would end), offload to hardware, and the flags of anonymous objects.
func partOf(m raw.Message, number int, numbers map[string]int) (part, error) {
	p := part{kind: m.Type & 0xff, what: "a message"}
	keep, known := copied[p.kind]
	if m.Type>>8 != unix.NFNL_SUBSYS_NFTABLES || !known {
		return p, errHostile
	}
	if len(m.Data) < headerSize {
		return p, errCut
	}
	a, err := decode(m.Data[headerSize:])
	if err != nil {
		return p, fmt.Errorf("%w: %w", errCut, err)
	}
	p.family, p.attrs = m.Data[0], a.only(keep)
	where := familyName(p.family) + " " + text(a.get(unix.NFTA_TABLE_NAME))
	name := text(a.get(2)) // the object's name; 1 is the table's name in all messages
	switch p.kind {
	case unix.NFT_MSG_NEWTABLE:
		p.what = "table " + where
		p.mask(unix.NFTA_TABLE_FLAGS, tableDormant)
	case unix.NFT_MSG_NEWCHAIN:
		p.what = "chain " + where + " " + text(a.get(unix.NFTA_CHAIN_NAME))
		p.mask(chainFlags, chainBase)
	case unix.NFT_MSG_NEWRULE:
		numbers[where+" "+name]++
		p.what = fmt.Sprintf("rule %d of %s %s", numbers[where+" "+name], where, name)
		if mentions(p.attrs.get(unix.NFTA_RULE_EXPRESSIONS), "dynset", "quota", "match", "target") {
			exprs := expressions(p.attrs)
			err = p.mend(exprs)
			p.compat(exprs)
		}
	case unix.NFT_MSG_NEWSET:
		p.what = "set " + where + " " + name
		p.mask(unix.NFTA_SET_FLAGS, ^uint32(unix.NFT_SET_ANONYMOUS))
		p.attrs = p.attrs.with(unix.NFTA_SET_ID, binary.BigEndian.AppendUint32(nil, uint32(number)))
	case unix.NFT_MSG_NEWSETELEM:
		p.what = "elements of " + where + " " + name
	case unix.NFT_MSG_NEWOBJ:
		p.what = "object " + where + " " + name
	case unix.NFT_MSG_NEWFLOWTABLE:
		p.what = "flowtable " + where + " " + name
		p.mask(flowtableFlags, flowtableCounter)
		err = p.bare()
	}
	return p, err
}

func (p *part) mask(flags uint16, keep uint32) {
	value := p.attrs.number(flags) & keep
	p.attrs = p.attrs.without(flags)
	if value != 0 {
		p.attrs = append(p.attrs, attribute{flags, binary.BigEndian.AppendUint32(nil, value)})
	}
}

// bare removes a flow table's devices. Then no packet enters the flow table, and all packets are
// forwarded as without it.
func (p *part) bare() error {
	hook, err := decode(p.attrs.get(flowtableHook))
	if err != nil {
		return fmt.Errorf("%w: %w", errCut, err)
	}
	b, err := encode(hook.without(flowtableDevs))
	p.attrs = p.attrs.with(flowtableHook, b)
	return err
}

// mend removes what the kernel prints but does not accept: a timeout of 0, and the flag of a quota
// that is used up.
func (p *part) mend(exprs []expression) error {
	if !slices.ContainsFunc(exprs, func(e expression) bool {
		return e.name == "dynset" || e.name == "quota"
	}) {
		return nil
	}
	var list attributes
	for _, e := range exprs {
		fixed := part{attrs: e.attrs}
		switch e.name {
		case "dynset":
			if allZero(e.attrs.get(unix.NFTA_DYNSET_TIMEOUT)) {
				fixed.attrs = e.attrs.without(unix.NFTA_DYNSET_TIMEOUT)
			}
		case "quota":
			fixed.mask(unix.NFTA_QUOTA_FLAGS, quotaInverted)
		default:
			list = append(list, e.list)
			continue
		}
		data, err := encode(fixed.attrs)
		if err != nil {
			return err
		}
		b, err := encode(attributes{{unix.NFTA_EXPR_NAME, []byte(e.name + "\x00")},
			{unix.NFTA_EXPR_DATA, data}})
		if err != nil {
			return err
		}
		list = append(list, attribute{unix.NFTA_LIST_ELEM, b})
	}
	b, err := encode(list)
	if err == nil {
		p.attrs = p.attrs.with(unix.NFTA_RULE_EXPRESSIONS, b)
	}
	return err
}

// compat adds the protocol that some matches and targets of xtables require. The kernel does not
// print it.
func (p *part) compat(exprs []expression) {
	if !slices.ContainsFunc(exprs, func(e expression) bool { return e.xt() != "" }) {
		return
	}
	const (
		proto    = 1 // NFTA_RULE_COMPAT_PROTO
		flags    = 2 // NFTA_RULE_COMPAT_FLAGS
		inverted = 2 // NFT_RULE_COMPAT_F_INV
	)
	var reg, number, inv uint32
	size, found := 0, false
	for _, e := range exprs {
		a := e.attrs
		switch e.name {
		case "meta":
			switch key := a.number(unix.NFTA_META_KEY); {
			case key == unix.NFT_META_L4PROTO && !p.bridges():
				reg, size = a.number(unix.NFTA_META_DREG), 1
			case key == unix.NFT_META_PROTOCOL && p.bridges():
				reg, size = a.number(unix.NFTA_META_DREG), 2
			}
		case "payload":
			if p.loadsProtocol(a) {
				reg, size = a.number(unix.NFTA_PAYLOAD_DREG), int(a.number(unix.NFTA_PAYLOAD_LEN))
			}
		case "cmp":
			value, _ := decode(a.get(unix.NFTA_CMP_DATA))
			b := value.get(unix.NFTA_DATA_VALUE)
			if found || reg == 0 || len(b) != size || a.number(unix.NFTA_CMP_SREG) != reg {
				continue
			}
			if found, number = true, uint32(b[0]); size > 1 {
				number = uint32(binary.NativeEndian.Uint16(b)) // as in struct ebt_entry
			}
			if a.number(unix.NFTA_CMP_OP) == unix.NFT_CMP_NEQ {
				inv = inverted
			}
		}
	}
	if !found {
		return
	}
	b, err := encode(attributes{{proto, binary.BigEndian.AppendUint32(nil, number)},
		{flags, binary.BigEndian.AppendUint32(nil, inv)}})
	if err == nil {
		p.attrs = p.attrs.with(unix.NFTA_RULE_COMPAT, b)
	}
}

func (p *part) bridges() bool { return p.family == unix.NFPROTO_BRIDGE }

func (p *part) loadsProtocol(a attributes) bool {
	if p.bridges() {
		const etherType = 12 // offset
		return a.number(unix.NFTA_PAYLOAD_BASE) == unix.NFT_PAYLOAD_LL_HEADER &&
			a.number(unix.NFTA_PAYLOAD_OFFSET) == etherType && a.number(unix.NFTA_PAYLOAD_LEN) == 2
	}
	offset := uint32(offsetProto)
	if p.family == unix.NFPROTO_IPV6 {
		offset = 6
	}
	return a.number(unix.NFTA_PAYLOAD_BASE) == unix.NFT_PAYLOAD_NETWORK_HEADER &&
		a.number(unix.NFTA_PAYLOAD_OFFSET) == offset && a.number(unix.NFTA_PAYLOAD_LEN) == 1
}

// mentions reports whether a rule's message may have an expression with one of the names. Most
// rules of a machine with many have none, and need not be decoded.
func mentions(rule []byte, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return bytes.Contains(rule, []byte(name))
	})
}

type expression struct {
	name  string
	attrs attributes
	list  attribute // the list's
}

// expressions decodes a rule's expressions; a damaged one has no name.
func expressions(rule attributes) []expression { return (&decoder{}).expressions(rule) }

// decoder decodes one rule after the other into the same memory.
type decoder struct {
	rule, list, all attributes
	exprs           []expression
}

// expressions is like the function. What it returned before changes.
func (d *decoder) expressions(rule attributes) []expression {
	d.list, _ = d.list[:0].decode(rule.get(unix.NFTA_RULE_EXPRESSIONS))
	d.exprs, d.all = d.exprs[:0], d.all[:0]
	for _, x := range d.list {
		e := expression{list: x}
		n := len(d.all)
		if both, err := d.all.decode(x.data); err == nil {
			e.name = expressionNames.of(both[n:].get(unix.NFTA_EXPR_NAME))
			d.all, _ = d.all.decode(both[n:].get(unix.NFTA_EXPR_DATA))
			e.attrs = d.all[n:len(d.all):len(d.all)]
		}
		d.exprs = append(d.exprs, e)
	}
	return d.exprs
}

// words has strings, so that those of thousands of rules are not allocated again for each.
type words map[string]string

var expressionNames = func() words {
	out := words{}
	for _, name := range slices.Concat(harmless, []string{"counter", "immediate", "target", "nat",
		"masq", "redir", "reject", "notrack", "objref"}) {
		out[name] = name
	}
	return out
}()

// of returns the text of an attribute, like text.
func (w words) of(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	if s, ok := w[string(b)]; ok {
		return s
	}
	return string(b)
}

// keep is like of, and remembers the string.
func (w words) keep(b []byte) string {
	s := w.of(b)
	w[s] = s
	return s
}
