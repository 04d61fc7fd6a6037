package analysis

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/sample"
	"github.com/bridgetoll/bridgetoll/internal/stats"
)

// findings are the answers in words to what users come with.
func (j *judged) findings(r *Report) []string {
	var out []string
	if len(r.Cells) == 0 {
		return []string{"Nothing was measured."}
	}
	out = append(out, witnessed(r))
	for _, on := range builtBy(r.Cells) {
		out = append(out, j.findingsOn(r, on)...)
	}
	for _, from := range placements(r.Cells) {
		if s := j.streamFinding(from); s != "" {
			out = append(out, s)
		}
	}
	if s := j.streamOwn(); s != "" {
		out = append(out, s)
	}
	out = append(out, j.tuneGains()...)
	return append(out, j.againstLab()...)
}

// findingsOn are those about the modes that one backend built.
func (j *judged) findingsOn(r *Report, on string) []string {
	var out []string
	add := func(s string) {
		if s != "" {
			out = append(out, sayOn(r.Cells, on)+s)
		}
	}
	here := *r
	here.Cells = slices.DeleteFunc(slices.Clone(r.Cells), func(c Cell) bool { return c.On != on })
	from := placements(here.Cells)
	for _, f := range from {
		add(here.cheapestIsolated(f))
	}
	for _, f := range from {
		add(j.proxyPrice(f, on))
	}
	for _, f := range from {
		add(wirePrices(here.Cells, f))
	}
	return out
}

// witnessed says that of every row.
func witnessed(r *Report) string {
	if len(r.Failed) == 0 {
		return "Every row was witnessed: its bytes were counted on each hop of its path."
	}
	return fmt.Sprintf("Every row was witnessed; %d without a result are listed as failed.", len(r.Failed))
}

// wirePrices are what the modes that fill the wire cost in CPU time: all that
// they differ in.
func wirePrices(cells []Cell, from string) string {
	var say []string
	to := ""
	for _, c := range cells {
		x := c.Metrics[CPUPerByte].Ratio
		if c.From != from || !c.fillsWire() || x == nil {
			continue
		}
		to = x.To
		say = append(say, fmt.Sprintf("%s %s (%s)", c.Label(), x, x.Verdict))
	}
	if len(say) == 0 {
		return ""
	}
	return fmt.Sprintf("At the wire's rate from %s, in %s's CPU time a byte: %s.", from, to, strings.Join(say, ", "))
}

// tuneGains are what each variant gains or loses against its mode untuned.
func (j *judged) tuneGains() []string {
	var say sayings
	for i, s := range j.series {
		plain := s.cell
		plain.Tune = ""
		b := slices.IndexFunc(j.series, func(o *series) bool { return o.cell == plain })
		if s.cell.Tune == "" || b < 0 {
			continue
		}
		if x := j.against(i, b, Primary(s.load), label(plain)); x.N > 0 {
			say.add(s.cell, fmt.Sprintf("%s from %s", label(s.cell), s.cell.From), words(s.load, x))
		}
	}
	return say.out
}

// sayings are sentences, one for each cell, whatever its loads.
type sayings struct {
	out []string
	at  map[sample.Cell]int // cell without its load -> index in out
}

// add says text of a cell, which head names.
func (s *sayings) add(c sample.Cell, head, text string) {
	c.Load = ""
	if at, ok := s.at[c]; ok {
		s.out[at] = strings.TrimSuffix(s.out[at], ".") + " and " + text + "."
		return
	}
	if s.at == nil {
		s.at = map[sample.Cell]int{}
	}
	s.at[c] = len(s.out)
	s.out = append(s.out, head+": "+text+".")
}

func placements(cells []Cell) []string {
	var out []string
	seen := map[string]bool{}
	for _, c := range cells {
		if !seen[c.From] {
			seen[c.From] = true
			out = append(out, c.From)
		}
	}
	return out
}

// cheapestIsolated names the mode that costs least among those in which a
// container's ports are its own: the smallest geometric mean of its tolls
// over the loads.
func (r *Report) cheapestIsolated(from string) string {
	type tolls struct {
		log   float64
		n     int
		clear bool // at least one verdict is
		say   []string
	}
	byLabel := map[string]*tolls{}
	var labels []string // in the cells' order, so that ties are stable
	loads := map[string]bool{}
	for _, c := range r.Cells {
		m, ok := mode.Find(mode.Name(c.Mode))
		x := c.Metrics[c.Primary].Ratio
		if c.From != from || !ok {
			continue
		}
		loads[c.Load] = true
		if !m.PortIsolation || x == nil && !c.Baseline {
			continue
		}
		t := byLabel[c.Label()]
		if t == nil {
			t = &tolls{}
			byLabel[c.Label()] = t
			labels = append(labels, c.Label())
		}
		t.n++
		if c.Baseline { // its toll is 1
			t.clear, t.say = true, []string{"it is the baseline itself"}
			continue
		}
		t.log += math.Log(c.toll())
		verdict, say := x.Verdict, words(r.loadOf(c.Load), *x)
		if cpu := c.Metrics[CPUPerByte].Ratio; c.fillsWire() && cpu != nil {
			verdict, say = cpu.Verdict, fmt.Sprintf("the wire's rate at %s times %s's CPU time a byte (%s)", cpu, cpu.To, cpu.Verdict)
		}
		t.clear = t.clear || verdict != stats.Unclear
		t.say = append(t.say, say)
	}
	labels = slices.DeleteFunc(labels, func(l string) bool { return byLabel[l].n != len(loads) })
	best, least := "", math.Inf(1)
	for _, l := range labels {
		if t := byLabel[l]; t.log/float64(t.n) < least {
			best, least = l, t.log/float64(t.n)
		}
	}
	switch {
	case best == "" || len(labels) == 1 && best == r.Plan.Baseline:
		return ""
	case len(labels) == 1: // of one, that it is the cheapest says nothing
		return fmt.Sprintf("%s keeps port isolation, from %s, with %s.", best, from, strings.Join(byLabel[best].say, " and "))
	case !byLabel[best].clear:
		return fmt.Sprintf("Perhaps the cheapest from %s that keeps port isolation: %s, with %s; run longer, or on a quieter machine, to know.",
			from, best, strings.Join(byLabel[best].say, " and "))
	}
	return fmt.Sprintf("Cheapest from %s that keeps port isolation: %s, with %s.", from, best, strings.Join(byLabel[best].say, " and "))
}

func (r *Report) loadOf(kind string) sample.Load {
	return sample.Plan{Loads: r.Plan.Loads}.LoadOf(kind)
}

// words says a ratio of the load's own metric, and its verdict.
func words(l sample.Load, x Ratio) string {
	t := trafficOf(l)
	if higherIsBetter(l, t.primary) {
		return fmt.Sprintf("%s of %s's %s (%s)", x, x.To, t.noun, x.Verdict)
	}
	return fmt.Sprintf("%s times %s's %s (%s)", x, x.To, t.noun, x.Verdict)
}

// proxyPrice is what publishing through docker-proxy costs against the same
// port published by NAT, and without NAT against the baseline.
func (j *judged) proxyPrice(from, on string) string {
	var say []string
	to, proxy := "", "docker-proxy"
	for i, s := range j.series {
		if s.cell.On != on {
			continue
		}
		if p, ok := j.file.Header.PathOf(s.cell); ok && p.Facts["proxy"] != "" {
			proxy = p.Facts["proxy"]
		}
		if s.cell.Mode != string(mode.PublishProxy) || s.cell.From != from || s.cell.Tune != "" || len(s.visits) == 0 {
			continue
		}
		b, name, ok := j.rival(s.cell)
		if !ok {
			continue
		}
		x := j.against(i, b, Primary(s.load), name)
		if x.N == 0 || (to != "" && to != name) {
			continue
		}
		to = name
		say = append(say, words(s.load, x))
	}
	if len(say) == 0 {
		return ""
	}
	return fmt.Sprintf("Publishing through %s, from %s: %s.", proxy, from, strings.Join(say, " and "))
}

// rival is the cell that a docker-proxy cell is held against: NAT at the same
// target, or else the baseline.
func (j *judged) rival(c sample.Cell) (i int, name string, ok bool) {
	for i, s := range j.series {
		o := s.cell
		if o.Mode == string(mode.PublishNAT) && o.To == c.To && o.Tune == c.Tune && groupOf(o) == groupOf(c) && len(s.visits) > 0 {
			return i, label(o), true
		}
	}
	b, ok := j.base[groupOf(c)]
	if !ok || c.To == string(mode.ToLoopback6) && j.hasSister(c) { // which tells it
		return 0, "", false
	}
	return b, j.series[b].cell.Mode, true
}

// hasSister reports whether the same path over IPv4 has a result.
func (j *judged) hasSister(c sample.Cell) bool {
	c.To = string(mode.ToLoopback)
	for _, s := range j.series {
		if s.cell == c && len(s.visits) > 0 {
			return true
		}
	}
	return false
}
