package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/procfs"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/machine/meter"
)

type outside struct {
	elapsed        float64 // s
	client, server float64 // CPU seconds
	bytes, packets float64 // over the loopback device, headers and ACKs included
	foreign        float64 // CPUs that other programs kept busy
}

func (o outside) cpu() float64 { return o.client + o.server }

// The request is one packet and the response another, and each carries the acknowledgement of the
// other.
func (o outside) trips() float64 { return o.packets / 2 }

// The bounds of the measured part are only known to within the time between two looks.
const margin = 50 * time.Millisecond

// The traffic after which the load has begun: preparation takes less.
const (
	begunBytes   = 1 << 20
	begunPackets = 60
)

// watch reads the clocks and counters inside the measured part. client and server are process IDs.
// before holds the loopback device's counters from before the client's start. ended is closed when
// the client has ended.
func (b *bench) watch(ctx context.Context, c cell, before link.Counters, client, server int,
	ended <-chan struct{}) (outside, error) {
	if err := b.awaitTraffic(ctx, c, before, ended); err != nil {
		return outside{}, err
	}
	began := time.Now()
	groups, err := members(client, server)
	if err != nil {
		return outside{}, err
	}
	// Loads of one kind are all read at the same time after their beginning.
	from, to := iperf3Omit+margin, iperf3Omit+b.window-margin
	if c.load == rr || c.load == crr {
		from, to = sockperfSkip+margin, b.window-sockperfTail-margin
	}
	first, err := b.readAt(ctx, began.Add(from), groups)
	if err != nil {
		return outside{}, err
	}
	last, err := b.readAt(ctx, began.Add(to), groups)
	if err != nil {
		return outside{}, err
	}
	return last.since(first)
}

func (b *bench) awaitTraffic(ctx context.Context, c cell, before link.Counters,
	ended <-chan struct{}) error {
	const poll = 5 * time.Millisecond
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		now, err := b.loopback()
		if err != nil {
			return err
		}
		begun := now.RxPackets-before.RxPackets > begunPackets
		if c.load == bulk || c.load == udp {
			begun = now.RxBytes-before.RxBytes > begunBytes
		}
		if begun {
			return nil
		}
		select {
		case <-ended:
			return errors.New("the client ended before there was traffic")
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

type reading struct {
	at             time.Time
	client, server float64
	machine        meter.Reading
	lo             link.Counters
}

func (r reading) busy(a reading) float64 {
	total := 0.0
	for _, cpu := range meter.Since(a.machine, r.machine) {
		total += cpu.Busy()
	}
	return total / r.at.Sub(a.at).Seconds()
}

func (r reading) since(a reading) (outside, error) {
	o := outside{elapsed: r.at.Sub(a.at).Seconds(), client: r.client - a.client,
		server:  r.server - a.server,
		bytes:   float64(r.lo.RxBytes - a.lo.RxBytes),
		packets: float64(r.lo.RxPackets - a.lo.RxPackets)}
	o.foreign = r.busy(a) - o.cpu()/o.elapsed
	if o.client <= 0 || o.server <= 0 || o.packets == 0 {
		return o, fmt.Errorf("an end did nothing in the measured part: %+v", o)
	}
	return o, nil
}

type group struct{ client, server []int }

func members(client, server int) (group, error) {
	var g group
	all, err := procfs.AllProcs()
	if err != nil {
		return g, fmt.Errorf("list processes: %w", err)
	}
	for _, p := range all {
		st, err := p.Stat()
		if err != nil {
			continue // it has ended
		}
		switch st.PGRP {
		case client:
			g.client = append(g.client, p.PID)
		case server:
			g.server = append(g.server, p.PID)
		}
	}
	return g, nil
}

func (b *bench) readAt(ctx context.Context, t time.Time, g group) (reading, error) {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return reading{}, context.Cause(ctx)
	case <-timer.C:
	}
	if late := time.Since(t); late > margin {
		return reading{}, fmt.Errorf("the machine stood still: a reading was %v late",
			late.Round(time.Millisecond))
	}
	m, err := b.meter.Read(append(append([]int{}, g.client...), g.server...)...)
	if err != nil {
		return reading{}, err
	}
	r := reading{at: m.At, machine: m}
	for i, cpu := range m.Procs {
		if i < len(g.client) {
			r.client += cpu
		} else {
			r.server += cpu
		}
	}
	r.lo, err = b.loopback()
	return r, err
}

func (b *bench) loopback() (c link.Counters, err error) {
	err = b.ns.Do(func() error {
		c, err = link.Stats("lo")
		return err
	})
	return c, err
}
