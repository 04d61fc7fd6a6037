package analysis

import (
	"fmt"
	"math"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/bridgetoll/bridgetoll/internal/sample"
	"github.com/bridgetoll/bridgetoll/internal/stats"
)

// Names of the metrics of stream, in seconds if nothing else is said. The delay
// of its tokens, from when each was due to its arrival, is its latency. The
// median decides its toll: a visit has a few hundred tokens, of whose p99 two or
// three decide, which says more of the machine than of the path. What users
// notice, stalls, is shown over all rounds together.
const (
	FirstTokenP50 = "first_token_p50" // from the request to the first token
	FirstTokenP99 = "first_token_p99"
	GapP50        = "gap_p50" // between the arrivals of two tokens of a response
	GapP99        = "gap_p99"
	GapMax        = "gap_max"          // the longest stall
	ResponseTime  = "response_time"    // median, from the request to the end of the response
	Overrun       = "response_overrun" // what of it is beyond the tokens at their pace
	Glued         = "glued"            // share of the tokens that came together with another one
	TokenRate     = "tokens"           // that arrived, a second
	CPUPerToken   = "cpu_per_token"    // of client, server and proxy
	LateP99       = "late_p99"         // the server's own: from when a token was due until it sent it
	LateMax       = "late_max"
	TransitP50    = "transit_p50" // of the delay what is the path's: from when the token was sent
	TransitP99    = "transit_p99"
	WaitP99       = "wait_p99" // that a token may have waited for the client's own thread
	WaitMax       = "wait_max"
)

// timed are the metrics that are percentiles of a histogram of the load's own.
var timed = map[string]struct {
	times string // its name in the record
	q     float64
}{
	FirstTokenP50: {"first_token", 50}, FirstTokenP99: {"first_token", 99},
	GapP50: {"gap", 50}, GapP99: {"gap", 99}, GapMax: {"gap", 100},
	Overrun: {"overrun", 50},
	LateP99: {"late", 99}, LateMax: {"late", 100},
	TransitP50: {"transit", 50}, TransitP99: {"transit", 99},
	WaitP99: {"wait", 99}, WaitMax: {"wait", 100},
}

// addTokens adds a visit of stream. Its CPU time is that of its processes and of
// a proxy: of the whole machine's, a few tokens a second are too small a share.
func (s *series) addTokens(v sample.Visit, l sample.Load, _ float64) {
	s.addLatency(v)
	s.addTokenTimes(v)
	if over, ok := s.values[Overrun][v.Round]; ok && l.Pace > 0 {
		s.set(ResponseTime, v.Round, float64(l.Tokens)/l.Pace+over)
	}
	n := float64(v.Client.Counts["tokens"])
	rate := n / v.Client.Window
	if !(rate > 0) {
		return
	}
	s.set(TokenRate, v.Round, rate)
	s.set(Glued, v.Round, float64(v.Client.Counts["glued"])/n)
	cpu := v.Client.CPU + v.Server.CPU
	if v.Proxy != nil {
		cpu += v.Proxy.CPU
	}
	if cpu > 0 {
		s.set(CPUPerToken, v.Round, cpu/n)
	}
}

// addTokenTimes adds the percentiles of what only this load times. A histogram that
// cannot be decoded leaves the visit without them.
func (s *series) addTokenTimes(v sample.Visit) {
	decoded := map[string]*hdrhistogram.PackedHistogram{}
	for name, e := range v.Times {
		h := decode(e)
		if h == nil {
			continue
		}
		decoded[name] = h
		if s.times == nil {
			s.times = map[string]*hdrhistogram.Histogram{}
		}
		if s.times[name] == nil {
			s.times[name] = sample.NewHistogram()
		}
		h.MergeInto(s.times[name])
	}
	for name, m := range timed {
		if h := decoded[m.times]; h != nil {
			s.set(name, v.Round, float64(h.ValueAtPercentile(m.q))/nsPerSecond)
		}
	}
}

// mergedTime is the percentile of all rounds' samples together.
func (s *series) mergedTime(metric string) (seconds float64, ok bool) {
	m, is := timed[metric]
	if !is || s.times[m.times] == nil {
		return 0, false
	}
	return float64(s.times[m.times].ValueAtQuantile(m.q)) / nsPerSecond, true
}

func tokens(v sample.Visit, _ sample.Load) float64 { return float64(v.Client.Counts["tokens"]) }

// behind is the share of the time between two tokens by which one in a hundred
// may be late before the load is called so.
const behind = 0.1

// streamWarnings are the doubts about a cell of stream: whether its own ends
// kept up.
func (s *series) streamWarnings(l sample.Load) []Warning {
	var out []Warning
	limit := behind / l.Pace
	ends := []struct{ metric, code, text string }{
		{LateP99, "behind", "the server fell behind its schedule: one token in a hundred was sent more than %s late; take fewer --sessions or a slower pace, or close other programs"},
		{WaitP99, "slow-reader", "the client fell behind: one token in a hundred may have waited more than %s for its thread; take fewer --sessions or a slower pace, or close other programs"},
	}
	for _, e := range ends {
		if x, ok := s.mergedTime(e.metric); ok && l.Pace > 0 && x > limit {
			out = append(out, Warning{e.code, fmt.Sprintf(e.text, milliseconds(x))})
		}
	}
	overdue, blocked := int64(0), int64(0)
	for _, v := range s.visits {
		overdue += v.Client.Counts["overdue"]
		blocked += v.Server.Counts["blocked"]
	}
	if overdue > 0 {
		out = append(out, Warning{"overdue", fmt.Sprintf("%d tokens had not arrived a second after the window: their delay until then counts", overdue)})
	}
	if blocked > 0 {
		out = append(out, Warning{"blocked", fmt.Sprintf("%d times the server's socket was full: the path took tokens more slowly than they were due", blocked)})
	}
	return out
}

// What was published of a bridge: 280 instead of 120 ms for a median response,
// and spikes of 200 to 300 ms in mid-stream (the study
// llm-token-streaming-bridge-vs-host of toll published).
const (
	publishedExtra = 0.160
	publishedSpike = 0.200
)

// streamFinding answers what each mode adds to a response, against the baseline
// of the same rounds, and whether it is what was published.
func (j *judged) streamFinding(from string) string {
	var say, stalls []string
	lowest, highest := math.Inf(1), math.Inf(-1)
	base := ""
	for i, s := range j.series {
		if s.cell.Load != "stream" || s.cell.From != from || s.cell.Control || j.failed(i) {
			continue
		}
		stall, _ := s.mergedTime(GapMax)
		if stall >= publishedSpike {
			stalls = append(stalls, label(s.cell))
		}
		b, ok := j.baseline(i)
		if !ok || b == i || j.failed(b) {
			continue
		}
		d := stats.Summarize(stats.Differences(s.values[ResponseTime], j.series[b].values[ResponseTime]))
		if d.N < 2 {
			continue
		}
		base = label(j.series[b].cell)
		highest, lowest = max(highest, d.High), min(lowest, d.Low)
		say = append(say, fmt.Sprintf("%s %s ms", label(s.cell), difference(d)))
	}
	if len(say) == 0 {
		return ""
	}
	l := j.file.Header.Plan.LoadOf("stream")
	text := fmt.Sprintf("What the path adds to the median response of %d tokens at %g a second, from %s, over %s: %s.",
		l.Tokens, l.Pace, from, base, strings.Join(say, ", "))
	switch {
	case highest < publishedExtra:
		text += " None adds the 160 ms that were published for a bridge"
	case lowest >= publishedExtra:
		text += " Each adds the 160 ms that were published for a bridge, or more"
	default:
		text += " Not each is clearly below the 160 ms that were published for a bridge"
	}
	if len(stalls) == 0 {
		return text + ", and no token made its reader wait for the 200 to 300 ms of its spikes."
	}
	return text + "; a stall as long as its spikes of 200 to 300 ms is seen with " + strings.Join(stalls, ", ") + "."
}

// difference is a difference in ms with its interval.
func difference(d stats.Summary) string {
	const ms = 1e3
	d.Median, d.Low, d.High = d.Median*ms, d.Low*ms, d.High*ms
	n := decimals(d.HalfWidth())
	return fmt.Sprintf("%+.*f %s", n, d.Median, interval(d, n))
}

// milliseconds is a time of a sentence.
func milliseconds(s float64) string {
	const ms = 1e3
	return fmt.Sprintf("%.*f ms", decimals(s*ms/10), s*ms)
}

// streamOwn says how the load itself did: its lateness, which is no path's, and
// its CPU time.
func (j *judged) streamOwn() string {
	var late, lateMax, wait, waitMax, busiest float64
	n := 0
	for i, s := range j.series {
		if s.cell.Load != "stream" || s.cell.Control || j.failed(i) {
			continue
		}
		n++
		for _, x := range []struct {
			to     *float64
			metric string
		}{{&late, LateP99}, {&lateMax, LateMax}, {&wait, WaitP99}, {&waitMax, WaitMax}} {
			if v, ok := s.mergedTime(x.metric); ok {
				*x.to = max(*x.to, v)
			}
		}
		for _, v := range s.visits {
			busiest = max(busiest, v.Client.BusiestCPU, v.Server.BusiestCPU)
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("The load's own share, at most of any row: its server sent tokens %s late (p99; at worst %s), they waited %s for its client's thread (p99; at worst %s), and its busiest thread ran %.0f %% of a window.",
		milliseconds(late), milliseconds(lateMax), milliseconds(wait), milliseconds(waitMax), 100*busiest)
}
