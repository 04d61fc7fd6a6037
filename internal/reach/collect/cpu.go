package collect

import (
	"sync"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine/meter"
)

const cpuInterval = 200 * time.Millisecond

// proxyUse begins to measure the CPU use and the memory of the proxies. set waits until they are
// measured, and puts them into the facts. Meanwhile the caller does other work: of hundreds of
// proxies, the memory takes a while.
func (c *collector) proxyUse() (set func()) {
	before, memory, start := map[int]time.Duration{}, map[int]int64{}, time.Now()
	for _, p := range c.f.Proxies {
		before[p.PID] = meter.ProcessCPU(p.PID)
	}
	var measured sync.WaitGroup
	measured.Go(func() {
		for pid := range before {
			memory[pid] = meter.ProcessMemory(pid)
		}
	})
	return sync.OnceFunc(func() {
		measured.Wait()
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
			p.Memory = memory[p.PID]
		}
	})
}
