package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/measure/load"
	"github.com/bridgetoll/bridgetoll/internal/measure/worker"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/test/measure/peer"
)

const bitsPerByte = 8

// lead is the time from sending the schedule to the common start.
const lead = 3 * time.Millisecond

type hand struct {
	*path.Process
	*worker.Control
}

func (b *bench) startWorker() (*hand, error) {
	c := peer.Command(b.toll, worker.Arg)
	c.Env = worker.Env()
	p, err := peer.Namespace{NS: b.ns}.Start(c)
	if err != nil {
		return nil, err
	}
	return &hand{p, worker.NewControl(p.In, p.Out)}, nil
}

const exitTimeout = 2 * time.Second

// stop closes the worker's input, or with now kills it, and waits until it exits.
func (h *hand) stop(now bool) error {
	if h == nil {
		return nil
	}
	limit := exitTimeout
	if now {
		limit = 0
	}
	defer time.AfterFunc(limit, func() { _ = h.Kill() }).Stop() // it may have exited
	_ = h.Close()                                               // its exit status says more
	if err := h.Wait(); err != nil && !now {
		return fmt.Errorf("worker: %w", err)
	}
	return nil
}

func (b *bench) visitToll(ctx context.Context, c cell) (v visit, err error) {
	var client, server *hand
	defer func() {
		bad := err != nil
		err = errors.Join(err, client.stop(bad), server.stop(bad))
	}()
	if server, err = b.startWorker(); err != nil {
		return v, err
	}
	if client, err = b.startWorker(); err != nil {
		return v, err
	}
	before, err := b.loopback()
	if err != nil {
		return v, err
	}
	warmup, measured := c.phases(b.window)
	if err := b.openBoth(ctx, c, client, server); err != nil {
		return v, err
	}
	begin := clock.Now() + int64(lead)
	when := load.Schedule{Start: begin, From: begin + int64(warmup),
		To: begin + int64(warmup+measured)}
	if err := errors.Join(server.Go(when), client.Go(when)); err != nil {
		return v, err
	}
	if v.seen, err = b.watch(ctx, c, before, client.PID, server.PID, nil); err != nil {
		return v, err
	}
	return b.collect(ctx, c, v, client, server)
}

func (b *bench) openBoth(ctx context.Context, c cell, client, server *hand) error {
	l := sample.Load{Kind: c.load}
	switch c.load {
	case bulk:
		l.Options = sample.BulkOptions{Write: c.size}
	case udp:
		l.Options = sample.UDPOptions{Size: c.size, Rate: bitrate, Batch: max(1, c.batch)}
	case rr:
		l.Options = sample.RROptions{Messages: sample.Messages{Request: c.size, Reply: c.size}}
	default:
		l.Options = sample.Messages{Request: c.size, Reply: c.size}
	}
	addr := b.nextAddr()
	clientCPU, serverCPU := c.cpus()
	if err := server.Open(ctx, worker.Request{Role: worker.Server, Load: l, Addr: addr, CPUs: []int{serverCPU}}); err != nil {
		return fmt.Errorf("server: %w", err)
	}
	if err := client.Open(ctx, worker.Request{Role: worker.Client, Load: l, Addr: addr, CPUs: []int{clientCPU}}); err != nil {
		return fmt.Errorf("client: %w", err)
	}
	return nil
}

// The latency is the window divided by its trips, as in qperf, and not the histogram's mean.
func (b *bench) collect(ctx context.Context, c cell, v visit, client, server *hand) (visit, error) {
	fromClient, err := client.Done(ctx)
	if err != nil {
		return v, fmt.Errorf("client: %w", err)
	}
	fromServer, err := server.Done(ctx)
	if err != nil {
		return v, fmt.Errorf("server: %w", err)
	}
	sent, received := fromClient.Done, fromServer.Done
	v.rss = float64(max(sent.RSS, received.RSS))
	switch c.load {
	case bulk, udp:
		v.bits, err = peer.Positive("toll's received rate",
			float64(received.Received)*bitsPerByte/received.Window)
		return v, err
	case crr:
		v.perSecond, err = peer.Positive("toll's connections", float64(sent.Trips)/sent.Window)
		return v, err
	}
	v.oneWay, err = peer.Positive("toll's latency", sent.Window/float64(sent.Trips)/2)
	return v, err
}
