package endpoints

import (
	"fmt"
	"math"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

const (
	// fewShare and mostShare are a route's part of how slow its slow gaps are that
	// makes the server, or the route, the answer.
	fewShare  = 0.25
	mostShare = 0.5
	// steadyShare is the share of the median gap by which the slow ones may be
	// longer before there is anything to blame.
	steadyShare = 0.5
)

// slowness is by how much the slow gaps of a route are longer than its median one,
// in seconds; NaN if it has none.
func slowness(s *analysis.Series) float64 {
	slow, ok := s.Metric(workload.GapSlow)
	if !ok {
		return math.NaN()
	}
	usual, _ := s.Metric(workload.GapP50)
	return max(0, slow.Median-usual.Median)
}

// networkOrModel says whose the slow gaps are. What all routes have in common is the
// server's: the steadiest of them shows it, which need not be the baseline. What
// another route has beyond that one in the same rounds is the route's.
func (j study) networkOrModel(r *analysis.Report) (said []string, culprits []Culprit) {
	routes, steadiest, common := []int{}, 0, math.Inf(1)
	for i, s := range j.Series {
		if s.Cell.Control || s.Cell.Load != workload.Chat || j.Failed(i) {
			continue
		}
		if x := slowness(s); !math.IsNaN(x) {
			routes = append(routes, i)
			if x < common {
				steadiest, common = i, x
			}
		}
	}
	if len(routes) == 0 {
		return nil, nil
	}
	best := analysis.Label(j.Series[steadiest].Cell)
	text := fmt.Sprintf("Is it the network or the model? Over %s the slowest tenth of the gaps between tokens is %s longer than the median gap", best, workload.Milliseconds(common))
	if len(routes) == 1 {
		return []string{text + ". With one route, the path's part cannot be told from the server's: give another route to the same server."},
			[]Culprit{{best, NoOther}}
	}
	out := []string{text + ", less than over any other route: that much is the server's own."}
	for _, i := range routes {
		if i == steadiest {
			continue
		}
		d := j.Added(i, steadiest, workload.GapSlow)
		if d == nil {
			continue
		}
		label := analysis.Label(j.Series[i].Cell)
		who, why := blame(j.Series[i], *d, best)
		out, culprits = append(out, label+": "+why), append(culprits, Culprit{label, who})
	}
	return append(out, added(r.Cells, workload.Chat)...), culprits
}

// blame says whose a route's slow gaps are, d being by how much they are slower than
// the steadiest route's.
func blame(s *analysis.Series, d analysis.Price, steadiest string) (who Blame, why string) {
	slow := slowness(s)
	usual, _ := s.Metric(workload.GapP50)
	low, high := d.Low/slow, d.High/slow
	part := fmt.Sprintf("of the %s by which its slow gaps are longer than its median one, %s are beyond %s's", workload.Milliseconds(slow), d.Plain(), steadiest)
	switch {
	case d.N < stats.MinJudged:
		return TooFew, "too few rounds to say."
	case slow <= steadyShare*usual.Median:
		who, part = Nobody, fmt.Sprintf("its gaps are steady, the slowest tenth %s longer than the median one", workload.Milliseconds(slow))
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
	why = string(who) + ": " + part + "."
	if m, ok := s.Metric(workload.Glued); ok && m.Median > workload.GluedShare {
		why += fmt.Sprintf(" %.0f %% of its tokens arrived together with another one: they were held back on the path, or by the server.", 100*m.Median)
	}
	if m, _ := s.Metric(workload.Stalls); m.Merged != nil && *m.Merged > 0 {
		why += fmt.Sprintf(" %.0f of its gaps were stalls.", *m.Merged)
	}
	return who, why
}

// added says what each route adds over the baseline to what a load times.
func added(cells []analysis.Cell, load string) (out []string) {
	type timed struct{ metric, name string }
	what := []timed{{workload.FirstTokenP50, "the first token"}, {workload.GapP50, "the median gap"}, {workload.ResponseTime, "a response"}}
	if load == workload.Batch {
		what = []timed{{workload.ResponseTime, "a response that is not streamed"}}
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
			adds = append(adds, fmt.Sprintf("%s to %s (%s)", m.Price.Plain(), x.name, m.Price.Verdict))
		}
		if adds != nil {
			out = append(out, fmt.Sprintf("Over %s, %s adds %s.", to, c.Label(), strings.Join(adds, ", ")))
		}
	}
	return out
}
