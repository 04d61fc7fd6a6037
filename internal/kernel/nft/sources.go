package nft

import (
	"net"
	"slices"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/xtables"
)

// Sources adds what rules of filters compare with the source of packets. Tables that only translate
// addresses do not count: Docker, CNI and Kubernetes have rules for each container there.
func (s Saved) Sources(out *xtables.Sources) {
	sets, nat := map[string]bool{}, map[string]bool{}
	for family, a := range s.each(unix.NFT_MSG_NEWCHAIN) {
		if kind := a.text(unix.NFTA_CHAIN_TYPE); kind != "" {
			t := familyName(family) + " " + a.text(unix.NFTA_CHAIN_TABLE)
			only, known := nat[t]
			nat[t] = kind == "nat" && (only || !known)
		}
	}
	for r := range s.eachRule() {
		if !nat[r.table] {
			r.exprs = expressions(r.attrs)
			r.sources(out, sets)
		}
	}
	if len(sets) == 0 {
		return
	}
	for family, a := range s.each(unix.NFT_MSG_NEWSETELEM) {
		if sets[familyName(family)+" "+a.text(unix.NFTA_SET_ELEM_LIST_TABLE)+" "+
			a.text(unix.NFTA_SET_ELEM_LIST_SET)] {
			out.Lists = append(out.Lists, a.get(unix.NFTA_SET_ELEM_LIST_ELEMENTS))
		}
	}
}

// sources adds what the rule compares with packets' source, and the sets in which it looks for it.
func (r *savedRule) sources(out *xtables.Sources, sets map[string]bool) {
	loaded := map[uint32]source{}
	for _, e := range r.exprs {
		from, to := registers(e)
		switch e.name {
		case "payload", "meta":
			loaded[to] = sourceOf(e)
		case "bitwise":
			mask, _ := decode(e.attrs.get(unix.NFTA_BITWISE_MASK))
			bits, size := net.IPMask(mask.get(unix.NFTA_DATA_VALUE)).Size()
			if s := loaded[from]; size > 0 {
				s.bits = bits
				loaded[to] = s
			}
		case "cmp":
			value, _ := decode(e.attrs.get(unix.NFTA_CMP_DATA))
			switch s, b := loaded[from], value.get(unix.NFTA_DATA_VALUE); {
			case s.size > 0 && len(b) <= s.size:
				out.AddNet(append(slices.Clip(b), make([]byte, s.size-len(b))...), s.bits)
			case s.named:
				out.AddName(b)
			}
		case "range":
			if s := loaded[from]; s.size > 0 {
				out.Lists = append(out.Lists, e.list.data)
			}
		case "lookup": // of the source alone or with more, in further registers
			for _, s := range loaded {
				if s.size > 0 || s.named {
					sets[r.table+" "+e.attrs.text(unix.NFTA_LOOKUP_SET)] = true
				}
			}
		case "match":
			out.Match(e.xt(), e.attrs.get(unix.NFTA_MATCH_INFO))
		}
	}
}

// source is what a register has of a packet's source; zero: nothing.
type source struct {
	size, bits int  // of an address in bytes, and of its part that is compared
	named      bool // a hardware address, or the name of the device by which the packet comes
}

func sourceOf(e expression) source {
	const ethernetSource, ethernetSize, size4, size6 = 6, 6, 4, 16
	if e.name == "meta" {
		return source{named: expr.MetaKey(e.attrs.number(unix.NFTA_META_KEY)) == expr.MetaKeyIIFNAME}
	}
	at, size := e.attrs.number(unix.NFTA_PAYLOAD_OFFSET), int(e.attrs.number(unix.NFTA_PAYLOAD_LEN))
	const bits = 8 // of a byte
	switch base := e.attrs.number(unix.NFTA_PAYLOAD_BASE); {
	case base == unix.NFT_PAYLOAD_LL_HEADER:
		return source{named: at == ethernetSource && size == ethernetSize}
	case base == unix.NFT_PAYLOAD_NETWORK_HEADER && at == offsetSrc && size <= size4:
		return source{size: size4, bits: bits * size}
	case base == unix.NFT_PAYLOAD_NETWORK_HEADER && at == offsetSrc6 && size > size4 && size <= size6:
		return source{size: size6, bits: bits * size}
	}
	return source{}
}
