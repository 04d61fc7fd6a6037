package sample

import (
	"fmt"
	"slices"
	"strings"
)

// Visit is one visit to one cell. Each embedded part is recorded by one component. Fields are in
// the file's order: add new ones at the end. If Failure is set, the rest may be missing.
type Visit struct {
	Turn
	Ends
	Crowd
	Metered
	Proof
	Outcome
	Timings
	Foreign // only of foreign programs and endpoints
	// Headroom is nil if unknown or if the load's connections do not end.
	Headroom *Headroom `json:"room,omitempty"`
	// Throttled is how often the cgroup's CPU limit stopped the run in the window.
	Throttled int `json:"throttled,omitempty"`
	// Slices precede the window that all other fields describe; nil: the load is not sliced.
	Slices *Slices `json:"slices,omitempty"`
	// Together is the share of the window in which the busiest threads of client and server shared
	// a CPU; nil: pinned or unknown.
	Together *float64 `json:"together,omitempty"`
	// Trace is of a traced epoch; nil: it was not traced. Its figures include what tracing costs.
	Trace *Trace `json:"trace,omitempty"`
}

// Turn identifies a visit before it begins.
type Turn struct {
	Round int `json:"round"` // in a mesh: of the sweep
	Cell  int `json:"cell"`  // index into Plan.Cells
	PairTurn
	At float64 `json:"at_s"` // since the run's start
	// Repeats counts the repetitions that were necessary because toll's own control channel was
	// active in the window.
	Repeats int `json:"repeats,omitempty"`
}

// PairTurn is for visits of a mesh only.
type PairTurn struct {
	Sweep int    `json:"sweep,omitempty"`
	Pair  Pair   `json:"pair,omitzero"`
	Load  string `json:"load,omitempty"`
	// Beside means Mesh.Beside instead of Mesh.Mode.
	Beside bool   `json:"beside,omitempty"`
	Left   string `json:"left,omitempty"` // the node that left, which made the visit fail
}

// Ends are the reports of both ends of the load, in a crowd totals.
type Ends struct {
	Client Party `json:"client,omitzero"`
	Server Party `json:"server,omitzero"`
}

// Crowd is for visits of a crowd only.
type Crowd struct {
	// Rates are payload bytes (bulk) or round trips (rr) per second, counted by the servers, for
	// each process of each client container.
	Rates [][]float64 `json:"rates,omitempty"`
	Setup float64     `json:"setup_s,omitempty"` // to start and connect all processes
}

// Metered is what the meters read at the window's bounds.
type Metered struct {
	Proxy   *ProxyUse `json:"proxy,omitempty"`
	Machine []CPU     `json:"machine,omitempty"` // all CPUs of one machine, then of the next
	// between the two readings of Machine; 0: they failed
	Elapsed float64 `json:"elapsed_s"`
	// Machines are the path's other machines. In Machine, this machine's CPUs come first if an end
	// is here.
	Machines []MachineUse `json:"machines,omitempty"`
}

// WithoutCPU returns m without the machines' readings.
func (m Metered) WithoutCPU() Metered {
	m.Machine, m.Elapsed, m.Machines = nil, 0, slices.Clone(m.Machines)
	for i := range m.Machines {
		m.Machines[i].CPUs = 0
	}
	return m
}

// Proof is what the hops counted, and whether it proves the path.
type Proof struct {
	Hops    []HopReading `json:"hops,omitempty"`
	Witness Witness      `json:"witness"`
}

// TooBusy is the beginning of Outcome.Failure if Outcome.TooBusy.
const TooBusy = "the machine was too busy"

// Outcome is what went wrong, if anything.
type Outcome struct {
	Failure string `json:"failure,omitempty"`
	// Starved means that the path is not at fault: the machine was too busy, or another program
	// traced the kernel.
	Starved bool `json:"starved,omitempty"`
}

// TooBusy reports whether the machine had too little CPU time for the visit.
func (o Outcome) TooBusy() bool { return o.Starved && strings.HasPrefix(o.Failure, TooBusy) }

// Timings are those of the client or, in a crowd, of all clients.
type Timings struct {
	Latency *EncodedHisto `json:"latency,omitempty"` // of round trips
	// Times are the load's own, by name.
	Times map[string]*EncodedHisto `json:"times,omitempty"`
}

// Foreign is what foreign programs and endpoints report.
type Foreign struct {
	// Values are in base units, by name: metrics that a program printed (exec), and those of chat,
	// sql and brief visits.
	Values map[string]float64 `json:"values,omitempty"`
	Output *Output            `json:"output,omitempty"` // of exec
	// OtherEvent is the first event of chat's streams that was no part of a response.
	OtherEvent string `json:"other_event,omitempty"`
	// Evidence is of chat, where toll saw packets at the server; nil: it did not.
	Evidence *Evidence `json:"evidence,omitempty"`
	// GPU is of chat; nil: the server's GPU cannot be read, or its work is not counted.
	GPU *GPU `json:"gpu,omitempty"`
}

// Party is one end of the load. Counts are of the window unless noted.
type Party struct {
	Window      float64 `json:"window_s"`   // by its own clock
	Sent        int64   `json:"sent"`       // payload
	Received    int64   `json:"received"`   // payload
	Trips       int64   `json:"trips"`      // request/response pairs
	TotalSent   int64   `json:"total_sent"` // in the whole visit
	TotalRecv   int64   `json:"total_received"`
	Connections int     `json:"connections"` // opened in the whole visit
	CPU         float64 `json:"cpu_s"`       // of the process
	// largest share of the window that one thread ran
	BusiestCPU  float64 `json:"busiest_cpu"`
	Involuntary int64   `json:"involuntary"` // context switches
	CPUs        []int   `json:"cpus"`        // empty: not pinned
	RSS         int64   `json:"rss_bytes"`   // peak
	Late        float64 `json:"late_s"`      // from the common start to the first byte
	TCP         TCPInfo `json:"tcp"`
	// Counts are the load's own, by name.
	Counts map[string]int64 `json:"counts,omitempty"`
}

// TCPInfo is the kernel's view of the connections, summed or averaged.
type TCPInfo struct {
	Retransmits int64   `json:"retransmits"`  // in the window
	Resent      int64   `json:"resent_bytes"` // in the whole visit
	RTT         float64 `json:"rtt_s"`        // smoothed, at the window's end
	RTTVar      float64 `json:"rttvar_s"`
	// RTO is the longest retransmission timeout of the connections at the window's end. 0: unknown.
	RTO  float64 `json:"rto_s,omitempty"`
	Cwnd int64   `json:"cwnd"` // segments
	MSS  int64   `json:"mss"`  // bytes
	// PMTU is the least path MTU of the connections. Packet is the size of that connection's full
	// segment from the IP header on, and Headers the size of its headers, in bytes. 0: unknown.
	PMTU    int64 `json:"pmtu,omitempty"`
	Packet  int64 `json:"packet,omitempty"`
	Headers int64 `json:"headers,omitempty"`
	// Device is where packets leave, with its MTU.
	Device    string `json:"device,omitempty"`
	DeviceMTU int64  `json:"device_mtu,omitempty"`
}

// Segment returns the least payload of a full segment in bytes, or 0 if unknown.
func (t TCPInfo) Segment() int64 {
	if t.Packet > t.Headers {
		return t.Packet - t.Headers
	}
	return t.MSS
}

// maxPacket exceeds any packet, BIG TCP included.
const maxPacket = 1 << 20

func (t TCPInfo) check() error {
	for _, n := range []int64{t.PMTU, t.Packet, t.Headers, t.DeviceMTU} {
		if n < 0 || n > maxPacket {
			return fmt.Errorf("impossible packet size %d", n)
		}
	}
	return nil
}

// ProxyUse is what the user-space proxy did in the window.
type ProxyUse struct {
	Name string  `json:"name"`
	CPU  float64 `json:"cpu_s"`
	// Memory is what this machine's proxies used after the window; 0: unknown.
	Memory int64 `json:"memory_bytes,omitempty"`
}

// CPU is one CPU's time by kind, as mpstat divides it. Files without nice, iowait and guest have
// the first and last in User, and the second in Idle.
type CPU struct {
	ID      int     `json:"id"`
	User    float64 `json:"user"`
	System  float64 `json:"system"`
	IRQ     float64 `json:"irq"`
	SoftIRQ float64 `json:"softirq"`
	Steal   float64 `json:"steal"`
	Idle    float64 `json:"idle"`

	Nice      float64 `json:"nice,omitempty"`
	IOWait    float64 `json:"iowait,omitempty"` // idle, with I/O of its own outstanding
	Guest     float64 `json:"guest,omitempty"`  // virtual machines
	GuestNice float64 `json:"guest_nice,omitempty"`
}

// MachineUse is another machine in a visit.
type MachineUse struct {
	Name string `json:"name"`
	CPUs int    `json:"cpus"` // the number of its CPUs in Visit.Machine
	// Ahead is how far its clock was ahead of this machine's, ± Unsure, in s.
	Ahead  float64 `json:"ahead_s"`
	Unsure float64 `json:"unsure_s"`
	// ControlPackets are the control channel's segments in the window, without payload.
	ControlPackets uint64 `json:"control_packets,omitempty"`
}

// Busy returns the CPU's time that was not idle.
func (c CPU) Busy() float64 {
	return c.User + c.Nice + c.System + c.IRQ + c.SoftIRQ + c.Guest + c.GuestNice
}

// All returns all of the CPU's time.
func (c CPU) All() float64 { return c.Busy() + c.Steal + c.Idle + c.IOWait }

// Combine returns by(c, o) for each kind of time, with c's ID.
func (c CPU) Combine(o CPU, by func(x, y float64) float64) CPU {
	return CPU{ID: c.ID, User: by(c.User, o.User), System: by(c.System, o.System),
		IRQ:     by(c.IRQ, o.IRQ),
		SoftIRQ: by(c.SoftIRQ, o.SoftIRQ),
		Steal:   by(c.Steal, o.Steal),
		Idle:    by(c.Idle, o.Idle),
		Nice:    by(c.Nice, o.Nice),
		IOWait:  by(c.IOWait, o.IOWait), Guest: by(c.Guest, o.Guest),
		GuestNice: by(c.GuestNice, o.GuestNice)}
}

// HopReading is a hop's counters before and after a visit.
type HopReading struct {
	Kind   string   `json:"kind"`
	Name   string   `json:"name"`
	Where  string   `json:"where"`
	Before Counters `json:"before"`
	After  Counters `json:"after"`
}

// Counters are what a hop counts. Forward is client to server.
type Counters struct {
	ForwardBytes    uint64 `json:"forward_bytes"`
	ForwardPackets  uint64 `json:"forward_packets"`
	BackwardBytes   uint64 `json:"backward_bytes"`
	BackwardPackets uint64 `json:"backward_packets"`
	Hits            uint64 `json:"hits"` // packets that matched a rule
	// ResentBytes is the number of bytes that a relay's own TCP sent again in both directions.
	// Other hops may have counted them in addition to the load.
	ResentBytes uint64 `json:"resent_bytes,omitempty"`
}

// Add returns the sum.
func (c Counters) Add(o Counters) Counters {
	return Counters{
		ForwardBytes:    c.ForwardBytes + o.ForwardBytes,
		ForwardPackets:  c.ForwardPackets + o.ForwardPackets,
		BackwardBytes:   c.BackwardBytes + o.BackwardBytes,
		BackwardPackets: c.BackwardPackets + o.BackwardPackets,
		Hits:            c.Hits + o.Hits,
		ResentBytes:     c.ResentBytes + o.ResentBytes,
	}
}

// Sub returns c minus before.
func (c Counters) Sub(before Counters) Counters {
	return Counters{
		ForwardBytes:    c.ForwardBytes - before.ForwardBytes,
		ForwardPackets:  c.ForwardPackets - before.ForwardPackets,
		BackwardBytes:   c.BackwardBytes - before.BackwardBytes,
		BackwardPackets: c.BackwardPackets - before.BackwardPackets,
		Hits:            c.Hits - before.Hits,
		ResentBytes:     c.ResentBytes - before.ResentBytes,
	}
}

// Witness is the hop counters' verdict on a visit.
type Witness struct {
	OK       bool   `json:"ok"`
	Evidence string `json:"evidence,omitempty"` // what contradicts the path
}
