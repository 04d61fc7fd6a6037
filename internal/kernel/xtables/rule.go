package xtables

import (
	"bytes"
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"
)

// linux/netfilter.h
const (
	nfDrop   = 0
	nfAccept = 1
	nfQueue  = 3
)

// Rule is a rule with its counter, or a chain's policy.
type Rule struct {
	Table   string // "iptables-legacy filter"
	Chain   string
	Number  int    // in the chain, from 1; 0: its policy
	Verdict string // the name of a target or chain; "": the packet goes on to the next rule
	Packets uint64
}

// Redirecting lists the targets that change packets' destinations.
var Redirecting = []string{"DNAT", "REDIRECT", "NETMAP", "DNPT"}

// Rules lists the rules of all tables of the calling thread's namespace.
func Rules() (out []Rule, err error) {
	tables, err := Save()
	for _, t := range tables {
		out = append(out, t.Rules()...)
	}
	return out, err
}

// Protocols has the numbers of the protocols that toll tries.
var Protocols = map[string]byte{"tcp": unix.IPPROTO_TCP, "udp": unix.IPPROTO_UDP}

// Redirects reports whether rules of the table may change the destinations of a protocol's packets:
// "tcp", "udp", or "" for any.
func (s Saved) Redirects(proto string) bool {
	const devices, inverted = 64, 0x40 // names and masks; IPT_INV_PROTO
	number, known := Protocols[proto]
	f := s.family()
	return slices.ContainsFunc(s.rules(), func(e entry) bool {
		only := binary.NativeEndian.Uint16(e.head[4*f.address+devices:])
		return slices.Contains(Redirecting, e.target.name) && (!known || only == 0 ||
			only == uint16(number) || e.head[f.inverse]&inverted != 0)
	})
}

// Rules lists the rules of the table up to the first damaged one.
func (s Saved) Rules() (out []Rule) {
	for _, e := range s.rules() {
		if e.chain != "" {
			out = append(out, Rule{s.Table(), e.chain, e.number, e.verdict, e.packets})
		}
	}
	return out
}

// entry is struct ipt_entry or ip6t_entry with its matches and target.
type entry struct {
	at      int // position in the table
	head    []byte
	matches []extension
	target  extension
	packets uint64

	chain   string // "": no rule
	number  int
	verdict string
}

// extension is struct xt_entry_match or xt_entry_target.
type extension struct {
	name string
	all  []byte
	data []byte
}

const (
	extensionHead = 32 // length, name, revision
	errorTarget   = "ERROR"
)

func extensionOf(b []byte) (extension, bool) {
	if len(b) < extensionHead {
		return extension{}, false
	}
	size := int(binary.NativeEndian.Uint16(b))
	if size < extensionHead || size > len(b) {
		return extension{}, false
	}
	return extension{cstring(b[2 : extensionHead-1]), b[:size], b[extensionHead:size]}, true
}

func cstring(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return string(b)
}

// list returns the entries up to the first damaged one.
func (s Saved) list() (out []entry) {
	f := s.family()
	head := f.counts + countSize
	for at := 0; len(s.Entries)-at >= head; {
		b := s.Entries[at:]
		target := int(binary.NativeEndian.Uint16(b[f.next-2:]))
		next := int(binary.NativeEndian.Uint16(b[f.next:]))
		if target < head || next < target || next > len(b) {
			return out
		}
		e := entry{at: at, head: b[:head], packets: binary.NativeEndian.Uint64(b[f.counts:])}
		for rest := b[head:target]; len(rest) > 0; {
			m, ok := extensionOf(rest)
			if !ok {
				return out
			}
			e.matches = append(e.matches, m)
			rest = rest[len(m.all):]
		}
		var ok bool
		if e.target, ok = extensionOf(b[target:next]); !ok || len(e.target.data) < 4 {
			return out
		}
		out = append(out, e)
		at += next
	}
	return out
}

var baseChains = []string{"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"}

// rules returns the entries with their chains and numbers. A user-defined chain begins with an
// entry whose target is ERROR and has the chain's name, and ends with an entry that returns.
func (s Saved) rules() []entry {
	all := s.list()
	head, err := s.head()
	if err != nil {
		return nil
	}
	chains := map[int]string{} // by the positions of their first rules
	for i, e := range all {
		if e.target.name == errorTarget && i+1 < len(all) {
			chains[all[i+1].at] = cstring(e.target.data)
		}
	}
	chain, number := "", 0
	for i := range all {
		e := &all[i]
		e.verdict = verdictOf(*e, chains)
		policy := false
		for hook, name := range baseChains {
			if head.validHooks&(1<<hook) == 0 {
				continue
			}
			if int(head.first[hook]) == e.at {
				chain, number = name, 0
			}
			policy = policy || int(head.policies[hook]) == e.at
		}
		switch {
		case e.target.name == errorTarget:
			chain, number = cstring(e.target.data), 0
		case chain != "" && policy:
			e.chain = chain
			chain = ""
		case chain != "":
			number++
			e.chain, e.number = chain, number
		}
	}
	for i := range all { // a chain's last entry is not a rule
		last := i+1 == len(all) || all[i+1].target.name == errorTarget
		if last && all[i].number > 0 {
			all[i].chain, all[i].number = "", 0
		}
	}
	return all
}

// verdictOf reads a standard target: a position to jump to, or a verdict as -1 - NF_ACCEPT.
func verdictOf(e entry, chains map[int]string) string {
	if e.target.name != "" {
		return e.target.name
	}
	const returns = -5 // XT_RETURN
	switch v := int32(binary.NativeEndian.Uint32(e.target.data)); v {
	case -1 - nfAccept:
		return "ACCEPT"
	case -1 - nfDrop:
		return "DROP"
	case -1 - nfQueue:
		return queue
	case returns:
		return "RETURN"
	default:
		return chains[int(v)] // or the next rule
	}
}
