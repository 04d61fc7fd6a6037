package trace

import (
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// alone returns a trace, compared with nothing, of each route that has a result.
func alone(j *analysis.Run) (out []Trace) {
	s := newStudy(j, nil)
	var cells [][2]int
	for i := range j.Series {
		c := j.Series[i].Cell
		if c.Control || j.Failed(i) {
			continue
		}
		s.cells[i] = tracingOf(j.Series[i].Traced)
		s.costs = costsOf([]tracing{s.cells[i]})
		s.costs.relays, s.costs.first = true, s.firstCapture([]int{i})
		t := s.about(i)
		t.Label = label(c)
		if m, ok := j.Series[i].Metric(workload.LatencyP50); ok {
			t.Levels = []float64{m.Median}
		}
		if t.refuse(s.refused(i, i)); t.Refused == "" {
			t.Segments = s.segments(i)
			for _, row := range s.rowsOf(i, i) {
				p := rowPart(row)
				cost := func(r *sum) float64 { return s.costs.total(r.events, p.kind) }
				mine := s.midMean(i, sample.Traced, p, cost)
				if mine != nil { // else only epochs with copies have the row
					t.Rows = append(t.Rows, Row{Name: row, Mine: mine, Parts: s.partsOf(row, i, i)})
				}
			}
		}
		t.Findings = s.causesOf(&t, i, nil)
		out, cells = append(out, t), append(cells, [2]int{i, i})
	}
	tellOnce(out, cells)
	return out
}

// replies finds replies that often wait in the server's TCP, and long.
func (s *study) replies(i int) (out []Finding) {
	const fewReplies = 20 // of which one that waits is mentioned
	var all []sample.EvidenceWait
	trips := 0
	for _, x := range s.cells[i].by[sample.Traced] {
		trips += x.Trips
		for _, w := range x.Waits {
			k := slices.IndexFunc(all, func(o sample.EvidenceWait) bool { return o.Cause == w.Cause })
			if k < 0 {
				k = len(all)
				all = append(all, sample.EvidenceWait{Cause: w.Cause})
			}
			all[k].Tokens, all[k].Sum = all[k].Tokens+w.Tokens, all[k].Sum+w.Sum
		}
	}
	for _, w := range all {
		if w.Tokens*fewReplies >= trips {
			out = append(out, Finding{Finding: analysis.Finding{Code: RepliesWait, What: w.Cause,
				N: w.Tokens, Values: map[string]float64{Took: w.Sum}}})
		}
	}
	return out
}

// unanswered finds requests that had no reply, and replies of DNS and HTTP that are not what was
// asked for.
func (s *study) unanswered(i int) (out []Finding) {
	x, lost := s.Series[i], int64(0)
	codes, statuses := map[string]float64{}, map[string]float64{}
	for _, v := range slices.Concat(x.Visits, x.Traced) {
		lost += v.Client.Counts[workload.CountUnanswered]
		for name, n := range v.Client.Counts {
			if code, ok := strings.CutPrefix(name, workload.CountDNSError); ok {
				codes[code] += float64(n)
			}
			if status, ok := strings.CutPrefix(name, workload.CountHTTPStatus); ok {
				statuses["of HTTP status "+status] += float64(n)
			}
		}
	}
	if lost > 0 {
		out = append(out, Finding{Finding: analysis.Finding{Code: NoReply, What: label(x.Cell),
			N: int(lost)}})
	}
	if len(codes) > 0 {
		out = append(out, Finding{Finding: analysis.Finding{Code: ErrorReplies, What: label(x.Cell),
			Values: codes}})
	}
	if len(statuses) > 0 {
		out = append(out, Finding{Finding: analysis.Finding{Code: OtherReplies, What: label(x.Cell),
			Values: statuses}})
	}
	return out
}

// short finds relays and servers that are short of CPU.
func (s *study) short(t *Trace, i int) (out []Finding) {
	const (
		least = 20e-6 // s; handing over a CPU takes less
		much  = 0.2   // of a request
		half  = 0.5   // of the requests around the p99
		slow  = 3     // middles, from which the p99 is slow
	)
	var usual, tail float64
	waits, tails := map[string]float64{}, map[string]float64{}
	var names []string
	for _, g := range t.Segments {
		usual, tail = usual+g.MidMean, tail+g.Tail
		if g.Part == sample.PartRelayedWait || g.Part == sample.PartServerWait {
			waits[g.Hop], tails[g.Hop] = waits[g.Hop]+g.MidMean, tails[g.Hop]+g.Tail
			if !slices.Contains(names, g.Hop) {
				names = append(names, g.Hop)
			}
		}
	}
	for _, name := range names {
		stopped := s.stopped(i, name)
		late := tail >= slow*usual && tails[name] >= max(least, half*tail)
		if waits[name] < max(least, much*usual) && !late {
			continue
		}
		f := analysis.Finding{Code: OthersHaveCPU, What: name,
			Values: map[string]float64{Took: waits[name]}}
		if late {
			f.Values[Tail] = tails[name]
		}
		if stopped.For > 0 {
			f.Code, f.Values[Stopped], f.Values[Window] = StoppedByLimit, stopped.For, stopped.Of
		}
		out = append(out, Finding{Finding: f})
	}
	return out
}

// stopped returns for how long CPU limits stopped a process in the epochs traced once.
func (s *study) stopped(i int, process string) (out sample.Stopped) {
	for _, x := range s.cells[i].by[sample.Traced] {
		for _, y := range x.Stopped {
			if y.Process == process {
				out.For, out.Of = out.For+y.For, out.Of+y.Of
			}
		}
	}
	return out
}
