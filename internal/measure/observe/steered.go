package observe

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/trace"
	limits "github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// device is a network device in a namespace.
type device struct{ netns, index uint32 }

// steering returns the devices of namespaces that leave received packets to other CPUs.
func (w *Watch) steering(spaces []int) map[device]sample.Steered {
	out := map[device]sample.Steered{}
	slices.Sort(spaces)
	for _, i := range slices.Compact(spaces) {
		var netns uint32
		if _, err := fmt.Sscanf(w.spaces[i].ID, "net:[%d]", &netns); err != nil {
			continue
		}
		_ = w.spaces[i].Visit(func() error {
			all, err := link.SteeredDevices()
			for index, name := range all {
				out[device{netns, uint32(index)}] = sample.Steered{Device: name, Apart: i != 0}
			}
			return err
		})
	}
	return out
}

// steered returns how packets were handed to the softirq while do makes exchanges, behind devices of
// the hops, the client and this machine that leave them to other CPUs. It returns do's error.
func (y *Way) steered(do func() error) ([]sample.Steered, error) {
	spaces, ports := []int{0, y.r.client.Space}, []uint16{}
	for _, h := range y.r.hops {
		spaces, ports = append(spaces, h.space), append(ports, h.to.Port())
	}
	for _, a := range y.r.client.Dialled {
		ports = append(ports, a.Port())
	}
	return handed(y.w.steering(spaces), ports, do)
}

// moment is for how long packets are traced.
const moment = 200 * time.Millisecond

// steered is the same of the server and the requests that come to it for a moment.
func (s *serving) steered(done <-chan struct{}) ([]sample.Steered, error) {
	devices := s.steering([]int{0, s.at.space})
	if len(devices) == 0 {
		return nil, nil
	}
	return handed(devices, s.dialled, func() error {
		select {
		case <-done:
		case <-time.After(moment):
		}
		return nil
	})
}

// handed returns how packets with some ports were handed to the softirq behind devices while do ran,
// for a moment from the first one on, or nothing without devices, or if the kernel cannot be traced.
// It returns do's error.
func handed(devices map[device]sample.Steered, ports []uint16, do func() error) ([]sample.Steered,
	error) {
	if len(devices) == 0 {
		return nil, do()
	}
	t, err := trace.Open()
	if err != nil {
		return nil, do()
	}
	defer func() { _ = t.Close() }()
	env, _ := (limits.Machine{}).Read()
	const most = 1 << 20 // events on all CPUs
	rec, err := t.Attach(trace.Config{CPUs: env.CPUsAllowed, Ports: ports,
		Events: most / max(1, len(env.CPUsAllowed))})
	if err != nil {
		return nil, do()
	}
	rec.Between(clock.Now(), math.MaxInt64)
	done, stopped := make(chan struct{}), make(chan error)
	go func() { stopped <- stopAfter(rec, done) }()
	stop := sync.OnceValue(func() error {
		close(done)
		return <-stopped
	})
	defer func() { _ = stop() }() // also if do does not return
	if err := cmp.Or(do(), stop()); err != nil {
		return nil, err
	}
	byCPU, _ := rec.Log()
	return handOvers(devices, slices.Concat(byCPU...)), nil
}

// recording is a *trace.Recording, or a test's own.
type recording interface {
	Recorded() bool
	Stop() error
}

// stopAfter stops a recording a moment after its first event, or when done is closed: what is traced
// is slower, and a client may run for minutes.
func stopAfter(rec recording, done <-chan struct{}) error {
	const often = 10 * time.Millisecond
	t := time.NewTicker(often)
	defer t.Stop()
	var first time.Time
	for {
		select {
		case <-done:
			return rec.Stop()
		case now := <-t.C:
			switch {
			case first.IsZero() && rec.Recorded():
				first = now
			case !first.IsZero() && now.Sub(first) >= moment:
				return rec.Stop()
			}
		}
	}
}

// handOvers adds up from events how long packets waited behind devices for the softirq.
func handOvers(devices map[device]sample.Steered, events []trace.Event) (out []sample.Steered) {
	type packet struct {
		device
		ptr uint64
		seq uint32
	}
	slices.SortStableFunc(events, func(a, b trace.Event) int { return cmp.Compare(a.TS, b.TS) })
	came := map[packet]trace.Event{}
	for _, e := range events {
		p := packet{device{e.NetNS, e.Dev}, e.Ptr, e.Seq}
		switch e.Kind {
		case trace.Rx:
			came[p] = e
		case trace.Receive:
			d, has := devices[p.device]
			from, ok := came[p]
			if !ok || !has {
				continue
			}
			delete(came, p)
			took := float64(e.TS-from.TS) / float64(time.Second)
			if d.Packets++; e.CPU != from.CPU {
				d.Moved++
				d.Wait += took
			} else {
				d.Stay += took
			}
			devices[p.device] = d
		}
	}
	for _, d := range devices {
		if d.Packets == 0 {
			continue
		}
		d.Wait /= float64(max(1, d.Moved))
		d.Stay /= float64(max(1, d.Packets-d.Moved))
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b sample.Steered) int {
		return cmp.Or(cmp.Compare(b.Moved, a.Moved), cmp.Compare(a.Device, b.Device))
	})
	return out
}
