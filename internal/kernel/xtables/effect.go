package xtables

import "slices"

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
}

// Effects finds the effects of a table's rules.
type Effects struct {
	acts   []Act
	chains map[string][]int // indexes of acts
	bases  []string
	// altering has the chains that findAltering finds; nil until it is called.
	altering map[string]bool
}

// NewEffects returns the Effects of a table whose rules have the acts, in order, and whose base
// chains are bases.
func NewEffects(acts []Act, bases []string) *Effects {
	x := &Effects{acts: acts, chains: map[string][]int{}, bases: bases}
	for i, a := range acts {
		x.chains[a.Chain] = append(x.chains[a.Chain], i)
	}
	return x
}

// Of returns the effect of a rule, given its index.
func (x *Effects) Of(i int) Effect {
	if x.altering == nil {
		x.findAltering()
	}
	a := x.acts[i]
	filters := !x.altering[a.Chain]
	switch {
	case a.Open, a.Verdict == Any && (a.Alters || !filters):
		return Open
	case a.Alters:
		return Alters
	case a.Verdict == Drop:
		return Stops
	case !filters:
		return Alters
	case a.Verdict == Accept:
		return Passes
	case a.Verdict == Jump:
		passes, stops := x.outcomes([]int{i})
		return effect(passes, stops)
	case a.Verdict == Return: // it skips the rest of the chain
		var rest []int
		for _, j := range x.chains[a.Chain] {
			if j > i {
				rest = append(rest, j)
			}
		}
		passes, stops := x.outcomes(rest)
		return effect(stops, passes)
	}
	return Either
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

// reached returns the indexes of the rules of chains and of those to which their rules lead.
func (x *Effects) reached(chains ...string) (out []int) {
	seen := map[string]bool{}
	for len(chains) > 0 {
		c := chains[0]
		if chains = chains[1:]; seen[c] {
			continue
		}
		seen[c] = true
		for _, i := range x.chains[c] {
			out = append(out, i)
			chains = append(chains, x.acts[i].To...)
		}
	}
	return out
}

// outcomes reports whether rules, or those to which they lead, accept or drop packets.
func (x *Effects) outcomes(rules []int) (passes, stops bool) {
	var to []string
	for _, i := range rules {
		to = append(to, x.acts[i].To...)
	}
	for _, i := range slices.Concat(rules, x.reached(to...)) {
		v := x.acts[i].Verdict
		passes = passes || v == Accept || v == Any
		stops = stops || v == Drop || v == Any
	}
	return passes, stops
}

// findAltering finds the chains of which a base chain leads to rules that do more than accept and
// drop packets. There it matters for the packet's further way, too, which rules it skips.
func (x *Effects) findAltering() {
	x.altering = map[string]bool{}
	for _, base := range x.bases {
		rules := x.reached(base)
		if !slices.ContainsFunc(rules, func(i int) bool { return x.acts[i].Alters }) {
			continue
		}
		x.altering[base] = true
		for _, i := range rules {
			for _, c := range x.acts[i].To {
				x.altering[c] = true
			}
		}
	}
}
