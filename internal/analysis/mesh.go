package analysis

import (
	"cmp"
	"math"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/mesh"
	"github.com/bridgetoll/bridgetoll/internal/sample"
	"github.com/bridgetoll/bridgetoll/internal/stats"
)

// fits are the models of what was measured, by metric.
type fits struct {
	metrics []string
	of      map[string]*mesh.Fit
}

// loadsOfMesh are the metrics by which the loads of a mesh are judged.
var loadsOfMesh = []struct {
	load, metric string
	higher       bool
}{{"rr", LatencyP50, false}, {"bulk", Throughput, true}}

// fitMesh fits a model to each load's visits.
func fitMesh(p sample.Plan, pairs []sample.PairVisit) fits {
	out := fits{of: map[string]*mesh.Fit{}}
	for _, l := range loadsOfMesh {
		if !slices.ContainsFunc(p.Loads, func(x sample.Load) bool { return x.Kind == l.load }) {
			continue
		}
		var visits []mesh.Visit
		for _, v := range pairs {
			if v.Load != l.load || v.Failure != "" {
				continue
			}
			slow := v.Value
			if l.higher {
				slow = 1 / v.Value
			}
			visits = append(visits, mesh.Visit{Pair: v.Pair, Sweep: v.Sweep, Round: v.Round, Slowness: slow})
		}
		out.metrics = append(out.metrics, l.metric)
		out.of[l.metric] = mesh.New(len(p.Mesh.Nodes), sample.BothWays(l.load), visits)
	}
	return out
}

// fitLoss fits a model to what bulk sent again; nil if no visit tells.
func fitLoss(p sample.Plan, pairs []sample.PairVisit) *mesh.Fit {
	var sent []mesh.Sent
	for _, v := range pairs {
		if v.Failure == "" && v.Segments > 0 {
			sent = append(sent, mesh.Sent{Pair: v.Pair, Sweep: v.Sweep, Round: v.Round, Segments: v.Segments, Again: v.Retransmits})
		}
	}
	if len(sent) == 0 {
		return nil
	}
	return mesh.Loss(len(p.Mesh.Nodes), sent)
}

// judgeMesh judges a mesh.
func judgeMesh(f *sample.File, r *Report) {
	p := f.Header.Plan
	m := &Mesh{Mode: p.Mesh.Mode, On: p.Mesh.On, Sweeps: f.End.Sweeps, Nodes: []MeshNode{}, Metrics: map[string]MeshMetric{},
		Faults: []MeshFault{}, Failed: failedOfMesh(p, f.Pairs)}
	r.Mesh = m
	fs := fitMesh(p, f.Pairs)
	m.addNodes(p, f.Pairs)
	byFit, doubtful := mesh.Faults(fs.list()...)
	m.Doubtful = doubtful
	for i, metric := range fs.metrics {
		m.judge(metric, fs.of[metric], byFit[i])
	}
	if lost := fitLoss(p, f.Pairs); lost != nil {
		// By itself: what loses in a visit makes it slow, too, and proves nothing twice.
		byFit, m.DoubtfulLoss = mesh.Faults(lost)
		m.judge(RetransmissionRate, lost, byFit[0])
	}
	slices.SortStableFunc(m.Faults, func(a, b MeshFault) int {
		rank := map[string]int{FaultGroup: 0, FaultNode: 1, FaultLink: 2}
		return cmp.Compare(rank[a.Kind], rank[b.Kind])
	})
	r.Warnings = m.warnings(f, fs)
	r.Findings = m.findings(f, r)
}

func (fs fits) list() []*mesh.Fit {
	var out []*mesh.Fit
	for _, m := range fs.metrics {
		out = append(out, fs.of[m])
	}
	return out
}

// number is x; nil if it is none that JSON can have.
func number(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// ratioTo turns a factor by which something is slower, and its interval, into the
// ratio of the metric.
func ratioTo(metric string, factor, low, high float64) (x float64, l, h *float64) {
	if metric == Throughput {
		return 1 / factor, number(1 / high), number(1 / low)
	}
	return factor, number(low), number(high)
}

func (m *Mesh) addNodes(p sample.Plan, pairs []sample.PairVisit) {
	for _, n := range p.Mesh.Nodes {
		m.Nodes = append(m.Nodes, MeshNode{Node: n, Effects: map[string]NodeEffect{}})
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

// judge adds what a metric says of nodes and links. That a link is slow is said in
// one way everywhere: a fault explains it.
func (m *Mesh) judge(metric string, fit *mesh.Fit, faults []mesh.Fault) {
	slow := markLinks(fit, faults)
	switch metric {
	case Throughput:
		m.addEffects(metric, ThroughputOut, fit.Out, slow.out)
		m.addEffects(metric, ThroughputIn, fit.In, slow.in)
	case LatencyP50:
		m.addEffects(metric, metric, fit.Out, slow.out)
	}
	m.addMetric(metric, fit, slow.all)
	for _, x := range faults {
		m.Faults = append(m.Faults, m.fault(metric, fit, x, slow))
	}
}

func (m *Mesh) addEffects(metric, name string, effects []mesh.Effect, slow [][]bool) {
	for i, e := range effects {
		if e.Of > 1 && number(e.Factor) != nil { // of one link it would be the link's
			x, low, high := ratioTo(metric, e.Factor, e.Low, e.High)
			m.Nodes[i].Effects[name] = NodeEffect{Ratio: x, Low: low, High: high, Slow: trues(slow[i]), Of: e.Of}
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

// valueOf is a metric's value where its slowness in the model is x.
func valueOf(metric string, x float64) float64 {
	switch metric {
	case Throughput:
		return 1 / x
	case RetransmissionRate:
		return mesh.Rate(x)
	}
	return x
}

// addMetric adds what a metric was like on all links, unless nothing was measured.
func (m *Mesh) addMetric(metric string, fit *mesh.Fit, slow [][]bool) {
	value := func(a, b int) float64 { return valueOf(metric, fit.Slowness(a, b)) }
	out := MeshMetric{Load: "bulk", Unit: units[metric]}
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
	out.Fastest, out.Slowest, out.Median, out.Links = all[0], all[len(all)-1], stats.Median(all), len(all)
	if out.Higher {
		out.Fastest, out.Slowest = out.Slowest, out.Fastest
	}
	out.SlowestLink = [2]string{m.name(slowest[0]), m.name(slowest[1])}
	out.Typical = valueOf(metric, fit.Level)
	switch {
	case metric == RetransmissionRate:
		out.NamedFrom = number(fit.LeastRate())
	case fit.Known():
		out.Noise, out.NamedFrom = number(fit.Noise), number(fit.LeastLink())
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

// fault is a fault as the report has it.
func (m *Mesh) fault(metric string, fit *mesh.Fit, x mesh.Fault, slow marks) MeshFault {
	out := MeshFault{Nodes: m.names(x.Nodes), Metric: metric, Way: WayBoth, Slow: x.Slow, Of: x.Of}
	switch x.Kind {
	case mesh.Link, mesh.LinkWay:
		out.Kind = FaultLink
	case mesh.Apart:
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
	case metric == LatencyP50:
	case !x.In:
		out.Way = WayOut
	case !x.Out:
		out.Way = WayIn
	}
	if metric == RetransmissionRate {
		out.addRates(fit, x)
		return out
	}
	out.Ratio, out.Low, out.High = ratioTo(metric, x.Factor, x.Low, x.High)
	return out
}

// MeshConverged reports whether what each node does to its links is known to
// within the plan's precision (relative half-width of its interval), and the
// sweeps are enough. Of two nodes, it is the link.
func MeshConverged(p sample.Plan, pairs []sample.PairVisit) bool {
	fs := fitMesh(p, pairs)
	for _, metric := range fs.metrics {
		fit := fs.of[metric]
		if fit.Visits == 0 {
			continue // all failed: more of that tells nothing
		}
		if fit.Sweeps < stats.MinJudged || !fit.Known() {
			return false
		}
		if fit.Nodes == 2 && fit.HalfWidth() > p.Precision {
			return false
		}
		for _, e := range slices.Concat(fit.Out, fit.In) {
			if e.Of > 1 && !(max(e.High-e.Factor, e.Factor-e.Low) <= p.Precision*e.Factor) {
				return false
			}
		}
	}
	return true
}
