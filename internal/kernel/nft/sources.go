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
	parts := map[string]map[keyPart]bool{}
	for r := range s.eachRule() {
		if !nat[r.table] {
			r.exprs = r.expressions()
			r.sources(out, parts)
			r.answers(out)
		}
	}
	if len(parts) == 0 {
		return
	}
	elements := map[string][]element{}
	for family, a := range s.each(unix.NFT_MSG_NEWSETELEM) {
		set := familyName(family) + " " + a.text(unix.NFTA_SET_ELEM_LIST_TABLE) + " " +
			a.text(unix.NFTA_SET_ELEM_LIST_SET)
		if parts[set] != nil {
			elements[set] = append(elements[set], elementsIn(a)...)
		}
	}
	for set, list := range elements {
		for p := range parts[set] {
			p.add(list, out)
		}
	}
}

// keyPart is a packet's source in the keys of a set.
type keyPart struct {
	source
	at int // position in a key
}

// sources adds what the rule compares with packets' source, and where sets have it.
func (r *savedRule) sources(out *xtables.Sources, parts map[string]map[keyPart]bool) {
	loaded, above := map[uint32]source{}, map[uint32]bound{}
	for _, e := range r.exprs {
		from, to := registers(e)
		switch e.name {
		case "payload", "meta":
			loaded[to] = sourceOf(e)
		case "bitwise":
			loaded[to] = loaded[from].masked(e)
		case "cmp":
			loaded[from].compared(e, from, above, out)
		case "range":
			first, _ := decode(e.attrs.get(unix.NFTA_RANGE_FROM_DATA))
			last, _ := decode(e.attrs.get(unix.NFTA_RANGE_TO_DATA))
			if s := loaded[from]; s.kind == address {
				out.AddRange(s.whole(first.get(unix.NFTA_DATA_VALUE), 0),
					s.whole(last.get(unix.NFTA_DATA_VALUE), 0xff))
			}
		case "lookup": // of the source alone or with more, in further registers
			set := r.table + " " + e.attrs.text(unix.NFTA_LOOKUP_SET)
			for reg, s := range loaded {
				if s.kind == other || reg < from {
					continue
				}
				if parts[set] == nil {
					parts[set] = map[keyPart]bool{}
				}
				parts[set][keyPart{s, int(reg-from) * unix.NFT_REG32_SIZE}] = true
			}
		case "match":
			out.Match(e.xt(), e.attrs.get(unix.NFTA_MATCH_INFO))
		default:
			delete(loaded, to)
		}
	}
	for _, b := range above {
		out.AddRange(b.address, b.whole(nil, 0xff))
	}
}

// answers adds the addresses to which the rule stops all packets, whatever their ports are. Rules
// that except a device by which packets come do not count: Docker has one for each container.
func (r *savedRule) answers(out *xtables.Sources) {
	loaded, found, stops := map[uint32]source{}, xtables.Sources{}, false
	for _, e := range r.exprs {
		from, to := registers(e)
		v, _ := e.verdict(nil)
		stops = stops || v == xtables.Drop
		switch s := loaded[from]; e.name {
		case "payload":
			if e.attrs.number(unix.NFTA_PAYLOAD_BASE) == unix.NFT_PAYLOAD_TRANSPORT_HEADER {
				return
			}
			loaded[to] = destinationOf(e)
		case "meta":
			loaded[to] = sourceOf(e)
		case "bitwise":
			loaded[to] = s.masked(e)
		case "cmp":
			if s.kind == address {
				s.compared(e, from, map[uint32]bound{}, &found)
			} else if s.kind != other &&
				expr.CmpOp(e.attrs.number(unix.NFTA_CMP_OP)) == expr.CmpOpNeq {
				return
			}
		case "match":
			if xtables.MatchesPorts(e.xt()) {
				return
			}
		}
	}
	if stops {
		out.Add(found)
	}
}

// masked returns what a bitwise expression leaves of the source.
func (s source) masked(e expression) source {
	mask, _ := decode(e.attrs.get(unix.NFTA_BITWISE_MASK))
	if bits, size := net.IPMask(mask.get(unix.NFTA_DATA_VALUE)).Size(); size > 0 {
		s.bits = bits
	}
	return s
}

// bound is the first address of a range that a rule compares with the source.
type bound struct {
	source
	address []byte
}

// compared adds the value with which an expression compares the source in a register, and in above
// the first addresses of ranges whose last ones are not known yet.
func (s source) compared(e expression, register uint32, above map[uint32]bound,
	out *xtables.Sources) {
	data, _ := decode(e.attrs.get(unix.NFTA_CMP_DATA))
	value := data.get(unix.NFTA_DATA_VALUE)
	switch op := expr.CmpOp(e.attrs.number(unix.NFTA_CMP_OP)); {
	case s.kind != address:
		s.add(value, value, out)
	case op == expr.CmpOpGt, op == expr.CmpOpGte:
		above[register] = bound{s, s.whole(value, 0)}
	case op == expr.CmpOpLt, op == expr.CmpOpLte:
		first := above[register].address
		if first == nil {
			first = s.whole(nil, 0)
		}
		delete(above, register)
		out.AddRange(first, s.whole(value, 0xff))
	default:
		out.AddNet(s.whole(value, 0), s.bits)
	}
}

// source is what a register has of a packet's source.
type source struct {
	kind       sourceKind
	size, bits int // of the value in bytes, and of an address' part that is compared
}

type sourceKind int

const (
	other   sourceKind = iota // nothing of it
	address                   // all or the first bytes
	name                      // a hardware address, or the name of the device by which a packet comes
	index                     // of that device
)

func sourceOf(e expression) source {
	const ethernetSource, ethernetSize, nameSize, indexSize, size4, size6 = 6, 6, 16, 4, 4, 16
	const offsetSenderMAC, offsetSender = 8, 14 // of ARP
	if e.name == "meta" {
		switch expr.MetaKey(e.attrs.number(unix.NFTA_META_KEY)) {
		case expr.MetaKeyIIFNAME:
			return source{kind: name, size: nameSize}
		case expr.MetaKeyIIF:
			return source{kind: index, size: indexSize}
		}
		return source{}
	}
	at, size := e.attrs.number(unix.NFTA_PAYLOAD_OFFSET), int(e.attrs.number(unix.NFTA_PAYLOAD_LEN))
	const bits = 8 // of a byte
	switch base := e.attrs.number(unix.NFTA_PAYLOAD_BASE); {
	case base == unix.NFT_PAYLOAD_LL_HEADER && at == ethernetSource && size >= ethernetSize:
		return source{kind: name, size: ethernetSize} // and perhaps the protocol behind it
	case base != unix.NFT_PAYLOAD_NETWORK_HEADER:
	case at == offsetSenderMAC && size == ethernetSize:
		return source{kind: name, size: ethernetSize}
	case at == offsetSender && size == size4:
		return source{address, size4, bits * size4}
	case at == offsetSrc && (size <= size4 || size == 2*size4): // and perhaps the destination
		return source{address, size4, bits * min(size, size4)}
	case at == offsetSrc6 && size > size4 && (size <= size6 || size == 2*size6):
		return source{address, size6, bits * min(size, size6)}
	}
	return source{}
}

// destinationOf returns what a register has of the address to which a packet goes.
func destinationOf(e expression) source {
	const size4, size6, bits = 4, 16, 8
	at, size := e.attrs.number(unix.NFTA_PAYLOAD_OFFSET), int(e.attrs.number(unix.NFTA_PAYLOAD_LEN))
	switch {
	case e.attrs.number(unix.NFTA_PAYLOAD_BASE) != unix.NFT_PAYLOAD_NETWORK_HEADER:
	case at == offsetDst && size <= size4:
		return source{address, size4, bits * size}
	case at == offsetDst6 && size > size4 && size <= size6:
		return source{address, size6, bits * size}
	}
	return source{}
}

// whole returns a value in the source's size, filled up with a byte.
func (s source) whole(value []byte, with byte) []byte {
	out := slices.Clone(value[:min(len(value), s.size)])
	return append(out, bytes.Repeat([]byte{with}, s.size-len(out))...)
}

// add adds a value, or the addresses from first to last.
func (s source) add(first, last []byte, out *xtables.Sources) {
	switch {
	case s.kind == other, len(first) == 0:
	case s.kind == name:
		out.AddName(s.whole(first, 0))
	case s.kind == index && len(first) >= s.size:
		out.AddDevice(binary.NativeEndian.Uint32(first))
	case s.kind == address:
		out.AddRange(s.whole(first, 0), s.whole(last, 0xff))
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
			if p.at+p.size <= len(e.key) {
				p.source.add(e.key[p.at:], last[p.at:], out)
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
			p.source.add(first, next.Prev().AsSlice(), out)
		}
		first = nil
	}
	if first != nil {
		p.source.add(first, nil, out)
	}
}
