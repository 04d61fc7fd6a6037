package engine

import (
	"math"
	"os"
	"slices"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine/meter"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

// contend records what others take of the CPUs until stop is called. The workers must not end
// before that. contend is called only while loads run, because container engines start and end
// workers with processes whose CPU time toll cannot attribute to the run.
func (r *run) contend(all ...*ends) (stop func()) {
	var pids []int
	for _, e := range all {
		pids = append(append(pids, processesOf(e.path)...), e.local()...)
	}
	slices.Sort(pids)
	pids = slices.Compact(pids) // cells may share a proxy
	return r.contendWith(func() float64 { return spent(pids, meter.ProcessCPU) })
}

// contendPrograms does the same for the programs of two keepers and everything that they start.
func (r *run) contendPrograms(p *path.Path, both *pair) (stop func()) {
	keepers := []int{both.server.proc.PID, both.client.proc.PID}
	return r.contendWith(func() float64 {
		return spent(processesOf(p), meter.ProcessCPU) + spent(keepers, meter.FamilyCPU)
	})
}

func (r *run) contendWith(used func() float64) (stop func()) {
	if r.Contention == nil {
		return func() {}
	}
	since := r.Contention(func() float64 {
		return meter.ProcessCPU(os.Getpid()).Seconds() + used()
	})
	return func() {
		c := since()
		if r.contention != nil {
			c = r.contention.Join(c)
		}
		r.contention = &c
	}
}

// spent returns the CPU time of processes in s, or NaN if one is unknown or has ended.
func spent(pids []int, by func(pid int) time.Duration) float64 {
	sum := 0.0
	for _, pid := range pids {
		used := time.Duration(0)
		if pid > 0 {
			used = by(pid)
		}
		if used == 0 {
			return math.NaN()
		}
		sum += used.Seconds()
	}
	return sum
}

// processesOf returns the processes of this machine that move the path's packets.
func processesOf(p *path.Path) []int { return append(pidsOf(p, nil), p.Copiers...) }

// local returns the workers' processes on this machine.
func (e *ends) local() (pids []int) {
	for i, h := range e.all() {
		if e.machine(i) == nil {
			pids = append(pids, h.proc.PID)
		}
	}
	return pids
}
