package chart

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

func paths(r *analysis.Report) []document.PathGroup {
	var out []document.PathGroup
	for _, c := range r.Cells {
		if len(c.Counted) == 0 {
			continue
		}
		title := "From " + c.From.Words() + ", " + c.Load + ", on " + c.On +
			r.Plan.SayPin(c.Pin)
		i := slices.IndexFunc(out, func(g document.PathGroup) bool { return g.Title == title })
		if i < 0 {
			i = len(out)
			out = append(out, document.PathGroup{Title: title})
		}
		p := document.Path{Name: c.Name(), Dial: c.Dial}
		for _, h := range c.Counted {
			drawn := document.Hop{Kind: h.Kind, Name: h.Name, Where: h.Where, Counts: counts(h)}
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

func counts(h analysis.Counted) []document.Count {
	if h.ForwardBytes+h.BackwardBytes == 0 {
		return []document.Count{packetCount("packets", h.Hits)}
	}
	toServer := "→"
	if h.BackwardBytes == 0 { // the device has one counter for both directions
		toServer = "⇄"
	}
	out := []document.Count{byteCount(toServer, h.ForwardBytes)}
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

func byteCount(what string, n uint64) document.Count {
	return document.Count{What: what, Text: humane(n, "B"), Exact: fmt.Sprintf("%d bytes", n)}
}

func packetCount(what string, n uint64) document.Count {
	text := humane(n, "packets")
	if n == 1 {
		text = "1 packet"
	}
	if what == "packets" {
		text = humane(n, "")
	}
	return document.Count{What: what, Text: text, Exact: fmt.Sprintf("%d packets", n)}
}

func humane(n uint64, unit string) string {
	x, prefix := float64(n), ""
	for _, p := range []string{"k", "M", "G", "T"} {
		if x < 1000 {
			break
		}
		x, prefix = x/1000, p
	}
	text := threeDigits(x)
	if prefix == "" {
		text = fmt.Sprint(n)
	}
	if unit != "B" && prefix != "" { // "1.2 M packets", but "1.2 MB"
		prefix += " "
	}
	return strings.TrimSpace(text + " " + prefix + unit)
}
