package chart

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/difference"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

func facts(base *analysis.Report) []document.FactGroup {
	out := []document.FactGroup{environment(base.Environment), plan(base)}
	for _, c := range base.Environment.Cards {
		out = append(out, card(c))
	}
	return append(out, kernelSettings(base.Environment)...)
}

// kernelSettings returns one group, or none if no setting is known.
func kernelSettings(e sample.Environment) []document.FactGroup {
	settings := document.FactGroup{Title: "Kernel settings"}
	for _, m := range []map[string]string{e.Sysctls, e.Mitigations} {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			settings.Add(k, m[k])
		}
	}
	if len(settings.Facts) == 0 {
		return nil
	}
	return []document.FactGroup{settings}
}

func environment(e sample.Environment) document.FactGroup {
	f := document.FactGroup{Title: "Machine"}
	f.Add("toll", e.Tool)
	f.Add("Kernel", e.Kernel)
	f.Add("Operating system", e.OS)
	f.Add("CPUs", fmt.Sprintf("%d × %s", e.CPUs, e.CPUModel))
	f.Add("Allowed CPUs", numbers(e.CPUsAllowed))
	if e.ThreadsPerCore > 0 {
		f.Add("Threads per core", fmt.Sprint(e.ThreadsPerCore))
	}
	if e.CgroupCPUs > 0 {
		f.Add("CPU limit of the cgroup", threeDigits(e.CgroupCPUs)+" CPUs")
	}
	if e.Memory > 0 {
		f.Add("Memory", humane(e.Memory, "B"))
	}
	f.Add("CPU governor", e.Governor)
	f.Add("Virtualization", e.Virtualization)
	f.Add("Docker", e.Docker)
	f.Add("Congestion control", e.Congestion)
	f.Add("Load average before", threeDigits(e.LoadAverage))
	f.Add("Root", map[bool]string{true: "yes",
		false: "no: the lab is inside a user namespace"}[e.Root])
	return f
}

func card(c sample.Card) document.FactGroup {
	f := document.FactGroup{Title: "Network card " + c.Name + " of " + c.Where}
	f.Add("Below", c.Under)
	f.Add("Driver", strings.TrimSpace(c.Driver+" "+c.Version))
	f.Add("Firmware", c.Firmware)
	f.Add("Bus", c.Bus)
	if c.Speed > 0 {
		f.Add("Speed", strings.TrimSpace(units.Rate(float64(c.Speed))+" "+c.Duplex))
	}
	if c.MaxSpeed > 0 {
		f.Add("Fastest mode", units.Rate(float64(c.MaxSpeed)))
	}
	if c.MTU > 0 {
		f.Add("MTU", fmt.Sprint(c.MTU))
	}
	if c.NUMA != nil {
		f.Add("NUMA node", fmt.Sprint(*c.NUMA))
	}
	if q := c.Queues; q != nil {
		f.Add("Queues", fmt.Sprintf("%d combined, %d receive, %d send", q.Combined, q.Receive,
			q.Send))
		f.Add("Rings", fmt.Sprintf("%d receive, %d send", q.ReceiveRing, q.SendRing))
	}
	var on []string
	for _, k := range slices.Sorted(maps.Keys(c.Offloads)) {
		if c.Offloads[k] {
			on = append(on, k)
		}
	}
	f.Add("Offloads", strings.Join(on, " "))
	var to []string
	for _, i := range c.Interrupts {
		to = append(to, fmt.Sprintf("%d %s: CPU %s", i.Number, i.Name, i.CPUs))
	}
	f.Add("Interrupts", strings.Join(to, ", "))
	return f
}

func plan(r *analysis.Report) document.FactGroup {
	p, c := r.Plan, r.Control
	f := document.FactGroup{Title: "Plan"}
	f.Add("Rounds", fmt.Sprintf("%d complete, in %.0f s, ended by %s", p.Rounds, p.Elapsed,
		p.EndedBy))
	if p.Budget > 0 {
		f.Add("Budget", units.Seconds(p.Budget))
	}
	f.Add("Seed", fmt.Sprint(p.Seed))
	f.Add("Baseline", p.Baseline)
	if p.Same > 0 {
		f.Add("Counts as the same", fmt.Sprintf("± %.3g %%", 100*p.Same))
	}
	if p.Precision > 0 {
		f.Add("Precision asked for", fmt.Sprintf("%.3g %%", 100*p.Precision))
	}
	for _, l := range p.Loads {
		f.Add("Load "+l.Kind, workload.Of(l).Words(l)+fmt.Sprintf(
			"; warm-up %g s, window %g s", l.Warmup, l.Window))
	}
	f.Add("CPUs", strings.TrimSpace(r.Pinned()+" "+r.Together()))
	if p.Wire != nil {
		f.Add("Wire", p.Wire.String())
	}
	for _, g := range c.Groups {
		for _, m := range slices.Sorted(maps.Keys(g.Floor)) {
			if m == analysis.PrimaryOf(p.Loads.Of(g.Load), g.Shape) {
				f.Add(strings.Join(strings.Fields("Noise floor "+g.Load+" from "+mode.Placement(
					g.From).Words()+" "+g.Shape.String()), " "),
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

// Run returns the page of a judged run with the given charts. command is the command that makes
// such runs, for a run whose own command is unknown; the routes that were measured follow it.
func Run(r *analysis.Report, title, command string, groups []document.ChartGroup) document.Page {
	if r.Command != nil {
		command = sample.CommandLine(r.Command)
	} else {
		command += routes(r)
	}
	return document.Page{Title: title, Command: command, Lede: dateAndHost(r.Started, r.Environment),
		Groups: groups, Paths: paths(r), Facts: facts(r)}
}

// routes returns the routes to running servers as arguments, without secrets, each after a space.
func routes(r *analysis.Report) string {
	var all []string
	for _, c := range r.Cells {
		word := c.Facts["url"]
		if word == "" {
			continue
		}
		if name := string(c.Mode); !strings.Contains(word, name) {
			word = name + "=" + word
		}
		if !slices.Contains(all, word) {
			all = append(all, word)
		}
	}
	return strings.TrimPrefix(sample.CommandLine(all), sample.CommandLine(nil))
}

func dateAndHost(began time.Time, e sample.Environment) string {
	var facts []string
	if !began.IsZero() {
		facts = append(facts, dateOf(began))
	}
	if e.Host != "" {
		facts = append(facts, "on "+e.Host)
	}
	return strings.Join(facts, document.Facts)
}

func dateOf(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") + " UTC" }

func differenceLine(r *difference.Report) string {
	var facts []string
	for _, s := range []difference.Side{r.Old, r.New} {
		fact := s.Name
		if !s.Started.IsZero() {
			fact += ", " + dateOf(s.Started)
		}
		if s.Environment.Host != "" {
			fact += fmt.Sprintf(", on %s", s.Environment.Host)
		}
		facts = append(facts, fact)
	}
	return strings.Join(facts, " → ")
}
