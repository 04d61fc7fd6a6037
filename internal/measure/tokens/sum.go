package tokens

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

const (
	// slowFactor and slowLeast say from which length on a gap is slow: longer than slowFactor times
	// the even pace, and slowLeast longer than that.
	slowFactor = 1.5
	slowLeast  = time.Millisecond
)

// Slow reports whether a gap between tokens is slow, with the even pace.
func Slow(gap, pace time.Duration) bool {
	return float64(gap) > slowFactor*float64(pace) && gap > pace+slowLeast
}

// Sums collects the rows of a visit's responses.
type Sums struct {
	relays    int
	responses []response
	waits     map[string]sample.EvidenceWait
}

type response struct {
	rows []Row
	held int64 // by relays, of the request, ns
}

// last returns when the last token was read, in ns.
func (r response) last() int64 { return r.rows[len(r.rows)-1].total() }

// NewSums returns sums of responses that came over n relays.
func NewSums(n int) *Sums { return &Sums{relays: n, waits: map[string]sample.EvidenceWait{}} }

// Add adds the rows of a response, whose request relays held for a time, in ns.
func (s *Sums) Add(rows []Row, held int64) {
	if len(rows) > 0 {
		s.responses = append(s.responses, response{rows, held})
	}
}

// AddWaits adds what a server's tokens waited for in its TCP.
func (s *Sums) AddWaits(server *Seen) {
	for i, cause := range server.Waits {
		if cause != "" {
			w := s.waits[cause]
			w.Cause, w.Tokens = cause, w.Tokens+1
			w.Sum += seconds(server.Sent[i] - server.Wrote[i])
			s.waits[cause] = w
		}
	}
}

// Note records the division of the times in e.
func (s *Sums) Note(e *sample.Evidence) {
	gaps := s.gaps()
	e.ServerGap, e.Gap = seconds(median(gaps, ofServer)), seconds(median(gaps, ofClient))
	excess, total, slow := s.excess(gaps)
	e.Slow, e.Excess = slow, seconds(total)
	s.NoteParts(e)
	for i := range e.Parts {
		e.Parts[i].Excess = excess[i] / float64(time.Second)
	}
	e.Response = s.middle()
}

// middle returns the response with the median time to its last token, or nil without responses.
func (s *Sums) middle() *sample.EvidenceResponse {
	if len(s.responses) == 0 {
		return nil
	}
	sorted := slices.SortedStableFunc(slices.Values(s.responses), func(a, b response) int {
		return cmp.Compare(a.last(), b.last())
	})
	of := sorted[len(sorted)/2]
	rows := of.rows
	points := min(len(rows), sample.MostTokenPoints)
	r := &sample.EvidenceResponse{Tokens: len(rows), Read: make([]float64, points)}
	for i := range points {
		row := rows[r.Token(i)-1]
		r.Written = append(r.Written, seconds(row[Request]+of.held+row[Server]))
		r.Read[i] = seconds(row.total())
	}
	for _, ns := range rows[len(rows)-1] {
		r.Last = append(r.Last, seconds(ns))
	}
	return r
}

// NoteParts records the parts of the times in e, and what the server's TCP waited for.
func (s *Sums) NoteParts(e *sample.Evidence) {
	e.Waits = s.causes()
	for i, name := range s.names() {
		p := sample.EvidencePart{Part: name}
		if name == sample.EvidenceRelay {
			p.Hop = i - relays + 1
		}
		var each []int64
		for _, of := range s.responses {
			rows := of.rows
			p.First += seconds(rows[0][i]) / float64(len(s.responses))
			p.Last += seconds(rows[len(rows)-1][i]) / float64(len(s.responses))
			for _, r := range rows {
				each = append(each, r[i])
			}
		}
		slices.Sort(each)
		if n := len(each); n > 0 {
			p.P50, p.P90, p.P99 = seconds(each[n/2]), seconds(each[n*9/10]),
				seconds(p99(each))
		}
		e.Parts = append(e.Parts, p)
	}
}

// mostEpochs is the number of epochs into which NoteEpochs divides exchanges, if there are as many.
const mostEpochs = 10

// NoteEpochs records the means of the times to the last byte of consecutive exchanges in e's parts,
// which NoteParts has recorded. Neighbours are alike; so the means of epochs say how exact the mean
// of all is, and single exchanges would not.
func (s *Sums) NoteEpochs(e *sample.Evidence) {
	n := len(s.responses)
	k := min(n, mostEpochs)
	for part := range e.Parts {
		p := &e.Parts[part]
		p.Epochs = make([]float64, k)
		for i := range k {
			epoch := s.responses[i*n/k : (i+1)*n/k]
			for _, of := range epoch {
				p.Epochs[i] += seconds(of.rows[len(of.rows)-1][part]) / float64(len(epoch))
			}
		}
	}
}

// causes returns what was waited for, by cause.
func (s *Sums) causes() (out []sample.EvidenceWait) {
	for _, cause := range slices.Sorted(maps.Keys(s.waits)) {
		out = append(out, s.waits[cause])
	}
	return out
}

func (s *Sums) names() []string {
	out := []string{sample.EvidenceRequest, sample.EvidenceServer, sample.EvidenceTCP,
		sample.EvidenceQueue}
	for range s.relays {
		out = append(out, sample.EvidenceRelay)
	}
	return append(out, sample.EvidenceWire, sample.EvidenceClient)
}

// gap is what each part, and all of them, changed from one token to the next.
type gap struct {
	whole int64
	parts Row
}

func ofClient(g gap) int64 { return g.whole }
func ofServer(g gap) int64 { return g.parts[Server] }

func (s *Sums) gaps() (out []gap) {
	for _, of := range s.responses {
		rows := of.rows
		for i := 1; i < len(rows); i++ {
			g := gap{whole: rows[i].total() - rows[i-1].total(), parts: slices.Clone(rows[i])}
			for p := range g.parts {
				g.parts[p] -= rows[i-1][p]
			}
			out = append(out, g)
		}
	}
	return out
}

// excess returns by how much slow gaps exceed the even pace: by part, in all, and in how many gaps.
// A slow gap's excess is divided among the parts that grew, in proportion.
func (s *Sums) excess(gaps []gap) (by []float64, total int64, slow int) {
	by = make([]float64, len(s.names()))
	pace := max(even(gaps, ofServer), even(gaps, ofClient))
	for _, g := range gaps {
		if !Slow(time.Duration(g.whole), time.Duration(pace)) {
			continue
		}
		grew := slices.Clone(g.parts)
		grew[Server] -= pace
		sum := int64(0)
		for i := range grew {
			grew[i] = max(0, grew[i])
			sum += grew[i]
		}
		for i := range grew {
			by[i] += float64(grew[i]) / float64(sum) * float64(g.whole-pace)
		}
		total, slow = total+g.whole-pace, slow+1
	}
	return by, total, slow
}

// even returns the gap of an even pace: the median or the mean, whichever is smaller. Where tokens
// come in pairs, the upper median may be one of the pauses between them.
func even(gaps []gap, of func(gap) int64) int64 {
	sum := int64(0)
	for _, g := range gaps {
		sum += of(g)
	}
	return min(median(gaps, of), sum/int64(max(1, len(gaps))))
}

// median returns the upper median, or 0 without gaps.
func median(gaps []gap, of func(gap) int64) int64 {
	if len(gaps) == 0 {
		return 0
	}
	xs := make([]int64, len(gaps))
	for i, g := range gaps {
		xs[i] = of(g)
	}
	slices.Sort(xs)
	return xs[len(xs)/2]
}

func seconds(ns int64) float64 { return float64(ns) / float64(time.Second) }
