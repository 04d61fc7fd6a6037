package nft

import (
	"slices"
	"strings"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Options returns, for each rule that iptables-nft writes in this form, the options with which
// iptables-save prints it, except those of xtables' own matches. Rules that only nft writes are
// absent: iptables-save prints them without what it does not know, such as sets.
func (s Saved) Options() map[Place][]string {
	out := map[Place][]string{}
	for r := range s.eachRule() {
		six := r.header[0] == unix.NFPROTO_IPV6
		if o, ok := (&iptablesRule{six: six}).read(r.expressions()); ok {
			out[Place{r.table, r.chain, r.number}] = o
		}
	}
	return out
}

// Iptables lists the tables that iptables-nft made: it names base chains in capitals.
func (s Saved) Iptables() (out []string) {
	made := map[string]bool{}
	for family, a := range s.each(unix.NFT_MSG_NEWCHAIN) {
		if a.get(unix.NFTA_CHAIN_HOOK) == nil {
			continue
		}
		table := familyName(family) + " " + a.text(unix.NFTA_CHAIN_TABLE)
		name := a.text(unix.NFTA_CHAIN_NAME)
		before, known := made[table]
		made[table] = (before || !known) && name == strings.ToUpper(name)
	}
	for table, yes := range made {
		if yes {
			out = append(out, table)
		}
	}
	return out
}

// iptablesRule reads the expressions of a rule in the order in which iptables-nft writes them:
// matches, one counter, a target.
type iptablesRule struct {
	six     bool
	options []string
	counted bool
	last    bool // the target was read
}

// A loaded value is compared with what iptables can name.
type comparison struct {
	option       string
	masked       bool // a mask is possible
	must, ranged bool // a mask is necessary; a range is possible
}

func (r *iptablesRule) read(all []expression) (options []string, ok bool) {
	for len(all) > 0 {
		n := 0
		if r.counted {
			n = r.target(all)
		} else {
			n = r.match(all)
		}
		if n == 0 {
			return nil, false
		}
		all = all[n:]
	}
	slices.Sort(r.options)
	once := len(slices.Compact(slices.Clone(r.options))) == len(r.options)
	return r.options, r.counted && once
}

// match returns the number of expressions of the match at the start of all, or 0.
func (r *iptablesRule) match(all []expression) int {
	switch e := all[0]; e.name {
	case "counter":
		r.counted = true
		return 1
	case "match":
		return 1
	case "limit":
		if e.attrs.number(unix.NFTA_LIMIT_TYPE)|e.attrs.number(unix.NFTA_LIMIT_FLAGS) == 0 {
			r.options = append(r.options, "--limit")
			return 1
		}
	case "meta":
		c, ok := map[expr.MetaKey]comparison{
			expr.MetaKeyIIFNAME: {option: "-i"}, expr.MetaKeyOIFNAME: {option: "-o"},
			expr.MetaKeyL4PROTO: {option: "-p"}, expr.MetaKeyMARK: {option: "--mark", masked: true},
		}[expr.MetaKey(e.attrs.number(unix.NFTA_META_KEY))]
		if ok && e.attrs.get(unix.NFTA_META_SREG) == nil {
			return r.compared(all, c)
		}
	case "payload":
		if c, ok := r.field(e.attrs); ok {
			return r.compared(all, c)
		}
	}
	return 0
}

func (r *iptablesRule) field(a attributes) (c comparison, ok bool) {
	const fragments, flags = 6, 13 // offsets in the headers of IPv4 and TCP
	offset, size := a.number(unix.NFTA_PAYLOAD_OFFSET), a.number(unix.NFTA_PAYLOAD_LEN)
	src, dst, protocol, most := uint32(offsetSrc), uint32(offsetDst), uint32(offsetProto), uint32(4)
	if r.six {
		src, dst, protocol, most = offsetSrc6, offsetDst6, 6, 16
	}
	switch a.number(unix.NFTA_PAYLOAD_BASE) {
	case unix.NFT_PAYLOAD_NETWORK_HEADER:
		switch {
		case offset == src && size <= most:
			return comparison{option: "-s", masked: true}, true
		case offset == dst && size <= most:
			return comparison{option: "-d", masked: true}, true
		case offset == protocol && size == 1:
			return comparison{option: "-p"}, true
		case offset == fragments && size == 2 && !r.six:
			return comparison{option: "-f", masked: true, must: true}, true
		}
	case unix.NFT_PAYLOAD_TRANSPORT_HEADER:
		switch {
		case offset == offsetSport && size == 2:
			return comparison{option: "--sport", ranged: true}, true
		case offset == offsetDport && size == 2:
			return comparison{option: "--dport", ranged: true}, true
		case offset == flags && size == 1:
			return comparison{option: "--tcp-flags", masked: true, must: true}, true
		}
	}
	return comparison{}, false
}

// compared returns the number of expressions that load a value and compare it, or 0.
func (r *iptablesRule) compared(all []expression, c comparison) int {
	n := 1
	masked := c.masked && len(all) > n && all[n].name == "bitwise"
	if masked {
		n++
	}
	if len(all) <= n || c.must && !masked {
		return 0
	}
	switch e := all[n]; {
	case e.name == "cmp" && e.attrs.number(unix.NFTA_CMP_OP) <= unix.NFT_CMP_NEQ:
	case e.name == "range" && c.ranged:
	default:
		return 0
	}
	r.options = append(r.options, c.option)
	return n + 1
}

// target returns the number of expressions of the target at the start of all, or 0.
func (r *iptablesRule) target(all []expression) int {
	if r.last {
		return 0
	}
	r.last = true
	switch e := all[0]; e.name {
	case "target":
		r.options = append(r.options, "-j")
		return 1
	case "log": // NFLOG; LOG is a target of xtables
		if e.attrs.get(unix.NFTA_LOG_GROUP) != nil {
			r.options = append(r.options, "-j")
			return 1
		}
	case "immediate":
		if _, verdict := verdictCode(e.attrs); verdict {
			return 1
		}
		if len(all) > 1 && all[1].name == "meta" && // TRACE
			all[1].attrs.get(unix.NFTA_META_SREG) != nil &&
			all[1].attrs.number(unix.NFTA_META_KEY) == unix.NFT_META_NFTRACE {
			r.options = append(r.options, "-j")
			return 2
		}
	}
	return 0
}
