// Package comparison judges modes against a baseline.
package comparison

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
)

// study is a results file on its way to the report.
type study struct{ *analysis.Run }

// Judge judges a results file as a comparison.
func Judge(f *sample.File) *analysis.Report {
	j := study{analysis.Open(f)}
	r := j.Report()
	j.Sort(r.Cells)
	r.Findings = append(r.Findings, j.findings(r)...)
	r.Answer = j.answer(r)
	return r
}

// findings are the answers in words to what users come with.
func (j study) findings(r *analysis.Report) []string {
	var out []string
	if len(r.Cells) == 0 {
		return []string{"Nothing was measured."}
	}
	out = append(out, analysis.Witnessed(r))
	for _, on := range analysis.Backends(r.Cells) {
		out = append(out, j.findingsOn(r, on)...)
	}
	for _, from := range analysis.Placements(r.Cells) {
		if s := j.streamFinding(from); s != "" {
			out = append(out, s)
		}
	}
	if s := j.streamOwn(); s != "" {
		out = append(out, s)
	}
	out = append(out, j.overIPv6()...)
	out = append(out, j.tuneGains()...)
	return append(out, j.againstLab()...)
}

// findingsOn are those about the modes that one backend built.
func (j study) findingsOn(r *analysis.Report, on string) []string {
	var out []string
	add := func(s string) {
		if s != "" {
			out = append(out, ofBackend(r.Cells, on)+s)
		}
	}
	here := *r
	here.Cells = slices.DeleteFunc(slices.Clone(r.Cells), func(c analysis.Cell) bool { return c.On != on })
	from := analysis.Placements(here.Cells)
	for _, f := range from {
		add(cheapestIsolated(&here, f))
	}
	for _, f := range from {
		add(j.proxyPrice(f, on))
	}
	for _, f := range from {
		add(wirePrices(here.Cells, f))
	}
	return out
}

// wirePrices are what the modes that fill a link cost in CPU time: all that
// they differ in.
func wirePrices(cells []analysis.Cell, from string) string {
	var say []string
	to, link := "", ""
	for _, c := range cells {
		x := c.Metrics[workload.CPUPerByte].Ratio
		if c.From != from || !c.FillsLink() || x == nil {
			continue
		}
		to, link = x.To, c.Link()
		say = append(say, fmt.Sprintf("%s %s (%s)", c.Label(), x, x.Verdict))
	}
	if len(say) == 0 {
		return ""
	}
	return fmt.Sprintf("At %s rate from %s, in %s's CPU time per byte: %s.", ownerOf(link), mode.Placement(from).Words(), to, strings.Join(say, ", "))
}

// ownerOf is whose rate it is: "the wire's".
func ownerOf(link string) string { return link + "'s" }

// tuneGains are what each variant gains or loses against its mode untuned.
func (j study) tuneGains() []string {
	var say sayings
	for i, s := range j.Series {
		plain := s.Cell
		plain.Tune = ""
		b := slices.IndexFunc(j.Series, func(o *analysis.Series) bool { return o.Cell == plain })
		if s.Cell.Tune == "" || b < 0 {
			continue
		}
		if x := j.Against(i, b, analysis.Primary(s.Load), analysis.Label(plain)); x.N > 0 {
			say.add(s.Cell, fmt.Sprintf("%s from %s", analysis.Label(s.Cell), mode.Placement(s.Cell.From).Words()), analysis.Words(s.Load, x))
		}
	}
	return say.out
}

// overIPv6 holds each path over IPv6 against the same over IPv4, where both were asked for.
func (j study) overIPv6() []string {
	var say sayings
	for i, s := range j.Series {
		m, _ := mode.Find(mode.Name(s.Cell.Mode))
		r, ok := m.Route(mode.Placement(s.Cell.From), mode.Target(s.Cell.To))
		four := s.Cell
		four.To = string(r.To.Over4())
		b := slices.IndexFunc(j.Series, func(o *analysis.Series) bool { return o.Cell == four })
		if !ok || !r.OnRequest() || s.Cell.Control || b < 0 || j.Failed(i) || j.Failed(b) {
			continue
		}
		if x := j.Against(i, b, analysis.Primary(s.Load), "IPv4"); x.N > 0 {
			say.add(s.Cell, fmt.Sprintf("%s over IPv6, from %s", analysis.Label(four), mode.Placement(s.Cell.From).Words()), analysis.Words(s.Load, x))
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

// cheapestIsolated names the mode that costs least among those in which a
// container's ports are its own: the smallest geometric mean of its tolls
// over the loads.
func cheapestIsolated(r *analysis.Report, from string) string {
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
		t.log += math.Log(c.Toll())
		verdict, say := x.Verdict, analysis.Words(r.LoadOf(c.Load), *x)
		if cpu := c.Metrics[workload.CPUPerByte].Ratio; c.FillsLink() && cpu != nil {
			verdict, say = cpu.Verdict, fmt.Sprintf("%s rate at %s times %s's CPU time per byte (%s)", ownerOf(c.Link()), cpu, cpu.To, cpu.Verdict)
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
		return fmt.Sprintf("%s keeps port isolation, from %s, with %s.", best, mode.Placement(from).Words(), strings.Join(byLabel[best].say, " and "))
	case !byLabel[best].clear:
		return fmt.Sprintf("Possibly the cheapest from %s that keeps port isolation: %s, with %s; run longer, or on a quieter machine, to confirm.",
			mode.Placement(from).Words(), best, strings.Join(byLabel[best].say, " and "))
	}
	return fmt.Sprintf("Cheapest from %s that keeps port isolation: %s, with %s.", mode.Placement(from).Words(), best, strings.Join(byLabel[best].say, " and "))
}

// proxyPrice is what publishing through docker-proxy costs against the same
// port published by NAT, and without NAT against the baseline.
func (j study) proxyPrice(from, on string) string {
	var say []string
	to, proxy := "", "docker-proxy"
	for i, s := range j.Series {
		if s.Cell.On != on {
			continue
		}
		if p, ok := j.File.Header.PathOf(s.Cell); ok && p.Facts["proxy"] != "" {
			proxy = p.Facts["proxy"]
		}
		if s.Cell.Mode != string(mode.PublishProxy) || s.Cell.From != from || s.Cell.Tune != "" || len(s.Visits) == 0 {
			continue
		}
		b, name, ok := j.rival(s.Cell)
		if !ok {
			continue
		}
		x := j.Against(i, b, analysis.Primary(s.Load), name)
		if x.N == 0 || (to != "" && to != name) {
			continue
		}
		to = name
		say = append(say, analysis.Words(s.Load, x))
	}
	if len(say) == 0 {
		return ""
	}
	return fmt.Sprintf("Publishing through %s, from %s: %s.", proxy, mode.Placement(from).Words(), strings.Join(say, " and "))
}

// rival is the cell that a docker-proxy cell is compared with: NAT at the same
// target, or else the baseline.
func (j study) rival(c sample.Cell) (i int, name string, ok bool) {
	for i, s := range j.Series {
		o := s.Cell
		if o.Mode == string(mode.PublishNAT) && o.To == c.To && o.Tune == c.Tune && analysis.SameGroup(o, c) && len(s.Visits) > 0 {
			return i, analysis.Label(o), true
		}
	}
	b, ok := j.BaselineFor(c)
	if !ok || c.To == string(mode.ToLoopback6) && j.hasSister(c) { // which tells it
		return 0, "", false
	}
	return b, j.Series[b].Cell.Mode, true
}

// hasSister reports whether the same path over IPv4 has a result.
func (j study) hasSister(c sample.Cell) bool {
	c.To = string(mode.ToLoopback)
	for _, s := range j.Series {
		if s.Cell == c && len(s.Visits) > 0 {
			return true
		}
	}
	return false
}
