package published

import (
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Study is one published comparison.
type Study struct {
	Name     string
	Title    string
	URL      string
	Setup    string   // measurements and machines, and the translation of its words
	Baseline string   // of its ratios
	Findings []string // its statements, as far as its figures show them
	// indexes of findings that hold if more than half of their ratios do; the others need all
	Mostly   []int
	Commands []Command
	Takes    string   // how long its long commands take; "": about a minute each
	Doubts   []string // its doubtful or inferred parts, and differences of any run here
	Streams  int      // connections of its bulk load
	Response float64  // seconds of a response of its baseline (stream)
	Pace     float64
	Claims   []Claim     // its statements without figures
	Wire     sample.Wire // between its machines

	ours    func(Row) (Ours, error)
	compare func([]Entry) []Comparison
}

// Command measures some of a study's cells on this machine.
type Command struct {
	Args string
	Save string
	// Elsewhere lists other places that measure some or all of the same cells.
	Elsewhere []Elsewhere
}

// Elsewhere measures a command's cells in another place than the lab.
type Elsewhere struct {
	Where string `json:"where"`   // and which of the cells
	Args  string `json:"command"` // in a result, the whole line
}

// String returns the command line.
func (c Command) String() string { return line(c.Args, c.Save) }

func line(args, save string) string { return "toll " + args + " --save " + save }

// Ours is the cell here that a row corresponds to.
type Ours struct {
	analysis.Figure
	Why     string // reason if no cell exists; "": one does
	Command int    // index of the command that measures it
	Table   string
	Label   string
}

// Entry is a row and its correspondence here.
type Entry struct {
	Row
	Ours
}

// Comparison is a ratio that a study published, of its row Of to its row To.
type Comparison struct {
	Of, To   int // indexes of the study's entries
	Ratio    float64
	Stated   bool // the study states the ratio itself; otherwise it is the quotient of two rows
	Finding  int  // index of the finding that rests on it
	Smallest bool // to the smallest shape of the same mode, instead of the study's baseline
	// Against is the figure to compare row Of with if it is not row To's cell.
	Against *analysis.Figure
}

// Names returns the studies' names in the order of the data.
func Names() []string {
	out := make([]string, len(studies))
	for i, s := range studies {
		out[i] = s.Name
	}
	return out
}

// Entries returns the study's rows with their correspondence here.
func (s Study) Entries(rows []Row) ([]Entry, error) {
	var out []Entry
	for _, r := range rows {
		if r.Study != s.Name {
			continue
		}
		o, err := s.ours(r)
		if err != nil {
			return nil, fmt.Errorf("%s: %s, %s: %w", s.Name, r.Mode, r.Shape, err)
		}
		out = append(out, Entry{r, o})
	}
	return out, nil
}

func at(m mode.Name, from mode.Placement, to mode.Target, load, metric string) Ours {
	return Ours{Figure: analysis.Figure{Metric: metric,
		Cell: sample.Cell{Mode: m, From: from, To: to, Load: load}}}
}

func find(es []Entry, is func(Entry) bool) int { return slices.IndexFunc(es, is) }

// quotient returns the ratio of row of to row to. ok is false if a row is missing, if they are the
// same, or if a figure was rounded to 0.
func quotient(es []Entry, of, to, finding int) (Comparison, bool) {
	if of < 0 || to < 0 || of == to || es[of].Value == 0 || es[to].Value == 0 {
		return Comparison{}, false
	}
	return Comparison{Of: of, To: to, Ratio: es[of].Value / es[to].Value, Finding: finding}, true
}
