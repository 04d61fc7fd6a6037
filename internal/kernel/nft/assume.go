package nft

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/xtables"
)

// Doubts lists the doubtful rules (see xtables.Doubt), except those that only log.
func (s Saved) Doubts(known xtables.Known) (out []xtables.Doubt) {
	if !s.doubtful(known) {
		return nil
	}
	for _, r := range s.rules(known) {
		if word := r.doubt(); word != "" && r.effect != xtables.Same {
			out = append(out, xtables.Doubt{Table: r.table, Chain: r.chain,
				Number: r.number, Word: word, Effect: r.effect, Begins: r.begins})
		}
	}
	return out
}

// doubtful reports whether a rule may be doubtful. It spares machines with many rules, most of
// which have none, to keep all of them decoded.
func (s Saved) doubtful(known xtables.Known) bool {
	for r := range s.decoded(known) {
		for _, e := range r.exprs {
			if r.word(e) != "" {
				return true
			}
		}
	}
	return false
}

// Assume returns a copy of the rules with those in Doubts replaced, for one of two copies; see
// xtables.Saved.Assume.
func (s Saved) Assume(lenient bool, known xtables.Known) Saved {
	if !s.doubtful(known) {
		return s
	}
	out := Saved{Messages: slices.Clone(s.Messages)}
	for _, r := range s.rules(known) {
		if r.doubt() == "" {
			continue
		}
		list, err := encode(r.assume(lenient))
		if err != nil {
			continue
		}
		attrs, err := encode(r.attrs.with(unix.NFTA_RULE_EXPRESSIONS, list))
		if err == nil {
			out.Messages[r.at].Data = append(slices.Clone(r.header), attrs...)
		}
	}
	return out
}

// Random reports whether a rule chooses at random.
func (s Saved) Random() bool {
	for r := range s.eachRule() {
		list := r.attrs.get(unix.NFTA_RULE_EXPRESSIONS)
		if !mentions(list, "numgen", "hash", "statistic", "HMARK") && (!mentions(list, "meta") ||
			bytes.IndexByte(list, byte(expr.MetaKeyPRANDOM)) < 0) {
			continue
		}
		for _, e := range r.expressions() {
			switch {
			case e.name == "numgen", e.name == "hash", xtables.RandomMatch(e.xt()):
				return true
			case e.name == "meta" &&
				expr.MetaKey(e.attrs.number(unix.NFTA_META_KEY)) == expr.MetaKeyPRANDOM:
				return true
			}
		}
	}
	return false
}

// Untracks reports whether rules may exempt packets from connection tracking.
func (s Saved) Untracks() bool {
	for r := range s.eachRule() {
		if !mentions(r.attrs.get(unix.NFTA_RULE_EXPRESSIONS), append(xtables.Untracking,
			"notrack")...) {
			continue
		}
		if slices.ContainsFunc(r.expressions(), func(e expression) bool {
			return e.name == "notrack" || slices.Contains(xtables.Untracking, e.xt())
		}) {
			return true
		}
	}
	return false
}

// Redirects reports whether rules may change the destinations of a protocol's packets: "tcp",
// "udp", or "" for any.
func (s Saved) Redirects(proto string) bool {
	for r := range s.eachRule() {
		if !mentions(r.attrs.get(unix.NFTA_RULE_EXPRESSIONS), append([]string{"nat", "redir", "payload"},
			xtables.Redirecting...)...) {
			continue
		}
		r.exprs = r.expressions()
		if slices.ContainsFunc(r.exprs, func(e expression) bool {
			return e.rewrites() || e.name == "payload" && e.alters()
		}) && !r.excludes(proto) {
			return true
		}
	}
	return false
}

// excludes reports whether the rule is for another protocol alone.
func (r *savedRule) excludes(proto string) bool {
	number, known := xtables.Protocols[proto]
	for i := 1; known && i < len(r.exprs); i++ {
		load, e := r.exprs[i-1], r.exprs[i]
		_, to := registers(load)
		from, _ := registers(e)
		if load.name != "meta" || load.attrs.number(unix.NFTA_META_KEY) != unix.NFT_META_L4PROTO ||
			e.name != "cmp" || from != to ||
			expr.CmpOp(e.attrs.number(unix.NFTA_CMP_OP)) != expr.CmpOpEq {
			continue
		}
		value, _ := decode(e.attrs.get(unix.NFTA_CMP_DATA))
		if !slices.Equal(value.get(unix.NFTA_DATA_VALUE), []byte{number}) {
			return true
		}
	}
	return false
}

var limiting = map[uint32]string{unix.NFT_OBJECT_QUOTA: "quota", unix.NFT_OBJECT_LIMIT: "limit",
	unix.NFT_OBJECT_CONNLIMIT: "connlimit", unix.NFT_OBJECT_CT_EXPECT: expectWord}

const (
	queueWord = "NFQUEUE"
	// expectWord is of rules that expect further connections of a client. They drop packets of the
	// next connection while these are expected.
	expectWord = "ct expectation"
)

// xt returns the name of an xtables match or target, or "".
func (e expression) xt() string {
	if e.name != "match" && e.name != "target" {
		return ""
	}
	return e.attrs.text(unix.NFTA_MATCH_NAME) // and NFTA_TARGET_NAME
}

func (r *savedRule) doubt() string {
	if r.idle {
		return ""
	}
	for _, e := range r.exprs {
		if word := r.word(e); word != "" {
			return word
		}
	}
	return ""
}

func (r *savedRule) word(e expression) string {
	switch e.name {
	case "meta":
		switch expr.MetaKey(e.attrs.number(unix.NFTA_META_KEY)) {
		case expr.MetaKeySKUID, expr.MetaKeySKGID:
			return "owner"
		case expr.MetaKeyCGROUP:
			return "cgroup"
		case expr.MetaKeyCPU:
			return "cpu"
		case metaTimeNs, metaTimeDay, metaTimeHour:
			return "time"
		case metaInKind, metaOutKind: // a card's is another in a copy
			return "kind"
		case expr.MetaKeyIIFTYPE, expr.MetaKeyOIFTYPE:
			if !slices.Equal(r.compared(e), ethernet) {
				return "iiftype"
			}
		}
	case "ct":
		switch e.attrs.number(unix.NFTA_CT_KEY) {
		case unix.NFT_CT_PKTS, unix.NFT_CT_BYTES, unix.NFT_CT_AVGPKT:
			return "connbytes"
		}
	case "payload":
		return r.payloadWord(e)
	case "socket", "limit", "quota", "connlimit", "osf":
		return e.name
	case "dynset":
		return xtables.UpdateWord
	case "lookup":
		if r.updated[e.attrs.text(unix.NFTA_LOOKUP_SET)] {
			return xtables.UpdateWord
		}
	case "queue":
		return queueWord
	case "tproxy":
		return "TPROXY"
	case "objref":
		if e.attrs.get(objectMap) != nil {
			return r.limits[inMap+e.attrs.text(objectMap)]
		}
		return r.limits[e.attrs.text(objectName)]
	case "match":
		return xtables.MatchDoubt(e.xt(), e.attrs.get(unix.NFTA_MATCH_INFO), r.known)
	case "target":
		if xtables.DoubtfulTarget(e.xt()) {
			return e.xt()
		}
	}
	return ""
}

const (
	objectName = 2 // NFTA_OBJREF_IMM_NAME
	objectMap  = 4 // NFTA_OBJREF_SET_NAME
	inMap      = "@"
)

// Of enum nft_meta_keys.
const (
	metaInKind = 26 + iota
	metaOutKind
	_
	_
	metaTimeNs
	metaTimeDay
	metaTimeHour
)

// ethernet is ARPHRD_ETHER, which all cards of a copy are.
var ethernet = binary.NativeEndian.AppendUint16(nil, unix.ARPHRD_ETHER)

// payloadWord returns the word for what a copy's clients do not have in common with others: their
// hardware addresses, if these are not known in the copy, and the number of routers on the way.
// With a time to live of 255, which shows that there was none, it makes no difference.
func (r *savedRule) payloadWord(e expression) string {
	at, size := e.attrs.number(unix.NFTA_PAYLOAD_OFFSET), e.attrs.number(unix.NFTA_PAYLOAD_LEN)
	const offsetTTL, offsetHopLimit, offsetSource, unrouted = 8, 7, 6, 255
	switch e.attrs.number(unix.NFTA_PAYLOAD_BASE) {
	case unix.NFT_PAYLOAD_INNER_HEADER:
		return "payload"
	case unix.NFT_PAYLOAD_LL_HEADER:
		if at <= offsetSource && at+size > offsetSource && !r.known.MACs[string(r.compared(e))] {
			return "mac"
		}
	case unix.NFT_PAYLOAD_NETWORK_HEADER:
		is := r.protocol(e)
		if size == 1 && (is == unix.NFPROTO_IPV4 && at == offsetTTL ||
			is == unix.NFPROTO_IPV6 && at == offsetHopLimit) &&
			!slices.Equal(r.compared(e), []byte{unrouted}) {
			return "ttl"
		}
	}
	return ""
}

// compared returns the data with which the next expression compares what e loads, or nil if it does
// something else.
func (r *savedRule) compared(e expression) []byte {
	for i, x := range r.exprs[:max(len(r.exprs)-1, 0)] {
		_, to := registers(e)
		next := r.exprs[i+1]
		if from, _ := registers(next); !x.is(e) || next.name != "cmp" || from != to {
			continue
		}
		value, _ := decode(next.attrs.get(unix.NFTA_CMP_DATA))
		return value.get(unix.NFTA_DATA_VALUE)
	}
	return nil
}

// is reports whether both are the same expression of a rule.
func (e expression) is(o expression) bool {
	return len(e.list.data) > 0 && len(o.list.data) > 0 && &e.list.data[0] == &o.list.data[0]
}

// protocol returns the family of the packets that e sees, or 0 if it is not known.
func (r *savedRule) protocol(e expression) byte {
	if family := r.header[0]; family == unix.NFPROTO_IPV4 || family == unix.NFPROTO_IPV6 {
		return family
	}
	for _, x := range r.exprs {
		if x.is(e) {
			break
		}
		if x.name == "meta" && x.attrs.number(unix.NFTA_META_KEY) == unix.NFT_META_NFPROTO {
			if b := r.compared(x); len(b) == 1 {
				return b[0]
			}
		}
	}
	return 0
}

// idles reports whether a rule does nothing to a packet except log and count it. With last, no
// later rule of the chain does more, so a rule that returns from the chain idles as well.
func (r *savedRule) idles(last bool) bool {
	for _, e := range r.exprs {
		switch v, _ := e.verdict(nil); {
		case e.alters(), v == xtables.Return && !last, r.word(e) == expectWord:
			return false
		case v != xtables.Continue && v != xtables.Return:
			return false
		}
	}
	return true
}

// harmless lists expressions that only match, load values, or observe.
var harmless = []string{"log", "last", "secmark", "cthelper", "cttimeout", "ctexpect",
	"flow_offload", "limit", "quota", "connlimit", "dynset", "rt", "socket", "exthdr", "hash",
	"numgen", "osf", "xfrm", "tunnel", "inner", "byteorder",
	"meta", "payload", "cmp", "lookup", "bitwise", "range", "fib", "ct", "match"}

func verdictCode(immediate attributes) (code int32, set bool) {
	data, _ := decode(immediate.get(unix.NFTA_IMMEDIATE_DATA))
	verdict, _ := decode(data.get(unix.NFTA_DATA_VERDICT))
	b := verdict.get(unix.NFTA_VERDICT_CODE)
	if len(b) != 4 {
		return 0, false
	}
	return int32(binary.BigEndian.Uint32(b)), true
}

func (r *savedRule) assume(lenient bool) (out attributes) {
	matches := r.effect.Matches(lenient)
	if !matches && !r.onlyExpects() {
		return nil
	}
	unknown := r.unknowns()
	for i, e := range r.exprs {
		word := r.word(e)
		v, _ := e.verdict(nil)
		switch {
		case r.effect == xtables.Either && v != xtables.Continue:
			return append(out, attribute{unix.NFTA_LIST_ELEM, immediateVerdict(lenient)})
		case word == expectWord && matches && r.effect == xtables.Stops:
			out = append(out, attribute{unix.NFTA_LIST_ELEM, immediateVerdict(false)})
		case word == "" && !unknown[i] || word == "TPROXY":
			out = append(out, e.list)
		}
	}
	if r.effect == xtables.Either {
		out = append(out, attribute{unix.NFTA_LIST_ELEM, immediateVerdict(lenient)})
	}
	return out
}

// onlyExpects reports whether nothing is doubtful about the rule but whether connections are
// expected. Without these, the rest of the rule is certain.
func (r *savedRule) onlyExpects() bool {
	return !slices.ContainsFunc(r.exprs, func(e expression) bool {
		word := r.word(e)
		return word != "" && word != expectWord
	})
}

// registerOf has the attributes of the registers that an expression reads and writes; 0: none.
var registerOf = map[string][2]uint16{"meta": {0, unix.NFTA_META_DREG},
	"payload": {0, unix.NFTA_PAYLOAD_DREG}, "ct": {0, unix.NFTA_CT_DREG},
	"fib": {0, unix.NFTA_FIB_DREG}, "immediate": {0, unix.NFTA_IMMEDIATE_DREG},
	"exthdr": {0, unix.NFTA_EXTHDR_DREG}, "rt": {0, unix.NFTA_RT_DREG},
	"socket": {0, 2}, "numgen": {0, unix.NFTA_NG_DREG}, "osf": {0, 1}, "xfrm": {0, 1},
	"hash":      {unix.NFTA_HASH_SREG, unix.NFTA_HASH_DREG},
	"cmp":       {unix.NFTA_CMP_SREG, 0},
	"range":     {unix.NFTA_RANGE_SREG, 0},
	"lookup":    {unix.NFTA_LOOKUP_SREG, unix.NFTA_LOOKUP_DREG},
	"bitwise":   {unix.NFTA_BITWISE_SREG, unix.NFTA_BITWISE_DREG},
	"byteorder": {unix.NFTA_BYTEORDER_SREG, unix.NFTA_BYTEORDER_DREG}}

// registers returns the registers that an expression reads and writes, or ^0.
func registers(e expression) (from, to uint32) {
	numbers := registerOf[e.name]
	at := func(kind uint16) uint32 {
		if kind == 0 || len(e.attrs.get(kind)) != 4 {
			return ^uint32(0)
		}
		return slot(e.attrs.number(kind))
	}
	return at(numbers[0]), at(numbers[1])
}

func immediateVerdict(accept bool) []byte {
	code := uint32(nfDrop)
	if accept {
		code = nfAccept
	}
	number := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	out := number(code)
	for _, list := range []attributes{
		{{unix.NFTA_VERDICT_CODE, nil}},
		{{unix.NFTA_DATA_VERDICT, nil}},
		{{unix.NFTA_IMMEDIATE_DREG, number(unix.NFT_REG_VERDICT)},
			{unix.NFTA_IMMEDIATE_DATA, nil}},
		{{unix.NFTA_EXPR_NAME, []byte("immediate\x00")}, {unix.NFTA_EXPR_DATA, nil}},
	} {
		list[len(list)-1].data = out
		out, _ = encode(list)
	}
	return out
}
