package observe

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// order tells an observer on another machine what to do. It has one of its fields set.
type order struct {
	Look  *lookOrder  `json:"look,omitempty"`
	Found bool        `json:"found,omitempty"` // the request that Look waits for was made
	Take  *takeOrder  `json:"take,omitempty"`
	Start bool        `json:"start,omitempty"`
	Begin string      `json:"begin,omitempty"` // a visit to this route
	End   *endOrder   `json:"end,omitempty"`
	Bytes *bytesOrder `json:"bytes,omitempty"`
	Spans *spansOrder `json:"spans,omitempty"`
	More  bool        `json:"more,omitempty"` // what End had no room for
}

// lookOrder makes it look for a marked request in all network namespaces, until Found.
type lookOrder struct {
	Base uint32 `json:"base"` // the marks are above it
	// Several is as in a Watch.
	Several bool `json:"several,omitempty"`
}

// takeOrder tells it the hops of a route on its machine.
type takeOrder struct {
	Route string   `json:"route"`
	Hops  []farHop `json:"hops"`
}

// endOrder ends a visit. Seen are requests with marks above From and up to To, and those without a
// mark whose response has one of the texts.
type endOrder struct {
	From  uint32        `json:"from"`
	To    uint32        `json:"to"`
	Texts []openai.Text `json:"texts"`
}

// bytesOrder asks for a request over TLS at the hops of the present visit to which it came so.
type bytesOrder struct {
	Mark  uint32        `json:"mark"`
	Base  uint32        `json:"base"` // with which the response's stream begins
	Asked int64         `json:"asked"`
	Ends  []int64       `json:"ends"`
	Texts []openai.Text `json:"texts"`
}

// news is the observer's answer. Times are CLOCK_REALTIME there, ns.
type news struct {
	Error  string `json:"error,omitempty"`
	Denied bool   `json:"denied,omitempty"` // it may not capture packets

	Sights []sight  `json:"sights,omitempty"`
	Full   bool     `json:"full,omitempty"` // rings lost packets meanwhile
	Hops   []farHop `json:"hops,omitempty"`
	Server Server   `json:"server,omitzero"`

	Seen    []farSeen `json:"seen,omitempty"`
	More    bool      `json:"more,omitempty"`
	Others  int       `json:"others,omitempty"`
	Lost    int       `json:"lost,omitempty"`
	Moved   float64   `json:"moved_s,omitempty"` // its CLOCK_REALTIME was set
	Stopped []float64 `json:"stopped_s,omitempty"`
	// Counts are what slowed the server down, by the names that visits use; nil: it is not known.
	Counts map[string]int64 `json:"counts,omitempty"`

	GPU *sample.GPU `json:"gpu,omitempty"`
}

// sight is a sighting of a request of ours, or of how a TLS connection begins.
type sight struct {
	Hello tokens.Hello   `json:"hello"`
	Space int            `json:"space"`
	Out   bool           `json:"out,omitempty"`
	Src   netip.AddrPort `json:"src"`
	Dst   netip.AddrPort `json:"dst"`
	Seq   uint32         `json:"seq"`
	At    int64          `json:"at"`
	// Protocol is as in a sighting.
	Protocol string `json:"protocol,omitempty"`
}

func (s *sight) sighting() sighting {
	return sighting{hello: s.Hello, space: farSpace + s.Space, out: s.Out, src: s.Src, dst: s.Dst,
		seq: s.Seq, at: s.At, protocol: s.Protocol}
}

type farHop struct {
	Space  int            `json:"space"`
	To     netip.AddrPort `json:"to"`
	Sealed bool           `json:"sealed,omitempty"`
	// Protocol is as in a hop.
	Protocol string             `json:"protocol,omitempty"`
	About    sample.EvidenceHop `json:"about"`
}

// farSeen is what a hop of the route saw of a request.
type farSeen struct {
	Hop int `json:"hop"`
	tokens.Seen
}

const (
	mostSights = 10_000
	mostHops   = 16
	mostEvents = 15_000 // in one message, which is bounded by package pipe
	mostTexts  = 1000

	longestCoding = 40
)

var errNonsense = errors.New("protocol error")

// check returns an error unless an answer is one that this program's observers give. It makes texts
// printable.
func (n *news) check() error {
	const longest = 300
	n.Error = printable.Words(printable.Limit(n.Error, longest))
	if len(n.Sights) > mostSights || len(n.Hops) > mostHops || n.Others < 0 || n.Lost < 0 {
		return fmt.Errorf("%w: too much", errNonsense)
	}
	for _, s := range n.Sights {
		if s.Space < 0 || s.Space >= mostSpaces {
			return fmt.Errorf("%w: namespace %d", errNonsense, s.Space)
		}
	}
	for i := range n.Hops {
		printable.Fields(&n.Hops[i].About)
	}
	for i := range n.Seen {
		if err := n.Seen[i].check(); err != nil {
			return err
		}
	}
	return n.checkServer()
}

func (s *farSeen) check() error {
	s.Coding = printable.Words(printable.Limit(s.Coding, longestCoding))
	events := len(s.Events)
	whole := func(n int) bool { return n == events }
	switch {
	case s.Hop < 0 || s.Hop >= mostHops, !whole(len(s.Departed)),
		s.Left != nil && !whole(len(s.Left)):
		return fmt.Errorf("%w: times without events", errNonsense)
	case s.Wrote == nil && s.Sent == nil && s.Waits == nil:
	case !whole(len(s.Wrote)) || !whole(len(s.Sent)) || !whole(len(s.Waits)):
		return fmt.Errorf("%w: writes without events", errNonsense)
	}
	for _, cause := range s.Waits {
		if !slices.Contains([]string{"", sample.WaitNagle, sample.WaitQueue, sample.WaitCongestion,
			sample.WaitWindow, sample.WaitMore, sample.WaitOther}, cause) {
			return fmt.Errorf("%w: an unknown cause", errNonsense)
		}
	}
	for i, e := range s.Events {
		if e.Len < 0 || i > 0 && (e.Len < s.Events[i-1].Len || e.Offset < s.Events[i-1].Offset) {
			return fmt.Errorf("%w: events in no order", errNonsense)
		}
	}
	return nil
}

// check returns an error if an order cannot be carried out. spaces is the number of namespaces that
// are known.
func (o *order) check(spaces int) error {
	if o.Take != nil {
		if len(o.Take.Hops) == 0 || len(o.Take.Hops) > mostHops {
			return fmt.Errorf("%w: a route has from 1 to %d hops", errNonsense, mostHops)
		}
		for _, h := range o.Take.Hops {
			if h.Space < 0 || h.Space >= spaces || !h.To.IsValid() {
				return fmt.Errorf("%w: a hop in namespace %d", errNonsense, h.Space)
			}
		}
	}
	if b := o.Bytes; b != nil && len(b.Ends) != len(b.Texts) {
		return fmt.Errorf("%w: texts without ends", errNonsense)
	}
	return nil
}
