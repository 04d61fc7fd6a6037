package endpoints_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/endpoints"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

func TestEvidence(t *testing.T) {
	quick := [7]float64{0.1, 60, 0.05, 0, 0.2, 0.02, 0.1}
	fine := [7]float64{0.1, 540, 0.05, 0, 0.2, 0.02, 0.1}
	none := [7]float64{}
	const usual = "\nsudo toll trace --attach 10.0.0.1:80 divides others' requests.\nDetails:\n" +
		"Seen from the server (vllm at port 8000) on: 24 of 24 tokens." // … in want
	for name, tt := range map[string]struct {
		evidence *sample.Evidence
		change   func(*sample.Evidence)
		want     string
	}{
		"nothing to blame": {judgetest.Evidence(quick, fine, none), nil,
			"Neither, over r: of 540 ms to the last token (mean) the server needs 540 ms, " +
				"and the route adds little.\n…"},
		"a relay that holds less than what is to blame": {
			judgetest.Evidence(quick, [7]float64{1: 1190, 4: 290}, none), nil,
			"Neither, over r: of 1.48 s to the last token (mean) the server needs 1.19 s, " +
				"and nginx holds 290 ms.\n…"},
		"parts that hold little each": {
			judgetest.Evidence(quick, [7]float64{1: 900, 4: 40, 5: 40, 6: 20}, none), nil,
			"Neither, over r: of 1.00 s to the last token (mean) the server needs 900 ms, " +
				"and the route adds 100 ms.\n…"},
		"a bursty server": {judgetest.Evidence(quick, fine, [7]float64{1: 234}), nil,
			"The server, over r: of 540 ms to the last token (mean) the server needs 540 " +
				"ms.\nOver r, slow gaps add 234 ms a response: server 234 ms.\n…"},
		"a gateway that asks over TLS": {judgetest.Evidence(quick, fine, [7]float64{1: 234}),
			func(e *sample.Evidence) { e.Hops[0].Asks = "10.0.0.9:443" },
			"Vllm or what it asks over TLS, over r: of 540 ms to the last token (mean) vllm or what it " +
				"asks over TLS needs 540 ms.\nOver r, slow gaps add 234 ms a response: vllm or what it asks " +
				"over TLS 234 ms; vllm at port 8000 sends TLS to 10.0.0.9:443 meanwhile: the tokens may come " +
				"from a server there.\n…"},
		"a server with a CPU limit": {judgetest.Evidence(quick, fine, [7]float64{1: 234}),
			func(e *sample.Evidence) { e.Window, e.Hops[0].Stopped = 0.55, 0.200 },
			"The server's CPU limit, over r: of 540 ms to the last token (mean) the server " +
				"needs 540 ms.\nOver r, slow gaps add 234 ms a response: server 234 ms; its " +
				"CPU limit stopped the server for 200 ms of 550 ms.\n…"},
		"a CPU limit that evens out": {judgetest.Evidence(quick, fine, none),
			func(e *sample.Evidence) { e.Window, e.Hops[0].Stopped = 0.55, 0.400 },
			"The server's CPU limit, over r: of 540 ms to the last token (mean) the server " +
				"needs 540 ms.\nOver r, its CPU limit stopped the server for 400 ms of 550 " +
				"ms.\n…"},
		"a bursty server with a CPU limit that matters little": {
			judgetest.Evidence(quick, fine, [7]float64{1: 234}),
			func(e *sample.Evidence) { e.Window, e.Hops[0].Stopped = 0.55, 0.030 },
			"The server, over r: of 540 ms to the last token (mean) the server needs 540 " +
				"ms.\nOver r, slow gaps add 234 ms a response: server 234 ms; its CPU limit " +
				"stopped the server for 30.0 ms of 550 ms.\n…"},
		"a relay with a CPU limit": {judgetest.Evidence(quick, [7]float64{1: 300, 4: 262}, none),
			func(e *sample.Evidence) { e.Window, e.Hops[1].Stopped = 0.55, 0.250 },
			"The CPU limit of the relay nginx at port 80, over r: of 562 ms to the last " +
				"token (mean) the server needs 300 ms, nginx holds 262 ms.\nOver r, its CPU " +
				"limit stopped nginx for 250 ms of 550 ms.\n…"},
		"known to an interval": {judgetest.Evidence(quick, [7]float64{1: 577, 4: 262}, none),
			func(e *sample.Evidence) { e.Parts[1].LastHalf, e.Parts[4].LastHalf = 0.004, 0.0212 },
			"The relay nginx at port 80, over r: of 839 ms to the last token (mean) the " +
				"server needs 577 ms ±4.00 ms, nginx holds 262 ms ±21.2 ms.\n…"},
		"not known to differ from 0": {judgetest.Evidence(quick, [7]float64{1: 577, 4: 262}, none),
			func(e *sample.Evidence) { e.Parts[1].LastHalf, e.Parts[4].LastHalf = 0.004, 0.263 },
			"Neither, over r: of 839 ms to the last token (mean) the server needs 577 ms " +
				"±4.00 ms, and nginx holds 262 ms ±263 ms.\n…"},
		"a first token not known to differ from 0": {
			judgetest.Evidence([7]float64{1: 60, 4: 250}, [7]float64{1: 1800, 4: 10}, none),
			func(e *sample.Evidence) { e.Parts[4].FirstHalf = 0.251 },
			"Neither, over r: of 1.81 s to the last token (mean) the server needs 1.80 s, " +
				"and the route adds little.\n…"},
		"slow gaps known to an interval": {
			judgetest.Evidence(quick, fine, [7]float64{5: 100, 6: 10}),
			func(e *sample.Evidence) { e.Parts[5].ExcessHalf = 0.099 },
			"The network, over r: of 540 ms to the last token (mean) the server needs 540 " +
				"ms, the network adds 100 ms to slow gaps.\nOver r, slow gaps add 110 ms a response: network 100 ms ±99.0 ms, client " +
				"10.0 ms.\n…"},
		"slow gaps not known to differ from 0": {
			judgetest.Evidence(quick, fine, [7]float64{1: 45, 5: 55}),
			func(e *sample.Evidence) {
				e.Parts[1].ExcessHalf, e.Parts[5].ExcessHalf = 0.046, 0.060
			}, "Neither, over r: of 540 ms to the last token (mean) the server needs 540 ms, " +
				"and the route adds little.\nOver r, slow gaps add 100 ms a response: network " +
				"55.0 ms ±60.0 ms, server 45.0 ms ±46.0 ms.\n…"},
		"a server's slow gaps known over other routes": {
			judgetest.Evidence(quick, fine, [7]float64{1: 45, 5: 55}),
			func(e *sample.Evidence) {
				e.Parts[1].ExcessHalf, e.ServerSlow, e.ServerSlowHalf = 0.046, 0.091, 0.02
			}, "The server and the network, over r: of 540 ms to the last token (mean) the " +
				"server needs 540 ms, the network adds 55.0 ms to slow gaps.\nOver r, " +
				"slow gaps add 100 ms a response: network 55.0 " +
				"ms, server 45.0 ms. Over the routes at its pace, the server's slow gaps take " +
				"9.1 % ±2 % of a response.\n…"},
		"a server's slow gaps not known over other routes": {
			judgetest.Evidence(quick, fine, [7]float64{1: 45, 5: 55}),
			func(e *sample.Evidence) { e.Parts[1].ExcessHalf, e.ServerSlow = 0.046, 0.091 },
			"The server and the network, over r: of 540 ms to the last token (mean) the " +
				"server needs 540 ms, the network adds 55.0 ms to slow gaps.\nOver r, " +
				"slow gaps add 100 ms a response: network 55.0 " +
				"ms, server 45.0 ms.\n…"},
		"a slow relay": {judgetest.Evidence([7]float64{2, 62, 0, 0, 41, 0, 0.3},
			[7]float64{2, 305, 0, 0, 736, 0, 0.3}, none),
			func(e *sample.Evidence) { e.ServerGap, e.Gap = 0.0107, 0.0406 },
			"The relay nginx at port 80, over r: of 1.04 s to the last token (mean) the " +
				"server needs 305 ms, nginx holds 736 ms.\nOver r, the server sends a token " +
				"each 10.7 ms (median), they arrive each 40.6 ms.\n…"},
		"a relay that smooths": {judgetest.Evidence(quick, [7]float64{1: 577, 4: 262}, none), nil,
			"The relay nginx at port 80, over r: of 839 ms to the last token (mean) the " +
				"server needs 577 ms, nginx holds 262 ms.\n…"},
		"late first tokens only": {judgetest.Evidence([7]float64{1: 60, 4: 250}, [7]float64{1: 1800, 4: 10}, none), nil, "The relay nginx at port 80, over r: of 1.81 s to the last token (mean) the " +
			"server needs 1.80 s, nginx holds the first token for 250 ms.\n…"},
		"a small share of a short first token": {
			judgetest.Evidence([7]float64{1: 2, 6: 1}, [7]float64{1: 540, 6: 1}, none), nil,
			"Neither, over r: of 541 ms to the last token (mean) the server needs 540 ms, " +
				"and the route adds little.\n…"},
		"the network": {judgetest.Evidence(quick, fine, [7]float64{5: 100, 6: 10}), nil,
			"The network, over r: of 540 ms to the last token (mean) the server needs 540 " +
				"ms, the network adds 100 ms to slow gaps.\nOver r, slow gaps add 110 ms a response: network 100 ms, client 10.0 " +
				"ms.\n…"},
		"server and network": {judgetest.Evidence(quick, fine, [7]float64{1: 45, 5: 55}), nil,
			"The server and the network, over r: of 540 ms to the last token (mean) the " +
				"server needs 540 ms, the network adds 55.0 ms to slow gaps.\nOver r, " +
				"slow gaps add 100 ms a response: network 55.0 " +
				"ms, server 45.0 ms.\n…"},
		"few slow gaps": {judgetest.Evidence(quick, fine, [7]float64{5: 10}), nil,
			"Neither, over r: of 540 ms to the last token (mean) the server needs 540 ms, " +
				"and the route adds little.\n…"},
		"little of a gap": {judgetest.Evidence(quick, fine, [7]float64{1: 60, 6: 22}), nil,
			"The server, over r: of 540 ms to the last token (mean) the server needs 540 " +
				"ms.\nOver r, slow gaps add 82.0 ms a response: server 60.0 ms, client 22.0 " +
				"ms.\n…"},
		"a relay that sends all at the end": {judgetest.Evidence([7]float64{1: 60, 4: 250},
			[7]float64{1: 300, 4: 10}, none),
			func(e *sample.Evidence) { e.Gap = 0 },
			"The relay nginx at port 80, over r: of 310 ms to the last token (mean) the " +
				"server needs 300 ms, nginx holds the first token for 250 ms.\nOver r, the " +
				"server sends a token each 20.0 ms (median), they arrive together.\n…"},
		"Nagle": {judgetest.Evidence(quick, [7]float64{1: 300, 2: 40}, none),
			func(e *sample.Evidence) {
				e.Waits = []sample.EvidenceWait{{Cause: sample.WaitNagle, Tokens: 3, Sum: 0.111},
					{Cause: sample.WaitOther, Tokens: 1, Sum: 0.002}}
			}, "Neither, over r: of 340 ms to the last token (mean) the server needs 300 ms, " +
				"and the server's TCP holds 40.0 ms.\nOver r, 3 tokens waited 37.0 ms each in " +
				"the server's TCP for acknowledgements, without TCP_NODELAY (set it at the " +
				"server).\n…"},
		"Nagle for less than a gap": {
			judgetest.Evidence(quick, fine, [7]float64{1: 6, 2: 17, 6: 7}),
			func(e *sample.Evidence) {
				e.Waits = []sample.EvidenceWait{{Cause: sample.WaitNagle, Tokens: 2, Sum: 0.0145}}
			}, "Neither, over r: of 540 ms to the last token (mean) the server needs 540 ms, " +
				"and the route adds little.\nOver r, slow gaps add 30.0 ms a response: " +
				"server's TCP 17.0 ms, client 7.00 ms, server 6.00 ms; 2 tokens waited 7.25 ms " +
				"each in the server's TCP for acknowledgements, without TCP_NODELAY (set it at " +
				"the server).\n…"},
		"Nagle for little": {judgetest.Evidence(quick, fine, [7]float64{1: 3, 2: 4}),
			func(e *sample.Evidence) {
				e.Waits = []sample.EvidenceWait{{Cause: sample.WaitNagle, Tokens: 2, Sum: 0.002}}
			}, "Neither, over r: of 540 ms to the last token (mean) the server needs 540 ms, " +
				"and the route adds little.\n…"},
		"a full queue": {judgetest.Evidence(quick, fine, [7]float64{2: 200}),
			func(e *sample.Evidence) {
				e.Waits = []sample.EvidenceWait{{Cause: sample.WaitOther, Tokens: 1, Sum: 0.002},
					{Cause: sample.WaitQueue, Tokens: 9, Sum: 0.2}}
			}, "The full queue of the server's device, over r: of 540 ms to the last token " +
				"(mean) the server needs 540 ms, the server's TCP adds 200 ms to slow gaps.\nOver r, slow gaps add 200 ms a response: " +
				"server's TCP 200 ms; 9 tokens waited 22.2 ms each in the server's TCP behind " +
				"the full queue of the server's device.\n…"},
		"a reader that does not read": {judgetest.Evidence(quick, [7]float64{1: 300, 2: 200}, none),
			func(e *sample.Evidence) {
				e.Waits = []sample.EvidenceWait{{Cause: sample.WaitWindow, Tokens: 9, Sum: 0.5}}
			}, "A reader that does not read, over r: of 500 ms to the last token (mean) the " +
				"server or its wait for a reader needs 300 ms, the server's TCP holds 200 " +
				"ms.\nOver r, 9 tokens waited 55.6 ms each in the server's TCP for a reader " +
				"that does not read.\n…"},
		"others": {judgetest.Evidence(quick, fine, none), func(e *sample.Evidence) { e.Others = 3 },
			"Neither, over r: of 540 ms to the last token (mean) the server needs 540 ms, " +
				"and the route adds little.\nOver r, the server answered 3 requests of others " +
				"meanwhile.\n…"},
		"congestion": {judgetest.Evidence(quick, [7]float64{1: 300, 2: 200}, none),
			func(e *sample.Evidence) {
				e.Waits = []sample.EvidenceWait{{Cause: sample.WaitCongestion, Tokens: 9, Sum: 0.2}}
			}, "The network, which delays or loses packets, over r: of 500 ms to the last " +
				"token (mean) the server needs 300 ms, the server's TCP holds 200 ms.\nOver r, " +
				"9 tokens waited 22.2 ms each in the server's TCP for acknowledgements, with a " +
				"full congestion window.\n…"},
		"all at the end": {judgetest.Evidence(fine, fine, none), func(e *sample.Evidence) { e.ServerGap, e.Gap = 0, 0 }, "The server, over r: of 540 ms to the last token (mean) the server needs 540 " +
			"ms.\nOver r, the server sends its tokens together.\n…"},
		"all at the end, and a relay that holds less than what is to blame": {
			judgetest.Evidence([7]float64{1: 561, 4: 8}, [7]float64{1: 561, 4: 127}, none),
			func(e *sample.Evidence) { e.ServerGap = 0 },
			"The server, over r: of 688 ms to the last token (mean) the server needs 561 " +
				"ms, nginx holds 127 ms.\nOver r, the server sends its tokens together.\n…"},
		"an end after a pause": {judgetest.Evidence(quick, fine, none),
			func(e *sample.Evidence) { e.End = 0.841 },
			"Neither, over r: of 540 ms to the last token (mean) the server needs 540 ms, " +
				"and the route adds little.\nOver r, responses end 301 ms after their last " +
				"token.\n…"},
		"an end at once": {judgetest.Evidence(quick, fine, none),
			func(e *sample.Evidence) { e.End = 0.545 },
			"Neither, over r: of 540 ms to the last token (mean) the server needs 540 ms, " +
				"and the route adds little.\n…"},
		"one event": {judgetest.Evidence(fine, fine, none), func(e *sample.Evidence) {
			e.ServerGap, e.Gap, e.Tokens, e.Matched = 0, 0, e.Responses, e.Responses
		}, "Neither, over r: of 540 ms to the last token (mean) the server needs 540 ms, " +
			"and the route adds little.\nOver r, each response comes in one event.\nsudo " +
			"toll trace --attach 10.0.0.1:80 divides others' requests.\nDetails:\nSeen from the " +
			"server " +
			"(vllm at port 8000) on: 1 of 1 tokens."},
		"unseen writes": {judgetest.Evidence(quick, fine, none), func(e *sample.Evidence) { e.Writes = false }, "Neither, over r: of 540 ms to the last token (mean) the server with its TCP " +
			"needs 540 ms, and the route adds little.\n…"},
		"a relay of unknown name": {judgetest.Evidence(quick, [7]float64{1: 500, 4: 500}, none),
			func(e *sample.Evidence) { e.Hops[1].Process = "" },
			"The relay at port 80, over r: of 1.00 s to the last token (mean) the server " +
				"needs 500 ms, the relay holds 500 ms.\n…"},
		"lost packets": {judgetest.Evidence(quick, fine, none), func(e *sample.Evidence) { e.Lost = 3 }, "Over r, the captured packets allow no verdict: the capture lost 3 " +
			"packets.\nDetails:"},
		"hops that may be missing": {judgetest.Evidence(quick, fine, none),
			func(e *sample.Evidence) { e.HopsUnsure = true },
			"Neither, over r: of 540 ms to the last token (mean) the server needs 540 ms, " +
				"and the route adds little.\nOver r, the server may be a relay to another one, " +
				"because captures lost packets while toll looked for it.\n…"},
		"visits that lost packets": {judgetest.Evidence(quick, fine, none),
			func(e *sample.Evidence) { e.LeftOut = 2 },
			"Neither, over r: of 540 ms to the last token (mean) the server needs 540 ms, " +
				"and the route adds little.\nOver r, 2 visits in which captures lost packets " +
				"are left out.\n…"},
		"unmatched": {judgetest.Evidence(quick, fine, none), func(e *sample.Evidence) { e.Matched = 22 }, "Over r, the captured packets allow no verdict: only 22 of 24 tokens were seen " +
			"at every hop.\nDetails:"},
		"few unmatched": {judgetest.Evidence(quick, fine, none),
			func(e *sample.Evidence) { e.Matched = 23 },
			"Neither, over r: of 540 ms to the last token (mean) the server needs 540 " +
				"ms, and the route adds little.\nSeen from the server (vllm at port 8000) " +
				"on: 23 of 24 tokens.\nsudo toll trace --attach 10.0.0.1:80 divides others' " +
				"requests.\nDetails:"},
		"a server on a peer": {judgetest.Evidence(quick, [7]float64{1: 300, 5: 262}, none),
			func(e *sample.Evidence) {
				e.Parts, e.Hops[0].Machine, e.Unsure = e.Parts[1:], "peer gpu1", 0.131
			}, "The network, over r: of 562 ms to the last token (mean) the server needs " +
				"300 ms, the network holds 262 ms.\nDetails:\nSeen from the server (vllm at " +
				"port 8000 of peer gpu1) on: 24 of 24 tokens."},
		"a client that captured nothing": {judgetest.Evidence(quick, [7]float64{1: 300, 5: 262}, none),
			func(e *sample.Evidence) { e.Parts, e.ClientInWire = e.Parts[1:6], true },
			"The network or the client, over r: of 562 ms to the last token (mean) the " +
				"server needs 300 ms, the network or the client holds 262 ms.\n…"},
		"a peer that left": {&sample.Evidence{Responses: 1, Tokens: 24, Broken: "peer gpu1: it left"},
			nil, "Over r, the captured packets allow no verdict: peer gpu1: it left.\nDetails:"},
		"a relay whose tokens cannot be read": {judgetest.Evidence(quick, fine, none),
			func(e *sample.Evidence) {
				e.Matched, e.Hops[1].Unread = 0, "compresses its responses with br"
			}, "Over r, the captured packets allow no verdict: nginx at port 80 compresses " +
				"its responses with br, which toll cannot read.\nDetails:"},
		"nothing seen": {&sample.Evidence{Responses: 1, Tokens: 24}, nil,
			"Over r, the captured packets allow no verdict: no stream was seen at the " +
				"server, which may be asked for whole responses, or over another protocol " +
				"than HTTP/1.1 and HTTP/2.\nDetails:"},
		"no token read": {&sample.Evidence{Responses: 3, ByID: 3}, nil,
			"Over r, the captured packets allow no verdict: no token could be read at the " +
				"server, which may compress its responses.\nDetails:"},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.change != nil {
				tt.change(tt.evidence)
			}
			r := &analysis.Report{}
			r.Cells = []analysis.Cell{{Cell: sample.Cell{Mode: "r", Load: workload.Chat},
				Dial: "10.0.0.1:80", Evidence: tt.evidence, Baseline: true}}
			a := answerOf(r, nil)
			got := strings.Join(slices.Concat(a.Text, []string{"Details:"}, r.Findings), "\n")
			if got = strings.Replace(got, usual, "\n…", 1); got != tt.want || a.Question != "Is it the network or the model?" {
				t.Errorf("%s %q, want %q", a.Question, got, tt.want)
			}
		})
	}
}

// Each route is judged by its own evidence. One without is compared as before.
func TestEvidenceOfSomeRoutes(t *testing.T) {
	const rounds = 8
	for name, tt := range map[string]struct {
		of   []int // cells with evidence: a, its control, b
		part bool  // of b's way is blamed
	}{
		"all":  {[]int{0, 2}, true},
		"none": {nil, false},
		"one":  {[]int{0}, false},
	} {
		r := newRoutes(t, workload.Chat, "a", "b")
		for round := range rounds {
			for cell, late := range []time.Duration{0, 0, 100 * time.Millisecond} {
				r.chatted(round, cell, 50*time.Millisecond, late)
				v := &r.File.Visits[len(r.File.Visits)-1]
				if slices.Contains(tt.of, cell) {
					v.Evidence = judgetest.Evidence([7]float64{1: 60}, [7]float64{1: 2000, 4: 1000}, [7]float64{})
				}
			}
		}
		report := judged(r.File)
		blamed := slices.ContainsFunc(report.Found, func(f analysis.Finding) bool {
			return f.Code == endpoints.PartBlamed && report.Cells[f.Cells[0]].Name() == "b"
		})
		if blamed != tt.part || found(report, endpoints.BlameNetwork) == tt.part {
			t.Errorf("%s: %+v", name, report.Found)
		}
		findings := strings.Join(report.Findings, "\n")
		if len(tt.of) == 2 && !testgolden.HasLine(findings, "b: the relay nginx at port 80.") {
			t.Errorf("%s: %s", name, findings)
		}
		if e := route(t, report, "a").Evidence; len(tt.of) > 0 &&
			(e.Responses != rounds || e.Parts[1].Last != 2) {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// Of two routes to one server, whose slow gaps add 6.6 and 4.6 % of a response, not only one may call
// it slow.
func TestRoutesAgreeOnTheirServer(t *testing.T) {
	for name, tt := range map[string]struct {
		another bool
		slow    map[string]bool
	}{
		"one server":  {false, map[string]bool{"a": true, "b": true}},
		"two servers": {true, map[string]bool{"a": true, "b": false}},
	} {
		r := newRoutes(t, workload.Chat, "a", "b")
		for round := range 6 {
			for cell, slow := range []float64{99, 99, 69} {
				r.chatted(round, cell, 50*time.Millisecond, 0)
				e := judgetest.Evidence([7]float64{1: 60}, [7]float64{1: 1500}, [7]float64{1: slow})
				if cell == 2 && tt.another {
					e.Hops[0].Port++
				}
				r.File.Visits[len(r.File.Visits)-1].Evidence = e
			}
		}
		report := judged(r.File)
		for label, want := range tt.slow {
			e := route(t, report, label).Evidence
			if got := len(endpoints.Division{Evidence: e}.Blamed()) == 1; got != want {
				t.Errorf("%s: %s: blamed is %t, share %g", name, label, got, e.ServerSlow)
			}
		}
	}
}

// A relay whose pace is slower than the server's hides the server's slow gaps: they are those of the
// other route.
func TestPaceHidesTheServersSlowGaps(t *testing.T) {
	r := newRoutes(t, workload.Chat, "a", "b")
	for round := range 6 {
		for cell := range 3 {
			r.chatted(round, cell, 50*time.Millisecond, 0)
			e := judgetest.Evidence([7]float64{1: 60}, [7]float64{1: 500}, [7]float64{1: 60})
			if cell == 2 {
				e = judgetest.Evidence([7]float64{1: 60}, [7]float64{1: 500, 4: 1500}, [7]float64{})
				e.Gap = 2 * e.ServerGap
			}
			r.File.Visits[len(r.File.Visits)-1].Evidence = e
		}
	}
	report := judged(r.File)
	for label, want := range map[string]string{"a": sample.EvidenceServer, "b": sample.EvidenceRelay} {
		blamed := endpoints.Division{Evidence: route(t, report, label).Evidence}.Blamed()
		if len(blamed) != 1 || blamed[0].Part != want {
			t.Errorf("%s: %+v, want %s", label, blamed, want)
		}
	}
}

// What two routes show of their server's slow gaps may be certain if neither route's own is.
func TestRoutesPoolTheirServersIntervals(t *testing.T) {
	for another, want := range map[bool]string{false: "The server, over a: of 1.50 s to the last token (mean) the server needs 1.50 " +
		"s.\nThe server, over b: of 1.50 s to the last token (mean) the server needs 1.50 " +
		"s.\nOver a, slow gaps add 200 ms a response: server 200 ms. Over b, slow gaps add " +
		"200 ms a response: server 200 ms. Over the routes at its pace, the server's slow " +
		"gaps take 13.3 % ±10.8 % of a response.\nb has the same median response time as " +
		"a.\nsudo toll trace --attach 10.0.0.1:80 divides others' requests.", true: "Neither, over a: of 1.50 s to the last token (mean) the server needs 1.50 s, " +
		"and the route adds little.\nNeither, over b: of 1.50 s to the last token (mean) " +
		"the server needs 1.50 s, and the route adds little.\nOver a, slow gaps add 200 " +
		"ms a response: server 200 ms ±230 ms. Over b, slow gaps add 200 ms a response: " +
		"server 200 ms ±230 ms.\nb has the same median response time as a.\nsudo toll " +
		"trace --attach 10.0.0.1:80 divides others' requests."} {
		r := newRoutes(t, workload.Chat, "a", "b")
		for round := range 6 {
			for cell := range 3 {
				r.chatted(round, cell, 50*time.Millisecond, 0)
				e := judgetest.Evidence([7]float64{1: 60}, [7]float64{1: 1500},
					[7]float64{1: 400 * float64((round+cell)%2)})
				if cell == 2 && another {
					e.Hops[0].Port++
				}
				r.File.Visits[len(r.File.Visits)-1].Evidence = e
			}
		}
		report := judged(r.File)
		if got := strings.Join(answerOf(report, nil).Text, "\n"); got != want {
			t.Errorf("another server is %t: %q, want %q", another, got, want)
		}
		for _, label := range []string{"a", "b"} {
			e := route(t, report, label).Evidence
			if p := e.Parts[1]; p.ExcessHalf < p.Excess {
				t.Errorf("%s: its own slow gaps are certain: %+v", label, p)
			}
			if got := len(endpoints.Division{Evidence: e}.Blamed()) == 1; got == another {
				t.Errorf("%s: another server is %t, blamed is %t: %g ±%g", label, another, got,
					e.ServerSlow, e.ServerSlowHalf)
			}
		}
	}
}

// Headers of gateways and glued tokens raise no doubts that packets settle.
func TestEvidenceSettlesDoubts(t *testing.T) {
	for name, tt := range map[string]struct {
		change  func(route string, e *sample.Evidence)
		servers bool // may be different ones
		glued   bool // tokens are, for an unknown reason
	}{
		"one server": {nil, false, false},
		"two servers": {func(route string, e *sample.Evidence) {
			if route == "b" {
				e.Hops[0].Port++
			}
		}, true, false},
		"no verdict": {func(_ string, e *sample.Evidence) { e.Lost = 3 }, false, true},
		"unseen":     {func(_ string, e *sample.Evidence) { *e = sample.Evidence{} }, true, true},
	} {
		r := newRoutes(t, workload.Chat, "a", "b")
		r.File.Header.Paths[1].Facts["server"] = "nginx"
		for round := range 6 {
			for cell := range 3 {
				r.chatted(round, cell, 50*time.Millisecond, 0)
				v := &r.File.Visits[len(r.File.Visits)-1]
				v.Client.Counts["glued"] = 50
				v.Evidence = judgetest.Evidence([7]float64{1: 60}, [7]float64{1: 2000}, [7]float64{})
				if tt.change != nil {
					tt.change(r.File.Header.Plan.Cells[cell].Route, v.Evidence)
				}
			}
		}
		report := judged(r.File)
		if slices.Contains(judgetest.Codes(report.Warnings), analysis.DoubtfulRoutes) != tt.servers {
			t.Errorf("%s: %+v", name, report.Warnings)
		}
		for _, c := range report.Cells {
			f := judgetest.Found(t, c.Warnings, workload.GluedTokens)
			if f.Values[f.Code] < 0.45 || (f.What == "") != tt.glued {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
}

func TestAnswerSaysWhatIsUnseen(t *testing.T) {
	r := &analysis.Report{}
	for _, name := range []string{"a", "b"} {
		r.Cells = append(r.Cells, analysis.Cell{Cell: sample.Cell{Mode: mode.Name(name), Load: workload.Chat},
			Facts: map[string]string{
				sample.FactTokensUnseen: "toll must be root to capture packets",
			}})
	}
	text := strings.Join(answerOf(r, []endpoints.Culprit{{Route: "b", Blame: endpoints.Network}}).Text, "\n")
	if !strings.HasPrefix(
		text,
		"The network, over b.\nWhen tokens left the server is unknown over a and b: toll must be root to capture packets.",
	) {
		t.Error(text)
	}
}

func TestExchanged(t *testing.T) {
	parts := [7]float64{0.01, 0.09, 0, 0.001, 0.12, 0.002}
	of := func(change func(*sample.Evidence)) *sample.Evidence {
		e := judgetest.Evidence(parts, parts, [7]float64{})
		e.Responses, e.ByOrder, e.ByID, e.Tokens, e.Matched = 1000, 1000, 0, 0, 0
		e.Parts, e.Hops[0] = e.Parts[:6], sample.EvidenceHop{Process: "postgres", Port: 5432}
		e.Hops[1].Process = "docker-proxy"
		if change != nil {
			change(e)
		}
		return e
	}
	for name, tt := range map[string]struct {
		load     string
		evidence *sample.Evidence
		unseen   string
		says     string
		finds    string
	}{
		"a query": {workload.SQL, of(nil), "",
			"Over r, of 223 µs a query as captured (mean): docker-proxy 120 µs, server 90.0 µs.", ""},
		"a request": {workload.Exec, of(nil), "",
			"Over r, of 223 µs a request as captured (mean): docker-proxy 120 µs, server 90.0 µs.", ""},
		"Nagle": {workload.SQL, of(func(e *sample.Evidence) {
			e.Parts[2].Last = 0.02
			e.Waits = []sample.EvidenceWait{{Cause: sample.WaitNagle, Tokens: 500, Sum: 20},
				{Cause: sample.WaitOther, Tokens: 3, Sum: 0.01}}
		}), "", "Over r, of 20.2 ms a query as captured (mean): server's TCP 20.0 ms; 500 replies waited " +
			"40.0 ms each at the server for acknowledgements, without TCP_NODELAY (set it at the " +
			"server).", ""},
		"an interval": {workload.SQL, of(func(e *sample.Evidence) { e.Parts[4].LastHalf = 2e-6 }), "",
			"Over r, of 223 µs a query as captured (mean): docker-proxy 120 µs ±2.00 µs, server " +
				"90.0 µs.", ""},
		"lost": {workload.SQL, of(func(e *sample.Evidence) { e.Lost = 3 }), "", "",
			"Where the time of a query goes is unknown over r: the capture lost 3 packets."},
		"few found": {workload.Exec, of(func(e *sample.Evidence) { e.ByOrder = 900 }), "", "",
			"Where the time of a request goes is unknown over r: only 900 of 1000 exchanges were " +
				"seen at every hop."},
		"unseen": {workload.Exec, nil, "toll must be root to capture packets", "",
			"Where the time of a request goes is unknown over r: toll must be root to capture packets."},
		"no capture": {workload.Exec, nil, "", "", ""},
	} {
		r := &analysis.Report{}
		r.Cells = []analysis.Cell{{Cell: sample.Cell{Mode: "r", Load: tt.load}, Evidence: tt.evidence,
			Facts: map[string]string{sample.FactExchangesUnseen: tt.unseen}}}
		got := strings.Join(answerOf(r, nil).Text, "\n")
		if found(r, endpoints.Exchanged) != (tt.says != "") ||
			tt.says != "" && !testgolden.HasLine(got, tt.says) {
			t.Errorf("%s: %q", name, got)
		}
		if got := strings.Join(r.Findings, "\n"); got != tt.finds {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A server whose process is not known is named, too.
func TestQuestionOfUnknownServer(t *testing.T) {
	a := endpoints.ServedAnswer(&sample.Served{Server: sample.EvidenceHop{Port: 2024}})
	if want := "Where does the time of requests to the server at port 2024 go?"; a.Question != want {
		t.Errorf("%q, want %q", a.Question, want)
	}
}
