package analysis

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/sample"
	"github.com/bridgetoll/bridgetoll/internal/stats"
)

// Names of the metrics of ways to endpoints, beside those that they share with
// stream and query.
const (
	ConnectTime = "connect_time" // to open a connection, the login included
	GapSpread   = "gap_spread"   // by how much the slowest hundredth of the gaps is longer than the median one
	Stalls      = "stalls"       // gaps that are longer than the plan's threshold, in a visit
	Words       = "tokens_per_response"
	WordRate    = "token_rate" // tokens a second of one session, from its first token on
)

// Names of what visits to endpoints count, time and note.
const (
	valueConnect  = "connect"
	valueResponse = "response"
	valueRate     = "token_rate"
	countGlued    = "glued"
	countTokens   = "tokens"
	countStalls   = "stalls"
)

// addWay adds what all endpoints have.
func (s *series) addWay(v sample.Visit) {
	if x, ok := v.Values[valueConnect]; ok {
		s.set(ConnectTime, v.Round, x)
	}
	if x := v.Client.TCP.RTT; x > 0 { // not of a Unix socket
		s.set(RTT, v.Round, x)
	}
}

// addSQL adds a visit of sql, which is query against a real database.
func (s *series) addSQL(v sample.Visit, l sample.Load, busy float64) {
	s.addPages(v, l, busy)
	s.addWay(v)
}

// addChat adds a visit of chat.
func (s *series) addChat(v sample.Visit, _ sample.Load, _ float64) {
	s.addTokenTimes(v)
	s.addWay(v)
	if x, ok := v.Values[valueResponse]; ok {
		s.set(ResponseTime, v.Round, x)
	}
	if x, ok := v.Values[valueRate]; ok {
		s.set(WordRate, v.Round, x)
	}
	if p99, ok := s.values[GapP99][v.Round]; ok {
		s.set(GapSpread, v.Round, p99-s.values[GapP50][v.Round])
	}
	if n := v.Client.Counts[countTokens]; n > 0 {
		s.set(Words, v.Round, float64(n)/float64(max(1, v.Client.Trips)))
		s.set(Glued, v.Round, float64(v.Client.Counts[countGlued])/float64(n))
	}
	s.set(Stalls, v.Round, float64(v.Client.Counts[countStalls]))
}

// gluedShare is the share of the tokens that may come with another one before
// gaps say little.
const gluedShare = 0.1

func (s *series) chatWarnings() []Warning {
	if s.cell.Load != "chat" {
		return nil
	}
	if m, ok := s.metric(Glued); ok && m.Median > gluedShare {
		return []Warning{{"glued", fmt.Sprintf("%.0f %% of the tokens came in one piece with another one: something on the way, or the server, holds them back, and gaps look better than they are", 100*m.Median)}}
	}
	return nil
}

// difference is cell i's time against that of cell b, of an endpoint; nil if
// there is none.
func (j *judged) difference(i, b int, metric string) *Price {
	s := j.series[i]
	if j.file.Header.Plan.Study != sample.StudyEndpoints || unitOf(metric, s.load) != "s" {
		return nil
	}
	d := stats.Summarize(stats.Differences(s.values[metric], j.series[b].values[metric]))
	if d.N == 0 {
		return nil
	}
	level := stats.Median(ordered(s.values[metric]))
	floor := j.floor(groupOf(s.cell), metric)
	return &Price{Unit: "s", Median: d.Median, Low: d.Low, High: d.High, N: d.N,
		Verdict: stats.JudgeDifference(d, level, floor, j.file.Header.Plan.Precision)}
}

// endpointFindings answer what each way adds, and whether it is the way or what
// is at its end.
func (j *judged) endpointFindings(r *Report) []string {
	if len(r.Cells) == 0 {
		return []string{"Nothing was measured."}
	}
	out := []string{"The ways are not toll's: nobody counted the bytes on them."}
	for _, l := range j.file.Header.Plan.Loads {
		switch l.Kind {
		case "chat":
			out = append(out, j.networkOrModel(r)...)
		case "sql":
			out = append(out, j.roundTrips(r, l)...)
		}
	}
	return out
}

// A way's part of the gaps' variation that makes it, or the server, the answer.
const (
	fewShare  = 0.25
	mostShare = 0.5
)

// networkOrModel says whose the variation of the gaps is. What all ways have in
// common is the server's: the steadiest of them shows it. What a way has beyond
// the baseline in the same rounds is the way's.
func (j *judged) networkOrModel(r *Report) []string {
	var named []string
	common := math.Inf(1)
	for _, c := range r.Cells {
		if m, ok := c.Metrics[GapSpread]; ok {
			named = append(named, c.Label())
			common = min(common, m.Median)
		}
	}
	if len(named) == 0 {
		return nil
	}
	question := fmt.Sprintf("Is it the network or the model? The slowest hundredth of the gaps between tokens is %s longer than the median gap",
		milliseconds(common))
	if len(named) == 1 {
		return []string{question + ". With one way, the path's part of it cannot be told from the server's: give another way to the same server."}
	}
	out := []string{question + " on the steadiest way: that much is the server's own."}
	for _, c := range r.Cells {
		m := c.Metrics[GapSpread]
		if c.Baseline || m.Price == nil {
			continue
		}
		out = append(out, fmt.Sprintf("%s: %s", c.Label(), verdictOnGaps(c)))
	}
	return out
}

// verdictOnGaps says whose a way's variation is, and what the way adds otherwise.
func verdictOnGaps(c Cell) string {
	m := c.Metrics[GapSpread]
	d := m.Price
	low, high := d.Low/m.Median, d.High/m.Median
	answer := ""
	switch {
	case d.N < stats.MinJudged:
		answer = "too few rounds to say"
	case !(m.Median > 0):
		answer = "neither: its gaps do not vary"
	case high < fewShare:
		answer = fmt.Sprintf("the model: of the gaps' variation the path's part is at most %.0f %%", math.Ceil(100*max(0, high)))
	case d.Verdict == stats.Costs && low > mostShare:
		answer = fmt.Sprintf("the network: of the gaps' variation %.0f %% or more is the path's", math.Floor(100*low))
	case d.Verdict == stats.Costs:
		answer = fmt.Sprintf("both: of the gaps' variation %.0f to %.0f %% is the path's", 100*max(0, low), 100*min(1, high))
	default:
		answer = fmt.Sprintf("unclear: the path's part of the gaps' variation may be up to %.0f %%; run longer, or with more --tokens", 100*min(1, high))
	}
	var adds []string
	for _, x := range []struct{ metric, name string }{{FirstTokenP50, "the first token"}, {GapP50, "the median gap"}, {ResponseTime, "a response"}} {
		if p := c.Metrics[x.metric].Price; p != nil {
			adds = append(adds, fmt.Sprintf("%s to %s (%s)", p.plain(), x.name, p.Verdict))
		}
	}
	return fmt.Sprintf("%s. It adds %s.", answer, strings.Join(adds, ", "))
}

// plain is the median with its interval, in ms, whatever the verdict.
func (p Price) plain() string {
	return difference(stats.Summary{Median: p.Median, Low: p.Low, High: p.High, N: p.N}) + " ms"
}

// roundTrips says what each way adds to a page, and to each of its queries.
func (j *judged) roundTrips(r *Report, l sample.Load) []string {
	var out []string
	for _, c := range r.Cells {
		p := c.Metrics[LatencyP50].Price
		if c.Baseline || p == nil || p.N < 2 {
			continue
		}
		each := *p
		for _, x := range []*float64{&each.Median, &each.Low, &each.High} {
			*x /= float64(max(1, l.Queries))
		}
		out = append(out, fmt.Sprintf("%s adds %s to a page of %d queries over %s (%s): %s to each.",
			c.Label(), p.plain(), l.Queries, j.file.Header.Plan.Baseline, p.Verdict, each.plain()))
	}
	return out
}

// doubtfulWays are doubts about whether the ways differ, and lead to the same
// server.
func (j *judged) doubtfulWays() []string {
	if j.file.Header.Plan.Study != sample.StudyEndpoints {
		return nil
	}
	var out []string
	paths := j.file.Header.Paths
	for i, a := range paths {
		for _, b := range paths[:i] {
			if a.Dial == b.Dial && a.Facts["url"] == b.Facts["url"] {
				out = append(out, fmt.Sprintf("%s and %s are the same address: %s", b.Mode, a.Mode, a.Dial))
			}
		}
	}
	for _, fact := range []string{"model", "server"} {
		var seen []string
		for _, p := range paths {
			if name := cmp.Or(p.Facts[fact], "none named"); !slices.Contains(seen, name) {
				seen = append(seen, name)
			}
		}
		if len(seen) > 1 {
			out = append(out, fmt.Sprintf("the ways lead to different servers, by their %s: %s", fact, strings.Join(seen, "; ")))
		}
	}
	return out
}
