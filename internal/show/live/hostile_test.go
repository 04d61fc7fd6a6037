package live

import (
	"bytes"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

// A file may name its modes, hops and machines in any way.
func TestHostileFile(t *testing.T) {
	const evil = "\x1b[2J\x1b]0;owned\a\u202e\u009b31m\r\n日本語 👩‍👩‍👧‍👦 e\u0301 "
	f := file(t, 6)
	f.Header.Environment.Kernel = evil
	for i := range f.Header.Plan.Cells {
		if c := &f.Header.Plan.Cells[i]; c.Mode == mode.Bridge {
			c.Mode = mode.Name(evil + strings.Repeat("x", 300))
		}
	}
	for i := range f.Visits {
		f.Visits[i].Hops = []sample.HopReading{
			{Kind: evil, Name: evil, Where: evil, After: sample.Counters{ForwardBytes: 1 << 63}}}
		f.Visits[i].Throttled = i % 3
	}
	var b bytes.Buffer
	w := sample.NewWriter(&b)
	if err := w.Header(f.Header); err != nil {
		t.Fatal(err)
	}
	for _, v := range f.Visits {
		if err := w.Visit(v); err != nil {
			t.Fatal(err)
		}
	}
	read, err := sample.Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	for _, width := range []int{10, 60, 80, 200} {
		m := New("run.jsonl", false, true, width, 24).With(
			State{Report: judge.SoFar(read), Note: "no end yet"})
		for range m.keys {
			checkLines(t, m, m.Lines())
			details := m.keysPressed("enter")
			checkLines(t, details, details.Lines())
			m = m.keysPressed("down")
		}
		m = m.keysPressed("w")
		checkLines(t, m, m.Lines())
	}
}

func crowded(t testing.TB, n int) *sample.File {
	cells := []sample.Cell{judgetest.HostCell(mode.Host, "bulk")}
	values := []float64{30}
	for i := range n {
		c := judgetest.HostCell(mode.Bridge, "bulk")
		c.Tune = mode.Tunes("mtu=" + strings.Repeat("1", 1+i%5) + strings.Repeat("0", i/5%5))
		cells, values = append(cells, c), append(values, 20+float64(i%7))
	}
	return judgetest.New(t, cells...).Rounds(2, judgetest.Steady(values...)).File
}

func BenchmarkKey(b *testing.B) {
	m := New("run.jsonl", false, false, 100, 40).With(State{Report: judge.Judge(crowded(b, 2000))})
	if len(m.keys) < 1000 {
		b.Fatalf("%d rows", len(m.keys))
	}
	for b.Loop() {
		m = m.keysPressed("down")
		_ = m.Lines()
	}
}
