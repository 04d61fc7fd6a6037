package dial

import (
	"errors"
	"io"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// server runs the stand-ins. Only its goroutine uses ends and flows.
type server struct {
	spaces      []*netns.NS
	sockets     []replica.Socket
	failed      map[int]error
	epoll, wake int
	ends        map[int]*end
	flows       map[flow]int // a relay's sockets towards its target
	buf         []byte
	most        int // limits the number of open ends
	// depth has the number of relays before a connection, by its source address. It is limited,
	// because relays may relay to each other.
	depth map[netip.AddrPort]int

	// The goroutine copies asked to answered, which shows others that it has run.
	asked, answered atomic.Uint64
	closing         atomic.Bool
	done            chan struct{}

	mu        sync.Mutex
	recording bool
	legs      []leg
}

type end struct {
	from  netip.AddrPort // source address of a relay's connection
	ready func()
	gone  func()
	born  time.Time // zero: it never expires
}

// flow identifies a client of a relay.
type flow struct {
	relay  int // the socket's index
	client netip.AddrPort
}

// leg is a connection that a relay made for a client.
type leg struct {
	flow
	from netip.AddrPort
	err  error // the kernel refused the connection at once
}

const (
	backlog  = 4096
	tidy     = 5 * time.Second
	lifetime = 20 * time.Second // longer than any dial waits
)

func serve(spaces []*netns.NS, sockets []replica.Socket, most int) (*server, error) {
	s := &server{
		spaces: spaces, sockets: sockets, most: len(sockets) + most, failed: map[int]error{},
		ends: map[int]*end{}, depth: map[netip.AddrPort]int{},
		flows: map[flow]int{}, buf: make([]byte, 1<<16), epoll: -1, done: make(chan struct{}),
	}
	var err error
	if s.wake, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		return nil, err
	}
	if s.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err == nil {
		err = s.add(s.wake, &end{ready: func() { _, _ = unix.Read(s.wake, s.buf) }})
	}
	for i := 0; err == nil && i < len(spaces); i++ {
		err = spaces[i].Do(func() error { s.listen(i); return nil })
	}
	if err != nil {
		s.release()
		return nil, err
	}
	go s.run()
	return s, nil
}

func (s *server) run() {
	defer close(s.done)
	defer s.release()
	events := make([]unix.EpollEvent, 256)
	for tidied := time.Now(); !s.closing.Load(); {
		n, _ := unix.EpollWait(s.epoll, events, int(tidy.Milliseconds())) // EINTR at most
		asked := s.asked.Load()
		for _, e := range events[:max(n, 0)] {
			if end := s.ends[int(e.Fd)]; end != nil {
				end.ready()
			}
		}
		s.answered.Store(asked)
		if time.Since(tidied) < tidy {
			continue
		}
		tidied = time.Now()
		for fd, end := range s.ends {
			if !end.born.IsZero() && tidied.Sub(end.born) > lifetime {
				s.remove(fd)
			}
		}
	}
}

func (s *server) poke() { _, _ = unix.Write(s.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

func (s *server) close() {
	if !s.closing.Swap(true) {
		s.poke()
		<-s.done
	}
}

func (s *server) release() {
	for fd := range s.ends {
		_ = unix.Close(fd)
	}
	if s.epoll >= 0 {
		_ = unix.Close(s.epoll)
	}
}

func (s *server) add(fd int, e *end) error {
	s.ends[fd] = e
	return watch(s.epoll, fd, unix.EPOLLIN)
}

func (s *server) remove(fd int) {
	e := s.ends[fd]
	if e == nil {
		return
	}
	delete(s.ends, fd)
	delete(s.depth, e.from)
	_ = unix.Close(fd)
	if e.gone != nil {
		e.gone()
	}
}

// listen opens the stand-ins of a namespace. It must be called in that namespace.
func (s *server) listen(space int) {
	for i, want := range s.sockets {
		if want.Space != space {
			continue
		}
		fd, err := listener(want)
		if err == nil {
			ready := func() { s.accept(i, fd) }
			if want.Proto == "udp" {
				ready = func() { s.receive(i, fd) }
			}
			err = s.add(fd, &end{ready: ready})
		}
		if err != nil {
			s.failed[i] = err
		}
	}
}

// listener opens a listening socket. The namespace need not have the address, and several sockets
// may have the same one.
func listener(want replica.Socket) (int, error) {
	ip := want.Addr.Addr().Unmap()
	fd, err := newSocket(want.Proto, ip)
	if err != nil {
		return 0, err
	}
	err = options(fd,
		[3]int{unix.SOL_SOCKET, unix.SO_REUSEADDR, 1},
		[3]int{unix.SOL_SOCKET, unix.SO_REUSEPORT, 1})
	switch {
	case err != nil:
	case ip.Is4():
		err = options(fd, [3]int{unix.IPPROTO_IP, unix.IP_FREEBIND, 1})
	default:
		only := 0
		if want.V6Only {
			only = 1
		}
		err = options(fd,
			[3]int{unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1},
			[3]int{unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, only})
	}
	if err == nil && want.Device != "" {
		err = unix.BindToDevice(fd, want.Device)
	}
	if err == nil && want.Mark != 0 {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, int(want.Mark))
	}
	var sa unix.Sockaddr
	if err == nil {
		sa, err = sockaddr(want.Addr)
	}
	if err == nil {
		err = unix.Bind(fd, sa)
	}
	if err == nil && want.Proto != "udp" {
		err = unix.Listen(fd, backlog)
	}
	if err != nil {
		_ = unix.Close(fd)
	}
	return fd, err
}

func (s *server) accept(i, listener int) {
	for {
		fd, sa, err := unix.Accept4(listener, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err != nil {
			return
		}
		client := addrPort(sa)
		if len(s.ends) > s.most {
			_ = unix.Close(fd)
			continue
		}
		if s.sockets[i].Relay.IsValid() {
			s.relay(flow{i, client}, fd)
			continue
		}
		_, _ = unix.Write(fd, []byte(socketLine(i, client.Addr())))
		s.keep(fd, netip.AddrPort{}, func() {
			b, err := s.read(fd)
			if err != nil {
				s.remove(fd)
			} else if len(b) > 0 {
				_, _ = unix.Write(fd, b)
			}
		}, nil)
	}
}

func (s *server) keep(fd int, from netip.AddrPort, ready, gone func()) {
	if s.add(fd, &end{from: from, ready: ready, gone: gone, born: time.Now()}) != nil {
		s.remove(fd)
	}
}

// read returns the data that have arrived. The error is io.EOF if the other side has ended its
// direction.
func (s *server) read(fd int) ([]byte, error) {
	n, err := unix.Read(fd, s.buf)
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return nil, queued(fd)
	case err == nil && n == 0:
		return nil, io.EOF
	}
	return s.buf[:max(n, 0)], err
}

// relay relays a connection like docker-proxy: when one side ends its direction, so does the relay
// on the other side.
func (s *server) relay(f flow, client int) {
	target, from, err := s.dial(f)
	if err != nil {
		if errors.Is(err, errNoPort) {
			_, _ = unix.Write(client, []byte(failedLine(err)))
		}
		_ = unix.Close(client)
		return
	}
	both := func() { s.remove(client); s.remove(target) }
	half := false // one direction has ended
	forward := func(from, to int, prefix string) func() {
		return func() {
			b, err := s.read(from)
			switch {
			case errors.Is(err, io.EOF) && !half:
				half = true
				if unix.Shutdown(to, unix.SHUT_WR) != nil || rewatch(s.epoll, from, 0) != nil {
					both()
				}
			case err != nil:
				both()
			case len(b) > 0:
				_, _ = unix.Write(to, append([]byte(prefix), b...))
				prefix = ""
			}
		}
	}
	s.ends[client] = &end{born: time.Now(), gone: both, ready: forward(client, target, "")}
	s.ends[target] = &end{from: from, born: time.Now(), gone: both,
		ready: forward(target, client, relayLine(f.relay))}
	if watch(s.epoll, client, unix.EPOLLIN) != nil || watch(s.epoll, target, unix.EPOLLIN) != nil {
		both()
	}
}

// dial connects to a relay's target from the relay's namespace.
func (s *server) dial(f flow) (fd int, from netip.AddrPort, err error) {
	relay := s.sockets[f.relay]
	if s.depth[f.client] >= mostRelays || len(s.ends) > s.most {
		return 0, from, unix.ELOOP
	}
	err = s.spaces[relay.Space].Do(func() error {
		sa, err := sockaddr(relay.Relay)
		if err != nil {
			return err
		}
		if fd, err = newSocket(relay.Proto, relay.Relay.Addr()); err != nil {
			return err
		}
		if err = reportErrors(fd, relay.Relay.Addr()); err == nil {
			err = unix.Connect(fd, sa)
		}
		if err != nil && !errors.Is(err, unix.EINPROGRESS) {
			_ = unix.Close(fd)
			if errors.Is(err, unix.EADDRNOTAVAIL) {
				err = errNoPort
			}
			return err
		}
		return nil
	})
	if err == nil {
		from = local(fd)
		s.depth[from] = s.depth[f.client] + 1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.recording {
		s.legs = append(s.legs, leg{f, from, err})
	}
	return fd, from, err
}

// receive answers datagrams. It sends from the listening socket, so that the kernel chooses the
// source address as for the real program.
func (s *server) receive(i, fd int) {
	for {
		n, sa, err := unix.Recvfrom(fd, s.buf, 0)
		if err != nil {
			return
		}
		b, client := s.buf[:n], addrPort(sa)
		switch {
		case !isRequest(b): // do not answer an answer
		case s.sockets[i].Relay.IsValid():
			if to, ok := s.flow(flow{i, client}, fd, sa); ok {
				_, _ = unix.Write(to, b)
			}
		default:
			_ = unix.Sendto(fd, append([]byte(socketLine(i, client.Addr())), b...), 0, sa)
		}
	}
}

func (s *server) flow(f flow, listener int, client unix.Sockaddr) (fd int, ok bool) {
	if fd, ok = s.flows[f]; ok {
		return fd, true
	}
	fd, from, err := s.dial(f)
	if err != nil {
		return 0, false
	}
	s.flows[f] = fd
	s.keep(fd, from, func() {
		if b, err := s.read(fd); err == nil && len(b) > 0 {
			_ = unix.Sendto(listener, append([]byte(relayLine(f.relay)), b...), 0, client)
			s.remove(fd) // each request has its own socket
		}
	}, func() { delete(s.flows, f) })
	return fd, true
}

// record starts or stops recording the connections that relays make, and returns those recorded so
// far.
func (s *server) record(on bool) []leg {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.legs
	s.recording, s.legs = on, nil
	return kept
}
