package endpoints_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/endpoints"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/sentence"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

var verdicts = []stats.Verdict{stats.Better, stats.Worse, stats.Same, stats.Unclear}

// judged returns the report of a results file, with its findings in words.
func judged(f *sample.File) *analysis.Report {
	r := endpoints.Judge(f)
	sentence.Fill(r)
	return r
}

func answerOf(r *analysis.Report, culprits []endpoints.Culprit) *analysis.Answer {
	r.Study, r.Answer, r.Found = sample.StudyEndpoints, nil, endpoints.Findings(r, culprits)
	sentence.Fill(r)
	return r.Answer
}

// proxied returns the codes of the findings about docker-proxy.
func proxied(r *analysis.Report) (out []string) {
	for _, f := range r.Found {
		switch f.Code {
		case endpoints.Proxied, endpoints.ProxiedAlone, endpoints.ProxyCosts, endpoints.ProxyFree:
			out = append(out, f.Code)
		}
	}
	return slices.Compact(out)
}

func found(r *analysis.Report, code string) bool {
	return slices.ContainsFunc(r.Found, func(f analysis.Finding) bool { return f.Code == code })
}

// The routes lead to a database, and the verdicts are relative to the first one.
func routes(vs []stats.Verdict) *analysis.Report {
	r := &analysis.Report{}
	r.Plan.Loads, r.Plan.Baseline = []sample.Load{
		{Kind: workload.SQL, Window: 1, Options: sample.SQLOptions{Queries: 20}}}, "first"
	r.Cells = []analysis.Cell{{Cell: sample.Cell{Mode: "first", Load: workload.SQL},
		Primary:  workload.LatencyP50,
		Baseline: true}}
	for i, v := range vs {
		x := map[stats.Verdict]float64{stats.Better: 0.6, stats.Worse: 1.7, stats.Same: 1,
			stats.Unclear: 1.2}[v]
		r.Cells = append(r.Cells, analysis.Cell{Cell: sample.Cell{
			Mode: mode.Name(fmt.Sprint("<r", i, ">")), Load: workload.SQL},
			Primary: workload.LatencyP50,
			Metrics: map[string]analysis.Metric{
				workload.LatencyP50: {Unit: "s", Median: 1e-3 * x, Rounds: make([]float64, 12),
					Ratio: &analysis.Ratio{To: "first", Median: x, Low: x - 0.01, High: x + 0.01,
						N:       12,
						Verdict: v},
					Price: &analysis.Price{Unit: "s", Median: 1e-3 * (x - 1),
						Low:  1e-3 * (x - 1.01),
						High: 1e-3 * (x - 0.99), N: 12}}}})
	}
	return r
}

func TestAnswerIsNoStrongerThanVerdicts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		vs := make([]stats.Verdict, 1+rnd.IntN(5))
		for i := range vs {
			vs[i] = verdicts[rnd.IntN(len(verdicts))]
		}
		cells := map[string][]int{}
		for _, f := range endpoints.Findings(routes(vs), nil) {
			cells[f.Code] = append(cells[f.Code], f.Cells...)
		}
		for i, v := range vs {
			for code, is := range map[string]bool{
				endpoints.RoutesDiffer:  v == stats.Better || v == stats.Worse,
				endpoints.RoutesSame:    v == stats.Same,
				endpoints.RoutesUnclear: v == stats.Unclear} {
				if slices.Contains(cells[code], i+1) != is {
					t.Errorf("%v: %s of %v", vs, code, cells[code])
				}
			}
		}
	}
}

func TestAnswerSaysPriceOfQuery(t *testing.T) {
	said := strings.Join(answerOf(routes([]stats.Verdict{stats.Worse}), nil).Text, "\n")
	if said != "Against first: <r0> adds 700 µs (690–710) to the median page time: 35.0 µs "+
		"(34.5–35.5) a query." {
		t.Error(said)
	}
}

func TestAnswerAccuses(t *testing.T) {
	for b, code := range map[endpoints.Blame]string{endpoints.Network: endpoints.BlameNetwork,
		endpoints.Server: endpoints.BlameModel, endpoints.Both: endpoints.BlameBoth,
		endpoints.Nobody: endpoints.BlameNobody, endpoints.NotKnown: endpoints.BlameUnclear,
		endpoints.TooFew: endpoints.BlameTooFew, endpoints.NoOther: endpoints.BlameOneRoute,
		endpoints.Held: endpoints.BlameHeld} {
		r := routes([]stats.Verdict{stats.Same, stats.Same})
		a := answerOf(r, []endpoints.Culprit{{Route: "<r0>", Blame: b}, {Route: "<r1>", Blame: b}})
		if f := r.Found[0]; a.Question != "Is it the network or the model?" || f.Code != code ||
			!slices.Equal(f.Cells, []int{1, 2}) {
			t.Errorf("%s: %+v", b, f)
		}
	}
	one := routes(nil)
	if said := strings.Join(answerOf(one, nil).Text, "\n"); !strings.HasPrefix(said,
		"With one route, the cost of the path cannot be measured") {
		t.Error(said)
	}
	one.Cells = one.Cells[:0]
	if a := answerOf(one, nil); a != nil {
		t.Errorf("of nothing: %+v", a)
	}
	lost := routes([]stats.Verdict{stats.Same})
	lost.Cells, lost.Failed = lost.Cells[:1], []analysis.Failed{{Cell: sample.Cell{Mode: "<r0>"}}}
	if said := strings.Join(answerOf(lost, nil).Text, "\n"); !strings.HasPrefix(said,
		"Nothing can be compared") {
		t.Error(said)
	}
}

func TestAnswerSaysOne(t *testing.T) {
	one := 1.0
	for _, s := range workload.Suspects() {
		if s.Says == "" || s.Unit == "1" || s.Least > 0 {
			continue
		}
		r := routes([]stats.Verdict{stats.Same})
		r.Cells[len(r.Cells)-1].Metrics[workload.Resent] = analysis.Metric{Merged: new(float64)}
		r.Cells[len(r.Cells)-1].Metrics[s.Metric] = analysis.Metric{Merged: &one}
		said := strings.Join(answerOf(r, nil).Text, "\n")
		if !strings.Contains(said, s.One) || regexp.MustCompile(`\b1 \w+s\b`).MatchString(said) {
			t.Errorf("%s: %s", s.Metric, said)
		}
	}
}

func TestAnswerNamesSuspects(t *testing.T) {
	total := func(n float64) analysis.Metric { return analysis.Metric{Merged: &n} }
	in := func(rounds ...float64) analysis.Metric {
		n := 0.0
		for _, x := range rounds {
			n += x
		}
		return analysis.Metric{Merged: &n, Rounds: rounds}
	}
	for name, tt := range map[string]struct {
		metrics map[string]analysis.Metric
		says    string
	}{
		"an old file": {nil, ""},
		"nothing": {map[string]analysis.Metric{
			workload.Resent: total(0), workload.OutOfOrder: total(0)},
			"No other suspect. The server's side was not examined: toll did not find " +
				"it.\nLooked for: no segment was lost or out of order and no look-up of a name " +
				"took long."},
		"lost": {map[string]analysis.Metric{
			workload.Resent: total(3), workload.OutOfOrder: total(7)},
			"Other suspects: <r0>: 3 segments were sent again; <r0>: 7 segments came out " +
				"of order. The server's side was not examined: toll did not find it.\nLooked " +
				"for: no look-up of a name took long."},
		"throttled once": {map[string]analysis.Metric{
			workload.Resent: total(0), workload.Stops: total(5)},
			"Other suspects: <r0>: the client's CPU limit stopped it 5 times. The server's " +
				"side was not examined: toll did not find it.\nLooked for: no segment was lost " +
				"or out of order and no look-up of a name took long."},
		"throttled": {map[string]analysis.Metric{
			workload.Resent: total(0), workload.Stops: total(5), workload.Periods: total(9)},
			"Other suspects: <r0>: the client's CPU limit stopped it in 5 of 9 periods. " +
				"The server's side was not examined: toll did not find it.\nLooked for: no " +
				"segment was lost or out of order and no look-up of a name took long."},
		"server throttled": {map[string]analysis.Metric{
			workload.Resent: total(0), workload.ServerStops: total(137),
			workload.ServerPeriods: total(254)},
			"Other suspects: <r0>: the server in container 100%shop: its CPU limit stopped " +
				"it in 137 of 254 periods.\nLooked for: no segment was lost or out of order " +
				"and no look-up of a name took long."},
		"server alone": {map[string]analysis.Metric{
			workload.ServerStops: total(1), workload.ServerPeriods: total(2)},
			"Other suspects: <r0>: the server in container 100%shop: its CPU limit stopped " +
				"it in 1 of 2 periods.\nLooked for: no look-up of a name took long."},
		"server at ease": {map[string]analysis.Metric{
			workload.Resent: total(0), workload.ServerStops: total(0),
			workload.ServerPeriods: total(9)},
			"No other suspect.\nLooked for: no segment was lost or out of order, no CPU " +
				"limit stopped the server and no look-up of a name took long."},
		"overflows": {map[string]analysis.Metric{
			workload.Resent: total(0), workload.ServerOverflows: total(2)},
			"Other suspects: <r0>: the server in container 100%shop: listen queues in its " +
				"network namespace overflowed 2 times: let the server listen with a larger " +
				"backlog (net.core.somaxconn caps it).\nLooked for: no other segment was lost " +
				"or out of order and no look-up of a name took long."},
		"overflows look like loss": {map[string]analysis.Metric{
			workload.Resent: total(938), workload.ClientSent: total(2000),
			workload.ServerOverflows: total(1020)},
			"Other suspects: <r0>: the server in container 100%shop: listen queues in its " +
				"network namespace overflowed 1020 times, so the client sent 938 segments " +
				"again: let the server listen with a larger backlog (net.core.somaxconn caps " +
				"it).\nLooked for: no other segment was lost or out of order and no look-up of " +
				"a name took long."},
		"overflows alone": {map[string]analysis.Metric{
			workload.Resent: total(938), workload.ClientSent: total(2000),
			workload.ServerOverflows: total(800)},
			"Other suspects: <r0>: the server in container 100%shop: listen queues in its " +
				"network namespace overflowed 800 times, so the client sent 938 segments " +
				"again: let the server listen with a larger backlog (net.core.somaxconn caps " +
				"it).\nLooked for: no other segment was lost or out of order and no look-up of " +
				"a name took long."},
		"overflows and loss": {map[string]analysis.Metric{
			workload.Resent: total(938), workload.ClientSent: total(2000),
			workload.ServerOverflows: total(20)},
			"Other suspects: <r0>: 938 of 2000 segments were sent again; <r0>: the server " +
				"in container 100%shop: listen queues in its network namespace overflowed 20 " +
				"times: let the server listen with a larger backlog (net.core.somaxconn caps " +
				"it).\nLooked for: no look-up of a name took long."},
		"dropped": {map[string]analysis.Metric{
			workload.Resent: total(0), workload.ServerOverflows: total(0),
			workload.ServerDrops: total(7)},
			"Other suspects: <r0>: the server in container 100%shop: 7 connections were " +
				"dropped in its network namespace before they were accepted: too many " +
				"half-open ones (net.ipv4.tcp_max_syn_backlog), or no memory.\nLooked for: no " +
				"segment was lost or out of order, the server's listen queue did not overflow " +
				"and no look-up of a name took long."},
		"an unseen queue": {map[string]analysis.Metric{
			workload.Resent: total(938), workload.ClientSent: total(2000),
			workload.ResentConnects: total(930)},
			"Other suspects: <r0>: 938 of 2000 segments were sent again, most of them to " +
				"open connections: the server's listen queue was full, or they were lost. The " +
				"server's side was not examined: toll did not find it.\nLooked for: no look-up " +
				"of a name took long."},
		"a handful": {map[string]analysis.Metric{
			workload.Resent:     in(0, 0, 0, 0, 15, 0, 0, 0),
			workload.OutOfOrder: in(0, 1, 0, 0, 0, 0, 0, 0), workload.ClientSent: total(400)},
			"No other suspect. The server's side was not examined: toll did not find " +
				"it.\nLooked for: only 16 segments were lost or out of order and no look-up of " +
				"a name took long."},
		"one": {map[string]analysis.Metric{workload.Resent: in(0, 0, 0, 0, 1)},
			"No other suspect. The server's side was not examined: toll did not find " +
				"it.\nLooked for: only 1 segment was lost or out of order and no look-up of a " +
				"name took long."},
		"a small share": {map[string]analysis.Metric{
			workload.Resent: in(4, 5, 3, 3), workload.ClientSent: total(1e6)},
			"No other suspect. The server's side was not examined: toll did not find " +
				"it.\nLooked for: only 15 segments were lost or out of order and no look-up of " +
				"a name took long."},
		"in each round": {map[string]analysis.Metric{
			workload.Resent: in(4, 5, 3, 3), workload.ClientSent: total(400)},
			"Other suspects: <r0>: 15 of 400 segments were sent again. The server's side " +
				"was not examined: toll did not find it.\nLooked for: no look-up of a name " +
				"took long."},
		"few resent": {map[string]analysis.Metric{
			workload.Resent: total(0), workload.ServerResent: total(1),
			workload.ServerSent: total(1e6)},
			"No other suspect.\nLooked for: no segment was lost or out of order and no " +
				"look-up of a name took long."},
		"server resends": {map[string]analysis.Metric{
			workload.Resent: total(0), workload.ServerResent: total(50),
			workload.ServerSent: total(1000)},
			"Other suspects: <r0>: the server in container 100%shop: its network namespace " +
				"sent 50 of 1000 segments again.\nLooked for: no segment was lost or out of " +
				"order and no look-up of a name took long."},
		"refused": {map[string]analysis.Metric{
			workload.Resent: total(0), workload.RefusedDials: total(4)},
			"Other suspects: <r0>: 4 connections to its host were refused or not answered. " +
				"The server's side was not examined: toll did not find it.\nLooked for: no " +
				"segment was lost or out of order and no look-up of a name took long."},
		"no ports": {map[string]analysis.Metric{
			workload.Resent: total(0), workload.NoPortDials: total(9),
			workload.PortUse: {Median: 0.98}},
			"Other suspects: <r0>: 9 connections failed because no local port was left: " +
				"let the client keep connections open, or widen net.ipv4.ip_local_port_range; " +
				"<r0>: 98 % of the local ports are used up, most by ended connections in " +
				"TIME_WAIT. The server's side was not examined: toll did not find it.\nLooked " +
				"for: no segment was lost or out of order and no look-up of a name took long."},
		"ports used": {map[string]analysis.Metric{
			workload.Resent: total(0), workload.PortUse: {Median: 0.98}},
			"Other suspects: <r0>: 98 % of the local ports are used up, most by ended " +
				"connections in TIME_WAIT. The server's side was not examined: toll did not " +
				"find it.\nLooked for: no segment was lost or out of order and no look-up of a " +
				"name took long."},
		"no connection, no ports": {map[string]analysis.Metric{
			workload.Resent: total(0), workload.Dialled: {}, workload.NoPortDials: total(700)},
			"Other suspects: <r0>: 700 connections failed because no local port was left: " +
				"let the client keep connections open, or widen net.ipv4.ip_local_port_range. " +
				"The server's side was not examined: toll did not find it.\nLooked for: no " +
				"segment was lost or out of order and no look-up of a name took long."},
		"no connection": {map[string]analysis.Metric{
			workload.Resent: total(0), workload.Dialled: {}, workload.NoPortDials: total(0)}, ""},
		"docker-proxy without ports": {map[string]analysis.Metric{
			workload.Resent: total(0), workload.ProxyPortUse: {Median: 0.99}},
			"Other suspects: <r0>: 99 % of the local ports between docker-proxy and its " +
				"container are used up, most by ended connections in TIME_WAIT: it closes " +
				"clients' connections that it cannot forward. The server's side was not " +
				"examined: toll did not find it.\nLooked for: no segment was lost or out of " +
				"order and no look-up of a name took long."},
		"ports left": {map[string]analysis.Metric{
			workload.Resent: total(0), workload.PortUse: {Median: 0.5}},
			"No other suspect. The server's side was not examined: toll did not find " +
				"it.\nLooked for: no segment was lost or out of order and no look-up of a name " +
				"took long."},
		"full": {map[string]analysis.Metric{
			workload.Resent: total(0), workload.BusyShare: {Median: 0.99}},
			"Other suspects: <r0>: the CPUs of the client's machine were busy for 99 % of " +
				"the time. The server's side was not examined: toll did not find it.\nLooked " +
				"for: no segment was lost or out of order and no look-up of a name took long."},
		"interrupts": {map[string]analysis.Metric{
			workload.Resent: total(0), workload.SoftIRQShare: {Median: 0.7}},
			"Other suspects: <r0>: interrupts of the network took 70 % of a CPU's time. " +
				"The server's side was not examined: toll did not find it.\nLooked for: no " +
				"segment was lost or out of order and no look-up of a name took long."},
		"slow names": {map[string]analysis.Metric{
			workload.Resent: total(0), workload.LookUpTime: {Median: 10},
			workload.ConnectTime: {Median: 10}},
			"Other suspects: <r0>: its name took 10.0 s to look up, once for each " +
				"connection. The server's side was not examined: toll did not find it.\nLooked " +
				"for: no segment was lost or out of order."},
		"a name of the hosts file": {map[string]analysis.Metric{
			workload.Resent: total(0), workload.LookUpTime: {Median: 43e-6},
			workload.ConnectTime: {Median: 270e-6}},
			"No other suspect. The server's side was not examined: toll did not find " +
				"it.\nLooked for: no segment was lost or out of order and no look-up of a name " +
				"took long."},
		"kept connections wait": {map[string]analysis.Metric{
			workload.Resent: total(0), workload.RTT: {Median: 1e-3},
			workload.KeptExcess:  {Median: 0.0314, Rounds: make([]float64, 6)},
			workload.DelayedACKs: total(42)},
			"Other suspects: <r0>: over a kept connection, a response has a wait that is " +
				"31.4 ms longer than over a new one: it waits for delayed acknowledgements of " +
				"40 ms, of which the kernel counted 42 (one end writes in two pieces and waits " +
				"for the other's acknowledgement in between: set TCP_NODELAY there, or write " +
				"once). The server's side was not examined: toll did not find it.\nLooked for: " +
				"no segment was lost or out of order and no look-up of a name took long."},
		"kept connections wait for something else": {map[string]analysis.Metric{
			workload.Resent: total(0), workload.RTT: {Median: 1e-3},
			workload.KeptExcess:  {Median: 0.0314, Rounds: make([]float64, 6)},
			workload.DelayedACKs: total(3)},
			"No other suspect. The server's side was not examined: toll did not find " +
				"it.\nLooked for: no segment was lost or out of order and no look-up of a name " +
				"took long."},
		"kept connections are the same": {map[string]analysis.Metric{
			workload.Resent: total(0), workload.KeptExcess: {Median: 2e-4,
				Rounds: make([]float64, 6)}, workload.DelayedACKs: total(42)},
			"No other suspect. The server's side was not examined: toll did not find " +
				"it.\nLooked for: no segment was lost or out of order and no look-up of a name " +
				"took long."},
		"quick names": {map[string]analysis.Metric{
			workload.Resent: total(0), workload.LookUpTime: {Median: 0.002},
			workload.ConnectTime: {Median: 0.1}},
			"No other suspect. The server's side was not examined: toll did not find " +
				"it.\nLooked for: no segment was lost or out of order and no look-up of a name " +
				"took long."},
		"delayed ACKs": {map[string]analysis.Metric{
			workload.Resent: total(0), workload.QueryP50: {Median: 0.0402},
			workload.RTT: {Median: 1e-3}, workload.DelayedACKs: total(290)},
			"Other suspects: <r0>: a query takes 40.2 ms at a round trip of 1.00 ms, " +
				"without loss: it waits for delayed acknowledgements of 40 ms, of which the " +
				"kernel counted 290 (one end writes in two pieces and waits for the other's " +
				"acknowledgement in between: set TCP_NODELAY there, or write once). The " +
				"server's side was not examined: toll did not find it.\nLooked for: no segment " +
				"was lost or out of order and no look-up of a name took long."},
		"perhaps delayed ACKs": {map[string]analysis.Metric{
			workload.Resent: total(0), workload.QueryP50: {Median: 0.0402},
			workload.RTT: {Median: 1e-3}, workload.DelayedACKs: total(0)},
			"Other suspects: <r0>: a query takes 40.2 ms at a round trip of 1.00 ms, " +
				"without loss: as long as a delayed acknowledgement (one end writes in two " +
				"pieces and waits for the other's acknowledgement in between: set TCP_NODELAY " +
				"there, or write once). The server's side was not examined: toll did not find " +
				"it.\nLooked for: no segment was lost or out of order and no look-up of a name " +
				"took long."},
		"no delayed ACKs": {map[string]analysis.Metric{
			workload.Resent: total(0), workload.QueryP50: {Median: 0.0402},
			workload.RTT: {Median: 1e-3}, workload.DelayedACKs: total(0),
			workload.ServerStops: total(0)},
			"No other suspect.\nLooked for: no segment was lost or out of order, no CPU " +
				"limit stopped the server and no look-up of a name took long."},
		"a loss": {map[string]analysis.Metric{
			workload.Resent: total(1), workload.QueryP50: {Median: 0.0402},
			workload.RTT: {Median: 1e-3}, workload.DelayedACKs: total(300)},
			"Other suspects: <r0>: 1 segment was sent again. The server's side was not " +
				"examined: toll did not find it.\nLooked for: no look-up of a name took long."},
	} {
		t.Run(name, func(t *testing.T) {
			r := routes([]stats.Verdict{stats.Same})
			if strings.HasPrefix(name, "kept") {
				r.Plan.Loads = []sample.Load{{Kind: workload.SQL, Streams: 2,
					Options: sample.ChatOptions{Requests: 8}}}
			}
			for m, x := range tt.metrics {
				r.Cells[len(r.Cells)-1].Metrics[m] = x
			}
			r.Cells[len(r.Cells)-1].Facts = map[string]string{"container": "100%shop"}
			got := strings.Join(append(answerOf(r, nil).Text, r.Findings...), "\n")
			got, ok := strings.CutPrefix(got, "<r0> has the same median page time as first.")
			if got = strings.TrimPrefix(got, "\n"); got != tt.says || !ok {
				t.Errorf("%q, want %q", got, tt.says)
			}
		})
	}
}

func TestAnswerSaysWhatWasNotExamined(t *testing.T) {
	n, known := new(float64), analysis.Metric{Merged: new(float64)}
	*n = 50
	const why = "toll must be root to see its process"
	for name, tt := range map[string]struct {
		metrics []map[string]analysis.Metric
		unseen  []string
		says    string // at the end
	}{
		"all of it": {[]map[string]analysis.Metric{{}, {}}, []string{why, why},
			"The server's side was not examined: " + why + "."},
		"beside a suspect": {[]map[string]analysis.Metric{{}, {workload.Resent: {Merged: n}}},
			[]string{why, why},
			"sent again. The server's side was not examined: " + why + "."},
		"of one route": {[]map[string]analysis.Metric{{workload.ServerHits: known}, {}},
			[]string{"", why}, "The server's side of <r0> was not examined: " + why + "."},
		"but the queues": {[]map[string]analysis.Metric{{workload.ServerOverflows: known},
			{workload.ServerOverflows: known}}, []string{why, why},
			"The server was not examined, except for its listen queues: " + why + "."},
		"an old file": {[]map[string]analysis.Metric{{}, {}}, []string{"", ""},
			"The server's side was not examined: toll did not find it."},
		"none": {[]map[string]analysis.Metric{{workload.ServerHits: known},
			{workload.ServerHits: known}}, []string{"", ""}, "No other suspect."},
	} {
		r := routes([]stats.Verdict{stats.Same})
		for i := range r.Cells {
			c := &r.Cells[i]
			if c.Metrics == nil {
				c.Metrics = map[string]analysis.Metric{}
			}
			c.Metrics[workload.Resent] = known
			maps.Copy(c.Metrics, tt.metrics[i])
			c.Facts = map[string]string{sample.FactServerUnseen: tt.unseen[i]}
		}
		said := answerOf(r, nil).Text
		if got := said[len(said)-1]; !strings.HasSuffix(got, tt.says) ||
			strings.Count(got, "examined") != strings.Count(tt.says, "examined") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestAnswerJudgesConnecting(t *testing.T) {
	for _, tt := range []struct {
		verdict stats.Verdict
		price   float64
		says    string
	}{
		{verdict: stats.Worse, price: 0.302,
			says: "To connect, <r0> takes 302.0 ms (301.0–303.0) longer than first."},
		{verdict: stats.Better, price: -0.302,
			says: "To connect, <r0> takes 302.0 ms (301.0–303.0) less than first."},
		{verdict: stats.Same, price: 0.302},
		{verdict: stats.Unclear, price: 0.302},
		{verdict: stats.Worse, price: 5e-6}, // of a page of 1 ms
	} {
		r := routes([]stats.Verdict{stats.Same})
		r.Cells[1].Metrics[workload.ConnectTime] = analysis.Metric{Unit: "s",
			Ratio: &analysis.Ratio{To: "first", Verdict: tt.verdict, N: 12},
			Price: &analysis.Price{Unit: "s", Median: tt.price, Low: tt.price - 1e-3,
				High: tt.price + 1e-3, N: 12}}
		said := strings.Join(answerOf(r, nil).Text, "\n")
		if found(r, endpoints.Connecting) != (tt.says != "") ||
			tt.says != "" && !testgolden.HasLine(said, tt.says) {
			t.Errorf("%+v: %s", tt, said)
		}
	}
}

func TestAnswerNamesAddressPassedOver(t *testing.T) {
	for took, says := range map[float64]bool{0.302: true, 0.001: false} {
		r := routes(nil)
		r.Cells[0].Metrics = map[string]analysis.Metric{
			workload.Resent: {Merged: new(float64)}, workload.ConnectTime: {Median: took}}
		r.Cells[0].Facts = map[string]string{sample.FactUnanswered: "::1"}
		said := strings.Join(answerOf(r, nil).Text, "\n")
		if found(r, endpoints.PassedOver) != says || says && !testgolden.HasLine(said,
			"Other suspects: first: connecting takes 302 ms, because the first address "+
				"of its name, "+
				"::1, does not answer. The server's side was not examined: toll did not find it.") {
			t.Errorf("%g s: %s", took, said)
		}
	}
}

func TestDetailsSuggestRequests(t *testing.T) {
	for _, tt := range []struct {
		kept     string
		requests int
		says     bool
	}{{"yes", 1, true}, {"yes", 8, false}, {"", 1, false}} {
		r := routes(nil)
		r.Plan.Loads = []sample.Load{{Kind: workload.SQL,
			Options: sample.ChatOptions{Requests: tt.requests}}}
		r.Cells[0].Metrics = map[string]analysis.Metric{workload.Resent: {Merged: new(float64)}}
		r.Cells[0].Facts = map[string]string{sample.FactKept: tt.kept}
		if answerOf(r, nil); found(r, endpoints.NewEachTime) != tt.says {
			t.Errorf("%+v: %+v", tt, r.Found)
		}
	}
}

func TestAnswerNamesOffloads(t *testing.T) {
	const client, server = sample.FactOffloadsOff, sample.FactServerOffloadsOff
	for name, tt := range map[string]struct {
		verdict   stats.Verdict
		base, its map[string]string
		lower     bool // is better
		says      string
	}{
		"off": {stats.Worse, nil, map[string]string{client: "gro, gso, tso"}, false,
			"<r0>: its device e2 has gro, gso and tso off, unlike that of first: ethtool -K e2 " +
				"gro on gso on tso on"},
		"the server's": {stats.Worse, nil, map[string]string{server: "tx-checksum"}, false,
			"<r0>: the server's device e9 has tx-checksum off, unlike that of first: " +
				"ethtool -K e9 tx on"},
		"some off for both": {stats.Worse, map[string]string{client: "gro"},
			map[string]string{client: "gro, tso"}, false,
			"<r0>: its device e2 has tso off, unlike that of first: ethtool -K e2 tso on"},
		"off for the baseline": {stats.Better, map[string]string{client: "tso"}, nil, false,
			"first: its device e2 has tso off, unlike that of <r0>: ethtool -K e2 tso on"},
		"off for both": {stats.Worse, map[string]string{client: "gro"},
			map[string]string{client: "gro"}, false, ""},
		"off for the faster one": {stats.Better, nil, map[string]string{client: "gro"}, false, ""},
		"no difference":          {stats.Same, nil, map[string]string{client: "gro"}, false, ""},
		"a time":                 {stats.Worse, nil, map[string]string{client: "gro"}, true, ""},
	} {
		r := routes([]stats.Verdict{tt.verdict})
		for i, facts := range []map[string]string{tt.base, tt.its} {
			c := &r.Cells[i]
			if c.Facts = map[string]string{sample.FactDevice: "e2",
				sample.FactServerDevice: "e9"}; c.Metrics == nil {
				c.Metrics = map[string]analysis.Metric{}
			}
			maps.Copy(c.Facts, facts)
			m := c.Metrics[c.Primary]
			m.Higher = !tt.lower
			c.Metrics[c.Primary], c.Metrics[workload.Resent] = m,
				analysis.Metric{Merged: new(float64)}
		}
		said := strings.Join(answerOf(r, nil).Text, "\n")
		line := "Other suspects: " + tt.says +
			" (not tried: a copy of the network has no device like " +
			"it). The server's side was not examined: toll did not find it."
		if found(r, endpoints.OffloadsOff) != (tt.says != "") ||
			tt.says != "" && !testgolden.HasLine(said, line) {
			t.Errorf("%s: %s", name, said)
		}
	}
}

func TestAnswerNamesProxies(t *testing.T) {
	for _, tt := range []struct {
		name   string
		at     int
		vs     []stats.Verdict
		blames endpoints.Blame
		says   string
	}{
		{"worse", 1, []stats.Verdict{stats.Worse}, "",
			"<r0> goes through docker-proxy: dial the container, 172.17.0.2:80, or sudo toll " +
				"fast on 8080."},
		{"same", 1, []stats.Verdict{stats.Same}, "",
			"<r0> goes through docker-proxy, at no measurable cost."},
		{"same, and tokens late", 1, []stats.Verdict{stats.Same}, endpoints.Network,
			"<r0> goes through docker-proxy: dial the container, 172.17.0.2:80, or sudo toll " +
				"fast on 8080."},
		{"unclear", 1, []stats.Verdict{stats.Unclear}, "", "<r0> goes through docker-proxy."},
		{"the baseline", 0, []stats.Verdict{stats.Better}, "",
			"first goes through docker-proxy: dial the container, 172.17.0.2:80, or sudo toll " +
				"fast on 8080."},
		{"alone", 0, nil, "",
			"first goes through docker-proxy: the container's own address, 172.17.0.2:80, is " +
				"another route to it."},
	} {
		r := routes(tt.vs)
		r.Cells[tt.at].Facts, r.Cells[tt.at].Dial = map[string]string{
			"behind_docker_proxy": "172.17.0.2:80"}, "127.0.0.1:8080"
		var culprits []endpoints.Culprit
		if tt.blames != "" {
			culprits = []endpoints.Culprit{{Route: "<r0>", Blame: tt.blames}}
		}
		if said := strings.Join(answerOf(r, culprits).Text, "\n"); !testgolden.HasLine(said, tt.says) ||
			len(proxied(r)) != 1 {
			t.Errorf("%s: %s", tt.name, said)
		}
	}
}

// Whatever its loads show, a route behind a docker-proxy is called free only relative to a route
// without one.
func TestAnswerNamesProxyOnce(t *testing.T) {
	behind := map[string]string{endpoints.BehindProxy: "172.17.0.2:80"}
	r, worse := routes([]stats.Verdict{stats.Same}), routes([]stats.Verdict{stats.Worse})
	r.Cells = append(r.Cells, worse.Cells...)
	for _, i := range []int{1, 3} {
		r.Cells[i].Facts, r.Cells[i].Dial = behind, "127.0.0.1:8080"
	}
	if answerOf(r, nil); !slices.Equal(proxied(r), []string{endpoints.ProxyCosts}) {
		t.Errorf("same under one load and worse under another one: %q", proxied(r))
	}
	for dial, says := range map[string]string{"localhost:8080": ", or sudo toll fast on 8080.",
		"[::1]:81": ", or sudo toll fast on 81.", "192.0.2.7:8080": "."} {
		r.Cells[1].Dial, r.Cells[3].Dial = dial, dial
		got := strings.Join(answerOf(r, nil).Text, "\n")
		if len(proxied(r)) != 1 || !testgolden.HasLine(got,
			"<r0> goes through docker-proxy: dial the container, 172.17.0.2:80"+says) {
			t.Errorf("%s: %q", dial, got)
		}
	}
	r = routes([]stats.Verdict{stats.Same})
	r.Cells[0].Facts, r.Cells[1].Facts = behind, behind
	if answerOf(r, nil); found(r, endpoints.ProxyFree) {
		t.Errorf("the baseline goes through one, too: %q", proxied(r))
	}
}

func TestAnswerOfTwoLoads(t *testing.T) {
	r := routes([]stats.Verdict{stats.Worse})
	r.Plan.Loads = []sample.Load{{Kind: workload.Chat}, {Kind: workload.Batch}}
	total := func(n float64) analysis.Metric { return analysis.Metric{Merged: &n} }
	var cells []analysis.Cell
	for i, load := range []string{workload.Chat, workload.Batch} {
		for _, c := range r.Cells {
			m := c.Metrics[workload.LatencyP50]
			c.Load, c.Primary = load, workload.ResponseTime
			c.Metrics = map[string]analysis.Metric{
				workload.ResponseTime: m, workload.Resent: total(float64(2 + i))}
			cells = append(cells, c)
		}
	}
	r.Cells = cells
	said := strings.Join(answerOf(r, nil).Text, "\n")
	for _, want := range []string{
		"Against first: <r0> adds 700 µs (690–710) to the median response time.",
		"Against first: <r0> adds 700 µs (690–710) to the median time to a whole response.",
		"Other suspects: first, chat: 2 segments were sent again; <r0>, chat: 2 " +
			"segments were sent " +
			"again; first, batch: 3 segments were sent again; <r0>, batch: 3 segments " +
			"were sent again. " +
			"The server's side was not examined: toll did not find it."} {
		if !testgolden.HasLine(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
	r.Found = []analysis.Finding{{Code: endpoints.Adds, Load: workload.Batch, Cells: []int{3}}}
	sentence.Fill(r)
	if got := r.Findings; len(got) != 1 ||
		got[0] != "Over first, <r0> adds +0.700 ms (+0.690 to +0.710) to a response that "+
			"is not streamed ()." {
		t.Errorf("%q", got)
	}
	r.Cells = []analysis.Cell{cells[0], cells[2]}
	if said := strings.Join(answerOf(r, nil).Text, "\n"); !strings.HasPrefix(said,
		"With one route, the cost of the path cannot be measured") {
		t.Error(said)
	}
}

func TestAnswerIsItTheNetwork(t *testing.T) {
	for _, tt := range []struct {
		vs   []stats.Verdict
		says string
	}{
		{[]stats.Verdict{stats.Worse, stats.Same}, "Yes, over <r0>."},
		{[]stats.Verdict{stats.Better, stats.Worse, stats.Unclear},
			"Yes, over first: <r0> is better. Yes, over <r1>."},
		{[]stats.Verdict{stats.Better, stats.Better}, "Yes, over first: <r0> and <r1> are better."},
		{[]stats.Verdict{stats.Same, stats.Same}, "No: the routes do not differ"},
		{[]stats.Verdict{stats.Same, stats.Unclear}, "<r0> has the same requests as first."},
		{[]stats.Verdict{stats.Unclear},
			"It is unclear whether <r0> differs from first in requests."},
		{[]stats.Verdict{stats.Unclear, stats.Unclear},
			"It is unclear whether <r0> and <r1> differ from first in requests."},
		{nil, "With one route, the cost of the path cannot be measured"},
	} {
		r := routes(tt.vs)
		r.Plan.Loads = []sample.Load{{Kind: workload.Exec,
			Options: sample.ExecOptions{Program: &sample.Program{Client: "x {addr}",
				Gauges: []sample.Gauge{{Name: "requests", Unit: "1/s", Scale: 1}}}}}}
		for i := range r.Cells {
			c := &r.Cells[i]
			m := c.Metrics[c.Primary]
			m.Price = nil
			c.Load, c.Primary, c.Metrics = workload.Exec, "requests",
				map[string]analysis.Metric{"requests": m}
		}
		a := answerOf(r, nil)
		if a.Question != "Is it the network?" || !strings.HasPrefix(a.Text[0], tt.says) {
			t.Errorf("%v: %+v", tt.vs, a)
		}
	}
}

// TestTraceable checks that the command that divides requests is named only where packets showed the
// server.
func TestTraceable(t *testing.T) {
	seen := &sample.Evidence{Responses: 10, ByOrder: 10}
	there := &sample.Evidence{Responses: 10, ByOrder: 10,
		Hops: []sample.EvidenceHop{{Machine: "peer gpu1"}}}
	cell := func(name, load, dial string, e *sample.Evidence) analysis.Cell {
		c := analysis.Cell{Cell: sample.Cell{Mode: mode.Name(name), Load: load}}
		c.Dial, c.Evidence = dial, e
		return c
	}
	two := []analysis.Cell{cell("direct", workload.Exec, "172.17.0.2:6379", seen),
		cell("127.0.0.1:6379", workload.Exec, "127.0.0.1:6379", seen)}
	const routes = "sudo toll trace direct=172.17.0.2:6379 127.0.0.1:6379"
	for _, tt := range []struct {
		cells []analysis.Cell
		by    sample.Program
		want  string
	}{
		{two, sample.Program{Recipe: "redis", Client: "redis-benchmark -h {host}"},
			routes + " divides the time of a PING part by part."},
		{two, sample.Program{Client: "ask {addr}", Seconds: 1},
			routes + " --client 'ask {addr}' divides the time of the client's requests " +
				"part by part."},
		{two, sample.Program{Client: "ask {addr} " + strings.Repeat("x ", 20)}, routes +
			", with the --client of this run, divides the time of the client's requests " +
			"part by part."},
		{[]analysis.Cell{cell("direct", workload.Exec, "10.0.0.9:6379", nil)}, sample.Program{},
			""},
		{[]analysis.Cell{cell("vllm", workload.Chat, "127.0.0.1:8000", seen)}, sample.Program{},
			"sudo toll trace --attach 127.0.0.1:8000 divides others' requests."},
		{[]analysis.Cell{cell("vllm", workload.Chat, "10.0.0.9:8000", there)}, sample.Program{},
			""},
	} {
		r := &analysis.Report{}
		r.Cells = tt.cells
		r.Plan.Loads = sample.Loads{{Kind: workload.Exec,
			Options: sample.ExecOptions{Program: &tt.by}}}
		got := strings.Join(answerOf(r, nil).Text, "\n")
		if (found(r, endpoints.Attachable) || found(r, endpoints.Comparable)) != (tt.want != "") ||
			tt.want != "" && !testgolden.HasLine(got, tt.want) {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// A finding names the routes of a verdict, and no others.
func TestFindingsOfVerdicts(t *testing.T) {
	r := routes([]stats.Verdict{stats.Worse, stats.Same, stats.Unclear, stats.Better, stats.Same})
	want := map[string][]int{endpoints.RoutesDiffer: {1, 4}, endpoints.RoutesSame: {2, 5},
		endpoints.RoutesUnclear: {3}, analysis.Unclear: nil}
	for _, f := range endpoints.Findings(r, nil) {
		if cells, ok := want[f.Code]; !ok || !slices.Equal(f.Cells, cells) {
			t.Errorf("%+v", f)
		}
		if f.Code == analysis.Unclear && (f.N != 1 || f.Of != 5) {
			t.Errorf("%+v", f)
		}
		delete(want, f.Code)
	}
	if len(want) > 0 {
		t.Errorf("no %v", want)
	}
}

// A machine that was busy before the first request makes no answer firm: the answer begins so.
func TestBusyBeforeRequests(t *testing.T) {
	for name, others := range map[string]*float64{"unknown": nil, "idle": new(0.1), "busy": new(1.9)} {
		t.Run(name, func(t *testing.T) {
			f := judgetest.Routes(1, nil)
			f.Header.Contention = &sample.Contention{CPUs: 2, Others: others}
			r := judged(f)
			said := slices.ContainsFunc(r.Found, func(x analysis.Finding) bool {
				return x.Code == analysis.Busy
			})
			if want := name == "busy"; said != want || r.TooBusy() != want {
				t.Errorf("found %v, warnings %v", r.Found, r.Warnings)
			}
		})
	}
}

// Where packets show what makes a route slow, nothing says that it may not differ.
func TestPacketsDecideUnclearRoutes(t *testing.T) {
	for name, tt := range map[string]struct {
		relay float64 // ms
		want  bool
	}{"a slow relay": {200, false}, "none": {1, true}} {
		r := routes([]stats.Verdict{stats.Unclear})
		r.Plan.Loads[0].Kind = workload.Chat
		for i := range r.Cells {
			r.Cells[i].Load = workload.Chat
		}
		r.Cells[1].Evidence = judgetest.Evidence([7]float64{1: 60}, [7]float64{1: 300, 4: tt.relay},
			[7]float64{})
		all := endpoints.Findings(r, nil)
		got := slices.ContainsFunc(all, func(f analysis.Finding) bool {
			return f.Code == endpoints.RoutesUnclear
		})
		if got != tt.want {
			t.Errorf("%s: %+v", name, all)
		}
	}
}
