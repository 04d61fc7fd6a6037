package trace

import (
	"fmt"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// answer returns one sentence for each cell, or nil if there are no traces.
func answer(r *Report) *analysis.Answer {
	if len(r.Traces) == 0 {
		return nil
	}
	a := &analysis.Answer{Question: "Where do the microseconds go?", Text: []string{}}
	for _, t := range r.Traces {
		if t.Control() {
			continue
		}
		a.Add(t.Sentence())
	}
	return a
}

// Control reports whether t compares the control with its baseline, where any difference is noise.
func (t Trace) Control() bool { return strings.HasSuffix(t.Label, controlled) }

// Sentence returns a sentence with what the cell adds, and how much of it is in the path, in
// wake-ups, in a relay and not attributed.
func (t Trace) Sentence() string {
	if t.Route() {
		return t.routeSentence()
	}
	if t.Refused != "" {
		return fmt.Sprintf("%s. Where is not known: %s.%s", t.adds(), t.Refused, t.longer())
	}
	parts := []string{t.Path.In(t.Path.Value()) + " in the path",
		t.WakeUps.Value() + " in wake-ups"}
	if t.Unattributed.N > 0 {
		parts = append(parts, t.Unattributed.Value()+" not attributed")
	}
	if t.Relay.N > 0 {
		parts = append(parts, t.Relay.Value()+" in the relay, which tracing slows")
	}
	return t.adds() + ": " + printable.List(parts) + "."
}

func (t Trace) adds() string {
	p, trip := t.Untraced, t.Against+"'s round trip"
	if t.Route() {
		trip = "a request over " + t.Against
	}
	switch {
	case t.Against == "" && len(t.Levels) > 0:
		return "A request over " + t.Label + " takes " + workload.Briefly(t.Levels[0])
	case t.Against == "":
		return "How long a request over " + t.Label + " takes was not measured"
	case p.N == 0:
		return "What " + t.Label + " adds to " + trip + " was not measured"
	case p.Verdict == stats.Costs:
		return fmt.Sprintf("%s adds %s to %s", t.Label, p.Amount(), trip)
	case p.Verdict == stats.Gains:
		return fmt.Sprintf("%s takes %s off %s", t.Label, p.Amount(), trip)
	case p.Verdict == stats.Nothing:
		return fmt.Sprintf("%s adds nothing measurable to %s (at most %s)", t.Label, trip,
			p.In(p.Most()))
	}
	return fmt.Sprintf("What %s adds to %s is not clear yet (%s)", t.Label, trip, p.In(p.Value()))
}

const routesUncounted = "These routes are outside toll's control: their bytes are not counted, but " +
	"followed from process to process."

func findings(r *Report) []string {
	if len(r.Cells) == 0 {
		return []string{"Nothing was measured."}
	}
	out := []string{analysis.Witnessed(r.Base())}
	if r.Traces != nil && r.Traces[0].Route() {
		out = []string{routesUncounted}
	}
	for _, t := range r.Traces {
		if t.Control() && t.Refused == "" && t.Route() {
			ends := "the client and the server"
			if t.Client != "" {
				ends = "the server"
			}
			out = append(out, fmt.Sprintf("%s measured once more differs from itself by %s in the "+
				"network and the server's kernel and %s in %s: that much is noise.", t.Against,
				t.Path.In(t.Path.Value()), t.Ends.In(t.Ends.Value()), ends))
		} else if t.Control() && t.Refused == "" {
			out = append(out, fmt.Sprintf("A second connection over %s's path differs from the first by "+
				"%s in the path and %s in wake-ups: that much is noise.", t.Against,
				t.Path.In(t.Path.Value()), t.WakeUps.In(t.WakeUps.Value())))
		}
	}
	return out
}
