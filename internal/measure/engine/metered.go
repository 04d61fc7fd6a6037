package engine

import (
	"context"

	"github.com/bridgetoll/bridgetoll/internal/machine/meter"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

type reading struct {
	meter.Reading
	throttled int // stops of this process and its workers by the cgroup's CPU limit
}

func (r *run) readAt(ctx context.Context, t int64, pids []int) (out reading, err error) {
	if err := r.Clock.Sleep(ctx, t); err != nil {
		return out, err
	}
	out.Reading, err = r.Meter.Read(pids...)
	if r.Throttled != nil {
		out.throttled = r.Throttled()
	}
	return out, err
}

func (a reading) until(b reading) (m sample.Metered, throttled int) {
	return sample.Metered{Machine: meter.Since(a.Reading, b.Reading),
		Elapsed: b.At.Sub(a.At).Seconds()}, b.throttled - a.throttled
}

// metered records what this machine's meters read. It leaves out the machine's CPU time if no end
// is here, or if fits rejects the time between the readings.
func (e *ends) metered(first, last reading, fits func(elapsed float64) bool, v *sample.Visit) {
	if e.distant.here() {
		m, throttled := first.until(last)
		if fits(m.Elapsed) {
			v.Metered = m
		}
		v.Throttled = throttled
	}
	e.proxyUse(first, last, v)
}

func (e *ends) proxyUse(first, last reading, v *sample.Visit) {
	var spent []float64
	for i := range last.Procs {
		spent = append(spent, last.Procs[i]-first.Procs[i])
	}
	noteProxies(e.path, nil, spent, v)
	if v.Proxy != nil {
		v.Proxy.Memory = proxyMemory(e.path)
	}
}

func proxyMemory(p *path.Path) (bytes int64) {
	for _, pid := range pidsOf(p, nil) {
		bytes += meter.ProcessMemory(pid)
	}
	return bytes
}
