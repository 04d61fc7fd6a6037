// Package sample is the record: what one run measured, and the file that holds it. The measuring
// half writes it, the judging half reads it; the two meet nowhere else.
//
// A results file is JSON lines: a Header, then a Visit for each visit in the order in which they
// were made, then an End. Units are seconds and bytes, never bits, unless a name says otherwise.
// Times on the clock are CLOCK_MONOTONIC nanoseconds of the measuring machine.
package sample

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// Schema is the version of the results file. A change that an older reader would misread raises the
// number: visits of /2 may have slices.
const (
	Schema    = "bridgetoll.results/2"
	oldSchema = "bridgetoll.results/1" // can be read, too
)

// Cell is what is compared: a mode, perhaps with tunes, reached from a placement at a target, or a
// route to an endpoint, under a load.
type Cell struct {
	Mode    mode.Name      `json:"mode"`
	Route   string         `json:"-"` // has no Mode; JSON has it as the mode
	From    mode.Placement `json:"from"`
	To      mode.Target    `json:"to"`
	Load    string         `json:"load"`
	Point   string         `json:"point,omitempty"` // the load's, of a sweep
	Tune    mode.Tunes     `json:"tune,omitempty"`
	Shape   Shape          `json:"shape,omitzero"`
	On      string         `json:"on"`
	Pin     string         `json:"pin,omitempty"`     // PinFar or PinNear; "": see Plan.CPUs
	Control bool           `json:"control,omitempty"` // the baseline's second visit in each round
	// Placebo marks a control whose slices are among the other modes': its difference from the
	// baseline is caused by the preceding slices.
	Placebo bool `json:"placebo,omitempty"`
}

// Name returns the name of the cell's mode or route.
func (c Cell) Name() string { return cmp.Or(c.Route, string(c.Mode)) }

// Named returns the cell as files and reports have it, with its route in place of the mode.
func (c Cell) Named() Cell {
	c.Mode, c.Route = mode.Name(c.Name()), ""
	return c
}

// Shape is the number of participants: server containers, client containers (client i uses server i
// mod Servers) and client processes in each. The zero value is one of each, measured by their own
// clocks; any other is a crowd, measured at the servers.
type Shape struct {
	Servers int `json:"servers"`
	Clients int `json:"clients"`
	Procs   int `json:"procs"`
}

// MaxEnds bounds each number of a shape, and MaxProcs the client processes together.
const (
	MaxEnds  = 100
	MaxProcs = 1024
)

// Crowd reports whether the shape is a crowd.
func (s Shape) Crowd() bool { return s != Shape{} }

// String returns "1×16×4": servers, clients, processes in each client; "" if the shape is not a
// crowd.
func (s Shape) String() string {
	if !s.Crowd() {
		return ""
	}
	return fmt.Sprintf("%d×%d×%d", s.Servers, s.Clients, s.Procs)
}

// Study names what a run is for. In JSON, a comparison has none.
type Study string

// The studies. StudyMesh is another.
const (
	StudyCompare Study = "compare"
	StudyScale   Study = "scale"
	StudyLadder  Study = "ladder"
	StudySweep   Study = "sweep"
	StudyAdvise  Study = "advise" // settings that would make a mode faster; see Step
	// StudyEndpoints compares routes to an external endpoint. toll controls no hop on them: nothing
	// is witnessed.
	StudyEndpoints Study = "endpoints"
)

// IsZero reports whether the study is left out of JSON.
func (s Study) IsZero() bool { return s == "" || s == StudyCompare }

// Placement and backend of cells of endpoints.
const (
	FromHere   = "here" // this process, wherever it runs
	OnEndpoint = "endpoint"
)

// Plan is what a run intends to do. Cells are in the catalogue's order; the order of visits follows
// from Seed and the round's number.
type Plan struct {
	Study     Study   `json:"study,omitzero"`
	Seed      uint64  `json:"seed"`
	Rounds    int     `json:"rounds,omitempty"` // fixed number; 0: until precision or budget
	Budget    float64 `json:"budget_s"`
	Precision float64 `json:"precision"` // relative half-width at which a ratio is good enough
	// Same is the relative difference that counts as none; 0 in files of version 1.
	Same float64 `json:"same,omitempty"`
	// Epoch is the duration of all slices of one epoch together, in seconds.
	Epoch    float64 `json:"epoch_s,omitempty"`
	Baseline string  `json:"baseline"`
	Pin      string  `json:"pin"` // the value of --pin
	// CPUs are those of cells without a placement of their own; Pins are the other placements.
	CPUs  CPUs      `json:"cpus"`
	Pins  []Pinning `json:"pins,omitempty"`
	Loads []Load    `json:"loads"`
	// Unpaced is the tune under which the baseline and bridge were measured, too, because the
	// machine's congestion control paces what it sends; "": none.
	Unpaced string `json:"unpaced,omitempty"`
	// Turn is how long a CPU-bound thread may have to wait for its turn, in seconds for each client
	// process of a crowd.
	Turn    float64 `json:"turn_s,omitempty"`
	Wire    *Wire   `json:"wire,omitempty"`  // nil: unlimited
	Sweep   *Sweep  `json:"sweep,omitempty"` // nil: each load has its options once
	Mesh    *Mesh   `json:"mesh,omitempty"`
	Cells   []Cell  `json:"cells"`
	Skipped []Skip  `json:"skipped,omitempty"`
	// Levers are what a search tries, and Steps what it did after trying each alone. Each step is a
	// record of its own in the file.
	Levers []Lever `json:"levers,omitempty"`
	// Elsewhere is the mode that replaces the baseline in a search where the baseline cannot be
	// reached: from another machine, a bridge's containers have published ports only.
	Elsewhere string `json:"elsewhere,omitempty"`
	// Also lists further modes to search for, one after another: each begins with a step.
	Also  []string `json:"also,omitempty"`
	Steps []Step   `json:"steps,omitempty"`
	// Priors are what earlier runs showed of how much epochs differ; none: unknown.
	Priors []Prior `json:"priors,omitempty"`
}

// IsBaseline reports whether a cell is the baseline of its group, or its control.
func (p Plan) IsBaseline(c Cell) bool {
	return c.Tune == "" && (c.Name() == p.Baseline || p.Elsewhere != "" && c.Name() == p.Elsewhere)
}

// LoadOf returns the load of the given kind; in a sweep that of its first point.
func (p Plan) LoadOf(kind string) Load {
	for _, l := range p.Loads {
		if l.Kind == kind {
			return l
		}
	}
	return Load{Kind: kind}
}

// LoadAt returns a cell's load, in a sweep that of its point.
func (p Plan) LoadAt(c Cell) Load {
	for _, l := range p.Loads {
		if l.Kind == c.Load && l.Point == c.Point {
			return l
		}
	}
	return Load{Kind: c.Load, Point: c.Point}
}

// turns of each process in a window, at least
const windowTurns = 3

// LoadFor returns a cell's load. A crowd's warm-up is longer by one turn of all its processes, and
// its window holds several: on few CPUs a short one would only see some of them run.
func (p Plan) LoadFor(c Cell) Load {
	l := p.LoadAt(c)
	turns := p.Turn * float64(c.Shape.Clients*c.Shape.Procs)
	l.Warmup += turns
	l.Window = max(l.Window, windowTurns*turns)
	return l
}

// Foreign reports whether the paths lead to external endpoints, whose bytes are not counted.
func (p Plan) Foreign() bool { return p.Study == StudyEndpoints }

// Counts reports whether a visit is a result: it did not fail and, if the path is toll's, was
// witnessed.
func (p Plan) Counts(v Visit) bool {
	return v.Failure == "" && (v.Witness.OK || p.Foreign())
}

// Skip is a requested cell that cannot be measured here.
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

// Environment is what decides the numbers besides the mode.
type Environment struct {
	Tool           string            `json:"tool"`           // toll's version
	Host           string            `json:"host,omitempty"` // the machine's own name; "": not known
	Kernel         string            `json:"kernel"`
	OS             string            `json:"os,omitempty"`
	CPUModel       string            `json:"cpu_model"`
	CPUs           int               `json:"cpus"`         // online
	CPUsAllowed    []int             `json:"cpus_allowed"` // this process's affinity
	ThreadsPerCore int               `json:"threads_per_core"`
	Memory         uint64            `json:"memory_bytes"`
	CgroupCPUs     float64           `json:"cgroup_cpus,omitempty"` // CPU limit; 0: none
	Governor       string            `json:"governor,omitempty"`
	Virtualization string            `json:"virtualization,omitempty"` // hypervisor's name
	Mitigations    map[string]string `json:"mitigations,omitempty"`
	Docker         string            `json:"docker,omitempty"` // "running", "installed" or absent
	Root           bool              `json:"root"`             // false: the lab is inside a user namespace
	LoadAverage    float64           `json:"load_average_1m"`  // before the run
	Congestion     string            `json:"congestion_control"`
	Sysctls        map[string]string `json:"sysctls,omitempty"`
	Cards          []Card            `json:"cards,omitempty"` // crossed by measured paths, of all machines
}

// Path describes a path as it was built.
type Path struct {
	Mode    mode.Name      `json:"mode"`
	Route   string         `json:"-"` // as a cell's
	From    mode.Placement `json:"from"`
	To      mode.Target    `json:"to"`
	Tune    mode.Tunes     `json:"tune,omitempty"`
	Servers int            `json:"servers,omitempty"` // of a crowd
	Clients int            `json:"clients,omitempty"`
	UDP     bool           `json:"udp,omitempty"` // its rules and proxy are for UDP
	On      string         `json:"on"`
	Dial    string         `json:"dial"` // what the (first) client dials
	Listen  string         `json:"listen"`
	Hops    []string       `json:"hops"` // kinds, (first) client to server
	Built   float64        `json:"built_s"`
	// ProxyMemory is the memory of the proxies on this machine before their first client, in bytes;
	// 0: none or unknown.
	ProxyMemory int64             `json:"proxy_memory_bytes,omitempty"`
	Links       []Link            `json:"links,omitempty"`
	Sysctls     map[string]string `json:"sysctls,omitempty"` // of the server's machine, those that matter
	Facts       map[string]string `json:"facts,omitempty"`   // proxy used, rule set used, …
	// Cards are those that its packets cross, each in Environment.Cards. If several are below one
	// device, only one may carry them: they are not named if it is unknown which.
	Cards []CardName `json:"cards,omitempty"`
}

// FactNotWitnessed is the path's fact that names the hops that nobody could read, and why.
const FactNotWitnessed = "not witnessed"

// Link is a network device on a path.
type Link struct {
	Name     string          `json:"name"`
	Kind     string          `json:"kind"`
	Where    string          `json:"where"`
	MTU      int             `json:"mtu"`
	Qdisc    string          `json:"qdisc,omitempty"`
	Offloads map[string]bool `json:"offloads,omitempty"`
	// Rate is what its queueing discipline lets through of what it sends, in bit/s; 0: unlimited,
	// or it depends on the packet.
	Rate uint64 `json:"rate_bit_per_s,omitempty"`
}

// Header is the first record of a results file.
type Header struct {
	Schema  string    `json:"schema"`
	Started time.Time `json:"started"`
	// Command holds the arguments of toll that make the run again; nil: unknown.
	Command     []string    `json:"command,omitempty"`
	Environment Environment `json:"environment"`
	Plan        Plan        `json:"plan"`
	Paths       []Path      `json:"paths"`
	// Contention is that of this machine's CPUs before the run; nil: it was not watched.
	Contention *Contention `json:"contention,omitempty"`
}

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

// adoptRoutes takes routes from the place of the mode.
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
		if p.Mode == c.Mode && p.Route == c.Route && p.From == c.From && p.To == c.To && p.Tune == c.Tune && p.On == c.On &&
			p.Servers == c.Shape.Servers && p.Clients == c.Shape.Clients && p.UDP == UDP(c.Load) {
			return p, true
		}
	}
	return Path{}, false
}

// End is the last record of a results file. A file without one was cut short.
type End struct {
	Reason  string  `json:"reason"`           // one of the Ended constants
	Rounds  int     `json:"rounds"`           // complete ones
	Sweeps  int     `json:"sweeps,omitempty"` // complete ones, of a mesh
	Elapsed float64 `json:"elapsed_s"`
	Detail  string  `json:"detail,omitempty"`
	// Contention is that of this machine's CPUs during the run; nil: it was not watched.
	Contention *Contention `json:"contention,omitempty"`
}

// Values of End.Reason.
const (
	EndedByPrecision = "precision"
	EndedByBudget    = "budget"
	EndedByRounds    = "rounds"
	EndedByInterrupt = "interrupt"
	EndedByFailure   = "failure"
	EndedByBusy      = "busy"      // other programs used the CPUs
	EndedBySize      = "size"      // the file would be too large to read with one more sweep of a mesh
	EndedCutShort    = "cut short" // the file has no End record
)
