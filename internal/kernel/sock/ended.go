package sock

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"time"

	"github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
)

// Tally has the kernel's counts of TCP connections to an address, ended or open.
type Tally struct {
	Connections int   `json:"connections"`
	Sent        int64 `json:"sent"` // payload bytes, each counted once
	// payload bytes, and one more for each connection that the other end closed
	Received   int64 `json:"received"`
	Segments   int64 `json:"segments"`     // sent, each counted as often as it was sent
	Resent     int64 `json:"resent"`       // segments
	OutOfOrder int64 `json:"out_of_order"` // segments
	RTT        int64 `json:"rtt_us"`       // mean
	// Refused counts connections that were refused or not answered, NoPort those for which no local
	// port was free. Connections excludes both.
	Refused int `json:"refused,omitempty"`
	NoPort  int `json:"no_port,omitempty"`
	// Ports is the number of local ports that have connections to the address when Stop is called,
	// including TIME_WAIT. Range is the number of available ports, 0 if unknown.
	Ports int `json:"ports,omitempty"`
	Range int `json:"port_range,omitempty"`
	// Lost means that messages of the kernel were lost, so the counts are too low.
	Lost bool `json:"lost,omitempty"`
}

// linux/sock_diag.h: destroyed connections of each family, as bits
const destroyedTCP = 1<<0 | 1<<2

// offsets in struct tcp_info and, for the cookie, in struct inet_diag_sockid
const (
	infoRTT         = 68
	infoResent      = 100
	infoSegments    = 136 // Linux 4.2
	infoBytesSent   = 200 // Linux 4.19
	infoBytesResent = 208
	infoOutOfOrder  = 224 // Linux 5.4
	cookieOffset    = idOffset + idSize - 8
)

const (
	followBuffer = 4 << 20
	// Stop waits settleTime for the kernel's messages, and up to lateTime if one is missing.
	settleTime = 20 * time.Millisecond
	lateTime   = time.Second
)

const (
	open = 1<<established | 1<<synSent | 1<<finWait1 | 1<<finWait2 | 1<<closeWait | 1<<lastAck |
		1<<closing
	waiting = 1<<finWait2 | 1<<timeWait
)

const synSent, closeWait = 2, 8

// Follower counts the TCP connections to one address that are made in a network namespace after
// Follow was called, even short ones.
type Follower struct {
	to     netip.AddrPort
	conn   *netlink.Conn
	before map[uint64]bool         // cookies of earlier connections
	old    map[netip.AddrPort]bool // local ends of connections that had ended earlier
	seen   map[uint64]bool
	ended  map[netip.AddrPort]bool // local ends
	done   chan struct{}
	tally  Tally
	rtt    int64 // µs
	// last has the cookies of the sockets that Stop closed and whose messages have not arrived.
	last map[uint64]bool
}

// Follow starts counting. The caller calls Stop in the same namespace. It needs CONFIG_INET_DIAG,
// but no privilege.
func Follow(to netip.AddrPort) (*Follower, error) {
	c, err := netlink.Dial(unix.NETLINK_INET_DIAG, &netlink.Config{Groups: destroyedTCP})
	if err != nil {
		return nil, fmt.Errorf("follow connections: %w", err)
	}
	_ = c.SetReadBuffer(followBuffer)
	f := &Follower{to: to, conn: c, before: map[uint64]bool{}, old: map[netip.AddrPort]bool{},
		seen:  map[uint64]bool{},
		ended: map[netip.AddrPort]bool{}, done: make(chan struct{})}
	err = f.dump(open|waiting, func(cookie uint64, s Socket, state byte, _ []byte) {
		f.before[cookie] = true
		if waiting&(1<<state) != 0 {
			f.old[s.Local] = true
		}
	})
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	go func() {
		defer close(f.done)
		f.read()
	}()
	return f, nil
}

func (f *Follower) read() {
	for {
		messages, err := f.conn.Receive()
		if errors.Is(err, unix.ENOBUFS) {
			f.tally.Lost = true
			continue
		}
		if err != nil {
			f.tally.Lost = f.tally.Lost || !errors.Is(err, os.ErrDeadlineExceeded)
			return
		}
		for _, m := range messages {
			if m.Header.Type == diagByFamily && len(m.Data) >= messageSize {
				s := parseSocket("tcp", m.Data)
				cookie := binary.NativeEndian.Uint64(m.Data[cookieOffset:])
				switch {
				case f.last[cookie]:
					delete(f.last, cookie)
				case f.failed(s, m.Data):
				case f.toAddress(s):
					f.note(s, m.Data)
					f.ended[s.Local] = true
				}
			}
		}
	}
}

// Stop ends the counting and returns the counts, including those of connections that are still
// open.
func (f *Follower) Stop() (t Tally, err error) {
	defer func() { err = errors.Join(err, f.conn.Close()) }()
	began := time.Now()
	if err := f.conn.SetReadDeadline(began); err != nil {
		return t, err
	}
	<-f.done
	if f.last, err = closeOnEachCPU(); err != nil {
		return t, err
	}
	for {
		if err := f.conn.SetReadDeadline(time.Now().Add(settleTime)); err != nil {
			return t, err
		}
		f.read()
		untold := len(f.last) > 0
		err := f.dump(waiting, func(_ uint64, s Socket, _ byte, m []byte) {
			untold = untold || !f.ended[s.Local] && !f.old[s.Local] &&
				len(m) <= messageSize+smallest
		})
		if err != nil {
			return t, err
		}
		if !untold {
			break
		}
		if time.Since(began) > lateTime {
			f.tally.Lost = true
			break
		}
	}
	err = f.dump(open, func(_ uint64, s Socket, _ byte, m []byte) {
		if len(m) > messageSize+smallest {
			f.note(s, m)
		}
	})
	if n := int64(f.tally.Connections); n > 0 {
		f.tally.RTT = f.rtt / n
	}
	return f.tally, errors.Join(err, f.ports())
}

// closeOnEachCPU closes a socket on each CPU that the calling thread may use, and returns the
// sockets' cookies. The kernel reports sockets in the order in which they were destroyed on a CPU,
// but the CPUs report independently of each other (net/core/sock_diag.c, sock_diag_events).
func closeOnEachCPU() (cookies map[uint64]bool, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cookies = map[uint64]bool{}
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil { // more CPUs than a CPUSet holds
		return cookies, closeOne(cookies)
	}
	defer func() { err = errors.Join(err, unix.SchedSetaffinity(0, &all)) }()
	for cpu, left := 0, all.Count(); left > 0; cpu++ {
		if !all.IsSet(cpu) {
			continue
		}
		left--
		var one unix.CPUSet
		one.Set(cpu)
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			continue // the CPU has gone
		}
		if err := closeOne(cookies); err != nil {
			return nil, err
		}
	}
	return cookies, nil
}

func closeOne(cookies map[uint64]bool) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("follow connections: %w", err)
	}
	cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE)
	if err == nil {
		cookies[cookie] = true
	}
	return errors.Join(err, unix.Close(fd))
}

func (f *Follower) ports() error {
	text, err := sysctl.Get("net.ipv4.ip_local_port_range")
	if err != nil {
		return nil
	}
	var low, high int
	if _, err := fmt.Sscan(text, &low, &high); err != nil || low > high {
		return nil
	}
	used := map[uint16]bool{}
	err = f.dump(open|waiting, func(_ uint64, s Socket, _ byte, _ []byte) {
		if port := int(s.Local.Port()); low <= port && port <= high {
			used[s.Local.Port()] = true
		}
	})
	f.tally.Ports, f.tally.Range = len(used), high-low+1
	return err
}

func (f *Follower) failed(s Socket, m []byte) bool {
	remote, cookie := s.Remote, binary.NativeEndian.Uint64(m[cookieOffset:])
	if remote.Addr().Unmap() != f.to.Addr() || remote.Port() != 0 && remote.Port() != f.to.Port() ||
		f.before[cookie] || f.seen[cookie] {
		return false
	}
	if s.Local.Port() == f.to.Port() { // the server's side of a connection that was not accepted
		return false
	}
	if info := infoOf(m); remote.Port() != 0 &&
		(info == nil || counter(info, infoRTT) > 0 || s.Received > 0 || s.Sent > 0) {
		return false
	}
	f.seen[cookie] = true
	if s.Local.Port() == 0 {
		f.tally.NoPort++
	} else {
		f.tally.Refused++
	}
	return true
}

// smallest is less than the size of a struct tcp_info. Failed connections have none.
const smallest = 96

func (f *Follower) note(s Socket, m []byte) {
	cookie := binary.NativeEndian.Uint64(m[cookieOffset:])
	if f.before[cookie] || f.seen[cookie] {
		return
	}
	f.seen[cookie] = true
	f.tally.Connections++
	f.tally.Received += int64(s.Received)
	info := infoOf(m)
	if info == nil {
		return
	}
	f.tally.Sent += once(info, int64(s.Sent))
	f.rtt += counter(info, infoRTT)
	f.tally.Segments += counter(info, infoSegments)
	f.tally.Resent += counter(info, infoResent)
	f.tally.OutOfOrder += counter(info, infoOutOfOrder)
}

func infoOf(m []byte) []byte {
	attributes, _ := nl.ParseRouteAttr(m[messageSize:])
	for _, a := range attributes {
		if a.Attr.Type == attrInfo {
			return a.Value
		}
	}
	return nil
}

// once returns the number of sent payload bytes, each counted once. Before Linux 4.19 it returns
// the acknowledged bytes, a close approximation.
func once(info []byte, acknowledged int64) int64 {
	if len(info) < infoBytesResent+8 {
		return acknowledged
	}
	return int64(binary.NativeEndian.Uint64(info[infoBytesSent:]) - binary.NativeEndian.Uint64(
		info[infoBytesResent:]))
}

func counter(info []byte, at int) int64 {
	if len(info) < at+4 {
		return 0
	}
	return int64(binary.NativeEndian.Uint32(info[at:]))
}

func (f *Follower) toAddress(s Socket) bool {
	return netip.AddrPortFrom(s.Remote.Addr().Unmap(), s.Remote.Port()) == f.to
}

func (f *Follower) dump(states uint32, do func(cookie uint64, s Socket, state byte,
	m []byte)) error {
	for _, family := range families {
		r := request{family: family, protocol: unix.IPPROTO_TCP, attributes: 1 << (attrInfo - 1),
			states: states}
		err := r.dump(func(m []byte) {
			if s := parseSocket("tcp", m); f.toAddress(s) {
				do(binary.NativeEndian.Uint64(m[cookieOffset:]), s, m[1], m)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}
