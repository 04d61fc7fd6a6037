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

func cardSection(all []sample.Card) (s document.Section) {
	if len(all) == 0 {
		return s
	}
	s.Title = document.Strongly("Network cards")
	for _, c := range all {
		s.Add(document.Paragraph{Level: 1, Break: document.Facts,
			Text: document.Plainly(strings.Join(cardFacts(c), document.Facts))})
		for _, text := range []string{cardOffloads(c), cardInterrupts(c), cardSteering(c)} {
			if text != "" {
				s.Add(document.Paragraph{Level: 2,
					Text: document.Plainly(text), Style: document.Faint})
			}
		}
	}
	return s
}

func cardsOf(r *analysis.Report, c analysis.Cell) (out []sample.Card) {
	for _, x := range r.Environment.Cards {
		if slices.Contains(c.Cards, x.ID()) {
			out = append(out, x)
		}
	}
	return out
}

func cardFacts(c sample.Card) []string {
	out := []string{c.Name + " of " + c.Where}
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if c.Under != "" {
		add("below %s", c.Under)
	}
	if c.Driver != "" {
		add("%s", strings.TrimSpace("driver "+c.Driver+" "+c.Version))
	}
	if c.Firmware != "" {
		add("firmware %s", c.Firmware)
	}
	speed := "speed not known"
	if c.Speed > 0 {
		speed = units.Rate(float64(c.Speed))
		if c.MaxSpeed > c.Speed {
			speed += " (of " + units.Rate(float64(c.MaxSpeed)) + ")"
		}
	}
	if c.Duplex != "" {
		speed += " " + c.Duplex + " duplex"
	}
	add("%s", speed)
	if c.MTU > 0 {
		add("MTU %d", c.MTU)
	}
	if c.NUMA != nil {
		add("NUMA node %d", *c.NUMA)
	}
	if q := c.Queues; q != nil {
		if text := cardQueues(*q); text != "" {
			add("%s", text)
		}
	}
	return out
}

func cardQueues(q sample.CardQueues) string {
	var parts []string
	of := func(most, n int) string {
		if most > n {
			return fmt.Sprintf(" (of %d)", most)
		}
		return ""
	}
	for _, x := range []struct {
		n, most int
		what    string
	}{{q.Combined, q.MostCombined, "queue"}, {q.Receive, q.MostReceive, "receive queue"},
		{q.Send, q.MostSend, "send queue"}} {
		if x.n > 0 {
			parts = append(parts, units.Plural(x.n, x.what)+of(x.most, x.n))
		}
	}
	for _, x := range []struct {
		n, most int
		what    string
	}{{q.ReceiveRing, q.MostRxRing, "receive"}, {q.SendRing, q.MostTxRing, "send"}} {
		if x.n > 0 {
			parts = append(parts, fmt.Sprintf("%s ring %d%s", x.what, x.n, of(x.most, x.n)))
		}
	}
	return strings.Join(parts, ", ")
}

func cardOffloads(c sample.Card) string {
	var on, off []string
	for _, k := range slices.Sorted(maps.Keys(c.Offloads)) {
		if c.Offloads[k] {
			on = append(on, k)
		} else {
			off = append(off, k)
		}
	}
	var parts []string
	if len(on) > 0 {
		parts = append(parts, "on: "+strings.Join(on, " "))
	}
	if len(off) > 0 {
		parts = append(parts, "off: "+strings.Join(off, " "))
	}
	if s := c.Sizes; s != nil && s.GSO > 0 {
		parts = append(parts, fmt.Sprintf("packets up to %s sent, %s received",
			units.Bytes(int64(s.GSO)), units.Bytes(int64(s.GRO))))
	}
	return strings.Join(parts, "; ")
}

// mostInterrupts is the largest number of interrupts that are listed. If there are more, only their
// CPUs are.
const mostInterrupts = 16

func cardInterrupts(c sample.Card) string {
	var parts, cpus []string
	for _, i := range c.Interrupts {
		if i.CPUs == "" {
			continue
		}
		if !slices.Contains(cpus, i.CPUs) {
			cpus = append(cpus, i.CPUs)
		}
		name := i.Name
		if name == "" {
			name = fmt.Sprint(i.Number)
		}
		parts = append(parts, name+" → CPU "+i.CPUs)
	}
	switch {
	case len(parts) == 0:
		return ""
	case len(parts) > mostInterrupts:
		return fmt.Sprintf("%d interrupts, to CPUs %s", len(parts), strings.Join(cpus, " "))
	}
	return "interrupts: " + strings.Join(parts, ", ")
}

func cardSteering(c sample.Card) string {
	var parts []string
	for _, x := range []struct {
		name  string
		masks map[string]string
	}{{"RPS", c.RPS}, {"XPS", c.XPS}} {
		if len(x.masks) == 0 {
			continue
		}
		var each []string
		for _, q := range slices.Sorted(maps.Keys(x.masks)) {
			each = append(each, q+" "+x.masks[q])
		}
		if len(each) > mostInterrupts {
			each = append(each[:mostInterrupts:mostInterrupts], "…")
		}
		parts = append(parts, x.name+" masks: "+strings.Join(each, ", "))
	}
	return strings.Join(parts, "; ")
}

// segmentsText returns text such as "segments of 1448 bytes in packets of 1500", or "" if that is
// not known.
func segmentsText(all []analysis.Segments) string {
	if len(all) == 0 {
		return ""
	}
	s := all[0]
	text := fmt.Sprintf("segments of %d bytes", s.Payload)
	if s.Packet <= jumbo { // else TCP sends less at once than a packet may hold
		text += fmt.Sprintf(" in packets of %d", s.Packet)
	}
	if s.Device != "" {
		text += fmt.Sprintf(" (the %s's %s has MTU %d)", s.End, s.Device, s.MTU)
	}
	return text
}

// jumbo is a size in bytes that no network card's packets exceed.
const jumbo = 16384
