package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/analysis"
	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/sample"
	"github.com/bridgetoll/bridgetoll/internal/stats"
)

// column is one column of a group's table.
type column struct {
	head  [2]string // two lines
	right bool      // alignment
	text  func(c analysis.Cell) string
}

var (
	modeColumn  = column{head: [2]string{"", "mode"}, text: analysis.Cell.Label}
	pathColumn  = column{head: [2]string{"", "path"}, text: func(c analysis.Cell) string { return strings.Join(c.Hops, "·") }}
	retrColumn  = column{head: [2]string{"", "retr"}, right: true, text: func(c analysis.Cell) string { return count(c, analysis.Retransmits) }}
	limitColumn = column{head: [2]string{"limited", "by"}, text: func(c analysis.Cell) string {
		return strings.TrimSuffix(strings.TrimSuffix(orDash(c.LimitedBy), " cores"), " core")
	}}
)

const (
	giga  = 1e-9 // bit/s to Gbit/s, s/B to …
	perGB = 1e9  // s/B to s/GB
	micro = 1e6  // s to µs
)

// columnsOf are the columns of a load's tables.
func (p *printer) columnsOf(r *analysis.Report, load string) []column {
	if r.Study == sample.StudyScale {
		return scaleColumns(r, load)
	}
	to := "to " + r.Plan.Baseline
	first := []column{modeColumn, pathColumn}
	if r.Study == sample.StudyEndpoints {
		first = []column{wayColumn, addressColumn}
		to = toBaseline(r)
	}
	if p.below {
		first = first[:1]
	}
	l, options := showing(load), loadOf(r, load)
	if options.Program != nil {
		l.columns, l.ratio = programColumns(r, options), options.FirstGauge().Name+" ratio"
	}
	out := append(first, withOptions(l.columns, options)...)
	return append(out, column{[2]string{l.ratio, to}, false, ratio(analysis.Primary(options))})
}

func scaled(metric string, by float64) func(analysis.Cell) string {
	return func(c analysis.Cell) string {
		m, ok := c.Metrics[metric]
		if !ok {
			return "-"
		}
		return digits(m.Median * by)
	}
}

// merged prints a percentile over all rounds' samples in µs.
func merged(metric string) func(analysis.Cell) string { return scaledMerged(metric, micro) }

func scaledMerged(metric string, by float64) func(analysis.Cell) string {
	return func(c analysis.Cell) string {
		m, ok := c.Metrics[metric]
		if !ok || m.Merged == nil {
			return "-"
		}
		return digits(*m.Merged * by)
	}
}

func count(c analysis.Cell, metric string) string {
	m, ok := c.Metrics[metric]
	if !ok {
		return "-"
	}
	if const10k := 1e4; m.Median >= const10k {
		return fmt.Sprintf("%.0fk", m.Median/1000)
	}
	return fmt.Sprintf("%.0f", m.Median)
}

func ratio(metric string) func(analysis.Cell) string {
	return func(c analysis.Cell) string {
		r := c.Metrics[metric].Ratio
		switch {
		case c.Baseline:
			return "1"
		case r == nil:
			return "-"
		}
		return fmt.Sprintf("%s %s", r, r.Verdict)
	}
}

// digits prints x with three significant digits and without an exponent.
func digits(x float64) string {
	switch a := math.Abs(x); { // the bounds are where rounding adds a digit
	case a >= 99.95:
		return fmt.Sprintf("%.0f", x)
	case a >= 9.995:
		return fmt.Sprintf("%.1f", x)
	case a >= 0.9995:
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.3f", x)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// verdictOf is the verdict that a row's colour shows.
func verdictOf(c analysis.Cell) stats.Verdict {
	if r := c.Metrics[c.Primary].Ratio; r != nil {
		return r.Verdict
	}
	return ""
}

// indent is the space before a table's first column.
const indent = 2

// grid is the cells' texts by row and column.
func grid(cols []column, cells []analysis.Cell, short bool) [][]string {
	out := make([][]string, len(cells))
	for i, c := range cells {
		for _, col := range cols {
			out[i] = append(out[i], col.text(c))
		}
		if short && c.On != sample.OnEndpoint {
			out[i][1] = strings.ReplaceAll(out[i][1], string(mode.HopBridge), "br")
		}
	}
	return out
}

func (p *printer) tableWidth(widths []int) int {
	return indent + sum(widths) + p.gap*(len(widths)-1)
}

// rows prints cells as a table. Before each cell for which it is not "", above
// is printed.
func (p *printer) rows(cols []column, cells []analysis.Cell, above func(i int) string) {
	texts := grid(cols, cells, p.short)
	widths := measure(cols, texts)
	p.heads(cols, widths)
	for r, c := range cells {
		if s := above(r); s != "" {
			p.line("  " + s)
		}
		p.row(cols, widths, texts[r], p.verdict(verdictOf(c)))
		if p.below {
			under := pathColumn
			if c.On == sample.OnEndpoint {
				under = addressColumn
			}
			p.line(strings.Repeat(" ", 2*indent) + p.dim(under.text(c)))
		}
	}
}

// heads prints the two lines above a table.
func (p *printer) heads(cols []column, widths []int) {
	for l := range cols[0].head {
		texts := make([]string, len(cols))
		for i, col := range cols {
			texts[i] = col.head[l]
		}
		p.row(cols, widths, texts, p.dim)
	}
}

// row prints one line of a table.
func (p *printer) row(cols []column, widths []int, texts []string, style func(string) string) {
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", indent))
	for i, col := range cols {
		if i > 0 {
			b.WriteString(strings.Repeat(" ", p.gap))
		}
		b.WriteString(align(texts[i], widths[i], col.right))
	}
	p.line(style(strings.TrimRight(b.String(), " ")))
}

func measure(cols []column, grid [][]string) []int {
	out := make([]int, len(cols))
	for i, c := range cols {
		out[i] = max(width(c.head[0]), width(c.head[1]))
		for _, row := range grid {
			out[i] = max(out[i], width(row[i]))
		}
	}
	return out
}

func sum(xs []int) int {
	n := 0
	for _, x := range xs {
		n += x
	}
	return n
}

func align(s string, w int, right bool) string {
	space := strings.Repeat(" ", max(0, w-width(s)))
	if right {
		return space + s
	}
	return s + space
}
