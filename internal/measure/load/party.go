package load

import (
	"time"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Party is what the end did as the record has it, without what only its process knows.
func (s Stats) Party() sample.Party {
	sec := func(ns int64) float64 { return time.Duration(ns).Seconds() }
	return sample.Party{
		Window: sec(s.Window), Sent: s.Sent, Received: s.Received, Trips: s.Trips,
		TotalSent: s.TotalSent, TotalRecv: s.TotalRecv, Connections: s.Connections,
		CPU: sec(s.CPU), BusiestCPU: s.Busiest, Involuntary: s.Involuntary, Late: sec(s.Late),
		TCP: sample.TCPInfo{Retransmits: s.Retransmits, Resent: s.Resent, RTT: sec(s.RTT), RTTVar: sec(s.RTTVar), Cwnd: s.Cwnd, MSS: s.MSS},

		Counts: s.Counts,
	}
}
