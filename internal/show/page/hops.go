package page

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// pathGroup holds the paths of one placement, load and backend.
type pathGroup struct {
	Title string
	Paths []path
}

// path leads from a client to a server. It has what each hop counted.
type path struct {
	Name, Dial   string
	Hops, Guards []hop
}

type hop struct {
	Kind, Name, Where string
	Counts            []count
}

// count is a counter's value, rounded for reading and exact.
type count struct{ What, Text, Exact string }

// pathsOf returns the paths of those cells of a report that have counters.
func pathsOf(r judge.Report) []pathGroup {
	var out []pathGroup
	for _, c := range r.Base().Cells {
		if len(c.Counted) == 0 {
			continue
		}
		title := "From " + mode.Placement(c.From).Words() + ", " + c.Load + ", on " + c.On + r.Base().Plan.SayPin(c.Pin)
		i := slices.IndexFunc(out, func(g pathGroup) bool { return g.Title == title })
		if i < 0 {
			i = len(out)
			out = append(out, pathGroup{Title: title})
		}
		p := path{Name: c.Name(), Dial: c.Dial}
		for _, h := range c.Counted {
			drawn := hop{h.Kind, h.Name, h.Where, counts(h)}
			if h.Name == h.Kind {
				drawn.Name = ""
			}
			if h.Guard {
				p.Guards = append(p.Guards, drawn)
			} else {
				p.Hops = append(p.Hops, drawn)
			}
		}
		out[i].Paths = append(out[i].Paths, p)
	}
	return out
}

// counts returns a hop's counters, by direction if the hop distinguishes them.
func counts(h analysis.Counted) []count {
	if h.ForwardBytes+h.BackwardBytes == 0 {
		return []count{packetCount("packets", h.Hits)}
	}
	toServer := "→"
	if h.BackwardBytes == 0 { // the device counts both directions in one counter
		toServer = "⇄"
	}
	out := []count{byteCount(toServer, h.ForwardBytes)}
	if h.ForwardPackets > 0 {
		out = append(out, packetCount(toServer, h.ForwardPackets))
	}
	if h.BackwardBytes > 0 {
		out = append(out, byteCount("←", h.BackwardBytes))
	}
	if h.BackwardPackets > 0 {
		out = append(out, packetCount("←", h.BackwardPackets))
	}
	return out
}

func byteCount(what string, n uint64) count {
	return count{what, humane(n, "B"), fmt.Sprintf("%d bytes", n)}
}

func packetCount(what string, n uint64) count {
	text := humane(n, "packets")
	if n == 1 {
		text = "1 packet"
	}
	if what == "packets" {
		text = humane(n, "")
	}
	return count{what, text, fmt.Sprintf("%d packets", n)}
}

// humane returns a number with three digits and a unit.
func humane(n uint64, unit string) string {
	x, prefix := float64(n), ""
	for _, p := range []string{"k", "M", "G", "T"} {
		if x < 1000 {
			break
		}
		x, prefix = x/1000, p
	}
	text := three(x)
	if prefix == "" {
		text = fmt.Sprint(n)
	}
	if unit != "B" && prefix != "" { // "1.2 M packets", but "1.2 MB"
		prefix += " "
	}
	return strings.TrimSpace(text + " " + prefix + unit)
}
