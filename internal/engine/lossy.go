package engine

import (
	"github.com/bridgetoll/bridgetoll/internal/path"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// lossy completes what a load over UDP moved: what arrived crossed every hop;
// what did not was counted up to where it was lost. A trip is one only if both
// of its datagrams arrived.
func lossy(l sample.Load, server, client *sample.Party, out []path.Moved) []path.Moved {
	m := &out[0]
	m.Resent = max(0, client.TotalSent-server.TotalRecv) + max(0, server.TotalSent-client.TotalRecv)
	if l.Request > 0 && l.Reply > 0 {
		m.Trips = min(m.Forward/int64(l.Request), m.Backward/int64(l.Reply))
	}
	return out
}
