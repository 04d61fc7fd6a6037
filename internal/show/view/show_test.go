package view

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

var golden = testgolden.Check

// row returns a cell. x is in bit/s or seconds; half is the ratio's half width.
func row(m mode.Name, from mode.Placement, to mode.Target, load string, x, ratio, half float64,
	v stats.Verdict) analysis.Cell {
	found, _ := mode.Find(m)
	route, _ := found.Route(from, to)
	c := analysis.Cell{Cell: sample.Cell{Mode: m, From: from, To: to, Load: load, On: "lab"},
		Hops: []string{}, Witnessed: true,
		Baseline: v == "",
		Metrics:  map[string]analysis.Metric{},
		CPU:      analysis.CPUSplit{Client: 0.5, Server: 0.75, Rest: 0.25},
		Warnings: []analysis.Warning{}, Primary: analysis.Primary(sample.Load{Kind: load})}
	for _, h := range route.Hops {
		c.Hops = append(c.Hops, string(h))
	}
	set := func(name, unit string, median float64) {
		met := analysis.Metric{Unit: unit, Median: median, Low: 0.9 * median, High: 1.1 * median,
			Rounds: []float64{0.9 * median, median, 1.1 * median}}
		if strings.HasPrefix(name, "latency_") && !workload.IsMedian(name) {
			merged := median
			met.Merged = &merged
		}
		if name == analysis.Primary(sample.Load{Kind: load}) && v != "" {
			met.Ratio = &analysis.Ratio{To: "host", Median: ratio, Low: ratio - half,
				High: ratio + half/2, N: 12, Verdict: v}
		}
		c.Metrics[name] = met
	}
	set(workload.Retransmits, "segments", 0)
	if load == "rr" {
		set(workload.LatencyP50, "s", x)
		set(workload.LatencyP99, "s", 3*x)
		set(workload.LatencyP999, "s", 9*x)
		set(workload.CPUPerTrip, "s", 1.5*x)
		return c
	}
	set(workload.Throughput, "bit/s", x)
	set(workload.CPUPerByte, "s/B", 8*1.5/x)
	set(workload.PerBusyCore, "bit/s", x/1.5)
	return c
}

func bulk(m mode.Name, to mode.Target, gbit, ratio, half float64, v stats.Verdict) analysis.Cell {
	return row(m, mode.FromHost, to, "bulk", gbit*1e9, ratio, half, v)
}

func trip(m mode.Name, to mode.Target, us, ratio, half float64, v stats.Verdict) analysis.Cell {
	return row(m, mode.FromHost, to, "rr", us*1e-6, ratio, half, v)
}

func head() *analysis.Report {
	return &analysis.Report{Measured: analysis.Measured{
		Schema: analysis.Schema, Study: sample.StudyCompare,
		Environment: sample.Environment{Tool: "0.1.0", Kernel: "6.18.44", OS: "Debian GNU/Linux 12",
			CPUModel: "Intel Xeon", CPUs: 2,
			CPUsAllowed: []int{0, 1}, ThreadsPerCore: 1, Virtualization: "KVM, Docker container",
			Congestion: "cubic"},
		Plan: analysis.Plan{Seed: 2445519278, Rounds: 12, Window: 0.25, Baseline: "host",
			EndedBy: sample.EndedByPrecision, Elapsed: 41.4,
			Budget: 60, Precision: 0.02, Pin: "none", Loads: []sample.Load{
				{Kind: "bulk", Streams: 1, Warmup: 0.1, Window: 0.25},
				{Kind: "rr", Options: sample.RROptions{
					Messages: sample.Messages{Request: 1, Reply: 1}}, Warmup: 0.05, Window: 0.25},
			}},
		Control: analysis.Control{Mode: "host", Groups: []analysis.Floor{
			{From: "host", Load: "bulk", On: "lab",
				Floor: map[string]float64{workload.Throughput: 0.0123}},
			{From: "host", Load: "rr", On: "lab",
				Floor: map[string]float64{workload.LatencyP50: 0.0456}},
		}},
		Cells: []analysis.Cell{},
	}, Said: analysis.Said{Failed: []analysis.Failed{}, Skipped: []sample.Skip{},
		Warnings: []analysis.Warning{}, Findings: []string{}}}
}

func usual() *analysis.Report {
	r := head()
	proxy := bulk(mode.PublishProxy, mode.ToLoopback, 9.87, 0.31, 0.02, stats.Worse)
	proxy.LimitedBy, proxy.CPU.Proxy = "proxy", 0.95
	proxy.Metrics[workload.Retransmits] = analysis.Metric{
		Unit: "segments", Median: 12345, Rounds: []float64{12345}}
	base := bulk(mode.Host, mode.ToLoopback, 31.9, 1, 0, "")
	base.LimitedBy = "client core"
	r.Cells = []analysis.Cell{
		base,
		bulk(mode.Native, mode.ToLoopback, 31.8, 1.00, 0.01, stats.Same),
		bulk(mode.Bridge, mode.ToContainer, 27.4, 0.86, 0.02, stats.Worse),
		bulk(mode.PublishNAT, mode.ToLoopback, 26.1, 0.82, 0.21, stats.Unclear),
		bulk(mode.PublishNAT, mode.ToAddress, 25.9, 0.81, 0.03, stats.Worse),
		proxy,
		bulk(mode.PublishProxy, mode.ToLoopback6, 9.61, 0.30, 0.02, stats.Worse),
		trip(mode.Host, mode.ToLoopback, 15.2, 1, 0, ""),
		trip(mode.Native, mode.ToLoopback, 14.9, 0.98, 0.01, stats.Better),
		trip(mode.Bridge, mode.ToContainer, 18.8, 1.24, 0.03, stats.Worse),
		trip(mode.PublishNAT, mode.ToLoopback, 21.3, 1.40, 0.04, stats.Worse),
		trip(mode.PublishNAT, mode.ToAddress, 21.5, 1.41, 0.04, stats.Worse),
		trip(mode.PublishProxy, mode.ToLoopback, 58.9, 3.88, 0.11, stats.Worse),
	}
	few := analysis.Warning{Code: "thin-tail",
		Text: "too few samples for p99.9: use more rounds or a longer --window"}
	bimodal := analysis.Warning{Code: "bimodal",
		Text: "the rounds fall into two clusters: the median may describe neither"}
	for i := range r.Cells {
		if r.Cells[i].Load == "rr" {
			r.Cells[i].Warnings = []analysis.Warning{few}
		}
	}
	r.Cells[3].Warnings = []analysis.Warning{bimodal}
	r.Warnings = []analysis.Warning{{Code: "steal",
		Text: "the hypervisor took 4.2 % of the CPU time away: results are noisier " +
			"than they need be"}}
	r.Failed = []analysis.Failed{{Cell: sample.Cell{
		Mode: "publish-proxy", From: "host", To: "loopback6", Load: "rr", On: "lab"},
		Reason: "the path was not witnessed",
		Evidence: "proxy docker-proxy (machine A, process 4711): counted 0 bytes to the server, " +
			"the load moved 148635648"}}
	r.Skipped = []sample.Skip{
		{Mode: "shared", From: "host",
			Reason: "there is no such path: it can be reached from container",
			Remedy: "--from container"},
		{Mode: "publish-nat", From: "host", To: "loopback", On: "lab",
			Reason: "the kernel has no nf_nat"},
	}
	r.Findings = []string{
		"Every row with a result was witnessed: its bytes were counted on each hop of its path.",
		"Cheapest from host that keeps port isolation: bridge, with 86 % (84–87) of host's " +
			"throughput (worse) and 124 % (121–125) of host's median latency (worse).",
		"Publishing through docker-proxy, from host: 38 % (36–40) of publish-nat :lo's " +
			"throughput (worse) and 277 % (269–285) of publish-nat :lo's median latency (worse).",
	}
	return r
}

// widest has cells of the modes from every placement, with numbers as wide as they get.
func widest(modes []mode.Mode) *analysis.Report {
	r := head()
	limits := []string{"client core", "server core", "proxy", "softirq core", "all cores", ""}
	for _, load := range []string{"bulk", "rr"} {
		for _, from := range mode.Placements() {
			for i, m := range modes {
				for _, route := range m.RoutesFrom(from) {
					x, v := 123.4e9, stats.Unclear
					if load == "rr" {
						x = 1234e-6
					}
					if m.Name == mode.Host {
						v = ""
					}
					c := row(m.Name, from, route.To, load, x, 12.34, 1.23, v)
					c.LimitedBy = limits[i%len(limits)]
					c.Metrics[workload.Retransmits] = analysis.Metric{
						Median: 123456, Rounds: []float64{123456}}
					c.Warnings = []analysis.Warning{
						{Code: "few-rounds",
							Text: "fewer than 6 rounds: the intervals are too narrow for " +
								"what is known"}}
					if m.Name == mode.PublishProxy {
						c.Warnings = append(c.Warnings,
							analysis.Warning{Code: "failed-visits",
								Text: "1 of 12 visits failed and is left out"})
					}
					r.Cells = append(r.Cells, c)
				}
			}
		}
	}
	r.Control.Groups = append(r.Control.Groups,
		analysis.Floor{From: "remote", Load: "bulk", On: "lab",
			Floor: map[string]float64{workload.Throughput: 3.047}})
	r.Plan.EndedBy = sample.EndedByBudget
	return r
}

func table(t *testing.T, r judge.Report, o format.Options) string {
	t.Helper()
	b := written(t, "table", Report(r), o)
	if !o.Color {
		whole(t, Report(r), b)
	}
	return b
}

func TestTable(t *testing.T) {
	empty := head()
	empty.Plan.Rounds, empty.Plan.EndedBy, empty.Control.Groups = 0, sample.EndedCutShort, nil
	empty.Findings = []string{"Nothing was measured."}
	empty.Failed = []analysis.Failed{{Cell: sample.Cell{
		Mode: "bridge", From: "host", To: "container", Load: "bulk", On: "lab"},
		Reason: "the visit failed", Evidence: "client: connection refused"}}

	alone := head()
	alone.Cells = []analysis.Cell{row(mode.Native, mode.FromRemote, mode.ToAddress, "bulk", 9.41e9,
		1, 0, "")}
	alone.Plan.Loads = []sample.Load{{Kind: "bulk", Streams: 4,
		Options: sample.BulkOptions{Reverse: true}}}
	alone.Plan.Baseline, alone.Control.Mode = "native", "native"
	alone.Plan.Rounds, alone.Plan.EndedBy = 1, sample.EndedByRounds

	uneven := head()
	uneven.Cells = []analysis.Cell{trip(mode.Host, mode.ToLoopback, 20, 1, 0, ""),
		trip(mode.Bridge, mode.ToContainer, 30, 1.5, 0.1, stats.Worse)}
	uneven.Plan.Loads = []sample.Load{{Kind: "rr",
		Options: sample.RROptions{Messages: sample.Messages{Request: 64, Reply: 1024}}}}
	uneven.Plan.EndedBy = sample.EndedByInterrupt
	dead := head() // its engine was restarted
	dead.Cells = []analysis.Cell{trip(mode.Host, mode.ToLoopback, 20, 1, 0, ""),
		trip(mode.Bridge, mode.ToContainer, 30, 1.5, 0.1, stats.Worse)}
	dead.Plan.Loads = []sample.Load{{Kind: "rr",
		Options: sample.RROptions{Messages: sample.Messages{Request: 1, Reply: 1}}}}
	dead.Plan.EndedBy = sample.EndedByFailure
	one := *uneven.Cells[1].Metrics[workload.LatencyP50].Ratio
	one.N, one.Verdict = 1, stats.Unclear
	m := uneven.Cells[1].Metrics[workload.LatencyP50]
	m.Ratio = &one
	uneven.Cells[1].Metrics[workload.LatencyP50] = m
	delete(uneven.Cells[1].Metrics, workload.CPUPerTrip)

	// The longest label, the most hops, and two warnings.
	some := slices.DeleteFunc(mode.All(), func(m mode.Mode) bool {
		return m.Name != mode.Host && m.Name != mode.RootlessPublishNAT &&
			m.Name != mode.PublishIngress && m.Name != mode.PublishProxy
	})
	for _, tt := range []struct {
		name   string
		report *analysis.Report
	}{{"usual", usual()}, {"every-mode", widest(mode.All())}, {"empty", empty}, {"one-cell", alone},
		{"uneven-rr", uneven}, {"cut-short-by-failures", dead}, {"widest", widest(some)}} {
		t.Run(tt.name, func(t *testing.T) {
			got := table(t, tt.report, format.Options{Width: format.DefaultWidth})
			if tt.name != "every-mode" && tt.name != "widest" {
				golden(t, tt.name+".txt", got)
			}
			fits(t, got)
			if got != table(t, tt.report, format.Options{}) {
				t.Errorf("without a width the table is not %d columns wide", format.DefaultWidth)
			}
		})
	}
	t.Run("color", func(t *testing.T) {
		got := table(t, usual(), format.Options{Color: true, Width: format.DefaultWidth})
		golden(t, "usual-color.txt",
			strings.Join(regexp.MustCompile(`.*\x1b.*\n`).FindAllString(got, -1), ""))
		if plain := table(t, usual(), format.Options{Width: format.DefaultWidth}); uncolored(got) != plain {
			t.Error("colour changes more than colour")
		}
	})
}

func fits(t *testing.T, text string) {
	t.Helper()
	for i, l := range strings.Split(text, "\n") {
		if w := ansi.StringWidth(l); w > format.DefaultWidth {
			t.Errorf("line %d has %d columns: %q", i+1, w, l)
		}
		if strings.TrimRight(l, " ") != l {
			t.Errorf("line %d ends in a space: %q", i+1, l)
		}
		if uncolored(l) != l {
			t.Errorf("line %d is coloured: %q", i+1, l)
		}
	}
}

func uncolored(text string) string { return sgr.ReplaceAllString(text, "") }

var sgr = regexp.MustCompile(`\x1b\[[0-9]*m`)

func TestVerdictStyles(t *testing.T) {
	for v, want := range map[stats.Verdict]document.Style{stats.Better: document.Good,
		stats.Worse:   document.Bad,
		stats.Unclear: document.Doubtful, stats.Same: document.Plain} {
		if got := styleOf(v); got != want {
			t.Errorf("%s has the style %d, want %d", v, got, want)
		}
	}
}

func TestFailedWithoutEvidence(t *testing.T) {
	r := head()
	r.Failed = []analysis.Failed{{Cell: sample.Cell{
		Mode: "bridge", From: "host", To: "container", Load: "bulk", On: "lab"},
		Reason: "it was never visited"}}
	if got, want := table(t, r, format.Options{}),
		"  bridge from the machine itself, bulk: it was "+
			"never visited"; !testgolden.HasLine(got, want) {
		t.Errorf("no line %q in %q", want, got)
	}
}

// TestNothingMeasured has a run that ended before its first visit.
func TestNothingMeasured(t *testing.T) {
	r := head()
	r.Cells = nil
	for _, m := range []mode.Name{mode.Host, mode.Bridge, mode.PublishNAT} {
		r.Failed = append(r.Failed, analysis.Failed{Cell: sample.Cell{Mode: m, From: "host",
			To: "container", Load: "bulk", On: "lab"}, Reason: "it was never visited"})
	}
	got := table(t, r, format.Options{})
	if !testgolden.HasLine(got, "  all 3 rows: it was never visited") {
		t.Error(got)
	}
	r.Failed[1].Reason = "the visit failed"
	if got = table(t, r, format.Options{}); testgolden.HasLine(got, "  all 3 rows: it was never visited") {
		t.Error("rows failed for several reasons: ", got)
	}
}

func TestJSON(t *testing.T) {
	r := usual()
	r.Cells = []analysis.Cell{r.Cells[0], r.Cells[3]} // the baseline and one with a warning
	b := written(t, "json", Report(r), format.Options{Color: true, Width: 1})
	var again analysis.Report
	if err := json.Unmarshal([]byte(b), &again); err != nil {
		t.Fatal(err)
	}
	if written(t, "json", Report(&again), format.Options{}) != b {
		t.Error("read and written again, the report differs")
	}
}

// docs/results.md promises these names. A change of one must raise analysis.Schema.
func TestJSONFields(t *testing.T) {
	r := usual()
	r.Cells[0].Facts = map[string]string{"rules": "Docker Engine 28"}
	r.Skipped = append(r.Skipped, sample.Skip{
		Mode: "bridge", From: "host", To: "container", Load: "rr", On: "lab", Reason: "no",
		Remedy: "yes"})
	b := written(t, "json", Report(r), format.Options{})
	var doc map[string]any
	if err := json.Unmarshal([]byte(b), &doc); err != nil {
		t.Fatal(err)
	}
	if doc["schema"] != "bridgetoll.report/1" {
		t.Errorf("schema %v", doc["schema"])
	}
	for _, tt := range []struct {
		at   string // to an object; a number is an index
		keys string
	}{
		{"", "schema environment plan control cells failed skipped warnings findings"},
		{"environment", "tool kernel cpu_model cpus congestion_control"},
		{"plan", "seed rounds window_s baseline ended_by elapsed_s budget_s precision pin loads"},
		{"control", "mode groups"},
		{"control/groups/0", "from load on floor"},
		{"control/groups/0/floor", "throughput"},
		{"cells/0",
			"mode from to load tune on hops witnessed baseline metrics cpu limited_by " +
				"facts warnings"},
		{"cells/1", "mode from to load tune on hops witnessed metrics cpu limited_by warnings"},
		{"cells/1/metrics", "throughput throughput_per_busy_core cpu_per_byte retransmits"},
		{"cells/1/metrics/throughput", "unit median low high rounds ratio"},
		{"cells/1/metrics/throughput/ratio", "to median low high n verdict"},
		{"cells/8/metrics", "latency_p50 latency_p99 latency_p999 cpu_per_transaction retransmits"},
		{"cells/8/metrics/latency_p50", "unit median low high rounds ratio"},
		{"cells/8/metrics/latency_p99", "unit median low high merged rounds"},
		{"cells/8/warnings/0", "code text"},
		{"cells/1/cpu", "client server proxy rest"},
		{"failed/0", "mode from to load on reason evidence"},
		{"skipped/2", "mode from to load on reason remedy"},
		{"warnings/0", "code text"},
	} {
		t.Run(strings.ReplaceAll("at/"+tt.at, "/", "-"), func(t *testing.T) {
			o, ok := at(doc, tt.at).(map[string]any)
			if !ok {
				t.Fatalf("%s is no object", tt.at)
			}
			for _, k := range strings.Fields(tt.keys) {
				if _, ok := o[k]; !ok {
					t.Errorf("no %q", k)
				}
			}
		})
	}
}

// Readers need not check for null.
func TestJSONEmptyLists(t *testing.T) {
	b := written(t, "json", Report(judge.Judge(&sample.File{})), format.Options{})
	var doc map[string]any
	if err := json.Unmarshal([]byte(b), &doc); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"cells", "failed", "skipped", "warnings", "findings"} {
		if _, ok := doc[k].([]any); !ok {
			t.Errorf("%s is %v", k, doc[k])
		}
	}
}

func at(doc any, path string) any {
	for _, k := range strings.FieldsFunc(path, func(r rune) bool { return r == '/' }) {
		switch d := doc.(type) {
		case map[string]any:
			doc = d[k]
		case []any:
			var i int
			if _, err := fmt.Sscan(k, &i); err != nil || i >= len(d) {
				return nil
			}
			doc = d[i]
		}
	}
	return doc
}

func TestWarningsNameThePlacement(t *testing.T) {
	r := head()
	for _, from := range []mode.Placement{mode.FromHost, mode.FromContainer, mode.FromRemote} {
		for _, m := range []mode.Name{mode.Host, mode.PublishProxy} {
			found, _ := mode.Find(m)
			r.Cells = append(r.Cells, row(m, from, found.RoutesFrom(from)[0].To, "rr", 20e-6, 1, 0,
				""))
		}
	}
	for _, i := range []int{3, 5} {
		r.Cells[i].Warnings = []analysis.Warning{{Code: "late", Text: "it started late"}}
	}
	got := table(t, r, format.Options{})
	const want = "  publish-proxy from another container rr; publish-proxy from another machine " +
		"rr: it " +
		"started late"
	if !testgolden.HasLine(got, want) {
		t.Errorf("no line %q in %q", want, got)
	}
}

func TestWarningsOfShares(t *testing.T) {
	r := usual()
	for i, text := range []string{"28 % of its slices are left out",
		"40 % of its slices are left out", "12 % of the tokens"} {
		r.Cells[i].Warnings = []analysis.Warning{{Code: "x", Text: text}}
	}
	got := table(t, r, format.Options{})
	for _, want := range []string{"  host, native bulk: 28–40 % of its slices are left out",
		"  bridge bulk: 12 % of the tokens"} {
		if !testgolden.HasLine(got, want) {
			t.Errorf("no line %q in %q", want, got)
		}
	}
}
