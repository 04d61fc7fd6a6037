package nft

import (
	"iter"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/xtables"
)

// Rules returns the places of all rules, in order.
func (s Saved) Rules() (out []Place) {
	for r := range s.eachRule() {
		out = append(out, Place{r.table, r.chain, r.number})
	}
	return out
}

// HasRules reports whether a table, such as "ip filter", has rules.
func (s Saved) HasRules(table string) bool {
	for r := range s.eachRule() {
		if r.table == table {
			return true
		}
	}
	return false
}

type savedRule struct {
	decoder      *decoder
	at           int // in the messages
	header       []byte
	table, chain string
	number       int
	attrs        attributes
	exprs        []expression
	limits       map[string]string // the kinds of the table's limiting objects and maps, by name
	updated      map[string]bool   // the table's sets that rules update
	sets         map[string]setSize
	idle         bool           // the rule does nothing to packets that match
	effect       xtables.Effect // of a doubtful rule
	begins       bool           // see xtables.Doubt
	known        xtables.Known
}

// setSize has the sizes of a set's keys and of a map's data, in bytes.
type setSize struct{ key, data uint32 }

// inRules has the messages that eachRule needs.
var inRules = []uint16{unix.NFT_MSG_NEWOBJ, unix.NFT_MSG_NEWSET, unix.NFT_MSG_NEWRULE}

// eachRule yields the rules, in order, one after the other in the same memory, because a machine
// may have tens of thousands: without what decoded adds, and without idle, which needs the later
// rules of the chain.
func (s Saved) eachRule() iter.Seq[*savedRule] {
	return func(yield func(*savedRule) bool) {
		numbers := map[[2]string]int{}
		objects, sets := map[string]map[string]string{}, map[string]map[string]setSize{}
		known := words{}
		var table, name string // of the last message
		var family byte
		r, d := &savedRule{}, decoder{}
		for i, m := range s.Messages {
			if m.Type>>8 != unix.NFNL_SUBSYS_NFTABLES || len(m.Data) < headerSize {
				continue
			}
			kind := m.Type & 0xff
			if !slices.Contains(inRules, kind) {
				continue
			}
			a, err := d.rule[:0].decode(m.Data[headerSize:])
			if d.rule = a; err != nil {
				continue
			}
			of := known.keep(a.get(unix.NFTA_RULE_TABLE))
			if table == "" || of != name || family != m.Data[0] {
				name, family = of, m.Data[0]
				table = familyName(family) + " " + name
			}
			if objects[table] == nil {
				objects[table], sets[table] = map[string]string{}, map[string]setSize{}
			}
			switch kind {
			case unix.NFT_MSG_NEWOBJ:
				objects[table][a.text(unix.NFTA_OBJ_NAME)] = limiting[a.number(unix.NFTA_OBJ_TYPE)]
				continue
			case unix.NFT_MSG_NEWSET:
				of := limiting[a.number(unix.NFTA_SET_OBJ_TYPE)]
				objects[table][inMap+a.text(unix.NFTA_SET_NAME)] = of
				sets[table][a.text(unix.NFTA_SET_NAME)] = setSize{a.number(unix.NFTA_SET_KEY_LEN),
					a.number(unix.NFTA_SET_DATA_LEN)}
				continue
			}
			*r = savedRule{decoder: &d, at: i, header: m.Data[:headerSize], table: table,
				chain: known.keep(a.get(unix.NFTA_RULE_CHAIN)), attrs: a, limits: objects[table],
				sets: sets[table]}
			numbers[[2]string{table, r.chain}]++
			r.number = numbers[[2]string{table, r.chain}]
			if !yield(r) {
				return
			}
		}
	}
}

// expressions decodes the rule's expressions, until the next rule.
func (r *savedRule) expressions() []expression { return r.decoder.expressions(r.attrs) }

// decoded yields the rules, like eachRule, with what word needs.
func (s Saved) decoded(known xtables.Known) iter.Seq[*savedRule] {
	return func(yield func(*savedRule) bool) {
		updated := s.updated()
		for r := range s.eachRule() {
			r.known, r.exprs, r.updated = known, r.expressions(), updated[r.table]
			if !yield(r) {
				return
			}
		}
	}
}

// updated returns the names of the sets whose elements depend on earlier packets, by table: rules
// update them, or each element has a limit of its own.
func (s Saved) updated() map[string]map[string]bool {
	out := map[string]map[string]bool{}
	note := func(family uint8, a attributes, set string) {
		table := familyName(family) + " " + a.text(unix.NFTA_RULE_TABLE)
		if out[table] == nil {
			out[table] = map[string]bool{}
		}
		out[table][set] = true
	}
	for family, a := range s.each(unix.NFT_MSG_NEWSET, "limit\x00", "quota\x00") {
		note(family, a, a.text(unix.NFTA_SET_NAME))
	}
	for family, a := range s.each(unix.NFT_MSG_NEWRULE, "dynset") {
		for _, e := range expressions(a) {
			if e.name == "dynset" {
				note(family, a, e.attrs.text(unix.NFTA_DYNSET_SET_NAME))
			}
		}
	}
	return out
}

// Filled returns the indexes of the ipsets that rules of iptables-nft fill or empty; see
// xtables.Saved.Filled.
func (s Saved) Filled() (out []uint16) {
	for r := range s.eachRule() {
		if !mentions(r.attrs.get(unix.NFTA_RULE_EXPRESSIONS), "SET") {
			continue
		}
		for _, e := range r.expressions() {
			if e.name == "target" {
				out = append(out, xtables.Filled(e.xt(), byte(e.attrs.number(unix.NFTA_TARGET_REV)),
					e.attrs.get(unix.NFTA_TARGET_INFO))...)
			}
		}
	}
	return out
}

// each yields the family and the attributes of the messages of a kind: of all, or of those that
// mention one of the words.
func (s Saved) each(kind uint16, words ...string) iter.Seq2[uint8, attributes] {
	return func(yield func(uint8, attributes) bool) {
		for _, m := range s.Messages {
			if m.Type != unix.NFNL_SUBSYS_NFTABLES<<8|kind || len(m.Data) < headerSize ||
				len(words) > 0 && !mentions(m.Data, words...) {
				continue
			}
			if a, err := decode(m.Data[headerSize:]); err == nil && !yield(m.Data[0], a) {
				return
			}
		}
	}
}

func (s Saved) rules(known xtables.Known) []*savedRule {
	var out []*savedRule
	chains := map[[2]string][]*savedRule{}
	for each := range s.decoded(known) {
		r := *each
		r.attrs = slices.Clone(r.attrs)
		r.exprs = expressions(r.attrs)
		key := [2]string{r.table, r.chain}
		chains[key] = append(chains[key], &r)
		out = append(out, &r)
	}
	for _, rules := range chains {
		last := true
		for _, r := range slices.Backward(rules) {
			r.idle = r.idles(last)
			last = last && r.idle
		}
	}
	s.findEffects(out)
	return out
}
