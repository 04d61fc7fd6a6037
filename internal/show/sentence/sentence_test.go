package sentence

import (
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/comparison"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

func compared() *analysis.Report {
	six := judgetest.Judged(mode.Bridge, mode.ToContainer6, workload.Bulk, 0.75, 0.01, stats.Worse)
	tuned := judgetest.Judged(mode.Bridge, mode.ToContainer, workload.Bulk, 1.5, 0.01, stats.Better)
	tuned.Tune = "mtu=9000"
	up := judgetest.Judged(mode.RootlessPublish, mode.ToOutside, workload.Bulk, 0.1, 0.01,
		stats.Worse)
	up.ProxyCore, up.CPU.Proxy = &analysis.Metric{Median: 0.96}, 7.68e-9
	r := judgetest.Reported(judgetest.Judged(mode.Host, mode.ToLoopback, workload.Bulk, 1, 0, ""),
		judgetest.Judged(mode.Bridge, mode.ToContainer, workload.Bulk, 0.9, 0.01, stats.Worse),
		judgetest.Judged(mode.Bridge, mode.ToContainer, workload.RR, 1.2, 0.01, stats.Worse),
		six, tuned, up)
	r.Cells[0].LimitedBy, r.Cells[1].LimitedBy = "client core", "wire"
	r.Cells[1].Metrics[workload.CPUPerByte] = r.Cells[1].Metrics[r.Cells[1].Primary]
	r.Environment.Congestion = "bbr"
	r.Plan.Loads = append(r.Plan.Loads, sample.Load{Kind: workload.Stream, Streams: 1,
		Options: sample.StreamOptions{Tokens: 6, Pace: 50}})
	r.Warnings = []analysis.Warning{{Code: analysis.Busy, Text: "the machine was too busy. Wait"}}
	return r
}

// Each template with its text.
func TestTemplates(t *testing.T) {
	half := analysis.Ratio{To: "bridge", Median: 0.5, Low: 0.49, High: 0.51, N: 12,
		Verdict: stats.Worse}
	longer := []analysis.Price{{Unit: "s", Median: 0.005, Low: 0.0048, High: 0.0052, N: 6}}
	const tokens = "The path adds to the median response of 6 tokens at 50 per second, from the " +
		"machine itself, over host: bridge +5.0 ±0.2 ms. "
	const mtu = "mtu-65520"
	of := func(code string, cells ...int) analysis.Finding {
		return analysis.Finding{Code: code, From: "host", Cells: cells}
	}
	with := func(f analysis.Finding, change func(*analysis.Finding)) analysis.Finding {
		change(&f)
		return f
	}
	ratios := func(f *analysis.Finding) { f.Ratios = []analysis.Ratio{half, half}[:len(f.Cells)] }
	prices := func(f *analysis.Finding) { f.What, f.Prices = "host", longer }
	lever := func(f *analysis.Finding) { f.What, f.Ratios = mtu, []analysis.Ratio{half} }
	counts := func(f *analysis.Finding) { f.N, f.Of = 2, 3 }
	told := map[string]bool{}
	for _, tt := range []struct {
		f    analysis.Finding
		want string
	}{
		{of(analysis.NothingMeasured), "Nothing was measured."},
		{of(analysis.AllWitnessed),
			"Every row was witnessed: its bytes were counted on each hop of its path."},
		{with(of(comparison.TokensFaster, 1), prices),
			tokens + "None adds 160 ms, as a study published for a bridge"},
		{with(of(comparison.TokensSlower, 1), prices),
			tokens + "Each adds 160 ms or more, as a study published for a bridge"},
		{with(of(comparison.TokensUnclear, 1), prices),
			tokens + "Not all are clearly below 160 ms, which a study published for a bridge"},
		{of(comparison.TokensLate, 0, 1),
			"; tokens were late by 200 to 300 ms, as in that study, with host, bridge."},
		{of(comparison.TokensInTime),
			", and no token was late by 200 to 300 ms, as in that study."},
		{with(of(comparison.OwnDelays), func(f *analysis.Finding) {
			f.Values = map[string]float64{workload.LateP99: 1e-3, workload.LateMax: 2e-3,
				workload.WaitP99: 3e-3, workload.WaitMax: 4e-3, comparison.BusiestCPU: 0.125}
		}), "The load's own delays, the largest of any row: its server sent tokens 1.00 ms " +
			"late (p99; at " +
			"worst 2.0 ms), they waited 3.0 ms for its client's thread (p99; at worst 4.0 " +
			"ms), and its " +
			"busiest thread ran 12 % of a window."},
		{with(of(comparison.OverIPv6, 3), ratios), "bridge over IPv6, from the machine itself: " +
			"50 % (49–51) of bridge's throughput (worse)."},
		{with(of(comparison.Tuned, 4, 2), ratios), "bridge+mtu=9000 from the machine itself: " +
			"50 % (49–51) of bridge's throughput (worse) and 50 % (49–51) of bridge's median " +
			"latency (worse)."},
		{with(of(comparison.AgainstLab, 1), ratios), "bridge on lab, from the machine itself: " +
			"50 % (49–51) of bridge's throughput (worse)."},
		{of(analysis.Busy), "The machine was too busy: measure again before you decide."},
		{of(comparison.Keep, 1, 2),
			"Perhaps keep bridge: fills the wire, -10 % CPU time, +4.0 µs median latency."},
		{of(comparison.Keep, 2), "Perhaps keep bridge: +4.0 µs median latency."},
		{with(of(comparison.Avoid, 2), func(f *analysis.Finding) { f.What = comparison.ProxyOff }),
			`Perhaps avoid bridge: +4.0 µs median latency: set "userland-proxy": false.`},
		{of(comparison.Varies, 2), "Varies: bridge: +4.0 µs median latency."},
		{of(comparison.Open, 2), "Not certain yet: bridge."},
		{of(comparison.Compared, 2), "Median latency, of host's: worse: bridge 120 % (119–121)."},
		{of(comparison.Limited, 0),
			"Every mode's throughput is limited by the client's CPU core."},
		{of(comparison.HiddenByLink, 1),
			"Every mode's throughput is limited by the wire and says " +
				"nothing about the modes: compare CPU time per byte."},
		{with(of(comparison.Relayed, 5), func(f *analysis.Finding) { f.What, f.N = "slirp4netns", 1500 }),
			"Over rootless-publish :out each packet, of at most 1500 bytes, passes the process " +
				"slirp4netns, which uses 96 % of a CPU and takes 7.68 s of CPU time for each GB."},
		{with(of(comparison.LeverHelps, 5), lever),
			"An MTU of 65520 inside the networks of a rootless " +
				"engine gives 50 % (49–51) of its throughput: docker network create -o " +
				"com.docker.network.driver.mtu=65520 NAME. It may harm large datagrams on " +
				"their way out, " +
				"which the relay fragments."},
		{with(of(comparison.LeverHarms, 5), lever), "An MTU of 65520 inside the networks of a " +
			"rootless engine does not help: 50 % (49–51) of its throughput."},
		{with(of(comparison.LeverSame, 5), lever),
			"An MTU of 65520 inside the networks of a rootless engine makes no difference."},
		{with(of(comparison.LeverUnclear, 5), lever),
			"Whether an MTU of 65520 inside the networks of a rootless engine helps is unclear."},
		{with(of(comparison.WithoutRelay), func(f *analysis.Finding) { f.What = "rootless-publish" }),
			"Without a relay: docker run --network host IMAGE; it gives up port isolation: the " +
				"container has the machine's ports and devices, and before Docker Engine " +
				"29.5 --network " +
				"host is the engine's own network namespace."},
		{of(comparison.OnlyResult, 0), "Nothing is compared: only host has a result."},
		{of(comparison.OnlyMeasured, 0),
			"Nothing is compared: only host was measured. Name a mode " +
				"to compare it with."},
		{with(of(comparison.MostlyPacing), counts),
			"2 of 3 verdicts are unclear, mostly because bbr's " +
				"pacing differs from run to run: --congestion reno measures without it."},
		{with(of(analysis.Unclear), counts),
			"2 of 3 verdicts are unclear: measure longer (--budget) or on a quieter machine."},
		{with(of(analysis.TooFewRounds), counts),
			"2 of 3 verdicts are unclear, because there are too " +
				"few rounds: a verdict takes at least 5 (--rounds, --budget)."},
	} {
		told[tt.f.Code] = true
		w := &writer{r: compared()}
		if got := w.fill(find(tt.f.Code).text, []analysis.Finding{tt.f}); got != tt.want {
			t.Errorf("%s:\ngot  %q\nwant %q", tt.f.Code, got, tt.want)
		}
	}
	for _, x := range ofModes {
		if !told[x.code] {
			t.Errorf("%s is untested", x.code)
		}
	}
}

// Each code of all studies has one template, each blank one way to be filled.
func TestTemplatesAreUnique(t *testing.T) {
	named := map[string]int{}
	for _, x := range vocabularies {
		for blank := range x {
			named[blank]++
		}
	}
	seen := map[string]bool{}
	for _, x := range templates {
		if x.code == "" || seen[x.code] {
			t.Errorf("%q is empty or twice in the table", x.code)
		}
		seen[x.code] = true
		for _, part := range strings.Split(x.text+x.detail+x.question, "{")[1:] {
			blank, _, ok := strings.Cut(part, "}")
			if !ok || named[blank] != 1 {
				t.Errorf("%s: {%s is filled in %d ways", x.code, blank, named[blank])
			}
		}
	}
}

// Findings are told in their order; details have all of a kind, in the order of the table.
func TestFill(t *testing.T) {
	r := compared()
	x := analysis.Ratio{To: "IPv4", Median: 0.75, Low: 0.74, High: 0.76, N: 12,
		Verdict: stats.Worse}
	tokens := analysis.Finding{Code: comparison.TokensFaster, From: "host", Cells: []int{1},
		What: "host", Prices: []analysis.Price{{Unit: "s", Median: 0.005, Low: 0.004, High: 0.006,
			N: 6}}}
	six := analysis.Finding{Code: comparison.OverIPv6, Cells: []int{3}, Ratios: []analysis.Ratio{x}}
	var tuned []analysis.Finding
	for range 4 {
		x.Median += 0.01
		tuned = append(tuned, analysis.Finding{Code: comparison.Tuned, Cells: []int{4},
			Ratios: []analysis.Ratio{x}})
	}
	r.Found = append([]analysis.Finding{{Code: analysis.Busy}, six,
		{Code: comparison.Compared, From: "host", On: "lab", Cells: []int{1}}, tokens,
		{Code: comparison.TokensInTime, From: "host"}}, append(tuned,
		analysis.Finding{Code: analysis.AllWitnessed})...)
	for range 2 { // the second time changes nothing
		Fill(r)
		if r.Answer.Question != "What does IPv6 cost against IPv4?" || len(r.Answer.Text) != 7 ||
			!strings.HasPrefix(r.Answer.Text[1], "bridge over IPv6") ||
			!strings.HasSuffix(r.Answer.Text[3], "in that study.") {
			t.Errorf("%q", r.Answer)
		}
		if len(r.Findings) != 7 || !strings.HasPrefix(r.Findings[0], "Every row") ||
			!strings.HasPrefix(r.Findings[1], "The path adds") ||
			!strings.HasPrefix(r.Findings[2], "bridge over IPv6") {
			t.Errorf("%q", r.Findings)
		}
	}
	r.Found = []analysis.Finding{{Code: analysis.NothingMeasured}}
	if Fill(r); r.Answer != nil || !slices.Equal(r.Findings, []string{"Nothing was measured."}) {
		t.Errorf("%+v, %q", r.Answer, r.Findings)
	}
	own := &analysis.Report{Said: analysis.Said{Findings: []string{"as it was"}}}
	if Fill(own); own.Answer != nil || len(own.Findings) != 1 {
		t.Errorf("a report without findings as values is changed: %+v", own.Said)
	}
}
