package machine

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// userHz is the number of ticks per second in /proc/stat on every architecture.
const userHz = 100

// Contention returns a function that reports what others took, since the call, of the CPUs that
// this process may use. own returns toll's CPU time in seconds; NaN: what others used is unknown.
func (m Machine) Contention(own func() float64) func() sample.Contention {
	before, used := m.cpuUse(), own()
	return func() sample.Contention {
		now := m.cpuUse()
		took := now.at.Sub(before.at).Seconds()
		out := sample.Contention{Elapsed: took, CPUs: now.cpus}
		out.LoadAverage, _ = m.loadAverage()
		if took <= 0 || now.cpus == 0 {
			return out
		}
		out.Stolen = max(0, now.stolen-before.stolen) / took
		if others := max(0, now.busy-before.busy-(own()-used)) / took; !math.IsNaN(others) {
			out.Others = &others
		}
		if now.stalled >= 0 && before.stalled >= 0 {
			share := min(1, (now.stalled-before.stalled)/took)
			out.Pressure = &share
		}
		return out
	}
}

type cpuUse struct {
	at           time.Time
	cpus         int
	busy, stolen float64 // s, of the CPUs that this process may use
	stalled      float64 // s; -1: unknown
}

func (m Machine) cpuUse() cpuUse {
	u := cpuUse{at: time.Now(), stalled: m.stalled()}
	allowed := m.allowed()
	for line := range strings.Lines(m.read("/proc/stat")) {
		number, is := strings.CutPrefix(line, "cpu")
		f := strings.Fields(number)
		const least = 8 // user nice system idle iowait irq softirq steal, after the number
		if !is || len(f) <= least || strings.HasPrefix(number, " ") {
			continue
		}
		id, err := strconv.Atoi(f[0])
		if err != nil || len(allowed) > 0 && !slices.Contains(allowed, id) {
			continue
		}
		var ticks [least]float64
		for i := range ticks {
			n, _ := strconv.ParseUint(f[i+1], 10, 53)
			ticks[i] = float64(n) / userHz
		}
		u.cpus++
		u.busy += ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6]
		u.stolen += ticks[7]
	}
	return u
}

// stalled returns the seconds in which a task waited for a CPU since boot, or -1 if unknown.
func (m Machine) stalled() float64 {
	for line := range strings.Lines(m.read("/proc/pressure/cpu")) {
		some, is := strings.CutPrefix(line, "some ")
		_, total, ok := strings.Cut(some, "total=")
		if !is || !ok {
			continue
		}
		if n, err := strconv.ParseUint(strings.TrimSpace(total), 10, 53); err == nil {
			return (time.Duration(n) * time.Microsecond).Seconds()
		}
	}
	return -1
}
