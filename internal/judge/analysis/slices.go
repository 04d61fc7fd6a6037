package analysis

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

var windowed = map[string]string{workload.Throughput: workload.WindowThroughput,
	workload.Transactions: workload.WindowTransactions}

func (s *Series) addSlices(v *sample.Visit) {
	if v.Slices == nil || s.Cell.Shape.Crowd() {
		return
	}
	rate, unit := Rate(s.Load), 1.0
	if rate == workload.Throughput {
		unit = bitsPerByte
	}
	if x, ok := s.Values[rate][v.Round]; ok {
		s.set(windowed[rate], v.Round, x)
	}
	for _, m := range []string{rate, workload.LatencyP50} {
		delete(s.Values[m], v.Round)
	}
	if s.slices == nil {
		s.slices = map[int]*sample.Slices{}
	}
	if !s.repeated(v) {
		s.slices[v.Round] = v.Slices
	}
	s.set(rate, v.Round, unit*stats.Median(v.Slices.Rates)) // NaN without slices
	s.set(workload.LatencyP50, v.Round, stats.Median(v.Slices.Medians))
}

// repeated reports whether v repeats an earlier visit of its round. No other cell's slices are near
// those of a repetition.
func (s *Series) repeated(v *sample.Visit) bool {
	for k := len(s.all) - 1; k >= 0 && s.all[k].Round >= v.Round; k-- {
		if s.all[k].Round == v.Round && s.all[k] != v {
			return true
		}
	}
	return false
}

// quantity returns a function from slices to a metric's values, which are nil for the many metrics
// without slices.
func quantity(l sample.Load, metric string) func(*sample.Slices) []float64 {
	switch metric {
	case Rate(l):
		return func(s *sample.Slices) []float64 { return s.Rates }
	case workload.LatencyP50:
		return func(s *sample.Slices) []float64 { return s.Medians }
	case cpuMetric(l):
		return func(s *sample.Slices) []float64 { return s.CPU }
	}
	return func(*sample.Slices) []float64 { return nil }
}

// Estimate returns the logarithm of cell i's metric over cell b's, by slices. Pairs is 0 if there
// are too few, or if only cell b's control has a result.
func (j *Run) Estimate(i, b int, metric string) stats.Estimate {
	if len(j.Series[b].slices) == 0 {
		return stats.Estimate{}
	}
	cpu := cpuMetric(j.Series[i].Load)
	if metric == workload.PerBusyCore && cpu == workload.CPUPerByte {
		return j.Estimate(i, b, cpu).Times(-1)
	}
	e := j.moderate(i, b, metric)
	if metric == cpu {
		return j.wholeCPU(e, i, b)
	}
	return j.withRepeats(e, i, b, metric)
}

func (j *Run) epochs(i, b int, metric string) (rounds []int, out []stats.Epoch) {
	for _, round := range slices.Sorted(maps.Keys(j.Series[i].slices)) {
		if e := j.epoch(i, b, round, metric); e.N > 0 {
			rounds, out = append(rounds, round), append(out, e)
		}
	}
	return rounds, out
}

func (j *Run) epoch(i, b, round int, metric string) stats.Epoch {
	return PairUp(j.slots(i, b, round, metric))
}

// slots returns the slices of both cells in an epoch, or nil if their loads differ.
func (j *Run) slots(i, b, round int, metric string) (mine, partners []SliceValue) {
	if c, d := j.Series[i].Cell, j.Series[b].Cell; c.Load != d.Load || c.Point != d.Point {
		return nil, nil
	}
	of := quantity(j.Series[i].Load, metric)
	for _, k := range j.partners(i, b) {
		partners = append(partners, logarithms(j.Series[k].slices[round], of)...)
	}
	slices.SortFunc(partners, func(a, b SliceValue) int { return cmp.Compare(a.At, b.At) })
	return logarithms(j.Series[i].slices[round], of), partners
}

// partners returns the cells whose slices are paired with cell i's if it is compared with cell b.
// For a baseline they include its control, which has its own connections on the same path, unless
// cell i is that control.
func (j *Run) partners(i, b int) []int {
	g := groupOf(j.Series[b].Cell)
	ctl, ok := j.ctl[g]
	if base, has := j.base[g]; ok && has && base == b && ctl != i {
		return []int{b, ctl}
	}
	return []int{b}
}

// SliceValue is a slice's value, at its position in the epoch's timetable.
type SliceValue struct {
	At int
	X  float64
}

func logarithms(s *sample.Slices, of func(*sample.Slices) []float64) []SliceValue {
	if s == nil {
		return nil
	}
	var out []SliceValue
	for k, x := range of(s) {
		if x > 0 {
			out = append(out, SliceValue{s.Slots[k], math.Log(x)})
		}
	}
	return out
}

// PairUp summarizes an epoch by pairs of slices; both lists must be in the order of the timetable.
// It subtracts from each slice its nearest partners before and after it or, at the ends of an
// epoch, the only one. Pairs with the mean of the two partners would be less noisy. But a busy
// machine slows slices now and then, one of two more often than a single one, so the median pair of
// equal cells would not be 0.
//
// Pairs that share a slice are not independent: the mean of all pairs has a pair's variance times
// the sum of the squares of each slice's share in it.
func PairUp(mine, partners []SliceValue) stats.Epoch {
	values, shares := pairs(mine, partners)
	n, squares := float64(len(values)), 0.0
	for _, in := range shares {
		squares += in * in
	}
	if n == 0 {
		return stats.Epoch{}
	}
	return stats.NewEpoch(values, 2*n*n/squares)
}

// pairs returns the differences, and for each slice the number of pairs that it is in.
func pairs(mine, partners []SliceValue) (values, shares []float64) {
	own, theirs := make([]float64, len(mine)), make([]float64, len(partners))
	after := 0
	for k, s := range mine {
		for after < len(partners) && partners[after].At < s.At {
			after++
		}
		for p := max(0, after-1); p < min(after+1, len(partners)); p++ {
			values = append(values, s.X-partners[p].X)
			own[k]++
			theirs[p]++
		}
	}
	return values, append(own, theirs...)
}

type compared struct {
	stats.Summary // if varies, Low and High are the range of the pairs
	varies        bool
	// slices is the logarithm of the ratio by slices; Pairs is 0 if the ratio is by rounds.
	slices stats.Estimate
	// alone is slices without what repeated runs show, during a run.
	alone stats.Estimate
}

func (j *Run) compare(i, b int, metric string) compared {
	var x compared
	if x.slices = j.Estimate(i, b, metric); x.slices.Pairs > 0 {
		x.Summary = x.slices.Ratio()
	} else {
		x = compared{Summary: stats.Summarize(
			stats.Ratios(j.Series[i].byRound(metric), j.Series[b].byRound(metric)))}
	}
	if from := j.varies(i, b, metric); x.N > 0 && from != "" {
		x.varies = true
		x.Low, x.High = j.rangeOf(i, b, from)
	}
	return x
}

// floor is the noise floor by rounds, and bias the distance of the control's ratio by slices from
// 1. NaN means not known.
type noise struct{ floor, bias float64 }

var unknown = noise{math.NaN(), math.NaN()}

// verdict judges a comparison. If every difference counts (--same 0), the precision stands for the
// one that is called none.
func (j *Run) verdict(x compared, n noise, higherIsBetter bool) stats.Verdict {
	p := j.File.Header.Plan
	switch {
	case x.varies && x.slices.Pairs > 0:
		return stats.JudgeSame(x.Summary, n.bias, 0, higherIsBetter)
	case x.varies:
		return stats.JudgeSame(x.Summary, n.floor, 0, higherIsBetter)
	case x.slices.Pairs > 0:
		return x.slices.Judge(n.bias, cmp.Or(p.Same, p.Precision), higherIsBetter)
	case p.Same > 0:
		return stats.JudgeSame(x.Summary, n.floor, p.Same, higherIsBetter)
	}
	return stats.Judge(x.Summary, n.floor, p.Precision, higherIsBetter)
}

// Price returns the excess of cell i over cell b in a metric where less is better; N is 0 if they
// have no pairs. By slices it is their ratio applied to cell b's median, because differences would
// include the drift from epoch to epoch. By rounds it is judged as a share of the smaller one.
func (j *Run) Price(i, b int, metric string) Price {
	mine, its := j.Series[i], j.Series[b]
	out := Price{Unit: workload.MetricOf(metric, mine.Load).Unit}
	x, n, of := j.compare(i, b, metric), j.noise(groupOf(mine.Cell), metric), j.level(b, metric)
	var d stats.Summary
	if x.varies || x.slices.Pairs > 0 {
		d = stats.Summary{Median: of * (x.Median - 1), Low: of * (x.Low - 1),
			High: of * (x.High - 1), N: x.N}
	} else {
		d = stats.Summarize(stats.Differences(mine.byRound(metric), its.byRound(metric)))
		of = min(of, j.level(i, metric))
		x.Summary = stats.Share(d, of)
		if base, ok := j.BaselineOf(i); ok && i != base && b != base {
			n.floor = stats.FloorAt(n.floor, j.level(base, metric), of, d)
		}
	}
	out.take(d, x.slices.Epochs)
	out.Varies, out.Verdict = x.varies, j.verdict(x, n, false).Part()
	return out
}

// Excess returns what Price returns as an estimate; Pairs is 0 if it is by rounds.
func (j *Run) Excess(i, b int, metric string) stats.Estimate {
	return j.Estimate(i, b, metric).More(j.level(b, metric))
}

func (j *Run) level(i int, metric string) float64 {
	return stats.Median(Ordered(j.Series[i].Values[metric]))
}

// Difference is the excess of one side over the other, in a metric where less is better.
type Difference struct {
	Unit   string
	Level  float64 // the difference is judged as a share of it
	Rounds stats.Summary
	Slices stats.Estimate // replaces Rounds unless Pairs is 0
}

// PriceOf judges a difference by the noise in the group of cell c; N is 0 without values.
func (j *Run) PriceOf(d Difference, c sample.Cell, metric string) Price {
	out, x := Price{Unit: d.Unit}, compared{Summary: stats.Share(d.Rounds, d.Level)}
	if d.Slices.Pairs > 0 {
		d.Rounds, x = d.Slices.Summary(), compared{slices: d.Slices.Over(d.Level)}
	}
	if d.Rounds.N == 0 {
		return Price{}
	}
	out.take(d.Rounds, x.slices.Epochs)
	out.Verdict = j.verdict(x, j.noise(groupOf(c), metric), false).Part()
	return out
}

func (p *Price) take(s stats.Summary, epochs int) {
	p.Median, p.Low, p.High = s.Median, s.Low, s.High
	p.N, p.Epochs = s.N, epochs
}

const (
	// The share of a cell's slices that may be lost without a warning.
	lostShare = 0.2
	// wider is the factor by which the interval of a ratio by rounds is widened where wrong
	// verdicts are likely: with few rounds, and many rows or looks.
	wider = 2
)

func (x compared) stretched() (low, high float64) {
	return x.Median - wider*(x.Median-x.Low), x.Median + wider*(x.High-x.Median)
}

func (j *Run) sliceWarnings(i int) (out []Warning) {
	s := j.Series[i]
	lost, kept := 0, 0
	for _, x := range s.slices {
		lost += x.Lost
		kept += len(x.Slots)
	}
	v := j.Variation(i)
	if share := float64(lost) / float64(max(1, lost+kept)); share > lostShare {
		f := Finding{Code: LostSlices, Values: map[string]float64{LostSlices: share}}
		if v != nil {
			f.Values[workload.Resent] = v.Resent
		}
		out = append(out, warn(f))
	}
	if v != nil {
		return append([]Warning{v.warning(s.Load)}, out...)
	}
	if w, ok := j.states(i); ok {
		out = append(out, w)
	}
	if w, ok := j.repeatsWarning(i); ok {
		out = append(out, w)
	}
	if w, ok := j.burst(i); ok {
		out = append(out, w)
	}
	return out
}

func (j *Run) burst(i int) (Warning, bool) {
	s := j.Series[i]
	b, ok := j.BaselineOf(i)
	rate := Rate(s.Load)
	if !ok || b == i || len(s.slices) == 0 {
		return Warning{}, false
	}
	short, long := j.compare(i, b, rate), j.compare(i, b, windowed[rate])
	if short.varies || long.varies || short.slices.Pairs == 0 || long.N < stats.MinValues {
		return Warning{}, false
	}
	low, high := long.stretched()
	apart := math.Abs(math.Log(short.Median / long.Median))
	if short.Low <= high && short.High >= low || apart <= math.Log1p(j.File.Header.Plan.Same) {
		return Warning{}, false
	}
	to := Label(j.Series[b].Cell)
	return warn(Finding{Code: BurstDiffers, Load: s.Load.Kind,
		Ratios: []Ratio{ratioOf(short, to), ratioOf(long, to)},
		Values: map[string]float64{SliceLength: s.Load.Slice, WindowLength: s.Load.Window}}), true
}

func ratioOf(x compared, to string) Ratio {
	return Ratio{To: to, Median: x.Median, Low: x.Low, High: x.High, N: x.N,
		Epochs: x.slices.Epochs, Varies: x.varies}
}
