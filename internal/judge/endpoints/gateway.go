package endpoints

import (
	"cmp"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// The programs that answer for servers. HAProxy and Traefik are known by their processes only.
const (
	Nginx     = "nginx"
	OpenResty = "OpenResty"
	Caddy     = "Caddy"
	Envoy     = "Envoy"
	HAProxy   = "HAProxy"
	Traefik   = "Traefik"
)

// signs are what the headers Server and Via of gateways, or the names of their processes, contain.
var signs = []struct{ sign, name string }{{"nginx", Nginx}, {"openresty", OpenResty},
	{"caddy", Caddy}, {"envoy", Envoy}, {"haproxy", HAProxy}, {"traefik", Traefik}}

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
		name := named(c.Facts["server"] + " " + c.Facts[sample.FactVia])
		if e := seen[c.Label()]; e != nil {
			switch w := (Division{e}); {
			case w.Together():
				f.Code = GatewayOnly
			case !w.gathered():
				continue // the tokens come together for another reason
			default:
				if name = cmp.Or(named(w.relay()), name); name == "" && w.relay() != "" {
					continue // the answer names that program, whose settings are not known
				}
			}
		}
		if name != "" {
			f.Code, f.What = Gateway, name
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

// named returns the program that a text names, or "".
func named(text string) string {
	text = strings.ToLower(text)
	for _, g := range signs {
		if strings.Contains(text, g.sign) {
			return g.name
		}
	}
	return ""
}

// relay returns the process of the relay that is to blame, or "".
func (w Division) relay() string {
	for _, p := range w.Blamed() {
		if p.Part == sample.EvidenceRelay && p.Hop < len(w.Hops) {
			return w.Hops[p.Hop].Process
		}
	}
	return ""
}

// heldAlone returns the culprit of the only route, whose tokens are held back.
func heldAlone(r *analysis.Report, s *analysis.Series) Culprit {
	return Culprit{Route: analysis.Label(s.Cell), Blame: Held, Why: &analysis.Finding{
		Code: TokensHeld, Cells: []int{r.At(s.Cell)},
		Values: map[string]float64{workload.Glued: median(s, workload.Glued)}}}
}
