package sentence

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/endpoints"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// why returns why a route is blamed, with doubts.
func (w *writer) why(fs []analysis.Finding) string {
	f := fs[0]
	gaps, proof := w.gaps(f), w.proofs(f)
	held := f.Code == endpoints.RouteHolds
	switch {
	case f.What == f.Why:
	case held && len(proof) == 1: // which is that tokens are held back
		gaps = ""
	case held:
		gaps = strings.Join(proof[1:], "; ") + "."
	case f.Why == string(endpoints.NotKnown):
		gaps = strings.Join(proof, "; ") + "."
	default:
		gaps = strings.Join(proof, "; ") + "; " + gaps
	}
	return strings.TrimSpace(gaps + doubts(f))
}

// gaps returns what a route's gaps alone show.
func (w *writer) gaps(f analysis.Finding) string {
	slow := workload.Milliseconds(f.Values[endpoints.SlowGaps])
	if f.Why == string(endpoints.Nobody) {
		return "its gaps are steady, the slowest tenth " + slow + " longer than the median one."
	}
	text := fmt.Sprintf("its slow gaps are %s longer than its median gap, %s of that beyond %s's",
		slow, f.Prices[0].Plain(), w.steadiest(f))
	if f.Why == string(endpoints.NotKnown) {
		text += "; run longer, or with more --tokens"
	}
	return text + "."
}

func (w *writer) steadiest(f analysis.Finding) string { return w.r.Cells[f.Cells[1]].Label() }

// later says of a time of a response by how much it is longer.
var later = map[string]string{workload.FirstTokenP50: "its first token comes %s later",
	workload.GapP50: "its median gap is %s longer", workload.ResponseTime: "its responses take %s longer"}

// proofs returns that tokens are held back, and which times are longer, as far as that is so.
func (w *writer) proofs(f analysis.Finding) (out []string) {
	if f.Code == endpoints.RouteHolds {
		out = append(out, fmt.Sprintf("%.0f %% of its tokens came together with another one (over %s "+
			"%.0f %%): something on the path holds them back", 100*f.Values[workload.Glued],
			w.steadiest(f), 100*f.Values[endpoints.Other+workload.Glued]))
	}
	for i, metric := range f.Names {
		out = append(out, fmt.Sprintf(later[metric], f.Prices[i+1].Amount()))
	}
	return out
}

// proof returns a sentence with the figures behind a blame, or "" without any.
func (w *writer) proof(fs []analysis.Finding) string {
	f := fs[0]
	if f.What == string(endpoints.Server) {
		slow, over := f.Values[endpoints.Other+endpoints.SlowGaps], "every route"
		if f.N > 0 {
			slow = min(slow, f.Values[endpoints.SlowGaps])
			over = w.r.Cells[f.Cells[0]].Label() + " and " + w.steadiest(f)
		}
		return fmt.Sprintf("Over %s the slowest tenth of the gaps is at least %s longer than the median "+
			"gap.", over, workload.Milliseconds(slow))
	}
	say := w.proofs(f)
	if f.Prices[0].Verdict == stats.Costs && f.Code != endpoints.RouteHolds {
		say = append(say, fmt.Sprintf("its slow gaps are %s longer", f.Prices[0].Amount()))
	}
	if n := f.Values[workload.Stalls]; n > 0 {
		say = append(say, fmt.Sprintf("%s (over %s %.0f)", units.Plural(int(n), "stall"),
			w.steadiest(f), f.Values[endpoints.Other+workload.Stalls]))
	}
	if len(say) == 0 {
		return ""
	}
	return fmt.Sprintf("Over %s, against %s: %s.", w.r.Cells[f.Cells[0]].Label(), w.steadiest(f),
		strings.Join(say, "; "))
}

func doubts(f analysis.Finding) (text string) {
	if glued := f.Values[workload.Glued]; glued > workload.GluedShare {
		by := "on the path, or by the server"
		if f.Code == endpoints.RouteHolds {
			by = "on the path"
		}
		text = fmt.Sprintf(
			" %.0f %% of its tokens arrived together with another one: they were held back %s.",
			100*glued, by)
	}
	switch n := f.Values[workload.Stalls]; {
	case n == 1:
		text += " 1 of its gaps was a stall."
	case n > 0:
		text += fmt.Sprintf(" %.0f of its gaps were stalls.", n)
	}
	return text
}

// clauses returns how the routes differ from the baseline.
func (w *writer) clauses(fs []analysis.Finding) string {
	var out []string
	for _, c := range w.cells(fs[0]) {
		text := c.Label() + " " + w.r.Clause(c)
		p := c.Metrics[c.Primary].Price
		if n := w.queries(c); n > 1 && p != nil {
			text += ": " + divided(*p, n).Amount() + " a query"
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

func (w *writer) queries(c analysis.Cell) int {
	if c.Load != workload.SQL {
		return 0
	}
	return workload.SQLOf(w.r.Plan.Loads.Of(c.Load)).Queries
}

func divided(p analysis.Price, by int) analysis.Price {
	for _, x := range []*float64{&p.Median, &p.Low, &p.High} {
		*x /= float64(max(1, by))
	}
	return p
}

func (w *writer) connects(fs []analysis.Finding) string {
	var say []string
	for _, c := range w.cells(fs[0]) {
		m := c.Metrics[workload.ConnectTime]
		how := "longer"
		if m.Ratio.Verdict == stats.Better {
			how = "less"
		}
		text := fmt.Sprintf("%s takes %s %s than %s", c.Label(), m.Price.Amount(), how, m.Ratio.To)
		if !slices.Contains(say, text) {
			say = append(say, text)
		}
	}
	return strings.Join(say, "; ")
}

// times returns what a route adds to the times of a response.
func (w *writer) times(fs []analysis.Finding) string {
	names := map[string]string{workload.FirstTokenP50: "the first token",
		workload.GapP50: "the median gap", workload.ResponseTime: "a response",
		workload.ConnectTime: "connecting"}
	if fs[0].Load == workload.Batch {
		names[workload.ResponseTime] = "a response that is not streamed"
	}
	c := w.r.Cells[fs[0].Cells[0]]
	var adds []string
	to := ""
	for _, metric := range endpoints.Times(fs[0].Load) {
		if m := c.Metrics[metric]; m.Price != nil && m.Ratio != nil {
			to = m.Ratio.To
			how := string(m.Price.Verdict)
			if metric == workload.GapP50 && m.Price.Verdict == stats.Gains &&
				c.Metrics[workload.Glued].Median > workload.GluedShare {
				how = "tokens come together"
			}
			adds = append(adds, fmt.Sprintf("%s to %s (%s)", m.Price.Plain(), names[metric], how))
		}
	}
	return fmt.Sprintf("Over %s, %s adds %s", to, c.Label(), strings.Join(adds, ", "))
}

// page returns what a route adds to a page of queries and to each of them.
func (w *writer) page(fs []analysis.Finding) string {
	c, queries := w.r.Cells[fs[0].Cells[0]], fs[0].N
	p := c.Metrics[workload.LatencyP50].Price
	return fmt.Sprintf("%s adds %s to a page of %s over %s (%s): %s to each", c.Label(),
		p.Plain(), units.Plural(queries, "query"), w.r.Plan.Baseline, p.Verdict,
		divided(*p, queries).Plain())
}

// tracing returns the command that traces requests over the routes, whose client is the run's
// unless toll can make such requests itself.
func (w *writer) tracing(fs []analysis.Finding) string {
	args := []string{"trace"}
	cells := w.cells(fs[0])
	for _, c := range cells {
		word := c.Dial
		if name := c.Label(); name != word {
			word = name + "=" + c.Dial
		}
		args = append(args, word)
	}
	p := workload.ExecOf(w.r.Plan.Loads.Of(cells[0].Load)).Program
	with := ""
	switch {
	case p == nil || ownRequests[p.Recipe] != "":
	case len(p.Client) > longestClient:
		with = ", with the --client of this run,"
	default:
		args = append(args, "--client", p.Client)
	}
	return "sudo " + sample.CommandLine(args) + with
}

// longestClient is the longest client, in bytes, that is repeated in a command. A longer one would
// be broken over lines, and could not be pasted.
const longestClient = 32

// asked returns whose time toll trace divides.
func (w *writer) asked(fs []analysis.Finding) string {
	p := workload.ExecOf(w.r.Plan.Loads.Of(w.r.Cells[fs[0].Cells[0]].Load)).Program
	if p == nil {
		return "a request"
	}
	return cmp.Or(ownRequests[p.Recipe], "the client's requests")
}

// ownRequests has the requests that toll makes, by the recipe whose server understands them.
var ownRequests = map[string]string{"redis": "a PING", "wrk": "a GET"}

// number returns the word for one or several routes.
func number(one, several string) blank {
	return func(w *writer, fs []analysis.Finding) string {
		if len(analysis.Distinct(w.cells(fs[0]), analysis.Cell.Label)) > 1 {
			return several
		}
		return one
	}
}

// gateways has what makes programs hold tokens back.
var gateways = map[string]string{
	endpoints.Nginx:     "set proxy_buffering off there",
	endpoints.OpenResty: "set proxy_buffering off there",
	endpoints.Caddy: "leave response_buffers (buffer_responses in old versions) out of its " +
		"reverse_proxy",
	endpoints.Envoy: "leave out filters that read whole responses (ext_proc: response_body_mode " +
		"STREAMED; Lua: no body())",
	endpoints.HAProxy: "set option http-no-delay there",
	endpoints.Traefik: "leave out its middleware buffering",
}
