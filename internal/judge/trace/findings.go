package trace

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// The codes of findings on traces. Rows has the index of the trace.
const (
	Added           = "trace-added"            // what a mode adds, and in which parts
	NotDivided      = "trace-not-divided"      // because of the Refusal
	TooShort        = "trace-too-short"        // for the parts: nothing is wrong
	RequestAdded    = "trace-request-added"    // the same of a route
	RequestUnsure   = "trace-request-unsure"   // what a route adds; its parts are not sure
	RequestTakes    = "trace-request-takes"    // the time of a request, and its parts
	RequestSeems    = "trace-request-seems"    // the same, not sure
	CostUnknown     = "trace-cost-unknown"     // why the parts are not sure: of the cost nothing is known
	CostUnsure      = "trace-cost-unsure"      // or not to within the largest part
	TailIn          = "trace-p99-in"           // most of the requests around the p99 is in Why of row What
	SlowestIn       = "trace-slowest-in"       // and of the slowest one
	ControlDiffers  = "trace-control-differs"  // by noise
	RepeatedDiffers = "trace-repeated-differs" // by noise, of a route measured once more
	Followed        = "trace-followed"         // instead of witnessed
)

// Keys of findings' Values, in s, except for Share.
const (
	Took  = "took_s"
	Whole = "whole_s" // that Took is a part of
	Tail  = "p99_s"   // as Took, of the requests around the p99
	Share = "share"
)

// littleShare is the share of a request from which a part is named.
const littleShare = 0.05

// Findings returns what the traces show.
func Findings(r *Report) (out []analysis.Finding) {
	first := analysis.Finding{Code: analysis.AllWitnessed}
	switch {
	case len(r.Cells) == 0:
		first.Code = analysis.NothingMeasured
	case len(r.Traces) > 0 && r.Traces[0].Route():
		first.Code = Followed
	}
	for i, t := range r.Traces {
		codes := t.answers()
		switch {
		case !t.Control():
		case t.Refused != "" || len(r.Cells) == 0:
			codes = nil
		case t.Route():
			codes = []string{RepeatedDiffers}
		default:
			codes = []string{ControlDiffers}
		}
		for _, code := range codes {
			out = append(out, analysis.Finding{Code: code, Rows: []int{i}})
		}
		if len(codes) == 1 && (codes[0] == RequestAdded || codes[0] == RequestTakes) {
			out = append(out, t.slowest(i)...)
		}
	}
	return append(out, first)
}

// Control reports whether t compares the control with its baseline, where any difference is noise.
func (t Trace) Control() bool { return strings.HasSuffix(t.Label, controlled) }

// answers returns the codes of the findings on what t explains.
func (t Trace) answers() []string {
	unsure := t.unsure()
	switch {
	case t.Refused != "" && t.Early:
		return []string{NotDivided, TooShort}
	case t.Refused != "":
		return []string{NotDivided}
	case !t.Route():
		return []string{Added}
	case t.Against == "" && unsure != "":
		return []string{RequestSeems, unsure}
	case t.Against == "":
		return []string{RequestTakes}
	case unsure != "":
		return []string{RequestUnsure, unsure}
	}
	return []string{RequestAdded}
}

// unsure returns why the cost of tracing is not known to within the largest part that would be
// named, or "".
func (t Trace) unsure() string {
	most := 0.0
	for _, r := range t.Rows {
		switch {
		case t.Against != "":
			most = max(most, math.Abs(r.Added.Median))
		case r.Mine != nil:
			most = max(most, *r.Mine)
		}
	}
	switch {
	case t.Cost.N == 0:
		return CostUnknown
	case max(t.Cost.High-t.Cost.Median, t.Cost.Median-t.Cost.Low) > most:
		return CostUnsure
	}
	return ""
}

// Named returns the rows that have a substantial part of what t explains, the largest first.
func (t Trace) Named() []Row {
	whole, size := math.Abs(t.Untraced.Median), func(r Row) float64 { return math.Abs(r.Added.Median) }
	if t.Against == "" {
		whole, size = t.Request(), func(r Row) float64 { return *r.Mine }
	}
	rows := slices.DeleteFunc(slices.Clone(t.Rows), func(r Row) bool {
		return size(r) < littleShare*whole || t.Against != "" && !r.Added.Known()
	})
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(size(b), size(a)) })
	return rows
}

// Request returns the sum of the rows of a route that is compared with none, in s.
func (t Trace) Request() (sum float64) {
	for _, r := range t.Rows {
		sum += *r.Mine
	}
	return sum
}

// slowest finds the part that has most of the requests around the p99, and of the slowest one, if
// these took far longer than others.
func (t Trace) slowest(i int) (out []analysis.Finding) {
	const slow = 5 // times the middle
	for _, of := range []struct {
		code string
		time func(Segment) float64
	}{{TailIn, func(s Segment) float64 { return s.Tail }},
		{SlowestIn, func(s Segment) float64 { return s.Slowest }}} {
		var whole, usual float64
		var parts [][2]string // of both directions together
		took := map[[2]string]float64{}
		for _, s := range t.Segments {
			whole, usual = whole+of.time(s), usual+s.MidMean
			_, part, _ := strings.Cut(string(s.Part), sample.InPart)
			key := [2]string{s.Row, part}
			took[key] += of.time(s)
			parts = append(parts, key)
		}
		if whole < slow*usual {
			continue
		}
		most := slices.MaxFunc(parts, func(a, b [2]string) int { return cmp.Compare(took[a], took[b]) })
		out = append(out, analysis.Finding{Code: of.code, Rows: []int{i}, What: most[0], Why: most[1],
			Values: map[string]float64{Took: took[most], Whole: whole}})
	}
	return out
}
