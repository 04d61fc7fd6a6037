package sample

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// Served divides the times of the requests that a server answered while toll watched. Times are in
// s, of a server's network device: from the first byte of a request to the last one of its reply.
type Served struct {
	Schema  string    `json:"schema"`
	Started time.Time `json:"started"`
	// Command has the arguments that watch again; nil: unknown.
	Command     []string    `json:"command,omitzero"`
	Environment Environment `json:"environment"`
	Server      EvidenceHop `json:"server"`
	// Successor listens where the server did, which stopped while it was watched. Its port is 0 if
	// nobody does. Nil: the server still listens, or that is unknown.
	Successor *EvidenceHop `json:"successor,omitempty"`
	// UDP means that the requests and replies are datagrams, and Connections the clients' sockets.
	UDP     bool    `json:"udp,omitempty"`
	Elapsed float64 `json:"elapsed_s"`
	// Followed is how long requests were followed. If they are many, it is shorter than Elapsed, in
	// spells. Spells is their number; 0: they were followed all the time.
	Followed float64 `json:"followed_s"`
	Spells   int     `json:"spells,omitempty"`
	// Estimated is, for spells, the number of requests in Elapsed, as far as each spell is like the
	// rest after it: busy spells are shorter than idle ones. See Rate.
	Estimated float64 `json:"estimated_requests,omitempty"`
	// Pace has, for spells, the bytes a second that the server sent in it, relative to those in the
	// rest after it; nil: unknown, because connections come and go, or it is UDP.
	Pace []float64 `json:"pace,omitempty"`
	// Requests were seen from their first byte to the last one of the reply. Unmatched ones were
	// not divided, because packets of them are missing or the reply began before the request's end.
	// Unanswered ones came, and were not answered by the end of the spell or of the watching.
	Requests   int `json:"requests"`
	Unmatched  int `json:"unmatched,omitempty"`
	Unanswered int `json:"unanswered,omitempty"`
	// Pipelined ones came before the reply to the one before had left. Together are exchanges with
	// several statements, which count once. Unread are exchanges of a protocol that toll does not
	// read: pipelined requests count as one there.
	Pipelined   int `json:"pipelined,omitempty"`
	Together    int `json:"together,omitempty"`
	Unread      int `json:"unread,omitempty"`
	Connections int `json:"connections"`
	// TwoWay connections were left out, because both sides send messages that answer nothing.
	TwoWay int `json:"two_way,omitempty"`
	// Open is the number of the server's TCP connections if no request was seen on any.
	Open *int `json:"open_connections,omitempty"`
	// Errors counts the replies of DNS with an error, by its name, such as SERVFAIL.
	Errors map[string]int `json:"dns_errors,omitempty"`
	// Lost is the number of packets and writes for which the capture had no room.
	Lost int `json:"lost,omitempty"`
	// ClockSet is how often the clock was set. Requests that were under way then, or came up to a
	// second before, are left out.
	ClockSet int `json:"clock_set,omitempty"`
	// Writes means that the server's writes were seen. Without, its TCP and its device's queue are
	// in the server's part.
	Writes bool           `json:"writes"`
	Whole  ServedPart     `json:"whole"`
	Parts  []ServedPart   `json:"parts"`
	Waits  []EvidenceWait `json:"waits,omitempty"`
	// Queue is the server's queue of connections that wait to be accepted; nil: it dropped none, or
	// that is unknown.
	Queue *AcceptQueue `json:"accept_queue,omitempty"`
	// Frames and Steered are of some of the requests; nil: iptables sees no frames, and no device steers
	// packets, or that is unknown.
	Frames  *Frames   `json:"frames,omitempty"`
	Steered []Steered `json:"steered,omitempty"`
	// Client has what the requests' clients had of them; nil: none was seen on this machine, and the
	// times end at the server's network device.
	Client *ServedClient `json:"client,omitempty"`
	// Dialled are the ports that clients of this machine dialled, the server's own and those that
	// packet filters redirect to it; nil: what clients do could not be recorded.
	Dialled []uint16 `json:"dialled,omitempty"`
	// Tail has the parts' means of the requests around the p99; nil: there are too few.
	Tail    []float64  `json:"p99_parts_s,omitempty"`
	Median  *Answered  `json:"median,omitempty"` // the request that took the median time; nil: none
	Slowest []Answered `json:"slowest"`          // the slowest first
}

// Rate returns the number of requests a second, or 0 without any.
func (s *Served) Rate() float64 {
	switch {
	case s.Spells > 0 && s.Estimated > 0 && s.Elapsed > 0:
		return s.Estimated / s.Elapsed
	case s.Followed > 0:
		return float64(s.Requests) / s.Followed
	}
	return 0
}

// The names of parts of a request at its server, beside EvidenceServer, EvidenceTCP and
// EvidenceQueue.
const (
	ServedRequest = "request" // from its first byte to its last one
	ServedCPU     = "cpu"     // the server's thread waited for a CPU
	ServedReply   = "reply"   // from its first byte to its last one
)

// ServedClient has the times of requests at clients of the server's machine: from the beginning of
// the write, or over UDP from the client's network device, to the end of the read. The parts' means
// add up to that of Whole.
type ServedClient struct {
	Requests int          `json:"requests"`
	Whole    ServedPart   `json:"whole"`
	Parts    []ServedPart `json:"parts"`
	// Between is from the end of a reply's read to the next request's write, on a connection.
	Between ServedPart `json:"between"`
}

// The names of parts of a request at its client.
const (
	ServedSent    = "sent"    // until its first byte is at the server's device
	ServedHere    = "here"    // Served.Whole, of these requests
	ServedRead    = "read"    // from then on until the client has read the reply
	ServedBetween = "between" // until the client writes the next one
)

// ServedPart is a part of the requests' time. The parts' means add up to that of Whole.
type ServedPart struct {
	Part string  `json:"part"` // "": all of them
	Mean float64 `json:"mean_s"`
	P50  float64 `json:"p50_s"`
	P99  float64 `json:"p99_s"`
	Max  float64 `json:"max_s"`
	// Tenths are the medians of each tenth of the requests, in the order in which they came; nil:
	// there are too few.
	Tenths []float64 `json:"p50_by_tenth_s,omitempty"`
}

// Answered is one request, with the times of Served.Parts.
type Answered struct {
	At    float64   `json:"at_s"` // when it came, since toll began to watch
	Whole float64   `json:"whole_s"`
	Parts []float64 `json:"parts_s"`
	// Client has its times of ServedSent and ServedRead; nil: unknown.
	Client *[2]float64 `json:"client_s,omitempty"`
}

// ServedSchema is the version of the JSON of a Served.
const ServedSchema = "bridgetoll.requests/1"

// ReadServed reads the JSON of a Served, and makes its texts printable.
func ReadServed(r io.Reader) (*Served, error) {
	const most = 1 << 20 // bytes; ten requests and some parts need a hundredth of it
	s := new(Served)
	if err := json.NewDecoder(io.LimitReader(r, most)).Decode(s); err != nil {
		return nil, err
	}
	printable.Fields(s)
	return s, s.check()
}

// parts of a ServedClient, and the most of a Served.
const (
	clientParts = 3
	mostParts   = 100
)

func (s *Served) check() error {
	if s.Schema != ServedSchema {
		return &schemaError{s.Schema, ServedSchema}
	}
	parts := append(slices.Clone(s.Parts), s.Whole)
	if c := s.Client; c != nil {
		if len(c.Parts) != clientParts {
			return fmt.Errorf("a client with %d parts", len(c.Parts))
		}
		parts = append(append(parts, c.Parts...), c.Whole, c.Between)
	}
	all := slices.Clone(s.Slowest)
	if s.Median != nil {
		all = append(all, *s.Median)
	}
	if s.Tail != nil {
		all = append(all, Answered{Parts: s.Tail})
	}
	if max(len(parts), len(all)) > mostParts {
		return fmt.Errorf("%d parts and %d requests", len(parts), len(all))
	}
	for _, p := range parts {
		if err := times(append(slices.Clone(p.Tenths), p.Mean, p.P50, p.P99, p.Max)...); err != nil {
			return err
		}
	}
	for _, x := range all {
		if len(x.Parts) != len(s.Parts) {
			return fmt.Errorf("a request with %d of %d parts", len(x.Parts), len(s.Parts))
		}
		if err := times(append(slices.Clone(x.Parts), x.At, x.Whole)...); err != nil {
			return err
		}
		if x.Client != nil {
			if err := times(x.Client[:]...); err != nil {
				return err
			}
		}
	}
	if s.Queue != nil {
		if err := s.Queue.check(); err != nil {
			return err
		}
	}
	for _, x := range s.Steered {
		if err := x.check(); err != nil {
			return err
		}
	}
	if s.Requests < 0 || s.Requests > 0 && s.Followed <= 0 {
		return fmt.Errorf("%d requests in %v s", s.Requests, s.Followed)
	}
	return times(s.Elapsed, s.Followed, s.Estimated)
}
