package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// Trace is one visit to one path.
type Trace struct {
	Path  sample.Path  `json:"path"`
	Visit sample.Visit `json:"visit"`
}

// Path draws the path, from the client down to the server, with what each
// hop counted before and after the visit.
func Path(w io.Writer, t *Trace, o Options) error {
	if o.Width == 0 {
		o.Width = DefaultWidth
	}
	p := newPrinter(o)
	name := mode.Tunes(t.Path.Tune).Name(t.Path.Mode)
	p.line(p.bold(fmt.Sprintf("%s from %s, dialling %s", name, t.Path.From, t.Path.Dial)) +
		p.dim(fmt.Sprintf("   built in %.0f ms by the %s", 1000*t.Path.Built, t.Path.On)))
	p.line("")
	hops := t.Visit.Hops[:min(len(t.Path.Hops), len(t.Visit.Hops))]
	guards := t.Visit.Hops[len(hops):]
	kinds := width("client")
	for _, h := range hops {
		kinds = max(kinds, width(h.Kind))
	}
	p.line("  " + align("client", kinds, false) + "  connects to " + t.Path.Dial)
	for _, h := range hops {
		p.line("    │")
		p.hop(h, kinds)
	}
	p.line("    │")
	p.line("  " + align("server", kinds, false) + "  listens on " + t.Path.Listen)
	p.line("")
	v := t.Visit
	p.line(fmt.Sprintf("  The load moved %d bytes to the server and %d back, in %s on %s.",
		v.Server.TotalRecv, v.Client.TotalRecv, plural(int(v.Client.TotalSent/max(1, int64(probeSize(v)))), "round trip"), plural(v.Client.Connections, "connection")))
	if v.Witness.OK {
		p.line("  " + p.verdict("better")("Witnessed: every hop counted them."))
	} else {
		p.wrapped("  ", p.verdict("worse")("Not witnessed: ")+v.Witness.Evidence, " ")
	}
	for _, g := range guards {
		d := g.After.Sub(g.Before)
		p.line(p.dim(fmt.Sprintf("  Not on the path: %s (%s): %s", hopName(g), g.Where, delta(d, v.Witness.OK))))
	}
	if len(t.Path.Facts)+len(t.Path.Links) > 0 {
		p.line("")
	}
	for _, k := range slices.Sorted(maps.Keys(t.Path.Facts)) {
		p.wrapped("  ", fmt.Sprintf("%s: %s", k, t.Path.Facts[k]), " ")
	}
	for _, l := range t.Path.Links {
		p.line(p.dim("  " + describeLink(l)))
	}
	if _, err := io.WriteString(w, p.b.String()); err != nil {
		return fmt.Errorf("write path: %w", err)
	}
	return nil
}

// probeSize is the payload bytes of one round trip's request.
func probeSize(v sample.Visit) float64 {
	if v.Client.Trips == 0 {
		return float64(max(1, v.Client.TotalSent))
	}
	return float64(v.Client.Sent) / float64(v.Client.Trips)
}

func (p *printer) hop(h sample.HopReading, kinds int) {
	p.line(fmt.Sprintf("  %s  %s  %s", align(h.Kind, kinds, false), h.Name, p.dim("("+h.Where+")")))
	row := func(what string, before, after uint64) {
		p.line(fmt.Sprintf("    │     %s %12d → %-12d +%d", align(what, 12, false), before, after, after-before))
	}
	b, a := h.Before, h.After
	if a.ForwardBytes+a.BackwardBytes == 0 {
		row("hits", b.Hits, a.Hits)
		return
	}
	toServer := "→"
	if a.BackwardBytes == 0 { // a device that counts both directions as one
		toServer = "⇄"
	}
	row("bytes "+toServer, b.ForwardBytes, a.ForwardBytes)
	if a.ForwardPackets > 0 {
		row("packets "+toServer, b.ForwardPackets, a.ForwardPackets)
	}
	if a.BackwardBytes > 0 {
		row("bytes ←", b.BackwardBytes, a.BackwardBytes)
	}
	if a.BackwardPackets > 0 {
		row("packets ←", b.BackwardPackets, a.BackwardPackets)
	}
}

// hopName is kind and name, once if they are the same.
func hopName(h sample.HopReading) string {
	if h.Kind == h.Name {
		return h.Name
	}
	return h.Kind + " " + h.Name
}

// delta is what a hop beside the path counted. Only a witness that found
// nothing against the path calls it quiet.
func delta(d sample.Counters, ok bool) string {
	if n := d.ForwardBytes + d.BackwardBytes; n > 0 {
		s := plural(int(n), "byte")
		if ok {
			s += ", as quiet as it must be"
		}
		return s
	}
	return fmt.Sprintf("%d hits, 0 bytes", d.Hits)
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
	if len(on) > 0 {
		s += ", on: " + strings.Join(on, " ")
	}
	return s
}
