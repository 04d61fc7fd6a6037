package endpoints

import (
	"math"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// Findings returns what the judged routes show, or nil without routes. culprits are the causes of
// slow tokens, by route.
func Findings(r *analysis.Report, culprits []Culprit) (out []analysis.Finding) {
	if len(r.Cells) == 0 {
		return nil
	}
	evidence := evident(r)
	if len(culprits) > 0 || len(evidence) > 0 {
		out = append(evidence, accuse(r, culprits)...)
		for _, c := range culprits {
			if c.Why != nil {
				out = append(out, *c.Why)
			}
		}
		out = append(append(out, unseen(r)...), processor(r)...)
	}
	if slices.ContainsFunc(r.Plan.Loads, workload.Alone) {
		out = append(out, suspect(r)...)
	}
	routes, tally := compared(r)
	where, unknown := exchanged(r)
	out = slices.Concat(out, holders(r), routes, where, connecting(r))
	if !several(r) && len(r.Failed) == 0 {
		if len(culprits) == 0 && len(evidence) == 0 {
			out = append(out, analysis.Finding{Code: OneRoute})
		}
	} else if len(out) == 0 {
		out = append(out, analysis.Finding{Code: NoBaseline})
	}
	found, absent := suspects(r)
	out = slices.Concat(out, broken(r), proxies(r, culprits), found)
	if f, ok := tally.Finding(); ok {
		out = append(out, f)
	}
	return slices.Concat(out, traceable(r), unknown, absent)
}

// several reports whether the report has a route besides the baseline.
func several(r *analysis.Report) bool {
	return slices.ContainsFunc(r.Cells, func(c analysis.Cell) bool { return !c.Baseline })
}

// heldUp reports whether packets show that something else than the server makes a route slow.
func heldUp(c analysis.Cell) bool {
	return c.Load == workload.Chat && c.Proven() &&
		slices.ContainsFunc(Division{c.Evidence}.Blamed(), func(p sample.EvidencePart) bool {
			return p.Part != sample.EvidenceServer
		})
}

func compared(r *analysis.Report) (out []analysis.Finding, tally analysis.Tally) {
	for _, l := range r.Plan.Loads {
		by := map[string][]int{}
		for i, c := range r.Cells {
			x := c.Metrics[c.Primary].Ratio
			if c.Load != l.Kind || c.Baseline || x == nil {
				continue
			}
			tally.Add(x.Verdict, x.N, x.Epochs)
			code := RoutesUnclear
			switch x.Verdict {
			case stats.Same:
				code = RoutesSame
			case stats.Better, stats.Worse:
				code = RoutesDiffer
			default:
				if heldUp(c) { // packets say by what
					continue
				}
			}
			by[code] = append(by[code], i)
		}
		for _, code := range []string{RoutesDiffer, RoutesSame, RoutesUnclear} {
			if by[code] != nil {
				out = append(out, analysis.Finding{Code: code, Load: l.Kind, Cells: by[code]})
			}
		}
	}
	return out, tally
}

// connectShare is the share of the primary time from which a difference in the time to connect is
// mentioned.
const connectShare = 0.01

// connecting returns the routes that take longer or less long to connect than the baseline.
func connecting(r *analysis.Report) []analysis.Finding {
	f := analysis.Finding{Code: Connecting}
	for i, c := range r.Cells {
		m := c.Metrics[workload.ConnectTime]
		if !c.Baseline && m.Ratio != nil && m.Price != nil &&
			math.Abs(m.Price.Median) >= connectShare*c.Metrics[c.Primary].Median &&
			(m.Ratio.Verdict == stats.Better || m.Ratio.Verdict == stats.Worse) {
			f.Cells = append(f.Cells, i)
		}
	}
	return some(f)
}

// some returns the finding if it is about cells.
func some(f analysis.Finding) []analysis.Finding {
	if len(f.Cells) == 0 {
		return nil
	}
	return []analysis.Finding{f}
}

func broken(r *analysis.Report) []analysis.Finding {
	f := analysis.Finding{Code: Broke}
	for i, c := range r.Cells {
		if c.Broke {
			f.Cells = append(f.Cells, i)
		}
	}
	return some(f)
}

// Culprit is the cause of a route's slow tokens, in the gaps between them or before the first one.
type Culprit struct {
	Route string
	Blame Blame
	Why   *analysis.Finding // nil: the blame says it
}

// Blame is the party that makes tokens slow.
type Blame string

const (
	Nobody   Blame = "neither"     // the gaps are steady
	Server   Blame = "the model"   // the server and its program
	Network  Blame = "the network" // the route
	Both     Blame = "both"
	NotKnown Blame = "unclear"
	TooFew   Blame = "too few rounds"
	NoOther  Blame = "one route" // no other route to compare with
	Held     Blame = "held back" // the same, but tokens arrive together
	Together Blame = "together"  // tokens arrive together over every route
)

func accuse(r *analysis.Report, all []Culprit) (out []analysis.Finding) {
	for _, x := range []struct {
		blame Blame
		code  string
	}{{Network, BlameNetwork}, {Both, BlameBoth}, {Server, BlameModel}, {Nobody, BlameNobody},
		{NotKnown, BlameUnclear}, {TooFew, BlameTooFew}, {Held, BlameHeld},
		{Together, BlameTogether}, {NoOther, BlameOneRoute}} {
		f := analysis.Finding{Code: x.code}
		for _, c := range all {
			at := slices.IndexFunc(r.Cells, func(o analysis.Cell) bool {
				return o.Label() == c.Route
			})
			if c.Blame == x.blame && at >= 0 {
				f.Cells = append(f.Cells, at)
			}
		}
		out = append(out, some(f)...)
	}
	return out
}
