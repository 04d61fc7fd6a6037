package sample

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Slices are a cell's slices of an epoch, in order. The lists have equal lengths.
type Slices struct {
	// Slots are positions in the epoch's timetable of all cells.
	Slots []int `json:"slots"`
	// Rates are payload bytes (bulk), trips (rr, udp-rr) or pages (query) per second.
	Rates []float64 `json:"rates"`
	// Medians are the median times of a trip or page; bulk has none.
	Medians []float64 `json:"medians_s,omitempty"`
	// CPU is both ends' CPU time per byte, trip or page, without proxies and kernel threads.
	CPU []float64 `json:"cpu_s,omitempty"`
	// Lost is the number of further slices that were cut short or began late.
	Lost int `json:"lost,omitempty"`
}

// MarshalJSON writes figures with six digits, to save space.
func (s *Slices) MarshalJSON() ([]byte, error) {
	type plain Slices
	out := plain(*s)
	out.Rates, out.Medians = rounded(s.Rates), rounded(s.Medians)
	return json.Marshal(out)
}

func rounded(xs []float64) []float64 {
	const digits = 6
	out := make([]float64, len(xs))
	for i, x := range xs {
		out[i], _ = strconv.ParseFloat(strconv.FormatFloat(x, 'g', digits, 64), 64)
	}
	return out
}

func (h Header) checkSlices() error {
	p := h.Plan
	if !(p.Same >= 0 && p.Same < 1) {
		return fmt.Errorf("impossible difference %v that counts as the same", p.Same)
	}
	if err := times(p.Epoch); err != nil {
		return err
	}
	for _, l := range p.Loads {
		if err := times(l.Slice); err != nil {
			return err
		}
	}
	return nil
}

// per cell and epoch
const maxSlices = 100_000

func (s *Slices) check() error {
	if s == nil {
		return nil
	}
	n := len(s.Slots)
	if n > maxSlices || s.Lost < 0 || s.Lost > maxSlices {
		return fmt.Errorf("%d slices and %d lost, at most %d are read", n, s.Lost, maxSlices)
	}
	if len(s.Rates) != n || len(s.Medians) != n && len(s.Medians) != 0 ||
		len(s.CPU) != n && len(s.CPU) != 0 {
		return fmt.Errorf("%d slices with %d rates, %d medians and %d CPU times", n, len(s.Rates),
			len(s.Medians), len(s.CPU))
	}
	for i, slot := range s.Slots {
		if slot < 0 || slot > maxSlots || i > 0 && slot <= s.Slots[i-1] {
			return fmt.Errorf("slot %d out of order", slot)
		}
	}
	for _, r := range s.Rates {
		if !(r > 0 && r <= maxRate) {
			return fmt.Errorf("impossible rate %v", r)
		}
	}
	if err := times(s.CPU...); err != nil {
		return err
	}
	return times(s.Medians...)
}

const maxSlots = 10_000_000
