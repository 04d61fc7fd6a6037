package workload

import (
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Batch is unstreamed responses of an external LLM server. Its options are ChatOptions.
const Batch = "batch"

var batch = Workload{
	About:   "A real server of a language model that sends whole responses, when they are finished: toll stream --load batch.",
	Name:    Batch,
	Primary: ResponseTime,
	Noun:    "median time to a whole response",
	Rate:    WordRate,
	Trips:   true,
	trip:    "response",
	Foreign: true,
	words:   batchWords,
	outline: batchOutline,
	figures: (*Figures).batch, work: roundTrips,
}

func batchWords(l sample.Load) string {
	return "whole responses " + asked(l) + ", not streamed" + sessions(l)
}

func batchOutline(l sample.Load) string {
	return fmt.Sprintf(
		"batch: sessions: %d, requests of each in a visit: %d, whole responses %s, not streamed",
		l.Streams, ChatOf(l).Requests, asked(l))
}

// batch does not require token counts, because some servers send none.
func (f *Figures) batch(v sample.Visit, _ sample.Load) {
	f.endpoint(v)
	if x, ok := v.Values[valueResponse]; ok {
		f.set(ResponseTime, x)
	}
	if x, ok := v.Values[valueRate]; ok {
		f.set(WordRate, x)
	}
	if n := v.Client.Counts[CountTokens]; n > 0 {
		f.set(Words, float64(n)/float64(max(1, v.Client.Trips)))
	}
}
