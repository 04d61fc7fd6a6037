// Package difference reports what differs between two runs of the same study: first possible
// explanations, then each cell. It judges only ratios to the baseline, because both sides of a
// ratio were measured at the same time. Absolute figures get no verdict.
package difference

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

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
	return Side{Name: printable.Line(in.Name), Started: h.Started,
		Environment: h.Environment, Rounds: in.File.End.Rounds, Elapsed: in.File.End.Elapsed}
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
		case why.Code == "":
			r.Cells = append(r.Cells, d.cell(analysis.Match{Old: k, New: i}))
			d.noteStates(r, analysis.Match{Old: k, New: i})
			d.matches = append(d.matches, analysis.Match{Old: k, New: i})
		case !d.New.Failed(i):
			r.OnlyNew = append(r.OnlyNew, lone(s.Cell, why))
			if why.Code == OtherLoad {
				r.OnlyOld = append(r.OnlyOld, lone(s.Cell, why))
			}
		case k >= 0 && !d.Old.Failed(k):
			r.OnlyOld = append(r.OnlyOld, lone(s.Cell, Reason{Code: FailedNew}))
		}
	}
	for k, s := range d.Old.Series {
		if !taken[k] && !s.Cell.Control && !d.Old.Failed(k) {
			r.OnlyOld = append(r.OnlyOld, lone(s.Cell, Reason{Code: NotInNew}))
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

// unlike returns why two cells cannot be compared. Its zero value: they can.
func (d *differ) unlike(k, i int) Reason {
	switch {
	case k < 0:
		return Reason{Code: NotInOld}
	case d.New.Failed(i):
		return Reason{Code: FailedNew}
	case d.Old.Failed(k):
		return Reason{Code: FailedOld}
	}
	old, now := work(d.Old.Series[k].Load), work(d.New.Series[i].Load)
	if old != now {
		return Reason{Code: OtherLoad, Work: [2]string{old, now}}
	}
	return Reason{}
}

func work(l sample.Load) string { return workload.Of(l).Words(l) }

func lone(c sample.Cell, why Reason) Lone {
	return Lone{Label: analysis.RowName(c), From: string(c.From), Load: c.Load, On: c.On,
		Pin: c.Pin, Reason: why}
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
			x.Ratio = change(s.Shift, s.Old.Judgement(), s.New.Judgement())
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

func change(s stats.Shift, old, now analysis.Judgement) *Change {
	return &Change{Old: old, New: now, Median: s.Median, Low: s.Low, High: s.High,
		SureLow: s.SureLow, SureHigh: s.SureHigh,
		N: s.N, Epochs: s.Epochs}
}

func valueFigure(m analysis.Metric) analysis.Judgement {
	return analysis.Judgement{Median: m.Median, Low: m.Low, High: m.High, N: len(m.Rounds)}
}
