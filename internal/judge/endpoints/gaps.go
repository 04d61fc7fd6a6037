package endpoints

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

const (
	// fewShare and mostShare are a route's own shares of the slowness of its slow gaps. Up to
	// fewShare the server is to blame, and from mostShare on the route.
	fewShare  = 0.25
	mostShare = 0.5
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

// networkOrModel returns the findings on slow tokens, and the culprit for each route. What the slow
// gaps of all routes have in common comes from the server, and the steadiest route shows it.
// Another route's excess over that in the same rounds comes from the route.
func (j study) networkOrModel(r *analysis.Report) (said []string, culprits []Culprit) {
	var routes []int
	for i, s := range j.Series {
		if !s.Cell.Control && s.Cell.Load == workload.Chat && !j.Failed(i) &&
			!math.IsNaN(slowness(s)) {
			routes = append(routes, i)
		}
	}
	seen := proven(r)
	judged := func(i int) bool { return seen[analysis.Label(j.Series[i].Cell)] != nil }
	said = findings(r, seen)
	if !slices.ContainsFunc(routes, func(i int) bool { return !judged(i) }) {
		if len(routes) > 1 {
			said = append(said, added(r.Cells, workload.Chat)...)
		}
		return said, nil
	}
	steadiest := j.steadiest(routes)
	best := analysis.Label(j.Series[steadiest].Cell)
	text := fmt.Sprintf(
		"Is it the network or the model? Over %s the slowest tenth of the gaps between tokens is %s longer than the median gap", best, workload.Milliseconds(slowness(j.Series[steadiest])))
	if m, _ := j.Series[steadiest].Metric(workload.Glued); len(routes) == 1 && held(m) {
		c := heldAlone(j.Series[steadiest])
		return []string{c.Proof}, []Culprit{c}
	}
	if len(routes) == 1 {
		return append(said, text+
				". With one route, the path's part cannot be told from the server's: give another route to the same server."),
			[]Culprit{{Route: best, Blame: NoOther}}
	}
	other := "any other route"
	if slices.ContainsFunc(routes, func(i int) bool {
		return heldBeyond(j.Series[i], j.Series[steadiest])
	}) {
		other += " that does not hold tokens back"
	}
	out := append(said, text+", less than over "+other+": that much is the server's own.")
	for _, i := range routes {
		if i == steadiest || judged(i) {
			continue
		}
		if c, why, ok := j.blame(i, steadiest); ok {
			out, culprits = append(out, c.Route+": "+why), append(culprits, c)
		}
	}
	return append(out, added(r.Cells, workload.Chat)...), culprits
}

// steadiest returns the route whose slow gaps exceed its median gap the least. It passes over a
// route that holds more tokens back than another one, because tokens that arrive together have no
// gaps between them.
func (j study) steadiest(routes []int) int {
	best := routes[0]
	for _, i := range routes[1:] {
		a, b := j.Series[i], j.Series[best]
		if heldBeyond(b, a) || !heldBeyond(a, b) && slowness(a) < slowness(b) {
			best = i
		}
	}
	return best
}

// blame compares route i with the steadiest one. ok is false if they have no round in common.
func (j study) blame(i, steadiest int) (c Culprit, why string, ok bool) {
	s, best := j.Series[i], j.Series[steadiest]
	d := j.Added(i, steadiest, workload.GapSlow)
	if d == nil {
		return c, "", false
	}
	c.Route = analysis.Label(s.Cell)
	if d.N < stats.MinJudged {
		c.Blame = TooFew
		return c, "too few rounds to say.", true
	}
	to := analysis.Label(best.Cell)
	c.Blame, why = byGaps(s, *d, to)
	gaps := c.Blame
	held := heldBeyond(s, best)
	first := j.Added(i, steadiest, workload.FirstTokenP50)
	late := first != nil && first.Verdict == stats.Costs
	switch most := late && first.Low > mostShare*median(s, workload.FirstTokenP50); {
	case held || most && (c.Blame == Nobody || c.Blame == NotKnown):
		c.Blame = Network
	case most && c.Blame == Server:
		c.Blame = Both
	}
	var proof []string
	if held {
		proof = append(
			proof,
			fmt.Sprintf(
				"%.0f %% of its tokens came together with another one (over %s %.0f %%): something on the path holds them back",
				100*median(s, workload.Glued), to, 100*median(best, workload.Glued)))
	}
	if late {
		proof = append(proof, fmt.Sprintf("its first token comes %s later", first.Amount()))
	}
	if c.Blame != gaps {
		why = overruled(gaps, why, held, proof)
	}
	if d.Verdict == stats.Costs && !held {
		proof = append(proof, fmt.Sprintf("its slow gaps are %s longer", d.Amount()))
	}
	if n := total(s, workload.Stalls); n > 0 && c.Blame != Server {
		proof = append(proof, fmt.Sprintf("%s (over %s %.0f)", stalls(n), to,
			total(best, workload.Stalls)))
	}
	if len(proof) > 0 {
		c.Proof = fmt.Sprintf("Over %s, against %s: %s.", c.Route, to, strings.Join(proof, "; "))
	}
	if c.Blame == Server {
		c.Proof = fmt.Sprintf(
			"Over every route the slowest tenth of the gaps is at least %s longer than the median gap.", workload.Milliseconds(slowness(best)))
	}
	return c, string(c.Blame) + ": " + strings.TrimSpace(why+doubts(s, held)), true
}

// overruled returns the reason for a blame other than the gaps'. It includes the gaps' result only
// if that is certain. held means that tokens were held back, which is the first proof.
func overruled(by Blame, gaps string, held bool, proof []string) string {
	switch {
	case held && len(proof) == 1:
		return ""
	case held:
		return proof[1] + "."
	case by == NotKnown:
		return strings.Join(proof, "; ") + "."
	}
	return strings.Join(proof, "; ") + "; " + gaps
}

func stalls(n float64) string {
	if n == 1 {
		return "1 stall"
	}
	return fmt.Sprintf("%.0f stalls", n)
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
func byGaps(s *analysis.Series, d analysis.Price, steadiest string) (who Blame, why string) {
	slow := slowness(s)
	low, high := d.Low/slow, d.High/slow
	part := fmt.Sprintf(
		"its slow gaps are %s longer than its median gap, %s of that beyond %s's",
		workload.Milliseconds(slow), d.Plain(), steadiest)
	switch {
	case slow <= steadyShare*median(s, workload.GapP50):
		who, part = Nobody,
			fmt.Sprintf("its gaps are steady, the slowest tenth %s longer than the median one",
				workload.Milliseconds(slow))
	case high < fewShare:
		who = Server
	case d.Verdict == stats.Costs && low > mostShare:
		who = Network
	case d.Verdict == stats.Costs:
		who = Both
	default:
		who = NotKnown
		part += "; run longer, or with more --tokens"
	}
	return who, part + "."
}

func doubts(s *analysis.Series, held bool) (text string) {
	if median(s, workload.Glued) > workload.GluedShare {
		by := "on the path, or by the server"
		if held {
			by = "on the path"
		}
		text = fmt.Sprintf(
			" %.0f %% of its tokens arrived together with another one: they were held back %s.",
			100*median(s, workload.Glued), by)
	}
	if n := total(s, workload.Stalls); n > 0 {
		text += fmt.Sprintf(" %.0f of its gaps were stalls.", n)
	}
	return text
}

func added(cells []analysis.Cell, load string) (out []string) {
	type timed struct{ metric, name string }
	what := []timed{{workload.FirstTokenP50, "the first token"},
		{workload.GapP50, "the median gap"}, {workload.ResponseTime, "a response"},
		{workload.ConnectTime, "connecting"}}
	if load == workload.Batch {
		what = []timed{{workload.ResponseTime, "a response that is not streamed"},
			{workload.ConnectTime, "connecting"}}
	}
	for _, c := range cells {
		var adds []string
		to := ""
		for _, x := range what {
			m := c.Metrics[x.metric]
			if c.Load != load || m.Price == nil || m.Ratio == nil {
				continue
			}
			to = m.Ratio.To
			adds = append(adds, fmt.Sprintf("%s to %s (%s)", m.Price.Plain(), x.name,
				m.Price.Verdict))
		}
		if adds != nil {
			out = append(out, fmt.Sprintf("Over %s, %s adds %s.", to, c.Label(),
				strings.Join(adds, ", ")))
		}
	}
	return out
}
