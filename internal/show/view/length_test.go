package view

import (
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/endpoints"
	"github.com/bridgetoll/bridgetoll/internal/judge/ladder"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

// What answers a question is read on one screen of 80 columns: a comparison of the usual modes, a
// ladder with a mode that is missing, and two routes whose packets were captured, with something to
// say about each.
func TestAnswersAreShort(t *testing.T) {
	chat := routesTo(someChat, chatRoute("direct", "172.17.0.2:8000", 0, ""),
		chatRoute("gateway", "127.0.0.1:8080", 1.2, stats.Costs))
	chat.Cells[0].Evidence = judgetest.Evidence([7]float64{0.1, 60, 0.05, 0, 0, 0.02, 0.1},
		[7]float64{0.1, 540, 0.05, 0, 0, 0.02, 0.1}, [7]float64{1: 60, 6: 22})
	chat.Cells[1].Evidence = judgetest.Evidence([7]float64{2, 62, 0, 0, 41, 0, 0.3},
		[7]float64{2, 305, 0, 0, 736, 0, 0.3}, [7]float64{4: 60, 6: 22})
	chat.Cells[1].Evidence.Gap = 0.0406
	sql := routesTo(someSQL, sqlRoute("direct", "172.17.0.2:5432", 0, ""),
		sqlRoute("published", "127.0.0.1:5432", 1.5, stats.Costs))
	for i := range sql.Cells {
		last := [7]float64{0.01, 0.09, 0, 0.001, 0.12 * float64(i), 0.002}
		e := judgetest.Evidence(last, last, [7]float64{})
		e.Responses, e.ByOrder, e.ByID, e.Tokens, e.Matched = 1000, 1000, 0, 0, 0
		sql.Cells[i].Evidence = e
	}
	sql.Cells[1].Facts[endpoints.BehindProxy] = "172.17.0.2:5432"
	for _, r := range []*analysis.Report{chat, sql} {
		for i := range r.Cells {
			none := 0.0
			r.Cells[i].Metrics[workload.Resent] = analysis.Metric{Merged: &none}
		}
		r.Found = append([]analysis.Finding{{Code: endpoints.Uncounted}}, endpoints.Findings(r, nil)...)
	}
	busy := *chat // with an unclear verdict, as a busy machine makes
	busy.Cells = slices.Clone(chat.Cells)
	busy.Cells[1] = chatRoute("gateway", "127.0.0.1:8080", 1.1, stats.Unclear)
	busy.Cells[1].Evidence = chat.Cells[1].Evidence
	busy.Cells[0].Together, busy.Cells[1].Together = new(0.5), new(0.4)
	busy.Warnings = []analysis.Warning{{Code: analysis.Busy, Text: "the machine was busy before the " +
		"first request: other programs kept 2.0 of 2 CPUs busy (load average 21.2, CPU pressure 100 " +
		"%). Times include those of waiting for a CPU"}}
	busy.Found = append([]analysis.Finding{{Code: endpoints.Uncounted}, {Code: analysis.Busy}},
		endpoints.Findings(&busy, nil)...)
	parts := climbed()
	parts.Found = ladder.Findings(parts)
	for name, tt := range map[string]struct {
		report judge.Report
		most   int
	}{"busy": {&busy, 40}, "ladder": {parts, 30}, "compare": {usualOnTwoCPUs(), 24}, "stream": {chat, 40}, "sql": {sql, 40}} {
		text := summary(t, tt.report, format.Options{Width: 80})
		if n := strings.Count(text, "\n"); n > tt.most {
			t.Errorf("%s: %d lines, at most %d:\n%s", name, n, tt.most, text)
		}
		if again := strings.Count(text, "measure longer"); name == "busy" && again > 0 {
			t.Errorf("measuring again is advised twice:\n%s", text)
		}
	}
}

// The answer begins with the warning that the machine was busy, with its figures, so the warnings
// lack it. Other warnings stay, also those that a busy machine may cause.
func TestBusyIsSaidOnce(t *testing.T) {
	r := routesTo(someChat, chatRoute("a", "127.0.0.1:1", 0, ""))
	const figures = "  The machine was too busy to measure: other programs kept 1.9 of 2 CPUs " +
		"busy (load " +
		"average 35.0)"
	r.Warnings = []analysis.Warning{{Code: analysis.Busy, Found: &analysis.Finding{
		Code: analysis.Busy, What: analysis.DuringRun, Contention: &sample.Contention{CPUs: 2,
			Others: new(1.9), LoadAverage: 35}}},
		{Code: "ways", Text: "the ways lead to different servers"},
		{Code: analysis.Bimodal, Text: "the rounds fall into two clusters"}}
	r.Found = slices.Insert(endpoints.Findings(r, nil), 0, analysis.Finding{Code: analysis.Busy})
	text := summary(t, r, format.Options{})
	if n := strings.Count(strings.ToLower(text), "too busy"); n != 1 ||
		!testgolden.HasLine(text, "  the ways lead to different servers") {
		t.Errorf("%d times:\n%s", n, text)
	}
	for _, want := range []string{"  the rounds fall into two clusters", figures} {
		if !testgolden.HasLine(text, want) {
			t.Errorf("no line %q in %q", want, text)
		}
	}
	text = table(t, r, format.Options{})
	if want := "  the machine was too busy to measure: other programs kept 1.9 of 2 CPUs busy " +
		"(load " +
		"average 35.0)"; !testgolden.HasLine(text, want) {
		t.Errorf("no line %q in %q", want, text)
	}
}
