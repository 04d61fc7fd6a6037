package sentence

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/advise"
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

var ofLevers = []template{
	{code: advise.Interrupted, text: "The search was interrupted: what it had not measured by " +
		"then is not advised.", most: all},
	{code: advise.BusySearch, text: printable.Capital(sample.TooBusy) + ": measure again before " +
		"you set any of this.", most: all},
	{code: advise.NothingTried, text: "{of}Nothing was tried: the run ended too early.", most: all},
	{code: advise.TooBusyToTry, text: "{of}Nothing is certain: " + sample.TooBusy +
		" to measure the levers. Measure again while no other program is busy.", most: all},
	{code: advise.NothingPossible, text: "{of}Nothing could be tried here.", most: all},
	{code: advise.AllFailed, text: "{of}Nothing is certain: every lever failed somewhere, or " +
		"cannot be tried here.", most: all},
	{code: advise.NothingCertain, text: "{of}Nothing is certain to help yet.", most: all},
	{code: advise.NothingHelps, text: "{of}Nothing that was tried helps here without doing harm.",
		most: all},
	{code: advise.EffectsUnclear, text: "{of}The effect of {some} is not certain{use_longer}.", most: all},
	{code: advise.Use, text: "{of}Use {gist}: {outcome}.", most: all},
	{code: advise.UseHere, text: "{of}Use {gist}, only for what stays on this machine: {outcome}.",
		most: all},
	{code: advise.LosslessHere, text: "{of}The links here lose nothing: over lossy or long " +
		"paths another algorithm may be faster, so leave containers that serve or call other " +
		"machines as they are.", most: all},
	{code: advise.AllTogether, text: "{of}All of them together: {together}.", most: all},
	{code: advise.AtItsPrice, text: "{of}Not {gist}: {outcome}.", most: all},
	{code: advise.ForComparison, text: "{of}For comparison, {gist}: {gains}; it gives up " +
		"{gives_up}.", most: all},
	{code: advise.MayHelp, text: "{of}{Gist} may help: it helped alone ({gains_alone}), but " +
		"there was no time to measure it again.", most: all},
}

var leverWords = words{
	"searched": func(w *writer, _ []analysis.Finding) string {
		var out []string
		for _, a := range w.study.(*advise.Report).Advice {
			out = append(out, a.Mode)
		}
		return printable.List(out)
	},
	"of": func(w *writer, fs []analysis.Finding) string {
		return told(len(w.study.(*advise.Report).Advice) > 1, w.advice(fs).Mode+": ")
	},
	"some": func(_ *writer, fs []analysis.Finding) string {
		if fs[0].N == fs[0].Of {
			return "all of it"
		}
		return fmt.Sprintf("%d of %d levers", fs[0].N, fs[0].Of)
	},
	"use_longer": func(w *writer, _ []analysis.Finding) string {
		return told(!w.r.Plan.Interrupted(), ": use a longer --budget or a quieter machine")
	},
	"together": func(w *writer, fs []analysis.Finding) string {
		return changes(w.advice(fs).Together, stats.Better)
	},
	"gist":        ofLever(func(l advise.Lever) string { return l.Gist }),
	"Gist":        ofLever(func(l advise.Lever) string { return printable.Capital(l.Gist) }),
	"outcome":     ofLever(outcome),
	"gains":       ofLever(func(l advise.Lever) string { return changes(l.Effects(), stats.Better) }),
	"gains_alone": ofLever(func(l advise.Lever) string { return changes(l.Alone, stats.Better) }),
	"gives_up":    ofLever(func(l advise.Lever) string { return l.GivesUp }),
}

func (w *writer) advice(fs []analysis.Finding) advise.Advice {
	return w.study.(*advise.Report).Advice[fs[0].Rows[0]]
}

func ofLever(say func(advise.Lever) string) blank {
	return func(w *writer, fs []analysis.Finding) string {
		all := w.advice(fs).Levers
		return say(all[slices.IndexFunc(all, func(l advise.Lever) bool { return l.Name == fs[0].What })])
	}
}

func outcome(l advise.Lever) string {
	text := changes(l.Reasons(), stats.Better)
	if loses := changes(l.Effects(), stats.Worse); loses != "" {
		return text + ", but " + loses
	}
	if doubt := doubt(l.Effects()); doubt != "" {
		return text + "; nothing certainly gets worse, but " + doubt
	}
	return text + "; no measured value gets worse"
}

// changes returns the largest effects with a verdict.
func changes(all []advise.Effect, v stats.Verdict) string {
	const most = 3
	of := slices.DeleteFunc(slices.Clone(all), func(e advise.Effect) bool {
		return e.Ratio.Verdict != v
	})
	slices.SortStableFunc(of, func(a, b advise.Effect) int {
		return cmp.Compare(math.Abs(math.Log(b.Ratio.Median)), math.Abs(math.Log(a.Ratio.Median)))
	})
	var out []string
	for _, e := range of[:min(most, len(of))] {
		out = append(out, Effect(e))
	}
	if n := len(of) - most; n > 0 {
		out = append(out, fmt.Sprintf("%d more", n))
	}
	return printable.List(out)
}

var effectNouns = map[string]string{workload.CRR: "connections a second",
	workload.UDP: "UDP's throughput", workload.UDPRR: "UDP's median latency"}

// Effect returns an effect in words: "throughput from the machine itself rises by 18 % (15–21)".
// For an uncertain effect it returns the range of the change: "throughput from the machine itself:
// no difference shown (-3 to 8 %)".
func Effect(e advise.Effect) string {
	what := cmp.Or(effectNouns[e.Load], workload.Of(sample.Load{Kind: e.Load}).Noun)
	place, x := e.Place(), e.Ratio
	switch {
	case e.Load != workload.BulkReverse: // whose bytes go from the server to the client
	case e.To == "":
		place = "to " + e.Client()
	default:
		place = "from outside to " + e.Client()
	}
	if x.Verdict != stats.Better && x.Verdict != stats.Worse {
		return fmt.Sprintf("%s %s: no difference shown (%+.0f to %+.0f %%)", what, place,
			100*(x.Low-1), 100*(x.High-1))
	}
	verb, change, low, high := "rises", x.Median-1, x.Low-1, x.High-1
	if change < 0 {
		verb, change, low, high = "falls", -change, -high, -low
	}
	if e.Load == workload.CRR {
		verb = strings.TrimSuffix(verb, "s")
	}
	decimals := 0
	if 100*(high-low) < 1 {
		decimals = 1
	}
	return fmt.Sprintf("%s %s %s by %.*f %% (%.*f–%.*f)", what, place, verb, decimals, 100*change,
		decimals, 100*low+0, decimals, 100*high)
}

// doubt returns the largest loss that is not ruled out, or "" if none is large.
func doubt(all []advise.Effect) (text string) {
	const little = 0.05
	worst := little
	for _, e := range all {
		loss := 1 - e.Ratio.Low
		if !e.Higher {
			loss = e.Ratio.High - 1
		}
		if e.Ratio.Verdict == stats.Unclear && loss > worst {
			worst = loss
			text = fmt.Sprintf("a loss of up to %.0f %% (%s %s) is not ruled out: use a longer "+
				"--budget to find out", math.Ceil(100*loss), e.Load, e.Place())
		}
	}
	return text
}
