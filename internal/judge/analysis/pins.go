package analysis

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

var pinWords = map[string]string{sample.PinFar: "own CPUs", sample.PinNear: "one CPU"}

// PinWords returns "own CPUs" or "one CPU", or "" for other placements.
func PinWords(pin string) string { return pinWords[pin] }

// ManyPins reports whether the run has cells in several placements on CPUs.
func (p Plan) ManyPins() bool { return len(p.Pins) > 1 }

// SayPin returns ", on own CPUs" or ", on one CPU", or "" if the run has only one placement.
func (p Plan) SayPin(pin string) string {
	if !p.ManyPins() || pin == "" {
		return ""
	}
	return ", on " + PinWords(pin)
}

// WithPin returns the result of cell c in another CPU placement, or false if there is none.
func (r *Report) WithPin(c Cell, pin string) (Cell, bool) {
	of := c.Cell
	of.Pin = pin
	i := r.At(of)
	if i < 0 {
		return Cell{}, false
	}
	return r.Cells[i], true
}

// Agree reports whether two placements give the same result: equal verdicts, and ratios that differ
// by less than what is called the same.
func (r *Report) Agree(a, b Cell) bool {
	x, y := a.Metrics[a.Primary].Ratio, b.Metrics[b.Primary].Ratio
	if x == nil || y == nil {
		return x == y
	}
	return x.Verdict == y.Verdict && math.Abs(math.Log(x.Median/y.Median)) <= math.Log1p(
		r.Plan.Same)
}

// shared maps CPUs.Distance to words for how two CPUs are related.
var shared = map[string]string{sample.SharedCPU: "", sample.SharedCore: ", two threads of one core",
	sample.SharedCache:  ", which share a cache",
	sample.SharedSocket: ", in one socket", sample.SharedMachine: ", in different sockets"}

// Pinned returns where client and server ran, or "" if the study does not place them.
func (r *Report) Pinned() string {
	p := r.Plan
	switch {
	case p.Pin == "", p.Pin != sample.PinNone && len(p.Pins) == 0 && len(p.CPUs.Client) == 0:
		return ""
	case p.Pin == sample.PinNone:
		return "Client and server ran where the scheduler put them."
	case len(p.Pins) == 0:
		return fmt.Sprintf("The client was pinned to CPU %s, the server to CPU %s%s.",
			cpuList(p.CPUs.Client), cpuList(p.CPUs.Server), shared[p.CPUs.Distance])
	}
	var say []string
	for _, x := range p.Pins {
		switch x.Name {
		case sample.PinFar:
			say = append(say, fmt.Sprintf(
				"own CPUs: client on CPU %s, server on CPU %s%s, as on an idle machine",
				cpuList(x.CPUs.Client), cpuList(x.CPUs.Server), shared[x.CPUs.Distance]))
		case sample.PinNear:
			say = append(say, fmt.Sprintf("one CPU: %s on CPU %s, as on a busy machine",
				printable.List(append([]string{"client", "server"}, r.relays()...)),
				cpuList(x.CPUs.Client)))
		}
	}
	return printable.Capital(strings.Join(say, "; ")) + "."
}

// relays returns the names of the programs that relay on the paths.
func (r *Report) relays() (out []string) {
	for _, c := range r.Cells {
		for _, h := range c.Hops {
			name := h
			if mode.HopKind(h) == mode.HopProxy {
				name = "docker-proxy"
			}
			if mode.HopKind(h).Relays() && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

func cpuList(cpus []int) string {
	var out []string
	for _, c := range cpus {
		out = append(out, strconv.Itoa(c))
	}
	return strings.Join(out, ",")
}
