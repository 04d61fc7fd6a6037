package firewall

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"
)

const (
	// the kernel's limit of nested jumps
	maxDepth = 16
	// for rules that no kernel would accept
	maxSteps = 1 << 20
)

// Walk sends p through the chains of a kind at a hook, in the kernel's order.
//
// It follows both results of a rule that may or may not match. Later matches do not depend on how
// the packet reached a place, so the walk forks only once at each.
func (r Rules) Walk(kind Kind, hook Hook, p Packet) Outcome {
	w := walk{rules: r, hook: hook, p: p, forked: map[string]bool{}}
	for i := range r.Chains {
		if c := &r.Chains[i]; c.Hook == hook && c.Kind == kind && c.sees(p) {
			w.bases = append(w.bases, c)
		}
	}
	slices.SortStableFunc(w.bases, func(a, b *Chain) int {
		return cmp.Compare(a.Priority, b.Priority)
	})
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

func (o Outcome) ends(b Outcome) bool {
	lost := func(v Verdict) bool { return v == Drop || v == Reject }
	return o.To == b.To && (o.Verdict == b.Verdict || lost(o.Verdict) && lost(b.Verdict))
}

type walk struct {
	rules  Rules
	hook   Hook
	p      Packet
	bases  []*Chain
	later  []branch // not followed yet
	forked map[string]bool
	unread []string
	marks  []string
	steps  int
}

type branch struct {
	base            int
	stack           []frame
	first           Rule
	unread, depends []string
}

// frame is a chain and the index of its next rule.
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

// follow returns no verdict if another branch already covers the rest.
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

func (w *walk) next(b *branch) bool {
	if b.base++; b.base == len(w.bases) {
		return false
	}
	c := w.bases[b.base]
	b.stack = []frame{{chain: c}}
	return true
}

// choose returns the next rule's effect on the packet. It forks the branch if the effect may
// differ; known is false if it already forked here.
func (w *walk) choose(b *branch, f *frame) (does Rule, known bool) {
	r := &f.chain.Rules[f.next]
	f.next++
	// A packet that arrives by lo was tracked when it left.
	w.p.untracked = w.bases[b.base].Priority < conntrackPriority &&
		(w.hook == Prerouting && w.p.In != "lo" || w.hook == Output)
	now, others := r.may(&w.p)
	if m := r.matches(&w.p); r.Marks && (m.yes || m.open) {
		if where := f.chain.Table + " " + f.chain.Name; !slices.Contains(w.marks, where) {
			w.marks = append(w.marks, where)
		}
	}
	others = slices.DeleteFunc(others, func(x Rule) bool {
		return x.Verdict == now.Verdict && x.Chain == now.Chain && x.To == now.To
	})
	if len(others) == 0 {
		return now, true
	}
	if !w.fork(b) {
		return Rule{}, false
	}
	for _, x := range others {
		c := branch{base: b.base, stack: slices.Clone(b.stack), first: x,
			unread: slices.Clone(b.unread), depends: slices.Clone(b.depends)}
		if where := f.chain.Table + " " + f.chain.Name; r.Unread != "" {
			c.unread = append(c.unread, where+": "+r.Unread)
		} else {
			c.depends = append(c.depends, where+r.asks(&w.p))
		}
		w.later = append(w.later, c)
	}
	return now, true
}

// may returns the rule's known effect, and its other possible effects. No effect is the zero rule.
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

func (w *walk) fork(b *branch) bool {
	key := binary.AppendUvarint(nil, uint64(b.base))
	for _, f := range b.stack {
		key = append(append(key, f.chain.Name...), 0)
		key = binary.AppendUvarint(key, uint64(f.next))
	}
	if w.forked[string(key)] {
		return false
	}
	w.forked[string(key)] = true
	return true
}

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

// asks describes the rule's condition for Outcome.Depends.
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
