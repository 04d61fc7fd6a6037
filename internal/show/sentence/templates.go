package sentence

import (
	"fmt"
	"math"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/comparison"
	"github.com/bridgetoll/bridgetoll/internal/judge/scale"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

type template struct {
	code, text string
	detail     string // the text in the details, if it differs
	most       int    // of such sentences in an answer; 0: only the details have them
	details    int    // where the details have all of them; 0: nowhere
	continues  bool   // the text continues the sentence before
	placed     bool   // the text follows its place if the answer is about several
	item       string // neighbours with the same item are one, as a list if they have its head
	list       string
	question   string                           // that it answers; "": another's, or the usual one
	merge      func(a, b analysis.Finding) bool // neighbours that one text is about; nil: none
}

func inPlace(a, b analysis.Finding) bool { return placeOf(a) == placeOf(b) }
func ofWhat(a, b analysis.Finding) bool  { return a.What == b.What }
func ofCells(a, b analysis.Finding) bool { return slices.Equal(a.Cells, b.Cells) }

const (
	all   = math.MaxInt
	which = "Which network mode, by {nouns}?"
)

var templates = slices.Concat(ofModes, ofRoutes, ofCrowds, ofCurves, ofSteps, ofPredictions,
	ofTraces, ofLevers, ofMeshes)

var ofModes = []template{
	{code: analysis.NothingMeasured, text: "Nothing was measured.", details: 1},
	{code: analysis.AllWitnessed, text: "{witnessed}", details: 1},
	{code: comparison.TokensFaster, text: tokens + "None adds 160 ms, as a study published for a " +
		"bridge", most: all, details: 2},
	{code: comparison.TokensSlower, text: tokens + "Each adds 160 ms or more, as a study published " +
		"for a bridge", most: all, details: 2},
	{code: comparison.TokensUnclear, text: tokens + "Not all are clearly below 160 ms, which a study " +
		"published for a bridge", most: all, details: 2},
	{code: comparison.TokensLate, text: "; tokens were late by 200 to 300 ms, as in that study, with " +
		"{rows}.", continues: true, details: 2},
	{code: comparison.TokensInTime, text: ", and no token was late by 200 to 300 ms, as in that " +
		"study.", continues: true, details: 2},
	{code: comparison.OwnDelays, text: "The load's own delays, the largest of any row: its server " +
		"sent tokens {late_p99} late (p99; at worst {late_max}), they waited {wait_p99} for its " +
		"client's thread (p99; at worst {wait_max}), and its busiest thread ran {busiest_cpu} of a " +
		"window.", details: 3},
	{code: comparison.OverIPv6, text: "{cell4} over IPv6, from {place}{pin}: {ratios}.", most: 6,
		details: 4, question: "What does IPv6 cost against IPv4?"},
	{code: comparison.Tuned, text: "{cell} from {place}{pin}: {ratios}.", most: 3, details: 5},
	{code: comparison.AgainstLab, text: "{cell} on {on}, from {place}{pin}: {ratios}.", most: 3,
		details: 6},

	{code: analysis.Busy, text: "{warning}: measure again before you decide.", most: all},
	{code: comparison.Keep, text: "{Keep} {routes}.", most: all, placed: true, item: "advice", merge: inPlace,
		question: which},
	{code: comparison.Avoid, text: "{Avoid} {routes}{remedy}.", most: all, placed: true, item: "advice", merge: inPlace,
		question: which},
	{code: comparison.Varies, text: "Varies: {routes}.", most: all, placed: true, item: "advice", merge: inPlace,
		question: which},
	{code: comparison.Open, text: "Not certain yet: {routes}.", most: all, placed: true,
		item: "advice", merge: inPlace, question: which},
	{code: comparison.Compared, text: "{Noun}{pin}, of {base}'s: {verdicts}.", most: all,
		placed: true},
	{code: comparison.Limited, text: "Every mode's throughput is limited by {limit}.", most: all},
	{code: comparison.HiddenByLink, text: "Every mode's throughput is limited by {limit} and says " +
		"nothing about the modes: compare CPU time per byte.", most: all},
	{code: comparison.Relayed, text: "Over {cell}{pin} {packets} passes the process {what}, which " +
		"uses {core} of a CPU and takes {seconds} s of CPU time for each GB.", most: all},
	{code: comparison.LeverHelps, text: "{Lever} gives {ratio} of its throughput{command}. {harm}.",
		most: all},
	{code: comparison.LeverHarms, text: "{Lever} does not help: {ratio} of its throughput.",
		most: all},
	{code: comparison.LeverSame, text: "{Lever} makes no difference.", most: all},
	{code: comparison.LeverUnclear, text: "Whether {lever} helps is unclear.", most: all},
	{code: comparison.WithoutRelay, text: "Without a relay: {hosted}.", most: all},
	{code: comparison.OnlyResult, text: "Nothing is compared: only {labels} has a result.",
		most: all},
	{code: comparison.OnlyMeasured, text: "Nothing is compared: only {labels} was measured. Name a " +
		"mode to compare it with.", most: all},
	{code: comparison.MostlyPacing, text: "{open}, mostly because {congestion}'s pacing differs " +
		"from run to run: --congestion reno measures without it.", most: all},
	{code: analysis.Unclear, text: "{unclear}", most: all},
	{code: analysis.TooFewRounds, text: "{unclear}", most: all},
}

const tokens = "The path adds to the median response of {tokens} tokens at {pace} per second, from " +
	"{place}, over {what}: {longer}. "

func find(code string) template {
	return templates[slices.IndexFunc(templates, func(t template) bool { return t.code == code })]
}

var ofCrowds = []template{
	{code: scale.Scaling, text: "{Total}, of that at {first}: {scaling}.", most: all},
	{code: scale.AtSize, text: "{Total}, of {other}'s: {rates}.", most: all},
	{code: scale.OneSize, text: "There is one size and one mode only: nothing to compare. Give " +
		"several, as in --clients 1,4,16.", most: all},
	{code: scale.Idle, text: "In most rounds a client process transferred nothing: {sizes}.",
		most: all},
	{code: scale.Growth, text: "{growth}.", details: 2},
	{code: scale.OneIdle, text: "{cell} from {place} at {shape}, {load}: in most rounds a client " +
		"process transferred nothing.", details: 3},
	{code: scale.Largest, text: "The largest crowd, {shape}: {n} processes, started and connected " +
		"within {setup} s, the last one's first byte at most {spread} ms after the common start, " +
		"{memory} MB of memory at the peak.", details: 4},
}

// totalOf returns what is summed over the clients, at which size and place.
func (w *writer) totalOf(fs []analysis.Finding) string {
	f, c := fs[0], w.r.Cells[fs[0].Cells[0]]
	l := workload.Of(sample.Load{Kind: f.Load})
	text := "total "
	if l.Rate == l.Primary {
		text += l.Noun
	} else {
		text += "rate of " + l.Name
	}
	differs := func(of func(analysis.Finding) string) bool {
		return slices.ContainsFunc(w.r.Found, func(o analysis.Finding) bool {
			return o.Load != "" && of(o) != of(f)
		})
	}
	if differs(func(f analysis.Finding) string { return f.On }) {
		text += " on " + f.On
	}
	if differs(func(f analysis.Finding) string { return string(f.From) }) {
		text += " from " + f.From.Words()
	}
	return printable.Capital(text + " at " + c.Shape.String())
}

// byRatio returns the words for the modes of a size by the verdicts on their rates.
func byRatio(of func(analysis.Metric) *analysis.Ratio) blank {
	return func(w *writer, fs []analysis.Finding) string {
		var out []analysis.Judged
		for _, c := range w.cells(fs[0]) {
			x := of(c.Metrics[scale.Rate(c)])
			out = append(out, analysis.Judged{Name: c.Label(), Verdict: x.Verdict, Ratio: x})
		}
		return analysis.ByVerdict(out)
	}
}

// partner returns what the rates are compared with.
func partner(of func(analysis.Metric) *analysis.Ratio) blank {
	return func(w *writer, fs []analysis.Finding) string {
		cells := w.cells(fs[0])
		last := cells[len(cells)-1]
		return of(last.Metrics[scale.Rate(last)]).To
	}
}

func ofFirst(m analysis.Metric) *analysis.Ratio    { return m.Scaling }
func ofBaseline(m analysis.Metric) *analysis.Ratio { return m.Ratio }

func growth(_ *writer, c analysis.Cell) string {
	m := c.Metrics[scale.Rate(c)]
	s := fmt.Sprintf("%s from %s, %s: %s delivers %s of the throughput of %s (%s)", c.Label(),
		c.From.Words(), c.Load, c.Shape, m.Scaling, m.Scaling.To, m.Scaling.Verdict)
	if f, ok := c.Metrics[workload.ClientFairness]; ok && c.Shape.Clients > 1 {
		s += fmt.Sprintf(", and its clients share it with a fairness of %.2f", f.Median)
	}
	if x := m.Ratio; x != nil {
		s += fmt.Sprintf("; that is %s of %s's (%s)", x, x.To, x.Verdict)
	}
	return s
}

// highest returns the words for the largest value of a metric in any round.
func highest(metric, format string, scale float64) blank {
	return ofCell(func(_ *writer, c analysis.Cell) string {
		return fmt.Sprintf(format, scale*slices.Max(append([]float64{0},
			c.Metrics[metric].Rounds...)))
	})
}
