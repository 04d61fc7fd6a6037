package path

import (
	"context"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Machine is another machine that a path is on. Something of ours runs there, and
// is asked. What cannot be answered in a bounded time is an error that names the
// machine.
type Machine interface {
	// Name says which it is, "node b".
	Name() string
	// Err is why the machine no longer answers; nil: it should. It does not wait. A
	// machine that is lost does not come back.
	Err() error
	// Clock compares the machine's CLOCK_MONOTONIC with this one's, now.
	Clock(ctx context.Context) (Offset, error)
	// Meter has the machine read its CPU clocks, and those of the processes pids, at
	// two instants of its own CLOCK_MONOTONIC (ns), and returns when the machine
	// knows. To 0 is when something started there said its last word before Use was
	// asked for. Nothing is said on the channel until then.
	Meter(ctx context.Context, from, to int64, pids ...int) (Metering, error)
}

// Metering is a reading that a machine was told to make. It is asked for once, and
// waited for until ctx ends.
type Metering func(ctx context.Context) (Use, error)

// Use is what a machine did between two instants.
type Use struct {
	CPUs      []sample.CPU `json:"cpus"`
	Elapsed   float64      `json:"elapsed_s"`       // between the two readings, by its own clock
	Procs     []float64    `json:"procs,omitempty"` // CPU time of the processes that were asked for, in s
	Throttled int          `json:"throttled,omitempty"`
	// Control is what the channel to the machine carried meanwhile: the noise that
	// measuring made.
	Control Traffic `json:"control"`
}

// Traffic is what connections carried, both ways together.
type Traffic struct {
	Bytes   uint64 `json:"bytes"`   // payload of TCP, sent again or not
	Packets uint64 `json:"packets"` // segments, those without payload, too
}

// Offset is a machine's clock against this machine's.
type Offset struct {
	Ahead time.Duration // of this machine's clock
	// Unsure bounds the error of Ahead, each way, at the time of the estimate.
	Unsure time.Duration
}

// Channel is the way to a path's machines. It is quiet while a window is measured.
type Channel interface {
	// Hush stops what the channel says by itself, for at most about d, and returns how
	// to let it go on before. Hushes may overlap; resume may be called twice.
	Hush(ctx context.Context, d time.Duration) (resume func(), err error)
	// Moved counts the bytes that this end has written and read, on all its
	// connections.
	Moved() uint64
}

// Distant is a Builder whose paths are on other machines, with clocks of their
// own: loads that compare the clocks of both ends are not for them.
type Distant interface {
	Builder
	Distant() bool
}
