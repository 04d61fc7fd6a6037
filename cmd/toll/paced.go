package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// congestionHere returns the machine's TCP congestion control, "" if it is not known. Tests without
// a kernel have their own.
var congestionHere = func() string {
	facts, _ := machine.Machine{}.Read() // what cannot be read is left empty
	return facts.Congestion
}

// unpacedTune is the congestion control that does not pace, which every kernel has.
var unpacedTune = mode.Tunes(mode.Congestion) + "=reno"

// unpace has the baseline and bridge measured in the lab without pacing, too, if the machine's
// congestion control paces what bulk sends. A user who chose a congestion control or tunes is left
// alone.
func unpace(r *plan.Request) {
	bulk := slices.ContainsFunc(r.Loads, func(l sample.Load) bool { return l.Kind == workload.Bulk && l.Slice > 0 })
	if !bulk || r.Study != "" || r.Sweep != nil || len(r.Tunes) > 0 || !slices.Equal(r.On, []string{sample.Lab}) {
		return
	}
	if strings.HasPrefix(congestionHere(), "bbr") {
		r.Unpaced = unpacedTune
	}
}

// paced says that a run's bulk is paced by the given congestion control, and what is measured because
// of that. It returns "" if it is not paced.
func paced(p sample.Plan, congestion string) string {
	if p.Unpaced == "" {
		return ""
	}
	return fmt.Sprintf("TCP's congestion control is %s here, which paces what bulk sends: %s and bridge are also measured with reno; --congestion reno measures all modes with it",
		congestion, p.Baseline)
}
