package live

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/show/view"
)

func (m Model) View() tea.View {
	v := tea.NewView(strings.Join(m.Lines(), "\n"))
	v.AltScreen = true
	return v
}

const footLines = 2

func (m Model) headLines() int {
	const low, tight, roomy = 20, 2, 3
	if m.height < low {
		return tight
	}
	return roomy
}

func (m Model) body() int { return max(0, m.height-m.headLines()-footLines) }

// Lines returns exactly as many lines as the screen has, none wider than the screen.
func (m Model) Lines() []string {
	lines := append(m.head(), make([]string, m.headLines()-len(m.head()))...)
	lines = append(lines, m.shown()...)
	for len(lines) < m.height-footLines {
		lines = append(lines, "")
	}
	lines = append(lines, m.foot()...)
	if len(lines) > m.height {
		lines = lines[:max(0, m.height)]
	}
	for i, l := range lines {
		if ansi.StringWidth(l) > m.width {
			lines[i] = ansi.Truncate(l, max(0, m.width), "…")
		}
	}
	return lines
}

func (m Model) head() []string {
	right := ""
	switch {
	case m.step != nil:
		right = fmt.Sprintf("%.0f s left", max(0, m.step.Total-m.step.Elapsed))
	case m.note != "":
		right = m.note
	}
	name := ansi.Truncate(m.name, max(0, m.width-ansi.StringWidth(right)-2), "…")
	space := max(1, m.width-ansi.StringWidth(name)-ansi.StringWidth(right))
	first := m.strong(name) + strings.Repeat(" ", space) + right
	switch {
	case m.step != nil:
		return []string{first, m.faint(m.bar() + m.step.Next)}
	case m.report != nil && m.note != "":
		return []string{first, m.faint(fmt.Sprintf(
			"%d complete rounds so far", m.report.Base().Plan.Rounds))}
	case m.report != nil:
		return []string{first, m.faint(m.facts)}
	}
	return []string{first, ""}
}

// bar returns a progress bar, or "" if the screen is narrow or the time unknown.
func (m Model) bar() string {
	const cells, roomy = 10, 50
	if m.width < roomy || !(m.step.Total > 0) {
		return ""
	}
	done := min(max(0, int(cells*m.step.Elapsed/m.step.Total)), cells)
	return "[" + strings.Repeat("█", done) + strings.Repeat("░", cells-done) + "] "
}

func (m Model) shown() []string {
	if m.asking {
		return m.question()
	}
	top := m.scroll[m.page]
	out := slices.Clone(m.lines[min(top, len(m.lines)):min(len(m.lines), top+m.body())])
	if m.page != tables {
		return out
	}
	for i := range out {
		if k, is := m.laid.rows[top+i]; is && m.keys[k] == m.at {
			out[i] = m.picked(out[i])
		}
	}
	return out
}

// settle makes the page's lines and scrolls to keep the picked row visible.
func (m *Model) settle() {
	top := &m.scroll[m.page]
	if m.page != tables {
		m.lines = m.text(m.page)
	} else {
		if m.stale || m.laid.lines == nil {
			m.laid, m.stale = m.layOut(), false
		}
		m.lines = m.laid.lines
		first, last := m.laid.lineOf(slices.Index(m.keys, m.at))
		switch {
		case !m.follow || first < 0:
		case last < m.body() && m.at == m.keys[0]: // show what is above the tables, too
			*top = 0
		case first < *top:
			*top = first
		case last >= *top+m.body():
			*top = last - m.body() + 1
		}
	}
	*top = max(0, min(*top, len(m.lines)-m.body()))
}

type laid struct {
	lines  []string
	rows   map[int]int // by line: the index in Model.keys of its row
	places [][2]int    // by row: the first and last line to show
}

// lineOf returns the first and last line of a row, or -1 if the row is not shown. A table's first
// row includes the heads.
func (l laid) lineOf(row int) (first, last int) {
	if row < 0 || row >= len(l.places) {
		return -1, -1
	}
	return l.places[row][0], l.places[row][1]
}

func (m Model) layOut() laid {
	if m.report == nil {
		return laid{lines: []string{"", "  Nothing has been measured yet."}}
	}
	opts := format.Options{Color: m.color, Width: max(1, m.width)}
	if len(m.parts) == 0 { // a mesh, or a run without results
		lines, _ := format.Lines(view.Report(m.report), opts)
		return laid{lines: lines}
	}
	var d document.Document
	before, behind := view.Beside(m.report)
	if !m.running { // during a run, its answer would keep changing
		d.Sections = append(d.Sections, before...)
	}
	from := len(d.Sections)
	firsts := []int{0} // by part: the index of its first row
	for _, p := range m.sorted {
		d.Sections = append(d.Sections, p.Section)
		firsts = append(firsts, firsts[len(firsts)-1]+len(p.Rows))
	}
	d.Sections = append(d.Sections, behind...)
	lines, marks := format.Lines(d, opts)
	out := laid{lines: lines, rows: map[int]int{}, places: make([][2]int, len(m.keys))}
	for i := range out.places {
		out.places[i] = [2]int{-1, -1}
	}
	for _, mark := range marks {
		n := mark.Section - from
		if n < 0 || n >= len(m.sorted) || mark.Row >= len(m.sorted[n].Rows) {
			continue
		}
		row := firsts[n] + mark.Row
		out.rows[mark.Line] = row
		place := &out.places[row]
		if place[0] < 0 {
			place[0] = mark.Line
			if mark.Row == 0 {
				place[0] = max(0, mark.Line-titleLines)
			}
		}
		place[1] = mark.Line
	}
	return out
}

const titleLines = 3

func (m Model) picked(line string) string {
	plain := ansi.Strip(line)
	plain = "▸" + strings.TrimPrefix(plain, " ")
	if !m.color {
		return plain
	}
	return "\x1b[7m" + plain + strings.Repeat(" ", max(0, m.width-ansi.StringWidth(plain))) +
		"\x1b[0m"
}

func (m Model) text(p page) []string {
	opts := format.Options{Color: m.color, Width: max(1, m.width)}
	var d document.Document
	switch p {
	case details:
		row := m.row()
		if row == nil {
			return []string{"  This row has no result any more."}
		}
		d = view.Details(m.report, *row)
	case doubts:
		d = m.doubtsPage()
	case help:
		d = m.helpPage()
	}
	lines, _ := format.Lines(d, opts)
	return lines
}

func (m Model) doubtsPage() document.Document {
	none := document.Document{Sections: []document.Section{{Blocks: []document.Block{
		document.Paragraph{Level: 1, Text: document.Plainly("There are no warnings.")}}}}}
	if m.report == nil {
		return none
	}
	_, behind := view.Beside(m.report)
	if len(behind) == 0 {
		return none
	}
	return document.Document{Sections: behind}
}

func (m Model) question() []string {
	return []string{"", m.strong("  Stop the run?"), "",
		"  s    stop now, and print what there is (as Ctrl-C does)",
		"  p    close this screen, and show one line of progress",
		"  Esc  continue the run"}
}

func (m Model) foot() []string {
	if m.asking {
		return []string{"", m.faint("s stop  p progress line  Esc go on")}
	}
	return []string{m.status(), m.faint(m.keyLine())}
}

func (m Model) status() string {
	n := len(m.doubts)
	switch n {
	case 0:
		return ""
	case 1:
		return m.doubtful("! " + m.newest)
	}
	return m.doubtful(fmt.Sprintf("! %d warnings (w): %s", n, m.newest))
}

func (m Model) keyLine() string {
	if m.page != tables {
		return "↑↓ scroll  Esc back  ? help  q quit"
	}
	order := string(m.sorting)
	if m.reversed {
		order += ", reversed"
	}
	keys := fmt.Sprintf("↑↓ row  Enter details  s sort (%s)  ? help  q quit", order)
	if ansi.StringWidth(keys) > m.width {
		keys = fmt.Sprintf("Enter details  s sort (%s)  ? help  q", order)
	}
	if more := "  keys act between epochs"; m.running && ansi.StringWidth(keys+more) <= m.width {
		keys += more
	}
	return keys
}

func (m Model) strong(s string) string   { return m.styled("1", s) }
func (m Model) faint(s string) string    { return m.styled("2", s) }
func (m Model) doubtful(s string) string { return m.styled("33", s) }

func (m Model) styled(attribute, s string) string {
	if !m.color || s == "" {
		return s
	}
	return "\x1b[" + attribute + "m" + s + "\x1b[0m"
}
