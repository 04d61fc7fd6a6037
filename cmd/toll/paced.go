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

// congestionHere returns the machine's TCP congestion control, "" if it is unknown. Tests without a
// kernel replace it.
var congestionHere = func() string {
	facts, _ := machine.Machine{}.Read() // what cannot be read is left empty
	return facts.Congestion
}

// unpacedTune is a congestion control that does not pace and that every kernel has.
var unpacedTune = mode.Tunes(mode.Congestion) + "=reno"

// unpace makes the lab also measure the baseline and bridge without pacing, if the machine's
// congestion control paces what bulk sends. It changes nothing if the user chose a congestion
// control or tunes.
func unpace(r *plan.Request) {
	bulk := slices.ContainsFunc(r.Loads, func(l sample.Load) bool { return l.Kind == workload.Bulk && l.Slice > 0 })
	if !bulk || r.Study != "" || r.Sweep != nil || len(r.Tunes) > 0 || !slices.Equal(r.On, []string{sample.Lab}) {
		return
	}
	if strings.HasPrefix(congestionHere(), "bbr") {
		r.Unpaced = unpacedTune
	}
}

// paced says that a run's bulk is paced by the given congestion control, and what is measured
// because of that. It returns "" if bulk is not paced.
func paced(p sample.Plan, congestion string) string {
	if p.Unpaced == "" {
		return ""
	}
	return fmt.Sprintf("TCP's congestion control is %s here, which paces what bulk sends: %s and bridge are also measured with reno; --congestion reno measures all modes with it",
		congestion, p.Baseline)
}
