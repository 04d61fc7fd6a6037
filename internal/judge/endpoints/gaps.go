package endpoints

import (
	"math"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

const (
	// fewShare and mostShare are a route's own shares of the slowness of its slow gaps. Up to
	// fewShare the server is to blame, and from mostShare on the route.
	fewShare  = 0.25
	mostShare = 0.5
	// slowerShare is the share of a time from which on a route that takes longer than another one may
	// be steady because it delays tokens.
	slowerShare = LittleShare
	// steadyShare is the largest excess of the slow gaps, as a share of the median gap, for which
	// nothing is to blame.
	steadyShare = 0.5
)

// slowness returns the excess of a route's slow gaps over its median gap, in seconds; NaN if it has
// none.
func slowness(s *analysis.Series) float64 {
	slow, ok := s.Metric(workload.GapSlow)
	if !ok {
		return math.NaN()
	}
	usual, _ := s.Metric(workload.GapP50)
	return max(0, slow.Median-usual.Median)
}

// networkOrModel returns the findings on slow tokens, the culprit for each route, and whether there
// are several routes. What the slow gaps of all routes have in common comes from the server, or from
// what the routes share, and the steadiest route shows it. Another route's excess over that in the
// same rounds comes from the route.
func (j study) networkOrModel(r *analysis.Report) (said []analysis.Finding, culprits []Culprit,
	several bool) {
	var routes []int
	for i, s := range j.Series {
		if !s.Cell.Control && s.Cell.Load == workload.Chat && !j.Failed(i) &&
			!math.IsNaN(slowness(s)) {
			routes = append(routes, i)
		}
	}
	several = len(routes) > 1
	seen := proven(r)
	judged := func(i int) bool { return seen[analysis.Label(j.Series[i].Cell)] != nil }
	said = byPackets(r, seen)
	if !slices.ContainsFunc(routes, func(i int) bool { return !judged(i) }) {
		return said, nil, several
	}
	steadiest := j.steadiest(routes)
	best := j.Series[steadiest]
	f := analysis.Finding{Code: Steadiest, Cells: []int{r.At(best.Cell)},
		Values: map[string]float64{SlowGaps: slowness(best)}}
	if m, _ := best.Metric(workload.Glued); !several && held(m) {
		return nil, []Culprit{heldAlone(r, best)}, several
	}
	if !several {
		f.Code = SteadiestAlone
		return append(said, f), []Culprit{{Route: analysis.Label(best.Cell), Blame: NoOther}}, several
	}
	if said == nil && !slices.ContainsFunc(routes, func(i int) bool {
		return !glued(j.Series[i]) || heldBeyond(j.Series[i], best) || j.slower(i, steadiest)
	}) {
		for _, i := range routes {
			culprits = append(culprits, Culprit{Route: analysis.Label(j.Series[i].Cell), Blame: Together})
		}
		return nil, culprits, several
	}
	others := 0 // with fewer slow gaps, or none
	for _, i := range routes {
		if heldBeyond(j.Series[i], best) || slowness(j.Series[i]) < slowness(best) {
			others++
			f.Code = SteadiestUnheld
		}
	}
	for _, i := range routes {
		if i == steadiest || judged(i) {
			continue
		}
		if c, ok := j.blame(r, i, steadiest); ok {
			if c.Why != nil {
				c.Why.N = others
			}
			culprits = append(culprits, c)
		}
	}
	return append(said, f), culprits, several
}

// steadiest returns the route whose slow gaps exceed its median gap the least. It passes over a
// route that holds more tokens back than another one, because tokens that arrive together have no
// gaps between them, and over one that is slower: it may be steady because it delays tokens.
func (j study) steadiest(routes []int) int {
	best := routes[0]
	for _, i := range routes[1:] {
		a, b := j.Series[i], j.Series[best]
		better := slowness(a) < slowness(b)
		switch slow, bestSlow := j.slower(i, best), j.slower(best, i); {
		case heldBeyond(a, b) || heldBeyond(b, a):
			better = heldBeyond(b, a)
		case slow != bestSlow:
			better = bestSlow
		}
		if better {
			best = i
		}
	}
	return best
}

// ranks are the times of a response, beside its slow gaps, that a route may make longer.
var ranks = []string{workload.FirstTokenP50, workload.GapP50, workload.ResponseTime}

// slower reports whether route i certainly takes longer than route b.
func (j study) slower(i, b int) bool {
	return slices.ContainsFunc(ranks, func(metric string) bool {
		p := j.Added(i, b, metric)
		return p != nil && p.Verdict == stats.Costs && p.Low > slowerShare*median(j.Series[i], metric)
	})
}

// glued reports whether most tokens of a route certainly arrived together.
func glued(s *analysis.Series) bool {
	m, _ := s.Metric(workload.Glued)
	return m.Low > mostShare
}

// blame compares route i with the steadiest one. ok is false if they have no round in common.
func (j study) blame(r *analysis.Report, i, steadiest int) (c Culprit, ok bool) {
	s, best := j.Series[i], j.Series[steadiest]
	d := j.Added(i, steadiest, workload.GapSlow)
	if d == nil {
		return c, false
	}
	c.Route = analysis.Label(s.Cell)
	f := analysis.Finding{Code: RouteBlamed, Cells: []int{r.At(s.Cell), r.At(best.Cell)}}
	c.Why = &f
	if d.N < stats.MinJudged {
		c.Blame, f.Code = TooFew, TooFewToBlame
		return c, true
	}
	c.Blame = byGaps(s, *d)
	f.Why, f.Prices = string(c.Blame), []analysis.Price{*d}
	held := heldBeyond(s, best)
	if held {
		f.Code = RouteHolds
	}
	much := false
	for _, metric := range ranks {
		p := j.Added(i, steadiest, metric)
		if p == nil || p.Verdict != stats.Costs {
			continue
		}
		long := p.Low > fewShare*median(s, metric)
		if much = much || long; long || metric == workload.FirstTokenP50 {
			f.Names, f.Prices = append(f.Names, metric), append(f.Prices, *p)
		}
	}
	switch {
	case held || much && (c.Blame == Nobody || c.Blame == NotKnown):
		c.Blame = Network
	case much && c.Blame == Server:
		c.Blame = Both
	}
	f.What = string(c.Blame)
	f.Values = map[string]float64{SlowGaps: slowness(s), Other + SlowGaps: slowness(best),
		workload.Glued: median(s, workload.Glued), Other + workload.Glued: median(best, workload.Glued),
		workload.Stalls: total(s, workload.Stalls), Other + workload.Stalls: total(best, workload.Stalls)}
	return c, true
}

func median(s *analysis.Series, metric string) float64 {
	m, _ := s.Metric(metric)
	return m.Median
}

func total(s *analysis.Series, metric string) float64 {
	m, _ := s.Metric(metric)
	return merged(m)
}

func merged(m analysis.Metric) float64 {
	if m.Merged == nil {
		return 0
	}
	return *m.Merged
}

// heldBeyond reports whether a route certainly has more tokens that arrived together than another
// one, and enough to make its gaps meaningless.
func heldBeyond(s, other *analysis.Series) bool {
	m, ok := s.Metric(workload.Glued)
	of, _ := other.Metric(workload.Glued)
	return ok && held(m) && m.Low > of.High
}

// byGaps returns the culprit by a route's gaps alone. d is the excess of its slow gaps over the
// steadiest route's.
func byGaps(s *analysis.Series, d analysis.Price) Blame {
	slow := slowness(s)
	low, high := d.Low/slow, d.High/slow
	switch {
	case slow <= steadyShare*median(s, workload.GapP50):
		return Nobody
	case high < fewShare:
		return Server
	case d.Verdict == stats.Costs && low > mostShare:
		return Network
	case d.Verdict == stats.Costs:
		return Both
	}
	return NotKnown
}
