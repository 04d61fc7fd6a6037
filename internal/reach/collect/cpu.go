package collect

import (
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine/meter"
)

const cpuInterval = 200 * time.Millisecond

// proxyCPU begins to measure the proxies' CPU use and reads their memory. again waits until the
// interval is over and sets the CPU use; the caller reads other facts in between.
func (c *collector) proxyCPU() (again func()) {
	before, start := map[int]time.Duration{}, time.Now()
	for _, p := range c.f.Proxies {
		before[p.PID] = meter.ProcessCPU(p.PID)
	}
	for i := range c.f.Proxies {
		c.f.Proxies[i].Memory = meter.ProcessMemory(c.f.Proxies[i].PID)
	}
	return func() {
		if len(c.f.Proxies) == 0 {
			return
		}
		time.Sleep(cpuInterval - time.Since(start))
		for i := range c.f.Proxies {
			p := &c.f.Proxies[i]
			was, read := before[p.PID]
			if used := meter.ProcessCPU(p.PID) - was; read && used > 0 {
				p.CPU = used.Seconds() / time.Since(start).Seconds()
			}
		}
	}
}
