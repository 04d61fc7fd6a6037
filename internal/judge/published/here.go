package published

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
)

// Here is a row's figure on this machine, and its CPU time.
type Here struct {
	Value
	File string `json:"file"`
	Unit string `json:"unit"` // bit/s, s, or 1 for a share
	// Idle is the idle share of all CPUs' time, like mpstat's %idle; nil: not known.
	Idle *Value `json:"idle,omitempty"`
	// Proxy is docker-proxy's share of one core: 1.2 is more than one; nil: the path has none.
	Proxy *Value            `json:"proxy,omitempty"`
	CPUs  []analysis.CPUUse `json:"cpus,omitempty"`
	// AllCPUs is the use of all CPUs of each machine together.
	AllCPUs []analysis.CPUUse `json:"all_cpus,omitempty"`
	// StandsFor is the mode that the measured cell replaces, or "" if it is the row's own.
	StandsFor string `json:"stands_for,omitempty"`
}

// Value is the median of a figure over its rounds, with its 95 % interval.
type Value struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	N      int     `json:"n"` // rounds
}

// Text returns the median with its interval, each multiplied by a factor: "41.9 ±0.3". A single
// value has no interval.
func (v Value) Text(by float64) string {
	const read = 100 // more digits are hard to read
	s := stats.Summary{Median: v.Median * by, Low: v.Low * by, High: v.High * by, N: v.N}
	decimals := 0
	if uncertain := max(s.HalfWidth(), math.Abs(s.Median)/read); uncertain > 0 {
		decimals = analysis.Decimals(uncertain)
	}
	text := fmt.Sprintf("%.*f", decimals, s.Median)
	if v.N < 2 {
		return text
	}
	return text + " " + analysis.Interval(s, decimals)
}

// Unit is a study's unit and its factor from base units.
type Unit struct {
	Name string
	By   float64
}

// In returns the unit in which the row was printed.
func (r Row) In() Unit {
	const bits = 8
	switch name, _, corrected := strings.Cut(r.Unit, " as printed"); {
	case corrected, name == "Gbit/s": // the only correction in the data is to Gbit/s
		return Unit{"Gbit/s", 1e-9}
	case name == "MB/s":
		return Unit{name, 1e-6 / bits}
	case name == "us":
		return Unit{"µs", 1e6}
	case name == "ms":
		return Unit{name, 1e3}
	case name == "%":
		return Unit{name, 100}
	default:
		return Unit{name, 1}
	}
}

func valueOf(m *analysis.Metric) *Value {
	if m == nil {
		return nil
	}
	return &Value{m.Median, m.Low, m.High, len(m.Rounds)}
}

// IsRatio reports whether the row is a ratio that the study states, without a figure of its own.
func (r Row) IsRatio() bool { return r.Unit == "x" }

// here returns the row's figure, or nil if no file has it. It prefers the file whose conditions are
// closest to the study's, then the one with the most rounds.
func (s Study) here(e Entry, files []Input) *Here {
	if e.IsRatio() || e.Why != "" {
		return nil
	}
	var out *Here
	notes, most := 0, 0
	for _, f := range files {
		of, stands := e.Figure, ""
		if _, has := f.pair.Value(of); !has {
			if of = standIn(of, f); of.Cell != e.Cell {
				stands = string(e.Cell.Mode)
			}
		}
		h, rounds := hereIn(f, of, e.Row)
		if h == nil {
			continue
		}
		h.StandsFor = stands
		n := len(s.notes(f.pair, s.Pace, of.Cell))
		if out == nil || cmp.Or(cmp.Compare(n, notes), -cmp.Compare(rounds, most)) < 0 {
			out, notes, most = h, n, rounds
		}
	}
	return out
}

func hereIn(f Input, of analysis.Figure, r Row) (h *Here, rounds int) {
	m, ok := f.pair.Value(of)
	if !ok {
		return nil, 0
	}
	h = &Here{Value: *valueOf(&m), File: f.Name, Unit: m.Unit}
	if t, ok := f.pair.CPUTime(of.Cell); ok {
		h.Idle, h.Proxy, h.CPUs, h.AllCPUs = valueOf(t.Idle), valueOf(t.Proxy), t.CPUs, t.All
	}
	rounds = h.N
	switch {
	case r.Metric == cpuIdle && h.Idle == nil:
		return nil, 0
	case r.Metric == cpuIdle:
		h.Value, h.Unit, rounds = *h.Idle, "1", h.Idle.N
	case r.Metric == spike && m.Merged != nil:
		h.Value = Value{*m.Merged, *m.Merged, *m.Merged, 1}
	}
	return h, rounds
}
