// Package trace turns a log of kernel events into the segments of round trips. It is pure.
//
// A trip is a list of steps, and a segment lies between two of them, so segments sum to the trip
// exactly.
package trace

import (
	kernel "github.com/bridgetoll/bridgetoll/internal/paths/kernel/trace"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Device identifies a network device.
type Device struct {
	NetNS uint32 // inode number
	Index uint32
}

// Cell is what Follow needs to know of a cell.
type Cell struct {
	Client, Server int   // processes
	Relays         []int // processes, in the order of the path
	UDP            bool
	Devices        map[Device]sample.Link // of the path
	// Hops are the kinds of the path's hops by the catalogue, in order.
	Hops []string
}

// Slice is a measured slice's trips by the client's clock (CLOCK_MONOTONIC, ns): trip i lasts from
// Bounds[i] to Bounds[i+1].
type Slice struct {
	Slot   int
	Bounds []int64
}

// Log is what was recorded: each CPU's events in order, how many were lost, and the tracepoints that
// the kernel lacks.
type Log struct {
	CPUs    [][]kernel.Event
	Lost    int
	Missing []string
}

// Follow follows a cell's trips through the log.
func Follow(l Log, c Cell, all []Slice) *sample.Trace { return &sample.Trace{} }
