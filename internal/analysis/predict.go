package analysis

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/sample"
	"github.com/bridgetoll/bridgetoll/internal/stats"
)

// PredictionSchema names the version of a prediction.
const PredictionSchema = "bridgetoll.prediction/1"

// Workload is what an application asks of its network.
type Workload struct {
	Queries int     `json:"queries"`            // of a page, one after another
	Bytes   int64   `json:"bytes"`              // of a reply
	QPS     float64 `json:"queries_per_second"` // of the whole application; 0: no CPU is predicted
	Tokens  float64 `json:"tokens_per_second"`  // of all its streams together; 0: none
}

// Prediction is what each mode would cost a workload, from measured costs per
// operation; its JSON form is documented in docs/results.md. Units are seconds
// and shares of a core.
type Prediction struct {
	Schema      string             `json:"schema"`
	Environment sample.Environment `json:"environment"`
	Workload    Workload           `json:"workload"`
	Baseline    string             `json:"baseline"`
	Rows        []Predicted        `json:"rows"`
	Notes       []string           `json:"notes"`
}

// Predicted is one mode's cost.
type Predicted struct {
	Mode     string `json:"mode"`
	From     string `json:"from"`
	To       string `json:"to"`
	Tune     string `json:"tune,omitempty"`
	On       string `json:"on"`
	Label    string `json:"label"`
	Baseline bool   `json:"baseline,omitempty"`
	// Page is the time of a page, CPU the share of a core that the queries take, and
	// StreamCPU that of the tokens; Over are the same against the baseline's.
	Page      *Quantity          `json:"page,omitempty"`
	CPU       *Quantity          `json:"cpu,omitempty"`
	StreamCPU *Quantity          `json:"stream_cpu,omitempty"`
	Over      map[string]Price   `json:"over"`        // "page", "cpu", "stream_cpu"
	Costs     map[string]float64 `json:"costs"`       // what went in: medians of the metrics used
	Extra     float64            `json:"extra_bytes"` // of a reply, beyond that of the measured round trips
}

// Quantity is a number with its interval, over rounds.
type Quantity struct {
	Unit   string  `json:"unit"`
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	N      int     `json:"n"`
}

// Names of what is predicted.
const (
	PredictedPage      = "page"
	PredictedCPU       = "cpu"
	PredictedStreamCPU = "stream_cpu"
)

// coreUnit is the unit of a share of one core.
const coreUnit = "core"

// ErrNothingToPredict says that a file lacks what predictions are made of.
var ErrNothingToPredict = errors.New("it has no result of rr")

// Predict says what each mode of the file would cost the workload.
func Predict(f *sample.File, w Workload) (*Prediction, error) {
	p := &predictor{judged: collect(f), w: w}
	out := &Prediction{Schema: PredictionSchema, Environment: f.Header.Environment, Workload: w, Baseline: f.Header.Plan.Baseline,
		Rows: []Predicted{}, Notes: []string{}}
	for i, s := range p.series {
		c := s.cell
		if c.Control || p.failed(i) || c.Load != "rr" && !(c.Load == "stream" && w.Tokens > 0) || c.Shape.Crowd() {
			continue
		}
		c.Load = ""
		if !slices.ContainsFunc(out.Rows, func(r Predicted) bool { return r.cell() == c }) {
			out.Rows = append(out.Rows, p.row(c))
		}
	}
	if !slices.ContainsFunc(out.Rows, func(r Predicted) bool { return r.Page != nil || r.StreamCPU != nil }) {
		return nil, ErrNothingToPredict
	}
	order := map[string]int{}
	for i, r := range out.Rows {
		if _, ok := order[r.From]; !ok {
			order[r.From] = i
		}
	}
	slices.SortStableFunc(out.Rows, func(a, b Predicted) int {
		return cmp.Or(cmp.Compare(order[a.From], order[b.From]), cmp.Compare(a.rank(), b.rank()))
	})
	out.Notes = append(out.Notes, p.notes...)
	return out, nil
}

// cell is the row's cell without a load.
func (r Predicted) cell() sample.Cell {
	return sample.Cell{Mode: r.Mode, From: r.From, To: r.To, Tune: r.Tune, On: r.On}
}

// rank sorts the baseline first, and then by the page's time.
func (r Predicted) rank() float64 {
	switch {
	case r.Baseline:
		return math.Inf(-1)
	case r.Page == nil:
		return math.Inf(1)
	}
	return r.Over[PredictedPage].Median
}

type predictor struct {
	*judged
	w     Workload
	notes []string
}

func (p *predictor) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(p.notes, text) {
		p.notes = append(p.notes, text)
	}
}

// values are a cell's values of a metric under a load, by round; nil if it has
// none.
func (p *predictor) values(c sample.Cell, load, metric string) map[int]float64 {
	c.Load = load
	for i, s := range p.series {
		if s.cell == c && !p.failed(i) {
			return s.values[metric]
		}
	}
	return nil
}

// row predicts one mode, and holds it against the baseline of its placement.
func (p *predictor) row(c sample.Cell) Predicted {
	r := Predicted{Mode: c.Mode, From: c.From, To: c.To, Tune: c.Tune, On: c.On, Label: label(c), Over: map[string]Price{}, Costs: map[string]float64{}, Extra: p.extra()}
	base, known := p.baselineOf(c)
	r.Baseline = known && base == c
	for _, q := range []struct {
		name, unit string
		to         **Quantity
		of         func(sample.Cell) map[int]float64
		load       string
		metric     string // whose noise floor it has
	}{
		{PredictedPage, "s", &r.Page, p.page, "rr", LatencyP50},
		{PredictedCPU, coreUnit, &r.CPU, p.cpu, "rr", CPUPerTrip},
		{PredictedStreamCPU, coreUnit, &r.StreamCPU, p.streamCPU, "stream", CPUPerTrip},
	} {
		xs := q.of(c)
		s := stats.Summarize(ordered(xs))
		if s.N == 0 {
			continue
		}
		*q.to = &Quantity{Unit: q.unit, Median: s.Median, Low: s.Low, High: s.High, N: s.N}
		if !known || base == c {
			continue
		}
		ref := q.of(base)
		d := stats.Summarize(stats.Differences(xs, ref))
		if d.N == 0 {
			continue
		}
		g := groupOf(sample.Cell{From: c.From, Load: q.load, On: c.On})
		r.Over[q.name] = Price{Unit: q.unit, Median: d.Median, Low: d.Low, High: d.High, N: d.N,
			Verdict: stats.JudgeDifference(d, stats.Median(ordered(ref)), p.floor(g, q.metric), p.file.Header.Plan.Precision)}
	}
	for _, m := range []struct{ load, metric string }{{"rr", LatencyP50}, {"rr", CPUPerTrip}, {"bulk", Throughput}, {"bulk", CPUPerByte}, {"stream", CPUPerTrip}} {
		if xs := p.values(c, m.load, m.metric); len(xs) > 0 {
			name := m.metric
			if m.load == "stream" {
				name = "stream_" + name
			}
			r.Costs[name] = stats.Median(ordered(xs))
		}
	}
	return r
}

// baselineOf is the baseline's cell, without a load, from where c is.
func (p *predictor) baselineOf(c sample.Cell) (sample.Cell, bool) {
	for g, i := range p.base {
		if g.from == c.From && g.on == c.On && !g.shape.Crowd() {
			b := p.series[i].cell
			b.Load = ""
			return b, true
		}
	}
	return c, false
}

// extra is how many bytes of a reply the round trips of the file lack.
func (p *predictor) extra() float64 {
	return max(0, float64(p.w.Bytes)-float64(p.file.Header.Plan.LoadOf("rr").Reply))
}

// page is the time of a page by round: each query takes a round trip, and what
// its reply has more than the measured one takes its share of the throughput.
func (p *predictor) page(c sample.Cell) map[int]float64 {
	var perByte map[int]float64
	for round, rate := range p.values(c, "bulk", Throughput) {
		if perByte == nil {
			perByte = map[int]float64{}
		}
		perByte[round] = bitsPerByte / rate
	}
	return p.perQuery(c, LatencyP50, float64(p.w.Queries), perByte)
}

// cpu is the share of a core that the queries take, by round.
func (p *predictor) cpu(c sample.Cell) map[int]float64 {
	if p.w.QPS == 0 {
		return nil
	}
	return p.perQuery(c, CPUPerTrip, p.w.QPS, p.values(c, "bulk", CPUPerByte))
}

// perQuery is times × (the metric of rr + the further bytes × what one costs),
// by round. Without a price of bytes these cost nothing, which is noted.
func (p *predictor) perQuery(c sample.Cell, metric string, times float64, perByte map[int]float64) map[int]float64 {
	out := map[int]float64{}
	extra := p.extra()
	for round, x := range p.values(c, "rr", metric) {
		b, ok := perByte[round]
		switch {
		case extra == 0, ok:
			x += extra * b
		case perByte != nil: // a round that has no bulk
			continue
		default:
			p.note("The file has no bulk: what replies of %d bytes cost beyond the measured %d is left out.",
				p.w.Bytes, p.file.Header.Plan.LoadOf("rr").Reply)
		}
		out[round] = times * x
	}
	return out
}

// streamCPU is the share of a core that the tokens take, by round.
func (p *predictor) streamCPU(c sample.Cell) map[int]float64 {
	if p.w.Tokens == 0 {
		return nil
	}
	out := map[int]float64{}
	for round, x := range p.values(c, "stream", CPUPerTrip) {
		out[round] = p.w.Tokens * x
	}
	return out
}
