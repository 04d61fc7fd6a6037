package path

import (
	"context"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Machine is another machine that a path is on and on which toll's agent answers. Its methods
// return an error that names the machine if there is no answer in a bounded time.
type Machine interface {
	// "node b"
	Name() string
	// Err returns why the machine no longer answers, or nil, at once. A lost machine does not come
	// back.
	Err() error
	// Clock compares the machine's CLOCK_MONOTONIC with this one's.
	Clock(ctx context.Context) (Offset, error)
	// Meter has the machine read its CPU clocks, and those of the processes pids, at two instants
	// of its own CLOCK_MONOTONIC (ns), and returns once the machine has the request. If to is 0,
	// the second reading is made when a process started there has written its last message before
	// Use is requested. The channel is silent until then.
	Meter(ctx context.Context, from, to int64, pids ...int) (Metering, error)
}

// Metering returns a reading that a machine was asked to make. It is called once, and waits until
// ctx ends.
type Metering func(ctx context.Context) (Use, error)

// Use is a machine's consumption between two instants.
type Use struct {
	CPUs      []sample.CPU `json:"cpus"`
	Elapsed   float64      `json:"elapsed_s"`       // by its own clock
	Procs     []float64    `json:"procs,omitempty"` // CPU time of pids, in s
	Throttled int          `json:"throttled,omitempty"`
	// Control is the channel's own traffic.
	Control Traffic `json:"control"`
}

// Traffic is what connections carried, both directions together.
type Traffic struct {
	Bytes   uint64 `json:"bytes"`   // payload of TCP, resent bytes included
	Packets uint64 `json:"packets"` // segments, also without payload
}

// Offset is a machine's clock relative to this machine's.
type Offset struct {
	Ahead time.Duration // of this machine's clock
	// Unsure bounds the error of Ahead, each way, at the time of the estimate.
	Unsure time.Duration
}

// Channel is the connection to a path's machines. It is quiet while a window is measured.
type Channel interface {
	// Hush stops the channel's own messages for about d at most, or until resume is called. Hushes
	// may overlap; resume may be called twice.
	Hush(ctx context.Context, d time.Duration) (resume func(), err error)
	// Moved returns the bytes that this end has written and read.
	Moved() uint64
}
