package load

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

const (
	// wantedBuffer is the size of the receive buffer, in bytes: enough for what arrives in the
	// milliseconds in which the receiver does not run.
	wantedBuffer = 8 << 20
	// idle is how long a receiver waits before it reads the clock.
	idle = 2 * time.Millisecond
	// greetAgain is the first interval between greetings. It doubles each time.
	greetAgain = 20 * time.Millisecond
)

type flow struct {
	run    uint32
	rtt    int64  // the greeting's round trip in ns; client only
	word   []byte // for control messages
	buffer int    // bytes of the receive buffer
	msgs   *messages
}

// udpSocket returns a blocking socket that fragments datagrams larger than the MTU.
func udpSocket(addr netip.AddrPort) (int, error) {
	family, _ := sockaddr(addr)
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP)
	if err != nil {
		return -1, fmt.Errorf("make socket: %w", err)
	}
	if family == unix.AF_INET {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DONT)
	} else {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER,
			unix.IPV6_PMTUDISC_DONT)
	}
	if err != nil {
		return -1, errors.Join(fmt.Errorf("allow fragments: %w", err), unix.Close(fd))
	}
	return fd, nil
}

func prepareFlow(t *thread, receives bool) (*flow, error) {
	f := &flow{word: make([]byte, controlBytes)}
	wait := unix.NsecToTimeval(int64(idle))
	if err := unix.SetsockoptTimeval(t.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
		return nil, fmt.Errorf("set SO_RCVTIMEO: %w", err)
	}
	f.buffer = growBuffer(t.fd)
	if o := workload.UDPOf(t.spec); o.GSO {
		opt, value, what := unix.UDP_SEGMENT, o.Size, "UDP_SEGMENT (Linux 4.18)"
		if receives {
			opt, value, what = unix.UDP_GRO, 1, "UDP_GRO (Linux 5.0)"
		}
		if err := unix.SetsockoptInt(t.fd, unix.IPPROTO_UDP, opt, value); err != nil {
			return nil, fmt.Errorf("the kernel refuses %s: %w", what, err)
		}
	}
	f.msgs = newMessages(t.spec, receives)
	return f, nil
}

// growBuffer makes the receive buffer as large as permitted, and returns its size in bytes. The
// kernel reserves twice the request, for its own overhead.
func growBuffer(fd int) int {
	// SO_RCVBUFFORCE needs CAP_NET_ADMIN.
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, wantedBuffer) != nil {
		// SO_RCVBUF is limited by net.core.rmem_max.
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, wantedBuffer)
	}
	n, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	return n / 2
}

func socketDrops(fd int) int64 {
	const fields, drops = 9, 8 // SK_MEMINFO_VARS, SK_MEMINFO_DROPS
	var info [fields]uint32
	size := uint32(unsafe.Sizeof(info))
	_, _, e := syscall.RawSyscall6(syscall.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET,
		unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	if e != 0 {
		return 0
	}
	return int64(info[drops])
}

type udpListener struct {
	fd    int
	addr  netip.AddrPort
	mu    sync.Mutex // guards known
	known map[uint32]bool
}

func listenUDP(addr netip.AddrPort, shared bool) (*udpListener, error) {
	fd, err := udpSocket(addr)
	if err != nil {
		return nil, err
	}
	if shared { // another end's flows use the port
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}
	_, sa := sockaddr(addr)
	if err == nil {
		err = unix.Bind(fd, sa)
	}
	if err == nil {
		// SO_REUSEADDR is set only now: the flows' sockets may share the port, and no earlier
		// socket may.
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return &udpListener{fd: fd, addr: addr, known: map[uint32]bool{}}, nil
}

func (l *udpListener) accept(t *thread) error {
	b := make([]byte, workload.MinDatagram)
	for {
		n, from, err := unix.Recvfrom(l.fd, b, 0)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("receive a greeting: %w", err)
		}
		if n < controlBytes {
			continue
		}
		run := uint32(number(b, 0))
		if h, ok := parseHead(b[:n], run); !ok || h.kind != hello {
			continue
		}
		l.mu.Lock()
		again := l.known[run]
		l.known[run] = true
		l.mu.Unlock()
		if again {
			continue
		}
		return l.meet(t, run, from)
	}
}

func (l *udpListener) meet(t *thread, run uint32, from unix.Sockaddr) error {
	fd, err := udpSocket(l.addr)
	if err != nil {
		return err
	}
	t.fd = fd
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return fmt.Errorf("share the port: %w", err)
	}
	_, sa := sockaddr(l.addr)
	if err := unix.Bind(fd, sa); err != nil {
		return fmt.Errorf("share the port: %w", err)
	}
	if err := unix.Connect(fd, from); err != nil {
		return fmt.Errorf("answer a greeting: %w", err)
	}
	f, err := prepareFlow(t, true)
	if err != nil {
		return err
	}
	f.run, t.udp = run, f
	_, e := send(fd, control(f.word, head{kind: welcome, run: run}))
	if e != 0 {
		return fmt.Errorf("answer a greeting: %w", e)
	}
	return nil
}

// dialUDP makes the client's end of a flow and waits until the server answers its greeting.
func dialUDP(t *thread, addr netip.AddrPort) error {
	fd, err := udpSocket(addr)
	if err != nil {
		return err
	}
	t.fd = fd
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // otherwise pauses end 50 µs late
	if err := bindFresh(fd, addr, t.index); err != nil {
		return err
	}
	_, sa := sockaddr(addr)
	if err := unix.Connect(fd, sa); err != nil {
		return err
	}
	f, err := prepareFlow(t, false)
	if err != nil {
		return err
	}
	f.run, t.udp = rand.Uint32(), f
	return f.greet(t)
}

// The source ports are from Linux's default range.
const (
	firstPort = 32768
	ports     = 28232
)

// bindFresh binds to a port that no recent flow had. NAT remembers a flow for two minutes, and
// would not apply its rules to a new one with the same ports.
func bindFresh(fd int, addr netip.AddrPort, index int) error {
	const slot = 10 * time.Millisecond // visits are at least this far apart
	first := int(clock.Now()/int64(slot)) + index*ports/maxFlows
	for i := range ports {
		at := netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(firstPort+(first+i)%ports))
		if !addr.Addr().Is4() {
			at = netip.AddrPortFrom(netip.IPv6Unspecified(), at.Port())
		}
		_, sa := sockaddr(at)
		if err := unix.Bind(fd, sa); !errors.Is(err, unix.EADDRINUSE) {
			return err
		}
	}
	return unix.EADDRINUSE
}

// The number of flows that get their own range of source ports.
const maxFlows = 64

func (f *flow) greet(t *thread) error {
	b := make([]byte, workload.MinDatagram)
	began := clock.Now()
	for wait := int64(greetAgain); ; wait *= 2 {
		said := clock.Now()
		if said-began > int64(connectTimeout) {
			return fmt.Errorf("no answer to a greeting: %w", unix.ETIMEDOUT)
		}
		_, e := send(t.fd, control(f.word, head{kind: hello, run: f.run}, int64(f.run)))
		if e != 0 {
			return e
		}
		for clock.Now() < said+wait {
			n, e := recv(t.fd, b)
			if e == syscall.EAGAIN {
				continue
			}
			if e != 0 {
				return e
			}
			if h, ok := parseHead(b[:n], f.run); ok && h.kind == welcome {
				f.rtt = clock.Now() - said
				return nil
			}
		}
	}
}

func listenDatagrams(addr netip.AddrPort, o Options, w job) (*Server, error) {
	l, err := listenUDP(addr, o.Shared)
	if err != nil {
		return nil, fmt.Errorf("listen on %s by UDP: %w", addr, err)
	}
	s := &Server{listener: l.fd}
	s.threadGroup = newThreadGroup(o, w, w.server, s.brieflyIf(o, l.accept))
	return s, nil
}

func (o Options) fitUDP(s sample.Load) error {
	datagram, m := workload.UDPOf(s), workload.MessagesOf(s)
	switch {
	case o.Crowd:
		return fmt.Errorf("load %s: %w", s.Kind, errNoCrowd)
	case s.Kind == workload.UDP && (datagram.Size < workload.MinDatagram ||
		datagram.Size > workload.MaxDatagram):
		return fmt.Errorf("load %+v: a datagram must have from %d to %d bytes", s,
			workload.MinDatagram, workload.MaxDatagram)
	case s.Kind == workload.UDP && (datagram.Batch < 1 || datagram.Batch > workload.MaxBatch):
		return fmt.Errorf("load %+v: a batch must be from 1 to %d", s, workload.MaxBatch)
	case max(m.Request, m.Reply) > workload.MaxDatagram:
		return fmt.Errorf("load %+v: a datagram holds at most %d bytes", s, workload.MaxDatagram)
	case !(datagram.Rate >= 0):
		return fmt.Errorf("load %+v: the rate must not be negative", s)
	}
	return nil
}
