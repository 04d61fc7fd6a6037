// Package live is the screen of a run that goes on, or of a results file: the tables of the
// answer as they form, the details of a row, and the keys. The model is pure: it has no clock,
// reads and writes nothing, and is the same for the same messages.
package live

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/show"
)

// State is a message: what is known, and where a run is.
type State struct {
	// Report is what is judged so far; nil: as before.
	Report judge.Report
	// Step is where a run is; nil: there is none, or it has ended.
	Step *Step
	// Note says something of the file, such as that it is being written; "": nothing.
	Note string
}

// Step is where a run is.
type Step struct {
	Next           string  // what comes next: the epoch, the cell
	Elapsed, Total float64 // s; Total is what it takes at most
}

// Outcome is what the user decided.
type Outcome int

// The outcomes. closed ends the screen alone: a run goes on.
const (
	Undecided Outcome = iota
	closed
	Stopped // the run is to end with what there is
)

// page is what the screen shows.
type page int

const (
	tables page = iota
	details
	doubts
	help
	pages // how many there are
)

// Model is the screen. It is a tea.Model.
type Model struct {
	name          string // of what is shown
	running       bool   // it is a run, which goes on
	color         bool
	width, height int

	report judge.Report // nil: nothing is known yet
	step   *Step
	note   string
	parts  []show.Part // in the report's order
	stale  bool        // laid is not what is to be shown

	sorting  show.Sorting
	reversed bool
	sorted   []show.Part // as they are shown
	keys     []key       // of all rows, from above
	at       key         // the row that is picked
	moved    bool        // by the user; as long as not, it is the first one
	page     page
	scroll   [pages]int // the first line that is shown
	follow   bool       // the picked row is to be shown
	asking   bool       // what q is to do
	lines    []string   // of the page
	laid     laid       // the tables, as they were laid out last

	doubts  []string
	facts   string          // of the run
	seen    map[string]bool // warnings
	newest  string
	outcome Outcome
}

// key names a row, wherever it is sorted to.
type key struct {
	name string
	nth  int // of those with that name
}

// New is the screen of a run that goes on, or of a file. It has so many columns and lines.
func New(name string, running, color bool, width, height int) Model {
	m := Model{name: name, running: running, color: color, width: width, height: height,
		sorting: show.AsReported, follow: true, seen: map[string]bool{}}
	m.settle()
	return m
}

// With is the screen with what is known.
func (m Model) With(s State) Model {
	m.take(s)
	m.settle()
	return m
}

// Outcome is what the user decided.
func (m Model) Outcome() Outcome { return m.outcome }

// Urgent reports whether the screen should be drawn at once, even while something is
// measured: it asks the user what to do.
func (m Model) Urgent() bool { return m.asking }

// Init does nothing.
func (m Model) Init() tea.Cmd { return nil }

// Update takes a message: a State, a key, a size.
func (m Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case State:
		m.take(msg)
	case tea.WindowSizeMsg:
		m.width, m.height, m.follow, m.stale = msg.Width, msg.Height, true, true
	case tea.KeyPressMsg:
		m.press(msg.String())
	default:
		return m, nil
	}
	m.settle()
	if m.outcome != Undecided {
		return m, tea.Quit
	}
	return m, nil
}

// take takes what is known.
func (m *Model) take(s State) {
	m.step, m.note = s.Step, s.Note
	if s.Report == nil {
		return
	}
	m.report, m.parts, m.stale = s.Report, show.Parts(s.Report), true
	m.arrange()
	m.seen = cloned(m.seen)
	all := show.Doubts(s.Report)
	m.doubts, m.facts = all, show.RunFacts(s.Report)
	if !slices.Contains(all, m.newest) {
		m.newest = ""
	}
	for _, text := range all {
		if !m.seen[text] {
			m.seen[text], m.newest = true, text
		}
	}
	if m.newest == "" && len(all) > 0 {
		m.newest = all[len(all)-1]
	}
	if m.row() == nil || !m.moved {
		m.at = key{}
		if len(m.keys) > 0 {
			m.at = m.keys[0]
		}
	}
}

func cloned(seen map[string]bool) map[string]bool {
	out := make(map[string]bool, len(seen))
	for k := range seen {
		out[k] = true
	}
	return out
}

// arrange sorts the parts, and names their rows.
func (m *Model) arrange() {
	m.sorted = m.parts
	if m.sorting != show.AsReported || m.reversed {
		m.sorted = make([]show.Part, len(m.parts))
		for i, p := range m.parts {
			m.sorted[i] = p.Sorted(m.sorting, m.reversed)
		}
	}
	m.keys = nil
	same := map[string]int{}
	for _, p := range m.sorted {
		for _, r := range p.Rows {
			name := rowName(r)
			m.keys = append(m.keys, key{name, same[name]})
			same[name]++
		}
	}
}

// rowName is what a row is called among all.
func rowName(r show.PartRow) string {
	if len(r.Cells) == 0 {
		return r.Name
	}
	c := r.Cells[0]
	return r.Name + "\x00" + c.From + "\x00" + c.On + "\x00" + c.Load + "\x00" + c.Pin
}

// row is the row that is picked; nil if there is none.
func (m Model) row() *show.PartRow {
	i := slices.Index(m.keys, m.at)
	for _, p := range m.sorted {
		if i >= 0 && i < len(p.Rows) {
			return &p.Rows[i]
		}
		i -= len(p.Rows)
	}
	return nil
}
