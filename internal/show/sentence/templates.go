package sentence

import (
	"math"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/comparison"
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
