package mesh

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/mesh/model"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// Cost is the cost of the mesh's mode in a metric. Each visit is compared with the other mode's
// over the same link in the same sweep.
type Cost struct {
	Load string `json:"load"`
	// Ratio is the median of the links' ratios of the mode to the other one.
	Ratio float64  `json:"ratio"`
	Low   *float64 `json:"low,omitempty"` // 95 % interval; nil after one sweep
	High  *float64 `json:"high,omitempty"`
	// OnePair is set if only one pair has results, so no other link shows the cost of the mode.
	OnePair bool `json:"one_pair,omitempty"`
	// NamedFrom is the smallest detectable cost of a link, relative to the typical one, or nil if
	// the noise is not known.
	NamedFrom *float64 `json:"named_from,omitempty"`
	// Links lists links with a result in both modes, or in a large mesh those with a verdict. Round
	// trips list each link once.
	Links []LinkCost `json:"links"`
	// Faults lists links and nodes where the mode costs more than is typical; their ratios are to
	// the typical cost.
	Faults []Fault `json:"faults"`
}

// LinkCost is the cost of the mode on a link.
type LinkCost struct {
	Nodes  [2]string `json:"nodes"` // from, to
	Value  float64   `json:"value"`
	Beside float64   `json:"beside"` // in the other mode
	Ratio  float64   `json:"ratio"`  // median over the sweeps, without the common drift
	Low    *float64  `json:"low,omitempty"`
	High   *float64  `json:"high,omitempty"`
	// Verdict is "" if the nodes explain the link.
	Verdict Verdict `json:"verdict,omitempty"`
}

// String returns the ratio with its interval.
func (c LinkCost) String() string { return ratioText(c.Ratio, c.Low, c.High) }

// String returns the ratio with its interval.
func (c Cost) String() string { return ratioText(c.Ratio, c.Low, c.High) }

// Verdict is the reason why a link is slow.
type Verdict string

const (
	SlowLink Verdict = "link" // the link is slow in the other mode, too
	SlowMode Verdict = "mode" // the mode costs more on this link than on others
	SlowBoth Verdict = "both"
	// SlowUndecided means that the noise hides which of the two it is.
	SlowUndecided Verdict = "undecided"
)

// Say returns the verdict in words: "slow link", "slow CNI".
func (m *Mesh) Say(v Verdict) string {
	switch v {
	case SlowLink:
		return "slow link"
	case SlowMode:
		return "slow " + m.upper()
	case SlowBoth:
		return "slow link and " + m.upper()
	case SlowUndecided:
		return "slow, undecided"
	}
	return ""
}

func (m *Mesh) upper() string {
	if m.Mode == string(mode.Pod) {
		return "CNI"
	}
	return m.Mode
}

// Network names a mode's network.
func Network(name string) string {
	switch name {
	case string(mode.Pod), string(mode.Host):
		return name + " network"
	}
	return "network of mode " + name
}

func ofMode(pairs []sample.PairVisit, beside bool) []sample.PairVisit {
	return slices.DeleteFunc(slices.Clone(pairs), func(v sample.PairVisit) bool {
		return v.Beside != beside
	})
}

type turn struct {
	sweep int
	pair  sample.Pair
	load  string
}

func (m *Mesh) addCosts(p sample.Plan, pairs []sample.PairVisit, own, beside judged) {
	other := map[turn]float64{}
	for _, v := range pairs {
		if v.Beside && v.Failure == "" {
			other[turn{v.Sweep, v.Pair, v.Load}] = v.Value
		}
	}
	m.Costs = map[string]Cost{}
	for _, l := range loadsOfMesh {
		var visits []model.Measurement
		for _, v := range pairs {
			base, ok := other[turn{v.Sweep, v.Pair, v.Load}]
			if v.Beside || v.Failure != "" || !ok || v.Load != l.load {
				continue
			}
			ratio := v.Value / base
			if l.higher {
				ratio = 1 / ratio
			}
			visits = append(visits, model.Measurement{
				Pair: v.Pair, Sweep: v.Sweep, Round: v.Round, Slowness: ratio})
		}
		if len(visits) == 0 {
			continue
		}
		fit := model.New(len(p.Mesh.Nodes), sample.BothWays(l.load), visits)
		byFit := [][]model.Fault{nil}
		c := Cost{Load: l.load, Links: []LinkCost{}, Faults: []Fault{}, OnePair: fit.Alone}
		if !fit.Alone {
			byFit, _ = model.Faults(fit)
			c.NamedFrom = number(fit.LeastLink())
		}
		x, low, high := fit.Typical()
		c.Ratio, c.Low, c.High = ratioTo(l.metric, x, low, high)
		slow := markLinks(fit, byFit[0])
		for _, x := range byFit[0] {
			c.Faults = append(c.Faults, m.fault(l.metric, fit, x, slow))
		}
		c.Links = m.linkCosts(l.metric, fit, slow, own, beside)
		m.Costs[l.metric] = c
	}
}

func (m *Mesh) linkCosts(metric string, fit *model.Fit, slow marks, own, beside judged) []LinkCost {
	out := []LinkCost{}
	n := len(m.Nodes)
	for a := range n {
		for b := range n {
			x, low, high := fit.Link(a, b)
			if math.IsNaN(x) || a == b || !fit.Directed && b < a {
				continue
			}
			c := LinkCost{Nodes: [2]string{m.name(a), m.name(b)},
				Value:  valueOf(metric, own.fits.of[metric].Slowness(a, b)),
				Beside: valueOf(metric, beside.fits.of[metric].Slowness(a, b))}
			c.Ratio, c.Low, c.High = ratioTo(metric, x, low, high)
			link, upper := beside.slow[metric].has(a, b), slow.has(a, b)
			switch {
			case link && upper:
				c.Verdict = SlowBoth
			case link:
				c.Verdict = SlowLink
			case upper:
				c.Verdict = SlowMode
			case own.slow[metric].has(a, b):
				c.Verdict = SlowUndecided
			}
			if c.Verdict != "" || n <= matrixNodes {
				out = append(out, c)
			}
		}
	}
	return out
}

func (m *Mesh) typicalCosts() string {
	var parts []string
	where := "on a typical link"
	for _, l := range loadsOfMesh {
		c, ok := m.Costs[l.metric]
		if ok && c.OnePair {
			where = fmt.Sprintf("between %s and %s", c.Links[0].Nodes[0], c.Links[0].Nodes[1])
		}
		switch {
		case !ok:
		case c.OnePair && l.higher:
			for _, x := range c.Links {
				parts = append(parts, fmt.Sprintf(
					"throughput from %s to %s is %s of it", x.Nodes[0], x.Nodes[1], x))
			}
		case l.metric == workload.LatencyP50:
			parts = append(parts, fmt.Sprintf("round trips take %s of the time on the %s", c,
				Network(m.Beside.Mode)))
		default:
			parts = append(parts, fmt.Sprintf("throughput is %s of it", c))
		}
	}
	if len(parts) == 0 {
		return "What the " + m.upper() +
			" costs is not known: no link has a result in both networks."
	}
	return fmt.Sprintf("What the %s costs %s: %s.", m.upper(), where, strings.Join(parts, ", "))
}

func (m *Mesh) sayCost(metric string, x Fault) string {
	who := "on all links of " + x.Nodes[0]
	switch {
	case x.Kind == FaultLink && (metric == workload.LatencyP50 || x.Way == WayBoth):
		who = fmt.Sprintf("between %s and %s", x.Nodes[0], x.Nodes[1])
	case x.Kind == FaultLink:
		who = fmt.Sprintf("from %s to %s", x.Nodes[0], x.Nodes[1])
	case x.Kind == FaultGroup:
		who = fmt.Sprintf("between %s and the others", list(x.Nodes))
	case x.Way == WayOut:
		who = "on what " + x.Nodes[0] + " sends"
	case x.Way == WayIn:
		who = "on what " + x.Nodes[0] + " receives"
	}
	what := "round trips take %s of what the %s costs elsewhere"
	if metric == workload.Throughput {
		what = "throughput is %s of what the %s leaves elsewhere"
	}
	return fmt.Sprintf("Slow %s %s: "+what+", and the %s is not the cause.", m.upper(), who, x,
		m.upper(), Network(m.Beside.Mode))
}

func (m *Mesh) undecided(n int) string {
	return fmt.Sprintf(
		"%s slow on the %s. The noise hides whether the link or the %s is the cause; run more sweeps", were(n, "link"), Network(m.Mode), m.upper())
}

func (m *Mesh) costFindings() []string {
	out := []string{m.typicalCosts()}
	for _, subject := range m.Beside.subjects() {
		out = append(out, fmt.Sprintf("Over the %s: %s", Network(m.Beside.Mode),
			m.Beside.say(subject)))
	}
	named := len(m.Beside.Faults)
	for _, l := range loadsOfMesh {
		for _, x := range m.Costs[l.metric].Faults {
			named++
			out = append(out, m.sayCost(l.metric, x))
		}
	}
	if n := m.count(SlowUndecided); n > 0 {
		named++
		out = append(out, m.undecided(n)+".")
	}
	for _, subject := range m.subjects() {
		lost := slices.DeleteFunc(slices.Clone(subject), func(x Fault) bool {
			return x.Metric != workload.RetransmissionRate
		})
		if len(lost) > 0 {
			named++
			out = append(out, fmt.Sprintf("Over the %s: %s", Network(m.Mode), m.say(lost)))
		}
	}
	if named > 0 {
		return out
	}
	return append(out, m.Beside.nothingSlow(), m.noCost())
}

func (m *Mesh) noCost() string {
	var from []string
	for _, l := range loadsOfMesh {
		c, ok := m.Costs[l.metric]
		if ok && c.NamedFrom != nil {
			from = append(from, fmt.Sprintf("%s times (%s)", factor(*c.NamedFrom),
				map[bool]string{false: "round trips", true: "throughput"}[l.higher]))
		}
		switch {
		case ok && c.OnePair:
			return fmt.Sprintf(
				"With one pair of nodes there is no other link to compare the cost of the %s with.",
				m.upper())
		case ok && c.NamedFrom == nil:
			return fmt.Sprintf("It is not known whether the %s costs more on some links than on "+
				"others: use more sweeps or nodes.", m.upper())
		}
	}
	if len(from) == 0 {
		return fmt.Sprintf("What the %s costs is not known: no link has a result in both networks.",
			m.upper())
	}
	return fmt.Sprintf("No link is reported as slow because of the %s: it would have to cost %s "+
		"what it costs elsewhere.", m.upper(),
		strings.Join(from, " or "))
}

func (m *Mesh) count(v Verdict) int {
	seen := map[[2]string]bool{}
	for _, c := range m.Costs {
		for _, l := range c.Links {
			if l.Verdict == v {
				seen[[2]string{min(l.Nodes[0], l.Nodes[1]), max(l.Nodes[0], l.Nodes[1])}] = true
			}
		}
	}
	return len(seen)
}

func mergeFailed(own, beside []Failed, ownMode, besideMode string) []Failed {
	out := []Failed{}
	left := slices.Clone(beside)
	for _, x := range own {
		i := slices.IndexFunc(left, func(y Failed) bool {
			return sameNodes(x.Nodes, y.Nodes) && x.Load == y.Load
		})
		if i < 0 {
			x.Mode = ownMode
		} else {
			x.Visits += left[i].Visits
			x.Left = x.Left || left[i].Left
			left = slices.Delete(left, i, i+1)
		}
		out = append(out, x)
	}
	for _, y := range left {
		y.Mode = besideMode
		out = append(out, y)
	}
	return out
}

func (f Failed) by() string {
	if f.Mode == "" {
		return ""
	}
	return " over the " + Network(f.Mode)
}
