package sentence

import (
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

func answer(r *analysis.Report) *analysis.Answer {
	found, unsure := comparison.OfCells(r, false)
	r.Found = append(found, unsure...)
	Fill(r)
	return r.Answer
}

// The answer must not name a winner by noise.
func TestAnswer(t *testing.T) {
	bridge, nat, proxy := judgetest.Bridge, judgetest.NAT, judgetest.Proxy
	host := judgetest.Judged(mode.Host, mode.ToLoopback, workload.Bulk, 1, 0, "")
	hostRR := judgetest.Judged(mode.Host, mode.ToLoopback, workload.RR, 1, 0, "")
	full := bridge(workload.Bulk, 1, 0.01, stats.Same)
	full.LimitedBy = string(mode.HopWire)
	full.Metrics[workload.CPUPerByte] = analysis.Metric{
		Ratio: &analysis.Ratio{To: "host", Median: 1.2, Low: 1.1, High: 1.3, N: 12,
			Verdict: stats.Worse}}
	fullOnly := bridge(workload.Bulk, 0.9, 0.01, stats.Worse)
	fullOnly.LimitedBy = string(mode.HopWire)
	relayed := proxy(workload.Bulk, 0.4, 0.01, stats.Worse)
	relayed.Hops = []string{"lo", "proxy", "bridge"}
	rootless := judgetest.Judged(mode.RootlessPublish, mode.ToLoopback, workload.Bulk, 0.3, 0.01,
		stats.Worse)
	rootless.Hops = []string{"lo", "rootlesskit", "lo", "proxy", "bridge"}
	for _, tt := range []struct {
		name  string
		cells []analysis.Cell
		want  string
	}{
		{"rootless", []analysis.Cell{host, rootless},
			"Which network mode, by throughput?\nAvoid rootless-publish :lo: -70 % " +
				`throughput: set "userland-proxy": false.`},
		{"two-proxies", []analysis.Cell{host, relayed, rootless},
			"Which network mode, by throughput?\nAvoid publish-proxy :lo: -60 % " +
				"throughput (dial the container's address, or sudo toll fast on all); " +
				`rootless-publish :lo: -70 % (set "userland-proxy": false).`},
		{"nothing-lost", []analysis.Cell{host, bridge(workload.Bulk, 1, 0.01, stats.Same)},
			"Which network mode, by throughput?\nKeep bridge: the same within 3 %."},
		{"it-costs", []analysis.Cell{host, bridge(workload.Bulk, 0.86, 0.02, stats.Worse), hostRR,
			bridge(workload.RR, 1.2, 0.01, stats.Worse)},
			"Which network mode, by throughput and median latency?\nKeep bridge: -14 % " +
				"throughput, +4.0 µs median latency."},
		{"cheapest-first", []analysis.Cell{host, nat(workload.Bulk, 0.8, 0.02, stats.Worse),
			bridge(workload.Bulk, 0.86, 0.02, stats.Worse)},
			"Which network mode, by throughput?\nKeep bridge: -14 % throughput; " +
				"publish-nat :lo: -20 %."},
		{"only-what-is-certain-decides", []analysis.Cell{
			host, nat(workload.Bulk, 0.74, 0.5, stats.Unclear),
			bridge(workload.Bulk, 0.95, 0.5, stats.Unclear),
			hostRR, nat(workload.RR, 1.2, 0.01, stats.Worse),
			bridge(workload.RR, 1.3, 0.01, stats.Worse)},
			"Which network mode, by throughput and median latency?\nKeep publish-nat " +
				":lo: +4.0 µs median latency; bridge: +6.0 µs.\n2 of 4 verdicts are unclear: " +
				"measure longer (--budget) or on a quieter machine."},
		{"varies-in-part", []analysis.Cell{host, varying(bridge(workload.Bulk, 0.9, 0.8,
			stats.Unclear)), hostRR, bridge(workload.RR, 1.2, 0.01, stats.Worse)},
			"Which network mode, by throughput and median latency?\nVaries: bridge: " +
				"10–170 % of host's throughput, +4.0 µs median latency."},
		{"one-load-each", []analysis.Cell{host, bridge(workload.Bulk, 1.1, 0.02, stats.Better),
			hostRR, bridge(workload.RR, 1.2, 0.01, stats.Worse)},
			"Which network mode, by throughput and median latency?\nKeep bridge: +10 % " +
				"throughput, +4.0 µs median latency."},
		{"unclear", []analysis.Cell{host, bridge(workload.Bulk, 0.9, 0.15, stats.Unclear)},
			"Which network mode, by throughput?\nNot certain yet: bridge.\nThe verdict " +
				"is unclear: measure longer (--budget) or on a quieter machine."},
		{"unclear-in-part", []analysis.Cell{host, bridge(workload.Bulk, 0.9, 0.15, stats.Unclear),
			hostRR, bridge(workload.RR, 1.2, 0.01, stats.Worse)},
			"Which network mode, by throughput and median latency?\nKeep bridge: +4.0 µs " +
				"median latency.\n1 of 2 verdicts is unclear: measure longer (--budget) or " +
				"on a quieter machine."},
		{"a-range-with-none", []analysis.Cell{
			host, bridge(workload.Bulk, 1, 0.3, stats.Unclear), hostRR,
			bridge(workload.RR, 1, 0.01, stats.Same)},
			"Which network mode, by throughput and median latency?\nKeep bridge: no " +
				"certain difference.\n1 of 2 verdicts is unclear: measure longer (--budget) " +
				"or on a quieter machine."},
		{"docker-proxy", []analysis.Cell{host, nat(workload.Bulk, 0.9, 0.01, stats.Worse), relayed},
			"Which network mode, by throughput?\nKeep publish-nat :lo: -10 % " +
				"throughput.\nAvoid publish-proxy :lo: -60 %: dial the container's address, " +
				"or sudo toll fast on all."},
		{"dear-on-one-load", []analysis.Cell{
			host, proxy(workload.Bulk, 1, 0.01, stats.Same), hostRR,
			proxy(workload.RR, 1.7, 0.1, stats.Worse)},
			"Which network mode, by throughput and median latency?\nAvoid publish-proxy " +
				":lo: +14 µs median latency."},
		{"dear-perhaps", []analysis.Cell{host, nat(workload.Bulk, 0.66, 0.03, stats.Worse)},
			"Which network mode, by throughput?\nKeep publish-nat :lo: -34 % throughput."},
		{"wire", []analysis.Cell{host, full},
			"Which network mode, by throughput?\nKeep bridge: fills the wire, +20 % CPU " +
				"time."},
		{"wire-without-cpu-time", []analysis.Cell{host, fullOnly},
			"Which network mode, by throughput?\nKeep bridge: -10 % throughput."},
		{"both-ways", []analysis.Cell{host, bridge(workload.Bulk, 0.74, 0.01, stats.Worse),
			nat(workload.Bulk, 1, 0.01, stats.Same), proxy(workload.Bulk, 0.7, 0.01, stats.Worse),
			bridge(workload.BulkReverse, 0.8, 0.01, stats.Worse),
			nat(workload.BulkReverse, 0.75, 0.01, stats.Worse),
			proxy(workload.BulkReverse, 0.68, 0.01, stats.Worse)},
			"Which network mode, by throughput to the server and throughput to the " +
				"client?\nKeep publish-nat :lo: -25 % throughput to the client; bridge: -26 " +
				"% throughput to the server, -20 % throughput to the client; publish-proxy " +
				":lo: -30 %, -32 %."},
		{"other-baseline", []analysis.Cell{host,
			judgetest.Judged(mode.Native, mode.ToLoopback, workload.Bulk, 1.05, 0.01,
				stats.Better)},
			"What does each mode cost?\nThroughput, of host's: better: native 105 % " +
				"(104–106)."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := answer(judgetest.Reported(tt.cells...))
			if got := a.Question + "\n" + strings.Join(a.Text, "\n"); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
	if a := answer(judgetest.Reported()); a != nil {
		t.Errorf("without cells: %+v", a)
	}
}

func varying(c analysis.Cell) analysis.Cell {
	c.Metrics[c.Primary].Ratio.Varies = true
	return c
}

func TestAnswerNamesPlacements(t *testing.T) {
	here := judgetest.Judged(mode.Bridge, mode.ToContainer, workload.Bulk, 1, 0.01, stats.Same)
	there := here
	there.From = mode.FromContainer
	a := answer(judgetest.Reported(here, there))
	if len(a.Text) != 2 || !strings.HasPrefix(a.Text[0], "From the machine itself: keep bridge") ||
		!strings.HasPrefix(a.Text[1], "From another container: keep bridge") {
		t.Errorf("%q", a.Text)
	}
}

func TestAnswerByPin(t *testing.T) {
	at := func(pin string, c analysis.Cell) analysis.Cell { c.Pin = pin; return c }
	bulk := func(pin string, ratio float64, v stats.Verdict) analysis.Cell {
		return at(pin, judgetest.Judged(mode.Bridge, mode.ToContainer, workload.Bulk, ratio, 0.01,
			v))
	}
	rr := func(pin string, ratio float64) analysis.Cell {
		return at(pin, judgetest.Judged(mode.Bridge, mode.ToContainer, workload.RR, ratio, 0.01,
			stats.Worse))
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
		r := judgetest.Reported(tt.cells...)
		r.Plan.Pins = []sample.Pinning{{Name: sample.PinFar}, {Name: sample.PinNear}}
		if a := answer(r); a.Text[0] != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, a.Text[0], tt.want)
		}
	}
}

// What needs a second thing comes last, with what it needs and what its users must know.
func TestAnswerNamesThePrice(t *testing.T) {
	at := func(m mode.Name, ratio float64, v stats.Verdict) analysis.Cell {
		c := judgetest.Judged(m, mode.ToContainer, workload.RR, ratio, 0.01, v)
		c.From = mode.FromContainer
		return c
	}
	a := answer(judgetest.Reported(at(mode.Host, 1, ""), at(mode.MacvlanBridge, 0.9, stats.Better),
		at(mode.Overlay, 1.05, stats.Worse), at(mode.Bridge, 1.2, stats.Worse)))
	const want = "Keep bridge: +4.0 µs median latency; macvlan-bridge: -2.0 µs (needs " +
		"an address on " +
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
		{"running", sample.Lab, "host", "dial the container's address, or sudo toll fast on all."},
		{"installed", sample.Lab, "host", "dial the container's address."},
		{"", sample.Lab, "host", "dial the container's address."},
		{"", sample.Docker, "host", "dial the container's address, or sudo toll fast on all."},
		{"running", sample.Lab, "container", "dial the container's address."},
		{"running", sample.Lab, "remote",
			`leave out "iptables": false, without which Docker's rules serve the port.`},
		{"running", sample.Lab, "remote-container",
			`leave out "iptables": false, without which Docker's rules serve the port.`},
	} {
		base := judgetest.Judged(mode.Host, mode.ToLoopback, workload.Bulk, 1, 0, "")
		relayed := judgetest.Judged(mode.PublishProxy, mode.ToLoopback, workload.Bulk, 0.4, 0.01,
			stats.Worse)
		relayed.Hops = []string{"lo", "proxy", "bridge"}
		base.On, base.From, relayed.On, relayed.From = c.on, c.from, c.on, c.from
		r := judgetest.Reported(base, relayed)
		r.Environment.Docker = c.docker
		if said := strings.Join(answer(r).Text, "\n"); !strings.HasSuffix(said, ": "+c.says) {
			t.Errorf("%+v: %s", c, said)
		}
	}
}

// What pacing makes unclear has its figure without pacing, and the reason once.
func TestAnswerWherePacingIsUnclear(t *testing.T) {
	at := func(pin string) analysis.Cell {
		c := judgetest.Judged(mode.Bridge, mode.ToContainer, workload.Bulk, 0.63, 0.28,
			stats.Unclear)
		c.Pin = pin
		c.Unpaced = &analysis.Ratio{To: "host+congestion=reno", Median: 0.92, Low: 0.91, High: 0.93,
			N: 40, Verdict: stats.Worse}
		c.Warnings = []analysis.Warning{{Code: analysis.Repeats, Text: "paced"}}
		return c
	}
	r := judgetest.Reported(at(sample.PinFar), at(sample.PinNear),
		judgetest.Judged(mode.PublishNAT, mode.ToLoopback, workload.Bulk, 0.4, 0.01, stats.Worse))
	r.Plan.Pins = []sample.Pinning{{Name: sample.PinFar}, {Name: sample.PinNear}}
	r.Plan.Unpaced, r.Environment.Congestion = "congestion=reno", "bbr"
	said := strings.Join(answer(r).Text, "\n")
	for _, want := range []string{"-8 % with reno, unclear with bbr",
		"2 of 3 verdicts are unclear, mostly because bbr's pacing differs from run to run: " +
			"--congestion reno measures without it."} {
		if strings.Count(said, want) != 1 {
			t.Errorf("%q is not there once:\n%s", want, said)
		}
	}
}

func TestPacingIsInTheAnswer(t *testing.T) {
	const unpaced = "congestion=reno"
	cells := judgetest.Trio(mode.Bridge, "bulk")
	for _, c := range []sample.Cell{cells[0], cells[2]} {
		c.Tune = unpaced
		cells = append(cells, c)
	}
	answer := func(rates ...float64) string {
		r := judgetest.New(t, cells...)
		r.File.Header.Plan.Unpaced = unpaced
		r.File.Header.Environment.Congestion = "bbr"
		judged := comparison.Judge(r.Rounds(6, judgetest.Steady(rates...)).File)
		Fill(judged)
		return strings.Join(judged.Answer.Text, "\n")
	}
	for _, tt := range []struct {
		rates []float64
		want  string
	}{
		{[]float64{20, 20, 15, 50, 50},
			"Keep bridge: -25 % throughput, all of it bbr's pacing: 0 % with reno."},
		{[]float64{20, 20, 15.4, 50, 49.1},
			"Keep bridge: -23 % throughput, nearly all of it bbr's pacing: -2 % with reno."},
		{[]float64{20, 20, 15.4, 50, 45},
			"Keep bridge: -23 % throughput, most of it bbr's pacing: -10 % with reno."},
		{[]float64{20, 20, 18, 50, 30},
			"Keep bridge: -10 % throughput, reduced by bbr's pacing: -40 % with reno."},
		{[]float64{20, 20, 19, 50, 47.5}, "Keep bridge: -5 % throughput."},
	} {
		if got := answer(tt.rates...); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.rates, got, tt.want)
		}
	}
}
