package sample

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Evidence is what the kernel of this machine showed of the tokens of a visit: when each left the
// server and each relay, and when it could be read. It has no text.
type Evidence struct {
	// Hops are the server and the relays behind it up to the one that the client dials.
	Hops []EvidenceHop `json:"hops"`
	// Writes means that the server's writes were seen. Without, what tokens waited in the server's
	// TCP is in the server's part.
	Writes    bool `json:"writes,omitempty"`
	Responses int  `json:"responses"` // asked for
	// ByID, BySeed and ByText are the numbers of responses whose request was recognized by the
	// header X-Request-Id, by the seed or by the response's text.
	ByID   int `json:"by_id"`
	BySeed int `json:"by_seed,omitempty"`
	ByText int `json:"by_text,omitempty"`
	// ByOrder is the number of exchanges that were found at every hop, of Responses, if they are no
	// streams of tokens: a request and its reply, of any bytes, that take turns on a connection.
	// Nothing else but the hops, Lost, the parts and the waits is known of them then.
	ByOrder int `json:"by_order,omitempty"`
	// Tokens is the number of the server's tokens, Matched that of those found at every hop and at
	// the client.
	Tokens  int `json:"tokens"`
	Matched int `json:"matched"`
	Lost    int `json:"lost,omitempty"` // packets for which the capture had no room
	// LeftOut is, in reports, the number of visits that are left out because a capture lost
	// packets.
	LeftOut int `json:"left_out,omitempty"`
	Others  int `json:"others,omitempty"` // requests of others that the server answered
	// End is the mean time from the request to the response's end, as the client had it; 0:
	// unknown.
	End float64 `json:"end_s,omitempty"`
	// Window is how long the responses were watched.
	Window float64 `json:"window_s,omitempty"`
	// ClockMoved is by how much CLOCK_REALTIME was set during the visit.
	ClockMoved float64 `json:"clock_moved_s,omitempty"`
	// Ahead is by how much the clock of the server's machine is ahead, if that is another one, and
	// Unsure by how much that may be wrong. EvidenceWire is then both ways of the network, which is
	// exact, and there is no EvidenceRequest.
	Ahead  float64 `json:"ahead_s,omitempty"`
	Unsure float64 `json:"unsure_s,omitempty"`
	// ClientInWire means that no packets were captured at the client, whose part is in
	// EvidenceWire.
	ClientInWire bool `json:"client_in_wire,omitempty"`
	// HopsUnsure means that captures lost packets each time when the hops were looked for: the
	// server may be a relay, whose part is the server's behind it, too.
	HopsUnsure bool `json:"hops_unsure,omitempty"`
	// Broken is why nothing is known, as a clause: another machine did not answer, or a relay asks
	// several servers; "": it is known.
	Broken string `json:"broken,omitempty"`
	// ServerGap and Gap are the median gaps between tokens at the server and at the client.
	ServerGap float64 `json:"server_gap_s"`
	Gap       float64 `json:"gap_s"`
	// Slow is the number of gaps that are more than one and a half times the even pace, and 1 ms
	// beyond it. The pace is the median gap or the mean one, whichever is smaller, at the server or
	// at the client, whichever is larger. Excess is what all of them exceed it by.
	Slow   int     `json:"slow"`
	Excess float64 `json:"excess_s"`
	// ServerSlow is the share of the responses' time that the server's part of slow gaps is, over
	// all routes to this server on which tokens come at its pace; 0: unknown, as in files, or none.
	// ServerSlowHalf is half the width of its 95 % interval by visits; 0: a route has too few.
	ServerSlow     float64        `json:"server_slow_share,omitempty"`
	ServerSlowHalf float64        `json:"server_slow_half,omitempty"`
	Parts          []EvidencePart `json:"parts"` // in the order in which a token passes them
	// Waits are the tokens that waited for longer than 1 ms in the server's TCP, by cause.
	Waits []EvidenceWait `json:"waits,omitempty"`
	// Response is the response with the median time to its last token; nil: of no tokens.
	Response *EvidenceResponse `json:"response,omitempty"`
}

// EvidenceResponse is one response, token by token. Times are in s from when the client began to
// write the request.
type EvidenceResponse struct {
	Tokens int `json:"tokens"` // found at every hop
	// Written and Read are when the server had written a token and when the client had read it, of
	// at most MostTokenPoints tokens: the first, the last, and some at even distances between.
	Written []float64 `json:"written_s"`
	Read    []float64 `json:"read_s"`
	Last    []float64 `json:"last_s"` // the parts of the last token's time, as in Evidence.Parts
}

// MostTokenPoints is the largest number of tokens in an EvidenceResponse.
const MostTokenPoints = 200

// Token returns the number of the token of a point, from 1.
func (r *EvidenceResponse) Token(point int) int {
	if len(r.Read) < 2 {
		return 1 + point
	}
	return 1 + point*(r.Tokens-1)/(len(r.Read)-1)
}

// EvidenceWait is a cause for which tokens waited in the server's TCP.
type EvidenceWait struct {
	Cause  string  `json:"cause"`
	Tokens int     `json:"tokens"`
	Sum    float64 `json:"sum_s"` // the tokens' waits
}

// The causes.
const (
	WaitNagle      = "nagle"      // for the acknowledgement of earlier bytes, without TCP_NODELAY
	WaitQueue      = "queue"      // for earlier packets in the device's full queue
	WaitCongestion = "congestion" // for an acknowledgement: the congestion window was full
	WaitWindow     = "window"     // for the other end, which did not read
	WaitMore       = "more"       // for the rest, which the program said would follow
	WaitOther      = "other"
)

// EvidenceHop is a process that handles requests.
type EvidenceHop struct {
	Process string `json:"process"`           // "": unknown
	Port    uint16 `json:"port"`              // at which it listens
	NetNS   string `json:"netns"`             // like "net:[4026531840]"
	PID     int    `json:"-"`                 // 0: unknown
	Machine string `json:"machine,omitempty"` // another one, such as "peer gpu1"
	// Unread is why its tokens cannot be read, as a clause about it, such as "compresses its
	// responses with br"; "": they can.
	Unread string `json:"unread,omitempty"`
	// Asks is where its process sent TLS while a request waited for its first token, as a gateway
	// does that asks its server over HTTPS; "": nowhere, or unknown.
	Asks string `json:"asks,omitempty"`
	// Stopped is for how long a CPU limit stopped its cgroup during the window.
	Stopped float64 `json:"stopped_s,omitempty"`
}

// Place returns a hop's process, port and, if that is another one, machine in words.
func (h EvidenceHop) Place() string {
	at := strings.TrimSpace(fmt.Sprintf("%s at port %d", h.Process, h.Port))
	if h.Machine != "" {
		at += " of " + h.Machine
	}
	return at
}

func (h EvidenceHop) unread() string {
	h.Process = cmp.Or(h.Process, "a program")
	return h.Place() + " " + h.Unread + ", which toll cannot read"
}

// The names of parts.
const (
	EvidenceRequest = "request" // until the first relay or the server had the request
	EvidenceServer  = "server"
	EvidenceTCP     = "tcp"   // the server's
	EvidenceQueue   = "queue" // of the server's device
	EvidenceRelay   = "relay" // of the request and of the token
	EvidenceWire    = "wire"  // from the last relay to the client's kernel; or both ways
	EvidenceClient  = "client"
)

// EvidencePart is a part of the time from the request to the reading of a token. The parts' First
// add up to the mean time of a response's first token, and their Last to that of its last one.
type EvidencePart struct {
	Part  string  `json:"part"`
	Hop   int     `json:"hop,omitempty"` // of a relay: index into Hops
	First float64 `json:"first_s"`
	Last  float64 `json:"last_s"`
	// P50, P90 and P99 are percentiles over all tokens.
	P50    float64 `json:"p50_s"`
	P90    float64 `json:"p90_s"`
	P99    float64 `json:"p99_s"`
	Excess float64 `json:"excess_s,omitempty"` // its part of Evidence.Excess
	// FirstHalf, LastHalf and ExcessHalf are half the widths of the 95 % intervals of First, Last
	// and Excess, by visits or by epochs; 0: there are too few.
	FirstHalf  float64 `json:"first_half_s,omitempty"`
	LastHalf   float64 `json:"last_half_s,omitempty"`
	ExcessHalf float64 `json:"excess_half_s,omitempty"`
	// Epochs are the means of Last over groups of consecutive exchanges of about the same size; nil
	// for responses, whose visits serve instead, and in reports.
	Epochs []float64 `json:"epochs_s,omitempty"`
}

const mostTokens = 1 << 40

// check returns an error for figures that no visit has, of which no report can be made.
func (e *Evidence) check() error {
	if e == nil {
		return nil
	}
	r, hop := cmp.Or(e.Response, &EvidenceResponse{}), 0
	counts := []int{e.Responses, e.ByID, e.BySeed, e.ByText, e.ByOrder, e.Tokens, e.Matched, e.Lost,
		e.Others, e.Slow, r.Tokens}
	figures := slices.Concat([]float64{e.End, e.Window, e.ClockMoved, e.Ahead, e.Unsure, e.ServerGap,
		e.Gap, e.Excess}, r.Written, r.Read, r.Last)
	for _, h := range e.Hops {
		figures = append(figures, h.Stopped)
	}
	for _, p := range e.Parts {
		hop = min(hop, p.Hop)
		figures = append(append(figures, p.First, p.Last, p.P50, p.P90, p.P99, p.Excess, p.FirstHalf,
			p.LastHalf, p.ExcessHalf), p.Epochs...)
	}
	for _, w := range e.Waits {
		counts, figures = append(counts, w.Tokens), append(figures, w.Sum)
	}
	if hop < 0 || slices.Min(counts) < 0 || slices.Max(counts) > mostTokens {
		return fmt.Errorf("impossible evidence: hop %d, counts %v", hop, counts)
	}
	for i, x := range figures {
		figures[i] = math.Abs(x)
	}
	return times(figures...)
}

// Clear reports whether the evidence suffices for a verdict, and if not why, as a clause.
func (e *Evidence) Clear() (why string, ok bool) {
	const least = 0.95 // of the tokens
	if e.Broken != "" {
		return e.Broken, false
	}
	if float64(e.Matched) < least*float64(e.Tokens) || e.Matched == 0 {
		for _, h := range e.Hops {
			if h.Unread != "" {
				return h.unread(), false
			}
		}
	}
	if e.Tokens == 0 && e.ByID+e.BySeed+e.ByText > 0 {
		return "no token could be read at the server, which may compress its responses", false
	}
	if e.Tokens == 0 && e.Responses > 0 {
		if float64(e.ByOrder) < least*float64(e.Responses) {
			return fmt.Sprintf("only %d of %d exchanges were seen at every hop", e.ByOrder,
				e.Responses), false
		}
		return e.complete()
	}
	switch {
	case len(e.Parts) == 0 || e.Matched == 0:
		return "no stream was seen at the server, which may be asked for whole responses, or over " +
			"another protocol than HTTP/1.1 and HTTP/2", false
	case float64(e.Matched) < least*float64(e.Tokens):
		return fmt.Sprintf("only %d of %d tokens were seen at every hop", e.Matched, e.Tokens),
			false
	}
	return e.complete()
}

func (e *Evidence) complete() (why string, ok bool) {
	if e.Lost > 0 {
		return fmt.Sprintf("the capture lost %d packets", e.Lost), false
	}
	return "", true
}
