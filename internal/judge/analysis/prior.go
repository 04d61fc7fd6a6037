package analysis

import (
	"math"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

type pairing struct {
	i, b   int
	metric string
}

// memory caches what was computed from a file that no longer changes. The zero value caches
// nothing.
type memory struct {
	epochs map[pairing][]stats.Epoch
	priors map[pairing]stats.Prior
}

// prior returns the prior of cell i's epochs, from earlier runs and from the other cells of its
// group, the control included.
func (j *Run) prior(i int, metric string, epochs func(k, b int) []stats.Epoch) stats.Prior {
	g := groupOf(j.Series[i].Cell)
	return stats.Learn(j.known(g, metric), j.informants(g, i, epochs))
}

func (j *Run) informants(g group, i int,
	epochs func(k, b int) []stats.Epoch) (rows [][]stats.Epoch) {
	b, ok := j.base[g]
	if !ok {
		return nil
	}
	for k, s := range j.Series {
		if k != i && k != b && groupOf(s.Cell) == g && !j.Failed(k) {
			rows = append(rows, epochs(k, b))
		}
	}
	return rows
}

func (j *Run) known(g group, metric string) stats.Prior {
	for _, p := range j.File.Header.Plan.Priors {
		if string(g.from) == p.From && g.load == p.Load && g.point == p.Point && g.on == p.On &&
			g.pin == p.Pin && !g.shape.Crowd() && p.Metric == metric {
			return stats.Prior{Variance: p.Variance, Freedom: p.Freedom}
		}
	}
	return stats.Assumed
}

func (j *Run) spreads(g group) map[string]Spread {
	const nobody = -1
	out := map[string]Spread{}
	l := j.Series[j.base[g]].Load
	for _, metric := range []string{Rate(l), workload.LatencyP50, cpuMetric(l)} {
		rows := j.informants(g, nobody, func(k, b int) []stats.Epoch {
			return j.pairs(k, b, metric)
		})
		if p := stats.Learn(stats.Assumed, rows); p != stats.Assumed {
			out[metric] = Spread{math.Sqrt(p.Variance), p.Freedom}
		}
	}
	return out
}

func (j *Run) moderate(i, b int, metric string) stats.Estimate {
	epochs := j.pairs(i, b, metric)
	if len(epochs) == 0 {
		return stats.Estimate{}
	}
	at := pairing{i: i, metric: metric}
	prior, ok := j.memory.priors[at]
	if !ok {
		prior = j.prior(i, metric, func(k, b int) []stats.Epoch { return j.pairs(k, b, metric) })
		if j.memory.priors != nil {
			j.memory.priors[at] = prior
		}
	}
	return stats.Moderate(epochs, prior)
}

func (j *Run) pairs(i, b int, metric string) []stats.Epoch {
	at := pairing{i, b, metric}
	epochs, ok := j.memory.epochs[at]
	if !ok {
		_, epochs = j.epochs(i, b, metric)
		if j.memory.epochs != nil {
			j.memory.epochs[at] = epochs
		}
	}
	return epochs
}
