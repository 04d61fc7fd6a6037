package mesh

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// The codes of findings. Rows are indexes of Mesh.Failed, or of the faults of mode What.
const (
	VisitsWitnessed    = "visits-witnessed"
	VisitsFailed       = "visits-failed"       // N of Of; the others were witnessed
	NothingMeasuredOn  = "nothing-measured-on" // the network of mode What
	NodeUnanswered     = "node-unanswered"
	NodeLeft           = "node-left" // in the middle of the run
	PairUnreached      = "pair-unreached"
	PairParted         = "pair-parted" // in the middle of the run
	PairsWithoutResult = "pairs-without-result"

	AtFault        = "at-fault"      // a node, link or group
	AlsoAtFault    = "also-at-fault" // not in the answer
	CostFault      = "cost-fault"    // Rows are of the costs in metric What
	AlsoCostFault  = "also-cost-fault"
	MoreFaults     = "more-faults"
	FewSweeps      = "few-mesh-sweeps" // N, on which a fault is based
	DoubtfulLinks  = "doubtful-links"
	UndecidedLinks = "undecided-links"
	TypicalCost    = "typical-cost"
	CostUnknown    = "cost-unknown"

	// In metric What, a node or link would have been reported from values.named_from on, as a
	// factor.
	NoFault       = "no-fault"
	NothingElse   = "nothing-else"
	NeitherWay    = "neither-way" // of the only link
	TooNoisy      = "too-noisy"
	NotComparable = "not-comparable" // one pair of nodes has nothing to be compared with
	TooFewSweeps  = "too-few-sweeps"

	// What the metrics' thresholds mean if nothing is named.
	NothingSlow      = "nothing-slow"
	NoLinkSlow       = "no-link-slow" // of nodes it is not known
	NeitherWaySlow   = "neither-way-slow"
	OnePairAlone     = "one-pair-alone"
	NoiseUnknown     = "noise-unknown"
	NoCostFault      = "no-cost-fault"
	OneCostAlone     = "one-cost-alone"
	CostsNotCompared = "costs-not-compared"
)

// NamedFrom is the key of a finding's value.
const NamedFrom = "named_from"

const (
	// mostNamed is the largest number of faults in an answer, unless there is one more.
	mostNamed = 3
	// If noise may hide a slowness by more than this factor, the answer calls nothing healthy.
	hidden = 3
)

// Findings returns what the mesh of these visits shows. The answer names only faults.
func (m *Mesh) Findings(pairs []sample.PairVisit) (out []analysis.Finding) {
	if m.Empty() {
		return []analysis.Finding{{Code: analysis.NothingMeasured}}
	}
	add := func(code string, n int) {
		if n > 0 {
			out = append(out, analysis.Finding{Code: code, N: n})
		}
	}
	lost := 0
	for i, x := range m.Failed {
		code := map[bool]string{false: NodeUnanswered, true: NodeLeft}[x.Left]
		if len(x.Nodes) > 1 {
			lost++
			code = map[bool]string{false: PairUnreached, true: PairParted}[x.Left]
		}
		out = append(out, analysis.Finding{Code: code, Rows: []int{i}})
	}
	of := m
	if m.Beside != nil {
		of = m.Beside
	}
	faults := m.faults(of)
	out = append(out, faults...)
	switch n := len(faults); {
	case n == 0:
		out = append(out, of.none()...)
	case n > mostNamed+1:
		add(MoreFaults, n-mostNamed)
		fallthrough
	default:
		if m.Sweeps < stats.MinJudged {
			add(FewSweeps, m.Sweeps)
		}
	}
	quiet := len(faults) == 0
	if m.Beside == nil {
		add(DoubtfulLinks, m.Doubtful+m.DoubtfulLoss)
	} else {
		n := m.count(SlowUndecided)
		add(UndecidedLinks, n)
		lossy := m.lossy()
		out = append(append(out, lossy...), m.typicalCost())
		quiet = quiet && n+len(lossy) == 0
	}
	if quiet {
		out = append(out, analysis.Finding{Code: of.threshold()})
		if m.Beside != nil {
			out = append(out, m.costThreshold()...)
		}
	}
	add(PairsWithoutResult, lost)
	return append(out, m.witnessed(pairs))
}

func (m *Mesh) witnessed(pairs []sample.PairVisit) analysis.Finding {
	bad := failedPairs(pairs)
	switch {
	case len(m.Metrics) == 0:
		return analysis.Finding{Code: NothingMeasuredOn, What: m.Mode}
	case bad > 0:
		return analysis.Finding{Code: VisitsFailed, N: bad, Of: len(pairs)}
	}
	return analysis.Finding{Code: VisitsWitnessed}
}

// faults returns those of one of the two modes and, if there are two, where the other costs more
// than is typical.
func (m *Mesh) faults(of *Mesh) (out []analysis.Finding) {
	for _, rows := range of.subjects() {
		out = append(out, analysis.Finding{Code: AtFault, What: of.Mode, Rows: rows})
	}
	for _, l := range loadsOfMesh {
		for i := range m.Costs[l.metric].Faults {
			out = append(out, analysis.Finding{Code: CostFault, What: l.metric, Rows: []int{i}})
		}
	}
	for i := mostNamed; len(out) > mostNamed+1 && i < len(out); i++ {
		out[i].Code = map[string]string{AtFault: AlsoAtFault, CostFault: AlsoCostFault}[out[i].Code]
	}
	return out
}

// lossy returns what loses packets of the mode that is compared with another one.
func (m *Mesh) lossy() (out []analysis.Finding) {
	for _, rows := range m.subjects() {
		rows = slices.DeleteFunc(rows, func(i int) bool {
			return m.Faults[i].Metric != workload.RetransmissionRate
		})
		if len(rows) > 0 {
			out = append(out, analysis.Finding{Code: AlsoAtFault, What: m.Mode, Rows: rows})
		}
	}
	return out
}

// subjects returns the indexes of each node's, link's or group's faults.
func (m *Mesh) subjects() (out [][]int) {
	for k, x := range m.Faults {
		i := slices.IndexFunc(out, func(s []int) bool {
			first := m.Faults[s[0]]
			return first.Kind == x.Kind && sameNodes(first.Nodes, x.Nodes)
		})
		if i < 0 {
			out = append(out, nil)
			i = len(out) - 1
		}
		out[i] = append(out[i], k)
	}
	return out
}

func sameNodes(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// none returns how sure it is in each metric that there is no fault.
func (m *Mesh) none() (out []analysis.Finding) {
	fine := NoFault
	switch {
	case m.OnePair():
		fine = NeitherWay
	case len(m.Failed) > 0 || m.Doubtful+m.DoubtfulLoss > 0:
		fine = NothingElse
	}
	by := map[string][]analysis.Finding{}
	for _, l := range loadsOfMesh {
		x, measured := m.Metrics[l.metric]
		f := analysis.Finding{Code: fine, What: l.metric}
		switch least := x.from(); {
		case !measured:
			continue
		case x.OnePair && least == nil && (m.Sweeps > 1 || !l.higher):
			f.Code = NotComparable
		case least == nil:
			f.Code = TooFewSweeps
		default:
			if f.Values = map[string]float64{NamedFrom: *least}; *least > hidden {
				f.Code = TooNoisy
			}
		}
		by[f.Code] = append(by[f.Code], f)
	}
	return slices.Concat(by[fine], by[TooNoisy], by[NotComparable], by[TooFewSweeps])
}

// threshold returns the code that says what the metrics' thresholds mean.
func (m *Mesh) threshold() string {
	links, nodes := false, false
	for _, l := range loadsOfMesh {
		x := m.Metrics[l.metric]
		links, nodes = links || x.NamedFrom != nil, nodes || x.NodesFrom != nil
	}
	switch {
	case m.OnePair() && m.Metrics[workload.Throughput].NamedFrom != nil:
		return NeitherWaySlow
	case m.OnePair():
		return OnePairAlone
	case !links:
		return NoiseUnknown
	case !nodes:
		return NoLinkSlow
	}
	return NothingSlow
}

// OnePair reports whether only one pair of nodes has results, in any metric.
func (m *Mesh) OnePair() bool {
	for _, x := range m.Metrics {
		if !x.OnePair {
			return false
		}
	}
	return len(m.Metrics) > 0
}

func (m *Mesh) typicalCost() analysis.Finding {
	if len(m.Costs) == 0 {
		return analysis.Finding{Code: CostUnknown}
	}
	return analysis.Finding{Code: TypicalCost}
}

// costThreshold returns what is known of links on which the mode costs more.
func (m *Mesh) costThreshold() []analysis.Finding {
	for _, l := range loadsOfMesh {
		switch c, ok := m.Costs[l.metric]; {
		case ok && c.OnePair:
			return []analysis.Finding{{Code: OneCostAlone}}
		case ok && c.NamedFrom == nil:
			return []analysis.Finding{{Code: CostsNotCompared}}
		}
	}
	if len(m.Costs) == 0 {
		return nil
	}
	return []analysis.Finding{{Code: NoCostFault}}
}
