package endpoints

import (
	"cmp"
	"math"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

const (
	// PartShare is the share of a time from which a part is named.
	PartShare = 0.25
	// LittleShare is the share of a response below which a part, or all slow gaps, do not matter.
	LittleShare = 0.05
	// SlightShare is the share of a response that slow gaps add if a cause of theirs is said.
	SlightShare = 0.02
	// slowerPace is how many times the server's pace one is that hides its slow gaps.
	slowerPace = 1.5
	// TogetherGap is the median gap, in s, below which a server sends its tokens together.
	TogetherGap = 20e-6
)

// merge adds up the evidence of a route's visits. It returns nil if there is none, and leaves out
// visits during which the clock was set, or captures lost packets unless these have most tokens.
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
	all, leftOut := lossless(all)
	out := &sample.Evidence{Hops: hopsOf(all), Writes: true, LeftOut: leftOut}
	all = overHops(out.Hops, all)
	var gaps, sent []float64
	seen := 0 // responses
	for _, e := range all {
		out.Responses, out.ByID = out.Responses+e.Responses, out.ByID+e.ByID
		out.BySeed, out.ByText = out.BySeed+e.BySeed, out.ByText+e.ByText
		out.Tokens, out.Matched = out.Tokens+e.Tokens, out.Matched+e.Matched
		out.Lost, out.Others = out.Lost+e.Lost, out.Others+e.Others
		out.Window += e.Window
		out.Broken = cmp.Or(out.Broken, e.Broken)
		out.Unsure = max(out.Unsure, e.Unsure)
		out.ClientInWire = out.ClientInWire || e.ClientInWire
		out.HopsUnsure = out.HopsUnsure || e.HopsUnsure
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
		out.End += float64(n) * e.End
		addParts(out, e, float64(n))
	}
	for i := range out.Parts {
		p := &out.Parts[i]
		for _, x := range []*float64{&p.First, &p.Last, &p.P50, &p.P90, &p.P99} {
			*x /= float64(max(1, seen))
		}
		p.FirstHalf, p.LastHalf = half(all, i, First), half(all, i, Last)
		p.ExcessHalf = half(all, i, Excess) * float64(len(gaps)) // of the sum over visits
	}
	out.End /= float64(max(1, seen))
	out.Gap, out.ServerGap = middle(gaps), middle(sent)
	out.Response = middleResponse(all)
	return out
}

// hopsOf returns the hops over which most tokens were followed, as if nothing had stopped them.
func hopsOf(all []*sample.Evidence) []sample.EvidenceHop {
	most, best := -1, 0
	for i, e := range all {
		n := 0
		for _, other := range all {
			if sameHops(e.Hops, other.Hops) {
				n += other.Matched
			}
		}
		if most < 0 || n > best {
			most, best = i, n
		}
	}
	out := slices.Clone(all[most].Hops)
	for i := range out {
		out[i].Stopped, out[i].Unread = 0, ""
		for _, e := range all {
			if sameHops(e.Hops, out) {
				out[i].Unread = cmp.Or(out[i].Unread, e.Hops[i].Unread)
			}
		}
	}
	return out
}

// sameHops reports whether two visits had the same processes, which may have been started again.
func sameHops(a, b []sample.EvidenceHop) bool {
	return slices.EqualFunc(a, b, func(x, y sample.EvidenceHop) bool {
		for _, h := range []*sample.EvidenceHop{&x, &y} {
			h.Stopped, h.PID, h.Unread = 0, 0, ""
		}
		return x == y
	})
}

// overHops returns visits in which those over other hops have followed no token.
func overHops(hops []sample.EvidenceHop, all []*sample.Evidence) (out []*sample.Evidence) {
	for _, e := range all {
		if !sameHops(hops, e.Hops) {
			e = &sample.Evidence{Responses: e.Responses, Tokens: e.Tokens, Lost: e.Lost,
				Others: e.Others, Window: e.Window, Broken: e.Broken}
		}
		out = append(out, e)
	}
	return out
}

// lossless returns the visits during which no capture lost packets, and the number of the others;
// or all visits, if those have less than half of the tokens.
func lossless(all []*sample.Evidence) (kept []*sample.Evidence, leftOut int) {
	tokens, of := 0, 0
	for _, e := range all {
		if of += e.Tokens; e.Lost == 0 {
			kept, tokens = append(kept, e), tokens+e.Tokens
		}
	}
	if tokens == 0 || 2*tokens < of {
		return all, 0
	}
	return kept, len(all) - len(kept)
}

// middleResponse returns the visits' response with the median time to its last token, or nil.
func middleResponse(visits []*sample.Evidence) *sample.EvidenceResponse {
	var all []*sample.EvidenceResponse
	for _, e := range visits {
		if r := e.Response; r != nil && len(r.Read) > 0 {
			all = append(all, r)
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b *sample.EvidenceResponse) int {
		return cmp.Compare(a.Read[len(a.Read)-1], b.Read[len(b.Read)-1])
	})
	return all[len(all)/2]
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

// inEpochs returns the evidence of exchanges, with the parts' intervals by epochs in place of those.
func inEpochs(e *sample.Evidence) *sample.Evidence {
	out := *e
	out.Parts = slices.Clone(e.Parts)
	for i := range out.Parts {
		p := &out.Parts[i]
		p.LastHalf, p.Epochs = stats.MeanHalf(p.Epochs), nil
	}
	return &out
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
				r.Cells[i].Evidence = inEpochs(p.Evidence)
			}
		}
	}
	poolServers(r.Cells)
}

// poolServers sets the share of the servers' slow gaps with its interval, so that chance does not
// let routes to one server differ in whether it is slow. Routes whose tokens come at a slower pace
// than the server's hide its slow gaps: they say nothing of them.
func poolServers(cells []analysis.Cell) {
	by := map[sample.EvidenceHop][]Division{}
	for _, c := range cells {
		if c.Proven() && len(c.Evidence.Hops) > 0 && c.Load == workload.Chat &&
			c.Evidence.Gap <= slowerPace*c.Evidence.ServerGap {
			at := c.Evidence.Hops[0]
			at.Stopped, at.Unread = 0, ""
			by[at] = append(by[at], Division{c.Evidence})
		}
	}
	for _, routes := range by {
		slow, squares, whole := 0.0, 0.0, 0.0
		known := true // how exact each route's slow gaps are
		for _, w := range routes {
			p := w.Part(sample.EvidenceServer)
			slow, squares = slow+p.Excess, squares+p.ExcessHalf*p.ExcessHalf
			known = known && (p.ExcessHalf > 0 || p.Excess == 0)
			whole += w.Whole()
		}
		for _, w := range routes {
			if whole > 0 {
				w.ServerSlow, w.ServerSlowHalf = slow/whole, 0
			}
			if whole > 0 && known {
				w.ServerSlowHalf = math.Sqrt(squares) / whole
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

// evident returns what the evidence shows of each route: first the parts to blame.
func evident(r *analysis.Report) (out []analysis.Finding) {
	var divided []analysis.Finding
	for i, c := range r.Cells {
		if c.Evidence == nil || c.Load != workload.Chat {
			continue
		}
		of := []int{i}
		if !c.Proven() {
			out = append(out, analysis.Finding{Code: PacketsUnclear, Cells: of})
			continue
		}
		blamed := Division{c.Evidence}.Blamed()
		for _, p := range blamed {
			out = append(out, analysis.Finding{Code: PartBlamed, Cells: of, What: p.Part, N: p.Hop})
		}
		if len(blamed) == 0 {
			out = append(out, analysis.Finding{Code: NoPartBlamed, Cells: of})
		}
		divided = append(divided, analysis.Finding{Code: Divided, Cells: of})
	}
	return append(out, divided...)
}

// byPackets returns the routes with enough evidence to say what is to blame.
func byPackets(r *analysis.Report, proven map[string]*sample.Evidence) (out []analysis.Finding) {
	for i, c := range r.Cells {
		if proven[c.Label()] == nil || c.Load != workload.Chat {
			continue
		}
		if out == nil {
			out = []analysis.Finding{{Code: ByPackets}}
		}
		out = append(out, analysis.Finding{Code: WhoByPackets, Cells: []int{i}})
	}
	return out
}

// unseen returns the routes whose tokens could not be followed to the server, by reason.
func unseen(r *analysis.Report) []analysis.Finding {
	var by reasons
	for i, c := range r.Cells {
		if c.Load == workload.Chat {
			by.add(c.Facts[sample.FactTokensUnseen], i)
		}
	}
	return by.findings(TokensUnseen)
}

// Division divides the times of a route's tokens into parts.
type Division struct{ *sample.Evidence }

// First, Last and Excess return the times of a part until the first token, until the last one, and
// of slow gaps.
func First(p sample.EvidencePart) float64  { return p.First }
func Last(p sample.EvidencePart) float64   { return p.Last }
func Excess(p sample.EvidencePart) float64 { return p.Excess }

// Part returns the first part of a name, or the zero value.
func (w Division) Part(name string) sample.EvidencePart {
	for _, p := range w.Parts {
		if p.Part == name {
			return p
		}
	}
	return sample.EvidencePart{}
}

// Sum returns the sum over the parts.
func (w Division) Sum(of func(sample.EvidencePart) float64) (sum float64) {
	for _, p := range w.Parts {
		sum += of(p)
	}
	return sum
}

// Whole returns the time of all responses to their last tokens, in s.
func (w Division) Whole() float64 { return w.Sum(Last) * float64(w.Responses) }

// SlowShare returns the share of Whole that the slow gaps of a part add, by which it is judged, and
// half the width of its interval; 0: not known. The server's is over all routes at its pace.
func (w Division) SlowShare(p sample.EvidencePart) (share, half float64) {
	if p.Part == sample.EvidenceServer && w.ServerSlow > 0 {
		return w.ServerSlow, w.ServerSlowHalf
	}
	return p.Excess / w.Whole(), p.ExcessHalf / w.Whole()
}

// Tail returns the mean time between a response's last token and its end, or 0 if it matters little.
func (w Division) Tail() float64 {
	if tail := w.End - w.Sum(Last); tail >= LittleShare*w.End {
		return tail
	}
	return 0
}

// Together reports whether the server sends its tokens in one piece.
func (w Division) Together() bool {
	const least = 3 // tokens
	return w.ServerGap < TogetherGap && w.Matched >= least*w.Responses
}

// gathered reports whether a relay holds back tokens that the server sends one by one, or may do so
// unseen. A client, or what else is to blame, lets them come together, too.
func (w Division) gathered() bool {
	other := false
	for _, p := range w.Blamed() {
		if p.Part == sample.EvidenceRelay {
			return true
		}
		other = other || p.Part != sample.EvidenceServer
	}
	return w.Gap < TogetherGap && !other
}

// Blamed returns the parts that make responses, first tokens or slow gaps long: the server for
// slow gaps only, because any response is its work. A time whose interval includes 0 is no reason.
func (w Division) Blamed() (out []sample.EvidencePart) {
	pace := max(w.Gap, w.ServerGap)
	for _, p := range w.Parts {
		named := false
		if p.Part != sample.EvidenceServer {
			long := p.First >= min(LittleShare*w.Sum(Last), pace)
			named = p.Last > max(PartShare*w.Sum(Last), p.LastHalf) ||
				long && p.First > max(PartShare*w.Sum(First), p.FirstHalf)
		}
		if p.Part == sample.EvidenceServer {
			named = w.Together() || w.Limited(p)
		}
		share, half := w.SlowShare(p)
		slow := p.Excess > PartShare*w.Excess && share >= LittleShare && share > half
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

// Stopped returns the share of the responses' time for which a CPU limit stopped a hop.
func (w Division) Stopped(hop int) float64 {
	if hop >= len(w.Hops) || w.Window <= 0 {
		return 0
	}
	return min(1, w.Hops[hop].Stopped/w.Window)
}

// Limited reports whether a CPU limit causes what the server or a relay is blamed for: it stops it
// for a large share of the time, or for half of its slow gaps.
func (w Division) Limited(p sample.EvidencePart) bool {
	const half = 0.5
	if p.Part != sample.EvidenceServer && p.Part != sample.EvidenceRelay {
		return false
	}
	share := w.Stopped(p.Hop)
	stopped := share * w.Whole()
	return share > PartShare || share > LittleShare && p.Excess > 0 && stopped > half*p.Excess
}

// Blocked reports whether a reader that does not read held the server's TCP up. Its program may have
// waited until it could write.
func (w Division) Blocked() bool {
	return slices.ContainsFunc(w.Waits, func(x sample.EvidenceWait) bool {
		return x.Cause == sample.WaitWindow && x.Tokens >= w.Responses
	})
}
