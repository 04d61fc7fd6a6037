package fake

import (
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/measure/load"
	"github.com/bridgetoll/bridgetoll/internal/measure/worker"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

func (p place) move(o worker.Request, when load.Schedule) (worker.Reply, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, n := p.builder, p.visit(when)
	if o.Role == worker.Client {
		b.mu.Lock()
		b.Visits = append(b.Visits, p.spec)
		b.Loads = append(b.Loads, o.Load)
		b.mu.Unlock()
	}
	if b.Die != nil && b.Die(p.spec, n) {
		return worker.Reply{}, errDied
	}
	rate := DefaultRate
	if b.Rate != nil {
		rate = b.Rate(p.spec, o.Load.Kind, n)
	}
	seconds := float64(when.To-when.From) / 1e9
	if b.Starve != nil && b.Starve(p.spec, n) {
		seconds /= 10
	}
	if o.Crowd {
		return p.moveCrowd(o, rate, seconds, n), nil
	}
	amount := int64(rate * seconds)
	if n := workload.BulkOf(o.Load).Bytes; n > 0 { // its bytes end it, not the clock
		amount = n * int64(max(1, o.Load.Streams))
		seconds = float64(amount) / rate
	}
	party := sample.Party{Window: seconds, Connections: 1, CPU: seconds / 2, BusiestCPU: 0.5,
		CPUs: o.CPUs}
	reply := worker.Reply{Done: &party}
	if workload.Of(o.Load).Trips {
		if err := moveTrips(o, rate, amount, &reply); err != nil {
			return reply, err
		}
	} else {
		moveBytes(o, amount, &party)
	}
	p.moveSlices(o, when, rate, n, &reply)
	if b.Bypass == nil || !b.Bypass(p.spec, n) {
		p.count(o.Role, party)
	}
	return reply, nil
}

func moveTrips(o worker.Request, rate float64, amount int64, reply *worker.Reply) error {
	party := reply.Done
	if workload.Of(o.Load).Brief {
		if o.Budget > 0 && amount > int64(o.Budget) { // the client's window ends there
			party.Window *= float64(o.Budget) / float64(amount)
			amount = int64(o.Budget)
			party.Counts = map[string]int64{workload.EndedEarly: 1}
		}
		party.Connections = int(amount)
	}
	party.Trips, party.Sent, party.Received = amount, amount, amount
	party.TotalSent, party.TotalRecv = amount, amount
	if o.Role != worker.Client {
		return nil
	}
	h := sample.NewHistogram()
	if err := h.RecordValues(int64(1e9/rate), amount); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	e, err := sample.Encode(h)
	reply.Latency = e
	for _, name := range workload.Of(o.Load).Times(o.Load) {
		if reply.Times == nil {
			reply.Times = map[string]*sample.EncodedHisto{}
		}
		reply.Times[name] = e
	}
	if o.Load.Kind == workload.Stream {
		party.Counts = map[string]int64{workload.CountTokens: amount}
	}
	return err
}

func moveBytes(o worker.Request, amount int64, party *sample.Party) {
	if size := int64(workload.UDPOf(o.Load).Size); size > 0 { // none is lost
		party.Counts = map[string]int64{workload.CountDatagrams: amount / size}
	}
	switch {
	case workload.BulkOf(o.Load).Bidir:
		party.Sent, party.TotalSent = amount, amount
		party.Received, party.TotalRecv = amount, amount
	case sends(o):
		party.Sent, party.TotalSent = amount, amount
	default:
		party.Received, party.TotalRecv = amount, amount
	}
}

func (p place) moveCrowd(o worker.Request, rate, seconds float64, n int) worker.Reply {
	b := p.builder
	servers, clients := p.spec.Count()
	party := sample.Party{Window: seconds, Connections: 1, CPU: seconds / 2, BusiestCPU: 0.5,
		RSS: 6 << 20}
	reply := worker.Reply{Done: &party}
	if o.Role == worker.Client {
		return reply
	}
	mine := (clients - p.number + servers - 1) / servers
	procs := o.Load.Streams / mine
	party.Connections = o.Load.Streams
	for c := p.number; c < clients; c += servers {
		for q := range procs {
			share := 1 / float64(clients*procs)
			if b.Share != nil {
				share = b.Share(p.spec, c, q)
			}
			moved := int64(rate * seconds * share)
			f := load.Flow{Client: c*procs + q, Received: moved, TotalRecv: moved, Trips: moved}
			party.Received += moved
			party.TotalRecv += moved
			party.Trips += moved
			reply.Flows = append(reply.Flows, f)
		}
	}
	if b.Bypass == nil || !b.Bypass(p.spec, n) {
		p.counted.ForwardBytes += uint64(party.TotalRecv)
	}
	return reply
}
