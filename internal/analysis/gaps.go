package analysis

import (
	"fmt"
	"math"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/stats"
)

const (
	// fewShare and mostShare are a way's part of how slow its slow gaps are that
	// makes the server, or the way, the answer.
	fewShare  = 0.25
	mostShare = 0.5
	// steadyShare is the share of the median gap by which the slow ones may be
	// longer before there is anything to blame.
	steadyShare = 0.5
)

// slowness is by how much the slow gaps of a way are longer than its median one,
// in seconds; NaN if it has none.
func (s *series) slowness() float64 {
	slow, ok := s.metric(GapSlow)
	if !ok {
		return math.NaN()
	}
	usual, _ := s.metric(GapP50)
	return max(0, slow.Median-usual.Median)
}

// networkOrModel says whose the slow gaps are. What all ways have in common is the
// server's: the steadiest of them shows it, which need not be the baseline. What
// another way has beyond that one in the same rounds is the way's.
func (j *judged) networkOrModel(r *Report) []string {
	ways, steadiest, common := []int{}, 0, math.Inf(1)
	for i, s := range j.series {
		if s.cell.Control || s.cell.Load != "chat" || j.failed(i) {
			continue
		}
		if x := s.slowness(); !math.IsNaN(x) {
			ways = append(ways, i)
			if x < common {
				steadiest, common = i, x
			}
		}
	}
	if len(ways) == 0 {
		return nil
	}
	best := label(j.series[steadiest].cell)
	text := fmt.Sprintf("Is it the network or the model? Over %s the slowest tenth of the gaps between tokens is %s longer than the median gap", best, milliseconds(common))
	if len(ways) == 1 {
		return []string{text + ". With one way, the path's part of it cannot be told from the server's: give another way to the same server."}
	}
	out := []string{text + ", less than over any other way: that much is the server's own."}
	for _, i := range ways {
		if i == steadiest {
			continue
		}
		d := j.difference(i, steadiest, GapSlow)
		if d == nil {
			continue
		}
		out = append(out, fmt.Sprintf("%s: %s", label(j.series[i].cell), j.series[i].blame(*d, best)))
	}
	return append(out, added(r.Cells)...)
}

// blame says whose a way's slow gaps are, d being by how much they are slower than
// the steadiest way's.
func (s *series) blame(d Price, steadiest string) string {
	slow := s.slowness()
	usual, _ := s.metric(GapP50)
	low, high := d.Low/slow, d.High/slow
	part := fmt.Sprintf("of the %s by which its slow gaps are longer than its median one, %s are beyond %s's", milliseconds(slow), d.plain(), steadiest)
	var answer string
	switch {
	case d.N < stats.MinJudged:
		return "too few rounds to say."
	case slow <= steadyShare*usual.Median:
		answer = fmt.Sprintf("neither: its gaps are steady, the slowest tenth %s longer than the median one.", milliseconds(slow))
	case high < fewShare:
		answer = "the model: " + part + "."
	case d.Verdict == stats.Costs && low > mostShare:
		answer = "the network: " + part + "."
	case d.Verdict == stats.Costs:
		answer = "both: " + part + "."
	default:
		answer = "unclear: " + part + "; run longer, or with more --tokens."
	}
	if m, ok := s.metric(Glued); ok && m.Median > gluedShare {
		answer += fmt.Sprintf(" %.0f %% of its tokens came glued to another one: they were held back on the way, or by the server.", 100*m.Median)
	}
	if m, _ := s.metric(Stalls); m.Merged != nil && *m.Merged > 0 {
		answer += fmt.Sprintf(" %.0f of its gaps were stalls.", *m.Merged)
	}
	return answer
}

// added says what each way adds over the baseline besides.
func added(cells []Cell) (out []string) {
	for _, c := range cells {
		var adds []string
		to := ""
		for _, x := range []struct{ metric, name string }{{FirstTokenP50, "the first token"}, {GapP50, "the median gap"}, {ResponseTime, "a response"}} {
			m := c.Metrics[x.metric]
			if m.Price == nil || m.Ratio == nil {
				continue
			}
			to = m.Ratio.To
			adds = append(adds, fmt.Sprintf("%s to %s (%s)", m.Price.plain(), x.name, m.Price.Verdict))
		}
		if adds != nil {
			out = append(out, fmt.Sprintf("Over %s, %s adds %s.", to, c.Label(), strings.Join(adds, ", ")))
		}
	}
	return out
}

// plain is the median with its interval in ms, in a sentence and whatever the
// verdict.
func (p Price) plain() string {
	const ms = 1e3
	s := stats.Summary{Median: ms * p.Median, Low: ms * p.Low, High: ms * p.High, N: p.N}
	n := decimals(s.HalfWidth())
	if s.N < 2 {
		return fmt.Sprintf("%+.*f ms", n, s.Median)
	}
	return fmt.Sprintf("%+.*f ms (%+.*f to %+.*f)", n, s.Median, n, s.Low, n, s.High)
}
