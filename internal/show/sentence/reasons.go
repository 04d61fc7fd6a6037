package sentence

import (
	"fmt"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/difference"
	"github.com/bridgetoll/bridgetoll/internal/judge/gate"
	"github.com/bridgetoll/bridgetoll/internal/judge/trend"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// FillGate puts the reasons of a gate's report into words.
func FillGate(r *gate.Report) {
	for i := range r.Rules {
		x := &r.Rules[i]
		x.Why = gateReason(x.Reason)
		for k := range x.Checks {
			x.Checks[k].Why = gateReason(x.Checks[k].Reason)
		}
	}
}

func gateReason(x gate.Reason) string {
	switch x.Code {
	case gate.Unmeasured:
		return x.Of + " could not be measured: " + x.Cause
	case gate.NoMode:
		return "the file has no " + x.Of
	case gate.NoMatch:
		return fmt.Sprintf("the file has no %s of %s that matches the sentence", x.Metric, x.Of)
	case gate.NoResult:
		return "it has no result"
	case gate.NoReference:
		return fmt.Sprintf("the file has no result of %s to compare it with", x.Of)
	case gate.NoMetric:
		return "it has no " + x.Metric
	case gate.NoControl:
		return "the run has no control, so its noise is not known"
	case gate.FewRounds:
		return fmt.Sprintf("too few rounds: %d of at least %d", x.Rounds, x.Least)
	case gate.NotConfirmed:
		if x.Seen == gate.Violated {
			return "it holds here, but is violated in " + x.Of
		}
		return fmt.Sprintf("it is violated here, but not in %s (%s)", x.Of, x.Seen)
	}
	return ""
}

// FillDifference puts into words why rows of a difference are in one run only, and why traces have
// no parts.
func FillDifference(r *difference.Report) {
	for _, side := range [][]difference.Lone{r.OnlyOld, r.OnlyNew} {
		for i := range side {
			side[i].Why = loneReason(side[i].Reason)
		}
	}
	for i := range r.Traces {
		r.Traces[i].Words = refusal(r.Traces[i].Refusal)
	}
}

func loneReason(x difference.Reason) string {
	switch x.Code {
	case difference.NotInOld:
		return "not measured in the old run"
	case difference.NotInNew:
		return "not measured in the new run"
	case difference.FailedOld:
		return "no result in the old run"
	case difference.FailedNew:
		return "no result in the new run"
	case difference.OtherLoad:
		return "the load was another one: " + x.Work[0] + ", now " + x.Work[1]
	}
	return ""
}

// Unusual says how a baseline's figure differs from its usual one.
func Unusual(x trend.Moved) string {
	by, unit := legible(x.Unit)
	return fmt.Sprintf("%s has %s %s from %s, %s%s, usually %s", x.Label, units.Digits(by*x.Median),
		unit, mode.Placement(x.From).Words(), measured(x.Quantity),
		told(x.Pin != "", ", on "+analysis.PinWords(x.Pin)), units.Digits(by*x.Usual))
}

// measured returns the load's name, or for programs the metric and the program.
func measured(q trend.Quantity) string {
	if q.Load != workload.Exec {
		return q.Load
	}
	program, _, _ := strings.Cut(q.Work, ", ") // the rest is the time
	return q.Metric + " of " + program
}

func legible(unit string) (by float64, name string) {
	switch unit {
	case "bit/s":
		return 1e-9, "Gbit/s"
	case "s":
		return 1e6, "µs"
	case "1/s":
		return 1, "/s"
	}
	return 1, unit
}
