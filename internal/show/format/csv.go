package format

import (
	"encoding/csv"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/published"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/numbers"
)

// csvFormat writes figures in long form, one row per number. It follows RFC 4180 but ends lines
// with \n, which all but the strictest readers prefer.
var csvFormat = Format{Name: "csv", Kinds: []document.Kind{document.AReport, document.APrediction, document.AComparison}, write: writeCSV}

func writeCSV(w io.Writer, d document.Document, _ Options) error {
	c := csv.NewWriter(w)
	if r, ok := d.Value.(*published.Report); ok {
		writePublished(c, r)
	} else {
		writeFigures(c, d.Value)
	}
	c.Flush()
	return c.Error()
}

// record collects the fields of a row.
type record []string

// text appends texts. It puts an apostrophe before text that a spreadsheet would read as a formula
// (OWASP, "CSV Injection").
func (r *record) text(texts ...string) {
	for _, t := range texts {
		if strings.IndexAny(t, "=+-@\t\r＝＋－＠") == 0 {
			t = "'" + t
		}
		*r = append(*r, t)
	}
}

// number appends a number, or an empty field if it is not finite.
func (r *record) number(x float64) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		*r = append(*r, "")
		return
	}
	*r = append(*r, strconv.FormatFloat(x, 'g', -1, 64))
}

func (r *record) maybe(x *float64) {
	if x == nil {
		*r = append(*r, "")
		return
	}
	r.number(*x)
}

// count appends a number of something, or an empty field if it is 0.
func (r *record) count(n int) {
	if n == 0 {
		*r = append(*r, "")
		return
	}
	*r = append(*r, strconv.Itoa(n))
}

func (r *record) truth(b bool) { *r = append(*r, strconv.FormatBool(b)) }

// write writes the row. The csv.Writer keeps the first error.
func (r record) write(c *csv.Writer) { _ = c.Write(r) }

func writeFigures(c *csv.Writer, value any) {
	record{"study", "mode", "label", "from", "to", "on", "load", "tune", "servers", "clients", "procs", "baseline", "limited_by",
		"metric", "unit", "higher_is_better", "statistic", "round", "value", "low", "high", "n", "epochs", "against", "verdict", "notes", "point", "pin"}.write(c)
	for f := range numbers.Of(value) {
		var r record
		r.text(f.Study, f.Mode, f.Label, f.From, f.To, f.On, f.Load, f.Tune)
		r.count(f.Servers)
		r.count(f.Clients)
		r.count(f.ClientProcs)
		r.truth(f.Baseline)
		r.text(f.LimitedBy, f.Metric, f.Unit)
		r.truth(f.Higher)
		r.text(string(f.Statistic))
		switch f.Statistic {
		case numbers.Round:
			r.text(strconv.Itoa(f.Round))
		default:
			r.text("")
		}
		if f.Statistic == numbers.Failed {
			r.text("")
		} else {
			r.number(f.Value)
		}
		r.maybe(f.Low)
		r.maybe(f.High)
		r.count(f.N)
		r.count(f.Epochs)
		r.text(f.Against, f.Verdict, f.Note, f.Point, f.Pin)
		r.write(c)
	}
}

// end returns a pointer to an end of a published range, or nil if x is 0, which means that there is
// no range.
func end(x float64) *float64 {
	if x == 0 {
		return nil
	}
	return &x
}

// writePublished writes a row for each ratio of two published figures, and for each figure that is
// in no ratio.
func writePublished(c *csv.Writer, p *published.Report) {
	record{"study", "year", "table", "mode", "placement", "load", "shape", "metric", "unit", "value", "value_to",
		"against", "against_shape", "published_ratio", "measured_ratio", "low", "high", "n", "epochs", "file", "verdict", "notes",
		"here", "here_low", "here_high", "here_n", "here_unit", "idle", "proxy"}.write(c)
	for _, s := range p.Studies {
		for _, l := range s.Rows {
			var of record
			of.text(s.Name, s.Year, l.Table, l.Mode, l.Placement, l.Load, l.Shape, l.Metric, l.Unit)
			of.number(l.Value)
			of.maybe(end(l.To))
			if len(l.Ratios) == 0 {
				r := append(record{}, of...)
				r.text("", "", "", "", "", "", "", "", "", "", l.WhyNot)
				r.here(l.Here)
				r.write(c)
			}
			for _, x := range l.Ratios {
				r := append(record{}, of...)
				r.text(s.Rows[x.To].Mode, s.Rows[x.To].Shape)
				r.number(x.Published)
				if m := x.Measured; m != nil {
					r.number(m.Median)
					r.number(m.Low)
					r.number(m.High)
					r.count(m.N)
					r.count(m.Epochs)
				} else {
					r.text("", "", "", "", "")
				}
				r.text(x.File, string(x.Verdict), x.Why)
				r.here(l.Here)
				r.write(c)
			}
		}
		for _, x := range s.Claims {
			claimRecord(s, x).write(c)
		}
	}
}

// here appends this machine's figures for a row, in base units, or empty fields if h is nil.
func (r *record) here(h *published.Here) {
	if h == nil {
		r.text("", "", "", "", "", "", "")
		return
	}
	r.number(h.Median)
	r.number(h.Low)
	r.number(h.High)
	r.count(h.N)
	r.text(h.Unit)
	for _, v := range []*published.Value{h.Idle, h.Proxy} {
		if v == nil {
			r.text("")
			continue
		}
		r.number(v.Median)
	}
}

// claimRecord returns the row of a claim that a study states without figures. Its notes have the
// words and the stated direction, its value is the bound.
func claimRecord(s published.Result, x published.ClaimResult) record {
	var r record
	r.text(s.Name, s.Year, "", analysis.Label(x.Of), string(x.Of.From), x.Of.Load, "", x.Metric, x.Unit)
	r.maybe(end(x.Bound))
	r.text("")
	if x.To != nil {
		r.text(analysis.Label(*x.To), "", "")
	} else {
		r.text("", "", "")
	}
	if m := x.Measured; m != nil {
		r.number(m.Median)
		r.number(m.Low)
		r.number(m.High)
		r.count(m.N)
		r.count(m.Epochs)
	} else {
		r.text("", "", "", "", "")
	}
	notes := strings.TrimSuffix(x.Text+": "+string(x.Want)+": "+x.Why, ": ")
	r.text(x.File, string(x.Verdict), notes)
	r.maybe(x.Extreme)
	r.text("", "", "", x.Unit, "", "")
	return r
}
