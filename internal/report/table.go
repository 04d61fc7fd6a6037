package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/analysis"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// Table writes the report as text.
func Table(w io.Writer, r *analysis.Report, o Options) error {
	if o.Width == 0 {
		o.Width = DefaultWidth
	}
	p := newPrinter(o)
	p.head(r)
	switch {
	case r.Mesh != nil:
		p.mesh(r)
		p.meshFoot(r)
	case r.Study == sample.StudyLadder:
		p.ladder(r)
		p.foot(r)
	default:
		p.groups(r)
		p.foot(r)
	}
	if _, err := io.WriteString(w, p.b.String()); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

// groups prints a table for each group of cells.
func (p *printer) groups(r *analysis.Report) {
	gs := groups(r.Cells)
	p.fit(r, gs)
	for _, g := range gs {
		p.group(r, g)
	}
}

// groups splits cells, which are sorted, where placement, load or backend
// change.
func groups(cells []analysis.Cell) [][]analysis.Cell {
	var out [][]analysis.Cell
	for i, c := range cells {
		if i == 0 || !sameGroup(c, cells[i-1]) {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], c)
	}
	return out
}

func sameGroup(a, b analysis.Cell) bool {
	return a.From == b.From && a.Load == b.Load && a.On == b.On
}

// backends are what a reader must know of each.
var backends = map[string]string{
	"lab":      "lab: private namespaces, nothing on this machine is touched",
	"endpoint": "endpoints: ways to what somebody else runs",
}

// backend is what a reader must know of who built the cells called on.
func backend(r *analysis.Report, on string) string {
	for _, c := range r.Cells {
		if e := c.Facts["engine"]; c.On == on && e != "" {
			return on + ": " + e + " on this machine, with containers of toll's own"
		}
		if s := c.Facts["server node"]; c.On == on && s != "" {
			return on + ": server on " + s + ", client on " + c.Facts["client node"]
		}
	}
	if text, ok := backends[on]; ok {
		return text
	}
	return on
}

// sayOn tells the backends apart where there are several.
func sayOn(r *analysis.Report, on string) string {
	if len(names(r.Cells, func(c analysis.Cell) string { return c.On })) < 2 {
		return ""
	}
	return " on " + on
}

func (p *printer) head(r *analysis.Report) {
	facts := machineFacts(r.Environment)
	for _, on := range slices.Sorted(slices.Values(names(r.Cells, func(c analysis.Cell) string { return c.On }))) {
		facts = append(facts, backend(r, on))
	}
	if r.Plan.Wire != nil {
		facts = append(facts, "wire "+r.Plan.Wire.String())
	}
	run := fmt.Sprintf("%s in %.0f s, %s", plural(r.Plan.Rounds, "round"), r.Plan.Elapsed, endedBy(r.Plan)) + noise(r)
	if r.Mesh != nil {
		var cluster string
		cluster, run = meshHead(r)
		facts = append(facts, cluster)
	}
	facts = append(facts, fmt.Sprintf("seed %d", r.Plan.Seed))
	p.wrapped("", strings.Join(facts, " · "), " · ")
	p.wrapped("", run, " · ")
}

// machineFacts are what a reader must know of the machine.
func machineFacts(e sample.Environment) []string {
	facts := []string{"toll " + e.Tool, "Linux " + e.Kernel, fmt.Sprintf("%d × %s", e.CPUs, e.CPUModel)}
	if e.Virtualization != "" {
		facts = append(facts, e.Virtualization)
	}
	return facts
}

func endedBy(p analysis.Plan) string {
	switch p.EndedBy {
	case sample.EndedByPrecision:
		return fmt.Sprintf("ended by precision (%g %%)", 100*p.Precision)
	case sample.EndedByBudget:
		return fmt.Sprintf("ended by the budget of %g s", p.Budget)
	case sample.EndedByRounds:
		return "as many as asked for"
	case sample.EndedBySize:
		return "ended because a results file has room for no more sweeps"
	case sample.EndedCutShort:
		return "cut short"
	case sample.EndedByFailure:
		return "cut short by failures"
	case sample.EndedByInterrupt:
		return "interrupted"
	}
	return "ended by " + p.EndedBy
}

// noise is the control's noise floor by load, the widest over placements.
func noise(r *analysis.Report) string {
	widest := map[string]float64{}
	var loads []string
	for _, g := range r.Control.Groups {
		f, ok := g.Floor[analysis.PrimaryOf(loadOf(r, g.Load), g.Shape)]
		if !ok {
			continue
		}
		if _, seen := widest[g.Load]; !seen {
			loads = append(loads, g.Load)
		}
		widest[g.Load] = max(widest[g.Load], f)
	}
	if len(loads) == 0 {
		return ""
	}
	parts := make([]string, len(loads))
	for i, l := range loads {
		parts[i] = fmt.Sprintf("%s ± %.1f %%", l, 100*widest[l])
	}
	upTo := ""
	if len(r.Control.Groups) > len(loads) { // each group has its own
		upTo = "up to "
	}
	return fmt.Sprintf(" · noise floor %s%s (control: %s against itself)", upTo, strings.Join(parts, ", "), r.Control.Mode)
}

func names(cells []analysis.Cell, of func(analysis.Cell) string) []string {
	var out []string
	for _, c := range cells {
		if n := of(c); !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

func (p *printer) group(r *analysis.Report, cells []analysis.Cell) {
	c := cells[0]
	arrow := "→"
	if loadOf(r, c.Load).Reverse {
		arrow = "←"
	}
	if loadOf(r, c.Load).Bidir {
		arrow = "↔"
	}
	left := fmt.Sprintf("%s %s container%s, %s", c.From, arrow, sayOn(r, c.On), describeLoad(r, c.Load))
	if r.Study == sample.StudyEndpoints {
		left = fmt.Sprintf("%s → %s, %s", c.From, served(c), describeLoad(r, c.Load))
	}
	p.line("")
	p.line(p.bold(left))
	above := func(int) string { return "" }
	if r.Study == sample.StudyScale {
		above = p.blocks(cells)
	}
	p.rows(p.columnsOf(r, c.Load), cells, above)
	if more := showing(c.Load).more; len(more) > 0 && r.Study != sample.StudyScale {
		p.more(p.columnsOf(r, c.Load)[0], worthShowing(more, cells), cells)
	}
}

// fit shortens hop names, narrows gaps and at last puts paths below their rows
// until the widest group's table fits, in all groups alike.
func (p *printer) fit(r *analysis.Report, gs [][]analysis.Cell) {
	widest := func() int {
		n := 0
		for _, g := range gs {
			cols := p.columnsOf(r, g[0].Load)
			n = max(n, p.tableWidth(measure(cols, grid(cols, g, p.short))))
		}
		return n
	}
	tries := layouts
	if r.Study == sample.StudyScale {
		tries = onlyGaps
	}
	for _, p.layout = range tries {
		if widest() <= p.width {
			return
		}
	}
}

func loadOf(r *analysis.Report, kind string) sample.Load {
	return sample.Plan{Loads: r.Plan.Loads}.LoadOf(kind)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if stem, ok := strings.CutSuffix(what, "y"); ok {
		what = stem + "ie"
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (p *printer) foot(r *analysis.Report) {
	if len(r.Findings)+len(r.Cells) > 0 {
		p.line("")
	}
	for _, f := range r.Findings {
		p.wrapped("  ", f, " ")
	}
	dim := func(s string) { p.line("  " + p.dim(s)) }
	for _, f := range []struct {
		key, format string
		show        func(string)
	}{
		{"proxy", "The proxy is %s.", dim},
		{"datapath", "Open vSwitch's datapath: %s.", dim},
		{"offloads", "Offloads: %s.", p.item},
		{"rules", "Rules: %s.", dim},
	} {
		for _, fact := range names(r.Cells, func(c analysis.Cell) string { return c.Facts[f.key] }) {
			if fact != "" {
				f.show(fmt.Sprintf(f.format, fact))
			}
		}
	}
	if r.Study == sample.StudyScale && len(r.Cells) > 0 {
		p.item(legend)
	}
	switch {
	case len(r.Cells) == 0:
	case r.Study == sample.StudyLadder:
		p.faint("  ", ladderLegend)
	case r.Study == sample.StudyEndpoints:
		p.faint("  ", wayLegend)
	default:
		p.faint("  ", "Ratios are taken round by round and then summarized: they need not be a quotient of two rows.")
	}
	if len(r.Failed) > 0 {
		p.line("")
		p.line(p.bold("Failed"))
		for _, f := range r.Failed {
			c := analysis.Cell{Mode: f.Mode, From: f.From, To: f.To, Tune: f.Tune, Shape: f.Shape}
			text := fmt.Sprintf("%s%s from %s, %s: %s", c.Name(), sayOn(r, f.On), f.From, f.Load, f.Reason)
			if f.Evidence != "" {
				text += ": " + f.Evidence
			}
			p.item(text)
		}
	}
	if len(r.Skipped) > 0 {
		p.line("")
		p.line(p.bold("Not measured here"))
		for _, text := range NotMeasured(r.Skipped, func(on string) string { return strings.TrimPrefix(sayOn(r, on), " ") }) {
			p.item(text)
		}
	}
	p.warnings(r)
}

// warnings lists the run's warnings and the cells', each text once with the
// rows that it is about.
func (p *printer) warnings(r *analysis.Report) {
	var texts []string
	rows := map[string][]string{}
	from := func(analysis.Cell) string { return "" }
	if len(names(r.Cells, func(c analysis.Cell) string { return c.From })) > 1 {
		from = func(c analysis.Cell) string { return " from " + c.From }
	}
	on := func(c analysis.Cell) string { return sayOn(r, c.On) }
	for _, w := range r.Warnings {
		texts = append(texts, w.Text)
	}
	for _, c := range r.Cells {
		for _, w := range c.Warnings {
			if r.Study == sample.StudyLadder && w.Code == "thin-tail" { // it shows no tail
				continue
			}
			if _, seen := rows[w.Text]; !seen {
				texts = append(texts, w.Text)
			}
			rows[w.Text] = append(rows[w.Text], c.Name()+on(c)+from(c)+" "+c.Load)
		}
	}
	if len(texts) == 0 {
		return
	}
	p.line("")
	p.line(p.bold("Warnings"))
	for _, t := range texts {
		switch n := len(rows[t]); {
		case n == 0:
			p.item(t)
		case n == len(r.Cells):
			p.item("all rows: " + t)
		case n > maxNamed:
			p.item(fmt.Sprintf("%d rows: %s", n, t))
		default:
			p.item(strings.Join(rows[t], ", ") + ": " + t)
		}
	}
}

// maxNamed is how many rows a warning names.
const maxNamed = 4
