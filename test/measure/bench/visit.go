package bench

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/machine/meter"
)

type bench struct {
	options
	ns    *netns.NS
	meter *meter.Meter
	port  uint16

	vain      time.Duration // for discarded visits and waiting
	again     int           // repeated visits
	disturbed int           // visits kept although other programs ran
}

func newBench(o options) (_ *bench, err error) {
	const firstPort = 20000
	b := &bench{options: o, port: firstPort}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if b.ns, err = netns.New(); err != nil {
		return nil, err
	}
	if err := b.ns.Do(b.prepare); err != nil {
		return nil, err
	}
	b.meter, err = meter.New()
	return b, err
}

func (b *bench) prepare() error {
	if err := link.Up("lo"); err != nil {
		return err
	}
	// netperf asks for addresses that the machine could use. The resolver does not count 127.0.0.1
	// alone as one.
	if err := link.AddAddr("lo", netip.MustParsePrefix("198.18.0.1/32")); err != nil {
		return err
	}
	// In the usual range, connect(2) takes every second port first and scans all of them before the
	// others, so a second of crr would measure the scan.
	if err := sysctl.Set("net.ipv4.ip_local_port_range", "1024 65535"); err != nil {
		return err
	}
	if b.congestion == "" {
		return nil
	}
	return sysctl.Set("net.ipv4.tcp_congestion_control", b.congestion)
}

func (b *bench) close() error {
	if b.ns == nil {
		return nil
	}
	return b.ns.Close()
}

func (b *bench) nextAddr() netip.AddrPort {
	b.port++
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), b.port)
}

type visit struct {
	bits      float64 // bit/s received (bulk, udp)
	perSecond float64 // connections (crr)
	oneWay    float64 // s, half a mean round trip (rr)
	seen      outside
	rss       float64 // bytes, of the larger of toll's two workers
	started   float64 // s from toll's start to its first visit (start)
}

// A visit while other programs run is worthless for a comparison. It is repeated once they are
// quiet, until attempts or patience run out. The last attempt counts.
const (
	attempts   = 5
	patience   = 15 * time.Minute // per run, for discarded visits and waiting
	calm       = time.Second      // how long the CPUs must be idle
	maxWait    = 30 * time.Second
	maxForeign = 0.2 // CPUs
)

func (b *bench) visitCalm(ctx context.Context, c cell) (v visit, err error) {
	for i := 1; ; i++ {
		began := time.Now()
		v, err = b.visit(ctx, c)
		if err == nil && v.seen.foreign <= maxForeign {
			return v, nil
		}
		if i == attempts || b.vain > patience || ctx.Err() != nil {
			break
		}
		b.again++
		if err := b.awaitCalm(ctx); err != nil {
			return v, err
		}
		b.vain += time.Since(began)
	}
	if err == nil {
		b.disturbed++
	}
	return v, err
}

func (b *bench) awaitCalm(ctx context.Context) error {
	for waited := time.Duration(0); waited < maxWait; waited += calm {
		first, err := b.readAt(ctx, time.Now(), group{})
		if err != nil {
			return err
		}
		last, err := b.readAt(ctx, time.Now().Add(calm), group{})
		if err != nil {
			return err
		}
		if last.busy(first) <= maxForeign {
			break
		}
	}
	return nil
}

// Sockperf alone needs 2 s to start.
const slack = 12 * time.Second

func (b *bench) visit(ctx context.Context, c cell) (visit, error) {
	warmup, measured := c.phases(b.window)
	ctx, cancel := context.WithTimeoutCause(
		ctx, warmup+measured+slack, errors.New("it took too long"))
	defer cancel()
	switch {
	case c.load == start:
		return b.visitStart(ctx)
	case c.tool == toll:
		return b.visitToll(ctx, c)
	}
	return b.visitPeer(ctx, c)
}
