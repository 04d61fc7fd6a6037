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

// judgeMesh judges a mesh.
func judgeMesh(f *sample.File, r *Report) {
	p := f.Header.Plan
	m := &Mesh{Mode: p.Mesh.Mode, On: p.Mesh.On, Sweeps: f.End.Sweeps, Nodes: []MeshNode{}, Metrics: map[string]MeshMetric{},
		Faults: []MeshFault{}, Failed: failedOfMesh(p, f.Pairs)}
	r.Mesh = m
	fs := fitMesh(p, f.Pairs)
	m.addNodes(p, f.Pairs, fs)
	byFit, doubtful := mesh.Faults(fs.list()...)
	m.Doubtful = doubtful
	resent := newResent(f.Pairs)
	for i, metric := range fs.metrics {
		fit := fs.of[metric]
		m.addMetric(p, metric, fit, byFit[i], resent)
		for _, x := range byFit[i] {
			m.Faults = append(m.Faults, m.fault(metric, x, resent))
		}
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

func effectOf(metric string, e mesh.Effect) NodeEffect {
	x, low, high := ratioTo(metric, e.Factor, e.Low, e.High)
	return NodeEffect{Ratio: x, Low: low, High: high, Slow: e.Slow, Of: e.Of}
}

func (m *Mesh) addNodes(p sample.Plan, pairs []sample.PairVisit, fs fits) {
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
	for _, metric := range fs.metrics {
		fit := fs.of[metric]
		add := func(name string, effects []mesh.Effect) {
			for i, e := range effects {
				if e.Of > 1 && number(e.Factor) != nil { // of one link it would be the link's
					m.Nodes[i].Effects[name] = effectOf(metric, e)
				}
			}
		}
		if metric == Throughput {
			add(ThroughputOut, fit.Out)
			add(ThroughputIn, fit.In)
			continue
		}
		add(metric, fit.Out)
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

// addMetric adds what a metric was like on all links, unless nothing was measured.
func (m *Mesh) addMetric(p sample.Plan, metric string, fit *mesh.Fit, faults []mesh.Fault, r resent) {
	value := func(a, b int) float64 {
		if metric == Throughput {
			return 1 / fit.Slowness(a, b)
		}
		return fit.Slowness(a, b)
	}
	out := MeshMetric{Unit: units[metric]}
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
		out.Retransmits = r.all
	}
	out.SlowestLink = [2]string{m.name(slowest[0]), m.name(slowest[1])}
	out.Typical, _, _ = ratioTo(metric, fit.Level, 1, 1)
	if fit.Known() {
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
		out.Slow = marks(fit, faults)
	}
	m.Metrics[metric] = out
}

// marks are the links that faults explain.
func marks(fit *mesh.Fit, faults []mesh.Fault) [][]bool {
	out := make([][]bool, fit.Nodes)
	for i := range out {
		out[i] = make([]bool, fit.Nodes)
	}
	for _, x := range faults {
		in := func(i int) bool { return slices.Contains(x.Nodes, i) }
		for a := range out {
			for b := range out {
				hit := false
				switch x.Kind {
				case mesh.Link:
					hit = in(a) && in(b) && a != b
				case mesh.LinkWay:
					hit = a == x.Nodes[0] && b == x.Nodes[1]
				case mesh.Apart:
					hit = in(a) != in(b)
				default:
					hit = in(a) && x.Out || in(b) && x.In
				}
				slow := fit.Slowness(a, b) / fit.Level
				if hit && (x.Kind == mesh.Link || x.Kind == mesh.LinkWay || math.Log(slow) >= math.Log(x.Factor)/2) {
					out[a][b] = true
				}
			}
		}
	}
	return out
}

// fault is a fault as the report has it.
func (m *Mesh) fault(metric string, x mesh.Fault, r resent) MeshFault {
	out := MeshFault{Nodes: m.names(x.Nodes), Metric: metric, Way: WayBoth, Slow: x.Slow, Of: x.Of}
	out.Ratio, out.Low, out.High = ratioTo(metric, x.Factor, x.Low, x.High)
	switch x.Kind {
	case mesh.Link, mesh.LinkWay:
		out.Kind = FaultLink
	case mesh.Apart:
		out.Kind = FaultGroup
	default:
		out.Kind = FaultNode
	}
	if metric == Throughput {
		switch {
		case !x.In:
			out.Way = WayOut
		case !x.Out:
			out.Way = WayIn
		}
		out.Retransmits = r.of(x)
	}
	return out
}

// resent are TCP's retransmitted segments in a visit of bulk, on average.
type resent struct {
	all     float64
	out, in map[int]mean // by node
	link    map[sample.Pair]mean
}

type mean struct {
	sum float64
	n   int
}

func (m mean) add(x float64) mean { return mean{m.sum + x, m.n + 1} }

func (m mean) value() float64 { return m.sum / float64(max(1, m.n)) }

func newResent(pairs []sample.PairVisit) resent {
	r := resent{out: map[int]mean{}, in: map[int]mean{}, link: map[sample.Pair]mean{}}
	var all mean
	for _, v := range pairs {
		if v.Load != "bulk" || v.Failure != "" {
			continue
		}
		x := float64(v.Retransmits)
		all = all.add(x)
		r.out[v.Pair[0]] = r.out[v.Pair[0]].add(x)
		r.in[v.Pair[1]] = r.in[v.Pair[1]].add(x)
		if x > 0 {
			r.link[v.Pair] = mean{r.link[v.Pair].sum + x, 0}
		}
	}
	r.all = all.value()
	return r
}

// of is what was sent again in a visit to what is at fault.
func (r resent) of(x mesh.Fault) float64 {
	switch x.Kind {
	case mesh.Link, mesh.LinkWay: // Of counts its visits
		return r.link[sample.Pair{x.Nodes[0], x.Nodes[1]}].sum / float64(max(1, x.Of))
	case mesh.Apart:
		return 0
	}
	if x.Out && (!x.In || r.out[x.Nodes[0]].value() >= r.in[x.Nodes[0]].value()) {
		return r.out[x.Nodes[0]].value()
	}
	return r.in[x.Nodes[0]].value()
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
