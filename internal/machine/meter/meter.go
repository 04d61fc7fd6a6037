// Package meter reads what a window cost the machine: CPU time by kind and
// CPU from /proc/stat, and the CPU time of single processes from their own
// clocks. Processes' clocks count in ns; /proc/stat counts in ticks of 10 ms,
// so its sums only become exact over many windows.
package meter

import (
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Reading is the state of the clocks at one instant.
type Reading struct {
	At    time.Time
	CPUs  []sample.CPU // cumulative, in the order of their numbers
	Procs []float64    // cumulative CPU seconds of the processes that were asked for
}

// Meter reads clocks. The zero value reads /proc.
type Meter struct {
	fs *procfs.FS
}

// New returns a meter on /proc.
func New() (*Meter, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return nil, fmt.Errorf("open /proc: %w", err)
	}
	return &Meter{fs: &fs}, nil
}

// Read reads the machine's clocks and those of the processes pids. A process
// that is gone reads 0.
func (m *Meter) Read(pids ...int) (Reading, error) {
	st, err := m.fs.Stat()
	if err != nil {
		return Reading{}, fmt.Errorf("read /proc/stat: %w", err)
	}
	r := Reading{At: time.Now()}
	ids := make([]int64, 0, len(st.CPU))
	for id := range st.CPU {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		c := st.CPU[id]
		// Guest time is inside user time already.
		r.CPUs = append(r.CPUs, sample.CPU{ID: int(id), User: c.User + c.Nice, System: c.System, IRQ: c.IRQ,
			SoftIRQ: c.SoftIRQ, Steal: c.Steal, Idle: c.Idle + c.Iowait})
	}
	for _, pid := range pids {
		r.Procs = append(r.Procs, ProcessCPU(pid).Seconds())
	}
	return r, nil
}

// Since is what the machine's CPUs did from a to b, those that were online at
// both.
func Since(a, b Reading) []sample.CPU {
	before := map[int]sample.CPU{}
	for _, c := range a.CPUs {
		before[c.ID] = c
	}
	var out []sample.CPU
	for _, y := range b.CPUs {
		x, ok := before[y.ID]
		if !ok {
			continue
		}
		out = append(out, sample.CPU{ID: y.ID, User: y.User - x.User, System: y.System - x.System, IRQ: y.IRQ - x.IRQ,
			SoftIRQ: y.SoftIRQ - x.SoftIRQ, Steal: y.Steal - x.Steal, Idle: y.Idle - x.Idle})
	}
	return out
}

// ProcessMemory is the memory of a process in bytes: its share of what it has in common
// with others (PSS), since proxies of many ports share their program. Where that may not be
// read it is all that is resident; 0 if the process is gone.
func ProcessMemory(pid int) int64 {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0
	}
	if r, err := p.ProcSMapsRollup(); err == nil && r.Pss > 0 {
		return int64(r.Pss)
	}
	st, err := p.Stat()
	if err != nil {
		return 0
	}
	return int64(st.ResidentMemory())
}

// ProcessCPU is the CPU time of a process, all threads; 0 if it is gone. The
// clock's number is made from the pid as clock_getcpuclockid(3) does.
func ProcessCPU(pid int) time.Duration {
	const sched = 2 // CPUCLOCK_SCHED, for the whole process
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|sched), &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
