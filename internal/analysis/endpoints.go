package analysis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/bridgetoll/bridgetoll/internal/sample"
	"github.com/bridgetoll/bridgetoll/internal/stats"
)

// Names of the metrics of ways to endpoints, beside those that they share with
// stream and query.
const (
	ConnectTime = "connect_time" // to open a connection, the login included
	GapSlow     = "gap_slow"     // mean of the slowest tenth of the gaps
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
	timeGap       = "gap"
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
	if h := decode(v.Times[timeGap]); h != nil {
		s.set(GapSlow, v.Round, slowest(h)/nsPerSecond)
	}
	if n := v.Client.Counts[countTokens]; n > 0 {
		s.set(Words, v.Round, float64(n)/float64(max(1, v.Client.Trips)))
		s.set(Glued, v.Round, float64(v.Client.Counts[countGlued])/float64(n))
	}
	s.set(Stalls, v.Round, float64(v.Client.Counts[countStalls]))
}

// slowShare is the share of the gaps that count as slow. A visit has too few for
// a percentile further out: the last of a hundred is just the longest.
const slowShare = 0.1

// slowest is the mean of the slowest of what h holds, in its unit.
func slowest(h *hdrhistogram.PackedHistogram) float64 {
	want := max(1, int64(slowShare*float64(h.TotalCount())))
	n, sum := int64(0), 0.0
	all := sample.NewHistogram()
	h.MergeInto(all)
	bars := all.Distribution()
	for i := len(bars) - 1; i >= 0 && n < want; i-- {
		k := min(bars[i].Count, want-n)
		n += k
		sum += float64(k) * float64(bars[i].From+bars[i].To) / 2
	}
	return sum / float64(n)
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
