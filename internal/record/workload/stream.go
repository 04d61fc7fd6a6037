package workload

import (
	"cmp"
	"fmt"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// Stream is sessions with a server that sends tokens at a pace, as an LLM's does.
const Stream = "stream"

// StreamOf returns the load's options, or the zero value for other kinds.
func StreamOf(l sample.Load) sample.StreamOptions { return options[sample.StreamOptions](l) }

func streamFill(l *sample.Load) {
	set(l, func(o *sample.StreamOptions) {
		o.Tokens, o.Pace = cmp.Or(o.Tokens, defaultTokens), cmp.Or(o.Pace, defaultPace)
	})
}

// Metrics of stream, in seconds unless noted. Latency is from when a token was due to its arrival.
// Its median decides the toll, because the p99 of a visit's few hundred tokens shows more of the
// machine than of the path.
const (
	FirstTokenP50 = "first_token_p50" // from the request
	FirstTokenP99 = "first_token_p99"
	GapP50        = "gap_p50" // between two tokens' arrivals in a response
	GapP99        = "gap_p99"
	GapMax        = "gap_max"
	ResponseTime  = "response_time"    // median, from the request to the response's end
	Overrun       = "response_overrun" // the part of it beyond the tokens' pace
	Glued         = "glued"            // share of tokens that came with another one
	TokenRate     = "tokens"           // arrived per second
	CPUPerToken   = "cpu_per_token"    // of client, server and proxy
	// the server's own delay
	LateP99    = "late_p99"
	LateMax    = "late_max"
	TransitP50 = "transit_p50" // the path's part of the delay
	TransitP99 = "transit_p99"
	WaitP99    = "wait_p99" // for the client's own thread, at most
	WaitMax    = "wait_max"
)

const (
	MaxTokens     = 1_000_000
	defaultTokens = 200
	defaultPace   = 50 // tokens per second

	maxSessions = 1000
	minPace     = 1
	maxPace     = 10_000
	maxResponse = 50 // seconds: delays and response times are recorded up to a minute
)

var streamFlags = []Flag{
	{Name: "sessions", Help: "sessions, each with a connection and one response after another",
		Value: Whole{1, 1, maxSessions, func(l *sample.Load, n int) { l.Streams = n }}},
	{Name: "tokens", Help: "tokens of a response",
		Value: Whole{defaultTokens, 1, MaxTokens, func(l *sample.Load, n int) {
			set(l, func(o *sample.StreamOptions) { o.Tokens = n })
		}}},
	{Name: "tokens-per-second", Help: "pace of each session",
		Value: Number{defaultPace, minPace, maxPace, func(l *sample.Load, x float64) {
			set(l, func(o *sample.StreamOptions) { o.Pace = x })
		}}},
	nodelayFlag,
}

func streamCheck(l sample.Load) error {
	o := StreamOf(l)
	if took := float64(o.Tokens) / o.Pace; took > maxResponse {
		return &OptionError{
			fmt.Sprintf(
				"--tokens %d at --tokens-per-second %g: a response would take %.3g s, at most %d can be measured",
				o.Tokens, o.Pace, took, maxResponse), "fewer tokens, or a faster pace"}
	}
	return nil
}

// The part of a window beyond the tokens of one response. A window holds a whole response of each
// session and the beginning of the next: seconds of processing at both ends, and the wire's round
// trips for the request, the first and the last token.
const (
	streamSettled = 0.1
	streamTrips   = 4
)

func streamTime(l *sample.Load, w sample.Wire) {
	o := StreamOf(*l)
	l.Warmup = 0.1 + Settled*w.RoundTrip() + Stagger(l.Streams, o.Pace)
	l.Window = float64(o.Tokens)/o.Pace + streamSettled + streamTrips*w.RoundTrip()
}

// StartEvery is the interval between the starts of sessions, so that they do not all end and send
// their next request at once.
const StartEvery = 500 * time.Microsecond

// Stagger returns an upper bound, in seconds, of the time from the load's start to the start of its
// last session.
func Stagger(sessions int, pace float64) float64 {
	if sessions < 2 {
		return 0
	}
	return (time.Duration(sessions) * StartEvery).Seconds() + 1/pace
}

// perLoop is the number of sessions that one thread serves well. More get another thread if it has
// a CPU.
const perLoop = 250

func streamThreads(l sample.Load) int { return (max(1, l.Streams) + perLoop - 1) / perLoop }

var stream = Workload{
	About: "Sessions with a server that sends tokens at a pace, as that of a language model does. It shows how late tokens arrive, " +
		"and whether a reader would notice.",
	Name:      Stream,
	Gist:      "LLM token streaming",
	Flags:     streamFlags,
	fill:      streamFill,
	FilesFor:  "sessions",
	time:      streamTime,
	check:     streamCheck,
	notSliced: because("its tokens are sent at a fixed pace"),
	threads:   streamThreads,
	Primary:   LatencyP50, Noun: "median token delay", Rate: TokenRate, Trips: true, trip: "token",
	cpu:   CPUPerToken,
	words: streamWords,
	Apart: "the delay of each token is between the clocks of both ends, and those of two machines are not one",
	times: timed(TimeGap, TimeFirst, TimeOverrun, TimeLate, TimeTransit, TimeWait), Nodelay: true,
	figures: (*Figures).tokens, work: tokens,
	doubts: streamDoubts, moreSamples: "more --sessions",
}

func streamWords(l sample.Load) string {
	o := StreamOf(l)
	return fmt.Sprintf("stream, %s of %s at %g per second", units.Plural(l.Streams, "session"),
		units.Plural(o.Tokens, "token"), o.Pace)
}

// Times (ns) and counts of stream's client. A token belongs to the window if it was due in it, a
// response or first token if it arrived in it.
const (
	TimeGap   = "gap"         // see GapP50
	TimeFirst = "first_token" // from the request
	// TimeOverrun is a response's time beyond its tokens' pace, which the histogram's three digits
	// would hide in the whole time.
	TimeOverrun = "overrun"
	TimeLate    = "late"    // from when a token was due to its sending
	TimeTransit = "transit" // from a token's sending to its arrival
	TimeWait    = "wait"    // for the client's thread, at most

	CountTokens  = "tokens"  // arrived
	CountGlued   = "glued"   // of them, received with another one of their response
	CountOverdue = "overdue" // not arrived when the load gave up; their delay until then counts
	// waits for space in the socket: tokens (stream, server), system calls (udp, client)
	CountBlocked = "blocked"
)

func tokens(v sample.Visit, _ sample.Load) float64 { return float64(v.Client.Counts[CountTokens]) }

// tokens counts the CPU time of the processes and the proxy only, because a few tokens per second
// use too small a share of the machine's.
func (f *Figures) tokens(v sample.Visit, l sample.Load) {
	o := StreamOf(l)
	f.latency(v)
	f.merged(v)
	if over, ok := f.Values[Overrun]; ok && o.Pace > 0 {
		f.set(ResponseTime, float64(o.Tokens)/o.Pace+over)
	}
	n := tokens(v, l)
	rate := n / v.Client.Window
	if !(rate > 0) {
		return
	}
	f.set(TokenRate, rate)
	f.set(Glued, float64(v.Client.Counts[CountGlued])/n)
	cpu := v.Client.CPU + v.Server.CPU
	if v.Proxy != nil {
		cpu += v.Proxy.CPU
	}
	if cpu > 0 {
		f.set(CPUPerToken, cpu/n)
	}
}

// behind is the lateness, as a share of a token's interval, that more than 99 % of the tokens must
// stay below. Otherwise the load counts as late.
const behind = 0.1

func streamDoubts(s Seen) (out []Doubt) {
	o := StreamOf(s.Load)
	limit := behind / o.Pace
	for _, e := range []struct{ metric, code string }{{LateP99, Behind}, {WaitP99, SlowReader}} {
		if x, ok := s.Merged(e.metric); ok && o.Pace > 0 && x > limit {
			out = append(out, doubt(e.code, x))
		}
	}
	overdue, blocked := int64(0), int64(0)
	for _, v := range s.Visits {
		overdue += v.Client.Counts[CountOverdue]
		blocked += v.Server.Counts[CountBlocked]
	}
	if overdue > 0 {
		out = append(out, Doubt{Code: Overdue, N: int(overdue)})
	}
	if blocked > 0 {
		out = append(out, Doubt{Code: Blocked, N: int(blocked)})
	}
	return out
}
