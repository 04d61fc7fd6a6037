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

// unpace says that the machine's congestion control paces what bulk sends, and in the lab has the
// baseline and bridge measured without that, too. A user who chose a congestion control or tunes is
// left alone.
func (f *runFlags) unpace(e env, r *plan.Request) {
	bulk := slices.ContainsFunc(r.Loads, func(l sample.Load) bool { return l.Kind == workload.Bulk && l.Slice > 0 })
	if !bulk || r.Study != "" || r.Sweep != nil || len(r.Tunes) > 0 || !slices.Equal(r.On, []string{sample.Lab}) {
		return
	}
	cc := congestionHere()
	if !strings.HasPrefix(cc, "bbr") {
		return
	}
	r.Unpaced = unpacedTune
	if !f.quiet && !f.dryRun {
		fmt.Fprintf(e.stderr, "toll: TCP's congestion control is %s here, which paces what it sends: host and bridge are measured with reno, too; --congestion reno measures all with it\n", cc)
	}
}
