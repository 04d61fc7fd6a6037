package numbers

import (
	"iter"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/trace"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// Trace yields the figures of a trace's cells, and of each cell what the parts of its trips add and
// how long they and their segments take.
func Trace(r *trace.Report) iter.Seq[document.Figure] {
	return func(yield func(document.Figure) bool) {
		l := list{yield, true}
		l.cells(r.Base())
		for _, t := range r.Traces {
			l.trace(studyOf(r.Base()), t)
		}
	}
}

func (l *list) trace(study sample.Study, t trace.Trace) {
	of := document.Figure{Subject: cellOf(study, t.Cell.Cell)}
	of.Label = t.Label // tells the control from its baseline
	if t.Refused != "" {
		f := of
		f.Statistic, f.Note = document.NoFigure, t.Words
		l.add(f)
	}
	for _, r := range t.Rows {
		l.row(of, t, r)
		for _, h := range r.Hooks {
			h.Name = r.Name + ": hook " + h.Name
			l.row(of, t, h)
		}
		for _, h := range r.Parts {
			h.Name = r.Name + ": " + h.Name
			l.row(of, t, h)
		}
	}
	for _, x := range []struct {
		name  string
		price analysis.Price
	}{{"in the path", t.Path}, {"in wake-ups", t.WakeUps}, {"in a relay", t.Relay},
		{"not attributed", t.Unattributed}, {"tracing", t.Cost}} {
		if x.price.N > 0 {
			f := of
			f.Metric = x.name
			l.price(f, document.Part, x.price, t.Against)
		}
	}
	for _, s := range t.Segments {
		f := of
		f.Metric, f.Unit, f.Statistic, f.Value = string(s.Part), "s", document.Segment, s.MidMean
		f.Note = strings.Join(strings.Fields(strings.Join([]string{
			s.Direction(), s.Hop, s.Device, s.Where}, " ")), " ")
		l.add(f)
	}
}

func (l *list) row(of document.Figure, t trace.Trace, r trace.Row) {
	of.Metric = r.Name
	if r.Mine != nil {
		f := of
		f.Unit, f.Statistic, f.Value = "s", document.MidMean, *r.Mine
		l.add(f)
	}
	if r.Added.N > 0 {
		l.price(of, document.Part, r.Added, t.Against)
	}
}
