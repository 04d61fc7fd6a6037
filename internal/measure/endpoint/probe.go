package endpoint

import (
	"context"
	"errors"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// Probe sends small requests to a port of this machine, by several names.
type Probe struct {
	protocol
	at     string
	names  []string
	gauges []sample.Gauge
}

const (
	connecting = "connecting" // time, with the first answer
	asking     = "request"    // time, over a kept connection
	moving     = "throughput" // of large requests or answers
)

const (
	greetings = 3 // new connections in a visit, before requests
	// bulkReply is the size (bytes) from which an answer's rate counts instead of its time.
	bulkReply = 64 << 10
	// probeWindow is in seconds. Connections may take longer.
	probeWindow = 0.1
)

// NewProbe makes a first visit to a port. If the word is auto, it determines the protocol, for
// which inside, the port's number in its container, is a hint.
func NewProbe(ctx context.Context, word, at string, inside uint16,
	names ...string) (*Probe, error) {
	p, err := UnaskedProbe(word, at, names...)
	if word == auto && err == nil {
		p.protocol, err = recognize(ctx, at, inside)
	}
	if err != nil {
		return nil, err
	}
	values, _, err := p.visit(ctx, seconds(probeWindow))
	if err != nil {
		return nil, err
	}
	for _, g := range []sample.Gauge{{Name: asking, Unit: "s", Scale: 1, Lower: true},
		{Name: moving, Unit: "bit/s", Scale: 1},
		{Name: connecting, Unit: "s", Scale: 1, Lower: true}} {
		if _, ok := values[g.Name]; ok {
			p.gauges = append(p.gauges, g)
		}
	}
	return p, nil
}

// UnaskedProbe returns a Probe for a plan. It does not connect, so the Probe's load has no metrics.
func UnaskedProbe(word, at string, names ...string) (p *Probe, err error) {
	p = &Probe{at: at, names: names, protocol: protocol{name: "auto, found by trying"}}
	if word != auto {
		p.protocol, err = protocolOf(word, at)
	}
	return p, err
}

// Load returns the load of visits, which are judged by its first metric.
func (p *Probe) Load() sample.Load {
	return sample.Load{Kind: workload.Exec, Window: probeWindow,
		Options: sample.ExecOptions{Program: &sample.Program{Client: p.name, Gauges: p.gauges}}}
}

// Names returns the names of the port.
func (p *Probe) Names() []string { return p.names }

// Check does nothing: NewProbe has had an answer.
func (p *Probe) Check(context.Context) error { return nil }

// Paths describes the port.
func (p *Probe) Paths() (out []sample.Path) {
	for _, name := range p.names {
		facts := map[string]string{"url": p.at, familyFact: family(p.at)}
		out = append(out, sample.Path{Route: name, From: sample.FromHere, On: sample.OnEndpoint,
			Dial: p.at, Hops: []string{}, Facts: facts})
	}
	return out
}

// Close does nothing.
func (p *Probe) Close() error { return nil }

// Visit sends requests for the load's window.
func (p *Probe) Visit(ctx context.Context, _ sample.Cell, l sample.Load, v *sample.Visit) error {
	began := time.Now()
	values, connections, err := p.visit(ctx, seconds(l.Window))
	if err != nil {
		return err
	}
	v.Values = values
	v.Client = sample.Party{Window: time.Since(began).Seconds(), Connections: connections,
		Counts: map[string]int64{workload.CountConnections: int64(connections)}}
	v.Server = sample.Party{Window: v.Client.Window}
	return nil
}

type talked struct {
	connects, asks  []float64 // seconds
	first, moved    int64
	firstTook, took time.Duration
}

func (p *Probe) visit(ctx context.Context, long time.Duration) (map[string]float64, int, error) {
	var t talked
	for end := time.Now().Add(long); len(t.connects) < greetings || time.Now().Before(end); {
		err := p.talk(ctx, end, &t)
		if ctx.Err() != nil {
			return nil, 0, ctx.Err()
		}
		if err != nil && !errors.Is(err, errLast) {
			return nil, 0, err
		}
	}
	return t.figures(p.bulk), len(t.connects), nil
}

// talk opens a connection and sends one request. After the first few connections it keeps the
// connection and sends requests until end.
func (p *Probe) talk(ctx context.Context, end time.Time, t *talked) error {
	began := time.Now()
	c, rw, err := dialTo(ctx, p.at, answering)
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	n, err := p.greet(rw)
	took := time.Since(began)
	t.connects = append(t.connects, took.Seconds())
	t.first, t.firstTook = t.first+n, t.firstTook+took
	if p.ask == nil || len(t.connects) < greetings {
		return err
	}
	asked := false
	for err == nil && ctx.Err() == nil && (!asked || time.Now().Before(end)) {
		began := time.Now()
		asked = true
		_ = c.SetDeadline(began.Add(answering))
		if n, err = p.ask(rw); err == nil || errors.Is(err, errLast) {
			took := time.Since(began)
			t.asks = append(t.asks, took.Seconds())
			t.moved, t.took = t.moved+n, t.took+took
		}
	}
	return err
}

// figures returns median times (s), or the rate of requests (bit/s).
func (t *talked) figures(bulk bool) map[string]float64 {
	out := map[string]float64{connecting: median(t.connects)}
	switch {
	case len(t.asks) == 0 && t.first/int64(len(t.connects)) >= bulkReply: // the server keeps none
		out[moving] = 8 * float64(t.first) / t.firstTook.Seconds()
	case len(t.asks) == 0:
	case bulk || t.moved/int64(len(t.asks)) >= bulkReply:
		out[moving] = 8 * float64(t.moved) / t.took.Seconds()
	default:
		out[asking] = median(t.asks)
	}
	return out
}
