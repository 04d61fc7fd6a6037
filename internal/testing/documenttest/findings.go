package documenttest

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/advise"
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/comparison"
	"github.com/bridgetoll/bridgetoll/internal/judge/endpoints"
	"github.com/bridgetoll/bridgetoll/internal/judge/ladder"
	"github.com/bridgetoll/bridgetoll/internal/judge/mesh"
	"github.com/bridgetoll/bridgetoll/internal/judge/predict"
	"github.com/bridgetoll/bridgetoll/internal/judge/scale"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/judge/sweep"
	"github.com/bridgetoll/bridgetoll/internal/judge/trace"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// unsupported returns the findings that the report's figures do not bear out.
func (r judged) unsupported() (out []string) {
	all := slices.Clone(r.Found)
	for i, t := range r.Traces {
		for _, f := range t.Findings {
			f.Rows = []int{i}
			all = append(all, f.Finding)
		}
	}
	for _, f := range all {
		if slices.ContainsFunc(f.Cells, func(i int) bool { return i < 0 || i >= len(r.Cells) }) {
			out = append(out, fmt.Sprintf("%+v: there are %d cells", f, len(r.Cells)))
		} else if rule := rules[f.Code]; rule != nil && !rule(r, f) {
			out = append(out, fmt.Sprintf("%+v: the figures are not so", f))
		}
	}
	return out
}

// rules report whether the figures bear out a finding, by its code.
var rules = map[string]func(judged, analysis.Finding) bool{
	analysis.Unclear:        judged.counted,
	analysis.TooFewRounds:   judged.counted,
	comparison.MostlyPacing: judged.counted,
	comparison.Keep: func(r judged, f analysis.Finding) bool {
		return r.some(f, certain) && (!r.some(f, muchWorse) || r.mayCostAs(f, comparison.Keep))
	},
	comparison.Avoid: func(r judged, f analysis.Finding) bool { return r.some(f, muchWorse) },
	comparison.Varies: func(r judged, f analysis.Finding) bool {
		return !r.some(f, muchWorse) && r.some(f, func(c analysis.Cell) bool {
			x, _ := comparison.Deciding(c)
			return x.Varies
		})
	},
	comparison.Open: func(r judged, f analysis.Finding) bool { return !r.some(f, certain) },
	comparison.Compared: func(r judged, f analysis.Finding) bool {
		return !r.some(f, func(c analysis.Cell) bool {
			return c.Load != f.Load || c.Pin != f.Pin || c.From != f.From || c.On != f.On ||
				c.Metrics[c.Primary].Ratio == nil
		})
	},
	comparison.OverIPv6:     ofEachCell,
	comparison.Tuned:        ofEachCell,
	comparison.AgainstLab:   ofEachCell,
	comparison.LeverHelps:   is(stats.Better),
	comparison.LeverHarms:   is(stats.Worse),
	comparison.LeverSame:    is(stats.Same),
	comparison.LeverUnclear: is(stats.Unclear),
	comparison.TokensFaster: longer(func(p analysis.Price) bool { return p.High < published160 }),
	comparison.TokensSlower: longer(func(p analysis.Price) bool { return p.Low >= published160 }),
	comparison.HiddenByLink: func(r judged, f analysis.Finding) bool {
		return r.alike(f) && len(f.Cells) > 1
	},
	scale.Scaling: rated(func(m analysis.Metric) *analysis.Ratio { return m.Scaling }),
	scale.AtSize:  rated(func(m analysis.Metric) *analysis.Ratio { return m.Ratio }),
	scale.OneIdle: func(r judged, f analysis.Finding) bool {
		return r.Cells[f.Cells[0]].Metrics[workload.ProcessMin].Median == 0
	},
	scale.Largest: func(r judged, f analysis.Finding) bool {
		return !slices.ContainsFunc(r.Cells, func(c analysis.Cell) bool { return scale.Ends(c) > f.N })
	},
	sweep.Knees: func(r judged, f analysis.Finding) bool { return bent(r.Curves, f) },
	sweep.KneesOverIPv4: func(r judged, f analysis.Finding) bool {
		return bent(r.OverIPv4, f)
	},
	predict.Over: func(r judged, f analysis.Finding) bool {
		return len(f.Rows) > 0 && !slices.ContainsFunc(f.Rows, func(i int) bool {
			if i < 0 || i >= len(r.Rows) {
				return true
			}
			x := r.Rows[i]
			_, ok := x.Over[f.What]
			return !ok || x.Baseline || x.From != string(f.From) || x.On != f.On
		})
	},
	predict.NoMode: func(r judged, _ analysis.Finding) bool {
		return !slices.ContainsFunc(r.Rows, func(x predict.Row) bool {
			return !x.Baseline && len(x.Over) > 0
		})
	},
	sweep.NoCurve:           func(r judged, _ analysis.Finding) bool { return len(r.Curves) == 0 },
	endpoints.RoutesDiffer:  all(stats.Better, stats.Worse),
	endpoints.RoutesSame:    all(stats.Same),
	endpoints.RoutesUnclear: all(stats.Unclear),
	endpoints.NetworkBetter: all(stats.Better),
	endpoints.NetworkWorse:  all(stats.Worse),
	endpoints.NoNetwork:     all(stats.Same),
	endpoints.NotThePath:    provenToDiffer,
	endpoints.PathUnclear:   provenToDiffer,
	endpoints.Connecting: func(r judged, f analysis.Finding) bool {
		return !r.some(f, func(c analysis.Cell) bool {
			x := c.Metrics[workload.ConnectTime].Ratio
			return x.Verdict != stats.Better && x.Verdict != stats.Worse
		})
	},
	endpoints.Broke: func(r judged, f analysis.Finding) bool {
		return !r.some(f, func(c analysis.Cell) bool { return !c.Broke })
	},
	endpoints.ProxyFree: all(stats.Same),
	endpoints.OneRoute: func(r judged, _ analysis.Finding) bool {
		return !slices.ContainsFunc(r.Cells, func(c analysis.Cell) bool { return !c.Baseline })
	},
	endpoints.PartBlamed: func(r judged, f analysis.Finding) bool {
		return r.some(f, analysis.Cell.Proven)
	},
	endpoints.PacketsUnclear: func(r judged, f analysis.Finding) bool {
		return !r.some(f, analysis.Cell.Proven)
	},
	ladder.Parts: ofSteps(func(s ladder.Step, f analysis.Finding) bool {
		return s.From == f.From && s.On == f.On && s.Prices[f.What].N > 0
	}),
	ladder.Sum: ofSteps(func(s ladder.Step, _ analysis.Finding) bool { return s.Below != "" }),
	ladder.Free: ofSteps(func(s ladder.Step, f analysis.Finding) bool {
		return s.Prices[f.What].Verdict == stats.Nothing
	}),
	ladder.Hidden: ofSteps(func(s ladder.Step, f analysis.Finding) bool {
		return s.Prices[f.What].LimitedBy == f.Why
	}),
	advise.NothingHelps: ofAdvice(func(a advise.Advice, f analysis.Finding) bool {
		return !slices.ContainsFunc(a.Levers, func(l advise.Lever) bool {
			return has(l, stats.Better) && !has(l, stats.Worse) && slices.Contains([]advise.Verdict{
				advise.Recommended, advise.NotSure, advise.NoGain}, l.Verdict)
		})
	}),
	advise.Use: ofLever(advise.Recommended, func(l advise.Lever) bool {
		return !l.Stays && has(l, stats.Better) && !has(l, stats.Worse)
	}),
	advise.UseHere: ofLever(advise.Recommended, func(l advise.Lever) bool {
		return l.Stays && has(l, stats.Better) && !has(l, stats.Worse)
	}),
	advise.AtItsPrice: ofLever(advise.AtAPrice, func(l advise.Lever) bool {
		return has(l, stats.Worse)
	}),
	advise.ForComparison: ofLever(advise.GivesUp, func(l advise.Lever) bool {
		return has(l, stats.Better)
	}),
	advise.MayHelp:   ofLever(advise.NotSure, func(l advise.Lever) bool { return len(l.Again) == 0 }),
	mesh.AtFault:     judged.atFault,
	mesh.AlsoAtFault: judged.atFault,
	mesh.CostFault: func(r judged, f analysis.Finding) bool {
		return len(f.Rows) == 1 && f.Rows[0] < len(r.Mesh.Costs[f.What].Faults)
	},
	mesh.NoFault:     healthy,
	mesh.NothingElse: healthy,
	mesh.NeitherWay:  healthy,
	mesh.NothingSlow: healthy,
	mesh.NoCostFault: healthy,
	mesh.DoubtfulLinks: func(r judged, f analysis.Finding) bool {
		return f.N == r.Mesh.Doubtful+r.Mesh.DoubtfulLoss
	},
	mesh.NodeUnanswered: failed(1, false), mesh.NodeLeft: failed(1, true),
	mesh.PairUnreached: failed(2, false), mesh.PairParted: failed(2, true),
	mesh.PairsWithoutResult: func(r judged, f analysis.Finding) bool {
		return f.N == len(slices.DeleteFunc(slices.Clone(r.Mesh.Failed), func(x mesh.Failed) bool {
			return len(x.Nodes) == 1
		}))
	},
	trace.Added: ofTrace(func(t trace.Trace, _ analysis.Finding) bool {
		return t.Words == "" && !t.Route() && !t.Control()
	}),
	trace.NotDivided: ofTrace(func(t trace.Trace, _ analysis.Finding) bool {
		return t.Words != "" && len(t.Rows) == 0
	}),
	trace.TooShort: ofTrace(func(t trace.Trace, _ analysis.Finding) bool { return t.Early }),
	trace.RequestAdded: ofTrace(func(t trace.Trace, _ analysis.Finding) bool {
		return t.Words == "" && t.Route() && t.Against != ""
	}),
	trace.RequestTakes: ofTrace(func(t trace.Trace, _ analysis.Finding) bool {
		return t.Words == "" && t.Route() && t.Against == ""
	}),
	trace.CostUnknown: ofTrace(func(t trace.Trace, _ analysis.Finding) bool {
		return t.Cost.N == 0
	}),
	trace.TailIn:    ofTrace(spent(func(s trace.Segment) float64 { return s.Tail })),
	trace.SlowestIn: ofTrace(spent(func(s trace.Segment) float64 { return s.Slowest })),
	trace.Frames: ofTrace(func(t trace.Trace, f analysis.Finding) bool {
		return alike(f.Values[trace.Took], *t.Row("bridge").Mine)
	}),
	trace.FramesInHooks: ofTrace(func(t trace.Trace, f analysis.Finding) bool {
		return alike(f.Values[trace.Whole], *t.Row("bridge").Mine)
	}),
	comparison.Limited:      judged.alike,
	comparison.OnlyMeasured: func(r judged, _ analysis.Finding) bool { return len(r.Failed) == 0 },
}

// atFault reports whether the finding is of all faults of one subject.
func (r judged) atFault(f analysis.Finding) bool {
	m := r.Mesh
	if m.Beside != nil && m.Beside.Mode == f.What {
		m = m.Beside
	}
	return len(f.Rows) > 0 && !slices.ContainsFunc(f.Rows, func(i int) bool {
		return i >= len(m.Faults) || m.Faults[i].Kind != m.Faults[f.Rows[0]].Kind ||
			!slices.Contains(m.Faults[i].Nodes, m.Faults[f.Rows[0]].Nodes[0])
	})
}

// healthy reports whether nothing is at fault.
func healthy(r judged, _ analysis.Finding) bool {
	if r.Mesh.Beside == nil {
		return len(r.Mesh.Faults) == 0
	}
	n := len(r.Mesh.Beside.Faults)
	for _, c := range r.Mesh.Costs {
		n += len(c.Faults)
	}
	return n == 0
}

// failed reports whether nodes, one or two, have no result, and whether they had one before.
func failed(nodes int, left bool) func(judged, analysis.Finding) bool {
	return func(r judged, f analysis.Finding) bool {
		x := r.Mesh.Failed[f.Rows[0]]
		return len(x.Nodes) == nodes && x.Left == left
	}
}

func ofAdvice(is func(advise.Advice, analysis.Finding) bool) func(judged, analysis.Finding) bool {
	return func(r judged, f analysis.Finding) bool {
		return len(f.Rows) == 1 && f.Rows[0] < len(r.Advice) && is(r.Advice[f.Rows[0]], f)
	}
}

// ofLever reports whether the finding's lever has a verdict and effects as is says.
func ofLever(v advise.Verdict, is func(advise.Lever) bool) func(judged, analysis.Finding) bool {
	return ofAdvice(func(a advise.Advice, f analysis.Finding) bool {
		return slices.ContainsFunc(a.Levers, func(l advise.Lever) bool {
			return l.Name == f.What && l.Verdict == v && is(l)
		})
	})
}

// has reports whether one of the lever's effects has the verdict.
func has(l advise.Lever, v stats.Verdict) bool {
	return slices.ContainsFunc(l.Effects(), func(e advise.Effect) bool { return e.Ratio.Verdict == v })
}

// ofTrace reports whether a trace, its own findings included, is as a finding says.
func ofTrace(is func(trace.Trace, analysis.Finding) bool) func(judged, analysis.Finding) bool {
	return func(r judged, f analysis.Finding) bool {
		return len(f.Rows) == 1 && f.Rows[0] < len(r.Traces) && is(r.Traces[f.Rows[0]], f)
	}
}

// spent reports whether a request is as long as a finding says, and as long in the part it names.
func spent(of func(trace.Segment) float64) func(trace.Trace, analysis.Finding) bool {
	return func(t trace.Trace, f analysis.Finding) bool {
		whole, took := 0.0, 0.0
		for _, s := range t.Segments {
			whole += of(s)
			if s.Row == f.What && strings.HasSuffix(string(s.Part), f.Why) {
				took += of(s)
			}
		}
		return alike(whole, f.Values[trace.Whole]) && took >= f.Values[trace.Took]*(1-rounding)
	}
}

const rounding = 1e-9

func alike(a, b float64) bool { return math.Abs(a-b) <= rounding*math.Abs(b) }

func ofSteps(is func(ladder.Step, analysis.Finding) bool) func(judged, analysis.Finding) bool {
	return func(r judged, f analysis.Finding) bool {
		return len(f.Rows) > 0 && !slices.ContainsFunc(f.Rows, func(i int) bool {
			return i < 0 || i >= len(r.Steps) || !is(r.Steps[i], f)
		})
	}
}

// bent reports whether the finding's curves are of its load and place, with knees as their points
// have them.
func bent(curves []sweep.Curve, f analysis.Finding) bool {
	return len(f.Rows) > 0 && !slices.ContainsFunc(f.Rows, func(i int) bool {
		if i < 0 || i >= len(curves) {
			return true
		}
		c := curves[i]
		return c.Load != f.Load || c.From != f.From || c.On != f.On ||
			!reflect.DeepEqual(c.Knee, sweep.KneeOf(c.Points))
	})
}

const published160 = 0.160 // s

func (r judged) some(f analysis.Finding, is func(analysis.Cell) bool) bool {
	return slices.ContainsFunc(f.Cells, func(i int) bool { return is(r.Cells[i]) })
}

func certain(c analysis.Cell) bool {
	return slices.Contains([]stats.Verdict{stats.Better, stats.Worse, stats.Same}, c.Verdict())
}

func muchWorse(c analysis.Cell) bool {
	x, higher := comparison.Deciding(c)
	return c.Verdict() == stats.Worse &&
		(higher && 1/x.High >= comparison.Dear || !higher && x.Low >= comparison.Dear)
}

// mayCostAs reports whether another finding with the code, of the same place, has no cell that is
// certainly cheaper than the finding's.
func (r judged) mayCostAs(f analysis.Finding, code string) bool {
	return slices.ContainsFunc(r.Found, func(g analysis.Finding) bool {
		return g.Code == code && g.From == f.From && g.On == f.On &&
			!slices.Equal(g.Cells, f.Cells) && !r.some(f, func(c analysis.Cell) bool {
			x, higher := comparison.Deciding(c)
			return r.some(g, func(d analysis.Cell) bool {
				y, _ := comparison.Deciding(d)
				return c.Load == d.Load && c.Pin == d.Pin &&
					(higher && x.High < y.Low || !higher && x.Low > y.High)
			})
		})
	})
}

func ofEachCell(_ judged, f analysis.Finding) bool {
	return len(f.Cells) > 0 && len(f.Ratios) == len(f.Cells)
}

// rated reports whether all cells are of the finding's load and place, and have the ratio.
func rated(of func(analysis.Metric) *analysis.Ratio) func(judged, analysis.Finding) bool {
	return func(r judged, f analysis.Finding) bool {
		return !r.some(f, func(c analysis.Cell) bool {
			return c.Load != f.Load || c.From != f.From || c.On != f.On ||
				of(c.Metrics[scale.Rate(c)]) == nil
		})
	}
}

func provenToDiffer(r judged, f analysis.Finding) bool {
	return !r.some(f, func(c analysis.Cell) bool {
		return !c.Proven() || c.Verdict() != stats.Better && c.Verdict() != stats.Worse
	})
}

// all reports whether all of a finding's cells have one of the verdicts.
func all(vs ...stats.Verdict) func(judged, analysis.Finding) bool {
	return func(r judged, f analysis.Finding) bool {
		return !r.some(f, func(c analysis.Cell) bool { return !slices.Contains(vs, c.Verdict()) })
	}
}

func is(v stats.Verdict) func(judged, analysis.Finding) bool {
	return func(_ judged, f analysis.Finding) bool { return f.Ratios[0].Verdict == v }
}

func longer(so func(analysis.Price) bool) func(judged, analysis.Finding) bool {
	return func(_ judged, f analysis.Finding) bool {
		return len(f.Prices) == len(f.Cells) &&
			!slices.ContainsFunc(f.Prices, func(p analysis.Price) bool { return !so(p) })
	}
}

func (r judged) alike(f analysis.Finding) bool {
	return !r.some(f, func(c analysis.Cell) bool {
		return c.LimitedBy == "" || c.LimitedBy != r.Cells[f.Cells[0]].LimitedBy
	})
}

// counted reports whether N of Of primary ratios are unclear.
func (r judged) counted(f analysis.Finding) bool {
	judged, open := 0, 0
	for _, o := range r.Found { // of crowds, which have two ratios, and of ladders
		for _, i := range o.Rows {
			if o.Code != ladder.Parts {
				break
			}
			if p := r.Steps[i].Prices[o.What]; p.LimitedBy == "" && !p.Undecided() {
				if judged++; p.Verdict == stats.Unclear {
					open++
				}
			}
		}
		for _, i := range o.Cells {
			m := r.Cells[i].Metrics[scale.Rate(r.Cells[i])]
			x := map[string]*analysis.Ratio{scale.Scaling: m.Scaling, scale.AtSize: m.Ratio}[o.Code]
			if x == nil {
				continue
			}
			if judged++; x.Verdict == stats.Unclear {
				open++
			}
		}
	}
	for _, x := range r.Rows {
		for _, p := range x.Over {
			if x.Baseline {
				break
			}
			if judged++; p.Verdict == stats.Unclear {
				open++
			}
		}
	}
	for _, c := range r.Cells {
		if r.Study == sample.StudyScale || r.Study == sample.StudyLadder {
			break
		}
		x := c.Metrics[c.Primary].Ratio
		if x != nil && (r.Study != "" || !x.Undecided() && !r.Plan.OnlyUnpaced(c)) {
			if judged++; x.Verdict == stats.Unclear {
				open++
			}
		}
	}
	return f.N == open && f.Of == judged
}
