package observe

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/writes"
)

type ring struct {
	*capture.Ring
	space int
	ports []uint16 // nil: all
	size  capture.Size
	times int // by how much it is larger than its size
}

// larger opens something of a large size or, where there is no memory for that, of the usual one.
func larger[S comparable, T any](large, usual S, open func(S) (T, error)) (T, error) {
	if large != usual {
		if opened, err := open(large); err == nil {
			return opened, nil
		}
	}
	return open(usual)
}

// open opens the captures of ports in namespaces, and their copies.
func (w *Watch) open(size capture.Size, ports map[int][]uint16) error {
	spaces := slices.Sorted(maps.Keys(ports))
	rings := make([]*ring, len(spaces)*(1+w.copies))
	err := atOnce(len(rings), func(i int) (err error) {
		space := spaces[i%len(spaces)]
		all := slices.Sorted(slices.Values(ports[space]))
		all = slices.Compact(all)
		rings[i], err = larger(max(1, w.grown[space]), 1, func(times int) (*ring, error) {
			return openIn(w.spaces[space], space, size, times, all...)
		})
		return err
	})
	for i, r := range rings {
		switch {
		case r == nil:
		case i < len(spaces):
			w.rings = append(w.rings, r)
		default:
			w.extra = append(w.extra, r)
		}
	}
	return err
}

// openIn opens a capture in a namespace, whose ring is larger than a size by times.
func openIn(in netns.Found, space int, size capture.Size, times int, ports ...uint16) (r *ring,
	err error) {
	err = in.Visit(func() error {
		opened, err := capture.Open(size.Times(times), ports...)
		if err == nil {
			r = &ring{Ring: opened, space: space, ports: ports, size: size, times: times}
		}
		return err
	})
	return r, err
}

// atOnce calls f for 0 to n-1 concurrently. The kernel waits for a while whenever a capture begins
// or ends: captures that do so at the same time wait together.
func atOnce(n int, f func(i int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = f(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func closeAll(rings []*ring) error {
	return atOnce(len(rings), func(i int) error { return rings[i].Close() })
}

// read empties the rings until stop is closed. Where the time of each request is divided, it leaves
// them alone until one is half full: reading takes a CPU from those whose time it is.
func (w *Watch) read() {
	t := time.NewTicker(capture.Retire)
	defer t.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-t.C:
			w.mu.Lock()
			var err error
			if !w.dials && !w.serving || w.half() {
				err = w.drain()
			}
			w.mu.Unlock()
			if err != nil { // the visit's end reports it
				return
			}
		}
	}
}

// half reports whether a ring is half full.
func (w *Watch) half() bool {
	for _, r := range append(w.spare, w.writes) {
		if r != nil && r.Half() {
			return true
		}
	}
	half := func(r *ring) bool { return r.Half() }
	return slices.ContainsFunc(w.rings, half) || slices.ContainsFunc(w.extra, half)
}

func (w *Watch) drain() error {
	serves := w.serves // a value of a method is made anew each time
	for _, r := range w.rings {
		r.Read(func(p *capture.Packet) {
			w.recorded++
			if w.dials {
				p.Bridged = p.Bridged || w.toPort(r.space, p)
				w.ported.restore(r.space, p, serves)
			}
			w.log.Add(r.space, p)
		})
	}
	for _, r := range w.extra {
		r.Read(func(*capture.Packet) {})
	}
	for _, r := range w.spare {
		if err := r.Read(func(*writes.Event) {}); err != nil {
			return err
		}
	}
	if w.writes == nil {
		return nil
	}
	spaces := map[uint32]int{} // of the writes' namespaces; -1: not known, it may be a client's
	// They come after the packets, so that those of each packet are there.
	return w.writes.Read(func(e *writes.Event) {
		w.recorded++
		e.At += w.realtime
		if e.Since != 0 {
			e.Since += w.realtime
		}
		if e.Kind == writes.Ran {
			w.log.AddRun(*e)
			return
		}
		space, ok := spaces[e.NetNS]
		if !ok {
			id := fmt.Sprintf("net:[%d]", e.NetNS)
			space = slices.IndexFunc(w.spaces, func(f netns.Found) bool { return f.ID == id })
			spaces[e.NetNS] = space
		}
		w.log.AddWrite(space, *e)
	})
}

// mostGrown bounds how much larger than usual a ring gets.
const mostGrown = 4

// lost returns the number of packets and writes that were lost since its last call, but for the
// packets of namespaces that of, unless it is nil, does not report. Rings that lost something are
// larger when they are opened next.
func (w *Watch) lost(of func(space int) bool) (sum int, err error) {
	if w.writes != nil {
		n, err := w.writes.Lost()
		if err != nil {
			return 0, err
		}
		if n > w.unread {
			w.grownWrites, w.holes = min(2*w.writesOf.Times, mostGrown), true
		}
		sum, w.unread = n-w.unread, n
	}
	for _, r := range w.rings {
		n, err := r.Lost()
		if err != nil {
			return 0, err
		}
		if n > 0 {
			w.grown[r.space], w.holes = min(2*r.times, mostGrown), true
		}
		if of == nil || of(r.space) {
			sum += n
		}
	}
	return sum, nil
}
