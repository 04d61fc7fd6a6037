package sample

import (
	"errors"
	"fmt"
)

// StudyMesh measures every pair of nodes of a cluster.
const StudyMesh Study = "mesh"

// Node is a machine of the cluster. Only Name is required.
type Node struct {
	Name     string            `json:"name"`
	ID       string            `json:"id,omitempty"`
	Address  string            `json:"address,omitempty"` // for the other nodes
	Kernel   string            `json:"kernel,omitempty"`
	CPUModel string            `json:"cpu_model,omitempty"`
	CPUs     int               `json:"cpus,omitempty"`
	MTU      int               `json:"mtu,omitempty"`     // of the device for its traffic
	Boot     string            `json:"boot_id,omitempty"` // equal on nodes of one machine
	Labels   map[string]string `json:"labels,omitempty"`
	// Cards carry its traffic to the others. A file has them in the environment.
	Cards []Card `json:"-"`
}

// Mesh replaces cells in a mesh's plan. A sweep visits every pair of Nodes once per load, on paths
// of Mode built by On. In a round, a node is in one pair at most.
type Mesh struct {
	Nodes []Node `json:"nodes"`
	Mode  string `json:"mode"`
	// Beside is a second mode, in which each visit is repeated right before or after; "": none.
	Beside string `json:"beside,omitempty"`
	On     string `json:"on"`
	// Labels are keys of Node.Labels in display order.
	Labels []string `json:"labels,omitempty"`
	// NotWitnessed is the value of FactNotWitnessed for all pairs.
	NotWitnessed string `json:"not_witnessed,omitempty"`
	Sweeps       int    `json:"sweeps,omitempty"`  // 0: until precision or budget
	AtOnce       int    `json:"at_once,omitempty"` // most pairs at a time; 0: a whole round's
}

// MaxNodes bounds a mesh.
const MaxNodes = 1024

const maxLabels = 16

// Pair is a client and a server, as indexes into Mesh.Nodes. The zero value means that there is no
// pair.
type Pair [2]int

// BothWays reports whether a mesh measures a load in both directions.
func BothWays(load string) bool { return load == "bulk" }

// PairVisit is the compact form of a visit to a pair that the reader keeps, because 1000 nodes make
// 1.5 million visits per sweep.
type PairVisit struct {
	PairTurn
	Round int
	// Value is the median round trip in seconds (rr) or received bit/s (bulk); 0: no result.
	Value       float64
	Retransmits int64  // of both ends, in the window
	Segments    int64  // of the received payload (bulk); 0: unknown
	Failure     string // reason for a missing result
}

// Names of a brief visit's values, with units in docs/results.md.
const (
	valueLatency     = "latency_p50"
	valueThroughput  = "throughput"
	valueRetransmits = "retransmits"
	valueSegments    = "segments"
)

const fullNodes = 32

// ForMesh returns the visit as a mesh with that number of nodes records it: in full or, with more
// than fullNodes nodes, only the values by which it is judged.
func (v Visit) ForMesh(nodes int) Visit {
	if nodes <= fullNodes {
		return v
	}
	out := Visit{Turn: v.Turn, Proof: Proof{Witness: v.Witness},
		Outcome: Outcome{Failure: v.Failure}}
	if v.Failure != "" {
		return out
	}
	x := v.PairVisit()
	out.Values = map[string]float64{valueRetransmits: float64(x.Retransmits)}
	if x.Value > 0 {
		out.Values[figure(v.Load)] = x.Value
	}
	if x.Segments > 0 {
		out.Values[valueSegments] = float64(x.Segments)
	}
	return out
}

func figure(load string) string {
	if load == "bulk" {
		return valueThroughput
	}
	return valueLatency
}

const minFigure = 1e-12

// PairVisit summarizes a visit that was recorded in full or by ForMesh. If the figures are
// impossible, the summary has a Failure.
func (v Visit) PairVisit() PairVisit {
	out := PairVisit{PairTurn: v.PairTurn, Round: v.Round, Failure: v.Failure}
	switch {
	case v.Failure != "":
		return out
	case !v.Witness.OK:
		out.Failure = "the path was not witnessed: " + v.Witness.Evidence
		return out
	}
	x, brief := v.Values[figure(v.Load)]
	resent, segments := v.Values[valueRetransmits], v.Values[valueSegments]
	if !brief {
		x, resent, segments = v.figure(), float64(
			v.Client.TCP.Retransmits+v.Server.TCP.Retransmits), v.segments()
	}
	if !(x >= minFigure && x <= maxRate) {
		out.Failure = "nothing came through"
		return out
	}
	out.Value = x
	if resent >= 0 && resent <= maxRate {
		out.Retransmits = int64(resent)
	}
	if segments >= 1 && segments <= maxRate {
		out.Segments = int64(segments)
	}
	return out
}

// segments returns the number of segments that the server received while the client sent, or 0 if
// it is unknown.
func (v Visit) segments() float64 {
	if v.Load != "bulk" || v.Client.TCP.MSS <= 0 {
		return 0
	}
	return float64(v.Server.Received) / float64(v.Client.TCP.MSS)
}

func (v Visit) figure() float64 {
	const bits, nano, median = 8, 1e-9, 50
	if v.Load == "bulk" {
		if v.Server.Window <= 0 {
			return 0
		}
		return bits * float64(v.Server.Received) / v.Server.Window
	}
	if v.Latency == nil {
		return 0
	}
	h, err := v.Latency.Decode()
	if err != nil || h.TotalCount() == 0 {
		return 0
	}
	return nano * float64(h.ValueAtPercentile(median))
}

func (p Plan) checkMesh() error {
	switch {
	case p.Mesh == nil && p.Study != StudyMesh:
		return nil
	case p.Mesh == nil:
		return errors.New("a mesh without nodes")
	case p.Study != StudyMesh:
		return fmt.Errorf("a study %q with nodes", p.Study)
	case len(p.Cells) > 0:
		return errors.New("a mesh with cells")
	case p.Mesh.Beside != "" && p.Mesh.Beside == p.Mesh.Mode:
		return errors.New("a mesh that compares a mode with itself")
	case len(p.Mesh.Labels) > maxLabels:
		return fmt.Errorf("a mesh with %d labels, at most %d are read", len(p.Mesh.Labels),
			maxLabels)
	case len(p.Mesh.Nodes) < 2 || len(p.Mesh.Nodes) > MaxNodes:
		return fmt.Errorf("a mesh of %d nodes, from 2 to %d are read", len(p.Mesh.Nodes), MaxNodes)
	}
	return nil
}

func (p Plan) checkPair(v *Visit) error {
	if p.Mesh == nil {
		return errors.New("a visit to a pair, but the plan has no nodes")
	}
	n := len(p.Mesh.Nodes)
	if min(v.Pair[0], v.Pair[1]) < 0 || max(v.Pair[0], v.Pair[1]) >= n || v.Pair[0] == v.Pair[1] {
		return fmt.Errorf("pair %v is not in the plan, which has %d nodes", v.Pair, n)
	}
	if v.Beside && p.Mesh.Beside == "" {
		return errors.New("a visit in a second mode, but the plan has one")
	}
	if v.Cell != 0 {
		return fmt.Errorf("a visit to a pair has cell %d", v.Cell)
	}
	if v.Sweep < 0 || v.Sweep > maxVisits {
		return fmt.Errorf("impossible sweep %d", v.Sweep)
	}
	for _, l := range p.Loads {
		if l.Kind == v.Load {
			v.Load = l.Kind // share one string among many visits
			return nil
		}
	}
	return fmt.Errorf("load %q is not in the plan", v.Load)
}

// VisitsOfPair returns the number of visits to a pair in a sweep, in all modes.
func (p Plan) VisitsOfPair() int {
	n := p.VisitsInMode()
	if p.Mesh != nil && p.Mesh.Beside != "" {
		n *= 2
	}
	return n
}

// VisitsInMode returns the number of visits to a pair in a sweep in each mode.
func (p Plan) VisitsInMode() int {
	n := 0
	for _, l := range p.Loads {
		n++
		if BothWays(l.Kind) {
			n++
		}
	}
	return n
}

// MaxSweeps returns the most sweeps that a results file may hold.
func (p Plan) MaxSweeps() int {
	n := len(p.Mesh.Nodes)
	return min(maxVisits, maxPairs/max(1, n*(n-1)/2*p.VisitsOfPair()))
}

func (f *File) completeMesh() (rounds, sweeps int) {
	n := len(f.Header.Plan.Mesh.Nodes)
	visits := f.Header.Plan.VisitsOfPair()
	inRound, inSweep := map[[2]int]int{}, map[int]int{}
	for _, v := range f.Pairs {
		inRound[[2]int{v.Sweep, v.Round}]++
		inSweep[v.Sweep]++
	}
	for _, k := range inRound {
		if k == n/2*visits {
			rounds++
		}
	}
	for _, k := range inSweep {
		if k == n*(n-1)/2*visits {
			sweeps++
		}
	}
	return rounds, sweeps
}
