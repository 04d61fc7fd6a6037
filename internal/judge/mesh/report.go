package mesh

import (
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Mesh is the judged mesh of a cluster.
type Mesh struct {
	Mode    string            `json:"mode"`
	On      string            `json:"on"`
	Sweeps  int               `json:"sweeps"` // complete ones
	Nodes   []Node            `json:"nodes"`
	Metrics map[string]Metric `json:"metrics"` // LatencyP50, Throughput, RetransmissionRate
	Faults  []Fault           `json:"faults"`
	// Doubtful is how many links look slow, but in too few visits to be reported.
	Doubtful int `json:"doubtful"`
	// DoubtfulLoss is the same of links that lose packets.
	DoubtfulLoss int      `json:"doubtful_loss,omitempty"`
	Failed       []Failed `json:"failed"` // in either mode
	// Groups are the links by what the nodes' labels tell apart.
	Groups []LabelGroup `json:"groups,omitempty"`
	// NotWitnessed says which hops of the paths nobody could read, and why.
	NotWitnessed string `json:"not_witnessed,omitempty"`
	// Beside is the same of the mode beside it, without what failed; nil: there is none.
	Beside *Mesh `json:"beside,omitempty"`
	// Costs are what Mode costs against that mode, by metric: LatencyP50, Throughput.
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

// Visits returns the number of visits, of both modes, and how many of them have no result.
func (m *Mesh) Visits() (all, failed int) {
	for _, n := range m.Nodes { // each visit is of two
		all, failed = all+n.Visits, failed+n.Failed
	}
	all, failed = all/2, failed/2
	if m.Beside != nil {
		besides, without := m.Beside.Visits()
		all, failed = all+besides, failed+without
	}
	return all, failed
}

// Node is a node and by how much its links are slower or faster than is
// typical: what it does to the round trip, to what it sends and to what it
// receives.
type Node struct {
	sample.Node
	Effects map[string]Effect `json:"effects"` // LatencyP50, ThroughputOut, ThroughputIn
	Visits  int               `json:"visits"`
	Failed  int               `json:"failed"` // of these
}

// ThroughputIn is what a node of a mesh receives; what it sends is ThroughputOut.
const ThroughputIn = "throughput_in"

// Effect is the ratio of a node's links to those that are typical.
type Effect struct {
	Ratio float64  `json:"ratio"`
	Low   *float64 `json:"low,omitempty"` // 95 % interval; nil: the noise is not known
	High  *float64 `json:"high,omitempty"`
	Slow  int      `json:"slow"` // links that a fault that is named makes slow
	Of    int      `json:"of"`   // links that were measured
}

// String is the ratio with its interval.
func (e Effect) String() string { return ratioText(e.Ratio, e.Low, e.High) }

// ratioText is a ratio with its interval: with two decimals, or if it is small
// with three.
func ratioText(x float64, low, high *float64) string {
	s := stats.Summary{Median: x, N: 1}
	if low != nil && high != nil {
		s.Low, s.High, s.N = *low, *high, 2
	}
	const small = 0.5
	decimals := analysis.RatioDecimals
	if x < small {
		decimals++
	}
	return fmt.Sprintf("%.*f %s", decimals, x, analysis.Interval(s, decimals))
}

// Metric is one quantity of all links, each over all sweeps.
type Metric struct {
	Load    string  `json:"load"`
	Unit    string  `json:"unit"`
	Higher  bool    `json:"higher_is_better,omitempty"`
	Typical float64 `json:"typical"` // of a link between nodes without effects
	Fastest float64 `json:"fastest"`
	Median  float64 `json:"median"`
	Slowest float64 `json:"slowest"`
	// SlowestLink names its nodes.
	SlowestLink [2]string `json:"slowest_link"`
	Links       int       `json:"links"`           // that were measured; of throughput, each way is one
	Noise       *float64  `json:"noise,omitempty"` // of a link's value, relative; nil: not known
	// NamedFrom is how many times slower than its nodes make it a link must be to be
	// told from the noise; of retransmissions, the rate of a link between nodes that lose
	// nothing.
	NamedFrom *float64 `json:"named_from,omitempty"`
	// NodesFrom is how many times slower than is typical every node must be to be named.
	NodesFrom *float64 `json:"nodes_named_from,omitempty"`
	// OnePair says that only one pair has results: its round trips can be held against nothing,
	// and each direction only against the other.
	OnePair bool `json:"one_pair,omitempty"`
	// Matrix is the value of each link, of the node of the row to that of the column;
	// nil where there is none. Slow marks those that a fault explains. Large meshes have neither.
	Matrix [][]*float64 `json:"matrix,omitempty"`
	Slow   [][]bool     `json:"slow,omitempty"`
}

// from returns how many times slower any node or link must be to be named; nil if that is not
// known.
func (x Metric) from() *float64 {
	if x.NamedFrom == nil || x.NodesFrom == nil {
		return x.NamedFrom
	}
	return number(max(*x.NamedFrom, *x.NodesFrom))
}

// matrixNodes is the largest mesh whose report has every link.
const matrixNodes = 64

// Kinds of what is slow in a mesh.
const (
	FaultNode  = "node"
	FaultLink  = "link"
	FaultGroup = "group" // nodes that are healthy among themselves and slow to the others
)

// Directions of what is slow in a mesh.
const (
	WayBoth = "both"
	WayOut  = "out" // the node sends slowly; of a link, from its first node to its second
	WayIn   = "in"  // the node receives slowly
)

// Fault is something that is slow or loses packets: by enough to matter and beyond the noise.
type Fault struct {
	Kind   string   `json:"kind"`
	Nodes  []string `json:"nodes"` // the node, the two of a link or the group
	Way    string   `json:"way"`   // of round trips both
	Metric string   `json:"metric"`
	Ratio  float64  `json:"ratio,omitempty"` // to what is typical of its nodes; of both ways the worse one
	// RateOut and RateIn are in place of a ratio where packets are lost: what is sent
	// again of what the node sends and receives, or of what passes the link from its first
	// node to its second and back.
	RateOut *float64 `json:"rate_out,omitempty"`
	RateIn  *float64 `json:"rate_in,omitempty"`
	Low     *float64 `json:"low,omitempty"` // 95 % interval of the ratio, or of the worse rate
	High    *float64 `json:"high,omitempty"`
	Slow    int      `json:"slow"` // links, of a link visits; of lost packets those that lose
	Of      int      `json:"of"`
}

// Failed is a pair, or a node with all its pairs, that has no result.
type Failed struct {
	Nodes  []string `json:"nodes"`
	Load   string   `json:"load,omitempty"` // absent: all
	Mode   string   `json:"mode,omitempty"` // of two; absent: all
	Visits int      `json:"visits"`         // all of which failed, since it left
	Left   bool     `json:"left,omitempty"` // it had a result before
	Reason string   `json:"reason"`         // the last one
}
