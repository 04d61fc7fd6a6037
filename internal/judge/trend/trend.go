// Package trend summarizes runs, and lists the ratios of the same cells over several of them. Runs
// at different times share no state of the machine, so it lists no figures.
package trend

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// Schema names the version of summaries, lists and trends.
const Schema = "bridgetoll.history/1"

// Layout must be raised when summaries get new content. It matters if two programs have the same
// version, such as "devel".
const Layout = 5

// Summary holds the known facts of a run, so that its file need not be read again.
type Summary struct {
	Schema  string       `json:"schema"`
	Judged  string       `json:"judged_by"` // version of the toll that judged it
	Layout  int          `json:"layout"`
	Tool    string       `json:"tool"` // version of the toll that measured
	Kernel  string       `json:"kernel"`
	Started time.Time    `json:"started"`
	Study   sample.Study `json:"study,omitzero"`
	Command []string     `json:"command,omitzero"` // as in the results file's header
	// same for the same cells and loads; "": never the same
	Plan     string   `json:"plan,omitempty"`
	Baseline string   `json:"baseline"`
	Modes    []string `json:"modes"`
	Loads    []string `json:"loads"`
	Swept    string   `json:"swept,omitempty"` // option and values of a sweep: "request=1,16k"
	On       []string `json:"on"`
	Rounds   int      `json:"rounds"`
	Elapsed  float64  `json:"elapsed_s"`
	Rows     []Row    `json:"rows"`
	CPU      string   `json:"cpu_model,omitempty"`
	Spreads  []Spread `json:"spreads,omitempty"`
	Bases    []Base   `json:"baselines,omitempty"`
}

// Row is a cell's ratio to the baseline in its primary metric.
type Row struct {
	Quantity
	Mode   string     `json:"mode"`
	Tune   mode.Tunes `json:"tune,omitempty"`
	Higher bool       `json:"higher_is_better,omitempty"`
	analysis.Judgement
}

// Summarize returns the summary of a judged run; version is the judging toll's.
func Summarize(h sample.Header, r *analysis.Report, version string) Summary {
	s := Summary{Schema: Schema, Layout: Layout, Judged: version, Tool: h.Environment.Tool,
		Kernel: h.Environment.Kernel, Started: h.Started, Study: h.Plan.Study,
		Baseline: h.Plan.Baseline,
		Modes:    []string{},
		Loads:    []string{},
		On:       []string{},
		Rounds:   r.Plan.Rounds,
		Elapsed:  r.Plan.Elapsed,
		Rows:     []Row{},
		Command:  h.Command, Plan: planKey(h.Plan),
		CPU: h.Environment.CPUModel, Spreads: spreadsOf(h.Plan, r.Control.Groups)}
	for _, l := range h.Plan.Loads {
		s.Loads = addNew(s.Loads, l.Kind) // a sweep has one for each point
	}
	if w := h.Plan.Sweep; w != nil {
		var points []string
		for _, p := range w.Points {
			points = append(points, p.Name)
		}
		s.Swept = w.Axis + "=" + strings.Join(points, ",")
	}
	for _, c := range h.Plan.Cells {
		s.Modes, s.On = addNew(s.Modes, c.Name()), addNew(s.On, c.On)
	}
	if m := h.Plan.Mesh; m != nil {
		s.Modes, s.On = []string{m.Mode}, []string{m.On}
	}
	s.Bases = basesOf(h.Plan.Foreign(), r)
	for _, c := range r.Cells {
		m := c.Metrics[c.Primary]
		x := m.Ratio
		if x == nil {
			continue
		}
		s.Rows = append(s.Rows, Row{Quantity: quantityOf(r, c), Mode: string(c.Mode), Tune: c.Tune,
			Higher: m.Higher, Judgement: x.Judgement()})
	}
	return s
}

// SummarizeServed returns the summary of requests that were watched, which has no loads and no
// ratios. Those to the same program at the same port are alike.
func SummarizeServed(x *sample.Served, version string) Summary {
	at := fmt.Sprintf("%s:%d", cmp.Or(x.Server.Process, "port"), x.Server.Port)
	if x.UDP {
		at += "/udp"
	}
	return Summary{Schema: Schema, Layout: Layout, Judged: version, Tool: x.Environment.Tool,
		Kernel: x.Environment.Kernel, Started: x.Started, Study: sample.StudyTrace,
		Command: x.Command, Plan: hashed("requests", at), Modes: []string{at}, Loads: []string{},
		On: []string{}, Rounds: 1, Elapsed: x.Elapsed, Rows: []Row{}, CPU: x.Environment.CPUModel}
}

// Watched reports whether the run watched requests instead of causing a load.
func (s Summary) Watched() bool { return s.Study == sample.StudyTrace && len(s.Loads) == 0 }

func addNew(list []string, x string) []string {
	if slices.Contains(list, x) {
		return list
	}
	return append(list, x)
}

// Read reads a summary that this version judged. ok is false for any other input, and for summaries
// of an older layout.
func Read(b []byte, version string) (s Summary, ok bool) {
	err := json.Unmarshal(b, &s)
	printable.Fields(&s) // text of files enters here
	s.Study = cmp.Or(s.Study, sample.StudyCompare)
	return s, err == nil && s.Schema == Schema && s.Judged == version && s.Layout == Layout
}

// Entry is a run of the history: @1 is the newest.
type Entry struct {
	Number int    `json:"number"`
	File   string `json:"file"`
	Size   int64  `json:"bytes"`
	Summary
	Error string `json:"error,omitempty"` // reason if it cannot be read
}

// Name returns the name that commands accept: "@1".
func (e Entry) Name() string { return fmt.Sprintf("@%d", e.Number) }

// List is the history, or a part of it.
type List struct {
	Schema string  `json:"schema"`
	Dir    string  `json:"directory"`
	Total  int     `json:"total"`
	Size   int64   `json:"size_bytes"` // of all runs
	Runs   []Entry `json:"runs"`
}

// Trends holds the same ratios over the runs of a history.
type Trends struct {
	Schema string  `json:"schema"`
	Dir    string  `json:"directory"`
	Lines  []Trend `json:"lines"`
}

// Trend is one ratio over runs, the oldest first.
type Trend struct {
	Quantity
	Baseline string  `json:"baseline"`
	Higher   bool    `json:"higher_is_better,omitempty"`
	Points   []Point `json:"points"`
}

// Point is the ratio of one run.
type Point struct {
	Run     int       `json:"run"`
	Started time.Time `json:"started"`
	analysis.Judgement
	// Changed lists the differences from the run before: "kernel 6.1 → 6.12".
	Changed []string `json:"changed,omitempty"`
}

// Of returns the ratios of runs, given the newest first. names are modes, variants or labels of
// rows; nil selects all.
func Of(l List, names []string) *Trends {
	out := &Trends{Schema: Schema, Dir: l.Dir, Lines: []Trend{}}
	last := map[int]Summary{} // by line
	for _, e := range slices.Backward(l.Runs) {
		for _, r := range e.Rows {
			if len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool {
				return name == r.Mode || name == r.Tune.Name(r.Mode) || name == r.Label
			}) {
				continue
			}
			k := slices.IndexFunc(out.Lines, func(t Trend) bool {
				return t.Quantity == r.Quantity && t.Baseline == e.Baseline
			})
			if k < 0 {
				out.Lines, k = append(out.Lines, Trend{Quantity: r.Quantity,
					Baseline: e.Baseline, Higher: r.Higher}), len(out.Lines)
			}
			p := Point{Run: e.Number, Started: e.Started, Judgement: r.Judgement}
			if before, ok := last[k]; ok {
				p.Changed = changed(before, e.Summary)
			}
			last[k] = e.Summary
			out.Lines[k].Points = append(out.Lines[k].Points, p)
		}
	}
	return out
}

func changed(before, now Summary) (out []string) {
	for _, f := range []struct{ what, was, is string }{{"kernel", before.Kernel, now.Kernel},
		{"toll", before.Tool, now.Tool}} {
		if f.was != f.is {
			out = append(out, fmt.Sprintf("%s %s → %s", f.what, f.was, f.is))
		}
	}
	return out
}
