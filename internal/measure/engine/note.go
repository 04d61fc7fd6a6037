package engine

import (
	"errors"

	"github.com/bridgetoll/bridgetoll/internal/measure/load"
	"github.com/bridgetoll/bridgetoll/internal/measure/worker"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// note records the ends' replies, and returns an error if the window was not the plan's.
func (e *ends) note(l sample.Load, servers, clients []worker.Reply, v *sample.Visit) error {
	v.Ends = sample.Ends{Client: together(clients), Server: together(servers)}
	var err error
	if v.Timings, err = timings(clients); err != nil {
		return err
	}
	if workload.BulkOf(l).Bytes > 0 {
		return nil
	}
	if !e.shape.Crowd() {
		if cut, err := exhausted(v); cut { // the window is shorter on purpose
			return errors.Join(err, punctual(l.Window, v.Server))
		}
		if stalled(l, v) {
			v.Client.Window = max(v.Client.Window, l.Window)
			v.Server.Window = max(v.Server.Window, l.Window)
			return nil
		}
		return punctual(l.Window, v.Client, v.Server)
	}
	for _, s := range servers {
		if err := punctual(l.Window, *s.Done); err != nil {
			return err
		}
	}
	v.Rates = e.rates(l, servers)
	return nil
}

func together(replies []worker.Reply) sample.Party {
	if len(replies) == 1 {
		return *replies[0].Done
	}
	var parties []sample.Party
	shared := int64(0)
	for _, r := range replies {
		p := *r.Done
		p.RSS -= r.Shared
		parties = append(parties, p)
		shared = max(shared, r.Shared)
	}
	out := sample.Together(parties)
	out.RSS += shared
	return out
}

func timings(clients []worker.Reply) (out sample.Timings, err error) {
	if len(clients) == 1 {
		return clients[0].Timings, nil
	}
	if out.Latency, err = merged(clients, func(r worker.Reply) *sample.EncodedHisto {
		return r.Latency
	}); err != nil {
		return out, err
	}
	for name := range clients[0].Times {
		if out.Times == nil {
			out.Times = map[string]*sample.EncodedHisto{}
		}
		if out.Times[name], err = merged(clients, func(r worker.Reply) *sample.EncodedHisto {
			return r.Times[name]
		}); err != nil {
			return out, err
		}
	}
	return out, nil
}

func merged(clients []worker.Reply,
	of func(worker.Reply) *sample.EncodedHisto) (*sample.EncodedHisto, error) {
	all := sample.NewHistogram()
	timed := false
	for _, c := range clients {
		e := of(c)
		if e == nil {
			continue
		}
		h, err := e.Decode()
		if err != nil {
			return nil, err
		}
		h.MergeInto(all)
		timed = true
	}
	if !timed {
		return nil, nil
	}
	return sample.Encode(all)
}

// rates returns the bytes, or for requests the trips, per second of each client's processes.
func (e *ends) rates(l sample.Load, servers []worker.Reply) [][]float64 {
	out := make([][]float64, len(e.path.Clients))
	for i := range out {
		out[i] = make([]float64, e.shape.Procs)
	}
	e.eachFlow(servers, func(s worker.Reply, client, proc int, f load.Flow) {
		moved := f.Received
		switch {
		case workload.MessagesOf(l).Request > 0:
			moved = f.Trips
		case workload.BulkOf(l).Reverse:
			moved = f.Sent
		}
		out[client][proc] += float64(moved) / s.Done.Window
	})
	return out
}

func (e *ends) eachFlow(servers []worker.Reply,
	f func(s worker.Reply, client, proc int, flow load.Flow)) {
	for _, s := range servers {
		for _, flow := range s.Flows {
			if client, proc := e.of(flow.Client); flow.Client >= 0 && flow.Client < len(e.clients) {
				f(s, client, proc, flow)
			}
		}
	}
}

// stallResent is the share of a visit's bytes above which retransmission means that losses stop a
// connection. On a busy machine healthy connections send a thousandth again.
const stallResent = 0.01

// stalled reports whether the window was not the plan's because TCP waited for what it had lost. An
// end takes a bound's mark when the next bytes come, so none came between the bound and its mark.
func stalled(l sample.Load, v *sample.Visit) bool {
	resent := float64(v.Client.TCP.Resent + v.Server.TCP.Resent)
	sent := float64(v.Client.TotalSent + v.Server.TotalSent)
	return (l.Kind == workload.Bulk || l.Kind == workload.BulkReverse) && resent > stallResent*sent &&
		punctual(l.Window, v.Client, v.Server) != nil
}
