package analysis

import (
	"cmp"
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// A path with this many bad visits is broken and has no result. A visit is bad if it failed, or if
// its hops contradicted the path or could not be read. A starved visit is not bad.
const (
	brokenShare = 0.2 // exceeded by the share of bad visits, if more than one, or of contradicted ones
	brokenRun   = 3   // bad in a row, even if the path came back
	brokenEnd   = 2   // bad at the end: the engine repeats a bad last visit
)

type trouble struct {
	good, bad, contradicted int
	starved                 int
	run, longest            int          // bad visits in a row: at the end, and the longest run
	since                   sample.Visit // first of the bad visits at the end
	worst, worstEnd         sample.Visit // first and last of the longest bad run
	last                    sample.Visit // last visit without a result, starved ones included
	theirs                  bool         // a third party's endpoint: earlier answers stay valid
	changes                 []sample.Change
}

func troublesOf(f *sample.File) []trouble {
	out := make([]trouble, len(f.Header.Plan.Cells))
	for i := range out {
		out[i].theirs = f.Header.Plan.Foreign()
	}
	for _, v := range f.Visits {
		if f.Header.Plan.Mesh == nil {
			out[v.Cell].add(v, f.Header.Plan.Counts(v))
		}
	}
	for _, c := range f.Changes {
		for _, i := range c.Cells {
			out[i].changes = append(out[i].changes, c)
		}
	}
	return out
}

func (t *trouble) add(v sample.Visit, counts bool) {
	if counts {
		t.good++
		t.run = 0
		return
	}
	t.last = v
	if v.Starved {
		t.starved++
		return
	}
	t.bad++
	if v.Failure == "" {
		t.contradicted++
	}
	if t.run++; t.run == 1 {
		t.since = v
	}
	if t.run > t.longest {
		t.longest, t.worst, t.worstEnd = t.run, t.since, v
	}
}

func (t trouble) fatal() bool {
	if t.theirs {
		return t.good == 0
	}
	return len(t.changes) > 0 || t.good == 0 || t.run >= brokenEnd || t.longest >= brokenRun ||
		t.often()
}

func (t trouble) broke() bool { return t.theirs && t.good > 0 && t.run >= brokenEnd }

func (t trouble) often() bool {
	share := brokenShare * float64(t.good+t.bad)
	return t.bad > 1 && float64(t.bad) > share || float64(t.contradicted) > share
}

// Failed reports whether cell i has no result.
func (j *Run) Failed(i int) bool { return j.troubles[i].fatal() }

func (j *Run) failure(i int) Failed {
	c, t := j.Series[i].Cell, j.troubles[i]
	f := Failed{Cell: c.Named(), Evidence: seen(t.last)}
	switch {
	case len(t.changes) > 0 && lostEnd(t.changes) != nil:
		c := lostEnd(t.changes)
		f.Reason, f.Evidence = "an end of its path was lost",
			fmt.Sprintf("%s: %s, since round %d", c.Where, c.Is, c.Round+1)
	case len(t.changes) > 0:
		f.Reason, f.Evidence = "its path was changed while it was measured", sayChanges(t.changes)
	case t.good+t.bad+t.starved == 0:
		f.Reason = "it was never visited"
		if j.File.End.Reason == sample.EndedByBudget {
			f.Evidence = "the budget ended before that"
		}
	case t.good == 0 && t.last.Failure == "":
		f.Reason = "the path was not witnessed"
	case t.good == 0:
		f.Reason = "the visit failed"
	case t.run >= brokenEnd:
		f.Reason = fmt.Sprintf(
			"the path broke in round %d, %.1f s after the start, and did not come back",
			t.since.Round+1, t.since.At)
		f.Evidence = seen(t.since)
	case t.longest >= brokenRun:
		f.Reason = fmt.Sprintf(
			"the path was broken from round %d to round %d, %.1f s to %.1f s after the start",
			t.worst.Round+1, t.worstEnd.Round+1, t.worst.At, t.worstEnd.At)
		f.Evidence = seen(t.worst)
	default:
		f.Reason = fmt.Sprintf("%d of %d visits failed or %s not witnessed", t.bad, t.good+t.bad,
			units.Agree(t.bad, "was", "were"))
	}
	return f
}

// TooBusyFor reports whether cell i has no result because the machine was too busy.
func (j *Run) TooBusyFor(i int) bool {
	t := j.troubles[i]
	return t.good == 0 && len(t.changes) == 0 && t.last.TooBusy()
}

// Failure returns, in one line, why cell i has no result.
func (j *Run) Failure(i int) string { return j.failure(i).Why() }

// Why returns the reason with its evidence, in one line.
func (f Failed) Why() string {
	if f.Evidence == "" {
		return f.Reason
	}
	return f.Reason + ": " + f.Evidence
}

func seen(v sample.Visit) string { return cmp.Or(v.Failure, v.Witness.Evidence) }

func (j *Run) forgiven(i int) (Warning, bool) {
	t := j.troubles[i]
	if t.bad == 0 && t.starved > 0 {
		starved, all := map[int]bool{}, map[int]bool{}
		for _, v := range j.File.Visits {
			all[v.Round] = true
			if v.Starved {
				starved[v.Round] = true
			}
		}
		f := Finding{Code: FailedRounds, N: len(starved), Of: len(all)}
		if !t.last.TooBusy() {
			f.Why = t.last.Failure
		}
		return Warning{Code: FailedVisits, Found: &f}, true
	}
	if t.broke() {
		return warn(Finding{Code: BrokenRoute, N: t.since.Round + 1, Why: seen(t.since),
			Values: map[string]float64{BrokenRoute: t.since.At}}), true
	}
	n := t.bad + t.starved
	return warn(Finding{Code: FailedVisits, N: n, Of: n + t.good, Why: seen(t.last),
		Values: map[string]float64{FailedVisits: float64(t.last.Round + 1)}}), n > 0
}
