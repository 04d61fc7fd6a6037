// Package sample defines the record of a run and its file.
//
// A results file is JSON lines: a Header, Visits in the order of measurement, then an End. Units
// are seconds and bytes. Clock times are CLOCK_MONOTONIC nanoseconds of the measuring machine.
package sample

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// Schema is the version of the results file. It changes if an older reader would misread a file.
const Schema = "bridgetoll.results/2"

// Cell is what is compared: a mode with tunes, reached from a placement at a target, or a route to
// an endpoint, under a load.
type Cell struct {
	Mode    mode.Name      `json:"mode"`
	Route   string         `json:"-"` // in JSON, takes Mode's place
	From    mode.Placement `json:"from"`
	To      mode.Target    `json:"to"`
	Load    string         `json:"load"`
	Point   string         `json:"point,omitempty"` // of a sweep
	Tune    mode.Tunes     `json:"tune,omitempty"`
	Shape   Shape          `json:"shape,omitzero"`
	On      string         `json:"on"`
	Pin     string         `json:"pin,omitempty"`     // PinFar or PinNear; "": Plan.CPUs
	Control bool           `json:"control,omitempty"` // the baseline's second visit in each round
	// Placebo marks a control whose slices are among the other modes', so only the preceding slices
	// make it differ from the baseline.
	Placebo bool `json:"placebo,omitempty"`
}

// Name returns the cell's mode or route.
func (c Cell) Name() string { return cmp.Or(c.Route, string(c.Mode)) }

// Named returns the cell with its route as Mode, as in files and reports.
func (c Cell) Named() Cell {
	c.Mode, c.Route = mode.Name(c.Name()), ""
	return c
}

// Shape is the number of server containers, client containers and processes per client. Client i
// uses server i mod Servers. The zero value is one of each, measured by both ends. Other shapes are
// crowds, measured by the servers.
type Shape struct {
	Servers int `json:"servers"`
	Clients int `json:"clients"`
	Procs   int `json:"procs"`
}

const (
	maxEnds  = 100
	maxProcs = 1024 // of all clients together
)

// ParseShape parses words such as 4, 4x16 and 2x8x4: client containers, processes in each, and
// before both the servers.
func ParseShape(word string) (s Shape, err error) {
	var n []int
	for part := range strings.SplitSeq(strings.ReplaceAll(word, "×", "x"), "x") {
		x, err := strconv.Atoi(part)
		if err != nil || x < 1 || x > maxEnds {
			return s, fmt.Errorf("numbers must be from 1 to %d", maxEnds)
		}
		n = append(n, x)
	}
	switch len(n) {
	case 1:
		s = Shape{1, n[0], 1}
	case 2:
		s = Shape{1, n[0], n[1]}
	case 3:
		s = Shape{n[0], n[1], n[2]}
	default:
		return s, errors.New("must be at most 3 numbers with an x between them")
	}
	switch {
	case s.Clients*s.Procs > maxProcs:
		return s, fmt.Errorf("%d client processes, at most %d are possible", s.Clients*s.Procs, maxProcs)
	case s.Servers > s.Clients:
		return s, fmt.Errorf("%d servers need at least as many clients, not %d", s.Servers, s.Clients)
	}
	return s, nil
}

// Crowd reports whether the shape is a crowd.
func (s Shape) Crowd() bool { return s != Shape{} }

// String returns "1×16×4" (servers, clients, processes per client), or "" for the zero value.
func (s Shape) String() string {
	if !s.Crowd() {
		return ""
	}
	return fmt.Sprintf("%d×%d×%d", s.Servers, s.Clients, s.Procs)
}

// Study is the purpose of a run. In JSON, a comparison has none.
type Study string

const (
	StudyCompare Study = "compare"
	StudyScale   Study = "scale"
	StudyLadder  Study = "ladder"
	StudySweep   Study = "sweep"
	StudyAdvise  Study = "advise" // see Step
	StudyTrace   Study = "trace"
	// StudyEndpoints compares routes to an external endpoint, without witnesses.
	StudyEndpoints Study = "endpoints"
)

// IsZero reports whether JSON omits the study.
func (s Study) IsZero() bool { return s == "" || s == StudyCompare }

const (
	FromHere   = "here"
	OnEndpoint = "endpoint"
)

// Plan is what a run intends to do. Seed and the round determine the order of visits.
type Plan struct {
	Study  Study   `json:"study,omitzero"`
	Seed   uint64  `json:"seed"`
	Rounds int     `json:"rounds,omitempty"` // 0: until precision or budget
	Budget float64 `json:"budget_s"`
	// Within is the time after which the run ends even before Rounds, or before the least rounds of
	// endpoints; 0: none.
	Within float64 `json:"within_s,omitempty"`
	// relative half-width at which a ratio's interval is narrow enough
	Precision float64 `json:"precision"`
	// Same is the largest relative difference that counts as none; 0: Precision is.
	Same float64 `json:"same,omitempty"`
	// Epoch is the duration of all slices of an epoch together.
	Epoch    float64 `json:"epoch_s,omitempty"`
	Baseline string  `json:"baseline"`
	Pin      string  `json:"pin"` // the value of --pin
	// CPUs apply to cells without a placement; Pins are the other placements.
	CPUs  CPUs      `json:"cpus"`
	Pins  []Pinning `json:"pins,omitempty"`
	Loads Loads     `json:"loads"`
	// Unpaced is the tune under which baseline and bridge were measured as well, because the
	// machine's congestion control paces packets; "": none.
	Unpaced string `json:"unpaced,omitempty"`
	// Remedies are levers that were measured beside the modes that need them, without being asked.
	Remedies []Lever `json:"remedies,omitempty"`
	// Turn is how long a CPU-bound thread may wait for its turn, per client process of a crowd.
	Turn float64 `json:"turn_s,omitempty"`
	Wire *Wire   `json:"wire,omitempty"` // nil: unlimited
	// Engine and Ports are the values of --engine and --ports, the rules of the lab's machines; ""
	// and 0: not given.
	Engine  string `json:"engine,omitempty"`
	Ports   int    `json:"ports,omitempty"`
	Sweep   *Sweep `json:"sweep,omitempty"`
	Mesh    *Mesh  `json:"mesh,omitempty"` // nil: a plan with cells
	Cells   []Cell `json:"cells"`
	Skipped []Skip `json:"skipped,omitempty"`
	// Levers are what a search tries. The header has no Steps: each is a record.
	Levers []Lever `json:"levers,omitempty"`
	// Elsewhere replaces the baseline in a search where the baseline cannot be reached, as a
	// bridge's containers from another machine.
	Elsewhere string `json:"elsewhere,omitempty"`
	// Also lists further modes to search for, in order. A step begins each search.
	Also   []string `json:"also,omitempty"`
	Steps  []Step   `json:"steps,omitempty"`
	Priors []Prior  `json:"priors,omitempty"`
	// Repeats holds how much the ratios of earlier runs of the same plan differed, where the
	// machine's congestion control paces.
	Repeats []Prior `json:"repeats,omitempty"`
	// Trace selects what is traced; nil: nothing.
	Trace *TracePlan `json:"trace,omitempty"`
}

// IsBaseline reports whether a cell is its group's baseline or the control.
func (p Plan) IsBaseline(c Cell) bool {
	return c.Tune == "" && (c.Name() == p.Baseline || p.Elsewhere != "" && c.Name() == p.Elsewhere)
}

// Loads are the loads of a plan.
type Loads []Load

// Of returns the load of the given kind, or in a sweep its first point.
func (ls Loads) Of(kind string) Load {
	for _, l := range ls {
		if l.Kind == kind {
			return l
		}
	}
	return Load{Kind: kind}
}

// At returns a cell's load, in a sweep at the cell's point.
func (ls Loads) At(c Cell) Load {
	for _, l := range ls {
		if l.Kind == c.Load && l.Point == c.Point {
			return l
		}
	}
	return Load{Kind: c.Load, Point: c.Point}
}

const windowTurns = 3

// LoadFor returns a cell's load. The warm-up of a crowd is longer by one turn of all its processes,
// and its window lasts at least several turns, because in a shorter one only some of them would run
// on few CPUs.
func (p Plan) LoadFor(c Cell) Load {
	l := p.Loads.At(c)
	turns := p.Turn * float64(c.Shape.Clients*c.Shape.Procs)
	l.Warmup += turns
	l.Window = max(l.Window, windowTurns*turns)
	return l
}

// Foreign reports whether the paths lead to external endpoints, whose bytes are not counted.
func (p Plan) Foreign() bool {
	return p.Study == StudyEndpoints || len(p.Cells) > 0 && p.Cells[0].On == OnEndpoint
}

// Counts reports whether a visit is a result: it did not fail and, on toll's own path, was
// witnessed.
func (p Plan) Counts(v Visit) bool {
	return v.Failure == "" && (v.Witness.OK || p.Foreign())
}

// Skip is a requested cell that cannot be measured.
type Skip struct {
	Mode   mode.Name      `json:"mode"`
	From   mode.Placement `json:"from,omitempty"`
	To     mode.Target    `json:"to,omitempty"`
	Load   string         `json:"load,omitempty"`
	Tune   mode.Tunes     `json:"tune,omitempty"`
	On     string         `json:"on,omitempty"`
	Reason string         `json:"reason"`
	Remedy string         `json:"remedy,omitempty"`
}

// Environment is what affects the figures besides the mode.
type Environment struct {
	Tool           string            `json:"tool"`           // toll's version
	Host           string            `json:"host,omitempty"` // "": unknown
	Kernel         string            `json:"kernel"`
	OS             string            `json:"os,omitempty"`
	CPUModel       string            `json:"cpu_model"`
	CPUs           int               `json:"cpus"`         // online
	CPUsAllowed    []int             `json:"cpus_allowed"` // this process's affinity
	ThreadsPerCore int               `json:"threads_per_core"`
	Memory         uint64            `json:"memory_bytes"`
	CgroupCPUs     float64           `json:"cgroup_cpus,omitempty"` // 0: unlimited
	Governor       string            `json:"governor,omitempty"`
	Virtualization string            `json:"virtualization,omitempty"` // the hypervisor's name
	Mitigations    map[string]string `json:"mitigations,omitempty"`
	Docker         string            `json:"docker,omitempty"` // "running", "installed" or "absent"
	// false: the lab is in a user namespace
	Root        bool              `json:"root"`
	LoadAverage float64           `json:"load_average_1m"` // before the run
	Congestion  string            `json:"congestion_control"`
	Sysctls     map[string]string `json:"sysctls,omitempty"`
	// network cards on the measured paths of all machines
	Cards []Card `json:"cards,omitempty"`
}

// Path describes a path as it was built.
type Path struct {
	Mode    mode.Name      `json:"mode"`
	Route   string         `json:"-"` // see Cell
	From    mode.Placement `json:"from"`
	To      mode.Target    `json:"to"`
	Tune    mode.Tunes     `json:"tune,omitempty"`
	Servers int            `json:"servers,omitempty"` // of a crowd
	Clients int            `json:"clients,omitempty"`
	UDP     bool           `json:"udp,omitempty"` // rules and proxy are for UDP
	On      string         `json:"on"`
	Dial    string         `json:"dial"` // by the first client
	Listen  string         `json:"listen"`
	Hops    []string       `json:"hops"` // from the first client to its server
	Built   float64        `json:"built_s"`
	// ProxyMemory is what this machine's proxies used before their first client; 0: none or
	// unknown.
	ProxyMemory int64             `json:"proxy_memory_bytes,omitempty"`
	Links       []Link            `json:"links,omitempty"`
	Sysctls     map[string]string `json:"sysctls,omitempty"` // of the server's machine
	Facts       map[string]string `json:"facts,omitempty"`
	// Cards names the path's cards in Environment.Cards. Cards below a shared device are omitted if
	// it is unknown which of them carries the path.
	Cards []CardName `json:"cards,omitempty"`
	// Evidence divides the times of exchanges with an endpoint before it was visited; nil: nothing
	// was captured.
	Evidence *Evidence `json:"evidence,omitempty"`
	// Frames and Steered are of the requests of a trace; nil: iptables sees no frames, and no device
	// steers packets, or that is unknown.
	Frames  *Frames   `json:"frames,omitempty"`
	Steered []Steered `json:"steered,omitempty"`
}

// FactNotWitnessed is the key in Path.Facts whose value names the hops that cannot be read, and
// why.
const FactNotWitnessed = "not witnessed"

// FactServerUnseen is the key in Path.Facts of an endpoint whose value is a clause on why the
// server's process was not found.
const FactServerUnseen = "server unseen"

// FactTokensUnseen is the key in Path.Facts of an endpoint whose value is a clause on why toll
// cannot see when tokens leave the server.
const FactTokensUnseen = "tokens unseen"

// FactExchangesUnseen is the same of a server's replies.
const FactExchangesUnseen = "exchanges unseen"

// FactUnanswered is the key in Path.Facts of an endpoint whose value is the first address of its
// name if connections were made to another one because it did not answer.
const FactUnanswered = "unanswered address"

// Keys in Path.Facts of an endpoint.
const (
	// devices of the route, and their offloads that are off, with the short names of Link.Offloads
	FactDevice            = "device"
	FactOffloadsOff       = "offloads off"
	FactServerDevice      = "server device"
	FactServerOffloadsOff = "server offloads off"
	// FactVia is the header Via of an endpoint's responses.
	FactVia = "via"
	// FactKept is set if the server keeps connections open after a response.
	FactKept = "keeps connections"
)

// Keys in Path.Facts of routes to LLM servers: how requests differ from the usual ones because the
// server refused a part of them, and the content coding and media type of responses, if those are
// not the usual ones.
const (
	FactRequest  = "request"
	FactEncoding = "content encoding"
	FactType     = "content type"
)

// Link is a network device on a path.
type Link struct {
	Name     string          `json:"name"`
	Kind     string          `json:"kind"`
	Where    string          `json:"where"`
	MTU      int             `json:"mtu"`
	Qdisc    string          `json:"qdisc,omitempty"`
	Offloads map[string]bool `json:"offloads,omitempty"`
	// Rate is the limit of its queueing discipline; 0: unlimited, or different by packet.
	Rate uint64 `json:"rate_bit_per_s,omitempty"`
	// NetNS is the inode number of its network namespace, Index its number there. 0: unknown.
	NetNS uint32 `json:"-"`
	Index uint32 `json:"-"`
}

// Header is the first record of a results file.
type Header struct {
	Schema  string    `json:"schema"`
	Started time.Time `json:"started"`
	// Command has the arguments that repeat the run; nil: unknown.
	Command     []string    `json:"command,omitzero"`
	Environment Environment `json:"environment"`
	Plan        Plan        `json:"plan"`
	Paths       []Path      `json:"paths"`
	// Contention was read before the run; nil: unknown.
	Contention *Contention `json:"contention,omitempty"`
}

// RunsDocker reports whether a Docker Engine ran on the machine.
func (e Environment) RunsDocker() bool { return e.Docker == "running" }

func (h Header) named() Header {
	h.Plan.Cells, h.Paths = slices.Clone(h.Plan.Cells), slices.Clone(h.Paths)
	for i, c := range h.Plan.Cells {
		h.Plan.Cells[i] = c.Named()
	}
	for i := range h.Paths {
		if p := &h.Paths[i]; p.Route != "" {
			p.Mode = mode.Name(p.Route)
		}
	}
	return h
}

func (h *Header) adoptRoutes() {
	for i := range h.Plan.Cells {
		if c := &h.Plan.Cells[i]; c.On == OnEndpoint {
			c.Mode, c.Route = "", string(c.Mode)
		}
	}
	for i := range h.Paths {
		if p := &h.Paths[i]; p.On == OnEndpoint {
			p.Mode, p.Route = "", string(p.Mode)
		}
	}
}

// PathOf returns the path that c was measured on; ok is false if the file has none.
func (h Header) PathOf(c Cell) (p Path, ok bool) {
	for _, p := range h.Paths {
		if p.Mode == c.Mode && p.Route == c.Route && p.From == c.From && p.To == c.To &&
			p.Tune == c.Tune && p.On == c.On &&
			p.Servers == c.Shape.Servers && p.Clients == c.Shape.Clients && p.UDP == UDP(c.Load) {
			return p, true
		}
	}
	return Path{}, false
}

// End is the last record of a complete results file.
type End struct {
	Reason  string  `json:"reason"`           // an Ended constant
	Rounds  int     `json:"rounds"`           // complete ones
	Sweeps  int     `json:"sweeps,omitempty"` // complete ones, of a mesh
	Elapsed float64 `json:"elapsed_s"`
	Detail  string  `json:"detail,omitempty"`
	// Contention covers the loads; nil: unknown.
	Contention *Contention `json:"contention,omitempty"`
}

const (
	EndedByPrecision = "precision"
	EndedByBudget    = "budget"
	EndedByRounds    = "rounds"
	EndedByInterrupt = "interrupt"
	EndedByFailure   = "failure"
	EndedByBusy      = "busy"
	EndedBySize      = "size"      // another sweep would make the file too large
	EndedCutShort    = "cut short" // no End record
)
