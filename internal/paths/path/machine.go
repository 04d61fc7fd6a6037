package path

import (
	"context"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Machine is another machine of a path, on which an agent of toll runs. If the agent does not
// answer within a limited time, methods return an error that names the machine.
type Machine interface {
	// Name returns the machine's name, such as "node b".
	Name() string
	// Err returns at once why the machine is lost, or nil. A lost machine does not come back.
	Err() error
	// Clock measures the offset of the machine's CLOCK_MONOTONIC from this one's.
	Clock(ctx context.Context) (Offset, error)
	// Meter requests two readings of the CPU clocks of the machine and of processes, at instants of
	// the machine's CLOCK_MONOTONIC in ns. If to is 0, the second reading is made with the last
	// message that a process started there writes before the Metering is called. Until then the
	// channel is silent.
	Meter(ctx context.Context, from, to int64, pids ...int) (Metering, error)
}

// Metering waits for the requested readings until ctx ends, and returns what was used between them.
// It is called once.
type Metering func(ctx context.Context) (Use, error)

// Use is what a machine and its processes used between two readings.
type Use struct {
	CPUs      []sample.CPU `json:"cpus"`
	Elapsed   float64      `json:"elapsed_s"`       // by the machine's own clock
	Procs     []float64    `json:"procs,omitempty"` // CPU time of pids, in s
	Throttled int          `json:"throttled,omitempty"`
	// Control is the traffic of the channel itself.
	Control Traffic `json:"control"`
}

// Traffic is the sum of connections' traffic in both directions.
type Traffic struct {
	Bytes   uint64 `json:"bytes"`   // TCP payload, resent bytes included
	Packets uint64 `json:"packets"` // also segments without payload
}

// Offset is a machine's clock relative to this machine's.
type Offset struct {
	Ahead time.Duration // of this machine's clock
	// Unsure is the largest possible error of Ahead, in either direction, at the time of the
	// estimate.
	Unsure time.Duration
}

// Channel connects the path's machines. It is quiet during a window.
type Channel interface {
	// Hush stops the channel's own messages until resume is called, at most for about d. Hushes may
	// overlap, and resume may be called twice.
	Hush(ctx context.Context, d time.Duration) (resume func(), err error)
	// Moved returns the bytes that this end has written and read.
	Moved() uint64
}
