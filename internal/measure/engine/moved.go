package engine

import (
	"github.com/bridgetoll/bridgetoll/internal/measure/load"
	"github.com/bridgetoll/bridgetoll/internal/measure/worker"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// moved returns what each client and its server moved in the whole visit. seconds is the time
// between the readings of the counters.
func (e *ends) moved(l sample.Load, servers, clients []worker.Reply, seconds float64) []path.Moved {
	out := make([]path.Moved, len(e.path.Clients))
	shape, segment := packetsOf(l), e.segment(l, servers, clients)
	for i, r := range clients {
		client, _ := e.of(i)
		m := &out[client]
		m.Backward += r.Done.TotalRecv
		m.SentForward += r.Done.TotalSent
		m.Connections += r.Done.Connections
		m.Resent += r.Done.TCP.Resent
		m.Brief = workload.Of(l).Brief
		m.Failed += int(r.Done.Counts[workload.Failed])
		m.Shape, m.Segment, m.Seconds = shape, segment, seconds
	}
	if e.shape.Crowd() {
		e.eachFlow(servers, func(_ worker.Reply, client, _ int, f load.Flow) {
			out[client].Forward += f.TotalRecv
			out[client].Resent += f.Resent
		})
	} else {
		out[0].Forward = servers[0].Done.TotalRecv
		out[0].SentBackward = servers[0].Done.TotalSent
		out[0].Resent += servers[0].Done.TCP.Resent
	}
	if workload.Of(l).UDP {
		return lossy(l, servers[0].Done, clients[0].Done, out)
	}
	if workload.MessagesOf(l).Request > 0 {
		for i := range out {
			out[i].Trips = roundTrips(l, out[i])
		}
	}
	return out
}

// roundTrips returns the number of round trips of the whole visit. With a parallel stream it counts
// replies, because only rr's come back.
func roundTrips(l sample.Load, m path.Moved) int64 {
	sizes := workload.MessagesOf(l)
	if workload.RROf(l).Beside {
		return m.Backward / int64(max(1, sizes.Reply))
	}
	return m.Forward / int64(sizes.Request)
}

// lossy completes what a load over UDP moved. Datagrams that arrived crossed every hop. Lost ones,
// which it adds to Resent, were counted only before the place of the loss. A trip needs both of its
// datagrams.
func lossy(l sample.Load, server, client *sample.Party, out []path.Moved) []path.Moved {
	m := &out[0]
	m.SentForward, m.SentBackward = 0, 0 // Resent contains it
	m.Resent = max(0, client.TotalSent-server.TotalRecv) + max(0, server.TotalSent-client.TotalRecv)
	if s := workload.MessagesOf(l); s.Request > 0 && s.Reply > 0 {
		m.Trips = min(m.Forward/int64(s.Request), m.Backward/int64(s.Reply))
	}
	return out
}

func packetsOf(l sample.Load) path.Shape {
	m := workload.MessagesOf(l)
	s := path.Shape{Request: m.Request, Reply: m.Reply, Write: workload.WriteOf(l),
		Beside: workload.RROf(l).Beside, Datagrams: workload.Of(l).UDP}
	if n := workload.StreamOf(l).Tokens; n > 0 {
		s.Request, s.Reply = load.StreamMessages(n)
	}
	if n := workload.UDPOf(l).Size; n > 0 {
		s.Request, s.Reply = n, n
	}
	return s
}

// datagramHeaders is the size of the headers of IPv6 and UDP, in bytes.
const datagramHeaders = 40 + 8

// segment returns the least payload of a full packet, or 0 if unknown.
func (e *ends) segment(l sample.Load, servers, clients []worker.Reply) int {
	least := 0
	take := func(n int) {
		if n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	if workload.Of(l).UDP {
		for _, link := range e.path.Links {
			take(link.MTU - datagramHeaders)
		}
		return least
	}
	for _, r := range append(append([]worker.Reply{}, servers...), clients...) {
		take(int(r.Done.TCP.MSS))
	}
	return least
}
