package xtables

import (
	"encoding/binary"
	"slices"
)

// Doubt is a rule that may match other packets in a copy of its namespace than in the original,
// because its match depends on the process, the CPU, earlier packets, packets' data, the time or
// another program.
type Doubt struct {
	Table  string // "ip filter", "iptables-legacy filter"
	Chain  string
	Number int    // in the chain, from 1
	Word   string // "owner", "recent", "limit"
	Effect Effect
	// Begins means that only the first packet of a connection that begins in the namespace meets
	// the rule, because only chains for NAT of such packets lead to it.
	Begins bool
}

// Known has what the results of some matches depend on.
type Known struct {
	MACs map[string]bool // hardware addresses of the copy's devices, as strings of bytes
	Sets map[uint16]bool // indexes of the ipsets that rules fill; see Saved.Filled
	// Foreign has the indexes of the ipsets with other hardware addresses than those in MACs.
	Foreign map[uint16]bool
}

// stateless lists the matches that are the same in a copy. It lacks owner, cgroup, cpu, socket,
// recent, limit, hashlimit, connlimit, connbytes, quota, osf, string, time, geoip and unknown
// matches, and those of MatchDoubt.
var stateless = []string{"802_3", "addrtype", "ah", "arp", "cluster", "comment", "connlabel",
	"connmark", "conntrack", "dccp", "devgroup", "dscp", "dst", "ecn", "esp", "eui64",
	"frag", "hbh", "helper", "icmp", "icmp6", "ip", "ip6", "ipcomp", "iprange", "ipv6header", "ipvs",
	"l2tp", "length", "mark", "mark_m", "mh", "multiport", "physdev", "pkttype", "policy",
	"realm", "rpfilter", "rt", "sctp", "set", "srh", "state", "statistic", "stp", "tcp",
	"tcpmss", "tos", "u32", "udp", "udplite", "vlan"}

// UpdateWord is the word of rules that depend on a set that rules fill.
const UpdateWord = "set update"

const macWord = "mac"

// MatchDoubt returns the word of a match of xtables that may differ in a copy, or "".
func MatchDoubt(name string, data []byte, known Known) string {
	const (
		macSize, unrouted, setCounters, setCountersEnd = 6, 255, 8, 40

		recentHow, recentHows, recentSet = 8, 0xf, 2 // struct xt_recent_mtinfo: XT_RECENT_SET
	)
	same := slices.Contains(stateless, name)
	switch {
	case name == "bpf" && len(data) > 1:
		// struct xt_bpf_info_v1: another mode than XT_BPF_MODE_BYTECODE is a file of the machine.
		same = binary.NativeEndian.Uint16(data) == 0
	case name == "recent" && len(data) > recentHow: // to note a client matches all
		same = data[recentHow]&recentHows == recentSet
	case name == macWord && len(data) >= macSize: // struct xt_mac_info
		same = known.MACs[string(data[:macSize])]
	case (name == "ttl" || name == "hl") && len(data) > 1: // struct ipt_ttl_info: mode, value
		same = data[1] == unrouted // which shows that there is no router on the way
	case name == "set" && len(data) > 1: // struct xt_set_info_match_v0 … _v4 begin with the index
		switch index := binary.NativeEndian.Uint16(data); {
		case known.Sets[index]:
			return UpdateWord
		case known.Foreign[index]:
			return macWord
		}
		// _v3 and _v4 may compare the counters of elements
		same = len(data) < setCountersEnd || !slices.ContainsFunc(data[setCounters:setCountersEnd],
			func(b byte) bool { return b != 0 })
	}
	if same {
		return ""
	}
	return name
}

// Filled returns the indexes of the ipsets that a target of xtables fills or empties.
func Filled(target string, revision byte, data []byte) (out []uint16) {
	// struct xt_set_info_target_v0 … _v3: an index and flags, for the set to add to and that to
	// delete from
	const none = 1<<16 - 1 // IPSET_INVALID_ID
	size := 4
	if revision == 0 {
		size = 32
	}
	if target != "SET" || len(data) < 2*size {
		return nil
	}
	for _, at := range []int{0, size} {
		if n := binary.NativeEndian.Uint16(data[at:]); n != none {
			out = append(out, n)
		}
	}
	return out
}

// Filled returns the indexes of the ipsets that rules of the table fill or empty. What is in them
// depends on earlier packets.
func (s Saved) Filled() (out []uint16) {
	for _, e := range s.list() {
		out = append(out, Filled(e.target.name, e.target.all[extensionHead-1], e.target.data)...)
	}
	return out
}

const queue = "QUEUE"

// DoubtfulTarget reports whether a target of xtables leaves the decision to another program.
func DoubtfulTarget(name string) bool {
	return Queues(name) || name == "TPROXY"
}

// Queues reports whether a target of xtables leaves packets to a program.
func Queues(target string) bool { return target == queue || target == "NFQUEUE" }

// Logs reports whether a target of xtables only observes packets.
func Logs(target string) bool {
	return slices.Contains([]string{"LOG", "NFLOG", "ULOG", "AUDIT", "TRACE", "LED", "IDLETIMER",
		"RATEEST", "SET", "CHECKSUM", "SECMARK", "CONNSECMARK"}, target)
}

// RandomMatch reports whether a match or target of xtables chooses at random.
func RandomMatch(name string) bool {
	return slices.Contains([]string{"statistic", "HMARK"}, name)
}

// ByChance reports whether a match of xtables depends on nothing but chance, if on anything.
func ByChance(name string) bool { return name == "statistic" || name == "comment" }

// Random reports whether a rule of the table chooses at random.
func (s Saved) Random() bool {
	return slices.ContainsFunc(s.list(), func(e entry) bool {
		return RandomMatch(e.target.name) || slices.ContainsFunc(e.matches, func(m extension) bool {
			return RandomMatch(m.name)
		})
	})
}

// Untracks reports whether rules of the table may exempt packets from connection tracking.
func (s Saved) Untracks() bool {
	return slices.ContainsFunc(s.list(), func(e entry) bool {
		return slices.Contains(Untracking, e.target.name)
	})
}

// Untracking lists the targets of xtables that may exempt packets from connection tracking.
var Untracking = []string{"CT", "NOTRACK"}

// Doubts lists the doubtful rules, except those that only log.
func (s Saved) Doubts(known Known) (out []Doubt) {
	all := s.rules()
	words := doubts(all, known, true)
	effects := effectsOf(all, words, s.family())
	var begins map[string]bool
	if s.Name == "nat" {
		begins = effects.Only("OUTPUT")
	}
	for i, word := range words {
		if word != "" && effects.Of(i) != Same {
			out = append(out, Doubt{s.Table(), all[i].chain, all[i].number, word, effects.Of(i),
				begins[all[i].chain]})
		}
	}
	return out
}

// effectsOf returns the effects of a table's entries.
func effectsOf(all []entry, words []string, f family) *Effects {
	acts := make([]Act, len(all))
	for i, e := range all {
		if e.number > 0 {
			acts[i] = e.act(f)
			acts[i].Doubt = words[i] != ""
		}
	}
	return NewEffects(acts, baseChains)
}

func (e entry) act(f family) Act {
	a := Act{Chain: e.chain}
	if slices.Max(e.head[:f.inverse-1]) == 0 && !slices.ContainsFunc(e.matches,
		func(m extension) bool { return !ByChance(m.name) }) {
		a.Chance = slices.ContainsFunc(e.matches, func(m extension) bool {
			return RandomMatch(m.name)
		})
		a.Always = !a.Chance
	}
	switch {
	case e.verdict == "ACCEPT":
		a.Verdict = Accept
	case e.verdict == "DROP", e.verdict == "REJECT":
		a.Verdict = Drop
	case e.verdict == "RETURN":
		a.Verdict = Return
	case Queues(e.verdict):
		a.Verdict = Any
	case e.verdict == "", Logs(e.verdict):
	case e.target.name == "":
		if a.Verdict, a.To = Jump, []string{e.verdict}; e.head[f.inverse-1]&f.goesTo != 0 {
			a.Verdict = Goto
		}
	default:
		a.Alters = true
	}
	return a
}

// doubts returns for each entry the word of its doubtful match, or "". With effective, rules that
// only log are not doubtful.
func doubts(all []entry, known Known, effective bool) []string {
	out := make([]string, len(all))
	last := true // the chain's other rules only log
	for i, e := range slices.Backward(all) {
		if e.number == 0 {
			last = true
			continue
		}
		idle := e.verdict == "" || Logs(e.verdict) || e.verdict == "RETURN" && last
		last = last && idle
		if idle && effective {
			continue
		}
		for _, m := range e.matches {
			if out[i] == "" {
				out[i] = MatchDoubt(m.name, m.data, known)
			}
		}
		if out[i] == "" && DoubtfulTarget(e.verdict) {
			out[i] = e.verdict
		}
	}
	return out
}

// Assume returns a copy of the table with the rules in Doubts replaced, for one of two copies:
// without their doubtful matches, or so that they match no packet. In the lenient copy, the rules
// match that can only let packets pass, in the other those that can only stop packets and those
// that alter them. One that may do both accepts or drops; one whose verdict is open matches in
// neither.
func (s Saved) Assume(lenient bool, known Known) Saved {
	all := s.rules()
	words := doubts(all, known, true)
	if !slices.ContainsFunc(words, func(w string) bool { return w != "" }) {
		return s
	}
	return s.assume(all, words, effectsOf(all, words, s.family()).Of, lenient, known)
}

// Matches reports whether a doubtful rule with the effect matches in a copy.
func (x Effect) Matches(lenient bool) bool {
	switch x {
	case Passes:
		return lenient
	case Stops, Alters:
		return !lenient
	}
	return x == Either
}

func (s Saved) assume(all []entry, words []string, effectOf func(int) Effect, lenient bool,
	known Known) Saved {
	head, err := s.head()
	if err != nil {
		return s
	}
	f := s.family()
	var out []byte
	moved := map[uint32]uint32{} // positions
	for i, e := range all {
		moved[uint32(e.at)] = uint32(len(out))
		start := len(out)
		out = append(out, e.head...)
		either := false
		if words[i] != "" {
			effect := effectOf(i)
			if either = effect == Either; !effect.Matches(lenient) {
				never(out[start:], f)
			}
		}
		for _, m := range e.matches {
			if words[i] == "" || MatchDoubt(m.name, m.data, known) == "" {
				out = append(out, m.all...)
			}
		}
		target := len(out) - start
		if either {
			out[start+f.inverse-1] &^= f.goesTo
			out = append(out, standard(lenient)...)
		} else {
			out = append(out, e.target.all...)
		}
		binary.NativeEndian.PutUint16(out[start+f.next-2:], uint16(target))
		binary.NativeEndian.PutUint16(out[start+f.next:], uint16(len(out)-start))
	}
	moved[uint32(len(s.Entries))] = uint32(len(out))
	return s.move(head, out, moved)
}

// never makes an entry match no packet: it requires the source 255.255.255.255 or ffff:…:ffff.
func never(head []byte, f family) {
	const invertSource = 8 // IPT_INV_SRCIP
	for i := range f.address {
		head[i], head[2*f.address+i] = 0xff, 0xff // the address, its mask
	}
	head[f.inverse] &^= invertSource
}

// standard returns a target that accepts or drops.
func standard(accept bool) []byte {
	verdict := int32(-1 - nfDrop)
	if accept {
		verdict = -1 - nfAccept
	}
	out := make([]byte, extensionHead+8) // struct xt_standard_target
	binary.NativeEndian.PutUint16(out, uint16(len(out)))
	binary.NativeEndian.PutUint32(out[extensionHead:], uint32(verdict))
	return out
}

// move returns the table with other entries. moved has the new positions by the old ones.
func (s Saved) move(head info, entries []byte, moved map[uint32]uint32) Saved {
	out := Saved{Name: s.Name, Six: s.Six, Entries: entries}
	for _, e := range out.list() {
		if e.target.name == "" && int32(binary.NativeEndian.Uint32(e.target.data)) >= 0 {
			to := moved[binary.NativeEndian.Uint32(e.target.data)]
			binary.NativeEndian.PutUint32(e.target.data, to)
		}
	}
	for hook := range hooks {
		head.first[hook] = moved[head.first[hook]]
		head.policies[hook] = moved[head.policies[hook]]
	}
	head.size = uint32(len(entries))
	out.Info = head.bytes()
	return out
}
