package trend

import (
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// Base is a baseline's own figure, which shows the state of the machine.
type Base struct {
	Quantity
	Unit   string  `json:"unit"`
	Median float64 `json:"median"`
}

// Quantity identifies a quantity that several runs measured.
type Quantity struct {
	Label  string `json:"label"`
	From   string `json:"from"`
	Load   string `json:"load"`
	Work   string `json:"work"` // the load's options, in words
	On     string `json:"on"`
	Pin    string `json:"pin,omitempty"`
	Metric string `json:"metric"`
}

func quantityOf(r *analysis.Report, c analysis.Cell) Quantity {
	l := r.LoadAt(c)
	return Quantity{c.Name(), string(c.From), c.Load, workload.Of(l).Words(l), c.On, c.Pin, c.Primary}
}

// basesOf returns the baselines' own figures, or nil for endpoints, whose figures are not this
// machine's.
func basesOf(foreign bool, r *analysis.Report) []Base {
	var out []Base
	for _, c := range r.Cells {
		m, ok := c.Metrics[c.Primary]
		if !c.Baseline || foreign || !ok {
			continue
		}
		out = append(out, Base{quantityOf(r, c), m.Unit, m.Median})
	}
	return out
}

const leastUsual = 3

// Moved is a baseline's figure that differs from the median of earlier runs.
type Moved struct {
	Base
	Usual float64
}

// Unusual returns the baselines of a run that show another state of the machine than the median of
// earlier runs on the same kernel.
func Unusual(now Summary, before []Summary) (out []Moved) {
	earlier := map[Quantity][]float64{}
	for _, s := range before {
		if s.Kernel != now.Kernel {
			continue
		}
		for _, b := range s.Bases {
			earlier[b.Quantity] = append(earlier[b.Quantity], b.Median)
		}
	}
	for _, b := range now.Bases {
		xs := earlier[b.Quantity]
		if len(xs) < leastUsual {
			continue
		}
		if usual := stats.Median(xs); analysis.OtherState(usual, b.Median) {
			out = append(out, Moved{b, usual})
		}
	}
	return out
}
