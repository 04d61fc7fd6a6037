package trace

import (
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// nat is the time that a row of the path spends in NAT.
type nat struct {
	stats.Estimate
	mine, its *float64
}

// nats has NAT's own row, without a name if no hooks were traced, and the rows that it is taken
// from.
type nats struct {
	Row
	parts map[string]*nat
}

// natOf returns the NAT of two cells' trips. Epochs by hook show it; the rows, which are from
// epochs without these programs, have that much less, so that all rows still add up to the trip.
func (s *study) natOf(i, b int, rows []string) nats {
	out := nats{parts: map[string]*nat{}}
	var sum nat
	for _, row := range rows {
		p := hookPart(row, rowNAT)
		if kindOf(row) != inPath || !s.seesHook(p, i) && !s.seesHook(p, b) {
			continue
		}
		d, mine, its := s.inHook(p, i, b)
		if d.Pairs == 0 {
			continue
		}
		out.parts[row] = &nat{d.Estimate, mine, its}
		if out.Name == "" {
			out.Name, sum.Estimate, out.Epochs = rowNAT, d.Estimate, d.rounds
		} else {
			sum.Estimate = sum.Plus(d.Estimate)
			for k := range min(len(out.Epochs), len(d.rounds)) {
				out.Epochs[k] += d.rounds[k]
			}
		}
		sum.mine, sum.its = plus(sum.mine, mine), plus(sum.its, its)
	}
	if out.Name != "" {
		out.Added = price(sum.Estimate, 0, nothing)
		out.takes(sum.mine, sum.its)
	}
	return out
}

// withoutNAT returns the name of a row where NAT has its own.
func withoutNAT(row string) string { return strings.ReplaceAll(row, rowRouting, "routing") }

// seesHook reports whether a cell's epochs have the part.
func (s *study) seesHook(p part, i int) bool {
	return slices.ContainsFunc(s.cells[i].by[sample.TracedHooks], func(x seen) bool {
		return p.of(x) != nil
	})
}

// plus returns the sum of two times; nil: there is none.
func plus(a, b *float64) *float64 {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	sum := *a + *b
	return &sum
}

// less returns a without b, at least 0.
func less(a, b *float64) *float64 {
	if a == nil || b == nil {
		return a
	}
	rest := max(0, *a-*b)
	return &rest
}
