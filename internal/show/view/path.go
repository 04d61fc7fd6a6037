package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// Trace is one visit to one path.
type Trace struct {
	Path  sample.Path  `json:"path"`
	Visit sample.Visit `json:"visit"`
	// Cards lists the network cards of the path's machines.
	Cards []sample.Card `json:"cards,omitempty"`
}

// Path shows a path's hops from client to server, with their counters before and after the visit.
func Path(t *Trace) document.Document {
	name := t.Path.Tune.Name(string(t.Path.Mode))
	title := document.Strongly(fmt.Sprintf(
		"%s from %s, dialling %s", name, t.Path.From.Words(), t.Path.Dial)).
		Then(fmt.Sprintf("   built in %.0f ms by the %s", 1000*t.Path.Built, t.Path.On),
			document.Faint)
	hops := t.Visit.Hops[:min(len(t.Path.Hops), len(t.Visit.Hops))]
	route := document.Route{Level: 1, Steps: []document.RoutePoint{
		{Kind: "client", Text: document.Plainly("connects to " + t.Path.Dial)}}}
	for _, h := range hops {
		route.Steps = append(route.Steps, document.RoutePoint{Kind: h.Kind,
			Counters: hopCounters(h),
			Text:     document.Plainly(h.Name+"  ").Then("("+h.Where+")", document.Faint)})
	}
	route.Steps = append(route.Steps, document.RoutePoint{
		Kind: "server", Text: document.Plainly("listens on " + t.Path.Listen)})
	d := document.Document{Kind: document.APath, JSON: t, Sections: []document.Section{
		{Title: title}, {Blocks: []document.Block{route}},
		witness(t.Visit, t.Visit.Hops[len(hops):]), pathFacts(t)}}
	d.Add(cardSection(t.Cards))
	return d
}

func witness(v sample.Visit, guards []sample.HopReading) (out document.Section) {
	out.Add(
		paragraph(1, fmt.Sprintf("The load moved %d bytes to the server and %d back, in %s on %s.",
			v.Server.TotalRecv, v.Client.TotalRecv,
			units.Plural(int(v.Client.TotalSent/max(1, int64(probeSize(v)))), "round trip"),
			units.Plural(v.Client.Connections, "connection"))))
	text := document.Text{{Text: "Witnessed: every hop counted them.", Style: document.Good}}
	if !v.Witness.OK {
		text = document.Text{{Text: "Not witnessed: ", Style: document.Bad},
			{Text: v.Witness.Evidence}}
	}
	out.Add(document.Paragraph{Level: 1, Text: text})
	for _, g := range guards {
		d := g.After.Sub(g.Before)
		out.Add(faint(fmt.Sprintf("Not on the path: %s (%s): %s", hopName(g), g.Where,
			delta(d, v.Witness.OK))))
	}
	return out
}

func pathFacts(t *Trace) (out document.Section) {
	p := t.Path
	for _, k := range slices.Sorted(maps.Keys(p.Facts)) {
		out.Add(paragraph(1, fmt.Sprintf("%s: %s", k, p.Facts[k])))
	}
	for _, l := range p.Links {
		out.Add(faint(describeLink(l)))
	}
	// Small requests do not fill a segment, so they do not test the devices in between.
	all := analysis.SegmentsOf(t.Visit)
	tried := len(all) > 0 && (all[0].Narrow() || probeSize(t.Visit) >= float64(all[0].Payload))
	if text := segmentsText(all); tried {
		out.Add(faint("TCP: " + text))
	}
	return out
}

// probeSize returns the payload of a request or, if there was none, of all that was sent, in bytes.
func probeSize(v sample.Visit) float64 {
	if v.Client.Trips == 0 {
		return float64(max(1, v.Client.TotalSent))
	}
	return float64(v.Client.Sent) / float64(v.Client.Trips)
}

// hopCounters returns a hop's counters, by direction if the hop distinguishes them.
func hopCounters(h sample.HopReading) []document.Counter {
	b, a := h.Before, h.After
	if a.ForwardBytes+a.BackwardBytes == 0 {
		return []document.Counter{{What: "hits", Before: b.Hits, After: a.Hits}}
	}
	toServer := "→"
	if a.BackwardBytes == 0 { // the device counts both directions in one counter
		toServer = "⇄"
	}
	out := []document.Counter{{What: "bytes " + toServer, Before: b.ForwardBytes,
		After: a.ForwardBytes}}
	if a.ForwardPackets > 0 {
		out = append(out, document.Counter{What: "packets " + toServer, Before: b.ForwardPackets,
			After: a.ForwardPackets})
	}
	if a.BackwardBytes > 0 {
		out = append(out, document.Counter{What: "bytes ←", Before: b.BackwardBytes,
			After: a.BackwardBytes})
	}
	if a.BackwardPackets > 0 {
		out = append(out, document.Counter{What: "packets ←", Before: b.BackwardPackets,
			After: a.BackwardPackets})
	}
	return out
}

func hopName(h sample.HopReading) string {
	if h.Kind == h.Name {
		return h.Name
	}
	return h.Kind + " " + h.Name
}

// delta describes what a hop off the path counted. It says "quiet" only if the witness found
// nothing against the path.
func delta(d sample.Counters, ok bool) string {
	if n := d.ForwardBytes + d.BackwardBytes; n > 0 {
		s := units.Plural(int(n), "byte")
		if ok {
			s += ", quiet as required"
		}
		return s
	}
	return units.Plural(int(d.Hits), "hit") + ", 0 bytes"
}

func describeLink(l sample.Link) string {
	var on []string
	for _, k := range slices.Sorted(maps.Keys(l.Offloads)) {
		if l.Offloads[k] {
			on = append(on, k)
		}
	}
	s := fmt.Sprintf("%s: %s %s, MTU %d", l.Where, l.Kind, l.Name, l.MTU)
	if l.Qdisc != "" {
		s += ", " + l.Qdisc
	}
	if l.Rate > 0 {
		s += " of " + units.Rate(float64(l.Rate))
	}
	if len(on) > 0 {
		s += ", on: " + strings.Join(on, " ")
	}
	return s
}
