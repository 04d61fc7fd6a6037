package endpoints_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/endpoints"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

type routesRun struct{ *judgetest.Run }

// The first route is the baseline, with a control if there are several.
func newRoutes(t *testing.T, load string, names ...string) routesRun {
	t.Helper()
	var cells []sample.Cell
	var paths []sample.Path
	for i, n := range names {
		c := sample.Cell{Route: n, From: sample.FromHere, Load: load, On: sample.OnEndpoint}
		cells = append(cells, c)
		if i == 0 && len(names) > 1 {
			cells = append(cells, judgetest.Control(c))
		}
		paths = append(paths, sample.Path{Route: n, From: c.From, On: c.On,
			Dial: "10.0.0." + string(rune('1'+i)) + ":80", Hops: []string{},
			Facts: map[string]string{"url": "http://" + n, "server": "s/1"}})
	}
	r := judgetest.New(t, cells...)
	p := &r.File.Header.Plan
	p.Study, p.Baseline = sample.StudyEndpoints, names[0]
	p.Loads = []sample.Load{{Kind: "chat", Streams: 1,
		Options: sample.ChatOptions{Tokens: 101, Stall: 0.2}, Window: 2},
		{Kind: "sql", Streams: 1, Options: sample.SQLOptions{Queries: 20}, Window: 1}}
	p.Loads = slices.DeleteFunc(p.Loads, func(l sample.Load) bool { return l.Kind != load })
	r.File.Header.Paths = paths
	return routesRun{r}
}

func (r routesRun) histogram(times map[time.Duration]int64) *sample.EncodedHisto {
	r.T.Helper()
	h := sample.NewHistogram()
	for d, n := range times {
		if err := h.RecordValues(int64(d), n); err != nil {
			r.T.Fatal(err)
		}
	}
	e, err := sample.Encode(h)
	if err != nil {
		r.T.Fatal(err)
	}
	return e
}

const chatGap = 20 * time.Millisecond

// chatted makes a visit of chat with 101 tokens, every tenth of them delayed by late.
func (r routesRun) chatted(round, cell int, first, late time.Duration) {
	r.T.Helper()
	r.Visit(round, cell, 0, func(v *sample.Visit) {
		response := (first + 100*chatGap + 10*late).Seconds()
		v.Witness = sample.Witness{}
		v.Client = sample.Party{Window: response, Trips: 1, Connections: 1,
			Counts: map[string]int64{"tokens": 101, "glued": 0, "stalls": 0},
			TCP:    sample.TCPInfo{RTT: 50e-6}}
		v.Server = sample.Party{}
		v.Times = map[string]*sample.EncodedHisto{
			"first_token": r.histogram(map[time.Duration]int64{first: 1}),
			"gap":         r.histogram(map[time.Duration]int64{chatGap: 90, chatGap + late: 10})}
		v.Values = map[string]float64{"response": response, "token_rate": 50, "connect": 1e-3}
	})
}

func route(t *testing.T, r *analysis.Report, name string) analysis.Cell {
	t.Helper()
	i := slices.IndexFunc(r.Cells, func(c analysis.Cell) bool { return string(c.Mode) == name })
	if i < 0 {
		t.Fatalf("no way %s among %+v; failed: %+v", name, r.Cells, r.Failed)
	}
	return r.Cells[i]
}

func finding(t *testing.T, r *analysis.Report, begin string) string {
	t.Helper()
	i := slices.IndexFunc(r.Findings, func(f string) bool { return strings.HasPrefix(f, begin) })
	if i < 0 {
		t.Fatalf("no finding begins with %q: %q", begin, r.Findings)
	}
	return r.Findings[i]
}

func TestNetworkOrModel(t *testing.T) {
	const ms = time.Millisecond
	steadily := func(xs ...time.Duration) func(round, cell int) time.Duration {
		return func(_, cell int) time.Duration { return xs[cell] }
	}
	for _, tt := range []struct {
		name   string
		rounds int
		late   func(round, cell int) time.Duration // of baseline, control, route
		want   string
		best   string
		server string // the text's attribution to the server
	}{
		{"server-varies", 8, steadily(100*ms, 100*ms, 101*ms),
			"far: the model: its slow gaps are 101 ms longer than its median gap", "near",
			"100 ms"},
		{"way-varies", 8, steadily(2*ms, 2*ms, 100*ms),
			"far: the network: its slow gaps are 100 ms longer than its median gap",
			"near", "2.0 ms"},
		{"baseline-varies", 8, steadily(100*ms, 100*ms, 2*ms),
			"near: the network: its slow gaps are 100 ms longer than its median gap", "far",
			"2.0 ms"},
		{"both-vary", 8, steadily(60*ms, 60*ms, 100*ms),
			"far: both: its slow gaps are 100 ms longer than its median gap",
			"near", "60 ms"},
		{"unclear", 8, func(round, cell int) time.Duration {
			if cell == 2 && round%2 == 1 {
				return 100 * ms
			}
			return 10 * ms
		}, "far: unclear: its slow gaps are 55 ms longer than its median gap", "near", "10.0 ms"},
		{"server-varies-by-round", 8, func(round, _ int) time.Duration {
			return time.Duration(50+20*round) * ms
		},
			"far: the model: its slow gaps are 120 ms longer than its median gap", "near",
			"120 ms"},
		{"few-rounds", stats.MinJudged - 1, steadily(2*ms, 2*ms, 100*ms),
			"far: too few rounds to say", "near", "2.0 ms"},
		{"enough-rounds", stats.MinJudged, steadily(2*ms, 2*ms, 100*ms), "far: the network: ",
			"near", "2.0 ms"},
		{"steady", 8, steadily(0, 0, 9*ms), "far: neither: its gaps are steady", "near",
			"0.000 ms"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRoutes(t, "chat", "near", "far")
			for round := range tt.rounds {
				for cell := range 3 {
					r.chatted(round, cell, 50*ms, tt.late(round, cell))
				}
			}
			got := judged(r.File)
			finding(t, got, tt.want)
			finding(t, got, "Over near, far adds ")
			finding(t, got, "Is it the network or the model? Over "+tt.best+" the slowest "+
				"tenth of the gaps "+
				"between tokens is "+tt.server+" longer than the median gap")
			if len(got.Findings) != 4 {
				t.Errorf("findings %q", got.Findings)
			}
		})
	}
}

// A gateway that collects the tokens and sends them at once is not the steadiest route: its first
// token comes late, and all come together.
func TestGatewayThatHoldsBack(t *testing.T) {
	const ms = time.Millisecond
	r := newRoutes(t, "chat", "near", "gateway")
	for round := range 8 {
		for cell := range 3 {
			r.chatted(round, cell, 122*ms, 4*ms)
			if cell < 2 {
				continue
			}
			v := &r.File.Visits[len(r.File.Visits)-1]
			v.Client.Counts["glued"] = 101
			v.Times["first_token"] = r.histogram(map[time.Duration]int64{1412 * ms: 1})
			v.Times["gap"] = r.histogram(map[time.Duration]int64{0: 100})
		}
	}
	got := judged(r.File)
	if f := finding(t, got, "Is it the network or the model? "); f !=
		"Is it the network or the model? Over near the slowest tenth of the gaps "+
			"between tokens is 4.0 ms longer than the median gap, less than over any other "+
			"route that neither holds tokens back nor takes longer: that much comes from the "+
			"server, or from what the routes share." {
		t.Errorf("%q", f)
	}
	if f := finding(t, got, "gateway: "); !strings.HasPrefix(f, "gateway: the network: ") ||
		f != "gateway: the network: its first token comes 1.290 s later. 100 % of its "+
			"tokens arrived together with another one: they were held back on the path." {
		t.Errorf("%q", f)
	}
	said := strings.Join(got.Answer.Text, "\n")
	for _, want := range []string{"The network, over gateway.",
		"Over gateway, against near: 100 % of its tokens came together with another " +
			"one (over near " +
			"0 %): something on the path holds them back; its first token comes 1.290 s later.",
		"gateway has the same median response time as near."} {
		if !testgolden.HasLine(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
}

// No route is the steady one by its gaps alone, and none is blamed by them alone: a gateway may be
// steady because it delays tokens, or slow and steady, and all routes may share what is slow.
func TestRoutesBesideGaps(t *testing.T) {
	const ms = time.Millisecond
	set := func(r routesRun, glued int64, response float64, gaps map[time.Duration]int64) {
		v := &r.File.Visits[len(r.File.Visits)-1]
		v.Client.Counts["glued"] = glued
		v.Times["gap"] = r.histogram(gaps)
		v.Values["response"] = response
	}
	for name, tt := range map[string]struct {
		visit func(r routesRun, round, cell int)
		want  []string // in the answer
		no    string
	}{
		"smoothed": {func(r routesRun, round, cell int) {
			if r.chatted(round, cell, 50*ms, 60*ms); cell == 2 {
				set(r, 0, 4.05, map[time.Duration]int64{27 * ms: 100})
			}
		}, []string{"The network, over gateway.", "Over gateway, against direct: its median gap is 7.00 ms longer; " +
			"its responses take 1.400 s longer."}, "over direct."},
		"slow for each token": {func(r routesRun, round, cell int) {
			if r.chatted(round, cell, 50*ms, 0); cell == 2 {
				set(r, 0, 4.55, map[time.Duration]int64{45 * ms: 100})
			}
		}, []string{"The network, over gateway.", "Over gateway, against direct: its median gap is 25.02 ms longer; " +
			"its responses take 2.500 s longer; its slow gaps are 25.01 ms longer."}, "steadily"},
		"all at the end": {func(r routesRun, round, cell int) {
			r.chatted(round, cell, 560*ms, 0)
			set(r, 100, 0.561, map[time.Duration]int64{0: 100})
		}, []string{"The server, or something before all routes, sends its tokens together."}, "steadily"},
		"many together, and all at the end": {func(r routesRun, round, cell int) {
			r.chatted(round, cell, 50*ms, 0)
			if set(r, 70, 2.05, map[time.Duration]int64{0: 70, 60 * ms: 30}); cell == 2 {
				set(r, 100, 2.06, map[time.Duration]int64{0: 100})
				v := &r.File.Visits[len(r.File.Visits)-1]
				v.Times["first_token"] = r.histogram(map[time.Duration]int64{2050 * ms: 1})
			}
		}, []string{"The network, over gateway."}, "before all routes"},
		"a shared stall": {func(r routesRun, round, cell int) { r.chatted(round, cell, 50*ms, 60*ms) },
			[]string{"The model, or what the routes share, over gateway.",
				"Over every route the slowest tenth of the gaps is at least 60 ms longer than the median gap."},
			"steadily"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRoutes(t, "chat", "direct", "gateway")
			for round := range 8 {
				for cell := range 3 {
					tt.visit(r, round, cell)
				}
			}
			said := strings.Join(judged(r.File).Answer.Text, "\n")
			for _, want := range tt.want {
				if !testgolden.HasLine(said, want) {
					t.Errorf("no %q in\n%s", want, said)
				}
			}
			if strings.Contains(said, tt.no) {
				t.Errorf("%q in\n%s", tt.no, said)
			}
		})
	}
}

func TestLateFirstToken(t *testing.T) {
	const ms = time.Millisecond
	r := newRoutes(t, "chat", "near", "far")
	for round := range 8 {
		for cell := range 3 {
			r.chatted(round, cell, []time.Duration{100, 100, 400}[cell]*ms, 2*ms)
		}
	}
	got := judged(r.File)
	if said := strings.Join(got.Answer.Text, "\n"); !testgolden.HasLine(said,
		"The network, over far.") || !testgolden.HasLine(said,
		"Over far, against near: its first token comes 300.0 ms later.") {
		t.Error(said)
	}
	f := finding(t, got, "far: the network: its first token comes 300")
	if f != "far: the network: its first token comes 300.0 ms later; its gaps are steady, "+
		"the slowest tenth 2.0 ms longer than the median one." {
		t.Errorf("%q", f)
	}
}

// The noise of short times must not hide a time a hundred times as long.
func TestLateAgainstNoisyBaseline(t *testing.T) {
	const us = time.Microsecond
	r := newRoutes(t, "chat", "near", "far")
	for round := range 8 {
		near := time.Duration(100+100*(round%4)) * us
		r.chatted(round, 0, near, 0)
		r.chatted(round, 1, 500*us-near, 0)
		r.chatted(round, 2, 18*time.Millisecond, 0)
	}
	got := judged(r.File).Base()
	if floor := got.Control.Groups[0].Floor[workload.FirstTokenP50]; floor < 1 {
		t.Fatalf("the noise floor is %v", floor)
	}
	if said := strings.Join(got.Answer.Text, "\n"); !testgolden.HasLine(said,
		"Over far, against near: its first token comes 17.76 ms (17.61–17.91) later.") {
		t.Error(said)
	}
}

func TestOneRoute(t *testing.T) {
	r := newRoutes(t, "chat", "only")
	for round := range 6 {
		r.chatted(round, 0, time.Millisecond, time.Millisecond)
	}
	got := judged(r.File)
	if f := finding(t, got, "Is it the network or the model? "); f !=
		"Is it the network or the model? Over only the slowest tenth of the gaps "+
			"between tokens is 0.99 ms longer than the median gap. With one route, the "+
			"path's part cannot be told from the server's: give another route to the same "+
			"server." || len(got.Findings) != 2 {
		t.Errorf("findings %q", got.Findings)
	}
	for name, m := range route(t, got, "only").Metrics {
		if m.Ratio != nil || m.Price != nil {
			t.Errorf("%s has a ratio or a price with nothing to compare: %+v", name, m)
		}
	}
}

func TestChatMetrics(t *testing.T) {
	const ms = time.Millisecond
	r := newRoutes(t, "chat", "near", "far")
	r.File.Header.Plan.Precision = 0.001
	for round := range 6 {
		r.chatted(round, 0, 50*ms, 2*ms)
		r.chatted(round, 1, 50*ms, 2*ms)
		r.chatted(round, 2, 80*ms, 42*ms)
	}
	// The server runs on this machine.
	for i := range r.File.Visits {
		r.File.Visits[i].Machine[0] = sample.CPU{User: 1}
	}
	got := judged(r.File)
	c := route(t, got, "far")
	for name, want := range map[string]float64{workload.FirstTokenP50: 0.08, workload.GapP50: 0.02,
		workload.GapP99:       0.062,
		workload.GapMax:       0.062,
		workload.GapSlow:      0.062,
		workload.ResponseTime: 2.5,
		workload.WordRate:     50, workload.Words: 101, workload.Glued: 0, workload.Stalls: 0,
		workload.ConnectTime: 1e-3, workload.RTT: 50e-6} {
		m, ok := c.Metrics[name]
		if !ok || !judgetest.Near(m.Median, want) || len(m.Rounds) != 6 {
			t.Errorf("%s = %+v, want %v", name, m, want)
		}
	}
	for _, tt := range []struct {
		metric  string
		d       float64
		verdict stats.Verdict
	}{{workload.FirstTokenP50, 0.03, stats.Costs}, {workload.GapP50, 0, stats.Nothing},
		{workload.GapP99, 0.04, stats.Costs}, {workload.GapSlow, 0.04, stats.Costs},
		{workload.ResponseTime, 0.43, stats.Costs}, {workload.ConnectTime, 0, stats.Nothing}} {
		p := c.Metrics[tt.metric].Price
		if p == nil || p.Unit != "s" || p.N != 6 || p.Verdict != tt.verdict ||
			p.Median < tt.d-1e-4 || p.Median > tt.d+1e-4 {
			t.Errorf("%s: price %+v, want %v, %s", tt.metric, p, tt.d, tt.verdict)
		}
	}
	for _, m := range []string{workload.WordRate, workload.Words, workload.Glued, workload.Stalls} {
		if p := c.Metrics[m].Price; p != nil {
			t.Errorf("%s is no time and has the price %+v", m, p)
		}
	}
	if x := c.Metrics[workload.ResponseTime].Ratio; c.Primary != workload.ResponseTime ||
		x == nil || x.To != "near" || x.Verdict != stats.Worse {
		t.Errorf("primary %s, ratio %+v", c.Primary, x)
	}
	// A histogram has three digits: 30.015.
	finding(
		t, got,
		"Over near, far adds +30.015 ms (+30.015 to +30.015) to the first token (costs), +0.000 "+
			"ms (+0.000 to +0.000) to the median gap (nothing), +430.000 ms (")
	if b := route(t, got, "near"); !b.Baseline || b.Witnessed || c.Witnessed || c.Baseline {
		t.Errorf("baseline %v, witnessed %v and %v", b.Baseline, b.Witnessed, c.Witnessed)
	}
	if len(got.Failed) > 0 || len(got.Warnings) > 0 || len(c.Warnings) > 0 ||
		len(got.Control.Groups) != 1 {
		t.Errorf("failed %+v, warnings %+v and %+v, control %+v", got.Failed, got.Warnings,
			c.Warnings, got.Control)
	}
	if c.Dial != "10.0.0.2:80" || c.Facts["url"] != "http://far" || len(c.Hops) != 0 ||
		c.Hops == nil {
		t.Errorf("%+v", c)
	}
}

func TestFailedRoute(t *testing.T) {
	r := newRoutes(t, "chat", "near", "far", "dead")
	for round := range 6 {
		for cell := range 3 {
			r.chatted(round, cell, time.Millisecond, time.Millisecond)
		}
		r.File.Visits = append(r.File.Visits,
			sample.Visit{Turn: sample.Turn{Round: round, Cell: 3},
				Outcome: sample.Outcome{Failure: "connection refused"}})
	}
	far := &r.File.Visits[2]
	far.Failure = "refused"
	far.Client.Counts = map[string]int64{workload.CountRefused: 2, workload.CountNoPort: 1}
	r.File.Visits[6].Client.Counts[workload.CountResent] = 0
	got := judged(r.File)
	if len(got.Failed) != 1 || got.Failed[0].Mode != "dead" ||
		got.Failed[0].Evidence != "connection refused" {
		t.Errorf("failed %+v", got.Failed)
	}
	c := route(t, got, "far")
	if !slices.Contains(judgetest.Codes(c.Warnings), "failed-visits") ||
		c.Metrics[workload.ResponseTime].Ratio.N != 5 {
		t.Errorf("warnings %+v, ratio %+v", c.Warnings, c.Metrics[workload.ResponseTime].Ratio)
	}
	want := "Neither, over far: the tokens come steadily. far has the same median " +
		"response time as " +
		"near. Other suspects: far: 2 connections to its host were refused or not " +
		"answered; far: 1 " +
		"connection failed because no local port was left: let the client keep " +
		"connections open, or " +
		"widen net.ipv4.ip_local_port_range. The server's side was not examined: toll " +
		"did not find it."
	if said := strings.Join(got.Answer.Text, " "); said != want {
		t.Errorf("%q, want %q", said, want)
	}
	r = newRoutes(t, "chat", "near", "far")
	if got := judged(r.File); len(got.Findings) != 1 || got.Findings[0] != "Nothing was measured." {
		t.Errorf("findings %q", got.Findings)
	}
}

func TestGluedTokens(t *testing.T) {
	for _, tt := range []struct {
		name  string
		glued int64
		warns bool
		gap   string // what becomes of the median one
	}{{"few", 10, false, "gains"}, {"many", 11, true, "tokens come together"}} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRoutes(t, "chat", "near", "far")
			for round := range 6 {
				for cell := range 3 {
					r.chatted(round, cell, time.Millisecond, 0)
					if cell == 2 {
						v := &r.File.Visits[len(r.File.Visits)-1]
						v.Client.Counts["glued"] = tt.glued
						v.Times["gap"] = r.histogram(map[time.Duration]int64{chatGap / 2: 60, 2 * chatGap: 40})
					}
				}
			}
			got := judged(r.File)
			if has := slices.Contains(judgetest.Codes(route(t, got, "far").Warnings), "glued"); has != tt.warns {
				t.Errorf("warnings %+v", route(t, got, "far").Warnings)
			}
			if says := finding(t, got, "Over near, far adds "); !strings.Contains(says,
				" to the median gap ("+tt.gap+"), ") {
				t.Errorf("%q, want %q", says, tt.gap)
			}
			if ws := route(t, got, "near").Warnings; len(ws) > 0 {
				t.Errorf("the other way's warnings %+v", ws)
			}
		})
	}
}

func TestDoubtfulRoutes(t *testing.T) {
	for _, tt := range []struct {
		name string
		with func(paths []sample.Path)
		want []string
	}{
		{"none", func([]sample.Path) {}, nil},
		{"same-address", func(p []sample.Path) {
			p[2].Dial, p[2].Facts["url"] = p[0].Dial, p[0].Facts["url"]
		},
			[]string{"a and c have the same address: 10.0.0.1:80"}},
		{"same-gateway", func(p []sample.Path) { p[2].Dial = p[0].Dial }, nil},
		{"servers", func(p []sample.Path) { p[1].Facts["server"] = "s/2" },
			[]string{"the routes lead to different servers, by their server: s/1; s/2"}},
		{"unnamed-server", func(p []sample.Path) { delete(p[0].Facts, "server") },
			[]string{"the routes lead to different servers, by their server: none named; s/1"}},
		{"models", func(p []sample.Path) {
			p[0].Facts["model"], p[1].Facts["model"], p[2].Facts["model"] = "m", "m", "n"
		},
			[]string{"the routes lead to different servers, by their model: m; n"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRoutes(t, "chat", "a", "b", "c")
			tt.with(r.File.Header.Paths)
			var got []string
			for _, w := range judged(r.File).Warnings {
				if w.Code != "ways" {
					t.Errorf("warning %+v", w)
				}
				got = append(got, w.Text)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// browsed makes a visit of sql in which pages of 20 queries take the time page.
func (r routesRun) browsed(round, cell int, page time.Duration) {
	r.T.Helper()
	r.Visit(round, cell, 0, func(v *sample.Visit) {
		n := int64(time.Second / page)
		v.Witness = sample.Witness{}
		v.Client = sample.Party{Window: 1, Sent: 20 * n, Received: 2000 * n, Trips: 20 * n,
			Connections: 1}
		v.Server = sample.Party{Window: 1}
		v.Latency = r.histogram(map[time.Duration]int64{page: n})
		v.Times = map[string]*sample.EncodedHisto{
			"query": r.histogram(map[time.Duration]int64{page / 20: 20 * n})}
		v.Values = map[string]float64{"connect": 3e-3}
	})
}

func TestSQL(t *testing.T) {
	const ms = time.Millisecond
	r := newRoutes(t, "sql", "published", "direct", "far")
	for round := range 6 {
		for cell, page := range []time.Duration{2 * ms, 2 * ms, ms, 10 * ms} {
			r.browsed(round, cell, page)
		}
	}
	got := judged(r.File)
	c := route(t, got, "far")
	for name, want := range map[string]float64{workload.LatencyP50: 10e-3,
		workload.Transactions: 100, workload.QueryP50: 0.5e-3, workload.ConnectTime: 3e-3} {
		if m := c.Metrics[name]; !judgetest.Near(m.Median, want) {
			t.Errorf("%s = %+v, want %v", name, m, want)
		}
	}
	if _, ok := c.Metrics[workload.RTT]; ok {
		t.Error("a Unix socket has a round-trip time")
	}
	if x := c.Metrics[workload.LatencyP50].Ratio; c.Primary != workload.LatencyP50 || x == nil ||
		x.Verdict != stats.Worse || !judgetest.Near(x.Median, 5) || c.Witnessed {
		t.Errorf("primary %s, ratio %+v, witnessed %v", c.Primary, x, c.Witnessed)
	}
	for name, want := range map[string]string{ // a histogram has three digits: 8.002
		"far": "far adds +8.002 ms (+8.002 to +8.002) to a page of 20 queries over published " +
			"(costs): +0.400 ms (+0.400 to +0.400) to each.",
		"direct": "direct adds -1.000 ms (-1.000 to -1.000) to a page of 20 queries over " +
			"published (gains): -0.050 ms (-0.050 to -0.050) to each.",
	} {
		if f := finding(t, got, name+" adds "); f != want {
			t.Errorf("%q, want %q", f, want)
		}
	}
	if len(got.Findings) != 3 || got.Findings[0] != "These routes are outside toll's "+
		"control: their bytes are not counted." {
		t.Errorf("findings %q", got.Findings)
	}
	if len(got.Warnings) > 0 || got.Cells[0].Mode != "published" || got.Cells[1].Mode != "direct" {
		t.Errorf("warnings %+v; first %s, %s", got.Warnings, got.Cells[0].Mode, got.Cells[1].Mode)
	}
}

func TestBrokenRoute(t *testing.T) {
	for _, tt := range []struct {
		name       string
		bad        []int
		end        string
		broke, all bool
	}{
		{"well", nil, sample.EndedByBudget, false, true},
		{"odd-one", []int{3}, sample.EndedByBudget, false, true},
		{"came-back", []int{2, 3, 4}, sample.EndedByBudget, false, true},
		{"lost", []int{6, 7}, sample.EndedByBudget, true, false},
		{"cut-short", nil, sample.EndedByFailure, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRoutes(t, "sql", "near", "far")
			for round := range 8 {
				for i := range r.File.Header.Plan.Cells {
					r.Visit(round, i, 8, func(v *sample.Visit) {
						if r.File.Header.Plan.Cells[i].Route == "far" &&
							slices.Contains(tt.bad, round) {
							v.Failure = "container:shop has ended"
						}
					})
				}
			}
			r.File.End.Reason = tt.end
			got := judged(r.File)
			c := route(t, got.Base(), "far")
			if c.Broke != tt.broke || slices.Contains(judgetest.Codes(c.Warnings),
				"broken-route") != tt.broke || got.Complete() != tt.all ||
				len(got.Base().Failed) > 0 {
				t.Errorf("broke %t, complete %t, warnings %v, failed %v", c.Broke, got.Complete(),
					c.Warnings, got.Base().Failed)
			}
			if base := got.Base(); found(base, endpoints.Broke) != tt.broke {
				t.Errorf("found %+v", base.Found)
			}
		})
	}
}
