package view

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/difference"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/chart"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

func changed(t *testing.T) *difference.Report {
	t.Helper()
	measured := func(bridge, proxy float64, more ...sample.Cell) *sample.File {
		cells := append(judgetest.Trio(mode.Bridge, workload.Bulk),
			judgetest.HostCell(mode.PublishProxy, workload.Bulk))
		cells = append(append(cells, judgetest.Trio(mode.Bridge, workload.RR)...), more...)
		noise := []float64{0.004, 0.006, 0.005, 0.3, 0.004, 0.006, 0.005, 0.01}
		f := judgetest.New(t, cells...).Rounds(
			12, judgetest.Noisy(noise, 40, 40, 40*bridge, 40*proxy, 20, 20, 24, 21)).File
		f.Header.Started = time.Date(2026, 11, 23, 5, 0, 0, 0, time.UTC)
		f.Header.Environment = sample.Environment{
			Tool: "0.1.0", Kernel: "6.1.0", CPUs: 2, CPUModel: "AMD EPYC"}
		return f
	}
	old := measured(0.8, 0.4, judgetest.HostCell(mode.Routed, workload.RR))
	now := measured(0.6, 0.4)
	now.Header.Environment.Kernel, now.Header.Environment.Tool = "6.12.0", "0.2.0"
	for i := range now.Header.Paths {
		now.Header.Paths[i].Sysctls = map[string]string{"net.ipv4.tcp_rmem": "4096 131072 6291456"}
	}
	now.Header.Paths[1].Facts = map[string]string{"rules": "Docker Engine 29.0.0"}
	r, err := difference.Judge(difference.Input{Name: "old.jsonl", File: old},
		difference.Input{Name: "new.jsonl", File: now})
	if err != nil {
		t.Fatal(err)
	}
	r.FailAbove(0.05)
	return r
}

func TestDifference(t *testing.T) {
	r := changed(t)
	for name, width := range map[string]int{"difference": 0, "difference-60": 60,
		"difference-summary": 80} {
		d := Difference(r)
		if width == 80 {
			d = DifferenceSummary(r)
		}
		b := written(t, "table", d, format.Options{Width: width})
		whole(t, d, b)
		if width != 60 {
			golden(t, name+".txt", b)
		}
		for _, l := range strings.Split(b, "\n") {
			if width > 0 && len([]rune(l)) > width {
				t.Errorf("%s: wider than %d columns: %q", name, width, l)
			}
		}
	}
}

// A change without an interval is marked as such in every layout, and on the page.
func TestChangeOfFewRounds(t *testing.T) {
	x := difference.Change{Median: 1.12, N: 3, Verdict: stats.Unclear,
		Old: analysis.Judgement{Median: 1, N: 3}, New: analysis.Judgement{Median: 1.12, N: 3}}
	c := changeRow(difference.Cell{Label: "bridge"}, "p50", document.Cell{}, document.Cell{},
		x).Cells[4]
	if c.Text != "+12 (?)" || c.Short != "+12 (?)" {
		t.Errorf("%q, short %q", c.Text, c.Short)
	}
	r := changed(t)
	r.Cells = []difference.Cell{{Cell: judgetest.HostCell(mode.Bridge, workload.RR),
		Label:   "bridge",
		Primary: workload.LatencyP50, Metrics: map[string]difference.Metric{
			workload.LatencyP50: {Unit: "s", Ratio: &x}}}}
	var entry []string
	for _, cell := range chart.Difference(r).Groups[0].Charts[0].Table.Rows[0].Cells {
		entry = append(entry, cell.Text)
	}
	if !slices.Contains(entry, "+12.0 % (?)") {
		t.Errorf("the page has %q", entry)
	}
}
