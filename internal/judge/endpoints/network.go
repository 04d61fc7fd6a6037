package endpoints

import (
	"math"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// suspect returns whether it is the network, as far as that is certain. A route that differs from
// the baseline speaks for the network, unless packets show that the difference is elsewhere.
func suspect(r *analysis.Report) []analysis.Finding {
	by := map[stats.Verdict][]int{}
	inside := map[elsewhere][]int{}
	judged := 0
	base := slices.IndexFunc(r.Cells, func(c analysis.Cell) bool { return c.Baseline })
	for i, c := range r.Cells {
		x := c.Metrics[c.Primary].Ratio
		if x == nil || c.Baseline {
			continue
		}
		judged++
		if base >= 0 {
			if e := outsidePath(c, r.Cells[base], *x); e.part != "" {
				inside[e] = append(inside[e], i)
				continue
			}
		}
		by[x.Verdict] = append(by[x.Verdict], i)
	}
	if judged > 0 && len(by[stats.Same]) == judged {
		return []analysis.Finding{{Code: NoNetwork, Cells: by[stats.Same]}}
	}
	out := append(some(analysis.Finding{Code: NetworkBetter, Cells: by[stats.Better]}),
		some(analysis.Finding{Code: NetworkWorse, Cells: by[stats.Worse]})...)
	for _, x := range []struct {
		code    string
		certain bool
	}{{NotThePath, true}, {PathUnclear, false}} {
		for _, part := range []string{sample.EvidenceServer, sample.EvidenceClient} {
			out = append(out, some(analysis.Finding{Code: x.code, What: part,
				Cells: inside[elsewhere{part, x.certain}]})...)
		}
	}
	return out
}

// elsewhere is the part, the server or the client, in which a route spends what it differs from the
// baseline by. The zero value: on the path, or nothing shows it.
type elsewhere struct {
	part    string
	certain bool // the parts' intervals rule out that a quarter of it is on the path
}

// outsidePath returns the part, the server or the client, in which a route that is better or worse
// than the baseline spends the difference. It returns none if packets do not show that: if they show
// it on the path, or if the exchanges as captured differ by less than a quarter of what the routes do.
func outsidePath(c, base analysis.Cell, x analysis.Ratio) elsewhere {
	slow, fast, factor := c, base, x.Median
	if c.Metrics[c.Primary].Higher {
		factor = 1 / factor
	}
	switch x.Verdict {
	case stats.Worse:
	case stats.Better:
		slow, fast, factor = base, c, 1/factor
	default:
		return elsewhere{}
	}
	if !slow.Proven() || !fast.Proven() || !slow.Evidence.Writes || !fast.Evidence.Writes {
		return elsewhere{}
	}
	var server, client, path surplus
	for _, p := range slow.Evidence.Parts {
		partOf(p, &server, &client, &path).add(p, 1)
	}
	for _, p := range fast.Evidence.Parts {
		partOf(p, &server, &client, &path).add(p, -1)
	}
	inside, whole := server.with(client), Division{fast.Evidence}.Sum(Last)
	all := inside.more + path.more
	if all < PartShare*(factor-1)*whole || path.more > PartShare*all {
		return elsewhere{}
	}
	most := max(0, path.more+path.half())
	e := elsewhere{sample.EvidenceServer, !inside.unknown && !path.unknown &&
		most <= PartShare*(inside.more-inside.half()+most)}
	if client.more > server.more {
		e.part = sample.EvidenceClient
	}
	return e
}

// surplus is by how much parts of one route take longer than those of another one.
type surplus struct {
	more, squares float64 // squares: the sum of those of the halves of intervals
	unknown       bool    // an interval is
}

// add adds a part of the longer route, or with sign -1 of the other one.
func (s *surplus) add(p sample.EvidencePart, sign float64) {
	s.more += sign * p.Last
	s.squares += p.LastHalf * p.LastHalf
	s.unknown = s.unknown || p.LastHalf == 0 && p.Last > 0
}

func (s surplus) with(o surplus) surplus {
	return surplus{s.more + o.more, s.squares + o.squares, s.unknown || o.unknown}
}

func (s surplus) half() float64 { return math.Sqrt(s.squares) }

func partOf(p sample.EvidencePart, server, client, path *surplus) *surplus {
	switch p.Part {
	case sample.EvidenceServer:
		return server
	case sample.EvidenceClient:
		return client
	}
	return path
}
