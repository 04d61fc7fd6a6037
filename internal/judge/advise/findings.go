package advise

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// The codes of findings. Rows has the index of the advice, What is the name of one of its levers.
const (
	Interrupted     = "search-interrupted"
	BusySearch      = "search-busy" // as analysis.Busy
	NothingTried    = "nothing-tried"
	TooBusyToTry    = "too-busy-to-try"
	NothingPossible = "nothing-possible"
	AllFailed       = "all-levers-failed"
	NothingCertain  = "nothing-certain"
	NothingHelps    = "nothing-helps"
	EffectsUnclear  = "effects-unclear" // of N of Of levers
	Use             = "use-lever"
	UseHere         = "use-lever-here" // only for what stays on this machine
	LosslessHere    = "lossless-here"  // why
	AllTogether     = "levers-together"
	AtItsPrice      = "lever-at-a-price"
	ForComparison   = "lever-gives-up"
	MayHelp         = "lever-may-help"
)

func certain(e Effect) bool {
	return e.Ratio.Verdict == stats.Better || e.Ratio.Verdict == stats.Worse
}

// Findings returns what the searches show. It claims no more than the verdicts do.
func Findings(r *Report) (out []analysis.Finding) {
	if r.Plan.Interrupted() {
		out = append(out, analysis.Finding{Code: Interrupted})
	}
	if r.TooBusy() {
		out = append(out, analysis.Finding{Code: BusySearch})
	}
	for i, a := range r.Advice {
		for _, f := range a.findings() {
			f.Rows = []int{i}
			out = append(out, f)
		}
	}
	return append(out, analysis.Finding{Code: analysis.AllWitnessed})
}

func (a Advice) findings() (out []analysis.Finding) {
	add := func(code string, l Lever) {
		out = append(out, analysis.Finding{Code: code, What: l.Name})
	}
	by, measured, unclear, busy := map[Verdict][]Lever{}, 0, 0, false
	for _, l := range a.Levers {
		by[l.Verdict] = append(by[l.Verdict], l)
		kept := l.Verdict == Broken && l.busy // from being measured
		busy = busy || kept
		if len(l.Alone) > 0 || kept {
			measured++
		}
		if kept || l.Verdict == NoGain && some(l.Effects(), stats.Unclear) {
			unclear++
		}
	}
	failed := len(by[Broken])+len(by[Skipped]) == len(a.Levers)
	for _, x := range []struct {
		is   bool
		code string
	}{{len(a.Levers) == 0, NothingTried},
		{failed && slices.ContainsFunc(by[Broken], func(l Lever) bool { return l.busy }), TooBusyToTry},
		{measured == 0, NothingPossible}, {failed, AllFailed}} {
		if x.is {
			return []analysis.Finding{{Code: x.code}}
		}
	}
	helps := len(by[Recommended]) > 0
	switch {
	case helps:
	case len(by[NotSure]) > 0, busy:
		add(NothingCertain, Lever{})
	default:
		add(NothingHelps, Lever{})
	}
	if unclear > 0 && !helps {
		out = append(out, analysis.Finding{Code: EffectsUnclear, N: unclear, Of: measured})
	}
	for _, l := range by[Recommended] {
		if !l.Stays {
			add(Use, l)
			continue
		}
		add(UseHere, l)
		add(LosslessHere, l)
	}
	if len(by[Recommended]) > 1 && some(a.Together, stats.Better) {
		add(AllTogether, Lever{})
	}
	for _, l := range by[AtAPrice] {
		add(AtItsPrice, l)
	}
	for _, l := range by[GivesUp] {
		if some(l.Effects(), stats.Better) {
			add(ForComparison, l)
		}
	}
	for _, l := range by[NotSure] {
		add(MayHelp, l)
	}
	return out
}

func some(all []Effect, v stats.Verdict) bool {
	return slices.ContainsFunc(all, func(e Effect) bool { return e.Ratio.Verdict == v })
}

// Place returns where the client is and, if the server is outside, that it is: "from the machine
// itself", "from a container to outside".
func (e Effect) Place() string {
	if e.To == "" {
		return "from " + mode.Placement(e.From).Words()
	}
	return "from " + e.Client() + " to outside"
}

// Client returns where the client is, as a noun.
func (e Effect) Client() string {
	if e.To != "" && e.From == string(mode.FromContainer) {
		return "a container" // the only one, because the server is outside
	}
	return mode.Placement(e.From).Words()
}
