package endpoints

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

const (
	// partShare is the share of a time from which a part is named.
	partShare = 0.25
	// littleShare is the share of a response below which a part, or all slow gaps, do not matter.
	littleShare = 0.05
	// togetherGap is the median gap, in s, below which a server sends its tokens together.
	togetherGap = 20e-6
)

// merge adds up the evidence of a route's visits. It returns nil if there is none, and leaves out
// visits during which the clock was set.
func merge(visits []*sample.Visit) *sample.Evidence {
	var all []*sample.Evidence
	for _, v := range visits {
		if e := v.Evidence; e != nil && e.ClockMoved == 0 {
			all = append(all, e)
		}
	}
	if len(all) == 0 {
		return nil
	}
	out := &sample.Evidence{Hops: slices.Clone(all[0].Hops), Writes: true}
	for i := range out.Hops {
		out.Hops[i].Stopped = 0
	}
	var gaps, sent []float64
	seen := 0 // responses
	for _, e := range all {
		out.Responses, out.ByID = out.Responses+e.Responses, out.ByID+e.ByID
		out.BySeed, out.ByText = out.BySeed+e.BySeed, out.ByText+e.ByText
		out.Tokens, out.Matched = out.Tokens+e.Tokens, out.Matched+e.Matched
		out.Lost, out.Others = out.Lost+e.Lost, out.Others+e.Others
		out.Window += e.Window
		for i := range min(len(out.Hops), len(e.Hops)) {
			out.Hops[i].Stopped += e.Hops[i].Stopped
		}
		if len(e.Parts) == 0 {
			continue
		}
		out.Writes = out.Writes && e.Writes
		out.Slow, out.Excess = out.Slow+e.Slow, out.Excess+e.Excess
		gaps, sent = append(gaps, e.Gap), append(sent, e.ServerGap)
		addWaits(out, e.Waits)
		n := e.ByID + e.BySeed + e.ByText
		seen += n
		addParts(out, e, float64(n))
	}
	for i := range out.Parts {
		p := &out.Parts[i]
		for _, x := range []*float64{&p.First, &p.Last, &p.P50, &p.P90, &p.P99} {
			*x /= float64(max(1, seen))
		}
		p.FirstHalf, p.LastHalf = half(all, i, first), half(all, i, last)
	}
	out.Gap, out.ServerGap = middle(gaps), middle(sent)
	return out
}

// half returns half the width of the 95 % interval of a part's mean over visits, or 0 if there are too
// few of them.
func half(visits []*sample.Evidence, part int, of func(sample.EvidencePart) float64) float64 {
	var xs []float64
	for _, e := range visits {
		if part < len(e.Parts) {
			xs = append(xs, of(e.Parts[part]))
		}
	}
	return stats.MeanHalf(xs)
}

// addParts adds means of n responses.
func addParts(sum, e *sample.Evidence, n float64) {
	if sum.Parts == nil {
		sum.Parts = make([]sample.EvidencePart, len(e.Parts))
	}
	for i, p := range e.Parts {
		if i == len(sum.Parts) {
			return
		}
		s := &sum.Parts[i]
		s.Part, s.Hop, s.Excess = p.Part, p.Hop, s.Excess+p.Excess
		s.First, s.Last = s.First+n*p.First, s.Last+n*p.Last
		s.P50, s.P90, s.P99 = s.P50+n*p.P50, s.P90+n*p.P90, s.P99+n*p.P99
	}
}

func addWaits(sum *sample.Evidence, waits []sample.EvidenceWait) {
	for _, w := range waits {
		i := slices.IndexFunc(sum.Waits, func(x sample.EvidenceWait) bool {
			return x.Cause == w.Cause
		})
		if i < 0 {
			sum.Waits = append(sum.Waits, w)
			continue
		}
		sum.Waits[i].Tokens += w.Tokens
		sum.Waits[i].Sum += w.Sum
	}
}

func middle(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	slices.Sort(xs)
	return xs[len(xs)/2]
}

// noteEvidence sets the evidence of a report's cells, and how busy the server's GPU was.
func (j study) noteEvidence(r *analysis.Report) {
	for i := range r.Cells {
		for _, s := range j.Series {
			if s.Cell.Control || s.Cell.Load != r.Cells[i].Load ||
				analysis.Label(s.Cell) != r.Cells[i].Label() {
				continue
			}
			r.Cells[i].Evidence, r.Cells[i].GPU = merge(s.Visits), mergeGPU(s.Visits)
			if p, ok := j.File.Header.PathOf(s.Cell); ok && p.Evidence != nil &&
				p.Evidence.ClockMoved == 0 {
				r.Cells[i].Evidence = p.Evidence
			}
		}
	}
}

// proven returns the routes on which there is enough evidence for a verdict.
func proven(r *analysis.Report) map[string]*sample.Evidence {
	out := map[string]*sample.Evidence{}
	for _, c := range r.Cells {
		if c.Proven() {
			out[c.Label()] = c.Evidence
		}
	}
	return out
}

// evident returns what the evidence says of each route.
func evident(r *analysis.Report) (out []string) {
	for _, c := range r.Cells {
		if c.Evidence == nil || c.Load != workload.Chat {
			continue
		}
		if why, ok := c.Evidence.Clear(); !ok {
			out = append(out, fmt.Sprintf(
				"Over %s, the captured packets allow no verdict: %s.", c.Label(), why))
			continue
		}
		w := division{c.Evidence}
		out = append(out, w.headline(c.Label()), w.figures(c.Label()))
	}
	return out
}

// findings returns what is to blame on each route with enough evidence.
func findings(r *analysis.Report, proven map[string]*sample.Evidence) (out []string) {
	for _, c := range r.Cells {
		e := proven[c.Label()]
		if e == nil || c.Load != workload.Chat {
			continue
		}
		if out == nil {
			out = []string{
				"Is it the network or the model? By the times at which packets were captured:",
			}
		}
		who := "neither"
		if all := (division{e}).names(); len(all) > 0 {
			who = printable.List(all)
		}
		out = append(out, c.Label()+": "+who+".")
	}
	return out
}

// unseen returns a sentence on the routes whose tokens could not be followed to the server, or "".
func unseen(r *analysis.Report) string {
	var by reasons
	for _, c := range r.Cells {
		if c.Load == workload.Chat {
			by.add(c.Facts[sample.FactTokensUnseen], c.Label())
		}
	}
	return strings.Join(by.sentences("When tokens left the server is unknown over %s: %s."), " ")
}

// division divides the times of a route's tokens into parts.
type division struct{ *sample.Evidence }

func first(p sample.EvidencePart) float64  { return p.First }
func last(p sample.EvidencePart) float64   { return p.Last }
func excess(p sample.EvidencePart) float64 { return p.Excess }

func (w division) sum(of func(sample.EvidencePart) float64) (sum float64) {
	for _, p := range w.Parts {
		sum += of(p)
	}
	return sum
}

// together reports whether the server sends its tokens in one piece.
func (w division) together() bool {
	const least = 3 // tokens
	return w.ServerGap < togetherGap && w.Matched >= least*w.Responses
}

// gathered reports whether a relay holds back tokens that the server sends one by one.
func (w division) gathered() bool {
	return w.Gap < togetherGap || slices.ContainsFunc(w.blamed(), func(p sample.EvidencePart) bool {
		return p.Part == sample.EvidenceRelay
	})
}

// blamed returns the parts that make responses, first tokens or slow gaps long: the server for
// slow gaps only, because any response is its work.
func (w division) blamed() (out []sample.EvidencePart) {
	pace := max(w.Gap, w.ServerGap)
	for _, p := range w.Parts {
		named := false
		if p.Part != sample.EvidenceServer {
			long := p.First >= min(littleShare*w.sum(last), pace)
			named = p.Last > partShare*w.sum(last) || long && p.First > partShare*w.sum(first)
		}
		slow := p.Excess > partShare*w.Excess &&
			p.Excess >= littleShare*w.sum(last)*float64(w.Responses)
		if p.Part == sample.EvidenceServer {
			named = w.together() || w.limited(p)
		}
		if named || slow {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(
		out,
		func(a, b sample.EvidencePart) int { return cmp.Compare(b.Last, a.Last) },
	)
	return out
}

// stopped returns the share of the responses' time for which a CPU limit stopped a hop.
func (w division) stopped(hop int) float64 {
	if hop >= len(w.Hops) || w.Window <= 0 {
		return 0
	}
	return min(1, w.Hops[hop].Stopped/w.Window)
}

// limited reports whether a CPU limit causes what the server or a relay is blamed for: it stops it
// for a large share of the time, or for half of its slow gaps.
func (w division) limited(p sample.EvidencePart) bool {
	const half = 0.5
	if p.Part != sample.EvidenceServer && p.Part != sample.EvidenceRelay {
		return false
	}
	share := w.stopped(p.Hop)
	stopped := share * w.sum(last) * float64(w.Responses)
	return share > partShare || share > littleShare && p.Excess > 0 && stopped > half*p.Excess
}

// limits returns clauses on the CPU limits that stop the server or relays.
func (w division) limits() (out []string) {
	for _, p := range w.Parts {
		if x := w.stopped(p.Hop); x >= littleShare && (p.Part == sample.EvidenceServer ||
			p.Part == sample.EvidenceRelay) {
			out = append(out, fmt.Sprintf("its CPU limit stopped %s for %s of %s", w.short(p),
				workload.Briefly(x*w.Window), workload.Briefly(w.Window)))
		}
	}
	return out
}

// mean returns the mean time until the last token as text, with its interval if that is known.
func mean(p sample.EvidencePart) string {
	if p.LastHalf == 0 {
		return workload.Briefly(p.Last)
	}
	return workload.Briefly(p.Last) + " ±" + workload.Briefly(p.LastHalf)
}

func (w division) headline(route string) string {
	whole, server := w.sum(last), w.part(sample.EvidenceServer)
	needs := fmt.Sprintf("of %s a response %s needs %s", workload.Briefly(whole), w.short(server),
		mean(server))
	names := w.names()
	if len(names) == 0 {
		return fmt.Sprintf("Neither, over %s: %s, and the route adds little.", route, needs)
	}
	var holds []string
	for _, p := range w.blamed() {
		if p.Part != sample.EvidenceServer && p.Last >= littleShare*whole {
			holds = append(holds, w.short(p)+" holds "+mean(p))
		}
	}
	return fmt.Sprintf("%s, over %s: %s.", printable.Capital(printable.List(names)), route,
		strings.Join(append([]string{needs}, holds...), ", "))
}

// blocked reports whether a reader that does not read held the server's TCP up. Its program may have
// waited until it could write.
func (w division) blocked() bool {
	return slices.ContainsFunc(w.Waits, func(x sample.EvidenceWait) bool {
		return x.Cause == sample.WaitWindow && x.Tokens >= w.Responses
	})
}

// names returns the names of the parts that are to blame.
func (w division) names() (out []string) {
	for _, p := range w.blamed() {
		out = append(out, w.name(p))
	}
	return out
}

func (w division) part(name string) sample.EvidencePart {
	for _, p := range w.Parts {
		if p.Part == name {
			return p
		}
	}
	return sample.EvidencePart{}
}

func (w division) figures(route string) string {
	var say []string
	switch pace := workload.Briefly(w.Gap); {
	case w.Matched <= w.Responses:
		say = append(say, "each response comes in one event")
	case w.together():
		say = append(say, "the server sends its tokens together")
	case w.Gap < togetherGap && w.ServerGap > togetherGap:
		say = append(say, fmt.Sprintf("the server sends a token each %s, they arrive together",
			workload.Briefly(w.ServerGap)))
	case w.Gap > 0 && (w.Gap-w.ServerGap)/w.Gap > littleShare ||
		w.Gap < (1-littleShare)*w.ServerGap:
		say = append(say, fmt.Sprintf("the server sends a token each %s, they arrive each %s",
			workload.Briefly(w.ServerGap), pace))
	default:
		say = append(say, fmt.Sprintf("a token comes each %s, as the server sends them", pace))
	}
	say = append(say, fmt.Sprintf("first token %s: %s", workload.Briefly(w.sum(first)),
		w.list(first, workload.Briefly)))
	if w.Slow == 0 {
		say = append(say, "no gap was slow")
	} else {
		say = append(say, fmt.Sprintf("slow gaps add %s a response: %s",
			workload.Briefly(w.Excess/float64(w.Responses)),
			w.list(excess, func(x float64) string {
				return fmt.Sprintf("%.0f %%", 100*x/w.Excess)
			})))
	}
	say = append(say, w.waits("tokens", w.Responses)...)
	say = append(say, w.limits()...)
	if w.Others > 0 {
		say = append(say, fmt.Sprintf("the server answered %d requests of others meanwhile",
			w.Others))
	}
	h := sample.EvidenceHop{}
	if len(w.Hops) > 0 {
		h = w.Hops[0]
	}
	return fmt.Sprintf("Over %s, %s. Seen from the server (%s) on: %d of %d tokens.", route,
		strings.Join(say, "; "), placeOf(h), w.Matched, w.Tokens)
}

// causes has what tokens wait for in the server's TCP, and as what that is blamed.
var causes = map[string]struct{ waits, blames string }{
	sample.WaitNagle: {"for acknowledgements, without TCP_NODELAY (set it at the server)",
		"the server's TCP, without TCP_NODELAY"},
	sample.WaitQueue: {"behind the full queue of the server's device",
		"the full queue of the server's device"},
	sample.WaitCongestion: {"for acknowledgements, with a full congestion window",
		"the network, which delays or loses packets"},
	sample.WaitWindow: {"for a reader that does not read", "a reader that does not read"},
	sample.WaitOther:  {"for an unknown cause", "the server's TCP"},
}

// waits returns clauses on the causes for which many tokens or replies, at least some, waited in the
// server's TCP.
func (w division) waits(what string, least int) (out []string) {
	for _, x := range w.Waits {
		each := x.Sum / float64(x.Tokens)
		if x.Tokens < least || each < min(w.ServerGap, littleShare*w.sum(last)) {
			continue
		}
		out = append(out, Waited(x, what))
	}
	return out
}

// Waited returns a clause on the tokens or replies that waited for a cause.
func Waited(x sample.EvidenceWait, what string) string {
	return fmt.Sprintf("%d %s waited %s each in the server's TCP %s", x.Tokens, what,
		workload.Briefly(x.Sum/float64(x.Tokens)), causes[x.Cause].waits)
}

// list lists the parts that matter, the largest first.
func (w division) list(of func(sample.EvidencePart) float64, show func(float64) string) string {
	parts := slices.Clone(w.Parts)
	slices.SortStableFunc(parts, func(a, b sample.EvidencePart) int {
		return cmp.Compare(of(b), of(a))
	})
	var out []string
	for _, p := range parts {
		if x := of(p); x >= littleShare*w.sum(of) {
			out = append(out, strings.TrimPrefix(w.short(p), "the ")+" "+show(x))
		}
	}
	return strings.Join(out, ", ")
}

// short returns a part's name without its place.
func (w division) short(p sample.EvidencePart) string {
	switch p.Part {
	case sample.EvidenceServer:
		if !w.Writes {
			return "the server with its TCP"
		}
		if w.blocked() {
			return "the server or its wait for a reader"
		}
		return "the server"
	case sample.EvidenceTCP:
		return "the server's TCP"
	case sample.EvidenceQueue:
		return "the server's queue"
	case sample.EvidenceRelay:
		if p.Hop < len(w.Hops) && w.Hops[p.Hop].Process != "" {
			return w.Hops[p.Hop].Process
		}
		return "the relay"
	case sample.EvidenceWire:
		return "the network"
	case sample.EvidenceRequest:
		return "sending the request"
	}
	return "the client"
}

// name returns a part's name with its place.
func (w division) name(p sample.EvidencePart) string {
	switch {
	case p.Part == sample.EvidenceTCP && len(w.Waits) > 0:
		most := slices.MaxFunc(w.Waits, func(a, b sample.EvidenceWait) int {
			return cmp.Compare(a.Sum, b.Sum)
		})
		return causes[most.Cause].blames
	case w.limited(p) && p.Part == sample.EvidenceServer:
		return "the server's CPU limit"
	case w.limited(p) && p.Hop < len(w.Hops):
		return "the CPU limit of the relay " + placeOf(w.Hops[p.Hop])
	case p.Part == sample.EvidenceQueue:
		return "the queue of the server's network device"
	case p.Part == sample.EvidenceRelay && p.Hop < len(w.Hops):
		return "the relay " + placeOf(w.Hops[p.Hop])
	}
	return w.short(p)
}

func placeOf(h sample.EvidenceHop) string {
	return strings.TrimSpace(fmt.Sprintf("%s at port %d", h.Process, h.Port))
}
