package comparison

import (
	"math"

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

// streamed returns what the paths from a placement add to the median response, and whether tokens
// were late. With fewer rounds than a verdict needs, what they add is not judged.
func (j study) streamed(r *analysis.Report, from mode.Placement) []analysis.Finding {
	f := analysis.Finding{Code: TokensUnclear, From: from}
	late := analysis.Finding{Code: TokensInTime, From: from}
	lowest, highest, least := math.Inf(1), math.Inf(-1), math.MaxInt
	for i, s := range j.Series {
		if s.Cell.Load != workload.Stream || s.Cell.From != from || s.Cell.Control || j.Failed(i) {
			continue
		}
		if stall, _ := s.Merged(workload.GapMax); stall >= publishedSpike {
			late.Code, late.Cells = TokensLate, append(late.Cells, r.At(s.Cell))
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
		f.What = analysis.Label(j.Series[b].Cell)
		highest, lowest, least = max(highest, d.High), min(lowest, d.Low), min(least, d.N)
		f.Cells = append(f.Cells, r.At(s.Cell))
		f.Prices = append(f.Prices, analysis.Price{Unit: "s", Median: d.Median, Low: d.Low,
			High: d.High, N: d.N})
	}
	switch {
	case len(f.Cells) == 0:
		return nil
	case least < stats.MinJudged:
	case highest < publishedExtra:
		f.Code = TokensFaster
	case lowest >= publishedExtra:
		f.Code = TokensSlower
	}
	return []analysis.Finding{f, late}
}

// ownDelays returns the largest delays of the stream's load itself in any row, or nil without one.
func (j study) ownDelays() []analysis.Finding {
	values := map[string]float64{}
	for i, s := range j.Series {
		if s.Cell.Load != workload.Stream || s.Cell.Control || j.Failed(i) {
			continue
		}
		for _, metric := range []string{workload.LateP99, workload.LateMax, workload.WaitP99,
			workload.WaitMax} {
			v, _ := s.Merged(metric)
			values[metric] = max(values[metric], v)
		}
		for _, v := range s.Visits {
			values[BusiestCPU] = max(values[BusiestCPU], v.Client.BusiestCPU, v.Server.BusiestCPU)
		}
	}
	if len(values) == 0 {
		return nil
	}
	return []analysis.Finding{{Code: OwnDelays, Values: values}}
}
