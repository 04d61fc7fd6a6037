package tokens

import (
	"math"
	"sort"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
)

// Asked is a request and its response as the client had them. Times are CLOCK_REALTIME, ns.
type Asked struct {
	Mark  uint32
	Local uint16 // the client's port
	// Asked and Ends are as in openai.Response.
	Asked int64
	Ends  []int64
	Sent  int64         // when writing it began
	Texts []openai.Text // up to each event
	Read  []int64       // when the client had read each event
	// Arrived returns when all bytes of the response stream before an offset were readable, or
	// false if that is unknown. Nil: nobody looked, and the time until they are read is the wire's.
	Arrived func(offset int64) (ns int64, ok bool)
}

// How tells by what a request was recognized.
type How int

// The ways to recognize a request. Unknown means that it was not.
const (
	Unknown How = iota
	ByID
	BySeed
	ByText
)

// slack is how much later than its effect an instant may seem, in ns.
const slack = int64(200 * time.Microsecond)

// Pair finds the request in what a hop saw by its mark. If a relay made it more than once, it is
// the one whose response has most of the client's text, and then left shortly before it arrived. It
// returns its index, or -1.
func Pair(seen []Seen, a *Asked) (i int, how How) {
	i = -1
	most, least := 0, int64(0)
	for k := range seen {
		s := &seen[k]
		if s.Mark != a.Mark || a.Mark == 0 || s.Reply != Streamed {
			continue
		}
		common := sameUpTo(s.Events, a.Texts)
		cost, ok := fits(s, a)
		if !ok {
			cost = math.MaxInt64
		}
		if i >= 0 && (common < most || common == most && cost >= least) {
			continue
		}
		i, most, least, how = k, common, cost, BySeed
		if s.ByID {
			how = ByID
		}
	}
	return i, how
}

// PairByText finds requests in those without a mark that a hop saw. It returns the index of each,
// or -1. A request may be any whose response has the same text and left before it arrived, token by
// token. As many as possible are found, with short times from leaving to arriving.
func PairByText(seen []Seen, all []*Asked) []int {
	choices := make([][]int, len(all))
	for i, a := range all {
		choices[i] = ranked(len(seen), func(k int) (int64, bool) {
			if seen[k].Mark != 0 {
				return 0, false
			}
			return fits(&seen[k], a)
		})
	}
	return assign(choices, len(seen))
}

// fits reports whether a request without a mark may be the client's, and the sum of the times from
// each token's departure to its arrival.
func fits(s *Seen, a *Asked) (cost int64, ok bool) {
	n, m := len(s.Events), len(a.Texts)
	if n == 0 || m == 0 || s.Events[n-1].Text != a.Texts[m-1] ||
		s.Came < a.Sent-slack || s.Came > a.Read[0]+slack {
		return 0, false
	}
	for i, e := range s.Events {
		j := reached(m, e.Len, func(j int) int { return a.Texts[j].Len })
		if j == m || a.Read[j] < s.Departed[i]-slack {
			return 0, false
		}
		cost += a.Read[j] - s.Departed[i]
	}
	return cost, true
}

// reached returns the first of n events with which a text has at least a length, or n.
func reached(n, length int, of func(int) int) int {
	return sort.Search(n, func(i int) bool { return of(i) >= length })
}

// The parts of a token's time, in its order. The relays' are between Queue and Wire.
const (
	Request = iota // until the first relay or the server had the request
	Server         // until the program wrote the token
	TCP            // until TCP sent it
	Queue          // until the device sent it
	relays
)

// Row divides the time from the request to the reading of one token into parts, in ns: Request to
// Queue, each relay from the server's side on, with its time to pass on the request, the wire and
// the client. They add up to that time.
type Row []int64

func (r Row) total() (sum int64) {
	for _, x := range r {
		sum += x
	}
	return sum
}

// Divide divides the times of the server's tokens. chain has what the hops saw, from the server on.
// Tokens behind the end of what all hops' texts have in common have no row; unmatched is their
// number, that of the tokens whose arrival in the client's kernel is unknown, and that of the
// client's events behind the end of the server's text.
func Divide(chain []Seen, a *Asked) (rows []Row, unmatched int) {
	common := math.MaxInt
	for _, h := range chain {
		common = min(common, sameUpTo(h.Events, a.Texts))
	}
	server := chain[0]
	for i, e := range server.Events {
		if e.Len > common {
			return rows, unmatched + len(server.Events) - i
		}
		if row, ok := divide(chain, a, i); ok {
			rows = append(rows, row)
		} else {
			unmatched++
		}
	}
	if n := len(server.Events); n > 0 {
		end := server.Events[n-1].Len
		unmatched += len(a.Texts) - reached(len(a.Texts), end+1,
			func(j int) int { return a.Texts[j].Len })
	}
	return rows, unmatched
}

// Held returns for how long relays had held a request when the server had it, in ns. It is in their
// parts.
func Held(chain []Seen) int64 { return chain[0].Came - chain[len(chain)-1].Came }

func divide(chain []Seen, a *Asked, i int) (Row, bool) {
	server := chain[0]
	length := server.Events[i].Len
	left := server.Departed[i]
	row := Row{server.Came - a.Sent, 0, 0, queued(server, i)}
	row[Server] = left - row[Queue] - server.Came
	if server.Wrote != nil {
		row[Server] = server.Wrote[i] - server.Came
		row[TCP], row[Queue] = server.Sent[i]-server.Wrote[i], left-server.Sent[i]
	}
	last := i
	for k, h := range chain[1:] {
		last = reached(len(h.Events), length, func(j int) int { return h.Events[j].Len })
		if last == len(h.Events) {
			return nil, false
		}
		held := chain[k].Came - h.Came // it had the request before it passed it on
		if held < -slack || h.Departed[last] < left-slack {
			return nil, false // it passed on what another one sent
		}
		row[Request] -= held
		row = append(row, held+h.Departed[last]-left)
		left = h.Departed[last]
	}
	j := reached(len(a.Texts), length, func(j int) int { return a.Texts[j].Len })
	if j == len(a.Texts) {
		return nil, false
	}
	arrived, ok := a.arrived(chain[len(chain)-1].Events[last].Offset, j)
	return append(row, arrived-left, a.Read[j]-arrived), ok
}

// arrived returns when the bytes before an offset, which bring the client's event j, were readable.
func (a *Asked) arrived(offset int64, j int) (ns int64, ok bool) {
	if a.Arrived == nil {
		return a.Read[j], true
	}
	return a.Arrived(offset)
}

// queued returns how long a token's packet was in the device's queue, as far as TCP's timestamps of
// a millisecond tell.
func queued(s Seen, i int) int64 {
	const unsure = int64(1500 * time.Microsecond)
	if s.Left == nil {
		return 0
	}
	if d := s.Departed[i] - s.Left[i]; d > unsure {
		return min(d, s.Departed[i]-s.Came)
	}
	return 0
}

// sameUpTo returns the length up to which a server's text and a client's are the same.
func sameUpTo(events []Event, texts []openai.Text) (n int) {
	for i, j := 0, 0; i < len(events) && j < len(texts); {
		switch a, b := events[i].Text, texts[j]; {
		case a.Len < b.Len:
			i++
		case a.Len > b.Len:
			j++
		case a.Hash != b.Hash:
			return n
		default:
			n = a.Len
			i++
		}
	}
	return n
}
