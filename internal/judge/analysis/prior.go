package analysis

import "github.com/bridgetoll/bridgetoll/internal/judge/stats"

// pairing identifies the pairs of two cells' slices in a metric.
type pairing struct {
	i, b   int
	metric string
}

// memory keeps what was computed from a file that no longer changes. The zero value keeps
// nothing.
type memory struct {
	epochs map[pairing][]stats.Epoch
	priors map[pairing]stats.Prior // of a cell in a metric; b is not set
}

// prior returns how much the epochs of cell i are expected to differ in a metric, before its
// own are seen: what the other cells of its group show against their baseline, the control
// among them. epochs returns those of two cells.
func (j *Run) prior(i int, epochs func(k, b int) []stats.Epoch) stats.Prior {
	b, ok := j.BaselineOf(i)
	if !ok {
		return stats.Assumed
	}
	var rows [][]stats.Epoch
	for k, s := range j.Series {
		if k != i && k != b && SameGroup(s.Cell, j.Series[i].Cell) && !j.Failed(k) {
			rows = append(rows, epochs(k, b))
		}
	}
	return stats.Learn(stats.Assumed, rows)
}

// moderate estimates the logarithm of cell i's metric over cell b's from their slices.
func (j *Run) moderate(i, b int, metric string) stats.Estimate {
	epochs := j.pairs(i, b, metric)
	if len(epochs) == 0 {
		return stats.Estimate{}
	}
	at := pairing{i: i, metric: metric}
	prior, ok := j.memory.priors[at]
	if !ok {
		prior = j.prior(i, func(k, b int) []stats.Epoch { return j.pairs(k, b, metric) })
		if j.memory.priors != nil {
			j.memory.priors[at] = prior
		}
	}
	return stats.Moderate(epochs, prior)
}

// pairs returns the epochs of cells i and b in a metric.
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
