// Package writes records when programs write to TCP sockets at some ports, when TCP sends the
// bytes, and when the threads that write run; or when datagrams leave UDP sockets. Its BPF programs
// read the kernel's structures and change nothing. They fill a ring, which the reader empties when
// it likes: nothing is woken up. Programs and maps end with the process.
package writes

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"

	"github.com/bridgetoll/bridgetoll/internal/kernel/bpf"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
)

// Kind is the kind of an event.
type Kind uint8

// The kinds of events.
const (
	Write    Kind = iota + 1 // a program gives bytes to a socket
	Send                     // TCP gives a segment to a device
	Ran                      // a thread that wrote before has run since Since
	Datagram                 // a program gives a datagram to a device
	Read                     // a program has read bytes from a socket
	Asked                    // a client gives a datagram to a device; it may pass several
)

// Event is a write, a segment or a datagram of a socket at one of the ports, or the end of a run.
type Event struct {
	At    int64 // CLOCK_MONOTONIC, ns
	NetNS uint32
	// Seq is the TCP sequence number of the first byte, which is the peer's of a Read, or a
	// datagram's first four bytes, if it has as many and is not being read. Len is the number of
	// bytes.
	Seq, Len      uint32
	Unacked       uint32 // bytes that were sent and not acknowledged
	Window        uint32 // the receiver's, in bytes
	Local, Remote uint16 // ports
	Socket        uint16 // the socket's own port; a datagram may leave with another one
	// The addresses are the socket's, or a datagram's as it leaves.
	LocalAddr, RemoteAddr netip.Addr
	Kind                  Kind
	Nagle                 bool // TCP_NODELAY is off
	More                  bool // a Write said that more follows (MSG_MORE), or the socket is corked
	// Thread wrote, ran or sent a datagram. Waited is for how long it has waited for a CPU since it
	// began, ns. Both are 0 for segments, of threads that poll for an io_uring, and if the kernel
	// does not count that.
	Thread uint32
	Waited int64
	Since  int64 // when the thread got its CPU, CLOCK_MONOTONIC, ns; 0: unknown
}

// record is an event as the programs write it.
type record struct {
	ts                                int64
	netns, seq, size, unacked, window uint32
	localAddr, remoteAddr             [16]byte
	local, remote                     uint16
	kind, nonagle                     uint8
	socket                            uint16
	thread                            uint32
	waited, since                     int64
}

// Recorder is a set of attached programs. Not for concurrent use.
type Recorder struct {
	programs *ebpf.Collection
	links    []link.Link
	ring     *ringbuf.Reader
	next     ringbuf.Record
	reads    bool
}

// size is the ring's, in bytes, unless Of.Times is more than 1.
const size = 16 << 20

// Of says what is recorded.
type Of struct {
	Local   []uint16 // ports of the sockets
	Dialled []uint16 // peers' ports: writes to sockets that dialled them, too
	Runs    bool     // when the threads that write run
	// Times is by how much the ring is larger than usual, a power of two; 0: it is not.
	Times int
	// Reads means that reads from the sockets that dialled a port are recorded, too, and that the
	// runs of these sockets' threads are not.
	Reads bool
	// UDP means the datagrams of UDP sockets at Local, instead of TCP's writes and segments, and
	// with Reads those to the ports in Dialled.
	UDP bool
}

// Open attaches the programs. It returns a *machine.UnsupportedError if the process may not, or the
// kernel lacks a tracepoint.
func Open(of Of) (*Recorder, error) {
	tracepoint, err := bpf.Tracepoints()
	if err != nil {
		return nil, err
	}
	function, err := bpf.Functions()
	if err != nil {
		return nil, err
	}
	spec, err := loadObject()
	if err != nil {
		return nil, err
	}
	atFunctions, err := choose(spec, &of, tracepoint, function)
	if err != nil {
		return nil, err
	}
	r := &Recorder{reads: of.Reads}
	err = r.open(spec, of)
	switch {
	case err == nil:
		return r, nil
	case atFunctions && of.Reads: // the rest may do
		if errClose := r.Close(); errClose != nil {
			return nil, errors.Join(err, errClose)
		}
		of.Reads = false
		return Open(of)
	case atFunctions:
		err = bpf.Explain(err, needed)
	default:
		err = bpf.Explain(err, "a kernel with BTF")
	}
	return nil, errors.Join(err, r.Close())
}

const (
	locked = "tcp_sendmsg_locked" // a function, and since Linux 6.16 a tracepoint in it
	length = "sock_recv_length"   // a tracepoint since Linux 6.3
	needed = "Linux 6.16 or later, or an earlier one with CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS"
)

// uses says what the programs record. Those at functions are for kernels that lack a tracepoint;
// those that read have the flags of Linux 5.19 and later, and need 5.17.
var uses = map[string]struct {
	tcp, udp, runs, reads bool
	lacks                 string // tracepoint
}{
	objectProgTollWrite:    {tcp: true},
	objectProgTollSendmsg:  {tcp: true, lacks: locked},
	objectProgTollSendpage: {tcp: true, lacks: locked},
	objectProgTollSent:     {tcp: true, udp: true},
	objectProgTollRan:      {tcp: true, udp: true, runs: true},
	objectProgTollRead:     {tcp: true, udp: true, reads: true},
	objectProgTollRecvmsg:  {tcp: true, reads: true, lacks: length},
	objectProgTollRecv4:    {udp: true, reads: true, lacks: length},
	objectProgTollRecv6:    {udp: true, reads: true, lacks: length},
}

// choose leaves the programs that record what is asked for on a kernel with some tracepoints and
// functions. It clears of.Reads if there are none for that, and reports whether some are at
// functions.
func choose(spec *ebpf.CollectionSpec, of *Of, tracepoint, function func(string) bool) (
	atFunctions bool, err error) {
	reads, written := false, false
	for name, p := range spec.Programs {
		u, has := uses[name], function
		if p.AttachType == ebpf.AttachTraceRawTp {
			has = tracepoint
		}
		if !has(p.AttachTo) || of.UDP && !u.udp || !of.UDP && !u.tcp || u.runs && !of.Runs ||
			u.reads && !of.Reads || u.lacks != "" && tracepoint(u.lacks) {
			delete(spec.Programs, name)
			continue
		}
		reads, atFunctions = reads || u.reads, atFunctions || u.lacks != ""
		written = written || p.AttachTo == locked
	}
	of.Reads = reads
	if !of.UDP && !written {
		return false, &machine.UnsupportedError{Missing: "the kernel lacks tracepoint " + locked,
			Remedy: needed}
	}
	return atFunctions, nil
}

func (r *Recorder) open(spec *ebpf.CollectionSpec, of Of) (err error) {
	for name, x := range map[string]any{objectVarPorts: bits(of.Local),
		objectVarDialled: bits(of.Dialled), objectVarRuns: of.Runs, objectVarUdp: of.UDP,
		objectVarReads: of.Reads} {
		if err := spec.Variables[name].Set(x); err != nil {
			return err
		}
	}
	spec.Maps["records"].MaxEntries = uint32(size * max(1, of.Times))
	if r.programs, err = ebpf.NewCollection(spec); err != nil {
		return err
	}
	if r.ring, err = ringbuf.NewReader(r.programs.Maps["records"]); err != nil {
		return err
	}
	return r.Resume()
}

// Reads reports whether reads are recorded.
func (r *Recorder) Reads() bool { return r.reads }

// Dial replaces Of.Dialled.
func (r *Recorder) Dial(ports []uint16) error {
	if err := r.programs.Variables[objectVarDialled].Set(bits(ports)); err != nil {
		return fmt.Errorf("record other ports: %w", err)
	}
	return nil
}

// bits has a bit for each port.
func bits(ports []uint16) (out [(1 << 16) / 64]uint64) {
	for _, p := range ports {
		out[p/64] |= 1 << (p % 64)
	}
	return out
}

// Resume attaches the programs after Pause. When threads ran before that counts for nothing.
func (r *Recorder) Resume() error {
	var thread uint32
	for m := r.programs.Maps["threads"]; m.NextKey(nil, &thread) == nil; {
		if err := m.Delete(thread); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("forget threads: %w", err)
		}
	}
	for _, p := range r.programs.Programs {
		l, err := link.AttachTracing(link.TracingOptions{Program: p})
		if err != nil {
			return fmt.Errorf("attach %s: %w", p, err)
		}
		r.links = append(r.links, l)
	}
	return nil
}

// Pause detaches the programs until Resume. Meanwhile no write takes longer.
func (r *Recorder) Pause() error {
	var errs []error
	for _, l := range r.links {
		errs = append(errs, l.Close())
	}
	r.links = nil
	return errors.Join(errs...)
}

// Half reports whether at least half of the ring has events that were not read.
func (r *Recorder) Half() bool { return 2*r.ring.AvailableBytes() >= r.ring.BufferSize() }

// Read calls f with the events between its last call and this one, in the order in which they were
// recorded. It does not wait. An event is valid until f returns.
func (r *Recorder) Read(f func(*Event)) error {
	var e Event // of all, because f lets it escape
	r.ring.SetDeadline(time.Now())
	for now, at := clock.Now(), int64(0); at <= now; { // more may come as fast as they are read
		switch err := r.ring.ReadInto(&r.next); {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil
		case err != nil:
			return fmt.Errorf("read the writes of servers: %w", err)
		}
		if len(r.next.RawSample) < int(unsafe.Sizeof(record{})) {
			continue
		}
		x := (*record)(unsafe.Pointer(&r.next.RawSample[0]))
		e = Event{At: x.ts, NetNS: x.netns, Seq: x.seq, Len: x.size, Unacked: x.unacked,
			Window: x.window, Local: x.local, Remote: x.remote, Socket: x.socket,
			LocalAddr:  netip.AddrFrom16(x.localAddr).Unmap(),
			RemoteAddr: netip.AddrFrom16(x.remoteAddr).Unmap(), Kind: Kind(x.kind),
			Nagle: x.nonagle&noDelay == 0, More: x.nonagle&cork != 0, Thread: x.thread,
			Waited: x.waited, Since: x.since}
		f(&e)
		at = x.ts
	}
	return nil
}

const noDelay, cork = 1, 2 // TCP_NAGLE_OFF, TCP_NAGLE_CORK

// Lost returns the number of events so far for which the ring had no room.
func (r *Recorder) Lost() (int, error) {
	var n uint64
	if err := r.programs.Variables["lost"].Get(&n); err != nil {
		return 0, fmt.Errorf("read the number of lost events: %w", err)
	}
	return int(n), nil
}

// Close detaches the programs.
func (r *Recorder) Close() error {
	var errs []error
	for _, l := range r.links {
		errs = append(errs, l.Close())
	}
	if r.ring != nil {
		errs = append(errs, r.ring.Close())
	}
	if r.programs != nil {
		r.programs.Close()
	}
	return errors.Join(errs...)
}
