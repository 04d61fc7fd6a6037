// Package live is the screen of a run in progress or of a results file. The model is pure: it has
// no clock and does no I/O, and its state depends only on the messages.
package live

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/show/view"
)

// State reports what is known and how far a run has come.
type State struct {
	// nil: the previous judgement stays
	Report judge.Report
	// nil without a run in progress
	Step *Progress
	// about the file; "": none
	Note string
}

type Progress struct {
	Next           string
	Elapsed, Total float64 // seconds; Total is an upper bound
}

type Outcome int

// closed ends only the screen; the run goes on.
const (
	Undecided Outcome = iota
	closed
	Stopped // the run should end with the results so far
)

type page int

const (
	tables page = iota
	details
	doubts
	help
	pages // the number of pages
)

// Model is the screen. It is a tea.Model.
type Model struct {
	name          string // of the run or file
	running       bool   // a run in progress, not a file
	color         bool
	width, height int

	report judge.Report // nil: nothing is known yet
	step   *Progress
	note   string
	parts  []view.Part // in the report's order
	stale  bool        // laid is out of date

	sorting  view.Sorting
	reversed bool
	sorted   []view.Part // in the order shown
	keys     []key       // of all rows, from top to bottom
	at       key         // the picked row
	moved    bool        // by the user; if not, the first row is picked
	page     page
	scroll   [pages]int // first line shown of each page
	follow   bool       // keep the picked row visible
	asking   bool       // whether to stop the run
	lines    []string
	laid     laid

	doubts  []string
	facts   string
	seen    map[string]bool // warnings shown before
	newest  string
	outcome Outcome
}

type key struct {
	name string
	nth  int // among rows of that name
}

// New returns the screen of a run in progress or of a file. Sizes are in columns and lines.
func New(name string, running, color bool, width, height int) Model {
	m := Model{name: name, running: running, color: color, width: width, height: height,
		sorting: view.AsReported, follow: true, seen: map[string]bool{}}
	m.settle()
	return m
}

// With returns the model in the given state.
func (m Model) With(s State) Model {
	m.take(s)
	m.settle()
	return m
}

// Outcome returns the user's decision.
func (m Model) Outcome() Outcome { return m.outcome }

// Urgent reports whether the screen asks a question, and should be drawn even during a measurement.
func (m Model) Urgent() bool { return m.asking }

func (m Model) Init() tea.Cmd { return nil }

// Update handles a State, a key or a new size, and ignores other messages.
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

func (m *Model) take(s State) {
	m.step, m.note = s.Step, s.Note
	if s.Report == nil {
		return
	}
	m.report, m.parts, m.stale = s.Report, view.Parts(s.Report), true
	m.arrange()
	m.seen = cloned(m.seen)
	all := view.Doubts(s.Report)
	m.doubts, m.facts = all, view.RunFacts(s.Report)
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

func (m *Model) arrange() {
	m.sorted = m.parts
	if m.sorting != view.AsReported || m.reversed {
		m.sorted = make([]view.Part, len(m.parts))
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

func rowName(r view.PartRow) string {
	if len(r.Cells) == 0 {
		return r.Name
	}
	c := r.Cells[0]
	return r.Name + "\x00" + string(c.From) + "\x00" + c.On + "\x00" + c.Load + "\x00" + c.Pin
}

// row returns the picked row, or nil.
func (m Model) row() *view.PartRow {
	i := slices.Index(m.keys, m.at)
	for _, p := range m.sorted {
		if i >= 0 && i < len(p.Rows) {
			return &p.Rows[i]
		}
		i -= len(p.Rows)
	}
	return nil
}
