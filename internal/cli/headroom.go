package cli

import (
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/lab"
	"github.com/bridgetoll/bridgetoll/internal/paths/rootless"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// Go aborts a process that cannot create a thread, without an explanation, so toll first checks
// that there are enough threads and files. These numbers were measured and rounded up.
const (
	ownThreads = 10 // threads of a toll that measures nothing
	ownFiles   = 10

	runThreads  = 34 // threads of a toll inside and outside a user namespace, and of a visit's two workers
	pathThreads = 6  // for namespaces and for concurrent requests
	runFiles    = 20
	pathFiles   = 2
)

func ownHeadroom() error {
	if lab.Entered() || rootless.Entered() {
		return nil
	}
	return tooLittle("toll itself", machine.Machine{}.Headroom(
		machine.Crowd{Threads: ownThreads, Files: ownFiles}))
}

// runHeadroom returns an error if the limits of threads or files are too low for the plan. most is
// the largest number of threads of one end. Inside a user namespace it checks nothing, because the
// toll outside has checked.
func runHeadroom(p sample.Plan, most int) error {
	if lab.Entered() || rootless.Entered() {
		return nil
	}
	paths := map[sample.Cell]bool{}
	for _, c := range p.Cells {
		c.Load, c.Pin, c.Control, c.Placebo = "", "", false, false
		paths[c] = true
	}
	return tooLittle(units.Plural(len(paths), "path"), machine.Machine{}.Headroom(machine.Crowd{
		Threads: runThreads + pathThreads*len(paths) + 2*most,
		Files:   runFiles + pathFiles*len(paths),
	}))
}

// pathHeadroom is runHeadroom for a command that builds one path at a time.
func pathHeadroom() error { return runHeadroom(sample.Plan{Cells: make([]sample.Cell, 1)}, 1) }

func tooLittle(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
