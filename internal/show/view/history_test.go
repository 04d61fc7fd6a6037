package view

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/judge/trend"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
)

func past() trend.List {
	l := trend.List{Schema: trend.Schema, Dir: "/home/a/.local/state/bridgetoll-history", Total: 9,
		Size: 23_400_000}
	for k, x := range []float64{0.93, 0.91, 0.97} {
		s := trend.Summary{Started: time.Date(2026, 11, 23-k, 5, 0, 0, 0, time.UTC),
			Baseline: "host", Loads: []string{"bulk", "rr"}, Plan: "1",
			Command: []string{"compare", "bridge", "publish-proxy", "--to", "loopback", "--seed",
				"7"}, Kernel: "6.12", Tool: "0.2.0"}
		if k == 2 {
			s.Kernel = "6.1"
		}
		for _, r := range []trend.Row{
			{Quantity: trend.Quantity{Label: "bridge", From: "host", Load: "bulk",
				Work: "bulk, 1 stream", Metric: workload.Throughput}, Higher: true,
				Judgement: analysis.Judgement{
					Median: x, Low: x - 0.02, High: x + 0.01, N: 9, Verdict: stats.Worse}},
			{Quantity: trend.Quantity{Label: "publish-proxy :lo", From: "host", Load: "rr",
				Work: "rr, 1 byte each way", Metric: workload.LatencyP50},
				Judgement: analysis.Judgement{
					Median: 1 / x / x, Low: 1, High: 1.3, N: k, Verdict: stats.Unclear}},
		} {
			r.Mode = r.Label
			s.Rows = append(s.Rows, r)
		}
		l.Runs = append(l.Runs, trend.Entry{Number: k + 1, Summary: s})
	}
	l.Runs = append(l.Runs, trend.Entry{Number: 4, Error: "line 1: no header",
		Summary: trend.Summary{Started: time.Date(2026, 11, 20, 5, 0, 0, 0, time.UTC)}})
	return l
}

func TestOddTrend(t *testing.T) {
	l := past()
	l.Runs[0].Rows[0].Low, l.Runs[0].Rows[0].High = -math.MaxFloat64, math.MaxFloat64
	l.Runs[1].Rows[0].Low, l.Runs[1].Rows[0].High = 9, -9
	written(t, "table", Trends(l, nil, true), format.Options{})
}

func TestHistory(t *testing.T) {
	d := History(past())
	for _, width := range []int{60, 100} {
		b := written(t, "table", d, format.Options{Width: width})
		if width == 60 {
			golden(t, "history-60.txt", b)
		}
	}
	if got := written(t, "markdown", d, format.Options{}); strings.Contains(got, "…") {
		t.Errorf("ratios are cut where there is no width:\n%s", got)
	}
	d = Trends(past(), nil, false)
	b := written(t, "table", d, format.Options{Width: 79})
	golden(t, "trend.txt", b)
	whole(t, d, b)
	fits(t, b)
}

func TestManyTrends(t *testing.T) {
	l := past()
	for i := range l.Runs[:3] {
		for _, load := range []string{workload.Bulk, workload.RR} {
			for _, label := range []string{"bridge+gro=on", "macvlan-bridge"} {
				r := l.Runs[i].Rows[0]
				r.Label, r.Load, r.Work, r.Pin = label, load, load+", 1 stream", "far"
				l.Runs[i].Rows = append(l.Runs[i].Rows, r)
			}
		}
	}
	once := l.Runs[0].Rows[0]
	once.Label = "tried once"
	l.Runs[0].Rows = append(l.Runs[0].Rows, once)
	d := Trends(l, nil, false)
	for _, width := range []int{60, 80} {
		b := written(t, "table", d, format.Options{Width: width})
		if width == 60 {
			golden(t, "trends-60.txt", b)
		}
		if strings.Contains(b, "tried once") || strings.Count(b, "\n") > 30 {
			t.Error(b)
		}
	}
	if n := len(trend.Of(l, []string{"bridge+gro=on"}).Lines); n != 2 {
		t.Errorf("a variant has %d trends by its name", n)
	}
}

func TestTrendsNameTheirBackend(t *testing.T) {
	l := past()
	for _, run := range l.Runs {
		for i := range run.Rows {
			run.Rows[i].On = []string{"docker", "compose"}[i]
		}
	}
	for _, details := range []bool{true, false} {
		var titles []string
		for _, s := range Trends(l, nil, details).Sections[:2] {
			titles = append(titles, s.Title.String())
		}
		if got, want := strings.Join(titles, "; "),
			"bridge from the machine itself on docker, bulk: throughput; publish-proxy :lo "+
				"from the machine itself on compose, rr: p50"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, run := range l.Runs { // a running server has no backend, and one run no change
		for i := range run.Rows {
			run.Rows[i].On = []string{sample.OnEndpoint, sample.Lab}[i]
		}
	}
	for i, title := range []string{"From the machine itself, ", "From the machine itself on lab, "} {
		s := trendRows(trend.Of(trend.List{Runs: l.Runs[:1]}, nil).Lines)[i]
		if !strings.HasPrefix(s.Title.String(), title) {
			t.Errorf("%q", s.Title)
		}
		columns := s.Blocks[0].(document.Table).Columns
		if head := []string{"route", "mode"}[i]; len(columns) != 3 || columns[0].Title() != head {
			t.Errorf("a run alone has the columns %+v, not first %q", columns, head)
		}
	}
	for _, run := range l.Runs {
		for i := range run.Rows {
			run.Rows[i].On = []string{"docker", "compose"}[i]
		}
	}
	s := trendRows(trend.Of(l, nil).Lines)[0]
	if s.Title.String() != "From the machine itself on docker, bulk, 1 stream: throughput, "+
		"ratio to host, higher is better" {
		t.Errorf("%q", s.Title)
	}
}
