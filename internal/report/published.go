package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/published"
)

// Published writes the published beside the measured, as text or as JSON.
func Published(w io.Writer, r *published.Report, format string, o Options) error {
	if format == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		if err := enc.Encode(r); err != nil {
			return fmt.Errorf("write report: %w", err)
		}
		return nil
	}
	if o.Width == 0 {
		o.Width = DefaultWidth
	}
	p := newPrinter(o)
	p.measuredFiles(r)
	for i, s := range r.Studies {
		if i > 0 || len(r.Files) > 0 {
			p.line("")
		}
		p.study(s, len(r.Files) > 0)
	}
	p.line("")
	p.publishedFoot(r)
	if _, err := io.WriteString(w, p.b.String()); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

func (p *printer) measuredFiles(r *published.Report) {
	for _, f := range r.Files {
		facts := machineFacts(f.Environment)
		facts[0] = f.Name + ": " + facts[0]
		if f.Wire != nil {
			facts = append(facts, "wire "+f.Wire.String())
		}
		p.wrapped("", strings.Join(append(facts, plural(f.Rounds, "round")), " · "), " · ")
	}
}

func (p *printer) study(s published.Result, measured bool) {
	p.line(p.bold(s.Name) + " · " + s.Year)
	p.item(s.Title)
	p.item(s.URL)
	p.item(s.Setup + ".")
	p.line("")
	if s.Rows[0].Table == "" {
		p.publishedLines(s, measured)
	} else {
		p.publishedTables(s, measured)
	}
	p.line("")
	p.line("  Findings")
	for _, f := range s.Findings {
		text := f.Text
		if measured {
			text += ": " + tally(f)
		}
		p.wrapped("    ", text, " ")
	}
	p.notes(s)
	p.toMeasure(s, measured)
}

// tally says how many of a finding's ratios have each verdict: "holds 2,
// unclear 1 of 3 ratios".
func tally(f published.Finding) string {
	total := 0
	var parts []string
	for _, v := range published.Verdicts {
		n := f.Verdicts[v]
		total += n
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", v, n))
		}
	}
	if total == 1 {
		return strings.TrimSuffix(parts[0], " 1")
	}
	return fmt.Sprintf("%s of %d ratios", strings.Join(parts, ", "), total)
}

// notes prints the data's own notes, why rows have no cell or no ratio, and
// what differs from the study's conditions.
func (p *printer) notes(s published.Result) {
	var own, ours []string
	for _, r := range s.Rows {
		if _, words, ok := strings.Cut(r.Unit, asPrinted); ok {
			own = appendNew(own, shortUnit(r.Unit)+asPrinted+words)
		}
		if r.Table == "" { // a table's notes name its columns
			own = appendNew(own, r.Note)
		}
		if r.WhyNot != "" {
			ours = appendNew(ours, r.WhyNot)
		}
		for _, x := range r.Ratios {
			ours = appendNew(ours, x.Why)
		}
	}
	ours = append(ours, s.Notes...)
	if len(own)+len(ours) > 0 {
		p.line("  Notes")
	}
	if len(own) > 0 {
		p.wrapped("    ", "its own: "+strings.Join(own, "; "), " ")
	}
	for _, n := range ours {
		p.wrapped("    ", n, " ")
	}
}

// appendNew appends text if nothing of list says it already.
func appendNew(list []string, text string) []string {
	if text == "" || slices.ContainsFunc(list, func(have string) bool { return strings.Contains(have, text) }) {
		return list
	}
	return append(list, text)
}

// toMeasure prints the commands that measure the study's cells; with measured,
// those that would measure what is missing.
func (p *printer) toMeasure(s published.Result, measured bool) {
	head := "To measure it here:"
	if measured {
		head = "To measure what is missing:"
	}
	for _, c := range s.Commands {
		if measured && c.Missing == 0 {
			continue
		}
		if head != "" {
			p.line("")
			p.line("  " + head)
			head = ""
		}
		p.command(c.Command)
	}
}

// command prints a command so that it can be pasted: it is broken before flags,
// and a line that goes on ends with a backslash.
func (p *printer) command(c string) {
	const margin, tail = "    ", " \\"
	line := margin
	for i, part := range strings.Split(c, " --") {
		switch {
		case i == 0:
			line += part
		case width(line+" --"+part+tail) > p.width:
			p.line(line + tail)
			line = margin + "  --" + part
		default:
			line += " --" + part
		}
	}
	p.line(line)
}

func (p *printer) publishedFoot(r *published.Report) {
	if len(r.Files) == 0 {
		p.item("toll published --against FILE puts what such a run measured beside these ratios.")
		return
	}
	p.item("holds: the same direction, or no difference in both; gone: a difference that is none any more; " +
		"reversed: the other direction; new: a difference where none was published (at most 5 %); unclear: too few rounds " +
		"or too much noise to tell.")
	p.line("  " + p.dim("Measured ratios are taken round by round; their intervals are of 95 %."))
	head := true
	for _, f := range r.Files {
		for _, w := range f.Warnings {
			if head {
				p.line("")
				p.line(p.bold("Warnings"))
				head = false
			}
			p.item(f.Name + ": " + w.Text)
		}
	}
}

// publishedLines lays a study out with a line for each row.
func (p *printer) publishedLines(s published.Result, measured bool) {
	head := []string{"mode", "what", "published", "ratio"}
	if measured {
		head = append(head, "measured", "")
	}
	base := map[int]bool{} // rows that others are held against
	for _, r := range s.Rows {
		for _, x := range r.Ratios {
			base[x.To] = true
		}
	}
	var rows [][]string
	for i, r := range s.Rows {
		if r.Metric == "ratio_as_printed" { // the quotient is beside the row that it is of
			continue
		}
		row := []string{rowName(r), what(r), printed(r), ""}
		if measured {
			row = append(row, "", "")
		}
		if len(r.Ratios) == 0 && base[i] {
			row[3] = "1"
		}
		for _, x := range r.Ratios {
			row[3] = ratioText(x.Published)
			if measured {
				row[4], row[5] = measuredText(x), string(x.Verdict)
			}
		}
		rows = append(rows, row)
	}
	// A placement and a metric at a time, in the order of the data; the baseline first.
	order := map[string]int{}
	for _, row := range rows {
		for _, key := range []string{from(row), row[1]} {
			if order[key] == 0 {
				order[key] = len(order) + 1
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b []string) int {
		return cmp.Or(cmp.Compare(order[from(a)], order[from(b)]), cmp.Compare(order[a[1]], order[b[1]]), cmp.Compare(first(a), first(b)))
	})
	p.line("  Ratios to " + s.Baseline)
	p.texts(head, rows, []bool{false, false, true, true, false, false})
}

// from is the placement in a row's name.
func from(row []string) string {
	_, f, _ := strings.Cut(row[0], " from ")
	return f
}

// first is less for a baseline.
func first(row []string) int {
	if row[3] == "1" {
		return 0
	}
	return 1
}

// printed is a row's value with its unit.
func printed(r published.Line) string {
	if to, ok := strings.CutPrefix(r.Metric, "cpu_adjusted_ratio_vs_"); ok {
		return r.Printed + " × " + to
	}
	if r.Metric == "cpu_idle" {
		return r.Printed + " % idle"
	}
	return r.Printed + " " + shortUnit(r.Unit)
}

// ratioText is a ratio or its half-width; small ones have a digit more.
func ratioText(x float64) string {
	if 0 < x && x < 0.0095 {
		return fmt.Sprintf("%.3f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

func measuredText(x published.Ratio) string {
	if x.Measured == nil {
		return "-"
	}
	return x.Measured.String()
}

// rowName is the cell of ours that a row corresponds to, or else the row's own
// words.
func rowName(r published.Line) string {
	if r.Cell == nil {
		return r.Mode + ", " + r.Placement
	}
	return r.Cell.Mode + " from " + r.Cell.From
}

// whats are the published metrics in tables.
var whats = map[string]string{
	"throughput": "throughput", "cpu_idle": "per busy core", "latency_one_way": "latency",
	"response_time_median": "median response", "latency_spike": "spikes",
}

func what(r published.Line) string {
	if w, ok := whats[r.Metric]; ok {
		return w
	}
	return "per busy core"
}

// asPrinted is where the data says something about a unit.
const asPrinted = " as printed"

// shortUnit is a unit without what is said about it.
func shortUnit(u string) string {
	u, _, _ = strings.Cut(u, asPrinted)
	return u
}

// texts prints rows of texts below their heads; right says which columns are
// aligned so, the rest is not.
func (p *printer) texts(head []string, rows [][]string, right []bool) {
	widths := make([]int, len(head))
	for _, row := range append([][]string{head}, rows...) {
		for i, t := range row {
			widths[i] = max(widths[i], width(t))
		}
	}
	line := func(row []string) string {
		var b strings.Builder
		for i, t := range row {
			b.WriteString("  " + align(t, widths[i], i < len(right) && right[i]))
		}
		return strings.TrimRight(b.String(), " ")
	}
	p.line(p.dim(line(head)))
	for _, r := range rows {
		p.line(line(r))
	}
}
