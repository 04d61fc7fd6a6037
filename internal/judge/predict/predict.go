// Package predict computes the cost of each mode of a results file for an application, from the
// measured costs per operation.
package predict

import (
	"cmp"
	"errors"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// Schema names the version of a prediction.
const Schema = "bridgetoll.prediction/1"

// Workload is the network use of an application.
type Workload struct {
	Queries int     `json:"queries"`            // of a page, one after another
	Bytes   int64   `json:"bytes"`              // of a reply
	QPS     float64 `json:"queries_per_second"` // of the whole application; 0: no CPU
	Tokens  float64 `json:"tokens_per_second"`  // of all its streams together; 0: none
}

// Prediction has the cost of each mode for a workload; docs/results.md documents its JSON form.
// Units are seconds and shares of a core.
type Prediction struct {
	Schema      string             `json:"schema"`
	Started     time.Time          `json:"started,omitzero"` // of the run, as in its file's header
	Command     []string           `json:"command,omitzero"`
	Environment sample.Environment `json:"environment"`
	Workload    Workload           `json:"workload"`
	Baseline    string             `json:"baseline"`
	Answer      *analysis.Answer   `json:"answer"`
	Found       []analysis.Finding `json:"found"` // of which show/sentence makes Answer
	Rows        []Row              `json:"rows"`
	Noted       []analysis.Finding `json:"-"` // of which show/sentence makes Notes
	Notes       []string           `json:"notes"`
}

// Row is the cost of one mode.
type Row struct {
	Mode     string `json:"mode"`
	From     string `json:"from"`
	To       string `json:"to"`
	Tune     string `json:"tune,omitempty"`
	On       string `json:"on"`
	Pin      string `json:"pin,omitempty"`
	Label    string `json:"label"`
	Baseline bool   `json:"baseline,omitempty"`
	// Page is the time of a page, CPU the queries' share of a core, and StreamCPU the tokens'
	// share. Over holds the same relative to the baseline.
	Page      *Quantity                 `json:"page,omitempty"`
	CPU       *Quantity                 `json:"cpu,omitempty"`
	StreamCPU *Quantity                 `json:"stream_cpu,omitempty"`
	Over      map[string]analysis.Price `json:"over"`        // "page", "cpu", "stream_cpu"
	Costs     map[string]float64        `json:"costs"`       // inputs: medians of the metrics used
	Extra     float64                   `json:"extra_bytes"` // of a reply, in addition to rr's
}

// Quantity is a number with its interval, over rounds.
type Quantity struct {
	Unit   string  `json:"unit"`
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	N      int     `json:"n"`
	// Level is the baseline's median plus the paired difference, so that rows add up; 0 for the
	// baseline.
	Level float64 `json:"level,omitempty"`
}

// Shown returns the quantity whose median is the level that agrees with the difference from the
// baseline, if there is one, with an interval of the same width.
func (q Quantity) Shown() Quantity {
	if q.Level > 0 {
		by := q.Level - q.Median
		q.Median, q.Low, q.High = q.Median+by, q.Low+by, q.High+by
	}
	return q
}

// FewRounds reports whether the quantity's interval is of too few rounds, and so too narrow.
func (q Quantity) FewRounds() bool { return q.N < stats.MinJudged }

// FewRounds reports whether a quantity of the row is of too few rounds.
func (r Row) FewRounds() bool {
	return slices.ContainsFunc([]*Quantity{r.Page, r.CPU, r.StreamCPU}, func(q *Quantity) bool {
		return q != nil && q.FewRounds()
	})
}

// Keys of Row.Over.
const (
	Page      = "page"
	CPU       = "cpu"
	StreamCPU = "stream_cpu"
)

// errNothingToPredict means that a file lacks the round trips that predictions are made of.
var errNothingToPredict = errors.New("it has no result of rr")

// errSweep means that a file is a sweep, with too many figures to choose from.
var errSweep = errors.New("it is a sweep, which measured several values instead of one")

// Judge predicts the cost of each mode of the file for the workload. It returns errSweep or
// errNothingToPredict if the file does not allow predictions.
func Judge(f *sample.File, w Workload) (*Prediction, error) {
	if f.Header.Plan.Sweep != nil {
		return nil, errSweep
	}
	p := &predictor{Run: analysis.Open(f), w: w}
	out := &Prediction{Schema: Schema, Started: f.Header.Started, Command: f.Header.Command,
		Environment: f.Header.Environment, Workload: w, Baseline: f.Header.Plan.Baseline,
		Rows: []Row{}, Notes: []string{}}
	if busy := p.TooBusy(); busy != nil {
		p.note(*busy)
	}
	pin := p.pin()
	for i, s := range p.Series {
		c := s.Cell
		if c.Pin != pin || !p.predicts(i) {
			continue
		}
		c.Load = ""
		if !slices.ContainsFunc(out.Rows, func(r Row) bool { return r.cell() == c }) {
			out.Rows = append(out.Rows, p.row(c))
		}
	}
	if !slices.ContainsFunc(out.Rows, func(r Row) bool {
		return r.Page != nil || r.StreamCPU != nil
	}) {
		return nil, errNothingToPredict
	}
	order := map[string]int{}
	for i, r := range out.Rows {
		if _, ok := order[r.From]; !ok {
			order[r.From] = i
		}
	}
	slices.SortStableFunc(out.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(order[a.From], order[b.From]), cmp.Compare(a.rank(), b.rank()))
	})
	out.Noted = p.notes
	out.Found = Findings(out)
	return out, nil
}

func (r Row) cell() sample.Cell {
	return sample.Cell{Mode: mode.Name(r.Mode), From: mode.Placement(r.From), To: mode.Target(r.To),
		Tune: mode.Tunes(r.Tune), On: r.On, Pin: r.Pin}
}

// pin returns the first placement on CPUs that has results, or "" if none has. It notes if that is
// not the run's first, which is sample.PinFar in a run of several.
func (p *predictor) pin() string {
	for _, first := range p.Series {
		for i, s := range p.Series {
			if s.Cell.Pin != first.Cell.Pin || !p.predicts(i) {
				continue
			}
			if was := p.Series[0].Cell.Pin; s.Cell.Pin != was {
				p.note(analysis.Finding{Code: OtherPlacement, Pin: s.Cell.Pin, What: was})
			}
			return s.Cell.Pin
		}
	}
	return ""
}

// predicts reports whether series i has results to predict rows from.
func (p *predictor) predicts(i int) bool {
	c := p.Series[i].Cell
	return !c.Control && !p.Failed(i) && !c.Shape.Crowd() &&
		(c.Load == workload.RR || c.Load == workload.Stream && p.w.Tokens > 0)
}

// rank orders rows: the baseline first, the others by what they cost, which is nothing if it is
// unclear, and last those without a page.
func (r Row) rank() float64 {
	over, ok := r.Over[Page]
	switch {
	case r.Baseline:
		return math.Inf(-1)
	case !ok:
		return math.Inf(1)
	case over.Verdict == stats.Unclear:
		return 0
	}
	return over.Median
}

const bitsPerByte = 8

type predictor struct {
	*analysis.Run
	w     Workload
	notes []analysis.Finding
}

func (p *predictor) note(f analysis.Finding) {
	if !slices.ContainsFunc(p.notes, func(o analysis.Finding) bool { return reflect.DeepEqual(o, f) }) {
		p.notes = append(p.notes, f)
	}
}

// noteVarying notes if the load's result in the cell varies.
func (p *predictor) noteVarying(c sample.Cell, load string) {
	c.Load = load
	i := p.find(c)
	if i < 0 {
		return
	}
	if v := p.Variation(i); v != nil {
		p.note(analysis.Finding{Code: analysis.Varying, What: analysis.Label(c),
			Why:    workload.Of(p.File.Header.Plan.Loads.Of(load)).Noun,
			Prices: []analysis.Price{{Unit: v.Unit, Low: v.Low, High: v.High, N: v.N}}})
	}
}

func (p *predictor) values(c sample.Cell, load, metric string) map[int]float64 {
	c.Load = load
	if i := p.find(c); i >= 0 {
		return p.Series[i].Values[metric]
	}
	return nil
}

func (p *predictor) find(c sample.Cell) int {
	for i, s := range p.Series {
		if s.Cell == c && !p.Failed(i) {
			return i
		}
	}
	return -1
}

func (p *predictor) row(c sample.Cell) Row {
	r := Row{Mode: c.Name(), From: string(c.From), To: string(c.To), Tune: string(c.Tune), On: c.On,
		Pin: c.Pin, Label: analysis.Label(c), Over: map[string]analysis.Price{},
		Costs: map[string]float64{}, Extra: p.extra()}
	base, known := p.baselineOf(c)
	r.Baseline = known && base == c
	for _, q := range []struct {
		name, unit string
		to         **Quantity
		of         func(sample.Cell) map[int]float64
		load       string
		metric     string
	}{
		{Page, "s", &r.Page, p.page, workload.RR, workload.LatencyP50},
		{CPU, analysis.CoreUnit, &r.CPU, p.cpu, workload.RR, workload.CPUPerTrip},
		{StreamCPU, analysis.CoreUnit, &r.StreamCPU, p.streamCPU, workload.Stream,
			workload.CPUPerToken},
	} {
		xs := q.of(c)
		s := stats.Summarize(analysis.Ordered(xs))
		if s.N == 0 {
			continue
		}
		if q.name == CPU {
			s = p.withFactors(s, c)
		}
		*q.to = &Quantity{Unit: q.unit, Median: s.Median, Low: s.Low, High: s.High, N: s.N}
		if !known || base == c {
			continue
		}
		ref := q.of(base)
		d := analysis.Difference{Unit: q.unit, Level: stats.Median(analysis.Ordered(ref)),
			Rounds: stats.Summarize(stats.Differences(xs, ref))}
		if over, ok := p.over(q.name, c, base, d); ok {
			price := p.PriceOf(over, sample.Cell{
				From: c.From, Load: q.load, On: c.On, Pin: c.Pin}, q.metric)
			if r.Over[q.name] = price; price.N > 0 && !price.Varies {
				(*q.to).Level = max(0, d.Level+price.Median)
			}
		}
	}
	if r.Page != nil {
		p.noteVarying(c, workload.RR)
	}
	if r.Page != nil && r.Extra > 0 {
		p.noteVarying(c, workload.Bulk)
	}
	if r.StreamCPU != nil {
		p.noteVarying(c, workload.Stream)
	}
	for _, m := range []struct{ load, metric string }{{workload.RR, workload.LatencyP50},
		{workload.RR, workload.CPUPerTrip}, {workload.Bulk, workload.Throughput},
		{workload.Bulk, workload.CPUPerByte}, {workload.Stream, workload.CPUPerToken}} {
		if xs := p.values(c, m.load, m.metric); len(xs) > 0 {
			r.Costs[m.metric] = stats.Median(analysis.Ordered(xs))
		}
	}
	return r
}

// over returns d, the excess of c over the baseline, by slices if the file has them; ok is false if
// it is not known.
func (p *predictor) over(name string, c, base sample.Cell,
	d analysis.Difference) (out analysis.Difference, ok bool) {
	switch name {
	case Page:
		d.Slices = p.perTrip(c, base, workload.LatencyP50, workload.Throughput).Times(
			float64(p.w.Queries))
	case CPU:
		d.Slices = p.perTrip(c, base, workload.CPUPerTrip, workload.CPUPerByte).Times(p.w.QPS)
		if d.Slices.Pairs == 0 && (p.factor(c, workload.RR).Pairs > 0 ||
			p.factor(base, workload.RR).Pairs > 0) {
			return d, false
		}
	}
	return d, d.Slices.Pairs > 0 || d.Rounds.N > 0
}

// factor returns the factor that all of a cell's CPU times under a load have in common.
func (p *predictor) factor(c sample.Cell, load string) stats.Estimate {
	c.Load = load
	if i := p.find(c); i >= 0 {
		return p.Series[i].Factor(workload.Of(p.Series[i].Load).CPU())
	}
	return stats.Estimate{}
}

// withFactors widens the interval of the queries' CPU time in a cell by the errors of its factors,
// of which each concerns a share of it.
func (p *predictor) withFactors(s stats.Summary, c sample.Cell) stats.Summary {
	share := 0.0
	if xs := p.values(c, workload.Bulk, workload.CPUPerByte); len(xs) > 0 {
		share = min(1, p.w.QPS*p.extra()*stats.Median(analysis.Ordered(xs))/s.Median)
	}
	return s.By(p.factor(c, workload.RR).Times(1-share), stats.Confidence).By(
		p.factor(c, workload.Bulk).Times(share), stats.Confidence)
}

func (p *predictor) baselineOf(c sample.Cell) (sample.Cell, bool) {
	for i, s := range p.Series {
		if b, ok := p.BaselineOf(i); ok && b == i && s.Cell.From == c.From && s.Cell.On == c.On &&
			s.Cell.Pin == c.Pin && !s.Cell.Shape.Crowd() {
			s := s.Cell
			s.Load = ""
			return s, true
		}
	}
	return c, false
}

func (p *predictor) extra() float64 {
	return max(0, float64(p.w.Bytes)-float64(
		workload.MessagesOf(p.File.Header.Plan.Loads.Of(workload.RR)).Reply))
}

// page returns the time of a page by round. Each query takes a round trip, and the extra bytes of
// its reply take their share of the throughput.
func (p *predictor) page(c sample.Cell) map[int]float64 {
	return p.perQuery(c, float64(p.w.Queries), workload.LatencyP50, workload.Throughput)
}

// perTrip returns the excess of c over the baseline for one operation: a round trip by the metric
// trip of rr, and the extra bytes by the metric bytes of bulk. Pairs is 0 if the file lacks slices
// for it.
func (p *predictor) perTrip(c, base sample.Cell, trip, bytes string) stats.Estimate {
	e, level := p.slices(c, base, workload.RR, trip)
	out := e.More(level)
	extra := p.extra()
	switch {
	case extra == 0 || !p.hasBulk(bytes):
		return out
	case len(p.values(c, workload.Bulk, bytes)) == 0:
		return stats.Estimate{}
	}
	e, level = p.slices(c, base, workload.Bulk, bytes)
	if e.Pairs == 0 {
		return e
	}
	if bytes == workload.Throughput { // the time of a byte is the reciprocal of the throughput
		e, level = e.Times(-1), bitsPerByte/level
	}
	return out.Plus(e.More(level).Times(extra))
}

// slices returns the logarithm of cell c's metric over the baseline's, from slices, and the
// baseline's median.
func (p *predictor) slices(c, base sample.Cell, load, metric string) (e stats.Estimate,
	level float64) {
	c.Load, base.Load = load, load
	i, b := p.find(c), p.find(base)
	if i < 0 || b < 0 {
		return e, 0
	}
	return p.Estimate(i, b, metric), stats.Median(analysis.Ordered(p.Series[b].Values[metric]))
}

func (p *predictor) cpu(c sample.Cell) map[int]float64 {
	if p.w.QPS == 0 {
		return nil
	}
	return p.perQuery(c, p.w.QPS, workload.CPUPerTrip, workload.CPUPerByte)
}

// hasBulk reports whether any cell has a metric of bulk.
func (p *predictor) hasBulk(metric string) bool {
	return slices.ContainsFunc(p.Series, func(s *analysis.Series) bool {
		return s.Cell.Load == workload.Bulk && len(s.Values[metric]) > 0
	})
}

// perQuery returns, by round, the cost of a number of queries: each is a round trip by the metric
// trip of rr, and the extra bytes by the metric bytes of bulk. If no cell has that, the extra bytes
// cost nothing, which is noted. A cell that alone lacks it has no cost: it would seem cheaper than
// the others.
func (p *predictor) perQuery(c sample.Cell, times float64, trip, bytes string) map[int]float64 {
	out := map[int]float64{}
	extra, perByte := p.extra(), p.values(c, workload.Bulk, bytes)
	for round, x := range p.values(c, workload.RR, trip) {
		b, ok := perByte[round]
		switch {
		case extra == 0:
		case ok && bytes == workload.Throughput:
			x += extra * bitsPerByte / b
		case ok:
			x += extra * b
		case p.hasBulk(bytes):
			continue
		default:
			p.noteNoBulk()
		}
		out[round] = times * x
	}
	return out
}

// noteNoBulk notes that the file lacks what the extra bytes cost: in time and CPU time, or in CPU
// time only.
func (p *predictor) noteNoBulk() {
	code := NoBulk
	if p.hasBulk(workload.Throughput) {
		code = NoBulkCPU
	}
	reply := workload.MessagesOf(p.File.Header.Plan.Loads.Of(workload.RR)).Reply
	p.note(analysis.Finding{Code: code, Values: map[string]float64{
		AskedBytes: float64(p.w.Bytes), MeasuredBytes: float64(reply)}})
}

func (p *predictor) streamCPU(c sample.Cell) map[int]float64 {
	if p.w.Tokens == 0 {
		return nil
	}
	out := map[int]float64{}
	for round, x := range p.values(c, workload.Stream, workload.CPUPerToken) {
		out[round] = p.w.Tokens * x
	}
	return out
}
