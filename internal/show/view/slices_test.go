package view

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

// With slices, the intervals of ratios are symmetric.
func even(r *analysis.Report) *analysis.Report {
	for _, c := range r.Cells {
		if m := c.Metrics[c.Primary]; m.Ratio != nil {
			x := *m.Ratio
			x.High = 2*x.Median - x.Low
			m.Ratio = &x
			c.Metrics[c.Primary] = m
		}
	}
	return r
}

// adding gives each cell what it adds, as derived from its ratio with the same confidence.
func adding(r *analysis.Report, load string) *analysis.Report {
	base := 0.
	for _, c := range r.Cells {
		if c.Load != load {
			continue
		}
		m := c.Metrics[c.Primary]
		if c.Baseline {
			base = m.Median
			continue
		}
		x := *m.Ratio
		verdict := map[stats.Verdict]stats.Verdict{
			stats.Worse: stats.Costs, stats.Better: stats.Gains,
			stats.Same: stats.Nothing}[x.Verdict]
		m.Price = &analysis.Price{Unit: "s", Median: base * (x.Median - 1), Low: base * (x.Low - 1),
			High: base * (x.High - 1), N: x.N, Verdict: verdict}
		c.Metrics[c.Primary] = m
	}
	return r
}

func sliced() *analysis.Report {
	r := adding(even(usual()), "rr")
	for i := range r.Plan.Loads {
		r.Plan.Loads[i].Slice = 0.004
	}
	return r
}

// The added column must fit the same widths as before, and 80 columns.
func TestSlicedTable(t *testing.T) {
	mixed := sliced()
	mixed.Plan.Loads = append(mixed.Plan.Loads,
		sample.Load{Kind: "crr", Options: sample.Messages{Request: 1, Reply: 1}, Window: 0.25})
	mixed.Cells = append(mixed.Cells, connections(mode.Host, mode.ToLoopback, 18.2, 1, 0, ""),
		connections(mode.Bridge, mode.ToContainer, 16.9, 0.93, 0.02, stats.Worse))
	short := sliced()
	short.Cells, short.Failed, short.Findings, short.Skipped, short.Warnings = short.Cells[7:10],
		nil, nil, nil, nil
	for _, tt := range []struct {
		name   string
		report *analysis.Report
		width  int
	}{{"slices", sliced(), format.DefaultWidth}, {"at-80", sliced(), 80},
		{"slices-mixed", mixed, format.DefaultWidth}, {"slices-short", short, 80}} {
		t.Run(tt.name, func(t *testing.T) {
			got := table(t, tt.report, format.Options{Width: tt.width})
			if tt.name != "at-80" {
				golden(t, tt.name+".txt", got)
			}
			whole(t, Report(tt.report), got)
			for l := range strings.Lines(got) {
				if w := ansi.StringWidth(strings.TrimSuffix(l, "\n")); w > tt.width {
					t.Errorf("a line has %d columns: %s", w, l)
				}
			}
		})
	}
}

func TestAdded(t *testing.T) {
	for _, tt := range []struct {
		load, head, want string
	}{{"udp-rr", "µs", "+3.6 ±0.5"}, {"query", "µs", "+3.6 ±0.5"}, {"bulk", "", ""}} {
		r := head()
		r.Plan.Loads = []sample.Load{{Kind: tt.load, Window: 0.1}}
		base, bridge := trip(mode.Host, mode.ToLoopback, 15, 1, 0, ""),
			trip(mode.Bridge, mode.ToContainer, 18.6, 1.24, 0.03, stats.Worse)
		base.Load, bridge.Load = tt.load, tt.load
		r.Cells = []analysis.Cell{base, bridge}
		if _, ok := addedColumn(r, r.Cells); ok {
			t.Errorf("%s: a column of nothing", tt.load)
		}
		r = adding(even(r), tt.load)
		col, ok := addedColumn(r, r.Cells)
		if ok != (tt.head != "") {
			t.Errorf("%s: %v", tt.load, ok)
		}
		if !ok {
			continue
		}
		if got := col.cell(r.Cells[1]).Text; col.Head[1] != tt.head || got != tt.want ||
			col.cell(r.Cells[0]).Text != "0" {
			t.Errorf("%s: %q %s, want %s", tt.load, got, col.Head[1], tt.want)
		}
		r.Cells[1].Shape = sample.Shape{Servers: 1, Clients: 2, Procs: 1}
		if _, ok := addedColumn(r, r.Cells); ok {
			t.Errorf("%s: a crowd adds its queue", tt.load)
		}
	}
}

func TestLadderOfSlices(t *testing.T) {
	r := climbed()
	r.Plan.Loads[0].Slice = 0.016
	got := table(t, r, format.Options{})
	for _, want := range []string{
		"  A price is what the part after + costs over the mode before it, of the median " +
			"and the throughput",
		"    taken from rr in 3 epochs of slices of 16 ms, each slice against the other " +
			"mode's neighbouring",
		"    one; of CPU time likewise, with what others spent in the windows: prices need " +
			"not add up. ≤:"} {
		if !testgolden.HasLine(got, want) {
			t.Errorf("no line %q in %q", want, got)
		}
	}
}

func TestNoEpochs(t *testing.T) {
	r := head()
	r.Plan.Loads[0].Slice = 0.004
	if got := slicesInWords(r); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

func TestUnpairedWords(t *testing.T) {
	r := sliced()
	if text := written(t, "table", Report(r), format.Options{}); strings.Contains(text,
		"one after the other") {
		t.Errorf("it is not known: %s", text)
	}
	r.Unpaired = []analysis.Unpaired{{Load: "bulk", Rows: 3, Off: 0.041, Most: 0.18,
		Row: "publish-nat :lo", Width: 0.0123},
		{Load: "rr", Rows: 3, Off: 0.02, Most: 0.05, Row: "bridge", Width: 0.009}}
	want := "Measured one after the other instead of in turns, modes would have ratios " +
		"that are off by " +
		"4.1 % for bulk (at most 18 %, publish-nat :lo; in turns ±1.2 %), and by 2.0 % for rr " +
		"(at most 5.0 %, bridge; in turns ±0.9 %)."
	for _, f := range []string{"table", "html"} {
		if text := written(t, f, Report(r), format.Options{}); !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("not in the %s: %s", f, want)
		}
	}
}
