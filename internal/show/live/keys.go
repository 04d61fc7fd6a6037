package live

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/view"
)

func (m *Model) press(k string) {
	if m.asking {
		m.answer(k)
		return
	}
	switch k {
	case "q":
		if m.running {
			m.asking = true
		} else {
			m.outcome = closed
		}
		return
	case "?", "h":
		m.turn(help)
		return
	case "w":
		m.turn(doubts)
		return
	case "esc", "left", "backspace":
		m.page = tables
		m.follow = true
		return
	}
	if m.page == tables {
		m.pressTables(k)
		return
	}
	m.pressText(k)
}

func (m *Model) answer(k string) {
	switch k {
	case "s":
		m.outcome = Stopped
	case "p":
		m.outcome = closed
	case "esc", "q", "c", "n", "enter":
		m.asking = false
	}
}

// turn shows a page or, if that page is already shown, the tables.
func (m *Model) turn(to page) {
	if m.page == to {
		m.page, m.follow = tables, true
		return
	}
	m.page = to
	m.scroll[to] = 0
}

func (m *Model) pressTables(k string) {
	switch k {
	case "down", "j", "tab":
		m.move(1)
	case "up", "k", "shift+tab":
		m.move(-1)
	case "pgdown", "space", "ctrl+d":
		m.move(max(1, m.body()/2))
	case "pgup", "ctrl+u":
		m.move(-max(1, m.body()/2))
	case "home", "g":
		m.move(-len(m.keys))
		m.scroll[tables] = 0
	case "end", "G":
		m.move(len(m.keys))
		m.scroll[tables], m.follow = unbounded, false
	case "enter", "right", "l":
		if m.row() != nil {
			m.moved = true
			m.turn(details)
		}
	case "s":
		all := view.Sortings()
		m.sort(all[(slices.Index(all, m.sorting)+1)%len(all)], false)
	case "r":
		m.sort(m.sorting, !m.reversed)
	}
	for n, s := range view.Sortings() {
		if k == string(rune('1'+n)) {
			m.sort(s, false)
		}
	}
}

func (m *Model) sort(by view.Sorting, reversed bool) {
	m.sorting, m.reversed, m.follow, m.stale = by, reversed, true, true
	m.arrange()
}

func (m *Model) move(by int) {
	all := m.keys
	at := slices.Index(all, m.at)
	to := min(max(0, at+by), len(all)-1)
	if len(all) == 0 || to == at { // scroll to what is above or below the rows
		m.scroll[tables], m.follow = m.scroll[tables]+by, false
		return
	}
	m.at, m.moved, m.follow = all[to], true, true
}

const unbounded = 1 << 30

func (m *Model) pressText(k string) {
	top := &m.scroll[m.page]
	switch k {
	case "down", "j":
		*top++
	case "up", "k":
		*top--
	case "pgdown", "space", "ctrl+d", "right":
		*top += max(1, m.body()-1)
	case "pgup", "ctrl+u":
		*top -= max(1, m.body()-1)
	case "home", "g":
		*top = 0
	case "end", "G":
		*top = unbounded
	case "enter":
		m.page, m.follow = tables, true
	}
}

func (m Model) helpPage() document.Document {
	keys := [][2]string{
		{"↑ ↓  j k", "pick a row, or scroll"},
		{"PgUp PgDn", "half a page up, down"},
		{"Home End", "the first row, the last"},
		{"Enter", "the row's details: rounds, percentiles, hops, CPU time"},
		{"Esc", "back to the tables"},
		{"s", "sort: as in the report, by mode, value, verdict, price"},
		{"1 … 5", "pick one of these orders"},
		{"r", "reverse the order"},
		{"w", "what was not measured, and all warnings"},
		{"?", "this help"},
	}
	if m.running {
		keys = append(keys, [2]string{"q", "quit: asks whether to stop the run"},
			[2]string{"Ctrl-C", "stop the run, and print what there is"})
	} else {
		keys = append(keys, [2]string{"q", "quit"})
	}
	t := document.Table{Level: 1, Columns: make([]document.Column, 2)}
	for _, k := range keys {
		t.Rows = append(t.Rows, document.Row{Cells: document.Texts(k[0], k[1])})
	}
	words := func(s string) document.Paragraph {
		return document.Paragraph{Level: 1, Text: document.Plainly(s)}
	}
	d := document.Document{Sections: []document.Section{
		{Title: document.Strongly("Keys"), Blocks: []document.Block{t}}}}
	read := document.Section{Title: document.Strongly("How to read it")}
	read.Add(words(
		"● is the ratio to the baseline, ─ its 95 % interval, │ the baseline; a difference between the dots counts as the same. In columns of several placements, = is the same, ? unclear, ~ varies. Every order except by mode puts the best first."))
	if m.running {
		read.Add(words(
			"During a measurement the screen stands still, because drawing costs CPU time. It is redrawn between " +
				"epochs and visits, and keys take effect then; q and Ctrl-C take effect at once."))
	}
	d.Sections = append(d.Sections, read)
	return d
}
