package dial

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// attempt is one execution of a Call.
type attempt struct {
	Call
	port uint16 // the client's port; 0: the kernel chooses
	long bool   // exchange long data from exactly this port
	out  replica.Outcome

	missing int  // zeros that the answer must have at its end
	ending  bool // the long exchange is complete, except that the server must end it, too

	fd        int
	from      netip.AddrPort // the client's address and port
	token     uint32         // a datagram's token
	connected bool
	spoken    bool // the client has sent a byte because it waited long enough for the server's
	dropped   bool // by a rule
	now       bool // the kernel refused the attempt at once
	got       []byte
	deadline  time.Duration // on the clock caller.now
}

// caller makes attempts.
type caller struct {
	server *server
	epoll  int
	wait   time.Duration
	open   map[int]*attempt
	queue  []due
	early  []due // of attempts whose packets a rule dropped
	ahead  int   // attempts that were started since the stand-ins last ran

	// now is a clock that advances only while the caller and the stand-ins run, so that answers on
	// a busy machine are not too late.
	now, pending time.Duration
	last         time.Time
}

// manner has the limits and timeouts of attempts.
type manner struct {
	most     int           // attempts that are open at once
	together int           // attempts that start between two reads of answers
	wait     time.Duration // for each answer
	least    time.Duration // shortest time to read answers
	look     func() error  // called after each read
	// dropped reports whether a rule has dropped the packet, or its answer, of an attempt that is
	// not connected; nil: not known.
	dropped func(*attempt) bool
}

type due struct {
	*attempt
	at time.Duration
}

const step = 10 * time.Millisecond

// mostAhead bounds the attempts that start before the stand-ins run again. The buffer of a socket
// has room for some 250 datagrams, and stand-ins may not yet have read those of twice as many
// attempts.
const mostAhead = 64

func (n *Net) attempt(ctx context.Context, all []*attempt, m manner) error {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return err
	}
	c := &caller{server: n.server, epoll: epoll, wait: m.wait, open: map[int]*attempt{},
		last: time.Now()}
	defer c.close()
	events := make([]unix.EpollEvent, 256)
	byPlace := inOrder(all)
	for len(byPlace) > 0 || len(c.open) > 0 || c.now < m.least {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		timeout, free := 0, min(m.most-len(c.open), m.together)
		switch {
		case free > 0 && len(byPlace) > 0 && c.ahead >= mostAhead:
			timeout = 1 // ms: nothing tells that the stand-ins have run
		case free > 0 && len(byPlace) > 0:
			left := len(byPlace)
			if byPlace, err = c.start(byPlace, min(free, mostAhead-c.ahead)); err != nil {
				return err
			}
			c.ahead += left - len(byPlace)
		default:
			timeout = int(step.Milliseconds())
		}
		k, _ := unix.EpollWait(epoll, events, timeout) // only EINTR is possible
		for _, e := range events[:max(k, 0)] {
			if a := c.open[int(e.Fd)]; a != nil {
				c.ready(a, e.Events)
			}
		}
		if m.look != nil {
			if err := m.look(); err != nil {
				return err
			}
		}
		if m.dropped != nil {
			c.hasten(m.dropped)
		}
		if err := c.tick(); err != nil {
			return err
		}
	}
	return nil
}

// inOrder returns the attempts with those from the same place next to each other.
func inOrder(all []*attempt) (out []*attempt) {
	var places []*netns.NS
	of := map[*netns.NS][]*attempt{}
	for _, a := range all {
		if of[a.From] == nil {
			places = append(places, a.From)
		}
		of[a.From] = append(of[a.From], a)
	}
	for _, p := range places {
		out = append(out, of[p]...)
	}
	return out
}

func (c *caller) close() {
	for fd := range c.open {
		_ = unix.Close(fd)
	}
	_ = unix.Close(c.epoll)
}

// start starts attempts, at most the given number and all from one place, and returns the rest.
func (c *caller) start(all []*attempt, most int) ([]*attempt, error) {
	from := all[0].From
	err := from.Do(func() error {
		for ; most > 0 && len(all) > 0 && all[0].From == from; most-- {
			err := c.dial(all[0])
			if errors.Is(err, unix.EMFILE) && len(c.open) > 0 {
				return nil // until some are closed
			}
			c.dialled(all[0], err)
			all = all[1:]
		}
		return nil
	})
	return all, err
}

func (c *caller) dialled(a *attempt, err error) {
	if err != nil {
		a.now = true
		c.end(a, gotOf(err), err)
		return
	}
	c.open[a.fd] = a
	if err := watch(c.epoll, a.fd, unix.EPOLLIN|unix.EPOLLOUT|unix.EPOLLET); err != nil {
		c.end(a, replica.Failed, err)
		return
	}
	c.due(a)
}

func (c *caller) due(a *attempt) {
	a.deadline = c.now + c.wait
	c.queue = append(c.queue, due{a, a.deadline})
}

// afterDrop is how long an answer may still come after a rule has dropped the first packet, in case
// another rule had sent a copy of it elsewhere. TCP sends it again only after a second.
const afterDrop = 100 * time.Millisecond

// hasten shortens the wait of attempts whose packets a rule dropped.
func (c *caller) hasten(dropped func(*attempt) bool) {
	for _, a := range c.open {
		if at := c.now + afterDrop; !a.connected && !a.dropped && at < a.deadline && dropped(a) {
			a.dropped, a.deadline = true, at
			c.early = append(c.early, due{a, at})
		}
	}
}

// tick advances the clock and ends attempts that have waited too long.
func (c *caller) tick() error {
	now := time.Now()
	c.pending = min(c.pending+now.Sub(c.last), 2*step)
	c.last = now
	if asked := c.server.asked.Load(); c.server.answered.Load() == asked {
		c.now += c.pending
		c.pending, c.ahead = 0, 0
		c.server.asked.Store(asked + 1)
		c.server.poke()
	}
	if c.server.closing.Load() {
		return errStopped
	}
	c.early = c.expire(c.early)
	c.queue = c.expire(c.queue)
	return nil
}

// expire ends the attempts of a queue that have waited long enough, and returns the rest.
func (c *caller) expire(queue []due) []due {
	for len(queue) > 0 && queue[0].at <= c.now {
		a := queue[0].attempt
		queue = queue[1:]
		switch {
		case c.open[a.fd] != a || a.deadline > c.now:
		case a.connected && !a.spoken && len(a.got) == 0:
			if c.speak(a) {
				a.deadline = c.now + c.wait
				queue = append(queue, due{a, a.deadline})
			}
		case a.connected:
			c.end(a, replica.Silent, nil)
		default:
			c.end(a, replica.Timeout, nil)
		}
	}
	return queue
}

// speak sends a byte to a server that is silent, or ends the attempt and returns false. Behind
// SYNPROXY of Linux 6.18, a server learns only from the client's data, or after a second, that it
// is connected.
func (c *caller) speak(a *attempt) bool {
	a.spoken = true
	if a.long {
		a.missing = 1
	}
	_, err := unix.Write(a.fd, []byte{0})
	if err != nil {
		c.end(a, gotOf(err), err)
	}
	return err == nil
}

func (c *caller) end(a *attempt, got replica.Got, err error) {
	a.out.Got = got
	if !a.from.Addr().IsUnspecified() {
		a.out.Source = a.from.Addr()
	}
	if got != replica.Connected {
		a.out.Socket = -1
	}
	if err != nil {
		a.out.Err = err.Error()
	}
	if a.fd > 0 {
		delete(c.open, a.fd)
		_ = unix.Close(a.fd)
		a.fd = 0
	}
}

// dial starts an attempt. It must be called in the place's thread.
func (c *caller) dial(a *attempt) error {
	to, err := sockaddr(a.To)
	if err != nil {
		return err
	}
	if err := a.open(); err != nil {
		return err
	}
	if a.Proto == "udp" {
		return a.send(to)
	}
	if err := unix.SetsockoptLinger(a.fd, unix.SOL_SOCKET, unix.SO_LINGER,
		&unix.Linger{Onoff: 1}); err != nil { // close by RST, so that neither side keeps the connection
		return err
	}
	err = unix.Connect(a.fd, to)
	a.from = local(a.fd)
	switch {
	case errors.Is(err, unix.EINPROGRESS):
		return nil
	case errors.Is(err, unix.EADDRNOTAVAIL):
		return errNoPort
	}
	return err
}

var errNoPort = errors.New("no local address or port is free (net.ipv4.ip_local_port_range)")

func (a *attempt) open() (err error) {
	if a.fd, err = newSocket(a.Proto, a.To.Addr()); err != nil {
		a.fd = 0
		return err
	}
	if err := a.bind(); err != nil {
		return err
	}
	return reportErrors(a.fd, a.To.Addr())
}

func (a *attempt) bind() error {
	if !a.Source.IsValid() && a.port == 0 {
		return nil
	}
	ip := a.Source
	switch {
	case ip.IsValid():
	case family(a.To.Addr()) == unix.AF_INET:
		ip = netip.IPv4Unspecified()
	default:
		ip = netip.IPv6Unspecified()
	}
	if a.port == 0 { // a port may be used again for other destinations
		if err := options(a.fd, [3]int{unix.SOL_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1}); err != nil {
			return err
		}
	}
	if a.long { // to other destinations, too
		if err := options(a.fd, [3]int{unix.SOL_SOCKET, unix.SO_REUSEADDR, 1}); err != nil {
			return err
		}
	}
	for ; ; a.port++ {
		sa, err := sockaddr(netip.AddrPortFrom(ip, a.port))
		if err == nil {
			err = unix.Bind(a.fd, sa)
		}
		if err != nil && a.long {
			return fmt.Errorf("bind to port %d: %w", a.port, err)
		}
		if a.port == 0 || !errors.Is(err, unix.EADDRINUSE) {
			return err
		}
	}
}

// send sends a datagram from a new socket, after it has connected the attempt's first one, which
// sends nothing, to learn the source address. A socket that was never connected gets answers from
// other addresses. An IPv6 socket that was disconnected gets only those of its old peer.
func (a *attempt) send(to unix.Sockaddr) error {
	if err := unix.Connect(a.fd, to); err != nil {
		return err
	}
	from := local(a.fd)
	_ = unix.Close(a.fd)
	if err := a.open(); err != nil {
		return err
	}
	a.token = rand.Uint32()
	err := unix.Sendto(a.fd, fmt.Appendf(nil, requestForm, a.token), 0, to)
	a.from = netip.AddrPortFrom(from.Addr(), local(a.fd).Port())
	return err
}

func (c *caller) ready(a *attempt, events uint32) {
	if a.Proto == "udp" {
		c.datagram(a, events)
		return
	}
	if !a.connected {
		errno, err := unix.GetsockoptInt(a.fd, unix.SOL_SOCKET, unix.SO_ERROR)
		if err == nil && errno != 0 {
			err = unix.Errno(errno)
		}
		if err == nil && events&unix.EPOLLERR != 0 {
			err = queued(a.fd)
		}
		if err != nil {
			c.end(a, gotOf(err), err)
			return
		}
		if events&unix.EPOLLOUT == 0 {
			return
		}
		if a.from == a.To { // the kernel chose the dialled port
			c.end(a, replica.Failed, errSelf)
			return
		}
		a.connected = true
		if !a.long { // an answer of one segment needs no acknowledgement, which crosses all rules again
			_ = unix.SetsockoptInt(a.fd, unix.IPPROTO_TCP, unix.TCP_QUICKACK, 0)
		}
		c.due(a)
	}
	var b [1 << 14]byte
	for c.open[a.fd] == a {
		switch n, err := unix.Read(a.fd, b[:]); {
		case errors.Is(err, unix.EAGAIN):
			return
		case errors.Is(err, unix.EINTR):
		case err != nil:
			c.end(a, replica.Closed, err)
		case n == 0 && a.ending:
			c.complete(a, a.To)
		case n == 0:
			c.end(a, replica.Closed, nil)
		default:
			a.got = append(a.got, b[:n]...)
			c.answered(a, a.To)
		}
	}
}

func plain(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

var errSelf = errors.New("the connection is with itself")

// answered continues an attempt whose answer has grown, and ends it once that is complete.
func (c *caller) answered(a *attempt, from netip.AddrPort) {
	_, complete, err := parse(a.got)
	switch {
	case !complete && err == nil, a.ending:
		return
	case !a.long || err != nil:
		c.complete(a, from)
		return
	case bytes.Count(a.got, []byte{0}) < a.missing:
		return
	}
	if a.missing == much {
		a.ending = true
		err = unix.Shutdown(a.fd, unix.SHUT_WR)
	} else { // any relay is connected by now; filters may match packets by size
		size := min(3*a.missing+1, much-a.missing)
		a.missing += size
		_, err = unix.Write(a.fd, make([]byte, size))
	}
	if err != nil {
		c.end(a, gotOf(err), err)
		return
	}
	c.due(a)
}

// complete ends an attempt that got its answer.
func (c *caller) complete(a *attempt, from netip.AddrPort) {
	got, _, err := parse(a.got)
	if failed := (*standInError)(nil); errors.As(err, &failed) {
		c.end(a, replica.Failed, err)
		return
	}
	if err != nil { // the answer is not from a stand-in
		got = answer{socket: -1}
	}
	a.out.Socket, a.out.Seen, a.out.Relays = got.socket, got.seen, got.relays
	if from != a.To && from != plain(a.To) {
		a.out.From = from
	}
	c.end(a, replica.Connected, err)
}

func (c *caller) datagram(a *attempt, events uint32) {
	var b [512]byte
	if events&unix.EPOLLIN != 0 {
		if n, sa, err := unix.Recvfrom(a.fd, b[:], 0); err == nil {
			a.got = b[:n]
			c.answered(a, addrPort(sa))
			return
		}
	}
	if events&unix.EPOLLERR == 0 {
		return
	}
	if err := queued(a.fd); err != nil {
		c.end(a, gotOf(err), err)
	}
}
