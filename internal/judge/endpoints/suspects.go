package endpoints

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// muchOf is the share of the time to connect above which a look-up is mentioned.
const muchOf = 0.1

type observed struct {
	analysis.Cell
	label string
	load  sample.Load
}

// suspects names the observed causes other than the route or the model that slowed routes down, or
// returns "" without data.
func suspects(r *analysis.Report) string {
	var all []observed
	for _, c := range r.Cells {
		_, ok := c.Metrics[workload.Resent]
		dialled, alone := c.Metrics[workload.Dialled]
		if !ok && !knownOfServer(c) || alone && dialled.Median == 0 && !failed(c) {
			continue
		}
		label := c.Label()
		if len(r.Plan.Loads) > 1 {
			label += ", " + c.Load
		}
		all = append(all, observed{c, label, r.LoadAt(c)})
	}
	if len(all) == 0 {
		return ""
	}
	var seen, none []string
	for _, s := range workload.Suspects() {
		said, known := over(all, func(c observed) (string, bool) { return says(s, c) })
		seen = append(seen, said...)
		if known && len(said) == 0 && s.None != "" {
			none = append(none, s.None)
		}
	}
	said, _ := over(all, lookedUp)
	if seen = append(seen, said...); len(said) == 0 {
		none = append(none, "no look-up of a name took long")
	}
	said, _ = over(all, delayed)
	if seen = append(seen, said...); len(seen) > 0 {
		return "Other suspects: " + strings.Join(seen, "; ") + "."
	}
	text := "No other suspect: " + printable.List(none) + "."
	seenServer := func(c observed) bool {
		return knownOfServer(c.Cell) || strings.HasPrefix(c.Dial, "/")
	}
	if !slices.ContainsFunc(all, seenServer) {
		text += " The server's side was not examined: it is not on this machine, or toll must be root to see it."
	}
	return text
}

// failed reports whether connections were refused, not answered or found no free port.
func failed(c analysis.Cell) bool {
	return sum(c, workload.NoPortDials)+sum(c, workload.RefusedDials) > 0
}

// proxies returns a sentence for each route through docker-proxy. It includes how to avoid the
// proxy if that is known to cost something or there is no other route to compare.
func proxies(r *analysis.Report, culprits []Culprit) (out []string) {
	better := slices.ContainsFunc(r.Cells, func(c analysis.Cell) bool {
		x := c.Metrics[c.Primary].Ratio
		return x != nil && x.Verdict == stats.Better && c.Facts[behindProxy] == ""
	})
	alone := !slices.ContainsFunc(r.Cells, func(c analysis.Cell) bool { return !c.Baseline })
	for _, c := range r.Cells {
		behind := c.Facts[behindProxy]
		if behind == "" {
			continue
		}
		costs, free := costsOf(r.Cells, c.Label())
		costs = costs || c.Baseline && better ||
			slices.ContainsFunc(culprits, func(k Culprit) bool {
				return k.Route == c.Label() && (k.Blame == Network || k.Blame == Both)
			})
		text := c.Label() + " goes through docker-proxy"
		switch {
		case alone:
			text += fmt.Sprintf(": the container's own address, %s, is another route to it.",
				behind)
		case costs:
			text += fmt.Sprintf(": dial the container, %s%s.", behind, orFast(c.Dial))
		case free:
			text += ", at no measurable cost."
		default:
			text += "."
		}
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// orFast returns the command that redirects clients of an address past docker-proxy, as an
// alternative, or "" if toll fast does not redirect them.
func orFast(dial string) string {
	host, port, err := net.SplitHostPort(dial)
	a, _ := netip.ParseAddr(host)
	if err != nil || host != "localhost" && !a.IsLoopback() {
		return ""
	}
	return ", or sudo toll fast on " + port
}

// costsOf reports whether a route is worse than the baseline under some load (costs), and whether
// it is the same under all loads although the baseline has no docker-proxy (free).
func costsOf(cells []analysis.Cell, label string) (costs, free bool) {
	var verdicts []stats.Verdict
	through := false
	for _, c := range cells {
		through = through || c.Baseline && c.Facts[behindProxy] != ""
		if x := c.Metrics[c.Primary].Ratio; x != nil && c.Label() == label {
			verdicts = append(verdicts, x.Verdict)
		}
	}
	differs := func(v stats.Verdict) bool { return v != stats.Same }
	free = !through && len(verdicts) > 0 && !slices.ContainsFunc(verdicts, differs)
	return slices.Contains(verdicts, stats.Worse), free
}

// behindProxy is the fact of a path through docker-proxy that contains the container's address.
const behindProxy = "behind_docker_proxy"

// over returns the routes' texts, or a single one if all are equal. known is false if say has no
// data on any route.
func over(all []observed, say func(observed) (text string, known bool)) (out []string, known bool) {
	var texts []string
	for _, c := range all {
		text, ok := say(c)
		known = known || ok
		if text != "" {
			out, texts = append(out, c.label+": "+text), append(texts, text)
		}
	}
	if len(all) > 1 && len(texts) == len(all) && len(slices.Compact(slices.Clone(texts))) == 1 {
		return []string{"over every route: " + texts[0]}, known
	}
	return out, known
}

func knownOfServer(c analysis.Cell) bool {
	return slices.ContainsFunc(workload.Suspects(), func(s workload.Suspect) bool {
		return s.Server && has(c, s.Metric)
	})
}

func has(c analysis.Cell, metric string) bool { _, ok := c.Metrics[metric]; return ok }

func sum(c analysis.Cell, metric string) float64 { return merged(c.Metrics[metric]) }

// says returns the text on a suspect, or "" if no sign of it was observed. known is false without
// data.
func says(s workload.Suspect, c observed) (text string, known bool) {
	m, known := c.Metrics[s.Metric]
	if !known || s.Says == "" {
		return "", known
	}
	switch n, of := sum(c.Cell, s.Metric), sum(c.Cell, s.Of); {
	case s.Unit == "1":
		if m.Median < s.Least {
			return "", true
		}
		text = fmt.Sprintf(s.Says, fmt.Sprintf("%.0f %%", 100*m.Median))
	case n == 0 || of > 0 && n < s.Least*of:
		return "", true
	case of > 0:
		text = fmt.Sprintf(s.Says, whole(n), whole(of))
	case s.Of != "" && s.Alone == "":
		return "", true
	case n == 1 && s.One != "":
		text = s.One
	case s.Of != "":
		text = fmt.Sprintf(s.Alone, whole(n))
	default:
		text = fmt.Sprintf(s.Says, whole(n))
	}
	if s.Server {
		text = "the server" + called(c.Facts["container"]) + ": " + text
	}
	return text, true
}

func whole(n float64) string { return fmt.Sprintf("%.0f", n) }

func called(name string) string {
	if name == "" {
		return ""
	}
	return " in container " + name
}

func lookedUp(c observed) (text string, known bool) {
	took := c.Metrics[workload.LookUpTime].Median
	if took <= 0 || took <= muchOf*lookedUpFor(c.Cell) {
		return "", true
	}
	each := "once for each connection"
	if has(c.Cell, workload.Dialled) {
		each = "not counted: the client gets the address"
	}
	return fmt.Sprintf("its name took %s to look up, %s", workload.Briefly(took), each), true
}

func lookedUpFor(c analysis.Cell) float64 {
	if x, ok := c.Metrics[workload.ConnectTime]; ok {
		return x.Median
	}
	return c.Metrics[workload.Elapsed].Median
}

const (
	// delayedLeast and delayedMost bound the time, in s, of an operation that waits for one delayed
	// acknowledgement: Linux sends it after 40 ms, and the operation takes its own time, too.
	delayedLeast = 0.038
	delayedMost  = 0.060
	// delayedRTT is the longest round trip, in s, that cannot explain such a time.
	delayedRTT = 0.010
)

// delayed returns the text on requests that wait for delayed acknowledgements, or "". They take as
// long as a delayed acknowledgement although round trips are short and nothing was lost. If both
// ends' kernels report their counts, these must be high enough.
func delayed(c observed) (text string, known bool) {
	took, what, total := waits(c)
	rtt := c.Metrics[workload.RTT].Median
	if took < delayedLeast || took > delayedMost || sum(c.Cell, workload.Resent) > 0 {
		return "", true
	}
	n := sum(c.Cell, workload.DelayedACKs) + sum(c.Cell, workload.ServerDelayed)
	certain := total > 0 && n*delayedLeast > delayedShare*total
	if !certain && (knownOfServer(c.Cell) || rtt <= 0 || rtt > delayedRTT) {
		return "", true
	}
	text = what + " takes " + workload.Briefly(took)
	if rtt > 0 && rtt <= delayedRTT {
		text += " at a round trip of " + workload.Briefly(rtt) + ", without loss"
	}
	if certain {
		text += fmt.Sprintf(
			": it waits for delayed acknowledgements of 40 ms, of which the kernel counted %.0f", n)
	} else {
		text += ": as long as a delayed acknowledgement"
	}
	return text +
		" (one end writes in two pieces and waits for the other's acknowledgement in between: set TCP_NODELAY there, or write once)", true
}

// delayedShare is the share of the time that delayed acknowledgements must explain to be certain.
const delayedShare = 0.3

// waits returns how long one operation takes, its name, and the total time measured. Times are in
// s, or 0 without data.
func waits(c observed) (took float64, what string, total float64) {
	rounds := float64(len(c.Metrics[c.Primary].Rounds))
	switch c.load.Kind {
	case workload.SQL:
		return c.Metrics[workload.QueryP50].Median, "a query",
			rounds * c.load.Window * float64(max(1, c.load.Streams))
	case workload.Chat:
		if c.Metrics[workload.Glued].Median > workload.GluedShare {
			return c.Metrics[workload.GapP50].Median, "the median gap",
				rounds * c.Metrics[workload.ResponseTime].Median
		}
	case workload.Exec:
		for _, g := range workload.ExecOf(c.load).Program.Gauges {
			if x := c.Metrics[g.Name].Median; g.Unit == "s" && x >= delayedLeast &&
				x <= delayedMost {
				return x, "the " + g.Name, rounds * c.Metrics[workload.Elapsed].Median
			}
		}
	}
	return 0, "", 0
}
