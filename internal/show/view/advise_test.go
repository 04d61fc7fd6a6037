package view

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/bridgetoll/bridgetoll/internal/judge/advise"
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/lever"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
)

func effect(load, from string, median, half float64, v stats.Verdict) advise.Effect {
	e := advise.Effect{From: from, On: "lab", Load: load, Metric: workload.Throughput, Higher: true,
		Ratio: analysis.Ratio{To: "bridge", Median: median, Low: median - half, High: median + half,
			N: 40, Epochs: 7, Verdict: v}}
	if load == workload.RR {
		e.Metric, e.Higher = workload.LatencyP50, false
	} else {
		e.CPU = &analysis.Ratio{To: "bridge", Median: 2 - median, Low: 1.95 - median,
			High: 2.05 - median, N: 40, Epochs: 7, Verdict: v}
	}
	return e
}

func adviceOf(levers ...advise.Lever) *advise.Report {
	h := head()
	h.Study, h.Plan.Baseline, h.Control.Mode = sample.StudyAdvise, "bridge", "bridge"
	h.Plan.Loads = append([]sample.Load{{Kind: workload.BulkReverse, Streams: 1, Window: 0.05,
		Slice: 0.004}}, h.Plan.Loads...)
	h.Cells = []analysis.Cell{row(mode.Bridge, mode.FromHost, mode.ToContainer, "bulk", 30e9, 1, 0,
		"")}
	r := &advise.Report{Measured: h.Measured, Said: h.Said}
	a := advise.Advice{Mode: "bridge", Elsewhere: "publish-nat", Recommended: []string{}}
	for _, l := range levers {
		known, _ := lever.Find(l.Name)
		l.Gist, l.Permanent, l.GivesUp = known.Gist, known.Permanent, known.GivesUp
		a.Levers = append(a.Levers, l)
		if l.Verdict == advise.Recommended {
			a.Recommended = append(a.Recommended, l.Name)
			a.Together = l.Effects()
		}
	}
	r.Advice = []advise.Advice{a}
	r.Found = advise.Findings(r)
	return r
}

func advised() *advise.Report {
	return adviceOf(
		advise.Lever{Name: "bigtcp", Verdict: advise.Recommended,
			Alone: []advise.Effect{effect("bulk", "host", 1.19, 0.03, stats.Better),
				effect("rr", "remote", 1.004, 0.004, stats.Same)},
			Again: []advise.Effect{effect("bulk", "host", 1.18, 0.03, stats.Better),
				effect("bulk-reverse", "host", 0.995, 0.012, stats.Same),
				effect("rr", "host", 0.997, 0.004, stats.Same),
				effect("udp", "remote", 0.98, 0.1, stats.Unclear)}},
		advise.Lever{Name: "rmem", Verdict: advise.Recommended,
			Alone: []advise.Effect{effect("bulk", "remote", 1.09, 0.02, stats.Better)},
			Again: []advise.Effect{effect("bulk", "remote", 1.08, 0.02, stats.Better),
				effect("rr", "host", 1, 0.01, stats.Same)}},
		advise.Lever{Name: "bigtcp-container", Verdict: advise.AtAPrice,
			Alone: []advise.Effect{effect("bulk-reverse", "host", 1.15, 0.02, stats.Better),
				effect("bulk-reverse", "remote", 0.5, 0.03, stats.Worse)}},
		advise.Lever{Name: "host", Verdict: advise.GivesUp,
			Alone: []advise.Effect{effect("bulk", "host", 1.3, 0.02, stats.Better),
				effect("rr", "container", 0.7, 0.02, stats.Better)}},
		advise.Lever{Name: "congestion-cubic", Verdict: advise.NoGain,
			Alone: []advise.Effect{effect("bulk", "container", 1.02, 0.05, stats.Unclear),
				effect("bulk-reverse", "container", 0.9, 0.7, stats.Unclear)}},
		advise.Lever{Name: "tso-off", Verdict: advise.Harmful,
			Alone: []advise.Effect{effect("bulk", "host", 0.4, 0.02, stats.Worse)}},
		advise.Lever{Name: "rps", Verdict: advise.Skipped,
			Reason: "receive packet steering can only be set by root, not in a user namespace",
			Remedy: "run toll as root"},
		advise.Lever{Name: "gro", Verdict: advise.Broken,
			Reason: "the path was not witnessed: no bytes on br-toll"},
	)
}

func TestAdvise(t *testing.T) {
	none := adviceOf(advise.Lever{Name: "gro", Verdict: advise.NoGain,
		Alone: []advise.Effect{effect("bulk", "host", 1.01, 0.01, stats.Same)}})
	nowhere := adviceOf(advise.Lever{Name: "netkit", Verdict: advise.Skipped,
		Reason: "the kernel has no netkit devices (CONFIG_NETKIT)",
		Remedy: "use a kernel that has them"})
	all := advised()
	for _, tt := range []struct {
		name   string
		report *advise.Report
	}{{"advise", all}, {"advise-none", none}, {"advise-nowhere", nowhere}} {
		for _, how := range []string{"", "-details"} {
			t.Run(tt.name+how, func(t *testing.T) {
				d := Summary(tt.report)
				if how != "" {
					d = Report(tt.report)
				}
				got := written(t, "table", d, format.Options{Width: 80})
				if how == "" || tt.report == all {
					golden(t, tt.name+how+".txt", got)
				}
				for i, l := range strings.Split(got, "\n") {
					if ansi.StringWidth(l) > 80 {
						t.Errorf("line %d has %d columns: %q", i+1, ansi.StringWidth(l), l)
					}
				}
				if uncolored(written(t, "table", d,
					format.Options{Width: 80, Color: true})) != got {
					t.Error("colour changes more than colour")
				}
			})
		}
	}
}

// A cause of several levers is listed once, with all of them, also if only its counts differ.
func TestCauseOfSeveralLeversOnce(t *testing.T) {
	same := "the visit failed: the server ended"
	few := func(all, in int) string {
		return fmt.Sprintf("only %d of %d slices began and ended on time", in, all)
	}
	s := unavailable(advise.Advice{Levers: []advise.Lever{{Name: "gro", Reason: same},
		{Name: "rps", Reason: same, Remedy: "run toll as root"}, {Name: "mtu", Reason: same},
		{Name: "xps"}, {Name: "tso", Reason: few(12, 3)}, {Name: "gso", Reason: few(9, 0)},
		{Name: "sg", Reason: few(10, 1)}, {Name: "lro", Reason: "exit status 1"},
		{Name: "ufo", Reason: "exit status 2"}}}, "")
	want := []string{"gro and mtu: " + same, "rps: " + same + "; hint: run toll as root",
		"tso, gso and sg: only 0–3 of 9–12 slices began and ended on time", "lro: exit status 1",
		"ufo: exit status 2"}
	if got := s.Blocks[0].(document.List).Items; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
