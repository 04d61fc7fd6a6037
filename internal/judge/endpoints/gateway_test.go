package endpoints_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/endpoints"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/sentence"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

// With one route, tokens that arrive together are the strongest clue.
func TestHeldAlone(t *testing.T) {
	r := newRoutes(t, "chat", "only")
	for round := range 6 {
		r.chatted(round, 0, time.Millisecond, 0)
		r.File.Visits[round].Client.Counts["glued"] = 101
	}
	for i := range r.File.Header.Paths {
		r.File.Header.Paths[i].Facts = map[string]string{"server": "nginx/1.22.1"}
	}
	got := judged(r.File).Answer
	want := []string{
		"Neither the wire nor the model's speed, over only: the server, or a gateway in front of it, " +
			"holds tokens back.",
		"Over only 100 % of the tokens came together with another one. Give the server's own address " +
			"as another route to see which of the two holds them back.",
		"Over only, nginx answers: set proxy_buffering off there.",
	}
	if got.Question != "Is it the network or the model?" || len(got.Text) < 3 ||
		!slices.Equal(got.Text[:3], want) {
		t.Errorf("%+v, want %q", got, want)
	}
}

// The headers are those of nginx 1.22.1, Caddy 2.6.2 and Envoy 1.40.0 before a server in Python.
// HAProxy adds none.
// What was seen at the server and its relays decides whether a gateway may hold tokens back.
func TestGatewaysSeen(t *testing.T) {
	fine := [7]float64{1: 540, 6: 0.1}
	atEnd := judgetest.Evidence(fine, fine, [7]float64{})
	atEnd.Gap, atEnd.ServerGap = 0, 0
	held := judgetest.Evidence([7]float64{1: 60, 4: 250}, [7]float64{1: 300, 4: 10}, [7]float64{})
	held.Gap = 0
	holds := func(process string) *sample.Evidence {
		e := *held
		e.Hops = []sample.EvidenceHop{e.Hops[0], {Process: process, Port: 8080}}
		return &e
	}
	const may = "If what answers over r passes on another server's tokens, stop its buffering: "
	busy := judgetest.Evidence(fine, fine, [7]float64{1: 100, 6: 300})
	busy.Gap = 0
	slow := judgetest.Evidence(fine, fine, [7]float64{6: 300})
	for name, x := range map[string]struct {
		evidence *sample.Evidence
		server   string
		want     string // "": nothing
	}{
		"a busy client":                            {slow, "", ""},
		"a busy client, nginx":                     {slow, "nginx", ""},
		"a client that reads most tokens together": {busy, "nginx", ""},
		"the server sends them together":           {atEnd, "", may},
		"nginx sends them together":                {atEnd, "nginx", "Over r, nginx answers: "},
		"a relay holds them back":                  {holds("python3"), "", ""},
		"an unknown relay":                         {holds(""), "", mayBuffer},
		"nginx holds them back": {held, "",
			"Over r, nginx answers: set proxy_buffering off there."},
		"HAProxy holds them back": {holds("haproxy"), "",
			"Over r, HAProxy answers: set option http-no-delay there."},
		"Traefik holds them back": {holds("traefik"), "",
			"Over r, Traefik answers: leave out its middleware buffering."},
		"Envoy before nginx": {holds("envoy"), "nginx", "Over r, Envoy answers: "},
		"few were seen":      {&sample.Evidence{Responses: 1, Tokens: 24}, "", mayBuffer},
	} {
		c := analysis.Cell{Cell: sample.Cell{Mode: "r", Load: workload.Chat}, Evidence: x.evidence,
			Facts:   map[string]string{"server": x.server},
			Metrics: map[string]analysis.Metric{workload.Glued: {Median: 1, Low: 0.9, High: 1}}}
		got := gateways([]analysis.Cell{c})
		if x.want == "" && got != nil ||
			x.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], x.want)) {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
	}
}

func TestGatewaysByTheirHeaders(t *testing.T) {
	for _, x := range []struct{ server, via, want string }{
		{"nginx/1.22.1", "", "Over r, nginx answers: set proxy_buffering off there."},
		{"openresty/1.25.3.1", "", "Over r, OpenResty answers: set proxy_buffering off there."},
		{"Caddy", "", "Over r, Caddy answers: leave response_buffers"},
		{"BaseHTTP/0.6 Python/3.11.7", "1.1 Caddy", "Over r, Caddy answers: "},
		{"envoy", "", "Over r, Envoy answers: leave out filters that read whole responses"},
		{"BaseHTTP/0.6 Python/3.11.7", "", mayBuffer},
		{"", "", mayBuffer},
	} {
		c := analysis.Cell{Cell: sample.Cell{Mode: "r", Load: workload.Chat},
			Facts:   map[string]string{"server": x.server, sample.FactVia: x.via},
			Metrics: map[string]analysis.Metric{workload.Glued: {Median: 1, Low: 0.9, High: 1}}}
		got := gateways([]analysis.Cell{c, c})
		if len(got) != 1 || !strings.HasPrefix(got[0], x.want) {
			t.Errorf("%q, via %q: %q, want %q", x.server, x.via, got, x.want)
		}
		c.Metrics[workload.Glued] = analysis.Metric{Median: 0.12, Low: 0.02, High: 0.2}
		if got := gateways([]analysis.Cell{c}); got != nil {
			t.Errorf("few tokens came together: %q", got)
		}
	}
}

const mayBuffer = "If a gateway is in front of the server, stop its buffering: "

// gateways returns the sentences on what holds the cells' tokens back.
func gateways(cells []analysis.Cell) (out []string) {
	r := &analysis.Report{Measured: analysis.Measured{Cells: cells}}
	for _, f := range endpoints.Findings(r, nil) {
		if strings.HasPrefix(f.Code, endpoints.Gateway) {
			r.Found = append(r.Found, f)
		}
	}
	if sentence.Fill(r); r.Answer != nil {
		out = r.Answer.Text
	}
	return out
}
