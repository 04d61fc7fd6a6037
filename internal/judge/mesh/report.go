package mesh

import (
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Mesh is the judgement of a mesh in one mode.
type Mesh struct {
	Mode    string            `json:"mode"`
	On      string            `json:"on"`
	Sweeps  int               `json:"sweeps"` // complete ones
	Nodes   []Node            `json:"nodes"`
	Metrics map[string]Metric `json:"metrics"` // LatencyP50, Throughput, RetransmissionRate
	Faults  []Fault           `json:"faults"`
	// Doubtful and DoubtfulLoss are the numbers of links that look slow or lossy in too few visits
	// to be reported.
	Doubtful     int      `json:"doubtful"`
	DoubtfulLoss int      `json:"doubtful_loss,omitempty"`
	Failed       []Failed `json:"failed"` // in either mode
	// Groups summarizes the links by the labels of their nodes.
	Groups []LabelGroup `json:"groups,omitempty"`
	// NotWitnessed lists the hops whose counters could not be read, with the reason.
	NotWitnessed string `json:"not_witnessed,omitempty"`
	// Beside holds the results of the other mode, without failures, or nil.
	Beside *Mesh `json:"beside,omitempty"`
	// Costs holds the costs of Mode relative to that mode, by metric: LatencyP50, Throughput.
	Costs map[string]Cost `json:"costs,omitempty"`
}

// Empty reports whether nothing was measured.
func (m *Mesh) Empty() bool {
	for _, x := range m.Metrics {
		if x.Links > 0 {
			return false
		}
	}
	return m.Beside == nil || m.Beside.Empty()
}

// Visits returns the number of visits of both modes, and how many of them failed.
func (m *Mesh) Visits() (all, failed int) {
	for _, n := range m.Nodes { // each visit is counted by two nodes
		all, failed = all+n.Visits, failed+n.Failed
	}
	all, failed = all/2, failed/2
	if m.Beside != nil {
		besides, without := m.Beside.Visits()
		all, failed = all+besides, failed+without
	}
	return all, failed
}

// Node is a node and the ratio of its links to typical ones.
type Node struct {
	sample.Node
	Effects map[string]Effect `json:"effects"` // LatencyP50, ThroughputOut, ThroughputIn
	Visits  int               `json:"visits"`
	Failed  int               `json:"failed"` // of Visits
}

// ThroughputIn is the metric of what a node receives; workload.ThroughputOut is that of what it
// sends.
const ThroughputIn = "throughput_in"

// Effect is the ratio of a node's links to typical links.
type Effect struct {
	Ratio float64  `json:"ratio"`
	Low   *float64 `json:"low,omitempty"` // 95 % interval; nil: the noise is not known
	High  *float64 `json:"high,omitempty"`
	Slow  int      `json:"slow"` // links that a named fault makes slow
	Of    int      `json:"of"`   // measured links
}

// String returns the ratio with its interval.
func (e Effect) String() string { return ratioText(e.Ratio, e.Low, e.High) }

func ratioText(x float64, low, high *float64) string {
	if low == nil || high == nil {
		return analysis.Percent(x)
	}
	return analysis.Ratio{Median: x, Low: *low, High: *high, N: 2}.String()
}

// Metric summarizes one quantity of all links over all sweeps.
type Metric struct {
	Load    string  `json:"load"`
	Unit    string  `json:"unit"`
	Higher  bool    `json:"higher_is_better,omitempty"`
	Typical float64 `json:"typical"` // value of a link between nodes without effects
	Fastest float64 `json:"fastest"`
	Median  float64 `json:"median"`
	Slowest float64 `json:"slowest"`
	// from, to
	SlowestLink [2]string `json:"slowest_link"`
	Links       int       `json:"links"`           // for throughput, each direction counts
	Noise       *float64  `json:"noise,omitempty"` // relative, of a link's value; nil: not known
	// NamedFrom is the smallest detectable slowness of a link, as a factor of what its nodes
	// explain. For retransmissions it is the rate of a link between nodes without loss.
	NamedFrom *float64 `json:"named_from,omitempty"`
	// NodesFrom is the least factor of slowness at which a node is certainly reported.
	NodesFrom *float64 `json:"nodes_named_from,omitempty"`
	// OnePair is set if only one pair has results: its round trips cannot be compared, and each
	// direction only with the other.
	OnePair bool `json:"one_pair,omitempty"`
	// Matrix holds the value of each link, from the row's node to the column's; nil without one.
	// Slow marks links that a fault explains. Large meshes have neither.
	Matrix [][]*float64 `json:"matrix,omitempty"`
	Slow   [][]bool     `json:"slow,omitempty"`
}

// from returns the least factor of slowness at which any node or link is reported, or nil if it is
// not known.
func (x Metric) from() *float64 {
	if x.NamedFrom == nil || x.NodesFrom == nil {
		return x.NamedFrom
	}
	return number(max(*x.NamedFrom, *x.NodesFrom))
}

const matrixNodes = 64

// Values of Fault.Kind.
const (
	FaultNode  = "node"
	FaultLink  = "link"
	FaultGroup = "group" // nodes that are healthy among themselves and slow to the others
)

// Values of Fault.Way.
const (
	WayBoth = "both"
	WayOut  = "out" // the node sends slowly; for a link, from its first node to its second
	WayIn   = "in"
)

// Fault is a node, link or group that is slow or loses packets, beyond the noise.
type Fault struct {
	Kind   string   `json:"kind"`
	Nodes  []string `json:"nodes"` // of the node, link or group
	Way    string   `json:"way"`   // for round trips WayBoth
	Metric string   `json:"metric"`
	Ratio  float64  `json:"ratio,omitempty"` // to the typical value; the worse direction
	// RateOut and RateIn replace the ratio if packets are lost: the retransmitted share of the
	// segments that the node sends and receives, or that cross the link forth and back.
	RateOut *float64 `json:"rate_out,omitempty"`
	RateIn  *float64 `json:"rate_in,omitempty"`
	Low     *float64 `json:"low,omitempty"` // 95 % interval of the ratio, or of the worse rate
	High    *float64 `json:"high,omitempty"`
	Slow    int      `json:"slow"` // slow or lossy links, or visits of a link
	Of      int      `json:"of"`
}

// String returns the ratio with its interval.
func (x Fault) String() string { return ratioText(x.Ratio, x.Low, x.High) }

// Failed is a pair without a result, or a node all of whose pairs lack one.
type Failed struct {
	Nodes  []string `json:"nodes"`
	Load   string   `json:"load,omitempty"` // absent: all loads
	Mode   string   `json:"mode,omitempty"` // of two modes; absent: all
	Visits int      `json:"visits"`         // failed ones since the last good one
	Left   bool     `json:"left,omitempty"` // it had a result before
	Reason string   `json:"reason"`         // the last one
}

// Over names the network that the failure is about, if there are two: " over the host network".
func (f Failed) Over() string {
	if f.Mode == "" {
		return ""
	}
	return " over the " + Network(f.Mode)
}
