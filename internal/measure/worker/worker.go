// Package worker is the process in a place that runs one end of a load: the same program, started
// for one visit or epoch, so that it inherits no memory layout and no connections. JSON lines on
// its standard input and output control it, so that no control traffic is on the measured path.
//
// The connections stay open until the end of input, because a proxy's counters end with them. A
// worker whose input ends early exits at once.
package worker

import (
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"

	"github.com/prometheus/procfs"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/measure/load"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Arg is the argument that makes toll a worker.
const Arg = "worker"

// Env returns a worker's environment. Without asynchronous preemption the runtime sends no signals
// to threads in raw system calls.
func Env() []string { return []string{"GODEBUG=asyncpreemptoff=1", "GOMAXPROCS=3"} }

// Role is the end of the load that a worker runs.
type Role string

const (
	Server Role = "server"
	Client Role = "client"
)

// Request is the first message to a worker.
type Request struct {
	Role Role           `json:"role"`
	Load sample.Load    `json:"load"`
	Addr netip.AddrPort `json:"addr"` // to listen on, or to dial
	CPUs []int          `json:"cpus,omitempty"`
	// Crowd means that the end is one of many; then Client is the number that a client's end sends.
	Crowd  bool `json:"crowd,omitempty"`
	Client int  `json:"client,omitempty"`
	Shared bool `json:"shared,omitempty"`
	// connections that a client's end may open (crr); 0: no limit
	Budget int  `json:"budget,omitempty"`
	Bounds bool `json:"bounds,omitempty"` // see load.Options
}

// Reply is a worker's answer.
type Reply struct {
	Ready bool          `json:"ready,omitempty"`
	Done  *sample.Party `json:"done,omitempty"`
	sample.Timings
	Flows  []load.Flow       `json:"flows,omitempty"` // for a crowd
	Slices []load.SliceStats `json:"slices,omitempty"`
	// the part of Done.RSS that all processes share: the program's file
	Shared int64  `json:"shared,omitempty"`
	Error  string `json:"error,omitempty"`
}

type end interface {
	Run(load.Schedule) (load.Stats, error)
	Close() error
}

// Main runs a worker on in and out. Once the load has started, it returns only if it cannot reply:
// the end of the input exits the process, whatever its threads are blocked in.
func Main(in io.Reader, out io.Writer) error {
	enc := json.NewEncoder(out)
	dec := json.NewDecoder(in)
	var o Request
	if err := dec.Decode(&o); err != nil {
		return fmt.Errorf("read request: %w", err)
	}
	e, err := open(o)
	if err != nil {
		return enc.Encode(Reply{Error: err.Error()})
	}
	if err := enc.Encode(Reply{Ready: true}); err != nil {
		return err
	}
	var when load.Schedule
	if err := dec.Decode(&when); err != nil {
		return fmt.Errorf("read schedule: %w", err)
	}
	go exitWith(dec)
	stats, err := e.Run(when)
	clock.SleepUntil(when.Hold)
	reply := report(o, stats)
	if err != nil {
		reply.Error = err.Error()
	}
	if err := enc.Encode(reply); err != nil {
		return err
	}
	select {}
}

// exitWith exits the process at the end of its input.
func exitWith(dec *json.Decoder) {
	_, _ = dec.Token()
	os.Exit(0)
}

func open(o Request) (end, error) {
	opts := load.Options{
		Load:         o.Load,
		CPUs:         o.CPUs,
		Crowd:        o.Crowd,
		Client:       o.Client,
		Budget:       o.Budget,
		Shared:       o.Shared,
		Bounds:       o.Bounds,
		NewHistogram: sample.NewHistogram,
	}
	load.Prepare(opts.Threads())
	switch o.Role {
	case Server:
		return load.Listen(o.Addr, opts)
	case Client:
		return load.Dial(o.Addr, opts)
	}
	return nil, fmt.Errorf("unknown role %q", o.Role)
}

func report(o Request, s load.Stats) Reply {
	memory := status()
	p := s.Party
	p.CPUs, p.RSS = o.CPUs, int64(memory.VmHWM)
	if s.Peer.IsValid() { // after the load, and after its memory was read
		if w, err := link.RouteTo(s.Peer); err == nil {
			p.TCP.Device, p.TCP.DeviceMTU = w.Device, int64(w.DeviceMTU)
		}
	}
	r := Reply{Done: &p, Flows: s.Flows, Slices: s.Slices, Shared: int64(memory.RssFile)}
	if s.Latency != nil {
		h, err := sample.Encode(s.Latency)
		if err != nil {
			r.Error = err.Error()
		}
		r.Latency = h
	}
	for name, h := range s.Times {
		e, err := sample.Encode(h)
		if err != nil {
			r.Error = err.Error()
			continue
		}
		if r.Times == nil {
			r.Times = map[string]*sample.EncodedHisto{}
		}
		r.Times[name] = e
	}
	return r
}

// status returns the process's status. VmHWM is the peak of its resident memory; the peak in
// getrusage(2) would begin with the parent's.
func status() procfs.ProcStatus {
	self, err := procfs.Self()
	if err != nil {
		return procfs.ProcStatus{}
	}
	s, _ := self.NewStatus()
	return s
}
