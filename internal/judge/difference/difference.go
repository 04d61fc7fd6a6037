// Package difference reports what differs between two runs of the same study: first possible
// explanations, then each cell. It judges ratios to the baseline, because both sides of a ratio
// were measured at the same time, and only reports absolute figures.
package difference

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// Schema names the version of a difference.
const Schema = "bridgetoll.difference/1"

// Report is the difference between two runs; docs/results.md documents its JSON form.
type Report struct {
	Schema   string       `json:"schema"`
	Study    sample.Study `json:"study,omitzero"`
	Old      Side         `json:"old"`
	New      Side         `json:"new"`
	Baseline string       `json:"baseline"`
	Same     float64      `json:"same"` // relative difference that is called none
	Settings []Setting    `json:"settings"`
	States   []State      `json:"states,omitempty"` // of the machine, if they differ
	Cells    []Cell       `json:"cells"`            // cells of both runs, in the new plan's order
	Traces   []Traced     `json:"traces,omitempty"`
	OnlyOld  []Lone       `json:"only_old"`
	OnlyNew  []Lone       `json:"only_new"`
	FailAt   *float64     `json:"fail_above,omitempty"` // --fail-above
	Failing  []Exceeded   `json:"failing,omitempty"`    // certainly worse by more than that
}

// Side is one of the two runs.
type Side struct {
	Name        string             `json:"name"`
	Started     time.Time          `json:"started,omitzero"`
	Environment sample.Environment `json:"environment"`
	Rounds      int                `json:"rounds"`
	Elapsed     float64            `json:"elapsed_s"`
}

// State holds the baseline's own figures in both runs, if the machine was in another state: ratios
// depend on that.
type State struct {
	From     string  `json:"from"`
	Load     string  `json:"load"`
	On       string  `json:"on"`
	Pin      string  `json:"pin,omitempty"`
	Baseline string  `json:"baseline"`
	Metric   string  `json:"metric"`
	Unit     string  `json:"unit"`
	Old      float64 `json:"old"`
	New      float64 `json:"new"`
}

// Setting is a possible explanation of a difference: a setting of the machine, the run, or paths.
type Setting struct {
	What string `json:"what"`
	Old  string `json:"old"` // Old or New is "" if that run lacks it
	New  string `json:"new"`
	// Cells are the modes with different paths; nil: it is a setting of the whole run.
	Cells []string `json:"cells,omitempty"`
}

// Cell is a cell of both runs.
type Cell struct {
	sample.Cell
	Label    string            `json:"label"`
	Baseline bool              `json:"baseline,omitempty"`
	Primary  string            `json:"primary"`
	Metrics  map[string]Metric `json:"metrics"`
}

// Metric is one quantity of a cell in both runs.
type Metric struct {
	Unit   string  `json:"unit"`
	Higher bool    `json:"higher_is_better,omitempty"`
	Ratio  *Change `json:"ratio,omitempty"` // of the ratio to the baseline; nil: it is the baseline
	Value  *Change `json:"value,omitempty"` // of the value itself
}

// Change is the factor from the old figure to the new one.
type Change struct {
	Old      Figure  `json:"old"`
	New      Figure  `json:"new"`
	Median   float64 `json:"median"`
	Low      float64 `json:"low"` // 95 %
	High     float64 `json:"high"`
	SureLow  float64 `json:"sure_low"` // 99 %
	SureHigh float64 `json:"sure_high"`
	// pairs of slices, or rounds, of the run with fewer
	N      int `json:"n"`
	Epochs int `json:"epochs,omitempty"` // as in a ratio
	// Verdict is better, worse, same or unclear; "" if it is not judged.
	Verdict stats.Verdict `json:"verdict,omitempty"`
	// Alike is the verdict if the machine's state were the same in both runs; "" if it is.
	Alike stats.Verdict `json:"verdict_if_alike,omitempty"`
}

// Figure is one run's figure.
type Figure struct {
	Median  float64       `json:"median"`
	Low     float64       `json:"low"`
	High    float64       `json:"high"`
	N       int           `json:"n"`
	Verdict stats.Verdict `json:"verdict,omitempty"` // of a ratio
	// Varies means that Low and High are a range, as in a ratio.
	Varies bool `json:"varies,omitempty"`
}

// Varies reports whether a figure of either run is a range, so that the change has no verdict.
func (c Change) Varies() bool { return c.Old.Varies || c.New.Varies }

// Lone is a cell with a result in only one run, and the reason of the other.
type Lone struct {
	Label string `json:"label"`
	From  string `json:"from"`
	Load  string `json:"load"`
	On    string `json:"on"`
	Pin   string `json:"pin,omitempty"`
	Why   string `json:"why"`
}

// Exceeded is a ratio that is certainly worse by more than the limit.
type Exceeded struct {
	Label  string `json:"label"`
	From   string `json:"from"`
	Load   string `json:"load"`
	Pin    string `json:"pin,omitempty"`
	Metric string `json:"metric"`
}

// Input is a results file with its name.
type Input struct {
	Name string
	File *sample.File
}

var (
	errMesh = errors.New("a mesh has no rows to compare")
)

// Judge reports what differs from old to now. It returns an error if they cannot be compared.
func Judge(old, now Input) (*Report, error) {
	if err := comparable(old.File, now.File); err != nil {
		return nil, err
	}
	d := &differ{Runs: analysis.Runs{Old: analysis.Open(old.File), New: analysis.Open(now.File)}}
	p := now.File.Header.Plan
	r := &Report{Schema: Schema, Study: p.Study, Old: side(old), New: side(now),
		Baseline: p.Baseline, Same: d.Same(),
		Cells: []Cell{}, OnlyOld: []Lone{}, OnlyNew: []Lone{}}
	d.match(r)
	r.Traces = traces(old.File, now.File)
	r.Settings = d.settings()
	return r, nil
}

func comparable(old, now *sample.File) error {
	a, b := old.Header.Plan, now.Header.Plan
	switch {
	case a.Mesh != nil || b.Mesh != nil:
		return errMesh
	case a.Study != b.Study:
		return fmt.Errorf("the old run is of the kind %s, the new one of the kind %s", a.Study, b.Study)
	case a.Baseline != b.Baseline:
		return fmt.Errorf(
			"the old run's baseline is %s, the new one's %s, so their ratios cannot be compared",
			a.Baseline, b.Baseline)
	}
	return nil
}

func side(in Input) Side {
	h := in.File.Header
	return Side{Name: in.Name, Started: h.Started, Environment: h.Environment,
		Rounds: in.File.End.Rounds, Elapsed: in.File.End.Elapsed}
}

type differ struct {
	analysis.Runs
	matches []analysis.Match
}

func (d *differ) match(r *Report) {
	taken, before := map[int]bool{}, map[sample.Cell]int{}
	for k, s := range d.Old.Series {
		before[s.Cell] = k
	}
	for i, s := range d.New.Series {
		if s.Cell.Control {
			continue
		}
		k, ok := before[s.Cell]
		if ok {
			taken[k] = true
		} else {
			k = -1
		}
		switch why := d.unlike(k, i); {
		case why == "":
			r.Cells = append(r.Cells, d.cell(analysis.Match{Old: k, New: i}))
			d.noteStates(r, analysis.Match{Old: k, New: i})
			d.matches = append(d.matches, analysis.Match{Old: k, New: i})
		case !d.New.Failed(i):
			r.OnlyNew = append(r.OnlyNew, lone(s.Cell, why))
		case k >= 0 && !d.Old.Failed(k):
			r.OnlyOld = append(r.OnlyOld, lone(s.Cell, "it has no result in the new run"))
		}
	}
	for k, s := range d.Old.Series {
		if !taken[k] && !s.Cell.Control && !d.Old.Failed(k) {
			r.OnlyOld = append(r.OnlyOld, lone(s.Cell, "the new run did not measure it"))
		}
	}
}

func (d *differ) noteStates(r *Report, m analysis.Match) {
	s, ok := d.States(m)
	if !ok || !s.Other() {
		return
	}
	c := d.New.Series[m.New].Cell
	x := State{string(c.From), c.Load, c.On, c.Pin, s.Baseline, s.Metric, s.Unit, s.Old, s.New}
	if !slices.Contains(r.States, x) {
		r.States = append(r.States, x)
	}
}

// Undecided reports whether something looks worse by more than share, but was measured in another
// state of the machine.
func (r *Report) Undecided(share float64) bool {
	alike := *r
	alike.Cells = slices.Clone(r.Cells)
	for i, c := range alike.Cells {
		metrics := map[string]Metric{}
		for name, m := range c.Metrics {
			if m.Ratio != nil && m.Ratio.Alike != "" {
				x := *m.Ratio
				x.Verdict, m.Ratio = x.Alike, &x
			}
			metrics[name] = m
		}
		alike.Cells[i].Metrics = metrics
	}
	alike.FailAbove(share)
	return len(alike.Failing) > len(r.Failing)
}

// Unjudged reports whether no ratio of both runs shows if it is worse by more than share: none has
// a verdict, and no 99 % interval excludes it.
func (r *Report) Unjudged(share float64) bool {
	for _, c := range r.Cells {
		for _, m := range c.Metrics {
			if m.Ratio == nil {
				continue
			}
			enough := m.Ratio.Epochs > 0 || m.Ratio.N >= stats.MinJudged
			within := m.Ratio.SureHigh <= 1+share
			if m.Higher {
				within = m.Ratio.SureLow >= 1-share
			}
			if m.Ratio.Verdict != stats.Unclear || enough && within {
				return false
			}
		}
	}
	return true
}

func (d *differ) unlike(k, i int) string {
	switch {
	case k < 0:
		return "the old run did not measure it"
	case d.New.Failed(i):
		return "it has no result in the new run"
	case d.Old.Failed(k):
		return "it has no result in the old run"
	}
	if old, now := work(d.Old.Series[k].Load), work(d.New.Series[i].Load); old != now {
		return "the load was another one: " + old + ", now " + now
	}
	return ""
}

func work(l sample.Load) string { return workload.Of(l).Words(l) }

func lone(c sample.Cell, why string) Lone {
	return Lone{Label: analysis.RowName(c), From: string(c.From), Load: c.Load, On: c.On,
		Pin: c.Pin, Why: why}
}

func (d *differ) cell(m analysis.Match) Cell {
	s := d.New.Series[m.New]
	c := s.Cell
	b, ok := d.New.BaselineOf(m.New)
	out := Cell{Cell: c.Named(), Label: analysis.RowName(c),
		Baseline: ok && b == m.New, Primary: analysis.PrimaryOf(s.Load, c.Shape),
		Metrics: map[string]Metric{}}
	states, ok := d.States(m)
	other := ok && states.Other()
	for _, metric := range compared(s.Load, c.Shape) {
		of := workload.MetricOf(metric, s.Load)
		x := Metric{Unit: of.Unit, Higher: of.Higher, Value: d.value(m, metric)}
		if s, ok := d.Ratio(m, metric); ok {
			x.Ratio = change(s.Shift, ratioFigure(s.Old), ratioFigure(s.New))
			x.Ratio.Verdict = s.Verdict
			if other && (s.Verdict == stats.Worse || s.Verdict == stats.Better) {
				x.Ratio.Verdict, x.Ratio.Alike = stats.Unclear, s.Verdict
			}
		}
		if x.Ratio != nil || x.Value != nil {
			out.Metrics[metric] = x
		}
	}
	return out
}

func compared(l sample.Load, s sample.Shape) []string {
	w := workload.Of(l)
	var out []string
	for _, m := range []string{w.Decides(s), workload.LatencyP99, w.CPU()} {
		if !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

func (d *differ) value(m analysis.Match, metric string) *Change {
	shift := d.Value(m, metric)
	if shift.N == 0 {
		return nil
	}
	old, okOld := d.Old.Series[m.Old].Metric(metric)
	now, okNew := d.New.Series[m.New].Metric(metric)
	if !okOld || !okNew {
		return nil
	}
	return change(shift, valueFigure(old), valueFigure(now))
}

func change(s stats.Shift, old, now Figure) *Change {
	return &Change{Old: old, New: now, Median: s.Median, Low: s.Low, High: s.High,
		SureLow: s.SureLow, SureHigh: s.SureHigh,
		N: s.N, Epochs: s.Epochs}
}

func ratioFigure(r analysis.Ratio) Figure {
	return Figure{r.Median, r.Low, r.High, r.N, r.Verdict, r.Varies}
}

// String returns a ratio without its interval, or the range of one that varies.
func (f Figure) String() string {
	if f.Varies {
		return analysis.Ratio{Low: f.Low, High: f.High, Varies: true}.String()
	}
	return analysis.Percent(f.Median)
}

func valueFigure(m analysis.Metric) Figure {
	return Figure{Median: m.Median, Low: m.Low, High: m.High, N: len(m.Rounds)}
}

// FailAbove records the ratios with the verdict worse whose whole 99 % interval is beyond share:
// 0.05 is 5 %.
func (r *Report) FailAbove(share float64) {
	r.FailAt, r.Failing = &share, nil
	for _, c := range r.Cells {
		for _, metric := range Metrics(c) {
			m := c.Metrics[metric]
			if m.Ratio == nil || m.Ratio.Verdict != stats.Worse {
				continue
			}
			s := stats.Shift{Summary: stats.Summary{N: m.Ratio.N}, SureLow: m.Ratio.SureLow,
				SureHigh: m.Ratio.SureHigh}
			if s.Beyond(share, m.Higher) {
				r.Failing = append(r.Failing, Exceeded{
					c.Label, string(c.From), c.Load, c.Pin, metric})
			}
		}
	}
}

// Metrics returns the names of the cell's metrics, the primary one first.
func Metrics(c Cell) []string {
	var out []string
	for _, m := range []string{c.Primary, workload.LatencyP99, workload.CPUPerByte,
		workload.CPUPerTrip} {
		if _, ok := c.Metrics[m]; ok && !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}
