package sentence

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/endpoints"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

// led has the routes a and b to a database, with packets captured, and c to an LLM server.
func led() *analysis.Report {
	total := func(n float64) analysis.Metric { return analysis.Metric{Merged: &n} }
	route := func(name, load string) analysis.Cell {
		x := analysis.Ratio{To: "a", Median: 1.2, Low: 1.19, High: 1.21, N: 12,
			Verdict: stats.Worse}
		p := analysis.Price{Unit: "s", Median: 2e-4, Low: 1.9e-4, High: 2.1e-4, N: 12,
			Verdict: stats.Costs}
		return analysis.Cell{Cell: sample.Cell{Mode: mode.Name(name), Load: load},
			Primary: workload.LatencyP50,
			Dial:    "127.0.0.1:80", Facts: map[string]string{endpoints.BehindProxy: "172.17.0.2:80",
				sample.FactUnanswered: "::1", sample.FactDevice: "e-" + name},
			Evidence: judgetest.Evidence([7]float64{1: 60}, [7]float64{1: 300, 4: 200},
				[7]float64{}),
			GPU: &sample.GPU{By: sample.GPUByDRM,
				Slow: sample.GPUTime{Gaps: 2, Time: 1, Busy: 0.5}},
			Metrics: map[string]analysis.Metric{workload.LatencyP50: {Ratio: &x, Price: &p},
				workload.ConnectTime:  {Median: 0.3, Ratio: &x, Price: &p},
				workload.ResponseTime: {Ratio: &x, Price: &p},
				workload.LookUpTime:   {Median: 0.1}, workload.Resent: total(3),
				workload.ClientSent: total(90)}}
	}
	r := &analysis.Report{}
	r.Study, r.Plan.Baseline, r.Plan.Same = sample.StudyEndpoints, "a", 0.03
	r.Plan.Loads = []sample.Load{{Kind: workload.SQL, Options: sample.SQLOptions{Queries: 20}}}
	r.Cells = []analysis.Cell{route("a", workload.SQL), route("b", workload.SQL),
		route("c", workload.Chat)}
	r.Cells[0].Facts[sample.FactOffloadsOff], r.Cells[2].Evidence.Lost = "gro", 7
	r.Cells[1].Evidence = judgetest.Evidence([7]float64{1: 60}, [7]float64{1: 300}, [7]float64{})
	return r
}

func TestTemplatesOfRoutes(t *testing.T) {
	of := func(code string, cells ...int) analysis.Finding {
		return analysis.Finding{Code: code, Cells: cells, Of: 3}
	}
	what := func(code, what string, cells ...int) analysis.Finding {
		f := of(code, cells...)
		f.What = what
		return f
	}
	valued := func(code string, cells ...int) analysis.Finding {
		f := what(code, "a query", cells...)
		f.Values = map[string]float64{endpoints.SlowGaps: 0.1, endpoints.Other +
			endpoints.SlowGaps: 0.01,
			workload.Glued: 0.25, endpoints.Other + workload.Glued: 0.02, workload.Stalls: 1,
			endpoints.Other + workload.Stalls: 0, endpoints.Wait: 0.04, endpoints.ACKs: 42,
			workload.RTT: 1e-3}
		return f
	}
	blamed := func(code string, who endpoints.Blame) analysis.Finding {
		f := valued(code, 1, 0)
		f.What, f.Why = string(who), string(endpoints.Both)
		f.Prices = []analysis.Price{{Unit: "s", Median: 0.09, Low: 0.08, High: 0.1, N: 9,
			Verdict: stats.Costs}, {Unit: "s", Median: 0.3, Low: 0.29, High: 0.31, N: 9},
			{Unit: "s", Median: 0.7, Low: 0.6, High: 0.8, N: 9}}
		f.Names = []string{workload.FirstTokenP50, workload.ResponseTime}
		return f
	}
	loaded := func(code, load string, cell int) analysis.Finding {
		return analysis.Finding{Code: code, Load: load, Cells: []int{cell}}
	}
	counted := func(code string, n, cell int) analysis.Finding {
		return analysis.Finding{Code: code, N: n, Cells: []int{cell}}
	}
	told := map[string]bool{}
	for _, tt := range []struct {
		f    analysis.Finding
		want string // of the answer; its details follow after a line break, if they differ
	}{
		{of(endpoints.Uncounted),
			"These routes are outside toll's control: their bytes are not counted."},
		{of(endpoints.PacketsUnclear, 2),
			"Over c, the captured packets allow no verdict: the capture lost 7 packets."},
		{what(endpoints.PartBlamed, sample.EvidenceRelay, 0),
			"The relay nginx at port 80, over a: of 500 ms to the last token (mean) the server " +
				"needs 300 ms, " +
				"nginx holds 200 ms."},
		{of(endpoints.NoPartBlamed, 1),
			"Neither, over b: of 300 ms to the last token (mean) the server needs 300 ms, and " +
				"the route adds " +
				"little."},
		{of(endpoints.Divided, 0), "\nSeen from the server (vllm at port 8000) on: 24 of 24 tokens."},
		{of(endpoints.ByPackets),
			"Is it the network or the model? By the times at which packets were captured:"},
		{of(endpoints.WhoByPackets, 0), "a: the relay nginx at port 80."},
		{what(endpoints.TokensUnseen, "toll must be root", 0, 1),
			"When tokens left the server is unknown over a and b: toll must be root."},
		{of(endpoints.GPUBusy, 0, 1),
			"Over a and b, the server's GPU was busy for 50 % of the time of 2 slow gaps (by " +
				"DRM's counters)."},
		{valued(endpoints.SteadiestAlone, 0),
			"Is it the network or the model? Over a the slowest tenth of the gaps between tokens " +
				"is 100 ms longer than the median gap. With one route, the path's part " +
				"cannot be told " +
				"from the server's: give another route to the same server."},
		{valued(endpoints.Steadiest, 0),
			"Is it the network or the model? Over a the slowest tenth of the gaps between tokens " +
				"is 100 ms longer than the median gap, less than over any other route: that much comes from the " +
				"server, or from what the routes share."},
		{valued(endpoints.SteadiestUnheld, 0),
			"Is it the network or the model? Over a the slowest tenth of the gaps between tokens " +
				"is 100 ms longer than the median gap, less than over any other route " +
				"that neither holds tokens back nor takes longer: that much comes from the server, or from what the " +
				"routes share."},
		{blamed(endpoints.RouteBlamed, endpoints.Network),
			"Over b, against a: its first token comes 300 ms (290–310) later; its responses take " +
				"700 ms (600–800) longer; its slow gaps are 90 ms (80–100) longer; 1 stall (over a 0).\nb: the network: its " +
				"first token comes " +
				"300 ms (290–310) later; its responses take 700 ms (600–800) longer; its slow gaps are 100 ms longer than its " +
				"median gap, +90 ms " +
				"(+80 to +100) of that beyond a's. 25 % of its tokens arrived together " +
				"with another " +
				"one: they were held back on the path, or by the server. 1 of its " +
				"gaps was a stall."},
		{blamed(endpoints.RouteHolds, endpoints.Network),
			"Over b, against a: 25 % of its tokens came together with another one (over a 2 %): " +
				"something on the path holds them back; its first token comes 300 ms " +
				"(290–310) later; its responses take 700 ms (600–800) longer; " +
				"1 stall (over a 0).\nb: the network: its first token comes 300 ms " +
				"(290–310) later; its responses take 700 ms (600–800) longer. " +
				"25 % of its tokens arrived together with another one: they were " +
				"held back on the " +
				"path. 1 of its gaps was a stall."},
		{of(endpoints.TooFewToBlame, 1), "\nb: too few rounds to say."},
		{valued(endpoints.TokensHeld, 0),
			"Over a 25 % of the tokens came together with another one. Give the server's own " +
				"address as another route to see which of the two holds them back."},
		{of(endpoints.BlameNetwork, 0, 1), "The network, over a and b."},
		{of(endpoints.BlameBoth, 0), "Both, over a."},
		{of(endpoints.BlameModel, 0), "The model, or what the routes share, over a."},
		{of(endpoints.BlameNobody, 0), "Neither, over a: the tokens come steadily."},
		{of(endpoints.BlameUnclear, 0),
			"Unclear over a: measure longer, or with more --tokens."},
		{of(endpoints.BlameTooFew, 0), "Too few rounds to say over a: it takes at least 5."},
		{of(endpoints.BlameHeld, 0),
			"Neither the wire nor the model's speed, over a: the server, or a " +
				"gateway in front of " +
				"it, holds tokens back."},
		{of(endpoints.BlameTogether, 0, 1),
			"The server, or something before all routes, sends its tokens together."},
		{of(endpoints.BlameOneRoute, 0),
			"With one route, a, path and server cannot be told apart: give another route to the " +
				"same server."},
		{of(endpoints.NetworkBetter, 1), "Yes, over a: b is better."},
		{of(endpoints.NetworkWorse, 1), "Yes, over b."},
		{what(endpoints.NotThePath, sample.EvidenceServer, 1),
			"Not over b: what differs from a is the time in the server."},
		{what(endpoints.PathUnclear, sample.EvidenceClient, 1),
			"Unclear over b: what differs from a seems to be the time in the client, but " +
				"its interval " +
				"leaves the path room."},
		{of(endpoints.NoNetwork, 1),
			"No: the routes do not differ, so the time is spent in the server and the client, " +
				"which they share."},
		{what(endpoints.Gateway, endpoints.Caddy, 0),
			"Over a, Caddy answers: leave response_buffers (buffer_responses in old " +
				"versions) out " +
				"of its reverse_proxy."},
		{of(endpoints.GatewayUnknown, 0),
			"If a gateway is in front of the server, stop its buffering: option http-no-delay in " +
				"HAProxy, proxy_buffering off in nginx, no buffering middleware in Traefik."},
		{of(endpoints.GatewayOnly, 0),
			"If what answers over a passes on another server's tokens, stop its " +
				"buffering: option " +
				"http-no-delay in HAProxy, proxy_buffering off in nginx, no buffering " +
				"middleware in " +
				"Traefik."},
		{of(endpoints.RoutesDiffer, 1),
			"Against a: b adds 200 µs (190–210) to the median page time: 10.0 µs (9.5–10.5) a " +
				"query."},
		{of(endpoints.RoutesSame, 1), "b has the same median page time as a (within 3 %)."},
		{of(endpoints.RoutesUnclear, 1, 2),
			"It is unclear whether b and c differ from a in median page time."},
		{of(endpoints.Exchanged, 0),
			"Over a, of 500 ms a query as captured (mean): server 300 ms, nginx 200 ms."},
		{what(endpoints.NotExchanged, "toll must be root", 0),
			"Where the time of a query goes is unknown over a: toll must be root."},
		{of(endpoints.Connecting, 1), "To connect, b takes 200 µs (190–210) longer than a."},
		{of(endpoints.OneRoute),
			"With one route, the cost of the path cannot be measured: give another route to the " +
				"same server."},
		{of(endpoints.NoBaseline),
			"Nothing can be compared: the baseline a has no result, or no other route has one."},
		{of(endpoints.Broke, 0, 1),
			"a and b broke and did not come back: their figures are from before that."},
		{of(endpoints.Proxied, 0), "a goes through docker-proxy."},
		{of(endpoints.ProxiedAlone, 0),
			"a goes through docker-proxy: the container's own address, 172.17.0.2:80, is another " +
				"route to it."},
		{of(endpoints.ProxyCosts, 0),
			"a goes through docker-proxy: dial the container, 172.17.0.2:80, or sudo " +
				"toll fast on " +
				"80."},
		{of(endpoints.ProxyFree, 0), "a goes through docker-proxy, at no measurable cost."},
		{what(endpoints.Suspected, workload.Resent, 0),
			"a: 3 of 90 segments were sent again."},
		{of(endpoints.SlowLookUp, 0),
			"a: its name took 100 ms to look up, once for each connection."},
		{of(endpoints.PassedOver, 0),
			"a: connecting takes 300 ms, because the first address of its name, ::1, does not " +
				"answer."},
		{valued(endpoints.KeptDelay, 0),
			"a: over a kept connection, a response has a wait that is 40.0 ms longer than over a " +
				"new one: it waits for delayed acknowledgements of 40 ms, of which the " +
				"kernel counted " +
				"42 (one end writes in two pieces and waits for the other's acknowledgement in " +
				"between: set TCP_NODELAY there, or write once)."},
		{valued(endpoints.ACKDelay, 0),
			"a: a query takes 40.0 ms at a round trip of 1.00 ms, without loss: it waits for " +
				"delayed acknowledgements of 40 ms, of which the kernel counted 42 (one " +
				"end writes in " +
				"two pieces and waits for the other's acknowledgement in between: " +
				"set TCP_NODELAY " +
				"there, or write once)."},
		{valued(endpoints.MaybeACKDelay, 0),
			"a: a query takes 40.0 ms at a round trip of 1.00 ms, without loss: as long as a " +
				"delayed acknowledgement (one end writes in two pieces and waits for the other's " +
				"acknowledgement in between: set TCP_NODELAY there, or write once)."},
		{what(endpoints.OffloadsOff, "its device", 0, 1),
			"a: its device e-a has gro off, unlike that of b: ethtool -K e-a gro on (not tried: " +
				"a copy of the network has no device like it)."},
		{of(endpoints.NoSuspect), "No other suspect."},
		{what(endpoints.Unexamined, "toll did not find it", 0, 1, 2),
			" The server's side was not examined: toll did not find it."},
		{what(endpoints.OnlyQueues, "toll must be root", 0),
			" The server of a was not examined, except for its listen queues: toll must be root."},
		{of(endpoints.NewEachTime),
			"The server keeps connections open, but each response came over a new one: with " +
				"--requests 8 most come over kept ones, where delayed acknowledgements show."},
		{what(endpoints.NotSuspected, workload.Resent, 0),
			"Looked for: only 3 segments were lost or out of order."},
		{of(endpoints.Attachable, 0),
			"sudo toll trace --attach 127.0.0.1:80 divides others' requests."},
		{of(endpoints.Comparable, 0, 1),
			"sudo toll trace a=127.0.0.1:80 b=127.0.0.1:80 divides the time of a request " +
				"part by part."},
		{loaded(endpoints.Adds, workload.Batch, 1),
			"Over a, b adds +0.200 ms (+0.190 to +0.210) to a response that is not streamed " +
				"(costs), +0.200 ms (+0.190 to +0.210) to connecting (costs)."},
		{counted(endpoints.PageAdds, 20, 1),
			"b adds +0.200 ms (+0.190 to +0.210) to a page of 20 queries over a (costs): +0.010 " +
				"ms (+0.010 to +0.011) to each."},
	} {
		told[tt.f.Code] = true
		w, x := &writer{r: led()}, find(tt.f.Code)
		got := w.fill(x.text, []analysis.Finding{tt.f})
		if x.detail != "" {
			got += "\n" + w.fill(x.detail, []analysis.Finding{tt.f})
		}
		if got != tt.want {
			t.Errorf("%s:\ngot  %q\nwant %q", tt.f.Code, got, tt.want)
		}
	}
	for _, x := range ofRoutes {
		if !told[x.code] {
			t.Errorf("%s is untested", x.code)
		}
	}
}
