// Package load generates the traffic. A table gives each workload its two loops, which workloads
// may share. The loops make raw blocking socket calls on locked, pinned threads, without Go's
// network poller, allocations or garbage collection.
//
// In an epoch, the end that sends first sleeps between its slices, in passed. A loop that times
// trips only has to read the clock again afterwards (see rested).
//
// In a stream in both directions, only the client shuts down its half, because once both halves are
// shut down a proxy closes its sockets, before their counters are read. The server's half ends with
// a mark or after a known number of bytes.
//
// All instants are CLOCK_MONOTONIC nanoseconds, which the processes of a machine share.
package load

import (
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"golang.org/x/sys/unix"
)

func withDefaults(l sample.Load) sample.Load { return workload.Of(l).Filled(l) }

// Schedule has the instants of one run of a load.
type Schedule struct {
	Start int64 `json:"start"` // the first byte is sent
	From  int64 `json:"from"`  // end of the warm-up
	To    int64 `json:"to"`
	// End is when the load stops. It may be later than To, so that late meters still see the load;
	// 0: To.
	End int64 `json:"end,omitempty"`
	// Slices come before Start, in order of time; empty: not sliced.
	Slices []Slice `json:"slices,omitempty"`
	// Hold is the time before which an end sends no reply on its control pipe, because others are
	// still being measured.
	Hold int64 `json:"hold,omitempty"`
}

func (s Schedule) first() int64 {
	if len(s.Slices) > 0 {
		return s.Slices[0].Start
	}
	return s.Start
}

type loops struct {
	client, server func(t *thread)
	// threads returns the number of threads that share the connections; nil: each connection has
	// one.
	threads func(o Options) int
}

var table = map[string]loops{
	workload.Bulk:        {client: bulkClient, server: bulkServer},
	workload.BulkReverse: {client: bulkClient, server: bulkServer},
	workload.RR:          {client: requestsClient, server: requestsServer},
	workload.CRR:         {client: crrClient, server: crrServer},
	workload.UDP:         {client: udpClient, server: udpServer},
	workload.UDPRR:       {client: udpRRClient, server: udpRRServer},
	workload.Stream:      {client: streamClient, server: streamServer, threads: streamThreads},
	workload.Query:       {client: queryClient, server: rrServer}, // answered like requests
}

// Options are the options of both ends.
type Options struct {
	Load sample.Load
	CPUs []int // one per thread, reused if there are more threads; empty: not pinned
	// Crowd means that the end is one of many. A watcher then takes its counts at the window's
	// bounds, and each connection begins with its client's number.
	Crowd  bool
	Client int // the client's number
	// Budget bounds the connections that the client opens (crr); 0: no limit.
	Budget int
	// Shared means that another end listens on the same address before or after this one.
	Shared bool
	// Bounds requests SliceStats.Bounds. The load must have one thread.
	Bounds bool
	// NewHistogram makes the histograms of each thread. Only ends that time nothing may leave it
	// nil.
	NewHistogram func() *hdrhistogram.Histogram
}

type job struct {
	loops
	workload.Workload
	nodelay bool
}

func (o Options) job() (job, error) {
	own, ok := table[o.Load.Kind]
	if !ok {
		return job{}, fmt.Errorf("unknown load %q", o.Load.Kind)
	}
	w := job{own, workload.Of(o.Load), false}
	l := withDefaults(o.Load)
	switch l.Nodelay {
	case "":
		w.nodelay = w.Nodelay
	case "on", "off":
		w.nodelay = l.Nodelay == "on"
	default:
		return w, fmt.Errorf("load %+v: nodelay must be on or off", l)
	}
	if w.Brief && o.Crowd {
		return w, fmt.Errorf("load %s: %w", l.Kind, errNoCrowd)
	}
	m, write := workload.MessagesOf(l), workload.WriteOf(l) // 0 for loads without
	if l.Streams < 1 || min(write, m.Request, m.Reply) < 0 ||
		max(write, m.Request, m.Reply) > workload.MaxMessage {
		return w, fmt.Errorf("load %+v: sizes must be from 1 to %d", l, workload.MaxMessage)
	}
	if w.UDP {
		return w, o.fitUDP(l)
	}
	if w.threads != nil {
		if o.Crowd {
			return w, fmt.Errorf("load %s: %w", l.Kind, errNoCrowd)
		}
		return w, checkTokens(l)
	}
	if err := o.together(); err != nil {
		return w, fmt.Errorf("load %s: %w", l.Kind, err)
	}
	return w, nil
}

// Threads returns the number of threads that each end has.
func (o Options) Threads() int {
	if w := table[o.Load.Kind]; w.threads != nil {
		return w.threads(o)
	}
	return threads(o.Load)
}

// Server is the server's end of a load.
type Server struct {
	*threadGroup
	listener int
	closed   atomic.Bool // the listener is closed
}

// Listen returns the server's end, which listens on addr and accepts connections. The caller closes
// it.
func Listen(addr netip.AddrPort, o Options) (*Server, error) {
	w, err := o.job()
	if err != nil {
		return nil, err
	}
	if w.UDP {
		return listenDatagrams(addr, o, w)
	}
	fd, err := o.patient(func() (int, error) { return listen(addr) })
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	s := &Server{listener: fd}
	open := o.matchThreads(func(t *thread) (err error) {
		if t.fd, err = accept(fd, w.nodelay); err != nil || !o.Crowd {
			return err
		}
		t.client, err = greeted(t.fd)
		return err
	}, true)
	switch {
	case w.threads != nil:
		open = func(t *thread) error {
			return t.several(func(n int) ([]int, error) {
				return acceptMany(fd, n, w.nodelay)
			}, true)
		}
	case w.Brief:
		open = briefServer(fd)
		if err := setNodelay(fd, w.nodelay); err != nil { // accepted sockets inherit it
			return nil, errors.Join(err, unix.Close(fd))
		}
	}
	s.threadGroup = newThreadGroup(o, w, w.server, s.brieflyIf(o, open))
	bulk := workload.BulkOf(o.Load)
	s.begins = bulk.Reverse || bulk.Bidir
	return s, nil
}

// Close ends the connections and stops listening.
func (s *Server) Close() error {
	err := s.threadGroup.Close()
	if s.closed.Swap(true) {
		return err
	}
	return errors.Join(err, unix.Close(s.listener))
}

// Client is the client's end of a load.
type Client struct{ *threadGroup }

// Dial returns the client's end, with all its connections connected to addr. The caller closes it.
func Dial(addr netip.AddrPort, o Options) (*Client, error) {
	w, err := o.job()
	if err != nil {
		return nil, err
	}
	open := o.matchThreads(func(t *thread) (err error) {
		if t.fd, err = connect(addr, w.nodelay); err == nil && o.Crowd {
			err = greet(t.fd, o.Client)
		}
		return err
	}, false)
	switch {
	case w.threads != nil:
		open = func(t *thread) error {
			return t.several(func(n int) ([]int, error) {
				return connectMany(addr, n, w.nodelay)
			}, false)
		}
	case w.Brief:
		open = briefClient(addr, o, w.nodelay)
	case w.UDP:
		open = func(t *thread) error { return dialUDP(t, addr) }
	}
	c := &Client{newThreadGroup(o, w, w.client, func(t *thread) error {
		if err := open(t); err != nil {
			return fmt.Errorf("connect to %s: %w", addr, err)
		}
		return nil
	})}
	c.begins = !workload.BulkOf(o.Load).Reverse
	return c, c.open()
}
