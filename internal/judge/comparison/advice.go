package comparison

import (
	"cmp"
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

const (
	keepVerb   = "Keep"
	notCertain = "Not certain yet:"
)

// dear is the least cost at which a mode is advised against: certainly a third less throughput,
// half as much more latency, or half as much more CPU time on a full link.
const dear = 1.5

// advice returns the sentences on which modes to keep or avoid. Each mode is judged by its usual
// route.
func (p place) advice() []string {
	var keep, avoid, open, varying []route
	for _, x := range p.isolated() {
		switch cost, known := x.cost(); {
		case cost >= dear:
			avoid = append(avoid, x)
		case x.varies():
			varying = append(varying, x)
		case !known:
			open = append(open, x)
		default:
			keep = append(keep, x)
		}
	}
	var out []string
	named := false // the first figures name their metric
	add := func(verb string, xs []route, remedies func(route) string) {
		if len(xs) == 0 {
			return
		}
		slices.SortStableFunc(xs, func(a, b route) int {
			return cmp.Or(cmp.Compare(a.needy(), b.needy()), cmp.Compare(a.mean(), b.mean()))
		})
		var say []string
		all := !slices.ContainsFunc(xs, func(x route) bool {
			return remedies(x) != remedies(xs[0])
		})
		for _, x := range xs {
			text := x.label
			if c, figures := p.changes(x, !named); c != "" && (verb != notCertain || p.knows(x)) {
				text, named = text+": "+c, named || figures
			}
			if verb == keepVerb {
				text += x.price()
			}
			if r := remedies(x); r != "" && !all {
				text += " (" + r + ")"
			}
			say = append(say, text)
		}
		text := verb + " " + strings.Join(say, "; ")
		if r := remedies(xs[0]); r != "" && all {
			text += ": " + r
		}
		out = append(out, text+".")
	}
	none := func(route) string { return "" }
	add(keepVerb, keep, none)
	add("Avoid", avoid, p.remedy)
	add("Varies:", varying, none)
	add(notCertain, open, none)
	return out
}

// price returns what a mode takes besides an engine on one machine, and what users of an unusual mode
// must know, in parentheses, or "".
func (x route) price() string {
	var say []string
	if x.mode.Needs != "" {
		say = append(say, "needs "+x.mode.Needs)
	}
	if x.mode.Caveat != "" && (x.mode.Needs != "" || !x.mode.Usual) {
		say = append(say, x.mode.Caveat)
	}
	if len(say) == 0 {
		return ""
	}
	return " (" + strings.Join(say, ", ") + ")"
}

func (x route) needy() int { return min(1, len(x.mode.Needs)) }

func (p place) isolated() []route {
	loads := 0
	for _, x := range p.routes {
		loads = max(loads, len(x.cells))
	}
	var out []route
	for _, x := range p.routes {
		if u, _ := p.usual(x.mode.Name); x.mode.PortIsolation() && len(x.cells) == loads &&
			u.label == x.label {
			out = append(out, x)
		}
	}
	return out
}

func (x route) varies() bool {
	return slices.ContainsFunc(x.cells, func(c analysis.Cell) bool {
		r, _ := deciding(c)
		return r != nil && r.Varies
	})
}

// cost returns the largest certain factor of a route's cost relative to the baseline, or 1 for a
// route that certainly costs nothing. If every verdict is unclear, known is false.
func (x route) cost() (factor float64, known bool) {
	factor = 1
	for _, c := range x.cells {
		r, higher := deciding(c)
		switch c.Verdict() {
		case stats.Worse:
			known = true
			if higher {
				factor = max(factor, 1/r.High)
			} else {
				factor = max(factor, r.Low)
			}
		case stats.Same, stats.Better:
			known = true
		}
	}
	return factor, known
}

func deciding(c analysis.Cell) (r *analysis.Ratio, higher bool) {
	if cpu := c.Metrics[workload.CPUPerByte].Ratio; c.FillsLink() && cpu != nil {
		return cpu, false
	}
	m := c.Metrics[c.Primary]
	return m.Ratio, m.Higher
}

func (x route) mean() float64 {
	sum, n, all := 0.0, 0, 0.0
	for _, c := range x.cells {
		toll := math.Log(c.Toll())
		all += toll
		if c.Verdict() != stats.Unclear {
			sum, n = sum+toll, n+1
		}
	}
	if n == 0 {
		return all / float64(len(x.cells))
	}
	return sum / float64(n)
}

// changes returns how a route differs from the baseline, first in the CPU placement that decides.
// Results in another placement are left out if they equal those of the run's first. If nouns is
// set, the first figures name their metric; figures reports whether these include all percentages,
// so that later ones need no names.
func (p place) changes(x route, nouns bool) (text string, figures bool) {
	if !p.r.Plan.ManyPins() {
		say, all := p.said(x.cells, nouns)
		return p.join(say), all && slices.ContainsFunc(say, isFigure)
	}
	pins := p.r.Plan.Pins
	lead, agree := max(0, p.leading(x)), true
	by, order := make([]string, len(pins)), []int{lead}
	for i := range pins {
		if i != lead {
			order = append(order, i)
		}
	}
	for _, i := range order {
		pin, own := pins[i], x.onPin(pins[i].Name)
		say, all := p.said(own.cells, nouns && !figures)
		for _, c := range own.cells {
			if first, ok := p.r.WithPin(c, pins[0].Name); i > 0 && (!ok || !p.r.Agree(first, c)) {
				agree = false
			}
		}
		p.paced = p.paced || p.knows(own)
		by[i] = p.join(say)
		if gaps := p.gaps(x, pin.Name); gaps != "" {
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

func (x route) onPin(pin string) route {
	return route{cells: slices.DeleteFunc(slices.Clone(x.cells), func(c analysis.Cell) bool {
		return c.Pin != pin
	})}
}

// leading returns the index of the CPU placement that decides, or -1.
func (p place) leading(x route) int {
	cost, _ := x.cost()
	return slices.IndexFunc(p.r.Plan.Pins, func(pin sample.Pinning) bool {
		c, known := x.onPin(pin.Name).cost()
		return known && (cost < dear || c > 1)
	})
}

// gaps returns which loads of the route have no ratio in a CPU placement, or "" if all have one.
func (p place) gaps(x route, pin string) string {
	var nouns []string
	none := true
	for _, c := range x.cells {
		has := slices.ContainsFunc(x.cells, func(o analysis.Cell) bool {
			return o.Load == c.Load && o.Pin == pin
		})
		none = none && !has
		if noun := p.r.NounOf(c); !has && !slices.Contains(nouns, noun) {
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
func (p place) said(cells []analysis.Cell, named bool) (out []string, all bool) {
	percentages := 0
	all = true
	for _, c := range cells {
		out = append(out, p.change(c, named))
		if c.Metrics[c.Primary].Price == nil {
			percentages++
			all = all && isFigure(out[len(out)-1])
		}
	}
	if all = all || percentages < 2; !all && !named {
		out, _ = p.said(cells, true)
	}
	return out, all
}

func isFigure(change string) bool { return change != "" && change != unclear }

func (p place) join(say []string) string {
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
	case len(say) > 0 && p.r.Plan.Same == 0:
		return "the same"
	case len(say) > 0:
		return fmt.Sprintf("the same within %.3g %%", 100*p.r.Plan.Same)
	}
	return ""
}

const (
	unclear     = "?"
	notMeasured = "not measured"
)

// change returns "-5 %", "+2.6 µs" or, with named, "-5 % throughput"; "" if the cell is the same.
func (p place) change(c analysis.Cell, named bool) string {
	m, noun := c.Metrics[c.Primary], ""
	if named {
		noun = " " + p.r.NounOf(c)
	}
	if r := m.Ratio; r != nil && r.Varies && !c.FillsLink() {
		return fmt.Sprintf("%s of %s's %s", r, r.To, p.r.NounOf(c))
	}
	pacing := p.unpacedWords(c)
	switch c.Verdict() {
	case stats.Unclear:
		if pacing != "" {
			return p.r.NounOf(c) + " " + pacing
		}
		return unclear
	case stats.Same:
		return ""
	}
	if r, _ := deciding(c); c.FillsLink() {
		return "fills " + c.Link() + ", " + percentOf(*r) + " CPU time"
	}
	if m.Price != nil {
		sign := "+"
		if m.Price.Median < 0 {
			sign = "-"
		}
		amount, _, _ := strings.Cut(m.Price.Amount(), " (")
		return sign + amount + noun
	}
	if pacing != "" {
		pacing = ", " + pacing
	}
	return percentOf(*m.Ratio) + noun + pacing
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

// remedy returns what to do instead of a proxy on the route, or "".
func (p place) remedy(x route) string {
	c := x.cells[0]
	m, _ := mode.Find(c.Mode)
	switch {
	case !slices.Contains(c.Hops, string(mode.HopProxy)) || c.On == sample.Swarm:
		return ""
	case m.Rootless:
		return `set "userland-proxy": false`
	case c.From == mode.FromRemote || c.From == mode.FromRemoteContainer:
		// other machines have no route to the container's address
		if c.To == mode.ToAddress6 {
			return "give the network IPv6 (docker network create --ipv6), so that Docker's rules " +
				"serve the port"
		}
		return `leave out "iptables": false, without which Docker's rules serve the port`
	case c.From == mode.FromHost && (c.On == sample.Docker || p.r.Environment.RunsDocker()):
		return "dial the container's address, or sudo toll fast on --all"
	}
	return "dial the container's address"
}
