package comparison

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

// labelled returns findings as text: the code, then the labels of the cells that it is about, their
// ratios, and the other values.
func labelled(r *analysis.Report, fs []analysis.Finding) (out []string) {
	for _, f := range fs {
		text := f.Code
		labels := []string{}
		for _, i := range f.Cells {
			labels = append(labels, r.Cells[i].Label())
		}
		if labels = slices.Compact(labels); len(labels) > 0 {
			text += " " + strings.Join(labels, ", ")
		}
		for _, x := range f.Ratios {
			text += fmt.Sprintf(" %.2f of %s (%s)", x.Median, x.To, x.Verdict)
		}
		if f.What != "" {
			text += ": " + f.What
		}
		if f.Of > 0 {
			text += fmt.Sprintf(" %d of %d", f.N, f.Of)
		}
		out = append(out, text)
	}
	return out
}

func wantFindings(t *testing.T, r *analysis.Report, want ...string) {
	t.Helper()
	if got := labelled(r, r.Found); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// The findings must not name a winner by noise.
func TestFindingsOfCells(t *testing.T) {
	bridge, nat, proxy := judgetest.Bridge, judgetest.NAT, judgetest.Proxy
	host := judgetest.Judged(mode.Host, mode.ToLoopback, workload.Bulk, 1, 0, "")
	hostRR := judgetest.Judged(mode.Host, mode.ToLoopback, workload.RR, 1, 0, "")
	full := bridge(workload.Bulk, 1, 0.01, stats.Same)
	full.LimitedBy = string(mode.HopWire)
	full.Metrics[workload.CPUPerByte] = analysis.Metric{
		Ratio: &analysis.Ratio{To: "host", Median: 1.8, Low: 1.7, High: 1.9, N: 12,
			Verdict: stats.Worse}}
	relayed := proxy(workload.Bulk, 0.4, 0.01, stats.Worse)
	relayed.Hops = []string{"lo", "proxy", "bridge"}
	rootless := judgetest.Judged(mode.RootlessPublish, mode.ToLoopback, workload.Bulk, 0.3, 0.01,
		stats.Worse)
	rootless.Hops = []string{"lo", "rootlesskit", "lo", "proxy", "bridge"}
	varying := bridge(workload.Bulk, 0.9, 0.8, stats.Unclear)
	varying.Metrics[varying.Primary].Ratio.Varies = true
	for name, tt := range map[string]struct {
		cells []analysis.Cell
		want  []string
	}{
		"rootless": {[]analysis.Cell{host, rootless},
			[]string{"avoid rootless-publish :lo: proxy-off"}},
		"nothing-lost": {[]analysis.Cell{host, bridge(workload.Bulk, 1, 0.01, stats.Same)},
			[]string{"keep bridge"}},
		"cheapest-first": {[]analysis.Cell{host, nat(workload.Bulk, 0.8, 0.02, stats.Worse),
			bridge(workload.Bulk, 0.86, 0.02, stats.Worse)},
			[]string{"keep bridge", "keep publish-nat :lo"}},
		"only-what-is-certain-decides": {[]analysis.Cell{
			host, nat(workload.Bulk, 0.74, 0.5, stats.Unclear),
			bridge(workload.Bulk, 0.95, 0.5, stats.Unclear),
			hostRR, nat(workload.RR, 1.2, 0.01, stats.Worse),
			bridge(workload.RR, 1.3, 0.01, stats.Worse)},
			[]string{"keep publish-nat :lo", "keep bridge", "unclear 2 of 4"}},
		"varies": {[]analysis.Cell{host, varying, hostRR,
			bridge(workload.RR, 1.2, 0.01, stats.Worse)}, []string{"varies bridge"}},
		"unclear": {[]analysis.Cell{host, bridge(workload.Bulk, 0.9, 0.15, stats.Unclear)},
			[]string{"uncertain bridge", "unclear 1 of 1"}},
		"docker-proxy": {[]analysis.Cell{host, nat(workload.Bulk, 0.9, 0.01, stats.Worse), relayed},
			[]string{"keep publish-nat :lo", "avoid publish-proxy :lo: dial-container-or-fast"}},
		"dear-on-one-load": {[]analysis.Cell{host, proxy(workload.Bulk, 1, 0.01, stats.Same),
			hostRR,
			proxy(workload.RR, 1.7, 0.1, stats.Worse)}, []string{"avoid publish-proxy :lo"}},
		"dear-perhaps": {[]analysis.Cell{host, nat(workload.Bulk, 0.66, 0.03, stats.Worse)},
			[]string{"keep publish-nat :lo"}},
		"alike-around-the-limit": {[]analysis.Cell{
			host, bridge(workload.Bulk, 0.58, 0.08, stats.Worse),
			nat(workload.Bulk, 0.60, 0.08, stats.Worse), relayed,
			hostRR, bridge(workload.RR, 1.02, 0.03, stats.Unclear),
			nat(workload.RR, 1.14, 0.05, stats.Worse), proxy(workload.RR, 2, 0.1, stats.Worse)},
			[]string{"keep bridge", "keep publish-nat :lo",
				"avoid publish-proxy :lo: dial-container-or-fast", "unclear 1 of 6"}},
		"dear-and-alike-on-one-load": {[]analysis.Cell{
			host, nat(workload.Bulk, 0.60, 0.08, stats.Worse),
			proxy(workload.Bulk, 0.58, 0.08, stats.Worse),
			hostRR, nat(workload.RR, 1.14, 0.05, stats.Worse),
			proxy(workload.RR, 2, 0.1, stats.Worse)},
			[]string{"keep publish-nat :lo", "avoid publish-proxy :lo"}},
		"wire": {[]analysis.Cell{host, full}, []string{"avoid bridge"}},
		"other-baseline": {[]analysis.Cell{host,
			judgetest.Judged(mode.Native, mode.ToLoopback, workload.Bulk, 1.05, 0.01,
				stats.Better)},
			[]string{"compared native"}},
		"none": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := judgetest.Reported(tt.cells...)
			found, unsure := OfCells(r, false)
			r.Found = append(found, unsure...)
			wantFindings(t, r, tt.want...)
		})
	}
}

func TestNothingToCompare(t *testing.T) {
	native := judgetest.HostCell(mode.Native, "bulk")
	f := judgetest.New(t, native, judgetest.Control(native)).Rounds(
		7, judgetest.Noisy([]float64{0, 0}, 40, 40), func(*sample.Visit) {}).File
	f.Header.Plan.Baseline = string(mode.Native)
	wantFindings(t, Judge(f), "only-measured native", "witnessed")
	f.Header.Plan.Skipped = []sample.Skip{{Mode: mode.Bridge, Reason: "no bridges"}}
	wantFindings(t, Judge(f), "only-result native", "witnessed")
}
