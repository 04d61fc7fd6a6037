package tokens

import (
	"cmp"
	"net/netip"
	"slices"
	"sort"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// servedParts are the parts of a request at its server, in their order.
var servedParts = [...]string{sample.ServedRequest, sample.ServedCPU, sample.EvidenceServer,
	sample.EvidenceTCP, sample.EvidenceQueue, sample.ServedReply}

// Indexes of servedParts.
const (
	inRequest = iota
	inWait
	inServer
	inTCP
	inQueue
	inReply
)

// served is when a request came, and its parts, in ns.
type served struct {
	at      int64
	parts   [len(servedParts)]int64
	written bool // the server's write was seen
	timed   bool // for how long it waited for a CPU is known
	had     had  // by a client of this machine
	weight  float64
}

// wait takes the time for which the thread that replied waited for a CPU out of the server's part.
func (s *served) wait(by split) {
	s.timed = by.known
	s.parts[inWait] = min(by.waited, s.parts[inServer])
	s.parts[inServer] -= s.parts[inWait]
}

func (s served) whole() (sum int64) {
	for _, x := range s.parts {
		sum += x
	}
	return sum
}

// Requests collects the requests that a log saw at a server, on connections on which requests and
// replies take turns.
type Requests struct {
	all         []served
	weighed     int // of them
	connections map[key]bool
	unmatched   int
	unanswered  int
	codes       map[string]int // of replies of DNS that are errors
	pipelined   int            // requests that came before the reply to the one before had left
	together    int            // exchanges with several statements
	unread      int            // exchanges of protocols that are not read
	twoWay      map[key]bool   // connections on which both sides send what answers nothing
	sum         int64          // of their times, ns
	sums        *Sums
}

// NewServer returns a log that decodes nothing, and joins connections that are older than itself.
// Requests.Take returns what it saw.
func NewServer() *Log {
	l := NewLog(nil)
	l.joins = true
	return l
}

// Take adds the requests at a place whose replies have ended: that is known when the
// next request comes or the connection is over. It forgets their packets. If before is not 0, it is
// the last call, which takes the requests that came before it, also if their replies may go on, and
// counts those without.
func (r *Requests) Take(l *Log, at Place, before int64) {
	if r.sums == nil {
		r.sums, r.connections, r.codes = NewSums(0), map[key]bool{}, map[string]int{}
		r.twoWay = map[key]bool{}
	}
	r.takeDatagrams(l, at, before)
	l.findClients(at)
	for k, c := range l.conns {
		if k.Place != at {
			continue
		}
		l.noteWrites(k, c)
		if c.before != nil { // those before that were taken
			c.before.before = nil
		}
		if k.nth == 0 {
			c.client.take(l, c)
		}
		if c.talk.reads() {
			r.takePairs(l, c, k, before)
			if c.over {
				delete(l.conns, k)
			}
			continue
		}
		if c.talk.lost || c.talk.twoWay() {
			r.takeLast(l, c, k, before)
		}
		if c.talk.interleaves() { // and could not be read
			r.unmatched += len(c.turns)
			c.turns = c.turns[:0]
			c.drop(c.in.end, c.out.end)
		}
		n := len(c.turns)
		if before == 0 && !c.over {
			n = max(0, n-1)
		}
		for i, x := range c.turns[:n] {
			if before != 0 && x.sent >= before {
				break
			}
			if x.to = c.out.end; i+1 < len(c.turns) {
				x.to = c.turns[i+1].from
			}
			switch {
			case x.to > x.from:
				r.connections[k] = true
				r.unread++
				r.add(l, c, x)
			case before != 0:
				r.unanswered++
			}
		}
		if n > 0 {
			c.drop(c.turns[n-1].asked, c.turns[n-1].from)
			c.turns = c.turns[n:]
		}
		if c.over {
			delete(l.conns, k)
		}
	}
	l.writes.trim()
	l.clientSides.trim()
	l.trimRuns()
}

// Count returns the number of requests so far.
func (r *Requests) Count() int { return len(r.all) }

// Clients returns the clients' ends of the connections that had requests, as the server saw them.
func (r *Requests) Clients() (out []netip.AddrPort) {
	for k := range r.connections {
		out = append(out, k.remote)
	}
	return out
}

// Mean returns the requests' mean time so far, or 0.
func (r *Requests) Mean() time.Duration {
	if len(r.all) == 0 {
		return 0
	}
	return time.Duration(r.sum / int64(len(r.all)))
}

// add reports whether the reply did not leave before the request had come.
func (r *Requests) add(l *Log, c *connection, x turn) bool {
	s, ok := c.seen(&request{end: x.asked}, &reply{events: []Event{{Offset: x.from + 1},
		{Offset: x.to}}})
	if !ok || s.Came > s.Departed[0] {
		r.unmatched++
		return !ok || s.Came <= s.Departed[0]
	}
	one := served{at: x.sent, parts: [...]int64{s.Came - x.sent, 0, s.Departed[0] - s.Came, 0, 0,
		s.Departed[1] - s.Departed[0]}}
	if one.written = s.Wrote != nil; one.written {
		wrote := max(s.Wrote[0], s.Came)
		one.parts[inServer], one.parts[inTCP] = wrote-s.Came, max(0, s.Sent[0]-wrote)
		one.parts[inQueue] = s.Departed[0] - wrote - one.parts[inTCP]
		one.wait(l.spent(c.written.writes, x.from+1, s.Came, wrote))
	}
	one.had = c.client.of(x)
	r.all, r.sum = append(r.all, one), r.sum+one.whole()
	r.sums.AddWaits(&s)
	return true
}

// Weigh makes the requests since the last call count n times in means and percentiles, as those of
// a spell stand for those of the rest after it. Requests that are not weighed count once.
func (r *Requests) Weigh(n float64) {
	for i := range r.all[r.weighed:] {
		r.all[r.weighed+i].weight = n
	}
	r.weighed = len(r.all)
}

// Note records the requests in e. began is when the watching did.
func (r *Requests) Note(e *sample.Served, began time.Time) {
	const shown = 10
	r.Weigh(1)
	all := r.written(e)
	e.Requests, e.Connections = len(all), len(r.connections)
	e.Unmatched, e.Unanswered = r.unmatched+len(r.all)-len(all), r.unanswered
	e.Errors = r.codes
	e.Pipelined, e.Together, e.Unread = r.pipelined, r.together, r.unread
	e.TwoWay = len(r.twoWay)
	timed := timed(all)
	seen := func(part int) bool {
		return part == inWait && timed || part != inWait && (e.Writes || part != inTCP && part != inQueue)
	}
	e.Parts, e.Slowest = []sample.ServedPart{}, []sample.Answered{}
	if len(all) == 0 {
		return
	}
	slices.SortStableFunc(all, func(a, b served) int { return cmp.Compare(a.at, b.at) })
	e.Whole = partOf("", all, served.whole)
	for i, name := range servedParts {
		if !seen(i) {
			continue
		}
		e.Parts = append(e.Parts, partOf(name, all, func(s served) int64 { return s.parts[i] }))
	}
	e.Waits, e.Client = r.sums.causes(), clients(all)
	slices.SortStableFunc(all, func(a, b served) int { return cmp.Compare(b.whole(), a.whole()) })
	e.Tail = tail(all, seen)
	for _, s := range all[:min(shown, len(all))] {
		e.Slowest = append(e.Slowest, s.answered(began, seen))
	}
	e.Median = new(middle(all).answered(began, seen))
}

// answered returns the request with its seen parts. began is when the watching did.
func (s served) answered(began time.Time, seen func(part int) bool) sample.Answered {
	one := sample.Answered{At: seconds(s.at - began.UnixNano()), Whole: seconds(s.whole())}
	for i, x := range s.parts {
		if seen(i) {
			one.Parts = append(one.Parts, seconds(x))
		}
	}
	if s.had.wrote != 0 {
		one.Client = &[2]float64{seconds(s.sent()), seconds(s.read())}
	}
	return one
}

// written returns the requests whose replies' writes were seen, if those are nearly all, or else all
// requests. It sets e.Writes.
func (r *Requests) written(e *sample.Served) []served {
	const nearly = 0.95
	out := make([]served, 0, len(r.all))
	for _, s := range r.all {
		if s.written {
			out = append(out, s)
		}
	}
	if e.Writes = float64(len(out)) >= nearly*float64(len(r.all)); e.Writes {
		return out
	}
	for i, s := range r.all {
		if s.written {
			r.all[i].parts[inServer] += s.parts[inTCP] + s.parts[inQueue]
			r.all[i].parts[inTCP], r.all[i].parts[inQueue] = 0, 0
		}
	}
	return r.all
}

// tail returns the means of the seen parts of the requests from the 98.5th to the 99.5th percentile,
// or nil if there are too few. The slowest requests come first.
func tail(all []served, seen func(part int) bool) (means []float64) {
	const slowest, slow = 0.005, 0.015
	whole, before := weightOf(all), 0.0
	var some []served
	for _, s := range all {
		if before >= slowest*whole && before < slow*whole {
			some = append(some, s)
		}
		before += s.weight
	}
	if len(some) == 0 {
		return nil
	}
	for i := range servedParts {
		if seen(i) {
			means = append(means, meanOf(some, func(s served) int64 { return s.parts[i] }))
		}
	}
	return means
}

// middle returns the request that took the median time. The slowest requests come first.
func middle(all []served) (s served) {
	left := weightOf(all) / 2
	for _, s = range all {
		if left -= s.weight; left <= 0 {
			break
		}
	}
	return s
}

func weightOf(all []served) (sum float64) {
	for _, s := range all {
		sum += s.weight
	}
	return sum
}

// meanOf returns the mean of what of returns, in s.
func meanOf(all []served, of func(served) int64) (sum float64) {
	for _, s := range all {
		sum += s.weight * seconds(of(s))
	}
	return sum / weightOf(all)
}

// timed reports whether it is known of nearly all requests for how long they waited for a CPU. If not,
// that is in the server's part.
func timed(all []served) bool {
	const nearly = 0.9 // nothing is known of the first request of a thread
	n := 0
	for _, s := range all {
		if s.timed {
			n++
		}
	}
	if n > 0 && float64(n) >= nearly*float64(len(all)) {
		return true
	}
	for i, s := range all {
		all[i].parts[inServer], all[i].parts[inWait] = s.parts[inServer]+s.parts[inWait], 0
	}
	return false
}

// partOf returns the figures of a part of requests, which are in the order in which they came.
func partOf(name string, all []served, of func(served) int64) sample.ServedPart {
	const tenths = 10
	n := len(all)
	xs := make([]weighted, n)
	for i, s := range all {
		xs[i] = weighted{of(s), s.weight}
	}
	var medians []float64
	for i := 0; i < tenths && n >= tenths*tenths; i++ {
		some := slices.SortedFunc(slices.Values(xs[i*n/tenths:(i+1)*n/tenths]), weighted.compare)
		medians = append(medians, seconds(quantile(some, 0.5)))
	}
	slices.SortFunc(xs, weighted.compare)
	return sample.ServedPart{Part: name, Mean: meanOf(all, of), P50: seconds(quantile(xs, 0.5)),
		P99: seconds(quantile(xs, 0.99)), Max: seconds(xs[n-1].x), Tenths: medians}
}

type weighted struct {
	x      int64
	weight float64
}

func (w weighted) compare(o weighted) int { return cmp.Compare(w.x, o.x) }

// quantile returns the least of some values, which are sorted, up to which they have a share of the
// weight.
func quantile(sorted []weighted, share float64) int64 {
	const rounding = 1e-9
	left := 0.0
	for _, v := range sorted {
		left += v.weight * (share - rounding)
	}
	for _, v := range sorted {
		if left -= v.weight; left <= 0 {
			return v.x
		}
	}
	return sorted[len(sorted)-1].x
}

// drop forgets the packets and writes before offsets of requests and replies.
func (c *connection) drop(asked, replied int64) {
	c.in.drop(asked)
	c.out.drop(replied)
	c.written.writes = dropBefore(c.written.writes, replied)
	c.written.sends = dropBefore(c.written.sends, replied)
	c.client.drop(asked, replied)
	if n := len(c.acked); n > 0 {
		c.acked = slices.Clone(c.acked[n-1:])
	}
}

// drop forgets the marks before an offset.
func (s *stream) drop(offset int64) {
	i := sort.Search(len(s.marks), func(i int) bool { return s.marks[i].end >= offset })
	s.marks = slices.Clone(s.marks[i:])
}
