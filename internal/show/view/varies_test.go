package view

import (
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/comparison"
	"github.com/bridgetoll/bridgetoll/internal/judge/difference"
	"github.com/bridgetoll/bridgetoll/internal/judge/ladder"
	"github.com/bridgetoll/bridgetoll/internal/judge/trend"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

// fitful returns a report of bulk at these rates in Gbit/s, one per round, and of a host at 40.
func fitful(t *testing.T, study sample.Study, rates ...float64) judge.Report {
	t.Helper()
	return judge.Judge(fitfulFile(t, study, rates...))
}

func fitfulFile(t *testing.T, study sample.Study, rates ...float64) *sample.File {
	t.Helper()
	run := judgetest.New(t, judgetest.Trio(mode.BridgeDefault, "bulk")...)
	run.File.Header.Plan.Study = study
	run.Rounds(12, func(round, cell int) float64 {
		if cell < 2 {
			return 40
		}
		return rates[round%len(rates)]
	}, func(v *sample.Visit) {
		if v.Cell == 2 {
			v.Client.TCP = sample.TCPInfo{Retransmits: 7, Resent: 2e6, RTO: 0.204}
			v.Client.TotalSent = 1e8
		}
	})
	return run.File
}

// Every format has the range, and none a median or an interval of what varies.
func TestVaryingRow(t *testing.T) {
	worse := []float64{0.02, 2.2, 0.3, 0.05}
	around := []float64{4, 80, 8, 60}
	for _, tt := range []struct {
		name   string
		report judge.Report
		want   []string // in this order, on a row
		codes  []string // none says that a longer run helps
	}{
		{"worse", fitful(t, sample.StudyCompare, worse...),
			[]string{"bridge-default", "0.05–5.5", "0.02–2.2", "worse"},
			[]string{comparison.Avoid, analysis.AllWitnessed}},
		{"around", fitful(t, sample.StudyCompare, around...),
			[]string{"bridge-default", "10–200", "4.0–80", "varies"},
			[]string{comparison.Varies, analysis.AllWitnessed}},
		{"ladder-worse", fitful(t, sample.StudyLadder, worse...),
			[]string{"bridge-default", "0.02–2.2", "0.05–5.5"},
			[]string{ladder.Parts, analysis.AllWitnessed}},
		{"ladder-around", fitful(t, sample.StudyLadder, around...),
			[]string{"bridge-default", "4.0–80", "10–200", "~"},
			[]string{ladder.Parts, analysis.AllWitnessed}},
	} {
		for _, kind := range []string{"table", "markdown"} {
			t.Run(tt.name+"-"+kind, func(t *testing.T) {
				got := written(t, kind, Summary(tt.report), format.Options{Width: 120})
				found := false
				for _, line := range strings.Split(got, "\n") {
					found = found || inOrder(line, tt.want)
				}
				if !found {
					t.Errorf("no row has %q:\n%s", tt.want, got)
				}
				if strings.Count(got, "●") > 1 { // the baseline has one
					t.Errorf("a mark stands for the median:\n%s", got)
				}
				var codes []string
				for _, f := range tt.report.Base().Found {
					codes = append(codes, f.Code)
				}
				if !slices.Equal(codes, tt.codes) {
					t.Errorf("findings %q, want %q", codes, tt.codes)
				}
			})
		}
	}
	got := written(t, "table", Summary(fitful(t, sample.StudyCompare, worse...)), format.Options{})
	for _, want := range []string{
		"  bridge-default bulk: its throughput varies: all 12 windows of 1000 ms lie in the range",
		"    0.02–2.2 Gbit/s, which the row shows instead of a median. TCP: 7.0 retransmits/s, " +
			"2.0 % of all",
		"    bytes sent again, RTO 204 ms",
	} {
		if !testgolden.HasLine(got, want) {
			t.Errorf("no line %q in %q", want, got)
		}
	}
	for name, want := range map[string]string{"json": `            "varies": true`,
		"csv": "compare,bridge-default,bridge-default,host,container,lab,bulk,,1,1,1,false,,throughput," +
			"bit/s,true,median,,1.75e+08,3.5e+07,1.25e+09,12,,,,varies,,"} {
		if got := written(t, name, Report(fitful(t, sample.StudyCompare, worse...)),
			format.Options{}); !testgolden.HasLine(got, want) {
			t.Errorf("%s has no %s:\n%s", name, want, got)
		}
	}
}

// Between runs, a range has no change.
func TestVaryingDifference(t *testing.T) {
	steady := fitfulFile(t, sample.StudyCompare, 20)
	around := fitfulFile(t, sample.StudyCompare, 4, 80, 8, 60)
	r, err := difference.Judge(difference.Input{Name: "old", File: steady},
		difference.Input{Name: "new", File: around})
	if err != nil {
		t.Fatal(err)
	}
	got := written(t, "table", Difference(r), format.Options{})
	for _, want := range []string{"  bridge-default  throughput   50 %   10–200 %  -            " +
		"     varies", "Of 2 ratios to host: 2 varies.",
		"    neither; (?): no interval, or one that tells nothing. varies: a run has a range instead " +
			"of a"} {
		if !testgolden.HasLine(got, want) {
			t.Errorf("no line %q in %q", want, got)
		}
	}
	if page := written(t, "html", Difference(r), format.Options{}); !strings.Contains(page,
		"→ 10–200 %") {
		t.Error("the chart has no range")
	}
}

func TestVaryingHistory(t *testing.T) {
	f := fitfulFile(t, sample.StudyCompare, 4, 80, 8, 60)
	run := trend.Entry{Number: 1, Summary: trend.Summarize(f.Header, judge.Judge(f).Base(), "1")}
	l := trend.List{Total: 1, Runs: []trend.Entry{run}}
	for what, d := range map[string]document.Document{
		"@1   0001-01-01 00:00  toll compare …  bulk: bridge-default varies": History(l),
		"  @1   0001-01-01 00:00   ──────────────────┼────────────────────   10–200 %  " +
			"varies": Trends(l, nil, true)} {
		got := written(t, "table", d, format.Options{})
		if !testgolden.HasLine(got, what) {
			t.Errorf("no line %q in %q", what, got)
		}
	}
}

func inOrder(line string, words []string) bool {
	for _, w := range words {
		_, rest, ok := strings.Cut(line, w)
		if !ok {
			return false
		}
		line = rest
	}
	return true
}
