package analysis

import (
	"maps"
	"math"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// Variation has the range of a cell's values if these lie so far apart that no mean describes them,
// although the baseline was steady.
type Variation struct {
	Metric string  `json:"metric"`
	Unit   string  `json:"unit"`
	Low    float64 `json:"low"` // nine tenths of the values lie between Low and High
	High   float64 `json:"high"`
	N      int     `json:"n"` // slices, or windows if Sliced is false
	Sliced bool    `json:"sliced"`
	// Retransmits counts both ends' segments in the cell's windows, Resent is the share of the
	// visits' bytes that was sent again, and RTO (s) the median over the visits, 0 if unknown.
	Retransmits float64 `json:"retransmits_per_s"`
	Resent      float64 `json:"resent_share"`
	RTO         float64 `json:"rto_s,omitempty"`
}

// mayVary reports whether the variation of cell i's metric is judged. In few epochs the machine may
// have disturbed one cell more than the control.
func (j *Run) mayVary(i int, metric string) bool {
	s, p := j.Series[i], j.File.Header.Plan
	few := s.slices != nil && len(s.slices) < stats.MinJudged
	if p.Foreign() || p.Sweep != nil || s.Cell.Shape.Crowd() || few {
		return false
	}
	rate := Rate(s.Load)
	return slices.Contains([]string{PrimaryOf(s.Load, s.Cell.Shape), rate, windowed[rate],
		workload.LatencyP50, cpuMetric(s.Load)}, metric)
}

// varies returns the metric whose ratios of cell i to cell b lie too far apart, while the control's
// ratios to the baseline do not, or "" if there is none. It is the given metric or its values by
// windows: short slices give queues time to drain, which hides variation.
func (j *Run) varies(i, b int, metric string) string {
	g := groupOf(j.Series[i].Cell)
	ctl, ok := j.ctl[g]
	base, has := j.base[g]
	if !ok || !has || i == ctl || !j.mayVary(i, metric) {
		return ""
	}
	for _, m := range []string{metric, windowed[metric]} {
		if m != "" && stats.Varies(j.logRatios(i, b, m), j.logRatios(ctl, base, m)) {
			return m
		}
	}
	return ""
}

// logRatios returns the logarithms of the ratios of neighbouring slices, or of rounds.
func (j *Run) logRatios(i, b int, metric string) (out []float64) {
	for _, round := range slices.Sorted(maps.Keys(j.Series[i].slices)) {
		values, _ := pairs(j.slots(i, b, round, metric))
		out = append(out, values...)
	}
	if len(out) > 0 {
		return out
	}
	for _, x := range stats.Ratios(j.Series[i].byRound(metric), j.Series[b].byRound(metric)) {
		out = append(out, math.Log(max(x, leastRatio)))
	}
	return out
}

// leastRatio replaces smaller ratios, for example from a window in which nothing arrived.
const leastRatio = 1e-6

// rangeOf returns the range of the ratios of cell i to cell b.
func (j *Run) rangeOf(i, b int, metric string) (low, high float64) {
	low, high = stats.Range(j.logRatios(i, b, metric))
	if low <= math.Log(leastRatio) {
		return 0, math.Exp(high)
	}
	return math.Exp(low), math.Exp(high)
}

// Variation returns the variation of the cell's primary metric, or nil if it is steady or not known
// to vary.
func (j *Run) Variation(i int) *Variation {
	s := j.Series[i]
	metric := PrimaryOf(s.Load, s.Cell.Shape)
	b, ok := j.BaselineOf(i)
	if !ok || b == i {
		return nil
	}
	from := j.varies(i, b, metric)
	if from == "" {
		return nil
	}
	values, sliced := Ordered(s.Values[from]), false
	if xs := s.allSlices(from); len(xs) > 0 {
		values, sliced = xs, true
	}
	out := Variation{Metric: metric, Unit: workload.MetricOf(metric, s.Load).Unit, N: len(values),
		Sliced: sliced}
	out.Low, out.High = stats.Range(values)
	var seconds, sent float64
	var rto []float64
	for _, v := range s.Visits {
		seconds += max(v.Client.Window, v.Server.Window)
		out.Retransmits += float64(v.Client.TCP.Retransmits + v.Server.TCP.Retransmits)
		out.Resent += float64(v.Client.TCP.Resent + v.Server.TCP.Resent)
		sent += float64(v.Client.TotalSent + v.Server.TotalSent)
		if x := max(v.Client.TCP.RTO, v.Server.TCP.RTO); x > 0 {
			rto = append(rto, x)
		}
	}
	if seconds > 0 {
		out.Retransmits /= seconds
	}
	out.Resent /= max(1, sent)
	if len(rto) > 0 {
		out.RTO = stats.Median(rto)
	}
	return &out
}

func (s *Series) allSlices(metric string) (out []float64) {
	unit := 1.0
	if metric == workload.Throughput {
		unit = bitsPerByte
	}
	of := quantity(s.Load, metric)
	each(s.slices, func(x *sample.Slices) {
		for _, v := range of(x) {
			out = append(out, unit*v)
		}
	})
	return out
}

func each[T any](byRound map[int]T, f func(T)) {
	for _, x := range Ordered(byRound) {
		f(x)
	}
}

func (v Variation) warning(l sample.Load) Warning {
	f := Finding{Code: Varying, What: workload.Of(l).Noun,
		Prices: []Price{{Unit: v.Unit, Low: v.Low, High: v.High, N: v.N}},
		Values: map[string]float64{WindowLength: l.Window}}
	if v.Sliced {
		f.Values = map[string]float64{SliceLength: l.Slice}
	}
	if !workload.Of(l).UDP {
		f.Values[workload.Retransmits], f.Values[workload.Resent] = v.Retransmits, v.Resent
		f.Values[RTO] = v.RTO
	}
	return warn(f)
}

// Span returns a range with two digits: "0.02–2.2", "-3.0 to 41".
func Span(low, high float64) string {
	if low < 0 {
		return units.TwoDigits(low) + " to " + units.TwoDigits(high)
	}
	return units.TwoDigits(low) + "–" + units.TwoDigits(high)
}
