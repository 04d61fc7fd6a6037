package analysis

import (
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// Repeated is how much a paced ratio differs between runs, as a logarithm, where no run was
// repeated. On three virtual machines with two CPUs, repetitions had standard deviations of 18 and
// 5 % (on own CPUs and on one, three runs, one path with 40, 47 and 70 % of host's throughput),
// about 3 % (three runs), and 3.4 and 5.6 % (four). Few degrees of freedom, because machines differ
// this much: within 17 % of the mean are 68 % of the first's values and all others, 94 % on
// average.
var Repeated = stats.Prior{Variance: 0.055 * 0.055, Freedom: 3}

// Paces reports whether TCP's congestion control of that name paces what it sends.
func Paces(control string) bool { return strings.HasPrefix(control, "bbr") }

// paced reports whether the cell's throughput is that of a paced connection.
func (j *Run) paced(i int) bool {
	s := j.Series[i]
	if s.Cell.Load != workload.Bulk && s.Cell.Load != workload.BulkReverse {
		return false
	}
	if t, ok := s.Cell.Tune.Get(mode.Congestion); ok {
		return Paces(t.Value)
	}
	p, _ := j.File.Header.PathOf(s.Cell)
	return Paces(p.Sysctls["net.ipv4.tcp_congestion_control"])
}

// withRepeats widens the estimate of a rate's ratio to what repetitions of the run would show, if
// either side is paced. Two cells of one path are paced alike.
func (j *Run) withRepeats(e stats.Estimate, i, b int, metric string) stats.Estimate {
	mine, its := j.Series[i], j.Series[b]
	path := mine.Cell
	path.Control, path.Placebo = its.Cell.Control, its.Cell.Placebo
	if e.Pairs == 0 || metric != Rate(mine.Load) || path == its.Cell || !j.paced(i) && !j.paced(b) {
		return e
	}
	known := Repeated
	for _, p := range j.File.Header.Plan.Repeats {
		if c := mine.Cell; string(c.From) == p.From && c.Load == p.Load && c.Point == p.Point &&
			c.On == p.On && c.Pin == p.Pin && p.Metric == metric {
			known = stats.Prior{Variance: p.Variance, Freedom: p.Freedom}
		}
	}
	return e.AtLeast(known)
}

// Repeats is the code of the warning that a ratio's interval is wide because of pacing.
const Repeats = "repeats"

// repeatsWarning says why the interval of a paced ratio is wide.
func (j *Run) repeatsWarning(i int) (Warning, bool) {
	b, ok := j.BaselineOf(i)
	rate := Rate(j.Series[i].Load)
	if !ok || b == i {
		return Warning{}, false
	}
	own, all := j.moderate(i, b, rate), j.Estimate(i, b, rate)
	if all == own {
		return Warning{}, false
	}
	return warn(Finding{Code: Repeats}), true
}
