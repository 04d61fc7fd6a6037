package endpoints

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// gateways lists programs that answer for servers, by what their headers Server and Via contain,
// and what makes them hold tokens back.
var gateways = []struct{ sign, name, remedy string }{
	{"nginx", "nginx", "set proxy_buffering off there"},
	{"openresty", "OpenResty", "set proxy_buffering off there"},
	{"caddy", "Caddy", "leave response_buffers (buffer_responses in old versions) out of " +
		"its reverse_proxy"},
	{"envoy", "Envoy", "leave out filters that read whole responses (ext_proc: " +
		"response_body_mode STREAMED; Lua: no body())"},
}

const (
	unknownGateway = "If a gateway is in front of the server, stop" + itsBuffering
	// onlyGateway is for a server that is seen to send its tokens together.
	onlyGateway  = "If what answers over %s passes on another server's tokens, stop" + itsBuffering
	itsBuffering = " its buffering: option http-no-delay in HAProxy, proxy_buffering off in nginx, " +
		"no buffering middleware in Traefik."
)

// held reports whether enough tokens of a route certainly arrived together to make its gaps
// meaningless.
func held(m analysis.Metric) bool { return m.Low > workload.GluedShare }

// holders returns sentences on the gateways of routes whose tokens are held back, with the setting
// that ends that.
func holders(r *analysis.Report) (out []string) {
	routes := map[string][]string{} // by sentence, with %s for the routes
	var texts []string
	seen := proven(r)
	for _, c := range r.Cells {
		if m, ok := c.Metrics[workload.Glued]; !ok || !held(m) {
			continue
		}
		text := unknownGateway
		if e := seen[c.Label()]; e != nil {
			switch w := (division{e}); {
			case w.together():
				text = onlyGateway
			case !w.gathered():
				continue // the tokens come together for another reason
			}
		}
		says := strings.ToLower(c.Facts["server"] + " " + c.Facts[sample.FactVia])
		for _, g := range gateways {
			if strings.Contains(says, g.sign) {
				text = "Over %s, " + g.name + " answers: " + g.remedy + "."
				break
			}
		}
		if routes[text] == nil {
			texts = append(texts, text)
		}
		if label := c.Label(); !slices.Contains(routes[text], label) {
			routes[text] = append(routes[text], label)
		}
	}
	for _, text := range texts {
		out = append(out, strings.Replace(text, "%s", printable.List(routes[text]), 1))
	}
	return out
}

// heldAlone returns the culprit of the only route, whose tokens are held back.
func heldAlone(s *analysis.Series) Culprit {
	route := analysis.Label(s.Cell)
	return Culprit{Route: route, Blame: Held, Proof: fmt.Sprintf(
		"Over %s %.0f %% of the tokens came together with another one. Give the server's own address "+
			"as another route to see which of the two holds them back.", route,
		100*median(s, workload.Glued))}
}
