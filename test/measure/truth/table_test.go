package truth

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

func TestMarkdown(t *testing.T) {
	out := table{title: "A title", text: "What it is.", head: []string{"a", "b"}}
	out.add(noWord, "1", "2")
	out.add(yes, "3", "4")
	want := "### A title\n\nWhat it is.\n\n| a | b | holds |\n|---|---|---|\n| 1 | 2 |  |\n| 3 " +
		"| 4 | yes |\n"
	if diff := cmp.Diff(want, out.markdown()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestHolds(t *testing.T) {
	for _, c := range []struct {
		name string
		rows []verdict
		want bool
	}{
		{"nothing", nil, false},
		{"nothing-said", []verdict{noWord}, false},
		{"all", []verdict{noWord, yes, yes}, true},
		{"one-not", []verdict{yes, no, yes}, false},
		{"too-wide", []verdict{yes, tooWide}, false},
		{"unclear", []verdict{yes, unclear}, true},
		{"mostly-unclear", []verdict{yes, unclear, unclear}, false},
		{"all-unclear", []verdict{unclear}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out table
			for _, v := range c.rows {
				out.add(v)
			}
			if got := out.holds(); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestTally(t *testing.T) {
	const none = ""
	covers, misses := estimate{0.005, 0.01}, estimate{0.02, 0.01}
	for _, c := range []struct {
		name   string
		said   map[stats.Verdict]int
		missed int // of the first setting
		want   bool
	}{
		{"nothing", nil, 0, false},
		{"all", map[stats.Verdict]int{stats.Same: 200}, 0, true},
		{"unclear", map[stats.Verdict]int{stats.Same: 100, stats.Unclear: 100}, 0, true},
		{"one-worse-of-200", map[stats.Verdict]int{stats.Same: 199, stats.Worse: 1}, 1, true},
		{"two-wrong-of-200", map[stats.Verdict]int{
			stats.Same: 198, stats.Worse: 1, stats.Better: 1}, 2, false},
		{"one-worse-of-80", map[stats.Verdict]int{stats.Same: 79, stats.Worse: 1}, 1, false},
		{"no-result", map[stats.Verdict]int{stats.Same: 198, none: 2}, 0, false},
		{"one-of-twenty-misses", map[stats.Verdict]int{stats.Same: 200}, 10, true},
		{"one-of-ten-misses", map[stats.Verdict]int{stats.Same: 200}, 20, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got tally
			missed := 0
			for v, n := range c.said {
				for range n {
					e := covers
					if missed < c.missed {
						e, missed = misses, missed+1
					}
					got.add(v, e)
				}
			}
			if got.identical() != c.want {
				t.Errorf("got %v", !c.want)
			}
		})
	}
}

func TestQuestionTable(t *testing.T) {
	q := question{title: "T", text: "X.", what: "slices", loads: []string{rr}, limit: narrow,
		settings: []setting{{name: "4 ms"}, {name: "8 ms"}, {name: "16 ms"}, {name: "32 ms"}}}
	found := map[string][][]estimate{rr: {{{0.05, 0.01}, {0.05, 0.01}}, {{0.05, 0.01}},
		{{0.15, 0.01}}, nil}}
	var got []verdict
	out := q.table(found)
	for _, r := range out.rows {
		got = append(got, r.holds)
	}
	if diff := cmp.Diff([]verdict{noWord, yes, no, no}, got); diff != "" {
		t.Errorf("-want +got:\n%s\n%s", diff, out.markdown())
	}
	found[rr][0] = nil
	if out := q.table(found); out.holds() ||
		!testgolden.HasLine(out.markdown(), "| rr | 4 ms | no result |  | **no** |") {
		t.Error(out.markdown())
	}
}

func TestWidths(t *testing.T) {
	c := func(load string, base bool, r *analysis.Ratio) analysis.Cell {
		const primary = "throughput"
		return analysis.Cell{Cell: sample.Cell{Mode: "routed", Load: load},
			Baseline: base, Primary: primary,
			Metrics: map[string]analysis.Metric{primary: {Ratio: r}}}
	}
	r := &analysis.Report{Measured: analysis.Measured{
		Cells: []analysis.Cell{c(bulk, true, nil), c(bulk, false, ratio(0.9, 0.91, 0.92)),
			c(bulk, false, ratio(1.9, 2, 2.1)), c(rr, false, ratio(0.99, 1, 1.01))}}}
	by, rows := widths(r)
	if rows != 3 || by[bulk].String() != "±5.3 % (routed)" || halfWidth(by[rr].half) != "±1.0 %" {
		t.Errorf("%d rows, %v", rows, by)
	}
	r.Cells = append(r.Cells, c(rr, false, nil))
	if by, _ := widths(r); !math.IsInf(by[rr].half, 1) {
		t.Errorf("a row without an interval: %v", by)
	}
}
