package mesh

import (
	"math"
	"slices"

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
		return "slow " + m.Layer()
	case SlowBoth:
		return "slow link and " + m.Layer()
	case SlowUndecided:
		return "slow, undecided"
	}
	return ""
}

// Layer names what the mode adds to a network, whose cost is measured.
func (m *Mesh) Layer() string {
	if m.Mode == string(mode.Pod) {
		return "CNI"
	}
	return m.Mode
}

// Noun names a metric: "round trips".
func Noun(metric string) string {
	if metric == workload.Throughput {
		return "throughput"
	}
	return "round trips"
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
