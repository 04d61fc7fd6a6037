package format

import (
	"encoding/csv"
	"io"
	"iter"
	"math"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// csvFormat writes one row per number. It follows RFC 4180 but ends lines with \n,
// which all but the strictest readers prefer.
var csvFormat = Format{Name: "csv", Kinds: []document.Kind{
	document.AReport, document.APrediction, document.AComparison, document.Requests}, write: writeCSV}

func writeCSV(w io.Writer, d document.Document, _ Options) error {
	c := csv.NewWriter(w)
	if d.Data != nil {
		writeData(c, *d.Data)
	} else {
		writeFigures(c, d.Figures)
	}
	c.Flush()
	return c.Error()
}

type record []string

// text puts an apostrophe before text that a spreadsheet would read as a formula (OWASP, "CSV
// Injection").
func (r *record) text(texts ...string) {
	for _, t := range texts {
		if strings.IndexAny(t, "=+-@\t\r＝＋－＠") == 0 {
			t = "'" + t
		}
		*r = append(*r, t)
	}
}

// number appends x, or an empty field if x is not finite.
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

// count appends an empty field if n is 0.
func (r *record) count(n int) {
	if n == 0 {
		*r = append(*r, "")
		return
	}
	*r = append(*r, strconv.Itoa(n))
}

func (r *record) truth(b bool) { *r = append(*r, strconv.FormatBool(b)) }

// write writes the record. The csv.Writer keeps the first error.
func (r record) write(c *csv.Writer) { _ = c.Write(r) }

func writeFigures(c *csv.Writer, figures iter.Seq[document.Figure]) {
	record{"study", "mode", "label", "from", "to", "on", "load", "tune", "servers", "clients",
		"procs", "baseline", "limited_by",
		"metric", "unit", "higher_is_better", "statistic", "round", "value", "low", "high", "n",
		"epochs", "against", "verdict", "notes", "point", "pin"}.write(c)
	for f := range figures {
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
		case document.Round:
			r.text(strconv.Itoa(f.Round))
		default:
			r.text("")
		}
		if f.Statistic == document.NoFigure {
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

func writeData(c *csv.Writer, t document.Table) {
	var heads record
	for _, col := range t.Columns {
		heads.text(col.Title())
	}
	heads.write(c)
	for _, row := range t.Rows {
		var r record
		for _, cell := range row.Cells {
			if n := cell.Number; n != nil {
				r.number(n.Value)
			} else {
				r.text(cell.Text)
			}
		}
		r.write(c)
	}
}
