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

// turn returns the seconds by which each additional client process may lengthen a thread's wait for
// a CPU, because the process and its server thread may each run for a scheduler slice first.
func turn(here machine.Machine) float64 {
	const slice = 0.003 // the longest base_slice_ns that the kernel chooses
	facts, _ := here.Read()
	cpus := float64(max(1, len(facts.CPUsAllowed)))
	if facts.CgroupCPUs > 0 {
		cpus = min(cpus, facts.CgroupCPUs)
	}
	return 2 * slice / cpus
}

func crowdHeadroom(here machine.Machine, shapes []sample.Shape, streams int) error {
	const (
		files      = 4 // toll's files for a process: two pipes and the process
		toll       = 1000
		threads    = 10
		bytes      = 3 << 20
		connection = 256 << 10
	)
	for _, s := range shapes {
		processes := s.Servers + s.Clients*s.Procs
		connections := s.Clients * s.Procs * streams
		err := here.Headroom(machine.Crowd{
			Threads: toll + threads*processes + 2*connections,
			Files:   toll/2 + files*processes,
			Memory:  uint64(bytes*processes + connection*connections),
		})
		if err != nil {
			return tooLittle(s.String(), err)
		}
	}
	return nil
}
