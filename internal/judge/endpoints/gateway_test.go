package endpoints

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
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
	got := Judge(r.File).Answer
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
func TestGatewaysByTheirHeaders(t *testing.T) {
	for _, x := range []struct{ server, via, want string }{
		{"nginx/1.22.1", "", "Over r, nginx answers: set proxy_buffering off there."},
		{"openresty/1.25.3.1", "", "Over r, OpenResty answers: set proxy_buffering off there."},
		{"Caddy", "", "Over r, Caddy answers: leave response_buffers"},
		{"BaseHTTP/0.6 Python/3.11.7", "1.1 Caddy", "Over r, Caddy answers: "},
		{"envoy", "", "Over r, Envoy answers: leave out filters that read whole responses"},
		{"BaseHTTP/0.6 Python/3.11.7", "", unknownGateway},
		{"", "", unknownGateway},
	} {
		c := analysis.Cell{Mode: "r", Load: workload.Chat,
			Facts:   map[string]string{"server": x.server, sample.FactVia: x.via},
			Metrics: map[string]analysis.Metric{workload.Glued: {Median: 1, Low: 0.9, High: 1}}}
		got := holders(&analysis.Report{Measured: analysis.Measured{Cells: []analysis.Cell{c, c}}})
		if len(got) != 1 || !strings.HasPrefix(got[0], x.want) {
			t.Errorf("%q, via %q: %q, want %q", x.server, x.via, got, x.want)
		}
		c.Metrics[workload.Glued] = analysis.Metric{Median: 0.12, Low: 0.02, High: 0.2}
		if got := holders(&analysis.Report{Measured: analysis.Measured{Cells: []analysis.Cell{c}}}); got != nil {
			t.Errorf("few tokens came together: %q", got)
		}
	}
}
