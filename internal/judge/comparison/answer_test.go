package comparison

import (
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

func judged(m mode.Name, to mode.Target, load string, ratio, half float64,
	v stats.Verdict) analysis.Cell {
	primary := analysis.Primary(sample.Load{Kind: load})
	c := analysis.Cell{
		Cell:    sample.Cell{Mode: m, From: mode.FromHost, To: to, Load: load, On: sample.Lab},
		Primary: primary, Baseline: v == ""}
	metric := analysis.Metric{Unit: "bit/s", Median: 1e9 * ratio, Higher: load != workload.RR}
	if v != "" {
		metric.Ratio = &analysis.Ratio{To: "host", Median: ratio, Low: ratio - half,
			High: ratio + half, N: 12, Verdict: v}
	}
	if load == workload.RR && v != "" {
		const base = 20e-6
		metric.Price = &analysis.Price{Unit: "s", Median: base * (ratio - 1),
			Low: base * (ratio - half - 1), High: base * (ratio + half - 1), N: 12}
	}
	c.Metrics = map[string]analysis.Metric{primary: metric}
	return c
}

func reported(cells ...analysis.Cell) *analysis.Report {
	r := &analysis.Report{}
	r.Plan.Baseline, r.Plan.Same = "host", 0.03
	r.Environment.Docker = "running"
	r.Cells = cells
	for _, kind := range analysis.Distinct(cells, func(c analysis.Cell) string { return c.Load }) {
		r.Plan.Loads = append(r.Plan.Loads, sample.Load{Kind: kind, Streams: 1})
	}
	return r
}

// The answer must not name a winner by noise.
func TestAnswer(t *testing.T) {
	bridge := func(load string, ratio, half float64, v stats.Verdict) analysis.Cell {
		return judged(mode.Bridge, mode.ToContainer, load, ratio, half, v)
	}
	nat := func(load string, ratio, half float64, v stats.Verdict) analysis.Cell {
		return judged(mode.PublishNAT, mode.ToLoopback, load, ratio, half, v)
	}
	proxy := func(load string, ratio, half float64, v stats.Verdict) analysis.Cell {
		return judged(mode.PublishProxy, mode.ToLoopback, load, ratio, half, v)
	}
	host := judged(mode.Host, mode.ToLoopback, workload.Bulk, 1, 0, "")
	hostRR := judged(mode.Host, mode.ToLoopback, workload.RR, 1, 0, "")
	full := bridge(workload.Bulk, 1, 0.01, stats.Same)
	full.LimitedBy = string(mode.HopWire)
	full.Metrics[workload.CPUPerByte] = analysis.Metric{
		Ratio: &analysis.Ratio{To: "host", Median: 1.2, Low: 1.1, High: 1.3, N: 12,
			Verdict: stats.Worse}}
	relayed := proxy(workload.Bulk, 0.4, 0.01, stats.Worse)
	relayed.Hops = []string{"lo", "proxy", "bridge"}
	rootless := judged(mode.RootlessPublish, mode.ToLoopback, workload.Bulk, 0.3, 0.01, stats.Worse)
	rootless.Hops = []string{"lo", "rootlesskit", "lo", "proxy", "bridge"}
	for _, tt := range []struct {
		name  string
		cells []analysis.Cell
		want  []string
		not   string
	}{
		{"rootless", []analysis.Cell{host, rootless},
			[]string{`Avoid rootless-publish :lo: -70 % throughput: set "userland-proxy": false.`}, "dial"},
		{"two-proxies", []analysis.Cell{host, relayed, rootless},
			[]string{"Avoid publish-proxy :lo: -60 % throughput (dial the container's address, or sudo " +
				`toll fast on --all); rootless-publish :lo: -70 % (set "userland-proxy": false).`}, "Keep"},
		{"nothing-lost", []analysis.Cell{host, bridge(workload.Bulk, 1, 0.01, stats.Same)},
			[]string{"Which network mode, by throughput?", "Keep bridge: the same within 3 %."},
			"Avoid"},
		{"it-costs", []analysis.Cell{host, bridge(workload.Bulk, 0.86, 0.02, stats.Worse), hostRR,
			bridge(workload.RR, 1.2, 0.01, stats.Worse)},
			[]string{"by throughput and median latency?",
				"Keep bridge: -14 % throughput, +4.0 µs median latency."}, "Avoid"},
		{"cheapest-first", []analysis.Cell{host, nat(workload.Bulk, 0.8, 0.02, stats.Worse),
			bridge(workload.Bulk, 0.86, 0.02, stats.Worse)},
			[]string{"Keep bridge: -14 % throughput; publish-nat :lo: -20 %."}, "Avoid"},
		{"only-what-is-certain-decides", []analysis.Cell{
			host, nat(workload.Bulk, 0.74, 0.5, stats.Unclear),
			bridge(workload.Bulk, 0.95, 0.5, stats.Unclear),
			hostRR, nat(workload.RR, 1.2, 0.01, stats.Worse),
			bridge(workload.RR, 1.3, 0.01, stats.Worse)},
			[]string{"Keep publish-nat :lo: +4.0 µs median latency; bridge: +6.0 µs."}, "Avoid"},
		{"varies-in-part", []analysis.Cell{host, varying(bridge(workload.Bulk, 0.9, 0.8,
			stats.Unclear)), hostRR, bridge(workload.RR, 1.2, 0.01, stats.Worse)},
			[]string{"Varies: bridge: 10–170 % of host's throughput, +4.0 µs median latency."}, "Keep"},
		{"one-load-each", []analysis.Cell{host, bridge(workload.Bulk, 1.1, 0.02, stats.Better),
			hostRR, bridge(workload.RR, 1.2, 0.01, stats.Worse)},
			[]string{"Keep bridge: +10 % throughput, +4.0 µs median latency."}, "Avoid"},
		{"unclear", []analysis.Cell{host, bridge(workload.Bulk, 0.9, 0.15, stats.Unclear)},
			[]string{"Not certain yet: bridge.", "The verdict is unclear"}, "%."},
		{"unclear-in-part", []analysis.Cell{host, bridge(workload.Bulk, 0.9, 0.15, stats.Unclear),
			hostRR, bridge(workload.RR, 1.2, 0.01, stats.Worse)},
			[]string{"Keep bridge: +4.0 µs median latency.", "1 of 2 verdicts is unclear"},
			"-10 %"},
		{"a-range-with-none", []analysis.Cell{
			host, bridge(workload.Bulk, 1, 0.3, stats.Unclear), hostRR,
			bridge(workload.RR, 1, 0.01, stats.Same)},
			[]string{"Keep bridge: no certain difference."}, "70"},
		{"docker-proxy", []analysis.Cell{host, nat(workload.Bulk, 0.9, 0.01, stats.Worse), relayed},
			[]string{"Keep publish-nat :lo: -10 % throughput.",
				"Avoid publish-proxy :lo: -60 %: dial the container's address, or sudo toll fast on --all."}, "unclear"},
		{"dear-on-one-load", []analysis.Cell{
			host, proxy(workload.Bulk, 1, 0.01, stats.Same), hostRR,
			proxy(workload.RR, 1.7, 0.1, stats.Worse)},
			[]string{"Avoid publish-proxy :lo: +14 µs median latency"}, "Keep"},
		{"dear-perhaps", []analysis.Cell{host, nat(workload.Bulk, 0.66, 0.03, stats.Worse)},
			[]string{"Keep publish-nat :lo: -34 % throughput."}, "Avoid"},
		{"wire", []analysis.Cell{host, full},
			[]string{"Keep bridge: fills the wire, +20 % CPU time."}, "Avoid"},
		{"both-ways", []analysis.Cell{host, bridge(workload.Bulk, 0.74, 0.01, stats.Worse),
			nat(workload.Bulk, 1, 0.01, stats.Same), proxy(workload.Bulk, 0.7, 0.01, stats.Worse),
			bridge(workload.BulkReverse, 0.8, 0.01, stats.Worse),
			nat(workload.BulkReverse, 0.75, 0.01, stats.Worse),
			proxy(workload.BulkReverse, 0.68, 0.01, stats.Worse)},
			[]string{"by throughput to the server and throughput to the client?",
				"Keep publish-nat :lo: -25 % throughput to the client; " +
					"bridge: -26 % throughput to the server, -20 % throughput to the client; " +
					"publish-proxy :lo: -30 %, -32 %."}, "Avoid"},
		{"other-baseline", []analysis.Cell{host,
			judged(mode.Native, mode.ToLoopback, workload.Bulk, 1.05, 0.01, stats.Better)},
			[]string{"What does each mode cost?",
				"Throughput, of host's: better: native 105 % (104–106)."}, "Keep"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := AnswerOf(reported(tt.cells...), false)
			said := a.Question + "\n" + strings.Join(a.Text, "\n")
			for _, w := range tt.want {
				if !strings.Contains(said, w) {
					t.Errorf("%q is not in:\n%s", w, said)
				}
			}
			if tt.not != "" && strings.Contains(said, tt.not) {
				t.Errorf("%q is in:\n%s", tt.not, said)
			}
		})
	}
	if a := AnswerOf(reported(), false); a != nil {
		t.Errorf("without cells: %+v", a)
	}
}

func varying(c analysis.Cell) analysis.Cell {
	c.Metrics[c.Primary].Ratio.Varies = true
	return c
}

func TestAnswerWithoutComparison(t *testing.T) {
	const alone = "Nothing is compared: only native was measured. Name a mode to compare it with."
	native := judgetest.HostCell(mode.Native, "bulk")
	f := judgetest.New(t, native, judgetest.Control(native)).Rounds(
		7, judgetest.Noisy([]float64{0, 0}, 40, 40), func(*sample.Visit) {}).File
	f.Header.Plan.Baseline = string(mode.Native)
	if got := Judge(f).Answer; got == nil || len(got.Text) != 1 || got.Text[0] != alone {
		t.Errorf("%+v", got)
	}
	f.Header.Plan.Skipped = []sample.Skip{{Mode: mode.Bridge, Reason: "no bridges"}}
	if got := Judge(f).Answer; got == nil || len(got.Text) != 1 ||
		got.Text[0] != "Nothing is compared: only native has a result." {
		t.Errorf("%+v", got)
	}
}

func TestAnswerNamesPlacements(t *testing.T) {
	here := judged(mode.Bridge, mode.ToContainer, workload.Bulk, 1, 0.01, stats.Same)
	there := here
	there.From = mode.FromContainer
	a := AnswerOf(reported(here, there), false)
	if len(a.Text) != 2 || !strings.HasPrefix(a.Text[0], "From the machine itself: keep bridge") ||
		!strings.HasPrefix(a.Text[1], "From another container: keep bridge") {
		t.Errorf("%q", a.Text)
	}
}

func TestAnswerByPin(t *testing.T) {
	at := func(pin string, c analysis.Cell) analysis.Cell { c.Pin = pin; return c }
	bulk := func(pin string, ratio float64, v stats.Verdict) analysis.Cell {
		return at(pin, judged(mode.Bridge, mode.ToContainer, workload.Bulk, ratio, 0.01, v))
	}
	rr := func(pin string, ratio float64) analysis.Cell {
		return at(pin, judged(mode.Bridge, mode.ToContainer, workload.RR, ratio, 0.01, stats.Worse))
	}
	for _, tt := range []struct {
		name  string
		cells []analysis.Cell
		want  string
	}{
		{"differ", []analysis.Cell{bulk(sample.PinFar, 0.95, stats.Worse), rr(sample.PinFar, 1.1),
			bulk(sample.PinNear, 0.77, stats.Worse), rr(sample.PinNear, 1.15)},
			"Keep bridge: -5 % throughput, +2.0 µs median latency (on one CPU -23 %, +3.0 µs)."},
		{"agree", []analysis.Cell{bulk(sample.PinFar, 0.86, stats.Worse),
			bulk(sample.PinNear, 0.85, stats.Worse)}, "Keep bridge: -14 % throughput."},
		{"one-differs", []analysis.Cell{bulk(sample.PinFar, 1, stats.Same),
			bulk(sample.PinNear, 0.8, stats.Worse)},
			"Keep bridge: the same within 3 % (on one CPU -20 % throughput)."},
		{"dear-on-one-cpu", []analysis.Cell{bulk(sample.PinFar, 0.9, stats.Worse),
			bulk(sample.PinNear, 0.4, stats.Worse)},
			"Avoid bridge: -10 % throughput (on one CPU -60 %)."},
		{"dear-and-unclear", []analysis.Cell{bulk(sample.PinFar, 0.6, stats.Unclear),
			bulk(sample.PinNear, 0.4, stats.Worse), rr(sample.PinNear, 1.7)},
			"Avoid bridge: on one CPU -60 % throughput, +14.0 µs median latency (on own CPUs " +
				"no certain difference, median latency not measured)."},
		{"dear-and-same", []analysis.Cell{bulk(sample.PinFar, 1, stats.Same),
			bulk(sample.PinNear, 0.4, stats.Worse)},
			"Avoid bridge: on one CPU -60 % throughput (on own CPUs the same within 3 %)."},
		{"unclear-first", []analysis.Cell{bulk(sample.PinFar, 0.9, stats.Unclear),
			bulk(sample.PinNear, 0.8, stats.Worse)},
			"Keep bridge: on one CPU -20 % throughput (on own CPUs no certain difference)."},
		{"one-placement", []analysis.Cell{bulk(sample.PinFar, 0.8, stats.Worse)},
			"Keep bridge: -20 % throughput (on one CPU not measured)."},
	} {
		r := reported(tt.cells...)
		r.Plan.Pins = []sample.Pinning{{Name: sample.PinFar}, {Name: sample.PinNear}}
		if a := AnswerOf(r, false); a.Text[0] != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, a.Text[0], tt.want)
		}
	}
}

// What needs a second thing comes last, with what it needs and what its users must know.
func TestAnswerNamesThePrice(t *testing.T) {
	at := func(m mode.Name, ratio float64, v stats.Verdict) analysis.Cell {
		c := judged(m, mode.ToContainer, workload.RR, ratio, 0.01, v)
		c.From = mode.FromContainer
		return c
	}
	a := AnswerOf(reported(at(mode.Host, 1, ""), at(mode.MacvlanBridge, 0.9, stats.Better),
		at(mode.Overlay, 1.05, stats.Worse), at(mode.Bridge, 1.2, stats.Worse)), false)
	const want = "Keep bridge: +4.0 µs median latency; macvlan-bridge: -2.0 µs (needs an address on " +
		"the LAN, the container is a machine on the LAN, and the card must be promiscuous); " +
		"overlay: +1.0 µs (needs a Swarm)."
	if len(a.Text) != 1 || a.Text[0] != want {
		t.Errorf("%q, want %q", a.Text, want)
	}
}

// toll fast is advised only where it can be used.
func TestAnswerKnowsTheEngine(t *testing.T) {
	for _, c := range []struct {
		docker, on string
		from       mode.Placement
		says       string
	}{
		{"running", sample.Lab, "host", "dial the container's address, or sudo toll fast on --all."},
		{"installed", sample.Lab, "host", "dial the container's address."},
		{"", sample.Lab, "host", "dial the container's address."},
		{"", sample.Docker, "host", "dial the container's address, or sudo toll fast on --all."},
		{"running", sample.Lab, "container", "dial the container's address."},
		{"running", sample.Lab, "remote",
			`leave out "iptables": false, without which Docker's rules serve the port.`},
		{"running", sample.Lab, "remote-container",
			`leave out "iptables": false, without which Docker's rules serve the port.`},
	} {
		base := judged(mode.Host, mode.ToLoopback, workload.Bulk, 1, 0, "")
		relayed := judged(mode.PublishProxy, mode.ToLoopback, workload.Bulk, 0.4, 0.01, stats.Worse)
		relayed.Hops = []string{"lo", "proxy", "bridge"}
		base.On, base.From, relayed.On, relayed.From = c.on, c.from, c.on, c.from
		r := reported(base, relayed)
		r.Environment.Docker = c.docker
		if said := strings.Join(AnswerOf(r, false).Text, "\n"); !strings.HasSuffix(said, ": "+c.says) {
			t.Errorf("%+v: %s", c, said)
		}
	}
}

// What pacing makes unclear has its figure without pacing, and the reason once.
func TestAnswerWherePacingIsUnclear(t *testing.T) {
	at := func(pin string) analysis.Cell {
		c := judged(mode.Bridge, mode.ToContainer, workload.Bulk, 0.63, 0.28, stats.Unclear)
		c.Pin = pin
		c.Unpaced = &analysis.Ratio{To: "host+congestion=reno", Median: 0.92, Low: 0.91, High: 0.93,
			N: 40, Verdict: stats.Worse}
		c.Warnings = []analysis.Warning{{Code: analysis.Repeats, Text: "paced"}}
		return c
	}
	r := reported(at(sample.PinFar), at(sample.PinNear),
		judged(mode.PublishNAT, mode.ToLoopback, workload.Bulk, 0.4, 0.01, stats.Worse))
	r.Plan.Pins = []sample.Pinning{{Name: sample.PinFar}, {Name: sample.PinNear}}
	r.Plan.Unpaced, r.Environment.Congestion = "congestion=reno", "bbr"
	said := strings.Join(AnswerOf(r, false).Text, "\n")
	for _, want := range []string{"-8 % with reno, unclear with bbr",
		"2 of 3 verdicts are unclear, mostly because bbr's pacing differs from run to run: " +
			"--congestion reno measures without it."} {
		if strings.Count(said, want) != 1 {
			t.Errorf("%q is not there once:\n%s", want, said)
		}
	}
}
