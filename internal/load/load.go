// Package load is the traffic. A workload is a short table over shared
// loops: raw blocking socket calls on locked, pinned threads, without Go's
// network poller, without allocation and without a garbage collection while
// it runs. It knows nothing of modes, files or other processes: it is given
// addresses, CPUs and three instants, and says what it moved.
//
// All instants are CLOCK_MONOTONIC nanoseconds, which processes of one
// machine share across its namespaces.
package load

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"
)

// Spec is a workload with its options.
type Spec struct {
	Kind    string  // a key of the table: "bulk", "rr", "udp", …
	Streams int     // connections, without the stream beside them; 0 means 1
	Write   int     // bytes a write (bulk); 0 means DefaultWrite
	Reverse bool    // the server sends (bulk)
	Bidir   bool    // both send (bulk)
	Bytes   int64   // to send on each connection; 0: until the window is over (bulk)
	Send    string  // "zerocopy", "sendfile"; "" means by copying (bulk)
	Request int     // bytes; 0 means 1
	Reply   int     // bytes; 0 means 1
	Rate    float64 // of all connections of this end together, a second: requests, or bit (udp); 0: as fast as can be
	Beside  bool    // a bulk stream runs beside it (rr)
	Size    int     // bytes of a datagram (udp)
	Batch   int     // datagrams a system call (udp)
	GSO     bool    // the kernel cuts datagrams out of larger buffers (udp)
	Tokens  int     // of a response (stream)
	Pace    float64 // tokens a second of a session (stream)
	Queries int     // of a page (query); 0 means 1
	Nodelay Switch  // TCP_NODELAY on both ends; "" means as the workload has it
}

// Switch is "on", "off" or, for what is usual, "".
type Switch string

// DefaultWrite is what bulk gives the kernel at once, as iperf3 does.
const DefaultWrite = 128 << 10

// MaxMessage bounds Write, Request and Reply, in bytes.
const MaxMessage = 64 << 20

func (s Spec) withDefaults() Spec {
	for _, f := range []struct {
		to   *int
		size int
	}{{&s.Streams, 1}, {&s.Write, DefaultWrite}, {&s.Request, 1}, {&s.Reply, 1}, {&s.Queries, 1},
		{&s.Tokens, DefaultTokens}, {&s.Size, DefaultDatagram}, {&s.Batch, 1}} {
		if *f.to == 0 {
			*f.to = f.size
		}
	}
	if s.Pace == 0 {
		s.Pace = DefaultPace
	}
	return s
}

// Schedule is when the load starts and which part of it is measured.
type Schedule struct {
	Start int64 `json:"start"` // first byte
	From  int64 `json:"from"`  // end of the warm-up, beginning of the window
	To    int64 `json:"to"`    // end of the window
	// End is when the load stops, so that meters which are read a little late
	// still see it run; 0 is To.
	End int64 `json:"end,omitempty"`
}

// Stats is what one end of a load did.
type Stats struct {
	Window      int64 // ns, as this end's threads crossed its bounds, on average
	Sent        int64 // payload bytes in the window
	Received    int64
	Trips       int64 // request/response pairs in the window
	TotalSent   int64 // from the first byte to the last
	TotalRecv   int64
	Connections int
	CPU         int64 // ns of CPU time of the whole process in the window
	Busiest     float64
	Involuntary int64 // involuntary context switches in the window
	Late        int64 // ns from Start to the first byte of the last thread; 0 of the end that does not send first
	Retransmits int64 // segments in the window
	Resent      int64 // bytes sent again, from the first byte to the last
	RTT, RTTVar int64 // ns, smoothed, at the window's end, mean over connections
	Cwnd, MSS   int64 // segments, bytes; mean over connections
	// Latency holds each trip of the window in ns; nil if the load has none.
	Latency *hdrhistogram.Histogram
	// Times and Counts are what only this workload times (ns) and counts in the
	// window, by name.
	Times  map[string]*hdrhistogram.Histogram
	Counts map[string]int64
	// Flows are the connections one by one, if the load is one of a crowd.
	Flows []Flow
}

// Flow is what one connection did in the window.
type Flow struct {
	Client    int   // the number that the client's end gave itself
	Sent      int64 // payload bytes that the other end's kernel acknowledged
	Received  int64 // payload bytes
	Trips     int64
	TotalRecv int64 // from the first byte to the last
	Resent    int64 // bytes that this end sent again, likewise
}

// workload is the table: what each end does on one connection.
type workload struct {
	client, server func(t *thread)
	latency        bool     // the client times its trips
	times          []string // what else the client times
	nodelay        bool     // TCP_NODELAY on both ends
	// threads is how many share the connections, of a workload whose threads
	// have several each; nil: each has one.
	threads   func(o Options) int
	brief     bool // its loops open and accept connections, which end with each trip
	datagrams bool // over UDP
}

var workloads = map[string]workload{
	"bulk": {client: bulkClient, server: bulkServer},
	// A server answers queries as it answers requests.
	"query": {client: queryClient, server: rrServer, latency: true, times: []string{queryTimes}, nodelay: true},
	"rr":    {client: requestsClient, server: requestsServer, latency: true, nodelay: true},
	"stream": {client: streamClient, server: streamServer, latency: true, nodelay: true, threads: streamThreads,
		times: []string{TimeGap, TimeFirst, TimeOverrun, TimeLate, TimeTransit, TimeWait}},
	"crr": {client: crrClient, server: crrServer, latency: true, times: []string{TimeConnect}, nodelay: true, brief: true},

	udpKind:   {client: udpClient, server: udpServer, datagrams: true},
	udpRRKind: {client: udpRRClient, server: udpRRServer, latency: true, datagrams: true},
}

// Options are common to both ends.
type Options struct {
	Spec Spec
	CPUs []int // threads are pinned to them in turn; empty: not pinned
	// Crowd says that the end is one of many. Then its counts are taken at the
	// window's bounds by a watcher, because a thread that starves comes past
	// them late or never, and each connection begins with its client's number.
	Crowd  bool
	Client int // that number, of the client's end
	// Budget is how many connections the client's end may ask for (crr); 0: any
	// number.
	Budget int
	// NewHistogram makes the histogram of a thread that times trips.
	NewHistogram func() *hdrhistogram.Histogram
}

func (o Options) workload() (workload, error) {
	w, ok := workloads[o.Spec.Kind]
	if !ok {
		return w, fmt.Errorf("unknown load %q", o.Spec.Kind)
	}
	s := o.Spec.withDefaults()
	switch s.Nodelay {
	case "":
	case "on", "off":
		w.nodelay = s.Nodelay == "on"
	default:
		return w, fmt.Errorf("load %+v: nodelay must be on or off", s)
	}
	if w.brief && o.Crowd {
		return w, fmt.Errorf("load %s: %w", s.Kind, errBriefCrowd)
	}
	if s.Streams < 1 || min(s.Write, s.Request, s.Reply) < 1 || max(s.Write, s.Request, s.Reply) > MaxMessage {
		return w, fmt.Errorf("load %+v: sizes must be from 1 to %d", s, MaxMessage)
	}
	if w.datagrams {
		return w, o.fitUDP(s)
	}
	if w.threads != nil && o.Crowd {
		return w, fmt.Errorf("load %s: not of a crowd", s.Kind)
	}
	if s.Kind == "stream" {
		return w, s.checkStream()
	}
	w, err := w.with(o)
	if err != nil {
		return w, fmt.Errorf("load %s: %w", s.Kind, err)
	}
	return w, nil
}

// Threads is how many threads an end has, for Prepare.
func (o Options) Threads() int {
	if w := workloads[o.Spec.Kind]; w.threads != nil {
		return w.threads(o)
	}
	return o.Spec.Threads()
}

// Server is the server's end: it listens from the start.
type Server struct {
	*crew
	listener int
}

// Listen makes the server's end on addr and starts accepting.
func Listen(addr netip.AddrPort, o Options) (*Server, error) {
	w, err := o.workload()
	if err != nil {
		return nil, err
	}
	if w.datagrams {
		return listenDatagrams(addr, o, w)
	}
	fd, err := listen(addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	s := &Server{listener: fd}
	open := o.seated(func(t *thread) (err error) {
		if t.fd, err = accept(fd, w.nodelay); err != nil || !o.Crowd {
			return err
		}
		t.client, err = greeted(t.fd)
		return err
	}, true)
	switch {
	case w.threads != nil:
		open = func(t *thread) error {
			return t.several(func(n int) ([]int, error) { return acceptMany(fd, n, w.nodelay) }, true)
		}
	case w.brief:
		open = briefServer(fd)
		if err := setNodelay(fd, w.nodelay); err != nil { // accepted sockets have it too
			return nil, errors.Join(err, unix.Close(fd))
		}
	}
	s.crew = newCrew(o, w, w.server, open)
	s.begins = o.Spec.Reverse || o.Spec.Bidir
	return s, nil
}

// Client is the client's end: it is connected when Dial returns.
type Client struct{ *crew }

// Dial makes the client's end with all its connections to addr.
func Dial(addr netip.AddrPort, o Options) (*Client, error) {
	w, err := o.workload()
	if err != nil {
		return nil, err
	}
	open := o.seated(func(t *thread) (err error) {
		if t.fd, err = connect(addr, w.nodelay); err == nil && o.Crowd {
			err = greet(t.fd, o.Client)
		}
		return err
	}, false)
	switch {
	case w.threads != nil:
		open = func(t *thread) error {
			return t.several(func(n int) ([]int, error) { return connectMany(addr, n, w.nodelay) }, false)
		}
	case w.brief:
		open = briefClient(addr, o, w.nodelay)
	case w.datagrams:
		open = func(t *thread) error { return dialUDP(t, addr) }
	}
	c := &Client{newCrew(o, w, w.client, func(t *thread) error {
		if err := open(t); err != nil {
			return fmt.Errorf("connect to %s: %w", addr, err)
		}
		return nil
	})}
	c.begins = !o.Spec.Reverse
	return c, c.open()
}
