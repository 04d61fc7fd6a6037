package page

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// facts are names with their values.
type facts struct {
	Title string
	Facts []fact
}

type fact struct{ Name, Value string }

func (f *facts) add(name, value string) {
	if value != "" {
		f.Facts = append(f.Facts, fact{name, value})
	}
}

// factsOf returns the environment and the plan of a report.
func factsOf(r judge.Report) []facts {
	base := r.Base()
	out := []facts{environment(base.Environment), plan(base)}
	for _, c := range base.Environment.Cards {
		out = append(out, card(c))
	}
	settings := facts{Title: "Kernel settings"}
	for _, m := range []map[string]string{base.Environment.Sysctls, base.Environment.Mitigations} {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			settings.add(k, m[k])
		}
	}
	if len(settings.Facts) > 0 {
		out = append(out, settings)
	}
	return out
}

func environment(e sample.Environment) facts {
	f := facts{Title: "Machine"}
	f.add("toll", e.Tool)
	f.add("Kernel", e.Kernel)
	f.add("Operating system", e.OS)
	f.add("CPUs", fmt.Sprintf("%d × %s", e.CPUs, e.CPUModel))
	f.add("Allowed CPUs", numbers(e.CPUsAllowed))
	if e.ThreadsPerCore > 0 {
		f.add("Threads per core", fmt.Sprint(e.ThreadsPerCore))
	}
	if e.CgroupCPUs > 0 {
		f.add("CPU limit of the cgroup", three(e.CgroupCPUs)+" CPUs")
	}
	if e.Memory > 0 {
		f.add("Memory", humane(e.Memory, "B"))
	}
	f.add("CPU governor", e.Governor)
	f.add("Virtualization", e.Virtualization)
	f.add("Docker", e.Docker)
	f.add("Congestion control", e.Congestion)
	f.add("Load average before", three(e.LoadAverage))
	f.add("Root", map[bool]string{true: "yes", false: "no: the lab is inside a user namespace"}[e.Root])
	return f
}

func card(c sample.Card) facts {
	f := facts{Title: "Network card " + c.Name + " of " + c.Where}
	f.add("Below", c.Under)
	f.add("Driver", strings.TrimSpace(c.Driver+" "+c.Version))
	f.add("Firmware", c.Firmware)
	f.add("Bus", c.Bus)
	if c.Speed > 0 {
		f.add("Speed", strings.TrimSpace(units.Rate(float64(c.Speed))+" "+c.Duplex))
	}
	if c.MaxSpeed > 0 {
		f.add("Fastest mode", units.Rate(float64(c.MaxSpeed)))
	}
	if c.MTU > 0 {
		f.add("MTU", fmt.Sprint(c.MTU))
	}
	if c.NUMA != nil {
		f.add("NUMA node", fmt.Sprint(*c.NUMA))
	}
	if q := c.Queues; q != nil {
		f.add("Queues", fmt.Sprintf("%d combined, %d receive, %d send", q.Combined, q.Receive, q.Send))
		f.add("Rings", fmt.Sprintf("%d receive, %d send", q.ReceiveRing, q.SendRing))
	}
	var on []string
	for _, k := range slices.Sorted(maps.Keys(c.Offloads)) {
		if c.Offloads[k] {
			on = append(on, k)
		}
	}
	f.add("Offloads", strings.Join(on, " "))
	var to []string
	for _, i := range c.Interrupts {
		to = append(to, fmt.Sprintf("%d %s: CPU %s", i.Number, i.Name, i.CPUs))
	}
	f.add("Interrupts", strings.Join(to, ", "))
	return f
}

func plan(r *analysis.Report) facts {
	p, c := r.Plan, r.Control
	f := facts{Title: "Plan"}
	f.add("Rounds", fmt.Sprintf("%d complete, in %.0f s, ended by %s", p.Rounds, p.Elapsed, p.EndedBy))
	if p.Budget > 0 {
		f.add("Budget", fmt.Sprintf("%g s", p.Budget))
	}
	f.add("Seed", fmt.Sprint(p.Seed))
	f.add("Baseline", p.Baseline)
	if p.Same > 0 {
		f.add("Counts as the same", fmt.Sprintf("± %.3g %%", 100*p.Same))
	}
	if p.Precision > 0 {
		f.add("Precision asked for", fmt.Sprintf("%.3g %%", 100*p.Precision))
	}
	for _, l := range p.Loads {
		f.add("Load "+l.Kind, workload.Of(l).Words(l)+fmt.Sprintf("; warm-up %g s, window %g s", l.Warmup, l.Window))
	}
	f.add("CPUs", strings.TrimSpace(analysis.Pinned(p)+" "+r.Together()))
	if p.Wire != nil {
		f.add("Wire", p.Wire.String())
	}
	for _, g := range c.Groups {
		for _, m := range slices.Sorted(maps.Keys(g.Floor)) {
			if m == analysis.PrimaryOf(sample.Plan{Loads: p.Loads}.LoadOf(g.Load), g.Shape) {
				f.add(strings.Join(strings.Fields("Noise floor "+g.Load+" from "+mode.Placement(g.From).Words()+" "+g.Shape.String()), " "),
					fmt.Sprintf("± %.1f %% (%s against itself)", 100*g.Floor[m], c.Mode))
			}
		}
	}
	return f
}

func numbers(ns []int) string {
	var out []string
	for _, n := range ns {
		out = append(out, fmt.Sprint(n))
	}
	return strings.Join(out, ", ")
}
