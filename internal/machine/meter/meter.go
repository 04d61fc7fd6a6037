// Package meter reads CPU time. The machine's, by kind and CPU, comes from /proc/stat in ticks of
// 10 ms, whose sums only become exact over many windows. Single processes' comes from their own
// clocks in ns.
//
// On loopback and veth the receiver's softirq work is charged to the sender's CPU time, so only the
// sum of both ends is a mode's cost.
package meter

import (
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Reading holds the clocks at one instant.
type Reading struct {
	At    time.Time
	CPUs  []sample.CPU // cumulative, in the order of their numbers
	Procs []float64    // cumulative CPU seconds of the requested processes
}

// Meter reads CPU clocks. Use New.
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

// Read reads the clocks of the machine and of the processes pids. An ended process reads 0.
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
		// The kernel counts guests' time in user and nice time as well.
		r.CPUs = append(r.CPUs, sample.CPU{ID: int(id), User: c.User - c.Guest,
			Nice: c.Nice - c.GuestNice, System: c.System,
			IRQ: c.IRQ, SoftIRQ: c.SoftIRQ, Steal: c.Steal, Idle: c.Idle, IOWait: c.Iowait,
			Guest: c.Guest, GuestNice: c.GuestNice})
	}
	for _, pid := range pids {
		r.Procs = append(r.Procs, ProcessCPU(pid).Seconds())
	}
	return r, nil
}

// Since returns what the machine's CPUs did from a to b, for those online at both.
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
		out = append(out, y.Combine(x, func(now, then float64) float64 { return now - then }))
	}
	return out
}

// ProcessMemory returns a process's memory in bytes, or 0 if it has ended. Shared memory counts
// proportionally (PSS), because the proxies of many ports share their program. If PSS cannot be
// read, ProcessMemory returns the resident memory.
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

// ProcessCPU returns the CPU time of a process, or 0 if it has ended.
func ProcessCPU(pid int) time.Duration {
	const sched = 2 // CPUCLOCK_SCHED, for the whole process
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|sched), &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
