package view

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/show/heads"
	"github.com/bridgetoll/bridgetoll/internal/show/sentence"
)

// routeTo returns a cell of a route. times are in seconds. Unless the route is the baseline, it
// adds the share adds of each.
func routeTo(name, dial, load string, times, others map[string]float64, adds float64,
	v stats.Verdict) analysis.Cell {
	l := sample.Load{Kind: load}
	c := analysis.Cell{Cell: sample.Cell{Mode: mode.Name(name), From: sample.FromHere,
		Load: load, On: sample.OnEndpoint},
		Hops: []string{}, Dial: dial, Baseline: v == "",
		Metrics:  map[string]analysis.Metric{},
		Warnings: []analysis.Warning{},
		Primary:  analysis.Primary(l),
		Facts: map[string]string{"url": "http://" + name,
			"server": "PostgreSQL 15.14 (Debian 15.14-0+deb12u1)"}}
	if load == "chat" || load == "batch" {
		c.Facts["model"], c.Facts["server"] = "qwen2.5-0.5b-instruct-q4_k_m.gguf", "llama.cpp"
	}
	for name, x := range times {
		m := analysis.Metric{Unit: "s", Median: x, Low: 0.9 * x, High: 1.1 * x, Merged: &x,
			Rounds: []float64{x}}
		if v != "" {
			half := 0.1 * math.Abs(adds) * x
			m.Price = &analysis.Price{Unit: "s", Median: adds * x, Low: adds*x - half,
				High: adds*x + 2*half, N: 12, Verdict: v}
		}
		c.Metrics[name] = m
	}
	for name, x := range others {
		c.Metrics[name] = analysis.Metric{Median: x, Merged: &x, Rounds: []float64{x}}
	}
	if v != "" {
		m := c.Metrics[c.Primary]
		verdict := map[stats.Verdict]stats.Verdict{
			stats.Costs: stats.Worse, stats.Gains: stats.Better, stats.Nothing: stats.Same,
			stats.Unclear: stats.Unclear}[v]
		m.Ratio = &analysis.Ratio{To: "published", Median: 1 + adds, Low: 1 + adds - 0.02,
			High: 1 + adds + 0.05, N: 12, Verdict: verdict}
		c.Metrics[c.Primary] = m
	}
	return c
}

func chatRoute(name, dial string, adds float64, v stats.Verdict) analysis.Cell {
	return routeTo(name, dial, "chat", map[string]float64{
		workload.FirstTokenP50: 0.123, workload.GapP50: 0.0214, workload.GapP99: 0.0432,
		workload.GapMax: 0.31, workload.GapSlow: 0.0218, workload.ResponseTime: 1.52,
		workload.ConnectTime: 310e-6, workload.RTT: 57e-6},
		map[string]float64{workload.WordRate: 46.7, workload.Stalls: 1, workload.Words: 64,
			workload.Glued: 0.0312}, adds, v)
}

func batchRoute(name, dial string, adds float64, v stats.Verdict) analysis.Cell {
	return routeTo(name, dial, "batch", map[string]float64{
		workload.ResponseTime: 1.49, workload.ConnectTime: 310e-6, workload.RTT: 57e-6},
		map[string]float64{workload.WordRate: 43, workload.Words: 64}, adds, v)
}

func sqlRoute(name, dial string, adds float64, v stats.Verdict) analysis.Cell {
	return routeTo(name, dial, "sql", map[string]float64{
		workload.LatencyP50: 1.23e-3, workload.LatencyP99: 3.4e-3, workload.QueryP50: 60e-6,
		workload.ConnectTime: 2.1e-3, workload.RTT: 35e-6},
		map[string]float64{workload.Transactions: 812}, adds, v)
}

func routesTo(l sample.Load, cells ...analysis.Cell) *analysis.Report {
	r := head()
	r.Study, r.Plan.Baseline, r.Control.Mode = sample.StudyEndpoints, string(cells[0].Mode),
		string(cells[0].Mode)
	r.Plan.Loads, r.Plan.Pin, r.Plan.Window = []sample.Load{l}, "", l.Window
	r.Control.Groups = nil
	if len(cells) > 1 {
		r.Control.Groups = []analysis.Floor{{
			From: sample.FromHere, Load: l.Kind, On: sample.OnEndpoint,
			Floor: map[string]float64{analysis.Primary(l): 0.0123}}}
	}
	r.Cells = cells
	r.Findings = []string{sentence.Uncounted}
	return r
}

var (
	someChat = sample.Load{Kind: "chat", Streams: 1,
		Options: sample.ChatOptions{Requests: 1, Tokens: 64, Prompt: "Tell a story.", Stall: 0.2},
		Window:  2}
	someSQL = sample.Load{Kind: "sql", Streams: 1, Options: sample.SQLOptions{Queries: 20},
		Warmup: 0.05, Window: 0.25}
)

func routeReports() map[string]*analysis.Report {
	chat := routesTo(someChat, chatRoute("published", "127.0.0.1:8080", 0, ""),
		chatRoute("direct", "172.17.0.2:8000", -0.04, stats.Gains),
		chatRoute("vpn", "10.8.0.5:8000", 0.21, stats.Costs))
	chat.Findings = append(chat.Findings,
		"Is it the network or the model? Over direct the slowest tenth of the gaps between "+
			"tokens is 21.8 ms longer than the median gap, less than over any other way: that "+
			"much is the server's own.",
		"vpn: the network: its slow gaps are 60 ms longer than its median gap, +38 ms (+33 to "+
			"+41) of that beyond direct's. 12 % of its tokens came glued to another one: they "+
			"were held back on the way, or by the server.",
		"Over published, vpn adds +26 ms (+23 to +31) to the first token (costs).")
	chat.Cells[2].Warnings = []analysis.Warning{
		{Code: "glued",
			Text: "12 % of the tokens arrived together with another one: something on the path, " +
				"or the server, holds them back, so gaps look shorter than they are"}}
	chat.Warnings = []analysis.Warning{{Code: "ways",
		Text: "the ways lead to different servers, by their server: llama.cpp; nginx"}}

	many := someSQL
	many.Streams = 8
	sql := routesTo(many, sqlRoute("published", "127.0.0.1:5432", 0, ""),
		sqlRoute("direct", "172.17.0.2:5432", 0.001, stats.Nothing),
		sqlRoute("vpn", "10.8.0.5:5432", 1.5, stats.Unclear))
	sql.Findings = append(
		sql.Findings,
		"vpn adds +1.8 ms (-0.2 to +2.9) to a page of 20 queries over published (unclear): "+
			"+0.09 ms (-0.01 to +0.15) to each.")
	sql.Failed = []analysis.Failed{{Cell: sample.Cell{
		Mode: "far", From: sample.FromHere, Load: "sql", On: sample.OnEndpoint},
		Reason: "the visit failed", Evidence: "connect to 10.9.0.5:5432: connection refused"}}

	name := strings.Repeat("way-", 7)
	wide := routesTo(someChat, chatRoute(name, "[2001:db8:1234:5678:9abc:def0:1234:5678]:65535", 0,
		""), chatRoute(name[1:], "[2001:db8:1234:5678:9abc:def0:1234:5678]:65535", 12.3,
		stats.Unclear))
	wideSQL := routesTo(someSQL, sqlRoute(name, "/run/bridge/postgresql/.s.PGSQL.5432", 0, ""),
		sqlRoute(name[1:], "[2001:db8:1234:5678:9abc:def0:1234:5678]:65535", 12.3, stats.Unclear))
	hole := chatRoute("hole", "127.0.0.1:8081", 0.1, stats.Costs)
	hole.Metrics = map[string]analysis.Metric{}
	both := routesTo(someChat, chatRoute("published", "127.0.0.1:8080", 0, ""),
		chatRoute("vpn", "10.8.0.5:8000", 0.21, stats.Costs),
		batchRoute("published", "127.0.0.1:8080", 0, ""),
		batchRoute("vpn", "10.8.0.5:8000", 0.05, stats.Costs))
	both.Plan.Loads = append(both.Plan.Loads,
		sample.Load{Kind: "batch", Streams: 1,
			Options: sample.ChatOptions{Requests: 1, Tokens: 64, Prompt: "Tell a story."},
			Window:  2})
	return map[string]*analysis.Report{
		"chat-batch": both, "chat": chat, "sql": sql, "chat-wide": wide, "sql-wide": wideSQL,
		"chat-one":  routesTo(someChat, chatRoute("127.0.0.1:8080", "127.0.0.1:8080", 0, "")),
		"sql-one":   routesTo(someSQL, sqlRoute("127.0.0.1:5432", "127.0.0.1:5432", 0, "")),
		"chat-hole": routesTo(someChat, chatRoute("published", "127.0.0.1:8080", 0, ""), hole),
	}
}

func TestRoutes(t *testing.T) {
	for name, r := range routeReports() {
		t.Run(name, func(t *testing.T) {
			got := table(t, r, format.Options{Width: format.DefaultWidth})
			if !strings.HasSuffix(name, "-wide") { // it fits, and has its labels and addresses
				golden(t, name+".txt", got)
			}
			fits(t, got)
			for _, c := range r.Cells {
				for _, want := range []string{c.Label(), c.Dial} {
					if !slices.Contains(strings.Fields(got), want) {
						t.Errorf("no %q", want)
					}
				}
			}
			if color := table(t, r, format.Options{Width: format.DefaultWidth, Color: true}); uncolored(color) != got {
				t.Error("colour changes more than colour")
			}
			if one := len(r.Cells) == 1; one == strings.Contains(got, "adds to") {
				t.Error("what a route adds is shown if and only if there are two")
			}
		})
	}
}

func TestElapsed(t *testing.T) {
	l := sample.Load{Kind: workload.Exec, Options: sample.ExecOptions{Program: &sample.Program{
		Client: "http", Gauges: []sample.Gauge{{Name: "reply", Unit: "s", Lower: true}}}}}
	for _, times := range []map[string]float64{{"reply": 1}, {"reply": 1, workload.Elapsed: 2}} {
		c := routeTo("port-80", "127.0.0.1:80", workload.Exec, times, nil, 0, "")
		c.Primary = "reply"
		got := table(t, routesTo(l, c), format.Options{Width: format.DefaultWidth})
		if slices.Contains(strings.Fields(got), workload.Elapsed) != (len(times) == 2) {
			t.Errorf("%d metrics:\n%s", len(times), got)
		}
	}
}

func TestRouteWords(t *testing.T) {
	for want, got := range map[string]string{
		"endpoint": served(analysis.Cell{}),
		"nginx":    served(analysis.Cell{Facts: map[string]string{"server": "nginx"}}),
		"m": served(analysis.Cell{Facts: map[string]string{
			"server": "nginx", "model": "m"}}),
		"0": added("x")(analysis.Cell{Baseline: true}).Text,
		"-": added("x")(analysis.Cell{}).Text,
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestRouteJSONFields(t *testing.T) {
	for _, name := range []string{"chat", "sql"} {
		b := written(t, "json", Report(routeReports()[name]), format.Options{})
		var doc map[string]any
		if err := json.Unmarshal([]byte(b), &doc); err != nil {
			t.Fatal(err)
		}
		if doc["study"] != "endpoints" || at(doc, "cells/0/witnessed") != false ||
			at(doc, "cells/0/baseline") != true {
			t.Errorf("study %v, witnessed %v, baseline %v", doc["study"],
				at(doc, "cells/0/witnessed"), at(doc, "cells/0/baseline"))
		}
		metrics := "first_token_p50 gap_p50 gap_p99 gap_max gap_slow response_time token_rate " +
			"stalls tokens_per_response glued connect_time rtt"
		load, primary := "tokens prompt stall_s requests streams window_s", "response_time"
		if name == "sql" {
			metrics, load, primary = "latency_p50 latency_p99 transactions query_p50 "+
				"connect_time rtt", "queries streams window_s warmup_s", "latency_p50"
		}
		for where, keys := range map[string]string{
			"plan/loads/0": load,
			"cells/2": "mode from load on dial facts witnessed " +
				"metrics primary warnings",
			"cells/2/metrics":                       metrics,
			"cells/2/metrics/" + primary:            "unit median low high rounds ratio price",
			"cells/2/metrics/" + primary + "/price": "unit median low high n verdict",
			"control/groups/0/floor":                primary,
			"cells/0/facts":                         "url server",
		} {
			o, _ := at(doc, where).(map[string]any)
			for _, k := range strings.Fields(keys) {
				if _, ok := o[k]; !ok {
					t.Errorf("%s: %q has no %q", name, where, k)
				}
			}
		}
		if o, _ := at(doc, "cells/0/metrics/"+primary).(map[string]any); o["price"] != nil ||
			o["ratio"] != nil {
			t.Errorf("%s: the baseline has a price or a ratio: %v", name, o)
		}
	}
	more := func(load string) []column {
		return loadColumns(&analysis.Report{}, load, heads.Of(sample.Load{Kind: load}).More)
	}
	if all := more(workload.Chat); len(worthShowing(all, make([]analysis.Cell, 2))) != len(all) ||
		slices.ContainsFunc(worthShowing(more(workload.SQL), make([]analysis.Cell, 1)),
			func(c column) bool {
				return strings.HasPrefix(c.Head[0], addsHead)
			}) {
		t.Error("what a route adds is shown to nobody, or of the only one")
	}
}

func TestRouteTitles(t *testing.T) {
	at := func(facts map[string]string) analysis.Cell {
		c := chatRoute("a", "10.0.0.1:80", 0, "")
		maps.Copy(c.Facts, facts)
		return c
	}
	here, shop := at(nil), at(map[string]string{"from": "container:shop"})
	peer := at(map[string]string{"from": "remote", "peer": "10.78.0.2, Linux 6.18, 2 CPUs"})
	for _, tt := range []struct {
		cells       []analysis.Cell
		want, brief string
	}{
		{[]analysis.Cell{here, here}, "From here → ",
			"Tokens and median response time from here to qwen2.5-0.5b-instruct-q4_k_m.gguf, " +
				"responses of at most 64 tokens, less is better"},
		{[]analysis.Cell{shop}, "From container:shop → ",
			"Tokens and median response time from container:shop to " +
				"qwen2.5-0.5b-instruct-q4_k_m.gguf, responses of at most 64 tokens, less is " +
				"better"},
		{[]analysis.Cell{here, peer}, "From here and peer 10.78.0.2 → ",
			"Tokens and median response time from here and peer 10.78.0.2 to " +
				"qwen2.5-0.5b-instruct-q4_k_m.gguf, responses of at most 64 tokens, less is " +
				"better"},
		{[]analysis.Cell{here, shop, peer, shop},
			"From here, container:shop and peer 10.78.0.2 → ",
			"Tokens and median response time from here, container:shop and peer " +
				"10.78.0.2 to qwen2.5-0.5b-instruct-q4_k_m.gguf, responses of at most 64 " +
				"tokens, less is better"},
	} {
		r := routesTo(someChat, tt.cells...)
		if got := routeTitle(r, tt.cells); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%q, want %q", got, tt.want)
		}
		if got := briefRouteTitle(r, tt.cells).String(); got != tt.brief {
			t.Errorf("%q, want %q in a summary", got, tt.brief)
		}
	}
}
