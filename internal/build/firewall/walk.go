package firewall

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"
)

const (
	// maxDepth is the kernel's own limit of jumps.
	maxDepth = 16
	// maxSteps bounds a walk through rules that no kernel would take.
	maxSteps = 1 << 20
)

// Walk sends p through the chains of that kind at a hook, in the kernel's order.
//
// A rule that may match or not is followed both ways. What the packet meets after
// it does not depend on how it got there, so each such place is left once.
func (r Rules) Walk(kind Kind, hook Hook, p Packet) Outcome {
	w := walk{rules: r, hook: hook, p: p, left: map[string]bool{}}
	for i := range r.Chains {
		if c := &r.Chains[i]; c.Hook == hook && c.Kind == kind && c.sees(p) {
			w.bases = append(w.bases, c)
		}
	}
	slices.SortStableFunc(w.bases, func(a, b *Chain) int { return cmp.Compare(a.Priority, b.Priority) })
	first := branch{base: -1}
	out := w.follow(&first)
	out.Tried = w.steps
	for len(w.later) > 0 {
		b := w.later[len(w.later)-1]
		w.later = w.later[:len(w.later)-1]
		end := w.follow(&b)
		if end.Verdict == "" || end.ends(out) {
			continue
		}
		for _, s := range b.unread {
			w.doubt(s)
		}
		if len(b.unread) == 0 {
			for _, s := range b.depends {
				if !slices.Contains(out.Depends, s) {
					out.Depends = append(out.Depends, s)
				}
			}
		}
	}
	out.Unread, out.Marks = w.unread, w.marks
	return out
}

// ends reports whether two ends are the same for the packet.
func (o Outcome) ends(b Outcome) bool {
	lost := func(v Verdict) bool { return v == Drop || v == Reject }
	return o.To == b.To && (o.Verdict == b.Verdict || lost(o.Verdict) && lost(b.Verdict))
}

type walk struct {
	rules  Rules
	hook   Hook
	p      Packet
	bases  []*Chain
	later  []branch        // to be followed yet
	left   map[string]bool // places where the walk forked
	unread []string
	marks  []string // tables and chains
	steps  int
}

// branch is a way through the rules: where it is, and what it supposes.
type branch struct {
	base            int
	stack           []frame
	first           Rule // what it does first
	unread, depends []string
}

// frame is a chain and its next rule.
type frame struct {
	chain *Chain
	next  int
	depth int
}

func (w *walk) doubt(s string) {
	if !slices.Contains(w.unread, s) {
		w.unread = append(w.unread, s)
	}
}

// follow goes on to the branch's end; the verdict is "" if that is the end of
// another one.
func (w *walk) follow(b *branch) Outcome {
	if b.first.Verdict != Continue {
		if end, ok := w.apply(b, b.first); ok {
			return end
		}
	}
	for {
		if len(b.stack) == 0 {
			if b.base >= 0 && w.bases[b.base].Drop {
				c := w.bases[b.base]
				return Outcome{Verdict: Drop, Where: "policy of " + c.Table + " " + c.Name}
			}
			if w.next(b) {
				continue
			}
			return Outcome{Verdict: Accept}
		}
		f := &b.stack[len(b.stack)-1]
		if f.next == len(f.chain.Rules) {
			b.stack = b.stack[:len(b.stack)-1]
			continue
		}
		if w.steps++; w.steps > maxSteps {
			w.doubt(f.chain.Table + " " + f.chain.Name + ": too many rules")
			return Outcome{Verdict: Accept}
		}
		rule, known := w.choose(b, f)
		if !known {
			return Outcome{}
		}
		if end, ok := w.apply(b, rule); ok {
			return end
		}
	}
}

// next begins the next chain of the hook.
func (w *walk) next(b *branch) bool {
	if b.base++; b.base == len(w.bases) {
		return false
	}
	c := w.bases[b.base]
	b.stack = []frame{{chain: c}}
	return true
}

// choose takes the next rule, and says what it does to the packet. Where that may
// be something else, the branch forks; known is false where it did so before.
func (w *walk) choose(b *branch, f *frame) (does Rule, known bool) {
	r := &f.chain.Rules[f.next]
	f.next++
	// What comes by lo was tracked when it left.
	w.p.untracked = w.bases[b.base].Priority < conntrackPriority && (w.hook == Prerouting && w.p.In != "lo" || w.hook == Output)
	now, others := r.may(&w.p)
	if m := r.matches(&w.p); r.Marks && (m.yes || m.open) {
		if where := f.chain.Table + " " + f.chain.Name; !slices.Contains(w.marks, where) {
			w.marks = append(w.marks, where)
		}
	}
	others = slices.DeleteFunc(others, func(x Rule) bool { return x.Verdict == now.Verdict && x.Chain == now.Chain && x.To == now.To })
	if len(others) == 0 {
		return now, true
	}
	if !w.leave(b) {
		return Rule{}, false
	}
	for _, x := range others {
		c := branch{base: b.base, stack: slices.Clone(b.stack), first: x, unread: slices.Clone(b.unread), depends: slices.Clone(b.depends)}
		if where := f.chain.Table + " " + f.chain.Name; r.Unread != "" {
			c.unread = append(c.unread, where+": "+r.Unread)
		} else {
			c.depends = append(c.depends, where+r.asks(&w.p))
		}
		w.later = append(w.later, c)
	}
	return now, true
}

// may is what a rule does to the packet, as far as is known, and what else it may
// do. A rule that does nothing is the zero rule.
func (r *Rule) may(p *Packet) (now Rule, others []Rule) {
	m := r.matches(p)
	if !m.yes && !m.open {
		return Rule{}, nil
	}
	now = *r
	if r.Map != nil {
		e, rest, open := r.Map.find(p)
		now = Rule{Unread: r.Unread}
		if e != nil {
			now.Verdict, now.Chain = e.Verdict, e.Chain
		}
		for _, x := range rest {
			others = append(others, Rule{Verdict: x.Verdict, Chain: x.Chain})
		}
		m.open = m.open || open
	}
	switch {
	case r.Unread != "" || !m.yes:
		return Rule{}, append(others, now)
	case m.open:
		return now, append(others, Rule{})
	}
	return now, others
}

// leave notes that the way forks here; false: it has done so before.
func (w *walk) leave(b *branch) bool {
	key := binary.AppendUvarint(nil, uint64(b.base))
	for _, f := range b.stack {
		key = append(append(key, f.chain.Name...), 0)
		key = binary.AppendUvarint(key, uint64(f.next))
	}
	if w.left[string(key)] {
		return false
	}
	w.left[string(key)] = true
	return true
}

// apply does what a rule does; ok: that ends the branch.
func (w *walk) apply(b *branch, r Rule) (end Outcome, ok bool) {
	top := b.stack[len(b.stack)-1]
	where := top.chain.Table + " " + top.chain.Name
	switch r.Verdict {
	case Continue:
	case Other:
		w.doubt(where + ": " + cmp.Or(r.Unread, r.Chain))
	case Return:
		b.stack = b.stack[:len(b.stack)-1]
	case Jump, Goto:
		next := w.rules.find(top.chain, r.Chain)
		switch {
		case next == nil:
			w.doubt(where + ": " + r.Chain)
			return end, false
		case top.depth == maxDepth:
			return end, false
		case r.Verdict == Goto:
			b.stack = b.stack[:len(b.stack)-1]
		}
		b.stack = append(b.stack, frame{chain: next, depth: top.depth + 1})
	case Accept:
		b.stack = nil
		if !w.next(b) {
			return Outcome{Verdict: Accept}, true
		}
	default:
		return Outcome{Verdict: r.Verdict, To: w.to(r), Where: where, Rule: top.next}, true
	}
	return end, false
}

// to is where a DNAT rule sends the packet.
func (w *walk) to(r Rule) netip.AddrPort {
	if r.Verdict != DNAT {
		return netip.AddrPort{}
	}
	addr, port := r.To.Addr(), r.To.Port()
	if !addr.IsValid() {
		addr = w.p.Dst
	}
	if port == 0 {
		port = w.p.Port
	}
	return netip.AddrPortFrom(addr, port)
}

// asks says what the rule asks for of the client's address or port.
func (r *Rule) asks(p *Packet) string {
	switch {
	case p.High != 0 && r.Ports.High != 0:
		return " for ports " + r.Ports.String()
	case p.High != 0:
		return ", by a set of ports"
	case r.Src.Prefix.IsValid() && r.Src.Not:
		return " for all but " + r.Src.Prefix.String()
	case r.Src.Prefix.IsValid():
		return " for " + r.Src.Prefix.String()
	}
	return ", by a set of addresses"
}
