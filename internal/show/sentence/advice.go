package sentence

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/comparison"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/heads"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// routes returns the routes of findings on whether to keep or avoid them, with how they differ
// from the baseline. The first figures of a place name their metrics.
func (w *writer) routes(fs []analysis.Finding) string {
	var say []string
	for _, f := range fs {
		x := route{r: w.r, cells: w.cells(f), leads: f.Pin}
		text := x.cells[0].Label()
		if c, figures := x.changes(!w.named); c != "" &&
			(f.Code != comparison.Open || x.knows(x.cells)) {
			text, w.named = text+": "+c, w.named || figures
		}
		if f.Code == comparison.Keep {
			text += x.price()
		}
		if f.What != "" && !sameRemedy(fs) {
			text += " (" + remedies[f.What] + ")"
		}
		say = append(say, text)
	}
	return strings.Join(say, "; ")
}

// remedy returns the remedy that all routes have.
func (w *writer) remedy(fs []analysis.Finding) string {
	if fs[0].What == "" || !sameRemedy(fs) {
		return ""
	}
	return ": " + remedies[fs[0].What]
}

func sameRemedy(fs []analysis.Finding) bool {
	return !slices.ContainsFunc(fs, func(f analysis.Finding) bool { return f.What != fs[0].What })
}

type route struct {
	r     *analysis.Report
	cells []analysis.Cell
	leads string // the CPU placement that decides
	paced bool   // the text has named the machine's pacing
}

// price returns what a mode takes besides an engine on one machine, and what users of an unusual
// mode must know, in parentheses, or "".
func (x route) price() string {
	var say []string
	m, _ := mode.Find(x.cells[0].Mode)
	if m.Needs != "" {
		say = append(say, "needs "+m.Needs)
	}
	if m.Caveat != "" && (m.Needs != "" || !m.Usual) {
		say = append(say, m.Caveat)
	}
	if len(say) == 0 {
		return ""
	}
	return " (" + strings.Join(say, ", ") + ")"
}

// changes returns how a route differs from the baseline, first in the CPU placement that decides.
// Results in another placement are left out if they equal those of the run's first. If nouns is
// set, the first figures name their metric; figures reports whether these include all percentages,
// so that later ones need no names.
func (x route) changes(nouns bool) (text string, figures bool) {
	if !x.r.Plan.ManyPins() {
		say, all := x.said(x.cells, nouns)
		return x.join(say), all && slices.ContainsFunc(say, isFigure)
	}
	pins := x.r.Plan.Pins
	lead, agree := slices.IndexFunc(pins, func(p sample.Pinning) bool {
		return p.Name == x.leads
	}), true
	by, order := make([]string, len(pins)), []int{lead}
	for i := range pins {
		if i != lead {
			order = append(order, i)
		}
	}
	for _, i := range order {
		pin, own := pins[i], x.onPin(pins[i].Name)
		say, all := x.said(own, nouns && !figures)
		for _, c := range own {
			if first, ok := x.r.WithPin(c, pins[0].Name); i > 0 && (!ok || !x.r.Agree(first, c)) {
				agree = false
			}
		}
		x.paced = x.paced || x.knows(own)
		by[i] = x.join(say)
		if gaps := x.gaps(pin.Name); gaps != "" {
			agree = false
			if !slices.ContainsFunc(say, isFigure) {
				by[i] = strings.TrimPrefix(by[i]+", "+gaps, ", ")
			}
		}
		figures = figures || all && slices.ContainsFunc(say, isFigure)
	}
	if agree {
		return by[0], figures
	}
	for i := range by {
		if i > 0 || lead > 0 {
			by[i] = "on " + analysis.PinWords(pins[i].Name) + " " + by[i]
		}
	}
	text = by[lead]
	return text + " (" + strings.Join(slices.Delete(by, lead, lead+1), "; ") + ")", figures
}

func (x route) onPin(pin string) []analysis.Cell {
	return slices.DeleteFunc(slices.Clone(x.cells), func(c analysis.Cell) bool {
		return c.Pin != pin
	})
}

// gaps returns which loads of the route have no ratio in a CPU placement, or "" if all have one.
func (x route) gaps(pin string) string {
	var nouns []string
	none := true
	for _, c := range x.cells {
		has := slices.ContainsFunc(x.cells, func(o analysis.Cell) bool {
			return o.Load == c.Load && o.Pin == pin
		})
		none = none && !has
		if noun := x.r.NounOf(c); !has && !slices.Contains(nouns, noun) {
			nouns = append(nouns, noun)
		}
	}
	switch {
	case none:
		return notMeasured
	case len(nouns) > 0:
		return printable.List(nouns) + " " + notMeasured
	}
	return ""
}

// said returns each cell's change. If one of several percentages is left out, all is false, and the
// changes name their metrics.
func (x route) said(cells []analysis.Cell, named bool) (out []string, all bool) {
	percentages := 0
	all = true
	for _, c := range cells {
		out = append(out, x.change(c, named))
		if c.Metrics[c.Primary].Price == nil {
			percentages++
			all = all && isFigure(out[len(out)-1])
		}
	}
	if all = all || percentages < 2; !all && !named {
		out, _ = x.said(cells, true)
	}
	return out, all
}

func isFigure(change string) bool { return change != "" && change != unclear }

func (x route) join(say []string) string {
	var differs []string
	for _, s := range say {
		if isFigure(s) {
			differs = append(differs, s)
		}
	}
	switch {
	case len(differs) > 0:
		return strings.Join(differs, ", ")
	case slices.Contains(say, unclear):
		return "no certain difference"
	case len(say) > 0 && x.r.Plan.Same == 0:
		return "the same"
	case len(say) > 0:
		return fmt.Sprintf("the same within %.3g %%", 100*x.r.Plan.Same)
	}
	return ""
}

const (
	unclear     = "?"
	notMeasured = "not measured"
)

// change returns "-5 %", "+2.6 µs" or, with named, "-5 % throughput"; "" if the cell is the same.
func (x route) change(c analysis.Cell, named bool) string {
	m, noun := c.Metrics[c.Primary], ""
	if named {
		noun = " " + x.r.NounOf(c)
	}
	if r := m.Ratio; r != nil && r.Varies && c.FullCPU() == nil {
		return fmt.Sprintf("%s of %s's %s", r, r.To, x.r.NounOf(c))
	}
	pacing := x.unpacedWords(c)
	switch c.Verdict() {
	case stats.Unclear:
		if pacing != "" {
			return x.r.NounOf(c) + " " + pacing
		}
		return unclear
	case stats.Same:
		return ""
	}
	if cpu := c.FullCPU(); cpu != nil {
		return "fills " + c.Link() + ", " + percentOf(*cpu) + " CPU time"
	}
	if m.Price != nil {
		return x.more(*m.Price, c.Load) + noun
	}
	if pacing != "" {
		pacing = ", " + pacing
	}
	return percentOf(*m.Ratio) + noun + pacing
}

// more returns what a mode adds under a load, signed, in the unit of the table's column if it has
// one.
func (x route) more(p analysis.Price, load string) string {
	if unit := heads.Of(x.r.Plan.Loads.Of(load)).Adds; unit != "" && p.Unit == "s" {
		amount, _, _ := strings.Cut(p.Even(unit), " ")
		return amount + " " + unit
	}
	sign := "+"
	if p.Median < 0 {
		sign = "-"
	}
	amount, _, _ := strings.Cut(p.Amount(), " (")
	return sign + amount
}

// percentOf returns "-5 %", "+12 %" or, from twice as much on, "2.4×".
func percentOf(r analysis.Ratio) string {
	const times = 2
	if r.Median >= times {
		return fmt.Sprintf("%.2g×", r.Median)
	}
	return percent(r.Median)
}

func percent(ratio float64) string {
	text := fmt.Sprintf("%+.0f %%", 100*(ratio-1))
	if text == "-0 %" || text == "+0 %" {
		return "0 %"
	}
	return text
}

// unpacedWords returns what a cell's change is without the machine's pacing: "all of it bbr's
// pacing: 0 % with reno", or "" if that is not known or makes no certain difference.
func (x route) unpacedWords(c analysis.Cell) string {
	here, there := c.Metrics[c.Primary].Ratio, c.Unpaced
	if here == nil || there == nil ||
		here.Verdict == stats.Unclear && there.Verdict == stats.Unclear {
		return ""
	}
	_, instead, _ := strings.Cut(x.r.Plan.Unpaced, "=")
	paces := x.r.Environment.Congestion
	with := percentOf(*there) + " with " + instead
	if there.Verdict == stats.Unclear {
		with = there.Even() + " % with " + instead
	}
	switch {
	case here.Verdict != stats.Unclear && here.Low <= there.High && there.Low <= here.High:
		return ""
	case x.paced: // said before
		return with
	case here.Verdict == stats.Unclear:
		return with + ", unclear with " + paces
	}
	return shareOf(here.Median, there.Median) + " " + paces + "'s pacing: " + with
}

// knows reports whether the result of one of the cells without pacing is known.
func (x route) knows(cells []analysis.Cell) bool {
	return slices.ContainsFunc(cells, func(c analysis.Cell) bool { return x.unpacedWords(c) != "" })
}

// shareOf returns in words how much of a difference pacing makes.
func shareOf(here, there float64) string {
	const nearly, most = 0.1, 0.5
	switch left := math.Log(there) / math.Log(here); {
	case left <= 0 || percent(there) == percent(1):
		return "all of it"
	case left < nearly:
		return "nearly all of it"
	case left < most:
		return "most of it"
	case left < 1:
		return "part of it"
	}
	return "reduced by"
}
