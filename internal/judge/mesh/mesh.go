// Package mesh judges every pair of a cluster's nodes, and names the slow nodes and links.
package mesh

import (
	"cmp"
	"math"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/mesh/model"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

type fits struct {
	metrics []string
	of      map[string]*model.Fit
}

var loadsOfMesh = []struct {
	load, metric string
	higher       bool
}{{workload.RR, workload.LatencyP50, false}, {workload.Bulk, workload.Throughput, true}}

func fitMesh(p sample.Plan, pairs []sample.PairVisit) fits {
	out := fits{of: map[string]*model.Fit{}}
	for _, l := range loadsOfMesh {
		if !slices.ContainsFunc(p.Loads, func(x sample.Load) bool { return x.Kind == l.load }) {
			continue
		}
		var visits []model.Measurement
		for _, v := range pairs {
			if v.Load != l.load || v.Failure != "" {
				continue
			}
			slow := v.Value
			if l.higher {
				slow = 1 / v.Value
			}
			visits = append(visits, model.Measurement{
				Pair: v.Pair, Sweep: v.Sweep, Round: v.Round, Slowness: slow})
		}
		out.metrics = append(out.metrics, l.metric)
		out.of[l.metric] = model.New(len(p.Mesh.Nodes), sample.BothWays(l.load), visits)
	}
	return out
}

// fitLoss fits the model to retransmissions. It returns nil if no visit has their number.
func fitLoss(p sample.Plan, pairs []sample.PairVisit) *model.Fit {
	var sent []model.Sent
	for _, v := range pairs {
		if v.Failure == "" && v.Segments > 0 {
			sent = append(sent, model.Sent{Pair: v.Pair, Sweep: v.Sweep, Round: v.Round,
				Segments: v.Segments, Again: v.Retransmits})
		}
	}
	if len(sent) == 0 {
		return nil
	}
	return model.Loss(len(p.Mesh.Nodes), sent)
}

// Report is the judged mesh of a cluster.
type Report struct {
	analysis.Measured
	Mesh *Mesh `json:"mesh,omitempty"`
	analysis.Said
	// Doubts are what the last warnings say, whose texts show/sentence makes.
	Doubts []analysis.Finding `json:"-"`
}

// Base returns what all studies share.
func (r *Report) Base() *analysis.Report {
	return &analysis.Report{Measured: r.Measured, Said: r.Said}
}

// Empty reports whether nothing has a result.
func (r *Report) Empty() bool { return r.Mesh.Empty() }

// Complete reports whether the run reached its end and all nodes and links have a result.
func (r *Report) Complete() bool { return len(r.Mesh.Failed) == 0 && !r.Plan.CutShort() }

// Judge judges a results file of a mesh.
func Judge(f *sample.File) *Report {
	p, base := f.Header.Plan, analysis.Blank(f)
	r := &Report{Measured: base.Measured, Said: base.Said}
	own := judgeMode(p, p.Mesh.Mode, f.End.Sweeps, ofMode(f.Pairs, false))
	m := own.mesh
	r.Mesh, m.NotWitnessed = m, p.Mesh.NotWitnessed
	r.Warnings = analysis.BrokenOff(f)
	warn := func(x analysis.Finding) {
		r.Warnings = append(r.Warnings, analysis.Warning{Code: x.Code})
		r.Doubts = append(r.Doubts, x)
	}
	for _, x := range m.warnings(f, own.fits) {
		warn(x)
	}
	if p.Mesh.Beside != "" {
		beside := judgeMode(p, p.Mesh.Beside, f.End.Sweeps, ofMode(f.Pairs, true))
		m.Beside = beside.mesh
		m.Failed = mergeFailed(m.Failed, m.Beside.Failed, m.Mode, m.Beside.Mode)
		m.Beside.Failed = []Failed{}
		m.addCosts(p, f.Pairs, own, beside)
		for _, x := range m.Beside.warnings(f, beside.fits) {
			if x.What = m.Beside.Mode; slices.Contains([]string{WarnFewSweeps, Doubtful, DoubtfulLoss}, x.Code) {
				warn(x)
			}
		}
	}
	r.Found = m.Findings(f.Pairs)
	return r
}

type judged struct {
	mesh *Mesh
	fits fits
	slow map[string]marks // by metric
}

func judgeMode(p sample.Plan, mode string, sweeps int, pairs []sample.PairVisit) judged {
	m := &Mesh{Mode: mode, On: p.Mesh.On, Sweeps: sweeps, Nodes: []Node{},
		Metrics: map[string]Metric{},
		Faults:  []Fault{}, Failed: failedOfMesh(p, pairs)}
	out := judged{m, fitMesh(p, pairs), map[string]marks{}}
	fs := out.fits
	m.addNodes(p, pairs)
	byFit, doubtful := model.Faults(fs.list()...)
	m.Doubtful = doubtful
	for i, metric := range fs.metrics {
		out.slow[metric] = m.judge(metric, fs.of[metric], byFit[i])
	}
	if lost := fitLoss(p, pairs); lost != nil {
		// A loss also makes its visit slow, so faults of both kinds would count twice.
		byFit, m.DoubtfulLoss = model.Faults(lost)
		m.judge(workload.RetransmissionRate, lost, byFit[0])
	}
	m.addGroups(p.Mesh.Labels, fs)
	slices.SortStableFunc(m.Faults, func(a, b Fault) int {
		rank := map[string]int{FaultGroup: 0, FaultNode: 1, FaultLink: 2}
		return cmp.Compare(rank[a.Kind], rank[b.Kind])
	})
	return out
}

func (fs fits) list() []*model.Fit {
	var out []*model.Fit
	for _, m := range fs.metrics {
		out = append(out, fs.of[m])
	}
	return out
}

// number returns a pointer to x, or nil if JSON cannot represent x.
func number(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

func ratioTo(metric string, factor, low, high float64) (x float64, l, h *float64) {
	if metric == workload.Throughput {
		return 1 / factor, number(1 / high), number(1 / low)
	}
	return factor, number(low), number(high)
}

func (m *Mesh) addNodes(p sample.Plan, pairs []sample.PairVisit) {
	for _, n := range p.Mesh.Nodes {
		m.Nodes = append(m.Nodes, Node{Node: n, Effects: map[string]Effect{}})
	}
	for _, v := range pairs {
		for _, i := range v.Pair {
			m.Nodes[i].Visits++
			if v.Failure != "" {
				m.Nodes[i].Failed++
			}
		}
	}
}

// judge adds a metric and its faults to the mesh and returns the slow links, which are those that a
// fault explains.
func (m *Mesh) judge(metric string, fit *model.Fit, faults []model.Fault) marks {
	slow := markLinks(fit, faults)
	switch metric {
	case workload.Throughput:
		m.addEffects(metric, workload.ThroughputOut, fit.Out, slow.out)
		m.addEffects(metric, ThroughputIn, fit.In, slow.in)
	case workload.LatencyP50:
		m.addEffects(metric, metric, fit.Out, slow.out)
	}
	m.addMetric(metric, fit, slow.all)
	for _, x := range faults {
		m.Faults = append(m.Faults, m.fault(metric, fit, x, slow))
	}
	return slow
}

func (m *Mesh) addEffects(metric, name string, effects []model.Effect, slow [][]bool) {
	for i, e := range effects {
		if e.Of > 1 && number(e.Factor) != nil {
			x, low, high := ratioTo(metric, e.Factor, e.Low, e.High)
			m.Nodes[i].Effects[name] = Effect{Ratio: x, Low: low, High: high, Slow: trues(slow[i]),
				Of: e.Of}
		}
	}
}

func (m *Mesh) name(i int) string { return m.Nodes[i].Name }

func (m *Mesh) names(nodes []int) []string {
	out := make([]string, len(nodes))
	for i, n := range nodes {
		out[i] = m.name(n)
	}
	return out
}

func valueOf(metric string, x float64) float64 {
	switch metric {
	case workload.Throughput:
		return 1 / x
	case workload.RetransmissionRate:
		return model.Rate(x)
	}
	return x
}

func (m *Mesh) addMetric(metric string, fit *model.Fit, slow [][]bool) {
	value := func(a, b int) float64 { return valueOf(metric, fit.Slowness(a, b)) }
	out := Metric{Load: workload.Bulk, Unit: workload.MetricOf(
		metric, sample.Load{Kind: workload.Bulk}).Unit}
	n := len(m.Nodes)
	var all []float64
	slowest := [2]int{}
	for a := range n {
		for b := range n {
			x := value(a, b)
			if math.IsNaN(x) || a == b || !fit.Directed && b < a {
				continue
			}
			all = append(all, x)
			if len(all) == 1 || fit.Slowness(a, b) > fit.Slowness(slowest[0], slowest[1]) {
				slowest = [2]int{a, b}
			}
		}
	}
	if len(all) == 0 {
		return
	}
	for _, l := range loadsOfMesh {
		if l.metric == metric {
			out.Load, out.Higher = l.load, l.higher
		}
	}
	slices.Sort(all)
	out.Fastest, out.Slowest = all[0], all[len(all)-1]
	out.Median, out.Links = stats.Median(all), len(all)
	if out.Higher {
		out.Fastest, out.Slowest = out.Slowest, out.Fastest
	}
	out.SlowestLink = [2]string{m.name(slowest[0]), m.name(slowest[1])}
	out.Typical, out.OnePair = valueOf(metric, fit.Level), fit.Alone
	switch {
	case metric == workload.RetransmissionRate:
		out.NamedFrom = number(fit.LeastRate())
	case fit.Known():
		out.Noise, out.NamedFrom, out.NodesFrom = number(fit.Noise), number(fit.LeastLink()),
			number(fit.LeastNode())
	}
	if n <= matrixNodes {
		out.Matrix = make([][]*float64, n)
		for a := range n {
			out.Matrix[a] = make([]*float64, n)
			for b := range n {
				if a != b {
					out.Matrix[a][b] = number(value(a, b))
				}
			}
		}
		out.Slow = slow
	}
	m.Metrics[metric] = out
}

func (m *Mesh) fault(metric string, fit *model.Fit, x model.Fault, slow marks) Fault {
	out := Fault{Nodes: m.names(x.Nodes), Metric: metric, Way: WayBoth, Slow: x.Slow, Of: x.Of}
	switch x.Kind {
	case model.Link, model.LinkWay:
		out.Kind = FaultLink
	case model.Apart:
		out.Kind = FaultGroup
	default:
		out.Kind = FaultNode
		side := slow.in
		if i := x.Nodes[0]; x.Out && fit.Out[i].Factor == x.Factor {
			side = slow.out
		}
		out.Slow = trues(side[x.Nodes[0]])
	}
	switch {
	case metric == workload.LatencyP50:
	case !x.In:
		out.Way = WayOut
	case !x.Out:
		out.Way = WayIn
	}
	if metric == workload.RetransmissionRate {
		out.addRates(fit, x)
		return out
	}
	out.Ratio, out.Low, out.High = ratioTo(metric, x.Factor, x.Low, x.High)
	return out
}

func (x *Fault) addRates(fit *model.Fit, of model.Fault) {
	x.Low, x.High = number(model.Rate(fit.Level*of.Low)), number(model.Rate(fit.Level*of.High))
	i := of.Nodes[0]
	switch of.Kind {
	case model.Link, model.LinkWay:
		x.RateOut, x.RateIn = number(model.Rate(fit.Slowness(i, of.Nodes[1]))),
			number(model.Rate(fit.Slowness(of.Nodes[1], i)))
	case model.Apart:
		x.RateOut = number(model.Rate(fit.Level * of.Factor))
	default:
		x.RateOut, x.RateIn = number(model.Rate(fit.Level*fit.Out[i].Factor)),
			number(model.Rate(fit.Level*fit.In[i].Factor))
	}
}

// Converged reports whether each mode has enough sweeps, and each node's effect (or a single pair's
// value) is known to within the plan's precision, the relative half-width of its interval.
func Converged(p sample.Plan, pairs []sample.PairVisit) bool {
	if p.Mesh.Beside == "" {
		return converged(p, pairs)
	}
	return converged(p, ofMode(pairs, false)) && converged(p, ofMode(pairs, true))
}

func converged(p sample.Plan, pairs []sample.PairVisit) bool {
	fs, measured := fitMesh(p, pairs), false
	for _, metric := range fs.metrics {
		fit := fs.of[metric]
		if fit.Visits == 0 {
			continue // all failed: more visits do not help
		}
		measured = true
		if fit.Sweeps < stats.MinJudged {
			return false
		}
		if fit.Alone {
			x, low, high := fit.Typical()
			if !(max(high-x, x-low) <= p.Precision*x) {
				return false
			}
			continue
		}
		if !fit.Known() {
			return false
		}
		for _, e := range slices.Concat(fit.Out, fit.In) {
			if e.Of > 1 && !(max(e.High-e.Factor, e.Factor-e.Low) <= p.Precision*e.Factor) {
				return false
			}
		}
	}
	return measured
}
