package sentence

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/endpoints"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// parts words the division of a route's times.
type parts struct{ endpoints.Division }

func partsOf(c analysis.Cell) parts { return parts{endpoints.Division{Evidence: c.Evidence}} }

func ofParts(say func(parts) string) blank {
	return ofCell(func(_ *writer, c analysis.Cell) string { return say(partsOf(c)) })
}

// who returns the parts that are to blame.
func (w parts) who() string {
	if all := w.names(); len(all) > 0 {
		return printable.List(all)
	}
	return "neither"
}

// exchange returns where the time of an exchange goes.
func exchange(w *writer, c analysis.Cell) string {
	x := partsOf(c)
	say := append([]string{fmt.Sprintf("of %s a %s as captured (mean): %s",
		workload.Briefly(x.Sum(endpoints.Last)), exchanged(w, c),
		x.list(endpoints.Last, mean))}, x.waits("reply",
		x.Responses/endpoints.FewReplies)...)
	return strings.Join(say, "; ")
}

func exchanged(_ *writer, c analysis.Cell) string {
	if c.Load == workload.SQL {
		return "query"
	}
	return "request"
}

// needs returns how long the last token takes, how much of that the server needs, and, if a part is
// to blame, what the others hold.
func (w parts) needs() string {
	server, blamed := w.Part(sample.EvidenceServer), w.Blamed()
	say := []string{fmt.Sprintf("of %s to the last token (mean) %s needs %s",
		workload.Briefly(w.Sum(endpoints.Last)), w.short(server), mean(server))}
	if len(blamed) > 0 {
		say = append(say, w.holding(w.Parts)...)
	}
	for _, p := range blamed { // of which the last token has no trace
		switch {
		case p.Part == sample.EvidenceServer || p.Last >= w.little():
		case p.First > w.little():
			say = append(say, w.short(p)+" holds the first token for "+workload.Briefly(p.First))
		default:
			say = append(say, fmt.Sprintf("%s adds %s to slow gaps", w.short(p),
				workload.Briefly(p.Excess/float64(w.Responses))))
		}
	}
	return strings.Join(say, ", ")
}

// little returns the time to the last token below which a part does not matter.
func (w parts) little() float64 { return endpoints.LittleShare * w.Sum(endpoints.Last) }

// holding returns clauses on those of some parts that hold more than little, but for the server,
// the largest first.
func (w parts) holding(some []sample.EvidencePart) (out []string) {
	for _, p := range sorted(some, endpoints.Last) {
		if p.Part != sample.EvidenceServer && p.Last >= w.little() {
			out = append(out, w.short(p)+" holds "+mean(p))
		}
	}
	return out
}

// adds returns how much other parts than the server hold that are not to blame.
func (w parts) adds() string {
	if say := w.holding(w.Parts); say != nil {
		return printable.List(say)
	}
	whole := w.Sum(endpoints.Last)
	rest := whole - w.Part(sample.EvidenceServer).Last
	if rest >= endpoints.LittleShare*whole {
		return "the route adds " + workload.Briefly(rest)
	}
	return "the route adds little"
}

// divided returns what the table of a response's parts does not show, and of how many tokens the
// captures are if these are not all.
func (w *writer) divided(fs []analysis.Finding) string {
	var say, servers []string
	pooled := map[string]string{} // shares of slow gaps, by server
	for _, f := range fs {
		c := w.r.Cells[f.Cells[0]]
		p := partsOf(c)
		if text := p.figures(pooled); text != "" {
			say = append(say, "Over "+c.Label()+", "+text+".")
		}
		if at := p.server(); pooled[at] != "" && !slices.Contains(servers, at) {
			servers = append(servers, at)
		}
	}
	for _, at := range servers {
		text := "Over the routes at its pace, the server's slow gaps take %s of a response."
		if len(servers) > 1 {
			text = "Over the routes at the pace of the server " + at + ", its slow gaps take %s of a " +
				"response."
		}
		say = append(say, fmt.Sprintf(text, pooled[at]))
	}
	if w.incomplete(fs) {
		say = append(say, w.captured(fs))
	}
	return strings.Join(say, " ")
}

// seen returns what captured does, or "" where divided has it.
func (w *writer) seen(fs []analysis.Finding) string {
	if w.incomplete(fs) {
		return ""
	}
	return w.captured(fs)
}

// incomplete reports whether captures lack tokens.
func (w *writer) incomplete(fs []analysis.Finding) bool {
	return slices.ContainsFunc(fs, func(f analysis.Finding) bool {
		e := w.r.Cells[f.Cells[0]].Evidence
		return e.Matched < e.Tokens
	})
}

// captured returns where the captures begin, and of how many tokens they are.
func (w *writer) captured(fs []analysis.Finding) string {
	var say, places []string
	matched, tokens := map[string]int{}, map[string]int{}
	for _, f := range fs {
		p := partsOf(w.r.Cells[f.Cells[0]])
		at := p.server()
		if tokens[at] == 0 {
			places = append(places, at)
		}
		matched[at], tokens[at] = matched[at]+p.Matched, tokens[at]+p.Tokens
	}
	for _, at := range places {
		say = append(say, fmt.Sprintf("Seen from the server (%s) on: %d of %d tokens.", at, matched[at],
			tokens[at]))
	}
	return strings.Join(say, " ")
}

// figures returns how the pace of tokens differs from the server's, the parts of slow gaps, and
// what tokens waited for, or "" if there is nothing of that. It adds to pooled what slow does.
func (w parts) figures(pooled map[string]string) string {
	var say []string
	switch pace := workload.Briefly(w.Gap); {
	case w.Matched <= w.Responses:
		say = append(say, "each response comes in one event")
	case w.Together():
		say = append(say, "the server sends its tokens together")
	case w.Gap < endpoints.TogetherGap && w.ServerGap > endpoints.TogetherGap:
		say = append(say, fmt.Sprintf("the server sends a token each %s (median), they arrive together",
			workload.Briefly(w.ServerGap)))
	case w.Gap > 0 && (w.Gap-w.ServerGap)/w.Gap > endpoints.LittleShare ||
		w.Gap < (1-endpoints.LittleShare)*w.ServerGap:
		say = append(say, fmt.Sprintf("the server sends a token each %s (median), they arrive each %s",
			workload.Briefly(w.ServerGap), pace))
	}
	if w.Slow > 0 && w.Excess >= endpoints.LittleShare*w.Whole() {
		say = append(say, fmt.Sprintf("slow gaps add %s a response: %s",
			workload.Briefly(w.Excess/float64(w.Responses)),
			w.list(endpoints.Excess, func(p sample.EvidencePart) string { return w.slow(p, pooled) })))
	}
	if tail := w.Tail(); tail > 0 {
		say = append(say, fmt.Sprintf("responses end %s after their last token",
			workload.Briefly(tail)))
	}
	say = append(say, w.waits("token", w.Responses)...)
	say = append(say, w.limits()...)
	if len(w.Hops) > 0 && w.Hops[0].Asks != "" {
		say = append(say, w.Hops[0].Place()+" sends TLS to "+w.Hops[0].Asks+" meanwhile: the tokens may "+
			"come from a server there")
	}
	if w.HopsUnsure {
		say = append(say, "the server may be a relay to another one, because captures lost packets "+
			"while toll looked for it")
	}
	if w.LeftOut > 0 {
		say = append(say, units.Plural(w.LeftOut, "visit")+" in which captures lost packets "+
			units.Agree(w.LeftOut, "is", "are")+" left out")
	}
	if w.Others > 0 {
		say = append(say, "the server answered "+units.Plural(w.Others, "request")+
			" of others meanwhile")
	}
	return strings.Join(say, "; ")
}

// slow returns what a part adds to a response's slow gaps, with the interval by which it is judged. If
// that is one over several routes to the server, it adds this to pooled instead.
func (w parts) slow(p sample.EvidencePart, pooled map[string]string) string {
	n := float64(w.Responses)
	share, half := w.SlowShare(p)
	if share == p.Excess/w.Whole() && half == p.ExcessHalf/w.Whole() { // its own
		return give(p.Excess/n, p.ExcessHalf/n)
	}
	if half > 0 {
		pooled[w.server()] = fmt.Sprintf("%.3g %% ±%.3g %%", 100*share, 100*half)
	}
	return workload.Briefly(p.Excess / n)
}

// server returns where the captures begin.
func (w parts) server() string {
	if len(w.Hops) == 0 {
		return sample.EvidenceHop{}.Place()
	}
	return w.Hops[0].Place()
}

// limits returns clauses on the CPU limits that stop the server or relays.
func (w parts) limits() (out []string) {
	for _, p := range w.Parts {
		if x := w.Stopped(p.Hop); x >= endpoints.LittleShare && (p.Part == sample.EvidenceServer ||
			p.Part == sample.EvidenceRelay) {
			out = append(out, fmt.Sprintf("its CPU limit stopped %s for %s of %s", w.short(p),
				workload.Briefly(x*w.Window), workload.Briefly(w.Window)))
		}
	}
	return out
}

// mean returns the mean time until the last token as text, with its interval if that is known.
func mean(p sample.EvidencePart) string { return give(p.Last, p.LastHalf) }

// give returns a time as text, with half the width of its interval unless that is 0.
func give(x, half float64) string {
	if half == 0 {
		return workload.Briefly(x)
	}
	return workload.Briefly(x) + " ±" + workload.Briefly(half)
}

// names returns the names of the parts that are to blame.
func (w parts) names() (out []string) {
	for _, p := range w.Blamed() {
		out = append(out, w.name(p))
	}
	return out
}

// waits returns clauses on the causes for which many of the nouns, at least some, waited in
// the server's TCP: for long, or so that it explains much of the slow gaps, if these add something.
func (w parts) waits(noun string, least int) (out []string) {
	slow := w.Excess > 0 && w.Excess >= endpoints.SlightShare*w.Whole()
	for _, x := range w.Waits {
		each := x.Sum / float64(x.Tokens)
		long := each >= min(w.ServerGap, endpoints.LittleShare*w.Sum(endpoints.Last))
		much := slow && x.Sum > endpoints.PartShare*w.Excess
		if x.Tokens < least || !long && !much {
			continue
		}
		out = append(out, endpoints.Waited(x, noun))
	}
	return out
}

// sorted returns parts in order, the largest first.
func sorted(parts []sample.EvidencePart, of func(sample.EvidencePart) float64) []sample.EvidencePart {
	return slices.SortedStableFunc(slices.Values(parts), func(a, b sample.EvidencePart) int {
		return cmp.Compare(of(b), of(a))
	})
}

// list lists the parts that matter, the largest first.
func (w parts) list(of func(sample.EvidencePart) float64,
	show func(sample.EvidencePart) string) string {
	var out []string
	for _, p := range sorted(w.Parts, of) {
		if of(p) >= endpoints.LittleShare*w.Sum(of) {
			out = append(out, strings.TrimPrefix(w.short(p), "the ")+" "+show(p))
		}
	}
	return strings.Join(out, ", ")
}

// short returns a part's name without its place.
func (w parts) short(p sample.EvidencePart) string {
	switch p.Part {
	case sample.EvidenceServer:
		if len(w.Hops) > 0 && w.Hops[0].Asks != "" {
			return cmp.Or(w.Hops[0].Process, "a program") + " or what it asks over TLS"
		}
		if !w.Writes {
			return "the server with its TCP"
		}
		if w.Blocked() {
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
		if w.ClientInWire {
			return "the network or the client"
		}
		return "the network"
	case sample.EvidenceRequest:
		return "sending the request"
	}
	return "the client"
}

// name returns a part's name with its place.
func (w parts) name(p sample.EvidencePart) string {
	switch {
	case p.Part == sample.EvidenceTCP && len(w.Waits) > 0:
		most := slices.MaxFunc(w.Waits, func(a, b sample.EvidenceWait) int {
			return cmp.Compare(a.Sum, b.Sum)
		})
		return endpoints.Blames(most.Cause)
	case w.Limited(p) && p.Part == sample.EvidenceServer:
		return "the server's CPU limit"
	case w.Limited(p) && p.Hop < len(w.Hops):
		return "the CPU limit of the relay " + w.Hops[p.Hop].Place()
	case p.Part == sample.EvidenceQueue:
		return "the queue of the server's network device"
	case p.Part == sample.EvidenceRelay && p.Hop < len(w.Hops):
		return "the relay " + w.Hops[p.Hop].Place()
	}
	return w.short(p)
}

// gpus returns how busy the server's GPU was, in one sentence for the routes with the same figures.
func (w *writer) gpus(fs []analysis.Finding) string {
	var out, texts []string
	routes := map[string][]string{}
	for _, c := range w.cells(fs[0]) {
		text := busyGPU(*c.GPU)
		if routes[text] == nil {
			texts = append(texts, text)
		}
		routes[text] = append(routes[text], c.Label())
	}
	for _, text := range texts {
		out = append(out, fmt.Sprintf("Over %s, %s.", printable.List(routes[text]), text))
	}
	return strings.Join(out, " ")
}

// busyGPU returns a clause.
func busyGPU(g sample.GPU) string {
	gaps, by := units.Plural(g.Slow.Gaps, "slow gap"), "DRM's counters"
	if g.By == sample.GPUByNvidiaSMI {
		gaps += " of more than 1 s"
		by = "nvidia-smi, which averages over up to 1 s"
	}
	text := fmt.Sprintf("the server's GPU was busy for %s of the time of %s", gpuShare(g.Slow), gaps)
	if g.Rest.Time > 0 {
		text += fmt.Sprintf(" and %s of the rest", gpuShare(g.Rest))
	}
	return text + " (by " + by + ")"
}

func gpuShare(t sample.GPUTime) string { return fmt.Sprintf("%.0f %%", 100*t.Share()) }
