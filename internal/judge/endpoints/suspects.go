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

// longLookUp is the shortest time, in s, of a look-up that is mentioned.
const longLookUp = 0.001

type observed struct {
	analysis.Cell
	label string
	load  sample.Load
}

// suspects returns a sentence that names the observed causes other than the route or the model that
// slowed routes down, and one on the causes that were not found. Both are "" without
// data.
func suspects(r *analysis.Report) (found, absent string) {
	all := observedOf(r)
	if len(all) == 0 {
		return "", ""
	}
	var seen, none []string
	for _, s := range workload.Suspects() {
		said, known := over(all, func(c observed) (string, bool) { return says(s, c) })
		seen = append(seen, said...)
		if known && len(said) == 0 && s.None != "" {
			none = append(none, noneOf(s, all))
		}
	}
	said, _ := over(all, lookedUp)
	if seen = append(seen, said...); len(said) == 0 {
		none = append(none, "no look-up of a name took long")
	}
	said, _ = over(all, passedOver)
	seen = append(seen, said...)
	said, _ = over(all, delayed)
	late := len(said) > 0
	seen = append(append(seen, said...), switched(r)...)
	found = "No other suspect."
	if len(seen) > 0 {
		found = "Other suspects: " + strings.Join(seen, "; ") + "."
	}
	found += unexamined(all)
	if !late && slices.ContainsFunc(all, unkept) {
		found += " The server keeps connections open, but each response came over a new one: with " +
			"--requests 8 most come over kept ones, where delayed acknowledgements show."
	}
	if len(none) > 0 {
		absent = "Looked for: " + printable.List(none) + "."
	}
	return found, absent
}

// observedOf returns the cells on which there are data about suspects.
func observedOf(r *analysis.Report) (all []observed) {
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
	return all
}

// unkept reports whether a server keeps connections, and the load used each for one request.
func unkept(c observed) bool {
	return c.Facts[sample.FactKept] != "" && workload.ChatOf(c.load).Requests <= 1
}

// noneOf returns the clause on a suspect that slowed no route down.
func noneOf(s workload.Suspect, all []observed) string {
	if s.Metric != workload.Resent {
		return s.None
	}
	n := 0.0
	for _, c := range all {
		n += sum(c.Cell, workload.Resent) + sum(c.Cell, workload.OutOfOrder)
	}
	switch n {
	case 0:
		return s.None
	case 1:
		return "only 1 segment was lost or out of order"
	}
	return "only " + whole(n) + " segments were lost or out of order"
}

// unexamined returns sentences, each after a space, on the routes whose server toll did not find.
func unexamined(all []observed) (text string) {
	var texts []string
	missed := map[string][]string{} // routes
	for _, c := range all {
		known := knownOfServer(c.Cell)
		why := c.Facts[sample.FactServerUnseen]
		switch {
		case strings.HasPrefix(c.Dial, "/") || known && why == "":
			continue
		case why == "":
			why = "toll did not find it"
		}
		say := "The server's side%s was not examined: " + why + "."
		if known {
			say = "The server%s was not examined, except for its listen queues: " + why + "."
		}
		if missed[say] == nil {
			texts = append(texts, say)
		}
		if !slices.Contains(missed[say], c.label) {
			missed[say] = append(missed[say], c.label)
		}
	}
	for _, say := range texts {
		over := ""
		if len(missed[say]) < len(all) {
			over = " of " + printable.List(missed[say])
		}
		text += " " + strings.Replace(say, "%s", over, 1)
	}
	return text
}

// seldom is the share of the rounds, of which at least one, below which rare events cannot have
// changed a median.
const seldom = 0.25

func isSeldom(m analysis.Metric) bool {
	some := 0
	for _, n := range m.Rounds {
		if n > 0 {
			some++
		}
	}
	return float64(some) < seldom*float64(len(m.Rounds))
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
	case s.Often && isSeldom(m), s.Metric == workload.Resent && queueFull(c.Cell):
		return "", true
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
	switch connects := sum(c.Cell, workload.ResentConnects); s.Metric {
	case workload.Resent:
		if connects >= mostly*sum(c.Cell, workload.Resent) {
			text += ", " + most(connects, sum(c.Cell, workload.Resent)) +
				"to open connections: the server's listen queue was full, or they were lost"
		}
	case workload.ServerOverflows:
		if n := sum(c.Cell, workload.Resent); n > 0 && queueFull(c.Cell) {
			says, remedy, _ := strings.Cut(text, ": ")
			text = says + ", so the client sent " + whole(n) + " segments again: " + remedy
		}
	}
	if s.Server {
		text = "the server" + called(c.Facts["container"]) + ": " + text
	}
	return text, true
}

// mostly is the share of the segments that the client sent again from which their cause is certain.
const mostly = 0.5

// queueFull reports whether a full listen queue of the server explains why segments were sent again.
func queueFull(c analysis.Cell) bool {
	n := sum(c, workload.ServerOverflows)
	return n > 0 && n >= mostly*sum(c, workload.Resent)
}

// most returns "most of them " or, if n is all, "all ".
func most(n, all float64) string {
	if n < all {
		return "most of them "
	}
	return "all of them "
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
	if took < longLookUp || took <= muchOf*lookedUpFor(c.Cell) {
		return "", true
	}
	each := "once for each connection"
	if has(c.Cell, workload.Dialled) {
		each = "not counted: the client gets the address"
	}
	return fmt.Sprintf("its name took %s to look up, %s", workload.Briefly(took), each), true
}

// longPass is the shortest time to connect, in s, that tells of an address that did not answer
// before the next one was tried: clients wait 250 ms or longer (RFC 8305). A refusal takes less.
const longPass = 0.2

// passedOver returns the text on a name whose first address does not answer, or "".
func passedOver(c observed) (text string, known bool) {
	first, took := c.Facts[sample.FactUnanswered], c.Metrics[workload.ConnectTime].Median
	if first == "" || took < longPass {
		return "", true
	}
	return fmt.Sprintf("connecting takes %s, because the first address of its name, %s, does not "+
		"answer", workload.Briefly(took), first), true
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
	rtt := c.Metrics[workload.RTT].Median
	if sum(c.Cell, workload.Resent) > 0 && !isSeldom(c.Metrics[workload.Resent]) {
		return "", true
	}
	n := sum(c.Cell, workload.DelayedACKs) + sum(c.Cell, workload.ServerDelayed)
	if x, ok := keptDelay(c, n); ok {
		return fmt.Sprintf("over a kept connection, a response has a wait that is %s longer than "+
			"over a new one: it waits for delayed acknowledgements of 40 ms, of which the kernel "+
			"counted %.0f", workload.Briefly(x), n) + delayedRemedy, true
	}
	took, what, total := waits(c)
	if took < delayedLeast || took > delayedMost {
		return "", true
	}
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
	return text + delayedRemedy, true
}

const delayedRemedy = " (one end writes in two pieces and waits for the other's acknowledgement in between: set TCP_NODELAY there, or write once)"

// keptLeast is the shortest part of a delayed acknowledgement, in s, that a wait of a kept
// connection contains, because the rest may pass while the server works.
const keptLeast = 0.020

// keptDelay returns by how much waits over kept connections are longer, in s. ok reports whether
// that is due to delayed acknowledgements, of which the kernel counted n: at least one for every
// other response over a kept connection. The first packets of a connection are acknowledged at
// once.
func keptDelay(c observed, n float64) (x float64, ok bool) {
	m := c.Metrics[workload.KeptExcess]
	kept := len(m.Rounds) * max(1, c.load.Streams) * (workload.ChatOf(c.load).Requests - 1)
	x = m.Median
	return x, x >= keptLeast && x <= delayedMost && kept > 0 && 2*n >= float64(kept)
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
