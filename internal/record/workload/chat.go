package workload

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// Chat is streamed responses of an external LLM server.
const Chat = "chat"

// ChatOf returns the load's options, or the zero value for other kinds.
func ChatOf(l sample.Load) sample.ChatOptions { return options[sample.ChatOptions](l) }

// Metrics of chat that stream lacks.
const (
	GapSlow  = "gap_slow" // mean of the slowest tenth
	Stalls   = "stalls"   // gaps longer than the plan's threshold
	Words    = "tokens_per_response"
	WordRate = "token_rate" // tokens per second of a response, from the request on
	// OtherEvents are events of a stream that were no part of a response, such as pings.
	OtherEvents = "other_events"
)

var chat = Workload{
	About:   "A real server of a language model, over several routes to it: toll stream.",
	Name:    Chat,
	Primary: ResponseTime,
	Noun:    "median response time",
	Rate:    WordRate,
	Trips:   true,
	trip:    "response",
	Foreign: true,
	words:   chatWords,
	outline: chatOutline,
	figures: (*Figures).chat, work: tokens,
	doubts: chatDoubts,
}

func chatWords(l sample.Load) string { return "responses " + asked(l) + sessions(l) }

// asked returns what a response is asked for, such as "of at most 64 tokens".
func asked(l sample.Load) string {
	o := ChatOf(l)
	var parts []string
	if o.Request != "" {
		parts = append(parts, "to "+o.Request)
	}
	if o.Tokens > 0 {
		parts = append(parts, "of at most "+units.Plural(o.Tokens, "token"))
	}
	return strings.Join(parts, ", ")
}

func chatOutline(l sample.Load) string {
	return fmt.Sprintf("chat: sessions: %d, requests of each in a visit: %d, responses %s",
		l.Streams, ChatOf(l).Requests, asked(l))
}

const (
	valueResponse = "response"
	valueRate     = "token_rate"
	countStalls   = "stalls"
)

// Counts of chat's events: those with content, of which CountGlued are a part, and others.
const (
	CountEvents      = "events"
	CountOtherEvents = "other_events"
)

func (f *Figures) chat(v sample.Visit, _ sample.Load) {
	f.merged(v)
	f.endpoint(v)
	if x, ok := v.Values[valueResponse]; ok {
		f.set(ResponseTime, x)
	}
	if x, ok := v.Values[valueRate]; ok {
		f.set(WordRate, x)
	}
	if h := f.Times[TimeGap]; h != nil {
		f.set(GapSlow, slowest(h)/nsPerSecond)
	}
	if n := v.Client.Counts[CountTokens]; n > 0 {
		f.set(Words, float64(n)/float64(max(1, v.Client.Trips)))
		// older files count events as tokens
		f.set(Glued, float64(v.Client.Counts[CountGlued])/
			float64(cmp.Or(v.Client.Counts[CountEvents], n)))
	}
	if n, ok := v.Client.Counts[CountOtherEvents]; ok {
		f.set(OtherEvents, float64(n))
	}
	f.set(Stalls, float64(v.Client.Counts[countStalls]))
}

// slowShare is the share of gaps that count as slow. A visit has too few gaps for a high
// percentile.
const slowShare = 0.1

// slowest returns the mean of the slowest slowShare of the values, in the histogram's unit.
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

// GluedShare is the share of tokens arriving together with another one above which gaps mean
// little.
const GluedShare = 0.1

// followed reports whether packets show when a visit's tokens left the server.
func followed(v *sample.Visit) bool {
	if v.Evidence == nil {
		return false
	}
	_, ok := v.Evidence.Clear()
	return ok
}

func chatDoubts(s Seen) (out []Doubt) {
	if share := s.Median(Glued); share > GluedShare {
		x := doubt(GluedTokens, share)
		if slices.ContainsFunc(s.Visits, followed) {
			x.What = WhyFollows
		}
		out = append(out, x)
	}
	out = append(out, usageDiffers(s)...)
	others, first := int64(0), ""
	for _, v := range s.Visits {
		others += v.Client.Counts[CountOtherEvents]
		first = cmp.Or(first, v.OtherEvent)
	}
	if others > 0 {
		out = append(out, Doubt{Code: OtherEvents, N: int(others), What: first})
	}
	return out
}

// usageDiffers doubts the server's count of tokens if it differs from the number of events with
// content by more than a tenth, and by more than two a response: a server may count the token that
// ends a response, which no event has.
func usageDiffers(s Seen) []Doubt {
	const share, each = 0.1, 2
	tokens, events, responses := 0.0, 0.0, 0.0
	for _, v := range s.Visits {
		tokens += float64(v.Client.Counts[CountTokens])
		events += float64(v.Client.Counts[CountEvents]) // 0 in older files
		responses += float64(v.Client.Trips)
	}
	if apart := math.Abs(tokens - events); events == 0 || apart <= max(share*events, each*responses) {
		return nil
	}
	return []Doubt{{Code: UsageDiffers, Values: map[string]float64{CountTokens: tokens / responses,
		CountEvents: events / responses, WordRate: s.Median(WordRate) * events / tokens}}}
}
