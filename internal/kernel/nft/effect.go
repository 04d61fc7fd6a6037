package nft

import (
	"slices"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/xtables"
)

// findEffects sets the effects of the doubtful rules.
func (s Saved) findEffects(all []*savedRule) {
	tables := map[string][]*savedRule{}
	doubtful := map[string]bool{}
	for _, r := range all {
		tables[r.table] = append(tables[r.table], r)
		doubtful[r.table] = doubtful[r.table] || r.doubt() != ""
	}
	if !slices.ContainsFunc(all, func(r *savedRule) bool { return doubtful[r.table] }) {
		return
	}
	bases, output, targets := s.bases(), s.natOutput(), s.targets()
	for table, rules := range tables {
		if !doubtful[table] {
			continue
		}
		var acts []xtables.Act
		for _, r := range rules {
			acts = append(acts, r.act(targets[table]))
		}
		effects := xtables.NewEffects(acts, bases[table])
		begins := effects.Only(output[table]...)
		for i, r := range rules {
			if r.doubt() != "" {
				r.effect, r.begins = effects.Of(i), begins[r.chain]
			}
		}
	}
}

// bases returns the names of the base chains, by table.
func (s Saved) bases() map[string][]string {
	return s.chains(func(a attributes) bool { return a.get(unix.NFTA_CHAIN_HOOK) != nil })
}

// natOutput returns the names of the base chains for NAT of connections that begin in the
// namespace, by table.
func (s Saved) natOutput() map[string][]string {
	const output = 3 // NF_INET_LOCAL_OUT
	return s.chains(func(a attributes) bool {
		hook, err := decode(a.get(unix.NFTA_CHAIN_HOOK))
		return err == nil && a.text(unix.NFTA_CHAIN_TYPE) == "nat" &&
			hook.get(unix.NFTA_HOOK_HOOKNUM) != nil && hook.number(unix.NFTA_HOOK_HOOKNUM) == output
	})
}

func (s Saved) chains(want func(attributes) bool) map[string][]string {
	out := map[string][]string{}
	for family, a := range s.each(unix.NFT_MSG_NEWCHAIN) {
		if want(a) {
			table := familyName(family) + " " + a.text(unix.NFTA_CHAIN_TABLE)
			out[table] = append(out[table], a.text(unix.NFTA_CHAIN_NAME))
		}
	}
	return out
}

// targets returns the chains to which verdict maps lead, by table and map.
func (s Saved) targets() map[string]map[string][]string {
	out := map[string]map[string][]string{}
	for family, a := range s.each(unix.NFT_MSG_NEWSETELEM) {
		table := familyName(family) + " " + a.text(unix.NFTA_SET_ELEM_LIST_TABLE)
		set := a.text(unix.NFTA_SET_ELEM_LIST_SET)
		elements, _ := decode(a.get(unix.NFTA_SET_ELEM_LIST_ELEMENTS))
		for _, x := range elements {
			e, _ := decode(x.data)
			if chain := chainIn(e.get(unix.NFTA_SET_ELEM_DATA)); chain != "" {
				if out[table] == nil {
					out[table] = map[string][]string{}
				}
				out[table][set] = append(out[table][set], chain)
			}
		}
	}
	return out
}

// chainIn returns the chain of a verdict, or "".
func chainIn(data []byte) string {
	d, _ := decode(data)
	verdict, _ := decode(d.get(unix.NFTA_DATA_VERDICT))
	return verdict.text(unix.NFTA_VERDICT_CHAIN)
}

// act returns what the rule does. targets has the chains of the table's maps.
func (r *savedRule) act(targets map[string][]string) xtables.Act {
	a := xtables.Act{Chain: r.chain, Doubt: r.doubt() != ""}
	a.Chance, a.Always = r.byChance()
	unknown := r.unknowns()
	expects, others := false, false
	for i, e := range r.exprs {
		word := r.word(e)
		expects, others = expects || word == expectWord, others || word != "" && word != expectWord
		if e.alters() { // it does so for certain if it comes first
			a.Alters, a.Open = true, a.Open || unknown[i] || !others
			continue
		}
		if v, to := e.verdict(targets); v != xtables.Continue && a.Verdict == xtables.Continue {
			a.Verdict, a.To = v, to
		}
	}
	switch {
	case expects && others:
		a.Verdict = xtables.Any
	case expects: // all else is certain
		a.Verdict, a.Alters, a.Open = xtables.Drop, false, false
	}
	return a
}

// byChance reports whether the rule matches some packets by chance only, or all.
func (r *savedRule) byChance() (chance, always bool) {
	for _, e := range r.exprs {
		switch {
		case e.name == "numgen":
			chance = true
		case e.name == "match" && xtables.ByChance(e.xt()):
			chance = chance || xtables.RandomMatch(e.xt())
		case e.name == "lookup" && chance:
		case e.name != "counter" && e.name != "immediate":
			return false, false
		}
	}
	return chance, !chance
}

// verdict returns where the expression sends packets, and the chains in which they may go on.
func (e expression) verdict(targets map[string][]string) (xtables.Verdict, []string) {
	switch {
	case e.name == "reject", e.xt() == "REJECT":
		return xtables.Drop, nil
	case e.name == "queue", xtables.Queues(e.xt()):
		return xtables.Any, nil
	case e.name == "lookup" && e.decides():
		return xtables.Any, targets[e.attrs.text(unix.NFTA_LOOKUP_SET)]
	case e.name != "immediate":
		return xtables.Continue, nil
	}
	code, set := verdictCode(e.attrs)
	to := []string{chainIn(e.attrs.get(unix.NFTA_IMMEDIATE_DATA))}
	switch {
	case !set, code == unix.NFT_CONTINUE:
		return xtables.Continue, nil
	case code == unix.NFT_RETURN:
		return xtables.Return, nil
	case code == unix.NFT_JUMP:
		return xtables.Jump, to
	case code == unix.NFT_GOTO:
		return xtables.Goto, to
	case code == nfAccept:
		return xtables.Accept, nil
	case code == nfDrop:
		return xtables.Drop, nil
	}
	return xtables.Any, nil
}

// decides reports whether a lookup's result is a verdict.
func (e expression) decides() bool {
	return e.attrs.get(unix.NFTA_LOOKUP_DREG) != nil &&
		e.attrs.number(unix.NFTA_LOOKUP_DREG) == unix.NFT_REG_VERDICT
}

// alters reports whether the expression changes packets, or what is known of them.
func (e expression) alters() bool {
	switch e.name {
	case "meta", "ct", "payload", "exthdr":
		return e.attrs.get(reading[e.name][0]) != nil && (e.name != "meta" ||
			e.attrs.number(unix.NFTA_META_KEY) != unix.NFT_META_NFTRACE)
	case "target":
		return !xtables.Logs(e.xt()) && !xtables.Queues(e.xt()) && e.xt() != "REJECT"
	case "immediate", "objref", "counter", "reject", "queue":
		return false
	}
	return !slices.Contains(harmless, e.name)
}

// reading has the attributes of the registers from which expressions take what they do.
var reading = map[string][]uint16{
	"nat": {unix.NFTA_NAT_REG_ADDR_MIN, unix.NFTA_NAT_REG_ADDR_MAX, unix.NFTA_NAT_REG_PROTO_MIN,
		unix.NFTA_NAT_REG_PROTO_MAX},
	"masq":  {unix.NFTA_MASQ_REG_PROTO_MIN, unix.NFTA_MASQ_REG_PROTO_MAX},
	"redir": {unix.NFTA_REDIR_REG_PROTO_MIN, unix.NFTA_REDIR_REG_PROTO_MAX},
	"dup":   {1, 2}, // NFTA_DUP_SREG_ADDR, NFTA_DUP_SREG_DEV
	"fwd":   {1, 2}, // NFTA_FWD_SREG_DEV, NFTA_FWD_SREG_ADDR
	"meta":  {unix.NFTA_META_SREG}, "ct": {unix.NFTA_CT_SREG}, "payload": {unix.NFTA_PAYLOAD_SREG},
	"exthdr":  {unix.NFTA_EXTHDR_SREG},
	"tproxy":  {2, 3}, // NFTA_TPROXY_REG_ADDR, NFTA_TPROXY_REG_PORT
	"queue":   {4},    // NFTA_QUEUE_SREG_QNUM
	"bitwise": {8},    // NFTA_BITWISE_SREG2
}

// unknowns reports for each expression whether it reads a value that a copy does not know, or what
// was computed from one.
func (r *savedRule) unknowns() []bool {
	out := make([]bool, len(r.exprs))
	unknown := map[uint32]bool{} // registers of 4 bytes
	const size = unix.NFT_REG32_SIZE
	for i, e := range r.exprs {
		from, to := registers(e)
		if from != ^uint32(0) {
			for n := range (r.reads(e) + size - 1) / size {
				out[i] = out[i] || unknown[from+n]
			}
		}
		for _, kind := range reading[e.name] {
			if len(e.attrs.get(kind)) == size {
				out[i] = out[i] || unknown[slot(e.attrs.number(kind))]
			}
		}
		if to == ^uint32(0) || to == unix.NFT_REG_VERDICT {
			continue
		}
		doubtful, n := out[i] || r.word(e) != "", r.writes(e)
		if n == 0 && doubtful || n > maxKey {
			n = maxKey
		}
		for n := range (n + size - 1) / size {
			unknown[to+n] = doubtful
		}
	}
	return out
}

// maxKey is the size of all registers, in bytes.
const maxKey = 64

// reads returns how many bytes an expression reads from its register.
func (r *savedRule) reads(e expression) uint32 {
	n := uint32(0)
	switch e.name {
	case "cmp":
		value, _ := decode(e.attrs.get(unix.NFTA_CMP_DATA))
		n = uint32(len(value.get(unix.NFTA_DATA_VALUE)))
	case "range":
		value, _ := decode(e.attrs.get(unix.NFTA_RANGE_FROM_DATA))
		n = uint32(len(value.get(unix.NFTA_DATA_VALUE)))
	case "lookup":
		n = r.sets[e.attrs.text(unix.NFTA_LOOKUP_SET)].key
	default:
		n = r.writes(e)
	}
	if n == 0 || n > maxKey {
		return maxKey
	}
	return n
}

// writes returns how many bytes an expression writes to its register at least; 0: not known.
func (r *savedRule) writes(e expression) uint32 {
	const word, long = 4, 8
	n := uint32(word)
	switch e.name {
	case "payload":
		n = e.attrs.number(unix.NFTA_PAYLOAD_LEN)
	case "bitwise":
		n = e.attrs.number(unix.NFTA_BITWISE_LEN)
	case "byteorder":
		n = e.attrs.number(unix.NFTA_BYTEORDER_LEN)
	case "exthdr":
		n = e.attrs.number(unix.NFTA_EXTHDR_LEN)
	case "immediate":
		value, _ := decode(e.attrs.get(unix.NFTA_IMMEDIATE_DATA))
		n = uint32(len(value.get(unix.NFTA_DATA_VALUE)))
	case "lookup":
		n = r.sets[e.attrs.text(unix.NFTA_LOOKUP_SET)].data
	case "ct", "socket":
		n = long
	case "osf":
		n = unix.IFNAMSIZ
	case "meta":
		switch expr.MetaKey(e.attrs.number(unix.NFTA_META_KEY)) {
		case expr.MetaKeyIIFNAME, expr.MetaKeyOIFNAME, metaInKind, metaOutKind:
			n = unix.IFNAMSIZ
		case metaTimeNs:
			n = long
		}
	}
	return n
}
