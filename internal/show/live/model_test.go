package live

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/view"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

// modes are in the order of the file's cells, with Gbit/s for bulk and µs for rr.
var modes = []struct {
	name     mode.Name
	bulk, rr float64
}{{mode.Host, 30, 20}, {mode.Host, 30, 20}, {mode.Bridge, 28.8, 22}, {mode.PublishNAT, 26.1, 24},
	{mode.PublishProxy, 12, 61}}

func file(t testing.TB, rounds int) *sample.File {
	var cells []sample.Cell
	var values []float64
	for _, load := range []string{"bulk", "rr"} {
		for i, m := range modes {
			c := judgetest.HostCell(m.name, load)
			c.Control = i == 1
			cells = append(cells, c)
			values = append(values, map[string]float64{"bulk": m.bulk, "rr": m.rr}[load])
		}
	}
	share := make([]float64, len(cells))
	for i := range share {
		share[i] = 0.004 * float64(1+i%5)
	}
	r := judgetest.New(t, cells...)
	r.Rounds(rounds, judgetest.Noisy(share, values...), func(v *sample.Visit) {
		v.Hops = []sample.HopReading{{Kind: "veth", Name: "veth-server", Where: "server container",
			After: sample.Counters{ForwardBytes: 4_000_000_000, ForwardPackets: 90_000,
				BackwardBytes: 6_000_000, BackwardPackets: 80_000}}}
	})
	r.File.Header.Plan.Same = 0.03
	return r.File
}

// screen returns a run's screen or, if step is nil, a file's.
func screen(t testing.TB, rounds, width, height int, step *Progress) Model {
	t.Helper()
	name := "toll view · run.jsonl"
	if step != nil {
		name = "toll compare"
	}
	return New(name, step != nil, false, width, height).With(
		State{Report: judge.Judge(file(t, rounds)), Step: step})
}

func (m Model) keysPressed(names ...string) Model {
	for _, n := range names {
		next, _ := m.Update(keyOf(n))
		m = next.(Model)
	}
	return m
}

var named = map[string]rune{"up": tea.KeyUp, "down": tea.KeyDown, "enter": tea.KeyEnter,
	"esc": tea.KeyEscape, "end": tea.KeyEnd, "home": tea.KeyHome,
	"pgdown": tea.KeyPgDown, "pgup": tea.KeyPgUp, "space": tea.KeySpace, "left": tea.KeyLeft,
	"right": tea.KeyRight, "tab": tea.KeyTab}

func keyOf(name string) tea.KeyPressMsg {
	if code, ok := named[name]; ok {
		return tea.KeyPressMsg{Code: code}
	}
	r := []rune(name)[0]
	return tea.KeyPressMsg{Code: r, Text: name}
}

func golden(t *testing.T, name string, m Model) {
	t.Helper()
	lines := m.Lines()
	checkLines(t, m, lines)
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimRight(l, " ") + "\n")
	}
	testgolden.Check(t, name+".txt", b.String())
}

func checkLines(t testing.TB, m Model, lines []string) {
	t.Helper()
	if len(lines) != max(0, m.height) {
		t.Fatalf("%d lines on a screen of %d", len(lines), m.height)
	}
	for _, l := range lines {
		if w := ansi.StringWidth(l); w > max(0, m.width) {
			t.Fatalf("%d columns on a screen of %d: %q", w, m.width, l)
		}
		for _, r := range ansi.Strip(l) {
			if !unicode.IsPrint(r) {
				t.Fatalf("%U in %q", r, l)
			}
		}
	}
}

func TestScreens(t *testing.T) {
	for _, size := range [][2]int{{60, 24}, {80, 24}, {120, 40}} {
		m := screen(t, 12, size[0], size[1], nil)
		name := func(page string) string { return fmt.Sprintf("%s-%d", page, size[0]) }
		golden(t, name("tables"), m)
		golden(t, name("details"), m.keysPressed("down", "down", "enter"))
		golden(t, name("latency"), m.keysPressed("end", "up", "enter"))
		golden(t, name("help"), m.keysPressed("?"))
		golden(t, name("warnings"), m.keysPressed("w"))
		golden(t, name("price"), m.keysPressed("s", "s", "s", "s", "r"))
	}
}

func TestRun(t *testing.T) {
	m := New("toll compare", true, false, 80, 24)
	golden(t, "run-0", m)
	for _, rounds := range []int{2, 12} {
		m = m.With(State{Report: judge.Judge(file(t, rounds)),
			Step: &Progress{Next: fmt.Sprintf("round %d, 1 of 2: an epoch of bulk", rounds+1),
				Elapsed: 5 * float64(rounds), Total: 60}})
		golden(t, fmt.Sprintf("run-%d", rounds), m)
	}
	m = m.keysPressed("q")
	if !m.Urgent() {
		t.Error("the question waits for the epoch's end")
	}
	golden(t, "run-asks", m)
	if m := m.keysPressed("esc"); m.Urgent() || m.Outcome() != Undecided {
		t.Errorf("after Esc: asks %t, %v", m.Urgent(), m.Outcome())
	}
	for key, want := range map[string]Outcome{"s": Stopped, "p": closed} {
		next, cmd := m.Update(keyOf(key))
		if got := next.(Model).Outcome(); got != want || cmd == nil {
			t.Errorf("%s: %v, want %v and the end", key, got, want)
		}
	}
}

// The table of another load that appears above must not move the picked row. Until the user picks
// one, it is the first.
func TestMoreTables(t *testing.T) {
	whole := file(t, 6)
	rr := *whole // as if rr had been measured first
	rr.Truncated, rr.Visits = true, nil
	for _, v := range whole.Visits {
		if whole.Header.Plan.Cells[v.Cell].Load == "rr" {
			rr.Visits = append(rr.Visits, v)
		}
	}
	m := New("toll compare", true, false, 80, 24).With(State{Report: judge.SoFar(&rr)})
	if len(m.parts) != 1 || len(m.keys) != 4 {
		t.Fatalf("%d tables, %d rows", len(m.parts), len(m.keys))
	}
	all := State{Report: judge.Judge(whole)}
	if first := m.With(all); first.row().Cells[0].Load != "bulk" {
		t.Error("the first row is not picked")
	}
	picked := m.keysPressed("down").With(all)
	if c := picked.row().Cells[0]; c.Load != "rr" || c.Mode != "bridge" {
		t.Errorf("%s %s is picked", c.Mode, c.Load)
	}
	pickedLine(t, picked)
}

// For a file, q ends the screen at once.
func TestQuit(t *testing.T) {
	next, cmd := screen(t, 6, 80, 24, nil).Update(keyOf("q"))
	if next.(Model).Outcome() != closed || cmd == nil {
		t.Errorf("%v, quits %t", next.(Model).Outcome(), cmd != nil)
	}
}

func pickedLine(t *testing.T, m Model) string {
	t.Helper()
	i := slices.IndexFunc(m.Lines(), func(l string) bool { return strings.HasPrefix(l, "▸") })
	if i < 0 {
		t.Fatalf("no row is picked:\n%s", strings.Join(m.Lines(), "\n"))
	}
	return m.Lines()[i]
}

func TestSort(t *testing.T) {
	m := screen(t, 12, 80, 14, nil).keysPressed("down", "down")
	want := pickedLine(t, m)
	if !strings.Contains(want, "publish-nat") && !strings.Contains(want, "-p ") {
		t.Fatalf("picked %q", want)
	}
	orders := map[view.Sorting]string{}
	for range view.Sortings() {
		m = m.keysPressed("s")
		if got := pickedLine(t, m); got != want {
			t.Errorf("sorted by %s the row is %q, not %q", m.sorting, got, want)
		}
		var names []string
		for _, r := range m.sorted[0].Rows {
			names = append(names, string(r.Cells[0].Mode))
		}
		orders[m.sorting] = strings.Join(names, " ")
	}
	for by, order := range map[view.Sorting]string{
		view.ByMode:    "bridge host publish-nat publish-proxy",
		view.ByValue:   "host bridge publish-nat publish-proxy",
		view.ByVerdict: "host bridge publish-nat publish-proxy",
		view.ByPrice:   "host bridge publish-nat publish-proxy",
	} {
		if orders[by] != order {
			t.Errorf("by %s: %s, want %s", by, orders[by], order)
		}
	}
	if first := m.keysPressed("3", "r").sorted[0].Rows[0].Cells[0].Mode; first != "publish-proxy" {
		t.Errorf("reversed: %s is first", first)
	}
	if got := pickedLine(t, m.With(State{Report: judge.Judge(file(t, 14))})); !strings.HasPrefix(got, want[:20]) {
		t.Errorf("with more rounds the row is %q, not %q", got, want)
	}
}

func TestEveryRowIsShown(t *testing.T) {
	for _, height := range []int{6, 10, 24, 60} {
		m := screen(t, 6, 80, height, nil)
		seen := map[string]bool{}
		for range m.keys {
			seen[pickedLine(t, m)] = true
			m = m.keysPressed("down")
		}
		if len(seen) != 8 {
			t.Errorf("%d lines: %d rows were picked", height, len(seen))
		}
		m = m.keysPressed("home")
		if top := m.Lines(); height >= 24 && !slices.Contains(top,
			"Which network mode, by throughput and median latency?") {
			t.Errorf("%d lines: Home does not show the answer:\n%s", height,
				strings.Join(top, "\n"))
		}
	}
}

func TestOtherStudies(t *testing.T) {
	for _, name := range []sample.Study{sample.StudyScale, sample.StudyLadder,
		sample.StudyEndpoints} {
		f := file(t, 6)
		f.Header.Plan.Study = name
		m := New("run.jsonl", false, false, 80, 24).With(State{Report: judge.Judge(f)})
		checkLines(t, m, m.Lines())
		if len(m.keys) == 0 {
			t.Errorf("%s: no rows", name)
		}
		m = m.keysPressed("down", "enter")
		checkLines(t, m, m.Lines())
	}
	f := file(t, 0)
	m := New("run.jsonl", false, false, 80, 24).With(State{Report: judge.Judge(f)}).keysPressed(
		"down", "enter", "w", "end")
	checkLines(t, m, m.Lines())
}

func TestColor(t *testing.T) {
	plain := screen(t, 12, 80, 30, nil)
	colored := plain
	colored.color, colored.stale = true, true
	colored.settle()
	for i, l := range colored.Lines() {
		if got, want := strings.TrimRight(ansi.Strip(l), " "), strings.TrimRight(plain.Lines()[i], " "); got != want {
			t.Errorf("%q in colour is %q", want, got)
		}
	}
}
