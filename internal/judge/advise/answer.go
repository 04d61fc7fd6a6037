package advise

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

const percent = 100

func certain(e Effect) bool {
	return e.Ratio.Verdict == stats.Better || e.Ratio.Verdict == stats.Worse
}

// AnswerOf returns the findings of the searches. It claims no more than the verdicts do.
func AnswerOf(r *Report) *analysis.Answer {
	var modes []string
	for _, a := range r.Advice {
		modes = append(modes, a.Mode)
	}
	out := &analysis.Answer{Question: fmt.Sprintf(
		"What makes %s faster here?", printable.List(modes)), Text: []string{}}
	if r.Plan.EndedBy == sample.EndedByInterrupt {
		out.Add("The search was interrupted: what it had not measured by then is not advised.")
	}
	if r.TooBusy() {
		out.Add(printable.Capital(sample.TooBusy) + ": measure again before you set any of this.")
	}
	for _, a := range r.Advice {
		for _, text := range a.sentences() {
			if len(r.Advice) > 1 {
				text = a.Mode + ": " + text
			}
			out.Text = append(out.Text, text)
		}
	}
	return out
}

func (a Advice) sentences() (out []string) {
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	by := byVerdict(a.Levers)
	measured := 0
	for _, l := range a.Levers {
		if len(l.Alone) > 0 {
			measured++
		}
	}
	failed := len(by[Broken])+len(by[Skipped]) == len(a.Levers)
	switch {
	case len(a.Levers) == 0:
		return []string{"Nothing was tried: the run ended too early."}
	case failed && slices.ContainsFunc(by[Broken], func(l Lever) bool { return l.busy }):
		return []string{"Nothing is certain: " + sample.TooBusy + " to measure the levers. " +
			"Measure again while no other program is busy."}
	case measured == 0:
		return []string{"Nothing could be tried here."}
	case failed:
		return []string{"Nothing is certain: every lever failed somewhere, or cannot be tried here."}
	case len(by[Recommended]) > 0:
	case len(by[NotSure]) > 0:
		add("Nothing is certain to help yet.")
	default:
		add("Nothing that was tried helps here without doing harm.")
	}
	if n := unclear(by[NoGain]); n > 0 && len(by[Recommended]) == 0 {
		add("The effect of %s is not certain: use a longer --budget or a quieter machine.",
			some(n, measured))
	}
	for _, l := range by[Recommended] {
		only := ""
		if l.Stays {
			only = ", only for what stays on this machine"
		}
		add("Use %s%s: %s.", l.Gist, only, outcome(l))
		if l.Stays {
			add("The links here lose nothing: over lossy or long paths another algorithm may be " +
				"faster, so leave containers that serve or call other machines as they are.")
		}
	}
	if len(by[Recommended]) > 1 {
		if text := gains(a.Together); text != "" {
			add("All of them together: %s.", text)
		}
	}
	for _, l := range by[AtAPrice] {
		add("Not %s: %s.", l.Gist, outcome(l))
	}
	for _, l := range by[GivesUp] {
		if text := gains(l.Effects()); text != "" {
			add("For comparison, %s: %s; it gives up %s.", l.Gist, text, l.GivesUp)
		}
	}
	for _, l := range by[NotSure] {
		add("%s may help: it helped alone (%s), but there was no time to measure it again.",
			printable.Capital(l.Gist), gains(l.Alone))
	}
	return out
}

func unclear(all []Lever) (n int) {
	for _, l := range all {
		if slices.ContainsFunc(l.Effects(), func(e Effect) bool {
			return e.Ratio.Verdict == stats.Unclear
		}) {
			n++
		}
	}
	return n
}

func some(n, all int) string {
	if n == all {
		return "all of it"
	}
	return fmt.Sprintf("%d of %d levers", n, all)
}

func byVerdict(all []Lever) map[Verdict][]Lever {
	out := map[Verdict][]Lever{}
	for _, l := range all {
		out[l.Verdict] = append(out[l.Verdict], l)
	}
	return out
}

func outcome(l Lever) string {
	text := gains(reasons(l.Effects(), l.Stays))
	if loses := losses(l.Effects()); loses != "" {
		return text + ", but " + loses
	}
	if doubt := doubt(l.Effects()); doubt != "" {
		return text + "; nothing certainly gets worse, but " + doubt
	}
	return text + "; no measured value gets worse"
}

func gains(all []Effect) string  { return changes(all, stats.Better) }
func losses(all []Effect) string { return changes(all, stats.Worse) }

func changes(all []Effect, v stats.Verdict) string {
	const most = 3
	var of []Effect
	for _, e := range all {
		if e.Ratio.Verdict == v {
			of = append(of, e)
		}
	}
	slices.SortStableFunc(of, func(a, b Effect) int {
		size := func(e Effect) float64 { return math.Abs(math.Log(e.Ratio.Median)) }
		switch x, y := size(a), size(b); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	var out []string
	for _, e := range of[:min(most, len(of))] {
		out = append(out, e.String())
	}
	if n := len(of) - most; n > 0 {
		out = append(out, fmt.Sprintf("%d more", n))
	}
	return printable.List(out)
}

// String returns an effect in words: "throughput from the machine itself rises by 18 % (15–21)".
// For an uncertain effect it returns the range of the change: "throughput from the machine itself:
// no difference shown (-3 to 8 %)".
func (e Effect) String() string {
	l := sample.Load{Kind: e.Load}
	w := workload.Of(l)
	what := w.Noun
	if named := map[string]string{workload.CRR: "connections a second", workload.UDP: "UDP's throughput", workload.UDPRR: "UDP's median latency"}[e.Load]; named != "" {
		what = named
	}
	where := what + " " + e.way()
	if !certain(e) {
		return fmt.Sprintf("%s: no difference shown (%+.0f to %+.0f %%)", where,
			percent*(e.Ratio.Low-1), percent*(e.Ratio.High-1))
	}
	verb, x := "rises", e.Ratio
	change, low, high := x.Median-1, x.Low-1, x.High-1
	if change < 0 {
		verb, change = "falls", -change
		low, high = -high, -low
	}
	if e.Load == workload.CRR {
		verb = strings.TrimSuffix(verb, "s")
	}
	return fmt.Sprintf("%s %s by %s", where, verb, share(change, low, high))
}

// Place returns where the client is and, if the server is outside, that it is: "from the machine
// itself", "from a container to outside".
func (e Effect) Place() string {
	if e.To == "" {
		return "from " + mode.Placement(e.From).Words()
	}
	return "from " + e.client() + " to outside"
}

// way returns Place or, if the load's bytes go from the server to the client, the reverse of it.
func (e Effect) way() string {
	switch {
	case e.Load != workload.BulkReverse:
		return e.Place()
	case e.To == "":
		return "to " + e.client()
	}
	return "from outside to " + e.client()
}

func (e Effect) client() string {
	if e.To != "" && e.From == string(mode.FromContainer) {
		return "a container" // the only one, because the server is outside
	}
	return mode.Placement(e.From).Words()
}

func share(x, low, high float64) string {
	decimals := 0
	if (high-low)*percent < 1 {
		decimals = 1
	}
	return fmt.Sprintf("%.*f %% (%.*f–%.*f)", decimals, percent*x, decimals, percent*low+0,
		decimals, percent*high)
}

// doubt returns the largest loss that is not ruled out, or "" if none is large.
func doubt(all []Effect) (text string) {
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
				"--budget to find out", math.Ceil(percent*loss), e.Load, e.Place())
		}
	}
	return text
}
