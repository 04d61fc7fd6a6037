package live

import (
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

// A run's first epoch may be untraced: until others are, its rows are a comparison's.
func TestTrace(t *testing.T) {
	trips := []judgetest.Trip{judgetest.HostTrip(), judgetest.HostTrip(), judgetest.BridgeTrip()}
	run := judgetest.New(t, judgetest.Trio(mode.Bridge, "rr")...).Trace(1, 4, trips,
		sample.Untraced)
	show := func() Model {
		run.File.Truncated = true
		return New("toll trace bridge", true, false, 80, 24).With(State{
			Report: judge.SoFar(run.File), Step: &Progress{Next: "an epoch of rr", Total: 30}})
	}
	first := func(m Model) string {
		checkLines(t, m, m.Lines())
		i := slices.IndexFunc(m.Lines(), func(l string) bool { return strings.HasPrefix(l, "▸") })
		if i < 0 {
			t.Fatalf("no row is picked:\n%s", strings.Join(m.Lines(), "\n"))
		}
		return m.Lines()[i]
	}
	if got := first(show()); !strings.HasPrefix(got, "▸ host ") {
		t.Errorf("before an epoch was traced the first row is %q", got)
	}
	run.Trace(2, 4, trips)
	m := show()
	if got := first(m); !strings.HasPrefix(got, "▸ programs, system calls ") {
		t.Errorf("the first row is %q", got)
	}
	for m.sorting != "price" {
		m = m.keysPressed("s")
	}
	if m = m.keysPressed("r", "home"); !strings.HasPrefix(first(m), "▸ bridge ") {
		t.Errorf("the most expensive part is %q", first(m))
	}
	lines := func(want string, keys ...string) string {
		t.Helper()
		m = m.keysPressed(keys...)
		got := strings.Join(m.Lines(), "\n")
		if !testgolden.HasLine(got, want) {
			t.Errorf("no line %q in %q", want, got)
		}
		return got
	}
	if got := lines("Segments of bridge's bridge, in order", "enter"); strings.Contains(got,
		"TCP/IP out") {
		t.Errorf("a part's details have other segments:\n%s", got)
	}
	lines("Round by round, 43.9 to 48.6 µs", "down", "down", "down", "down")
	lines("Every segment of bridge's round trip, in order", "esc", "s", "s", "end", "up", "enter")
}
