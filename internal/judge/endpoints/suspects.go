package endpoints

import (
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// muchOf is the share of the time to connect above which a look-up is mentioned.
const muchOf = 0.1

// longLookUp is the shortest time, in s, of a look-up that is mentioned.
const longLookUp = 0.001

type observed struct {
	analysis.Cell
	at   int // in the report
	load sample.Load
}

// suspects returns the observed causes other than the route or the model that slowed routes down,
// and those that were not found. Both are nil without data.
func suspects(r *analysis.Report) (found, absent []analysis.Finding) {
	all := observedOf(r)
	if len(all) == 0 {
		return nil, nil
	}
	var cells []int
	for _, c := range all {
		cells = append(cells, c.at)
	}
	none := func(metric string) {
		absent = append(absent, analysis.Finding{Code: NotSuspected, What: metric, Cells: cells})
	}
	for _, s := range workload.Suspects() {
		known, before := false, len(found)
		if s.Metric == workload.BusyShare && r.TooBusy() {
			continue // the answer begins with that
		}
		for _, c := range all {
			is, ok := isSuspect(s, c)
			if known = known || ok; is {
				found = append(found, analysis.Finding{Code: Suspected, What: s.Metric,
					Cells: []int{c.at}})
			}
		}
		if known && len(found) == before && s.None != "" {
			none(s.Metric)
		}
	}
	for _, look := range []func(observed) (analysis.Finding, bool){lookedUp, passedOver, delayed} {
		for _, c := range all {
			if f, ok := look(c); ok {
				f.Cells = []int{c.at}
				found = append(found, f)
			}
		}
	}
	has := func(codes ...string) bool {
		return slices.ContainsFunc(found, func(f analysis.Finding) bool {
			return slices.Contains(codes, f.Code)
		})
	}
	if !has(SlowLookUp) {
		none(workload.LookUpTime)
	}
	late := has(KeptDelay, ACKDelay, MaybeACKDelay)
	if found = append(found, switched(r)...); len(found) == 0 {
		found = []analysis.Finding{{Code: NoSuspect}}
	}
	found = append(found, unexamined(all)...)
	if !late && slices.ContainsFunc(all, unkept) {
		found = append(found, analysis.Finding{Code: NewEachTime})
	}
	for i := range found {
		found[i].Of = len(all)
	}
	return found, absent
}

// observedOf returns the cells on which there are data about suspects.
func observedOf(r *analysis.Report) (all []observed) {
	for i, c := range r.Cells {
		_, ok := c.Metrics[workload.Resent]
		dialled, alone := c.Metrics[workload.Dialled]
		if !ok && !KnownOfServer(c) || alone && dialled.Median == 0 && !failed(c) {
			continue
		}
		all = append(all, observed{c, i, r.LoadAt(c)})
	}
	return all
}

// unkept reports whether a server keeps connections, and the load used each for one request.
func unkept(c observed) bool {
	return c.Facts[sample.FactKept] != "" && workload.ChatOf(c.load).Requests <= 1
}

// unexamined returns the routes whose server toll did not find, by reason.
func unexamined(all []observed) (out []analysis.Finding) {
	for _, c := range all {
		f := analysis.Finding{Code: Unexamined, What: c.Facts[sample.FactServerUnseen]}
		known := KnownOfServer(c.Cell)
		switch {
		case strings.HasPrefix(c.Dial, "/") || known && f.What == "":
			continue
		case known:
			f.Code = OnlyQueues
		case f.What == "":
			f.What = "toll did not find it"
		}
		k := slices.IndexFunc(out, func(o analysis.Finding) bool {
			return o.Code == f.Code && o.What == f.What
		})
		if k < 0 {
			k, out = len(out), append(out, f)
		}
		out[k].Cells = append(out[k].Cells, c.at)
	}
	return out
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

// proxies returns the routes through docker-proxy. What is done about the proxy depends on whether it
// is known to cost something, and on whether there is another route to compare.
func proxies(r *analysis.Report, culprits []Culprit) (out []analysis.Finding) {
	better := slices.ContainsFunc(r.Cells, func(c analysis.Cell) bool {
		x := c.Metrics[c.Primary].Ratio
		return x != nil && x.Verdict == stats.Better && c.Facts[BehindProxy] == ""
	})
	for i, c := range r.Cells {
		if c.Facts[BehindProxy] == "" {
			continue
		}
		costs, free := costsOf(r.Cells, c.Label())
		costs = costs || c.Baseline && better ||
			slices.ContainsFunc(culprits, func(k Culprit) bool {
				return k.Route == c.Label() && (k.Blame == Network || k.Blame == Both)
			})
		f := analysis.Finding{Code: Proxied, Cells: []int{i}}
		switch {
		case !several(r):
			f.Code = ProxiedAlone
		case costs:
			f.Code = ProxyCosts
		case free:
			f.Code = ProxyFree
		}
		out = append(out, f)
	}
	return out
}

// costsOf reports whether a route is worse than the baseline under some load (costs), and whether
// it is the same under all loads although the baseline has no docker-proxy (free).
func costsOf(cells []analysis.Cell, label string) (costs, free bool) {
	var verdicts []stats.Verdict
	through := false
	for _, c := range cells {
		through = through || c.Baseline && c.Facts[BehindProxy] != ""
		if x := c.Metrics[c.Primary].Ratio; x != nil && c.Label() == label {
			verdicts = append(verdicts, x.Verdict)
		}
	}
	differs := func(v stats.Verdict) bool { return v != stats.Same }
	free = !through && len(verdicts) > 0 && !slices.ContainsFunc(verdicts, differs)
	return slices.Contains(verdicts, stats.Worse), free
}

// BehindProxy is the fact of a path through docker-proxy that contains the container's address.
const BehindProxy = "behind_docker_proxy"

// KnownOfServer reports whether the server of a route was seen.
func KnownOfServer(c analysis.Cell) bool {
	return slices.ContainsFunc(workload.Suspects(), func(s workload.Suspect) bool {
		return s.Server && has(c, s.Metric)
	})
}

func has(c analysis.Cell, metric string) bool { _, ok := c.Metrics[metric]; return ok }

func sum(c analysis.Cell, metric string) float64 { return merged(c.Metrics[metric]) }

// isSuspect reports whether a sign of a suspect was observed. known is false without data.
func isSuspect(s workload.Suspect, c observed) (is, known bool) {
	m, known := c.Metrics[s.Metric]
	if !known || s.Says == "" {
		return false, known
	}
	switch n, of := sum(c.Cell, s.Metric), sum(c.Cell, s.Of); {
	case s.Often && isSeldom(m), s.Metric == workload.Resent && QueueFull(c.Cell):
		return false, true
	case s.Unit == "1":
		return m.Median >= s.Least, true
	case n == 0 || of > 0 && n < s.Least*of:
		return false, true
	default:
		return of > 0 || s.Of == "" || s.Alone != "", true
	}
}

// Mostly is the share of the segments that the client sent again from which their cause is certain.
const Mostly = 0.5

// QueueFull reports whether a full listen queue of the server explains why segments were sent again.
func QueueFull(c analysis.Cell) bool {
	n := sum(c, workload.ServerOverflows)
	return n > 0 && n >= Mostly*sum(c, workload.Resent)
}

// lookedUp returns how long a name took to look up, if that is long.
func lookedUp(c observed) (f analysis.Finding, ok bool) {
	took := c.Metrics[workload.LookUpTime].Median
	return analysis.Finding{Code: SlowLookUp}, took >= longLookUp &&
		took > muchOf*lookedUpFor(c.Cell)
}

// longPass is the shortest time to connect, in s, that tells of an address that did not answer
// before the next one was tried: clients wait 250 ms or longer (RFC 8305). A refusal takes less.
const longPass = 0.2

// passedOver reports whether the first address of a name does not answer.
func passedOver(c observed) (f analysis.Finding, ok bool) {
	return analysis.Finding{Code: PassedOver}, c.Facts[sample.FactUnanswered] != "" &&
		c.Metrics[workload.ConnectTime].Median >= longPass
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

// delayed returns requests that wait for delayed acknowledgements. They take as long as a delayed
// acknowledgement although round trips are short and nothing was lost. If both ends' kernels report
// their counts, these must be high enough.
func delayed(c observed) (f analysis.Finding, ok bool) {
	rtt := c.Metrics[workload.RTT].Median
	if sum(c.Cell, workload.Resent) > 0 && !isSeldom(c.Metrics[workload.Resent]) {
		return f, false
	}
	n := sum(c.Cell, workload.DelayedACKs) + sum(c.Cell, workload.ServerDelayed)
	if x, ok := keptDelay(c, n); ok {
		return analysis.Finding{Code: KeptDelay, Values: map[string]float64{Wait: x, ACKs: n}}, true
	}
	took, what, total := waits(c)
	if took < delayedLeast || took > delayedMost {
		return f, false
	}
	f = analysis.Finding{Code: MaybeACKDelay, What: what, Values: map[string]float64{Wait: took}}
	if total > 0 && n*delayedLeast > delayedShare*total {
		f.Code, f.Values[ACKs] = ACKDelay, n
	} else if KnownOfServer(c.Cell) || rtt <= 0 || rtt > delayedRTT {
		return f, false
	}
	if rtt > 0 && rtt <= delayedRTT {
		f.Values[workload.RTT] = rtt
	}
	return f, true
}

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
