package load

import (
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// udp is a flow of datagrams from the client to the server, at a given rate or at the highest rate
// that loses at most the share tolerated.

// maxBehind is the longest delay, in ns, that the sender makes up for. It skips datagrams that are
// due for longer, because a burst would only overflow a queue.
const maxBehind = 5e6

// longestPause is the longest pause, in ns, between two readings of the clock.
const longestPause = 5e6

// A pause of the sender covers what is due within resolution (ns) after it, at most mostAhead
// datagrams. A pause for each one would cost several times as much CPU time as sending it: both
// ends are woken.
const (
	resolution = 200e3
	mostAhead  = 16
)

// ahead returns how long, in ns, before it is due a datagram may be sent without a pause. rate is
// in datagrams per second.
func ahead(rate float64) int64 { return int64(min(resolution, mostAhead*1e9/rate)) }

// answerTime is how long, in ns, the client asks for an answer, in addition to round trips.
const answerTime = 1e9

type sender struct {
	t       *thread
	f       *flow
	seq     uint64
	blocked int64
}

func udpClient(t *thread) {
	s := &sender{t: t, f: t.udp}
	o := workload.UDPOf(t.spec)
	// datagrams per second; 0: as fast as possible
	rate := o.Rate / float64(8*o.Size*t.spec.Streams)
	if rate == 0 {
		rate = s.search()
	}
	var from, to uint64
	var blocked, missed int64
	s.run(rate, 0, func(now, late int64) bool {
		was := t.bounds
		over := t.passed(now)
		if was == 0 && t.bounds == 1 {
			from, blocked, missed = s.seq, s.blocked, late
		}
		if t.bounds == windowBounds && was < windowBounds {
			to, blocked, missed = s.seq, s.blocked-blocked, late-missed
		}
		return over
	})
	if t.err != nil {
		return
	}
	t.counts = map[string]int64{workload.CountDatagrams: int64(to - from),
		workload.CountMissed: missed, workload.CountBlocked: blocked,
		workload.CountRate: int64(rate * float64(8*workload.UDPOf(t.spec).Size))}
	s.end(from, to)
	if to == from {
		t.err = errNoneSent
	}
}

var errNoneSent = errors.New(
	"no datagram was due in the window: raise the rate or lengthen the window")

// run sends at rate (datagrams per second; 0: as fast as possible). It calls over after each system
// call, until over returns true, with the number of datagrams skipped.
func (s *sender) run(rate float64, step byte, over func(now, missed int64) bool) {
	t, m := s.t, s.f.msgs
	per := len(m.bufs) * m.each
	interval, early := 0.0, int64(0)
	if rate > 0 {
		interval, early = float64(per)*1e9/rate, ahead(rate)
	}
	due := float64(clock.Now())
	woke, missed := int64(due), int64(0)
	for {
		if interval > 0 {
			now := clock.Now()
			for int64(due) > max(now, woke+early) {
				wait := int64(due) - now
				if next := t.next - now; next > 0 {
					wait = min(wait, next)
				}
				pause(min(wait, longestPause))
				now = clock.Now()
				if over(now, missed) {
					return
				}
			}
			if now >= int64(due) {
				woke = now
			}
			if behind := float64(now) - due; behind > maxBehind {
				skip := float64(int64((behind - maxBehind) / interval))
				due += skip * interval
				missed += int64(skip) * int64(per)
			}
			due += interval
		}
		if !s.send(step) || over(clock.Now(), missed) {
			return
		}
	}
}

func pause(ns int64) {
	ts := unix.NsecToTimespec(ns)
	// A signal ends the sleep early; the caller reads the clock.
	_, _, _ = syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
}

func (s *sender) send(step byte) bool {
	t, m := s.t, s.f.msgs
	size := workload.UDPOf(t.spec).Size
	h := head{kind: data, part: byte(t.bounds), step: step, run: s.f.run}.word()
	seq := s.seq
	for _, b := range m.bufs {
		for at := 0; at < len(b); at += size {
			binary.BigEndian.PutUint64(b[at:], h)
			binary.BigEndian.PutUint64(b[at+headBytes:], seq)
			seq++
		}
	}
	flags := uintptr(unix.MSG_DONTWAIT)
	for put := 0; put < len(m.bufs); {
		n, e := m.send(t.fd, put, flags)
		put += n
		switch e {
		case 0:
		case syscall.EAGAIN: // the send buffer is full: wait for space
			s.blocked++
			flags = 0
		case syscall.ENOBUFS: // the device's queue does not signal space
			s.blocked++
			pause(int64(queueTime))
		default:
			t.err = s.explain(e)
			return false
		}
	}
	s.seq = seq
	t.sent += int64(len(m.bufs)) * int64(len(m.bufs[0]))
	return true
}

// queueTime is the pause, in ns, while the device's queue is full.
const queueTime = 50e3

func (s *sender) explain(e syscall.Errno) error {
	o := workload.UDPOf(s.t.spec)
	switch {
	case o.GSO && (e == syscall.EMSGSIZE || e == syscall.EINVAL):
		return fmt.Errorf(
			"send: with GSO a datagram must fit into the device's MTU, and %d bytes of payload do not: %w", o.Size, e)
	case o.GSO && e == syscall.EIO:
		return fmt.Errorf("send: GSO needs a device that computes checksums: %w", e)
	case e == syscall.ECONNREFUSED:
		return fmt.Errorf("send: the receiver no longer listens: %w", e)
	}
	return fmt.Errorf("send: %w", e)
}

// converse sends a control message repeatedly until it is answered, and returns the answer. It
// returns nil if none comes within limit (ns).
func (s *sender) converse(h head, answer kind, limit int64, numbers ...int64) []byte {
	b := s.f.msgs.answer
	began := clock.Now()
	again := max(int64(idle), 2*s.f.rtt)
	for now := began; now < began+limit; now = clock.Now() {
		if _, e := send(s.t.fd, control(s.f.word, h, numbers...)); e != 0 && e != syscall.ENOBUFS {
			return nil
		}
		for said := clock.Now(); now < said+again; now = clock.Now() {
			n, e := recv(s.t.fd, b)
			if e == syscall.EAGAIN {
				continue
			}
			if e != 0 {
				return nil
			}
			if got, ok := parseHead(b[:n], s.f.run); ok && got.kind == answer &&
				(answer != report || byte(number(b[:n], 0)) == h.step) {
				return b[:n]
			}
		}
	}
	return nil
}

func (s *sender) end(from, to uint64) {
	limit := int64(answerTime) + 4*s.f.rtt
	_ = s.converse(head{kind: end, run: s.f.run}, bye, limit, int64(from), int64(to), int64(s.seq),
		s.f.rtt)
}
