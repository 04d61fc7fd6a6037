package observe

import (
	"strconv"

	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// accepting is how connections fared so far that wait until a hop accepts them.
type accepting struct {
	dropped map[uint32]uint32 // by socket, for any reason
	// overflows are all drops in the namespace because such a queue was full.
	overflows uint64
	backlog   uint32 // of the hop's shortest queue
	most      int    // that a backlog can be (net.core.somaxconn)
	known     bool
}

// accepting reads how connections fare that wait until a hop accepts them. It is unknown if they
// cannot be read.
func (w *Watch) accepting(h hop) (a accepting) {
	a.dropped = map[uint32]uint32{}
	if w.udp || len(h.inodes) == 0 {
		return a
	}
	_ = w.spaces[h.space].Visit(func() (err error) {
		if a.overflows, err = sock.Overflows(); err != nil {
			return err
		}
		text, err := sysctl.Get("net.core.somaxconn")
		if err != nil {
			return err
		}
		if a.most, err = strconv.Atoi(text); err != nil {
			return err
		}
		all, err := sock.Listeners()
		for _, s := range all {
			if h.inodes[s.Inode] {
				a.known, a.dropped[s.Inode] = true, s.Dropped
				if len(a.dropped) == 1 || s.Backlog < a.backlog {
					a.backlog = s.Backlog
				}
			}
		}
		return err
	})
	return a
}

// queueSince returns the queue of connections to a hop if it was full between two readings, or nil if
// it was not, or that is unknown.
func queueSince(h hop, before, now accepting) *sample.AcceptQueue {
	if !before.known || !now.known || now.overflows <= before.overflows {
		return nil
	}
	dropped := 0
	for inode, n := range now.dropped {
		if b, ok := before.dropped[inode]; ok {
			dropped += int(n - b)
		}
	}
	dropped = min(dropped, int(now.overflows-before.overflows))
	if dropped <= 0 {
		return nil
	}
	return &sample.AcceptQueue{Process: h.about.Process, Port: h.to.Port(), Apart: h.space != 0,
		Dropped: dropped, Backlog: int(now.backlog), Most: now.most}
}

// queues returns the queues of connections to the hops that were full since its last call.
func (y *Way) queues() (out []sample.AcceptQueue) {
	hops := y.r.hops
	if y.accepting == nil {
		y.accepting = make([]accepting, len(hops))
	}
	for i, h := range hops {
		now := y.w.accepting(h)
		if q := queueSince(h, y.accepting[i], now); q != nil {
			out = append(out, *q)
		}
		y.accepting[i] = now
	}
	return out
}
