package analysis

import (
	"encoding/json"
	"math"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// Toll returns a cell's cost relative to the baseline in its load's primary metric, or in CPU time
// if it fills a link: 2 is half the throughput or twice the latency. It is smallest for the
// baseline and largest for a cell without a ratio.
func (c Cell) Toll() float64 {
	if c.Baseline {
		return math.Inf(-1)
	}
	r := c.Metrics[c.Primary].Ratio
	switch cpu := c.FullCPU(); {
	case cpu != nil:
		return cpu.Median
	case r == nil:
		return math.Inf(1)
	case c.Metrics[c.Primary].Higher:
		return 1 / r.Median
	}
	return r.Median
}

// rank returns the toll, or 1 if it is unclear: what it happened to be is no order.
func (c Cell) rank() float64 {
	r := c.Metrics[c.Primary].Ratio
	if !c.Baseline && c.FullCPU() == nil && r != nil && r.Verdict == stats.Unclear {
		return 1
	}
	return c.Toll()
}

// FillsLink reports whether the cell was as fast as its wire, a network card or a shaper.
func (c Cell) FillsLink() bool { return Fills(c.LimitedBy) }

// FullCPU returns the ratio of the CPU time of a cell that fills its link, which decides its
// verdict; nil if it fills none or that is not known.
func (c Cell) FullCPU() *Ratio {
	if !c.FillsLink() {
		return nil
	}
	return c.Metrics[workload.CPUPerByte].Ratio
}

// Fills reports whether limitedBy names a link rather than a party.
func Fills(limitedBy string) bool {
	return limitedBy == string(mode.HopWire) || limitedBy == limitCard || limitedBy == limitShaper
}

// Link names the link that limits a cell: "the wire", "the 10 Gbit/s card eth0 of node b".
func (c Cell) Link() string {
	if c.Capacity == nil {
		return "the " + c.LimitedBy
	}
	return c.Capacity.Words()
}

// named is a cell whose JSON has its tunes even if there are none.
type named struct {
	Mode    mode.Name      `json:"mode"`
	Route   string         `json:"-"`
	From    mode.Placement `json:"from"`
	To      mode.Target    `json:"to"`
	Load    string         `json:"load"`
	Point   string         `json:"point,omitempty"`
	Tune    mode.Tunes     `json:"tune"`
	Shape   sample.Shape   `json:"shape,omitzero"`
	On      string         `json:"on"`
	Pin     string         `json:"pin,omitempty"`
	Control bool           `json:"control,omitempty"`
	Placebo bool           `json:"placebo,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (c Cell) MarshalJSON() ([]byte, error) {
	type plain Cell
	return json.Marshal(struct {
		named
		plain // whose own cell is hidden by the fields of named
	}{named(c.Cell), plain(c)})
}

// Proven reports whether the evidence suffices for a verdict.
func (c Cell) Proven() bool {
	if c.Evidence == nil {
		return false
	}
	_, ok := c.Evidence.Clear()
	return ok
}

// Label returns a cell's mode, with its target if the mode has several, and its tunes.
func Label(c sample.Cell) string {
	m, ok := mode.Find(c.Mode)
	if !ok {
		m.Name = c.Named().Mode // a route, or a mode of a later toll
	}
	return m.Label(c.From, c.To, c.Tune)
}

// RowName returns a cell's label, with the shape of a crowd or the point of a sweep.
func RowName(c sample.Cell) string {
	switch {
	case c.Shape.Crowd():
		return Label(c) + " " + c.Shape.String()
	case c.Point != "":
		return Label(c) + " at " + c.Point
	}
	return Label(c)
}

// Name returns the cell's RowName.
func (c Cell) Name() string { return RowName(c.Cell) }

// Label returns what the function Label returns for the cell.
func (c Cell) Label() string { return Label(c.Cell) }
