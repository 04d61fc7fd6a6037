// Package lever is the catalogue of what may make a mode faster, as data: what each lever sets,
// where it may harm, what makes it permanent and what it gives up. toll advise tries the levers.
package lever

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Lever is one change to try.
type Lever struct {
	Name string
	Gist string // a phrase that follows "Try"
	// Tunes lists what the lever sets, with {cpus} for a suitable number of queues.
	Tunes string
	// Mode replaces the mode; "": the mode stays.
	Mode mode.Name
	// Local means that Mode is not measured towards another machine, nor from placements that
	// cannot reach it.
	Local bool
	// For lists the modes to which the lever applies; nil: all.
	For []mode.Name
	// Not lists modes that cannot have the lever, although users may look for it. Why is the
	// reason.
	Not []mode.Name
	Why string
	// Harms describes the workload that the lever may harm, which is also measured.
	Harms string
	// Permanent has {cpus} as Tunes has, and {mask} for the mask of all CPUs.
	Permanent []Snippet
	// Loopback makes the lever permanent on the loopback device, if the lever sets that, too.
	// Permanent is then for modes with a veth pair.
	Loopback []Snippet
	// Reaches is the command that changes what clients reach, for toll ports --try; "": none does.
	Reaches string
	// GivesUp is what the user gives up with the lever; "": nothing known.
	GivesUp string
	// Stays means that the lever is advised only for what stays on the machine, because the links
	// between the lab's machines lose nothing.
	Stays bool
	// Isolation means that the lever gives up what the mode is chosen for, so it is measured but
	// not recommended.
	Isolation bool
}

// Snippet has lines to add in one place.
type Snippet struct {
	Where string   `json:"where"` // a file, or when to type the lines
	Lines []string `json:"lines"`
}

// Host has the facts of a machine that decide which levers apply.
type Host struct {
	CPUs       int
	Congestion string // TCP's default
}

const mostQueues = 8

// With returns the variant of m that the lever makes on a machine. ok is false if the lever does
// not apply or changes nothing. A mode in Not counts as one to which the lever applies.
func (l Lever) With(m mode.Name, h Host) (v sample.Variant, ok bool) {
	v = sample.Variant{Mode: m}
	if l.For != nil && !slices.Contains(l.For, m) && l.Refuses(m) == "" || l.Mode == m {
		return v, false
	}
	if l.Mode != "" {
		v.Mode = l.Mode
	}
	if l.Tunes == "" {
		return v, true
	}
	if strings.Contains(l.Tunes, "{cpus}") && h.CPUs < 2 {
		return v, false
	}
	tunes, err := mode.ParseTunes(strings.ReplaceAll(l.Tunes, "{cpus}", queues(h)))
	if err != nil {
		return v, false // a test parses all of them
	}
	if c, ok := tunes.Get(mode.Congestion); ok && c.Value == h.Congestion {
		return v, false
	}
	v.Tune = tunes
	return v, true
}

// At returns the lever with what makes it permanent for a mode, with the numbers of a machine.
func (l Lever) At(name mode.Name, h Host) Lever {
	of := strings.NewReplacer("{cpus}", queues(h), "{mask}", mask(h.CPUs))
	if l.Loopback != nil {
		var devices []Snippet
		if crosses(name, mode.HopVeth) {
			devices = l.Permanent
		}
		if crosses(name, mode.HopLoopback) {
			devices = slices.Concat(devices, l.Loopback)
		}
		l.Permanent, l.Loopback = devices, nil
	}
	own := make([]Snippet, len(l.Permanent))
	for i, s := range l.Permanent {
		own[i].Where = s.Where
		for _, line := range s.Lines {
			own[i].Lines = append(own[i].Lines, of.Replace(line))
		}
	}
	l.Permanent = own
	return l
}

func crosses(name mode.Name, h mode.HopKind) bool {
	m, _ := mode.Find(name)
	return slices.ContainsFunc(m.Routes, func(r mode.Route) bool {
		return slices.Contains(r.Hops, h)
	})
}

func queues(h Host) string { return strconv.Itoa(min(h.CPUs, mostQueues)) }

// mask returns the mask of the first n CPUs as sysfs takes it: "3", "f,ffffffff".
func mask(n int) string {
	const bits = 32
	text := fmt.Sprintf("%x", uint32(1)<<(n%bits)-1)
	if n%bits == 0 {
		text = ""
	}
	return strings.Trim(text+strings.Repeat(",ffffffff", n/bits), ",")
}

// Refuses returns why a mode cannot have the lever, or "".
func (l Lever) Refuses(m mode.Name) string {
	if slices.Contains(l.Not, m) {
		return l.Why
	}
	return ""
}

// Command returns the command line of an engine, "Docker" or "Podman", that makes the lever
// permanent, or "" if it takes more than one line.
func (l Lever) Command(engine string) string {
	if engine == "Podman" {
		l = l.OfPodman()
	}
	for _, s := range l.Permanent {
		for _, line := range s.Lines {
			if strings.HasPrefix(line, strings.ToLower(engine)+" ") &&
				!strings.HasSuffix(line, "\\") {
				return line
			}
		}
	}
	return ""
}

// Elsewhere returns the mode whose paths reach m's containers from placements that cannot reach m,
// or "".
func Elsewhere(m mode.Name) mode.Name {
	if m == mode.Bridge || m == mode.BridgeDefault {
		return mode.PublishNAT
	}
	return ""
}

// Find returns the lever with that name.
func Find(name string) (l Lever, ok bool) {
	i := slices.IndexFunc(all, func(l Lever) bool { return l.Name == name })
	if i < 0 {
		return l, false
	}
	return all[i], true
}

// Names returns the names of all levers.
func Names() []string {
	out := make([]string, len(all))
	for i, l := range all {
		out[i] = l.Name
	}
	return out
}

// Plan returns the named levers that apply to a mode, or all that do if named is empty, in the form
// of a plan.
func Plan(m mode.Name, h Host, named []string) []sample.Lever {
	var out []sample.Lever
	for _, l := range all {
		if len(named) > 0 && !slices.Contains(named, l.Name) {
			continue
		}
		if v, ok := l.With(m, h); ok {
			out = append(out, sample.Lever{Name: l.Name, Variant: v})
		}
	}
	return out
}

// Join adds a lever's variant v to state. ok is false if both replace the mode plain by different
// modes, or set a key to different values.
func Join(state, v sample.Variant, plain mode.Name) (out sample.Variant, ok bool) {
	out = state
	if v.Mode != plain {
		if state.Mode != plain && state.Mode != v.Mode {
			return out, false
		}
		out.Mode = v.Mode
	}
	have := state.Tune
	var words []string
	if state.Tune != "" {
		words = append(words, string(state.Tune))
	}
	for _, t := range v.Tune.List() {
		old, set := have.Get(t.Key)
		switch {
		case set && old != t:
			return out, false
		case !set:
			words = append(words, string(t.Key)+"="+t.Value)
		}
	}
	if len(words) == 0 {
		return out, true
	}
	tunes, err := mode.ParseTunes(strings.Join(words, "+"))
	out.Tune = tunes
	return out, err == nil
}

// Cell returns a cell like base of another variant, at the same target if possible. ok is false if
// no route leads to it, or if another mode replaces the baseline there and the variant has a third
// mode.
func Cell(p sample.Plan, base sample.Cell, v sample.Variant) (c sample.Cell, ok bool) {
	c = base
	c.Control, c.Tune = false, v.Tune
	switch {
	case string(v.Mode) == p.Baseline:
		return c, true
	case string(base.Mode) != p.Baseline:
		return c, false
	}
	c.Mode = v.Mode
	m, known := mode.Find(v.Mode)
	if !known {
		return c, false
	}
	if _, ok := m.Route(c.From, c.To); ok {
		return c, true
	}
	routes := m.RoutesInto(c.From)
	if len(routes) == 0 || c.To.Outside() {
		return c, false
	}
	c.To = routes[0].To
	return c, true
}
