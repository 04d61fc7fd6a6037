package xtables

import (
	"maps"
	"slices"
)

// Effect is what a doubtful rule may do to a packet, if it matches.
//
// The first three let two copies bound what happens on the machine, whichever of the rules match
// there. What passes the strict copy, in which doubtful rules stop packets and never let them pass,
// passes on the machine, too. What is lost in the lenient copy, where it is the other way round, is
// lost on the machine.
type Effect string

// The effects.
const (
	Passes Effect = "passes" // it can only let the packet pass, where other rules may stop it
	Stops  Effect = "stops"  // it can only stop the packet, where other rules may let it pass
	Either Effect = "either" // it may do both: a queue, a verdict map, a jump
	// Alters is the effect of rules that translate addresses, set marks or the like, or keep other
	// rules from doing so. Two copies show what one such rule does, if no other rule is doubtful.
	Alters Effect = "alters"
	// Same is the effect of rules that lead where a later rule leads by chance, such as those by
	// which a client stays with the server that chance gave it. They match in no copy, so that all
	// servers are tried, and are not doubtful.
	Same Effect = "same"
	// Open is the effect of rules whose verdict or change is not known. No copy shows it.
	Open Effect = "open"
)

// Verdict is where a packet goes that matches a rule.
type Verdict int

// The verdicts.
const (
	Continue Verdict = iota
	Accept
	Drop // or reject
	Return
	Jump
	Goto
	Any // what a queue or a map says
)

// Act is what a rule does to packets that match.
type Act struct {
	Chain   string
	Verdict Verdict
	To      []string // the chains in which a packet may go on
	Alters  bool     // it changes packets or what is known of them
	Open    bool     // with a value that is not known
	Always  bool     // it matches all packets
	Chance  bool     // it matches some packets, by chance only
	Doubt   bool     // whether it matches is not known
}

// Effects finds the effects of a table's rules.
type Effects struct {
	acts  []Act
	bases []string
	to    map[string][]string // the chains to which those of a chain's rules lead directly
	// passes and stops have the chains whose rules, or those to which they lead, accept or drop.
	passes, stops map[string]bool
	// later has for each rule what the later rules of its chain do.
	later []struct{ passes, stops bool }
	// altering has the chains to which a base chain leads that also leads to rules that do more
	// than accept and drop. There it matters for the packet's further way, too, which rules it
	// skips.
	altering map[string]bool
}

// NewEffects returns the Effects of a table whose rules have the acts, in order, and whose base
// chains are bases.
func NewEffects(acts []Act, bases []string) *Effects {
	from, to := map[string][]string{}, map[string][]string{}
	x := &Effects{acts: acts, bases: bases, to: to,
		later: make([]struct{ passes, stops bool }, len(acts))}
	for _, a := range acts {
		for _, c := range a.To {
			from[c], to[a.Chain] = append(from[c], a.Chain), append(to[a.Chain], c)
		}
	}
	with := func(is func(Act) bool) map[string]bool {
		var some []string
		for _, a := range acts {
			if is(a) {
				some = append(some, a.Chain)
			}
		}
		return follow(from, some)
	}
	x.passes, x.stops = with(Act.passes), with(Act.stops)
	alters := with(func(a Act) bool { return a.Alters })
	x.altering = follow(to, slices.DeleteFunc(slices.Clone(bases), func(c string) bool {
		return !alters[c]
	}))
	rest := map[string]struct{ passes, stops bool }{}
	for i, a := range slices.Backward(acts) {
		r := rest[a.Chain]
		x.later[i] = r
		passes, stops := x.leads(a)
		r.passes, r.stops = r.passes || passes || a.passes(), r.stops || stops || a.stops()
		rest[a.Chain] = r
	}
	return x
}

// Only returns those of the base chains that are given, and the chains to which no others lead.
func (x *Effects) Only(bases ...string) map[string]bool {
	others := follow(x.to, slices.DeleteFunc(slices.Clone(x.bases), func(c string) bool {
		return slices.Contains(bases, c)
	}))
	out := follow(x.to, bases)
	maps.DeleteFunc(out, func(c string, _ bool) bool { return others[c] })
	return out
}

func (a Act) passes() bool { return a.Verdict == Accept || a.Verdict == Any }

func (a Act) stops() bool { return a.Verdict == Drop || a.Verdict == Any }

// leads reports what the chains do to which a rule leads.
func (x *Effects) leads(a Act) (passes, stops bool) {
	for _, c := range a.To {
		passes, stops = passes || x.passes[c], stops || x.stops[c]
	}
	return passes, stops
}

// follow returns the chains and those to which steps lead from them.
func follow(steps map[string][]string, chains []string) map[string]bool {
	out := map[string]bool{}
	for todo := slices.Clone(chains); len(todo) > 0; {
		c := todo[len(todo)-1]
		if todo = todo[:len(todo)-1]; !out[c] {
			out[c] = true
			todo = append(todo, steps[c]...)
		}
	}
	return out
}

// Of returns the effect of a rule, given its index.
func (x *Effects) Of(i int) Effect {
	a := x.acts[i]
	switch {
	case a.Open, a.Verdict == Any && (a.Alters || x.altering[a.Chain]):
		return Open
	case a.Alters:
		return Alters
	case x.same(i):
		return Same
	case a.Verdict == Drop:
		return Stops
	case x.altering[a.Chain]:
		return Alters
	case a.Verdict == Accept:
		return Passes
	case a.Verdict == Jump:
		return effect(x.leads(a))
	case a.Verdict == Return: // it skips the rest of the chain
		return effect(x.later[i].stops, x.later[i].passes)
	case a.Verdict == Continue:
		return Passes // or nothing
	}
	return Either
}

// same reports whether a rule leads to a chain to which chance may lead a packet that the rule
// leaves.
func (x *Effects) same(i int) bool {
	a := x.acts[i]
	leads := func(b Act) bool { return b.Verdict == Jump || b.Verdict == Goto }
	if !leads(a) || len(a.To) != 1 {
		return false
	}
	for _, b := range x.acts[i+1:] {
		switch {
		case b.Chain != a.Chain:
		case (b.Chance || b.Always) && !b.Alters && slices.Contains(b.To, a.To[0]):
			return true
		case b.Alters || !b.Chance && (!b.Doubt || !leads(b)):
			return false
		}
	}
	return false
}

func effect(passes, stops bool) Effect {
	switch {
	case passes && stops:
		return Either
	case stops:
		return Stops
	}
	return Passes
}
