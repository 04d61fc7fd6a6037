package sample

import (
	"fmt"
	"slices"
)

// Placements on CPUs, for Cell.Pin and --pin. A cell without one uses Plan.CPUs.
const (
	// PinFar gives client and server a CPU each.
	PinFar = "far"
	// PinNear puts client, server and relays, such as docker-proxy, on one CPU.
	PinNear = "near"
	// PinNone leaves client and server to the scheduler.
	PinNone = "none"
)

// Pinning is a placement on CPUs.
type Pinning struct {
	Name string `json:"name"` // PinFar or PinNear
	CPUs CPUs   `json:"cpus"`
}

// CPUs are those that threads are pinned to. With an empty list, the scheduler chooses.
type CPUs struct {
	Client []int `json:"client,omitempty"`
	Server []int `json:"server,omitempty"`
	// Relay is for docker-proxy and other relays.
	Relay    []int `json:"relay,omitempty"`
	SameCore bool  `json:"same_core"` // client and server share a core
	// Distance is a Shared constant; "": unknown.
	Distance string `json:"distance,omitempty"`
}

const (
	SharedCPU     = "CPU"
	SharedCore    = "core"
	SharedCache   = "cache"
	SharedSocket  = "socket"
	SharedMachine = "machine"
)

// CPUsOf returns the CPUs to which the threads of a cell are pinned.
func (p Plan) CPUsOf(c Cell) CPUs {
	for _, x := range p.Pins {
		if x.Name == c.Pin && c.Pin != "" {
			return x.CPUs
		}
	}
	return p.CPUs
}

var pinNames = []string{"", PinFar, PinNear}

func (p Plan) checkPins() error {
	if len(p.Pins) > len(pinNames) {
		return fmt.Errorf("impossible number of CPU placements: %d", len(p.Pins))
	}
	for _, x := range p.Pins {
		if x.Name == "" || !slices.Contains(pinNames, x.Name) {
			return fmt.Errorf("unknown CPU placement %q", x.Name)
		}
	}
	for _, c := range p.Cells {
		if !slices.Contains(pinNames, c.Pin) {
			return fmt.Errorf("unknown CPU placement %q", c.Pin)
		}
	}
	return nil
}
