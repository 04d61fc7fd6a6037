package trace

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/endpoints"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// littleShare is the share of a request from which a part is named.
const littleShare = 0.05

// alone returns a trace, compared with nothing, of each route that has a result.
func alone(j *analysis.Run) (out []Trace) {
	s := newStudy(j, nil)
	for i := range j.Series {
		c := j.Series[i].Cell
		if c.Control || j.Failed(i) {
			continue
		}
		s.cells[i] = tracingOf(j.Series[i].Traced)
		s.costs = costsOf([]tracing{s.cells[i]})
		s.costs.relays = true
		t := s.about(i)
		t.Label = label(c)
		if m, ok := j.Series[i].Metric(workload.LatencyP50); ok {
			t.Levels = []float64{m.Median}
		}
		if t.Refused, t.Early = s.refused(i, i); t.Refused == "" {
			t.Segments = s.segments(i)
			for _, row := range s.rowsOf(i, i) {
				p := rowPart(row)
				cost := func(r *sum) float64 { return s.costs.total(r.events, p.kind) }
				t.Rows = append(t.Rows, Row{Name: row, Mine: s.midMean(i, sample.Traced, p, cost),
					Parts: s.partsOf(row, i, i)})
			}
		}
		t.Findings = slices.Concat(s.replies(i), s.short(&t, i), s.unanswered(i))
		out = append(out, t)
	}
	return out
}

// routeSentence says which parts have what a route adds to another one's requests, or without
// another one where its own time goes, and whether its slowest request is much slower.
func (t Trace) routeSentence() string {
	if t.Refused != "" {
		return t.adds() + ". Where is not known: " + t.Refused + "." + t.longer()
	}
	var say []string
	rows := slices.Clone(t.Rows)
	unsure := t.unsure()
	if t.Against == "" {
		whole := 0.0
		for _, r := range rows {
			whole += *r.Mine
		}
		slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(*b.Mine, *a.Mine) })
		for _, r := range rows {
			if *r.Mine >= littleShare*whole {
				say = append(say, r.Name+" "+workload.Briefly(*r.Mine))
			}
		}
		if unsure != "" {
			return fmt.Sprintf("A request over %s seems to take %s (%s), but %s", t.Label,
				workload.Briefly(whole), strings.Join(say, ", "), unsure)
		}
		return fmt.Sprintf("Over %s a request takes %s: %s.%s", t.Label, workload.Briefly(whole),
			strings.Join(say, ", "), t.slowest())
	}
	if unsure != "" {
		return t.adds() + ". Where is not sure: " + unsure
	}
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Compare(math.Abs(b.Added.Median), math.Abs(a.Added.Median))
	})
	for _, r := range rows {
		if r.Added.Known() && math.Abs(r.Added.Median) >= littleShare*math.Abs(t.Untraced.Median) {
			say = append(say, r.Added.In(r.Added.Value())+" in "+article(r.Name))
		}
	}
	if t.Unattributed.N > 0 {
		say = append(say, t.Unattributed.In(t.Unattributed.Value())+" not attributed")
	}
	return t.adds() + ": " + printable.List(say) + "." + t.slowest()
}

// longer says what helps if the run ended too early, or "".
func (t Trace) longer() string {
	if !t.Early {
		return ""
	}
	return " A longer --budget has them."
}

// unsure says that the cost of tracing is not known to within the largest part that would be named,
// or returns "".
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
	if t.Cost.N == 0 {
		return fmt.Sprintf("what tracing itself adds is not known after %s. A longer --budget tells.",
			units.Plural(t.Trips, "request"))
	}
	if max(t.Cost.High-t.Cost.Median, t.Cost.Median-t.Cost.Low) <= most {
		return ""
	}
	return fmt.Sprintf("tracing itself adds %s, as far as %s tell: that is not known to within the "+
		"largest part. A longer --budget tells.", t.Cost.In(t.Cost.Value()),
		units.Plural(t.Trips, "request"))
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
			out = append(out, Finding{Text: printable.Capital(endpoints.Waited(w, "replies")) + "."})
		}
	}
	return out
}

// unanswered finds requests over UDP that had no reply, and replies of DNS that are errors.
func (s *study) unanswered(i int) (out []Finding) {
	x, lost, codes := s.Series[i], int64(0), map[string]int64{}
	for _, v := range slices.Concat(x.Visits, x.Traced) {
		lost += v.Client.Counts[workload.CountUnanswered]
		for name, n := range v.Client.Counts {
			if code, ok := strings.CutPrefix(name, workload.CountDNSError); ok {
				codes[code] += n
			}
		}
	}
	if lost > 0 {
		out = append(out, Finding{Text: fmt.Sprintf("Over %s, %s had no reply, and are in no figure.",
			label(x.Cell), units.Plural(int(lost), "request"))})
	}
	if errors := endpoints.DNSErrors(codes); errors != "" {
		out = append(out, Finding{Text: fmt.Sprintf("Over %s, replies were errors, whose time counts: "+
			"%s.", label(x.Cell), errors)})
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
		text := fmt.Sprintf("%s is short of CPU: waiting for one takes %s of a request", name,
			workload.Briefly(waits[name]))
		if late {
			text += fmt.Sprintf(", and %s of those around the p99", workload.Briefly(tails[name]))
		}
		if stopped.For > 0 {
			text += fmt.Sprintf(". A CPU limit stopped it for %.2g of %.2g s", stopped.For, stopped.Of)
		} else {
			text += ". No CPU limit stopped it: other programs had the CPU"
		}
		out = append(out, Finding{Text: text + "."})
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

// article returns a row's name as a noun of a sentence.
func article(row string) string {
	if name, ok := strings.CutPrefix(row, rowRelay+" "); ok {
		return name
	}
	return "the " + row
}

// slowest says which part has most of the requests around the p99, and of the slowest one, if these
// took far longer than others.
func (t Trace) slowest() string {
	return t.mostOf(" The p99 is %s, %s of it in %s.", func(s Segment) float64 { return s.Tail }) +
		t.mostOf(" The slowest took %s, %s of them in %s.",
			func(s Segment) float64 { return s.Slowest })
}

// mostOf says what a request took, and the part that has most of it, both directions together; "": it
// did not take far longer than others.
func (t Trace) mostOf(text string, of func(Segment) float64) string {
	const slow = 5 // times the middle
	var whole, usual float64
	var parts []string
	took := map[string]float64{}
	for _, s := range t.Segments {
		whole, usual = whole+of(s), usual+s.MidMean
		name := article(s.Row)
		if _, part, ok := strings.Cut(string(s.Part), sample.InPart); ok {
			name += ", " + part
		}
		took[name] += of(s)
		parts = append(parts, name)
	}
	if whole < slow*usual {
		return ""
	}
	most := slices.MaxFunc(parts, func(a, b string) int { return cmp.Compare(took[a], took[b]) })
	return fmt.Sprintf(text, workload.Briefly(whole), workload.Briefly(took[most]), most)
}
