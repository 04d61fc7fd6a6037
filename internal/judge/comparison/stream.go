package comparison

import (
	"fmt"
	"math"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// The published figures of a bridge: a median response of 280 instead of 120 ms, and spikes of 200
// to 300 ms in mid-stream (the study llm-token-streaming-bridge-vs-host of toll published).
const (
	publishedExtra = 0.160
	publishedSpike = 0.200
)

func (j study) streamFinding(from mode.Placement) string {
	var say, stalls []string
	lowest, highest := math.Inf(1), math.Inf(-1)
	base := ""
	for i, s := range j.Series {
		if s.Cell.Load != workload.Stream || s.Cell.From != from || s.Cell.Control || j.Failed(i) {
			continue
		}
		stall, _ := s.Merged(workload.GapMax)
		if stall >= publishedSpike {
			stalls = append(stalls, analysis.Label(s.Cell)+j.onPin(s.Cell))
		}
		b, ok := j.BaselineOf(i)
		if !ok || b == i || j.Failed(b) {
			continue
		}
		d := stats.Summarize(stats.Differences(
			s.Values[workload.ResponseTime], j.Series[b].Values[workload.ResponseTime]))
		if d.N < 2 {
			continue
		}
		base = analysis.Label(j.Series[b].Cell)
		highest, lowest = max(highest, d.High), min(lowest, d.Low)
		say = append(say, fmt.Sprintf("%s%s %s ms", analysis.Label(s.Cell), j.onPin(s.Cell),
			difference(d)))
	}
	if len(say) == 0 {
		return ""
	}
	o := workload.StreamOf(j.File.Header.Plan.Loads.Of(workload.Stream))
	text := fmt.Sprintf(
		"The path adds to the median response of %d tokens at %g per second, from %s, over %s: %s.",
		o.Tokens, o.Pace, from.Words(), base, strings.Join(say, ", "))
	switch {
	case highest < publishedExtra:
		text += " None adds 160 ms, as a study published for a bridge"
	case lowest >= publishedExtra:
		text += " Each adds 160 ms or more, as a study published for a bridge"
	default:
		text += " Not all are clearly below 160 ms, which a study published for a bridge"
	}
	if len(stalls) == 0 {
		return text + ", and no token was late by 200 to 300 ms, as in that study."
	}
	return text + "; tokens were late by 200 to 300 ms, as in that study, with " +
		strings.Join(stalls, ", ") + "."
}

func difference(d stats.Summary) string {
	const ms = 1e3
	d.Median, d.Low, d.High = d.Median*ms, d.Low*ms, d.High*ms
	n := analysis.Decimals(d.HalfWidth())
	return fmt.Sprintf("%+.*f %s", n, d.Median, analysis.Interval(d, n))
}

func (j study) streamOwn() string {
	var late, lateMax, wait, waitMax, busiest float64
	n := 0
	for i, s := range j.Series {
		if s.Cell.Load != workload.Stream || s.Cell.Control || j.Failed(i) {
			continue
		}
		n++
		for _, x := range []struct {
			to     *float64
			metric string
		}{{&late, workload.LateP99}, {&lateMax, workload.LateMax}, {&wait, workload.WaitP99},
			{&waitMax, workload.WaitMax}} {
			if v, ok := s.Merged(x.metric); ok {
				*x.to = max(*x.to, v)
			}
		}
		for _, v := range s.Visits {
			busiest = max(busiest, v.Client.BusiestCPU, v.Server.BusiestCPU)
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(
		"The load's own delays, the largest of any row: its server sent tokens %s late (p99; at worst %s), they waited %s for its client's thread (p99; at worst %s), and its busiest thread ran %.0f %% of a window.",
		workload.Milliseconds(late), workload.Milliseconds(lateMax), workload.Milliseconds(wait),
		workload.Milliseconds(waitMax), 100*busiest)
}
