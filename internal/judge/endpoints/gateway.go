package endpoints

import (
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// The programs that answer for servers.
const (
	Nginx     = "nginx"
	OpenResty = "OpenResty"
	Caddy     = "Caddy"
	Envoy     = "Envoy"
)

// signs are what the headers Server and Via of gateways contain.
var signs = []struct{ sign, name string }{{"nginx", Nginx}, {"openresty", OpenResty},
	{"caddy", Caddy}, {"envoy", Envoy}}

// held reports whether enough tokens of a route certainly arrived together to make its gaps
// meaningless.
func held(m analysis.Metric) bool { return m.Low > workload.GluedShare }

// holders returns the gateways of routes whose tokens are held back.
func holders(r *analysis.Report) (out []analysis.Finding) {
	seen := proven(r)
	for i, c := range r.Cells {
		if m, ok := c.Metrics[workload.Glued]; !ok || !held(m) {
			continue
		}
		f := analysis.Finding{Code: GatewayUnknown}
		if e := seen[c.Label()]; e != nil {
			switch w := (Division{e}); {
			case w.Together():
				f.Code = GatewayOnly
			case !w.gathered():
				continue // the tokens come together for another reason
			}
		}
		says := strings.ToLower(c.Facts["server"] + " " + c.Facts[sample.FactVia])
		for _, g := range signs {
			if strings.Contains(says, g.sign) {
				f.Code, f.What = Gateway, g.name
				break
			}
		}
		k := slices.IndexFunc(out, func(o analysis.Finding) bool {
			return o.Code == f.Code && o.What == f.What
		})
		if k < 0 {
			k, out = len(out), append(out, f)
		}
		out[k].Cells = append(out[k].Cells, i)
	}
	return out
}

// heldAlone returns the culprit of the only route, whose tokens are held back.
func heldAlone(r *analysis.Report, s *analysis.Series) Culprit {
	return Culprit{Route: analysis.Label(s.Cell), Blame: Held, Why: &analysis.Finding{
		Code: TokensHeld, Cells: []int{r.At(s.Cell)},
		Values: map[string]float64{workload.Glued: median(s, workload.Glued)}}}
}
