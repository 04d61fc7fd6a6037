package difference

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

func (d *differ) settings() []Setting {
	old, now := d.Old.File.Header, d.New.File.Header
	out := append(apart(machine(old.Environment), machine(now.Environment)),
		apart(plan(old.Plan, now.Plan), plan(now.Plan, old.Plan))...)
	if s, ok := busier(old.Environment, now.Environment); ok {
		out = append(out, s)
	}
	said := map[[3]string]bool{}
	for _, s := range out {
		said[[3]string{s.What + ofServer, s.Old, s.New}] = true
	}
	for _, s := range d.pathSettings() {
		if !said[[3]string{s.What, s.Old, s.New}] {
			out = append(out, s)
		}
	}
	return out
}

const ofServer = " of the server's machine"

type fact struct{ what, is string }

// apart returns the facts that differ, in the order of now, then those that only old has.
func apart(old, now []fact) []Setting {
	out := []Setting{}
	was := map[string]string{}
	for _, f := range old {
		was[f.what] = f.is
	}
	seen := map[string]bool{}
	for _, f := range now {
		seen[f.what] = true
		if was[f.what] != f.is {
			out = append(out, Setting{What: f.what, Old: was[f.what], New: f.is})
		}
	}
	for _, f := range old {
		if !seen[f.what] && f.is != "" {
			out = append(out, Setting{What: f.what, Old: f.is})
		}
	}
	return out
}

func machine(e sample.Environment) []fact {
	out := []fact{
		{"toll", e.Tool}, {"kernel", e.Kernel}, {"distribution", e.OS}, {"CPU", e.CPUModel},
		{"CPUs", fmt.Sprint(e.CPUs)},
		{"CPUs allowed", list(e.CPUsAllowed)}, {"threads per core", fmt.Sprint(e.ThreadsPerCore)},
		{"memory", gigabytes(e.Memory)}, {"CPU limit of the cgroup", limit(e.CgroupCPUs)},
		{"governor", e.Governor},
		{"virtualization", e.Virtualization}, {"Docker", e.Docker}, {"root", yes(e.Root)},
		{"net.ipv4.tcp_congestion_control", e.Congestion},
	}
	for _, k := range slices.Sorted(maps.Keys(e.Sysctls)) {
		out = append(out, fact{k, e.Sysctls[k]})
	}
	for _, c := range e.Cards {
		of := " of " + c.Name + " of " + c.Where
		out = append(out, fact{"driver" + of, strings.TrimSpace(c.Driver + " " + c.Version)},
			fact{"firmware" + of, c.Firmware},
			fact{"link" + of, strings.TrimSpace(rate(c.Speed) + " " + c.Duplex)},
			fact{"offloads" + of, offloads(c.Offloads)})
	}
	for _, k := range slices.Sorted(maps.Keys(e.Mitigations)) {
		out = append(out, fact{"mitigation of " + k, e.Mitigations[k]})
	}
	return out
}

// plan returns the facts of plan p. It leaves out a sweep's loads at points that other lacks.
func plan(p, other sample.Plan) []fact {
	out := []fact{{"CPUs of the client", list(p.CPUs.Client)},
		{"CPUs of the server", list(p.CPUs.Server)}, {"pinning", p.Pin},
		{"wire", wire(p.Wire)}, {"time of an epoch", seconds(p.Epoch)}}
	if p.Sweep != nil {
		out = append(out, fact{"sweep", points(p.Sweep)})
	}
	for _, l := range p.Loads {
		name := l.Kind
		if l.Point != "" {
			name += " at " + l.Point
			if !slices.ContainsFunc(other.Loads, func(o sample.Load) bool {
				return o.Kind == l.Kind && o.Point == l.Point
			}) {
				continue
			}
		}
		out = append(out, fact{"load " + name, work(l)},
			fact{"window of " + name, seconds(l.Window)},
			fact{"slices of " + name, seconds(l.Slice)})
	}
	return out
}

func points(s *sample.Sweep) string {
	var names []string
	for _, p := range s.Points {
		names = append(names, p.Name)
	}
	return s.Axis + "=" + strings.Join(names, ",")
}

func list(ns []int) string { return strings.Trim(fmt.Sprint(ns), "[]") }

func gigabytes(n uint64) string {
	const giga = 1 << 30
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/giga)
}

func limit(cpus float64) string {
	if cpus == 0 {
		return "none"
	}
	return fmt.Sprintf("%g CPUs", cpus)
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

func wire(w *sample.Wire) string {
	if w == nil {
		return ""
	}
	return w.String()
}

func rate(bits uint64) string {
	if bits == 0 {
		return ""
	}
	return units.Rate(float64(bits))
}

func seconds(s float64) string {
	if s == 0 {
		return ""
	}
	return units.FormatTime(sample.Wire{Delay: s}.OneWay())
}

func busier(old, now sample.Environment) (Setting, bool) {
	const share = 0.5
	if math.Abs(old.LoadAverage-now.LoadAverage) <= share*float64(max(1, now.CPUs)) {
		return Setting{}, false
	}
	return Setting{What: "load average before the run", Old: fmt.Sprintf("%.1f", old.LoadAverage),
		New: fmt.Sprintf("%.1f", now.LoadAverage)}, true
}

func (d *differ) pathSettings() []Setting {
	var out []Setting
	at := map[[3]string]int{}
	for _, m := range d.matches {
		c := d.New.Series[m.New].Cell
		old, okOld := d.Old.File.Header.PathOf(c)
		now, okNew := d.New.File.Header.PathOf(c)
		if !okOld || !okNew {
			continue
		}
		for _, s := range apart(path(old), path(now)) {
			key := [3]string{s.What, s.Old, s.New}
			k, ok := at[key]
			if !ok {
				out, k = append(out, s), len(out)
				at[key] = k
			}
			if label := analysis.Label(c); !slices.Contains(out[k].Cells, label) {
				out[k].Cells = append(out[k].Cells, label)
			}
		}
	}
	return out
}

func path(p sample.Path) []fact {
	out := []fact{{"path", strings.Join(p.Hops, "·")}}
	nth := map[string]int{}
	for _, l := range p.Links {
		name := l.Kind + " in " + l.Where
		if nth[name]++; nth[name] > 1 { // Docker gives devices new names each time
			name = fmt.Sprintf("%s number %d in %s", l.Kind, nth[name], l.Where)
		}
		out = append(out, fact{"MTU of " + name, fmt.Sprint(l.MTU)},
			fact{"queue of " + name, strings.TrimSpace(l.Qdisc + " " + rate(l.Rate))},
			fact{"offloads of " + name, offloads(l.Offloads)})
	}
	for _, k := range slices.Sorted(maps.Keys(p.Sysctls)) {
		out = append(out, fact{k + ofServer, p.Sysctls[k]})
	}
	for _, k := range slices.Sorted(maps.Keys(p.Facts)) {
		out = append(out, fact{k, p.Facts[k]})
	}
	return out
}

func offloads(all map[string]bool) string {
	var on []string
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if all[k] {
			on = append(on, k)
		}
	}
	if len(on) == 0 {
		return "none"
	}
	return strings.Join(on, " ")
}
