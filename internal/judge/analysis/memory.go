package analysis

import (
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// leastConnections is the least number of connections whose share of a proxy's memory is
// measurable.
const leastConnections = 100

// ProxyMemory is the memory of a path's proxy, in bytes.
type ProxyMemory struct {
	Port        int64 `json:"port_bytes"`   // before the first client: the cost of a published port
	Loaded      int64 `json:"loaded_bytes"` // median of the visits
	Connections int   `json:"connections"`
	// growth per 1,000 connections; 0: too few were open
	Per1000 int64 `json:"per_1000_bytes"`
}

// proxyMemory returns the memory of the path's proxy, or nil if the path has no proxy or its memory
// is not known.
func (s *Series) proxyMemory(p sample.Path) *ProxyMemory {
	var loaded []float64
	for _, v := range s.Visits {
		if v.Proxy != nil && v.Proxy.Memory > 0 {
			loaded = append(loaded, float64(v.Proxy.Memory))
		}
	}
	if len(loaded) == 0 || p.ProxyMemory == 0 {
		return nil
	}
	crowd := max(1, s.Cell.Shape.Clients) * max(1, s.Cell.Shape.Procs)
	out := &ProxyMemory{Port: p.ProxyMemory, Loaded: int64(stats.Median(loaded)),
		Connections: max(1, s.Load.Streams) * crowd}
	if more := out.Loaded - out.Port; out.Connections >= leastConnections && more > 0 {
		out.Per1000 = 1000 * more / int64(out.Connections)
	}
	return out
}
