package path

import (
	"context"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Machine is another machine of a path, on which toll's agent answers. Without an answer in a
// bounded time, methods return an error that names the machine.
type Machine interface {
	// "node b"
	Name() string
	// Err returns at once why the machine does not answer, or nil. A lost machine does not come
	// back.
	Err() error
	// Clock compares the machine's CLOCK_MONOTONIC with this one's.
	Clock(ctx context.Context) (Offset, error)
	// Meter requests two readings of the machine's and the processes' CPU clocks, at instants of
	// its own CLOCK_MONOTONIC (ns). If to is 0, the second reading is made when a process started
	// there has written its last message before Use is requested. The channel is silent until then.
	Meter(ctx context.Context, from, to int64, pids ...int) (Metering, error)
}

// Metering waits for the requested reading until ctx ends. It is called once.
type Metering func(ctx context.Context) (Use, error)

// Use is a machine's consumption between two instants, by its own clock.
type Use struct {
	CPUs      []sample.CPU `json:"cpus"`
	Elapsed   float64      `json:"elapsed_s"`       // by its own clock
	Procs     []float64    `json:"procs,omitempty"` // CPU time of pids, in s
	Throttled int          `json:"throttled,omitempty"`
	// of the channel itself
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
	// Unsure bounds the error of Ahead, each way, at the time of the estimate.
	Unsure time.Duration
}

// Channel connects the path's machines. It is quiet during a window.
type Channel interface {
	// Hush stops the channel's own messages for at most about d, or until resume. Hushes may
	// overlap; resume may be called twice.
	Hush(ctx context.Context, d time.Duration) (resume func(), err error)
	// Moved returns the bytes that this end has written and read.
	Moved() uint64
}
