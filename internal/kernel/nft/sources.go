package nft

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"slices"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/xtables"
)

// Sources adds what rules of filters compare with the source of packets, or with the destination of
// answers. Tables that only translate addresses do not count: Docker, CNI and Kubernetes have rules
// for each container there.
func (s Saved) Sources(out *xtables.Sources) {
	nat := map[string]bool{}
	for family, a := range s.each(unix.NFT_MSG_NEWCHAIN) {
		if kind := a.text(unix.NFTA_CHAIN_TYPE); kind != "" {
			t := familyName(family) + " " + a.text(unix.NFTA_CHAIN_TABLE)
			only, known := nat[t]
			nat[t] = kind == "nat" && (only || !known)
		}
		if family == unix.NFPROTO_NETDEV {
			hook, _ := decode(a.get(unix.NFTA_CHAIN_HOOK))
			for _, device := range devicesOf(hook) {
				out.AddName([]byte(device))
			}
		}
	}
	c := comparisons{out: out, keys: map[string]map[keyPart]bool{}, loaded: map[uint32]load{},
		above: map[uint32]bound{}}
	for r := range s.eachRule() {
		if nat[r.table] {
			continue
		}
		r.exprs = r.expressions()
		c.add(r, xtables.Source)
		if r.answers() {
			c.add(r, xtables.Destination)
		}
	}
	if len(c.keys) == 0 {
		return
	}
	elements := map[string][]element{}
	for family, a := range s.each(unix.NFT_MSG_NEWSETELEM) {
		set := familyName(family) + " " + a.text(unix.NFTA_SET_ELEM_LIST_TABLE) + " " +
			a.text(unix.NFTA_SET_ELEM_LIST_SET)
		if c.keys[set] != nil {
			elements[set] = append(elements[set], elementsIn(a)...)
		}
	}
	for set, list := range elements {
		for p := range c.keys[set] {
			p.add(list, out)
		}
	}
}

// keyPart is an end of packets in the keys of a set.
type keyPart struct {
	load
	at int // position in a key
}

// comparisons finds what rules compare with an end of packets.
type comparisons struct {
	out    *xtables.Sources
	keys   map[string]map[keyPart]bool // where sets have it
	loaded map[uint32]load             // by the rule at hand, in registers
	above  map[uint32]bound
}

// add adds what a rule compares with an end of packets.
func (c *comparisons) add(r *savedRule, of xtables.End) {
	clear(c.loaded)
	clear(c.above)
	for _, e := range r.exprs {
		from, to := registers(e)
		switch e.name {
		case "payload", "meta", "ct":
			c.loaded[to] = loadedBy(e, of)
		case "bitwise":
			c.loaded[to] = c.loaded[from].masked(e)
		case "cmp":
			c.loaded[from].compared(e, from, c.above, c.out)
		case "range":
			first, _ := decode(e.attrs.get(unix.NFTA_RANGE_FROM_DATA))
			last, _ := decode(e.attrs.get(unix.NFTA_RANGE_TO_DATA))
			if p := c.loaded[from]; p.kind == address {
				c.out.AddRange(p.whole(first.get(unix.NFTA_DATA_VALUE), 0),
					p.whole(last.get(unix.NFTA_DATA_VALUE), 0xff))
			}
		case "lookup": // of the end alone or with more, in further registers
			set := r.table + " " + e.attrs.text(unix.NFTA_LOOKUP_SET)
			for reg, p := range c.loaded {
				if p.kind == other || reg < from {
					continue
				}
				if c.keys[set] == nil {
					c.keys[set] = map[keyPart]bool{}
				}
				c.keys[set][keyPart{p, int(reg-from) * unix.NFT_REG32_SIZE}] = true
			}
			delete(c.loaded, to)
		case "match":
			c.out.Match(of, e.xt(), e.attrs.get(unix.NFTA_MATCH_INFO))
		default:
			delete(c.loaded, to)
		}
	}
	for _, b := range c.above {
		c.out.AddRange(b.address, b.whole(nil, 0xff))
	}
}

// answers reports whether the rule does something to answers, whose ports are any. Rules that
// except a device by which packets come do not count: Docker has one for each container.
func (r *savedRule) answers() (does bool) {
	const portEnd = 4 // offset behind the destination's port
	device := ^uint32(0)
	for _, e := range r.exprs {
		from, to := registers(e)
		switch e.name {
		case "payload":
			at, size := e.attrs.number(unix.NFTA_PAYLOAD_OFFSET), e.attrs.number(unix.NFTA_PAYLOAD_LEN)
			if e.attrs.number(unix.NFTA_PAYLOAD_BASE) == unix.NFT_PAYLOAD_TRANSPORT_HEADER &&
				at < portEnd && at+size > offsetDport {
				return false
			}
		case "match":
			if xtables.LimitsPorts(e.xt(), e.attrs.get(unix.NFTA_MATCH_INFO)) {
				return false
			}
		case "cmp":
			if from == device && expr.CmpOp(e.attrs.number(unix.NFTA_CMP_OP)) == expr.CmpOpNeq {
				return false
			}
		}
		if e.name == "meta" && loadedBy(e, xtables.Source).kind != other {
			device = to
		} else if device == to {
			device = ^uint32(0)
		}
		v, _ := e.verdict(nil)
		does = does || v != xtables.Continue || e.alters()
	}
	return does
}

// masked returns what a bitwise expression leaves of the load.
func (l load) masked(e expression) load {
	mask, _ := decode(e.attrs.get(unix.NFTA_BITWISE_MASK))
	value := mask.get(unix.NFTA_DATA_VALUE)
	if len(value) == 0 {
		return l
	}
	if bits, size := net.IPMask(l.whole(value, 0)).Size(); size > 0 {
		l.bits = bits
	}
	return l
}

// bound is the first address of a range that a rule compares with an end.
type bound struct {
	load
	address []byte
}

// compared adds the value with which an expression compares what a register has, and in above
// the first addresses of ranges whose last ones are not known yet.
func (l load) compared(e expression, register uint32, above map[uint32]bound,
	out *xtables.Sources) {
	data, _ := decode(e.attrs.get(unix.NFTA_CMP_DATA))
	value := data.get(unix.NFTA_DATA_VALUE)
	switch op := expr.CmpOp(e.attrs.number(unix.NFTA_CMP_OP)); {
	case l.kind != address:
		l.add(value, value, out)
	case op == expr.CmpOpGt, op == expr.CmpOpGte:
		above[register] = bound{l, l.whole(value, 0)}
	case op == expr.CmpOpLt, op == expr.CmpOpLte:
		first := above[register].address
		if first == nil {
			first = l.whole(nil, 0)
		}
		delete(above, register)
		out.AddRange(first, l.whole(value, 0xff))
	default:
		out.AddNet(l.whole(value, 0), l.bits)
	}
}

// load is what a register has of an end of a packet.
type load struct {
	kind       loadKind
	skip       int // bytes of the register before it
	size, bits int // of the value in bytes, and of an address' part that is compared
}

type loadKind int

const (
	other   loadKind = iota // nothing of it
	address                 // all or the first bytes
	name                    // a hardware address, or the name of a device
	index                   // of that device
)

// loadedBy returns what an expression loads of an end of a packet. Of connections, the client
// counts as a source, whichever way packets go.
func loadedBy(e expression, of xtables.End) load {
	const nameSize, indexSize = 16, 4
	end := int(of)
	switch e.name {
	case "meta":
		switch expr.MetaKey(e.attrs.number(unix.NFTA_META_KEY)) {
		case [...]expr.MetaKey{expr.MetaKeyIIFNAME, expr.MetaKeyOIFNAME}[end]:
			return load{kind: name, size: nameSize}
		case [...]expr.MetaKey{expr.MetaKeyIIF, expr.MetaKeyOIF}[end]:
			return load{kind: index, size: indexSize}
		}
		return load{}
	case "ct":
		if of == xtables.Source {
			return clientOf(e)
		}
		return load{}
	}
	at := int(e.attrs.number(unix.NFTA_PAYLOAD_OFFSET))
	size := int(e.attrs.number(unix.NFTA_PAYLOAD_LEN))
	switch e.attrs.number(unix.NFTA_PAYLOAD_BASE) {
	case unix.NFT_PAYLOAD_LL_HEADER: // perhaps with the other end's, and the protocol behind it
		const size6 = 6
		if skip := [...]int{size6, 0}[end] - at; skip >= 0 && skip+size6 <= size {
			return load{kind: name, skip: skip, size: size6}
		}
	case unix.NFT_PAYLOAD_NETWORK_HEADER:
		return loadedFromNetwork(at, size, end)
	}
	return load{}
}

// loadedFromNetwork returns what bytes of the headers of IPv4, IPv6 or ARP have of an end.
func loadedFromNetwork(at, size, end int) load {
	const sizeMAC, size4, size6, bits = 6, 4, 16, 8
	const offsetMAC, offsetARP, sizeARP = 8, 14, sizeMAC + size4
	switch {
	case at == offsetMAC+sizeARP*end && size == sizeMAC:
		return load{kind: name, size: sizeMAC}
	case at == offsetARP+sizeARP*end && size == size4,
		at == offsetSrc+size4*end && size <= size4:
		return load{address, 0, size4, bits * size}
	case at == offsetSrc && size == 2*size4: // both ends
		return load{address, size4 * end, size4, bits * size4}
	case at == offsetSrc6+size6*end && size > size4 && size <= size6:
		return load{address, 0, size6, bits * size}
	case at == offsetSrc6 && size == 2*size6:
		return load{address, size6 * end, size6, bits * size6}
	}
	return load{}
}

// clientOf returns what an expression loads of the address of a connection's client.
func clientOf(e expression) load {
	const size4, size6, bits, reply = 4, 16, 8, 1 // IP_CT_DIR_REPLY
	v4, v6 := uint32(unix.NFT_CT_SRC_IP), uint32(unix.NFT_CT_SRC_IP6)
	if slices.Equal(e.attrs.get(unix.NFTA_CT_DIRECTION), []byte{reply}) {
		v4, v6 = unix.NFT_CT_DST_IP, unix.NFT_CT_DST_IP6
	}
	switch e.attrs.number(unix.NFTA_CT_KEY) {
	case v4:
		return load{address, 0, size4, bits * size4}
	case v6:
		return load{address, 0, size6, bits * size6}
	}
	return load{}
}

// whole returns the part of a value in its size, filled up with a byte.
func (l load) whole(value []byte, with byte) []byte {
	value = value[min(len(value), l.skip):]
	out := slices.Clone(value[:min(len(value), l.size)])
	return append(out, bytes.Repeat([]byte{with}, l.size-len(out))...)
}

// add adds a value, or the addresses from first to last.
func (l load) add(first, last []byte, out *xtables.Sources) {
	switch {
	case l.kind == other, len(first) == 0:
	case l.kind == name:
		out.AddName(l.whole(first, 0))
	case l.kind == index && len(first) >= l.size:
		out.AddDevice(binary.NativeEndian.Uint32(first))
	case l.kind == address:
		out.AddRange(l.whole(first, 0), l.whole(last, 0xff))
	}
}

// element is one of a set's, or a bound of an interval.
type element struct {
	key, last []byte // last is empty if the element is no interval
	ends      bool   // an interval ends before the key
}

func elementsIn(list attributes) (out []element) {
	const keyEnd = 10 // NFTA_SET_ELEM_KEY_END
	elements, _ := decode(list.get(unix.NFTA_SET_ELEM_LIST_ELEMENTS))
	for _, x := range elements {
		a, _ := decode(x.data)
		key, _ := decode(a.get(unix.NFTA_SET_ELEM_KEY))
		last, _ := decode(a.get(keyEnd))
		e := element{key: key.get(unix.NFTA_DATA_VALUE), last: last.get(unix.NFTA_DATA_VALUE),
			ends: a.number(unix.NFTA_SET_ELEM_FLAGS)&unix.NFT_SET_ELEM_INTERVAL_END != 0}
		if len(e.key) > 0 {
			out = append(out, e)
		}
	}
	return out
}

// add adds the part of a set's elements.
func (p keyPart) add(list []element, out *xtables.Sources) {
	if !slices.ContainsFunc(list, func(e element) bool { return e.ends }) {
		for _, e := range list {
			last := e.last
			if len(last) != len(e.key) {
				last = e.key
			}
			if p.at+p.skip+p.size <= len(e.key) {
				p.load.add(e.key[p.at:], last[p.at:], out)
			}
		}
		return
	}
	list = slices.SortedStableFunc(slices.Values(list), func(a, b element) int {
		if c := bytes.Compare(a.key, b.key); c != 0 || a.ends == b.ends {
			return c
		}
		if a.ends {
			return -1
		}
		return 1
	})
	var first []byte // of an interval that has not ended
	for _, e := range list {
		if !e.ends {
			first = e.key
			continue
		}
		if next, ok := netip.AddrFromSlice(e.key); ok && first != nil {
			p.load.add(first, next.Prev().AsSlice(), out)
		}
		first = nil
	}
	if first != nil {
		p.load.add(first, nil, out)
	}
}
