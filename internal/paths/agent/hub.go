package agent

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

const (
	// the time after which a side that receives nothing gives up
	silence = 15 * time.Second
	// number of pings in that time
	pings = 6
	// during a hush, an agent may receive nothing for silence/bearable without a ping beforehand
	bearable = 3
	// the wait for the answers to pings before a hush
	settle = 500 * time.Millisecond
)

// Hub is the side of the measuring toll that agents connect to.
type Hub struct {
	tls     *tls.Config
	version string
	silence time.Duration
	door    door
	moved   atomic.Uint64

	tasks sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	doors   []net.Listener
	changed chan struct{} // closed and replaced when an agent connected or was refused
	agents  map[string]*Agent
	refused map[string]error
	awaited map[string]chan *stream
	conns   map[net.Conn]bool
	hushes  int
	pinging int
	settled chan struct{}
}

var _ path.Channel = (*Hub)(nil)

var errClosed = errors.New("the connection to it was closed")

// Listen starts a hub that accepts agents with the key and the same version. Port 0 is any free
// port. The caller closes the hub.
func Listen(addr netip.AddrPort, key *Key, version string) (*Hub, error) {
	return listen(addr, key, version, silence)
}

func listen(addr netip.AddrPort, key *Key, version string, silence time.Duration) (*Hub, error) {
	// The hub pings agents itself: the kernel's keep-alive probes could fall into windows.
	c := net.ListenConfig{KeepAlive: -1}
	l, err := c.Listen(context.Background(), "tcp", addr.String())
	if err != nil {
		return nil, fmt.Errorf("wait for agents: %w", err)
	}
	h := newHub(key, version, silence)
	return h, h.Serve(l)
}

// NewHub returns a hub. It does not listen until Serve is called.
func NewHub(key *Key, version string) *Hub { return newHub(key, version, silence) }

func newHub(key *Key, version string, silence time.Duration) *Hub {
	return &Hub{tls: key.config(), version: version, silence: silence, door: newDoor(),
		changed: make(chan struct{}), agents: map[string]*Agent{}, refused: map[string]error{},
		awaited: map[string]chan *stream{}, conns: map[net.Conn]bool{}}
}

// Serve also accepts agents' connections from l. The hub closes l.
func (h *Hub) Serve(l net.Listener) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return errors.Join(errClosed, l.Close())
	}
	h.doors = append(h.doors, l)
	h.tasks.Go(func() { h.accept(l) })
	return nil
}

// Addr returns the hub's address after Listen.
func (h *Hub) Addr() netip.AddrPort {
	h.mu.Lock()
	defer h.mu.Unlock()
	a, _ := netip.ParseAddrPort(h.doors[0].Addr().String())
	return a
}

func (h *Hub) accept(l net.Listener) {
	const again = 50 * time.Millisecond
	for {
		c, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed), err != nil && over(l):
			return
		case err != nil: // no file descriptor is free, or the other side closed the connection
			time.Sleep(again)
			continue
		}
		if !h.keep(c) {
			c.Close()
			return
		}
		g := h.door.enter(c)
		h.tasks.Go(func() {
			defer h.door.leave(g)
			if err := h.meet(g); err != nil {
				h.door.turn(c.RemoteAddr(), err)
				h.drop(c)
			}
		})
	}
}

func over(l net.Listener) bool {
	c, ok := l.(interface{ IsClosed() bool })
	return ok && c.IsClosed()
}

func (h *Hub) keep(c net.Conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.conns[c] = true
	}
	return !h.closed
}

// drop closes a connection without a message, because the other side may not read any more.
func (h *Hub) drop(c net.Conn) {
	h.mu.Lock()
	delete(h.conns, c)
	h.mu.Unlock()
	c.Close()
}

func (h *Hub) meet(g *guest) error {
	raw := g.conn
	if err := raw.SetDeadline(time.Now().Add(handshake)); err != nil {
		return err
	}
	counted := &counted{Conn: raw, all: &h.moved, spoke: &g.spoke}
	c := tls.Server(counted, h.tls)
	if err := c.Handshake(); err != nil {
		return err
	}
	counted.on.Store(true) // Moved does not include bytes before authentication
	in := bufio.NewReader(c)
	line, err := receive(in, maxOpening)
	if err != nil {
		return err
	}
	o, err := parseOpening(line)
	if err != nil {
		return err
	}
	h.door.leave(g)
	if err := raw.SetDeadline(time.Time{}); err != nil {
		return err
	}
	if o.Hello == nil {
		return h.deliver(o.Token, &stream{conn: c, in: in, raw: raw, hub: h})
	}
	return h.greet(*o.Hello, &control{conn: c, in: in, limit: h.silence}, raw)
}

func (h *Hub) greet(hello Hello, line *control, raw net.Conn) error {
	a := &Agent{hub: h, hello: hello, line: line, raw: raw, waiting: map[uint64]chan answer{},
		procs: map[uint64]*remote{}, lost: make(chan struct{})}
	var why error
	h.mu.Lock()
	switch {
	case hello.Version != h.version:
		why = &machine.UnsupportedError{Missing: fmt.Sprintf(
			"the agent %s on %s is toll %s, this is toll %s", hello.ID, hello.Host, hello.Version,
			h.version),
			Remedy: "run the same version of toll on all machines"}
		h.refused[hello.ID] = why
	case h.agents[hello.ID] != nil:
		why = fmt.Errorf("another agent %s is connected already, from %s", hello.ID,
			h.agents[hello.ID].hello.Host)
	case h.closed:
		why = errClosed
	default:
		h.agents[hello.ID] = a
		delete(h.refused, hello.ID)
	}
	h.mu.Unlock()
	if why != nil {
		h.announce()
		_ = line.send(welcome{Refused: why.Error()})
		return why
	}
	if err := line.send(welcome{Silence: h.silence}); err != nil {
		a.lose(err)
		return err
	}
	a.spoken.Store(now())
	h.mu.Lock()
	a.ready = true
	h.mu.Unlock()
	h.announce()
	h.tasks.Go(a.listen)
	h.tasks.Go(a.keepAlive)
	return nil
}

func (h *Hub) announce() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.changed)
	h.changed = make(chan struct{})
}

// Wait returns the agent with the given ID. It waits until the agent connects or ctx ends. If the
// hub refused the agent because of its version, it returns that error.
func (h *Hub) Wait(ctx context.Context, id string) (*Agent, error) {
	for {
		h.mu.Lock()
		a, why := h.agents[id], h.refused[id]
		changed, closed := h.changed, h.closed
		here := a != nil && a.ready
		h.mu.Unlock()
		switch {
		case here:
			return a, nil
		case why != nil:
			return nil, why
		case closed:
			return nil, fmt.Errorf("wait for agent %s: %w", id, errClosed)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("agent %s did not connect: %w%s", id, context.Cause(ctx), h.door.told())
		}
	}
}

func (h *Hub) forget(a *Agent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.agents[a.hello.ID] == a {
		delete(h.agents, a.hello.ID)
	}
}

type expected struct {
	token  string
	came   <-chan *stream
	forget func()
}

func (h *Hub) expect() (expected, error) {
	const bytes = 32
	b := make([]byte, bytes)
	if _, err := rand.Read(b); err != nil {
		return expected{}, err
	}
	token := hex.EncodeToString(b)
	c := make(chan *stream, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.awaited[token] = c
	return expected{token, c, func() {
		h.mu.Lock()
		delete(h.awaited, token)
		h.mu.Unlock()
		select {
		case s := <-c:
			_ = s.Close()
		default:
		}
	}}, nil
}

var errToken = errors.New("no process is waiting for this connection")

func (h *Hub) deliver(token string, s *stream) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.awaited[token]
	if c == nil {
		return errToken
	}
	delete(h.awaited, token)
	c <- s
	return nil
}

// Moved returns the bytes written and read on the agents' connections.
func (h *Hub) Moved() uint64 { return h.moved.Load() }

// Close closes all connections, so the agents kill their children and exit. A second Close has no
// effect.
func (h *Hub) Close() error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil
	}
	h.closed = true
	var agents []*Agent
	for _, a := range h.agents {
		agents = append(agents, a)
	}
	var conns []net.Conn
	for c := range h.conns {
		conns = append(conns, c)
	}
	doors := h.doors
	h.mu.Unlock()
	var errs []error
	for _, l := range doors {
		errs = append(errs, l.Close())
	}
	for _, a := range agents {
		a.lose(errClosed)
	}
	for _, c := range conns {
		c.Close()
	}
	h.announce()
	h.tasks.Wait()
	return errors.Join(errs...)
}

// counted is a connection that counts its bytes once on is set.
type counted struct {
	net.Conn
	on    atomic.Bool
	all   *atomic.Uint64
	spoke *atomic.Bool
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.on.Load() {
		c.spoke.Store(true)
	}
	c.add(n)
	return n, err
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.add(n)
	return n, err
}

func (c *counted) add(n int) {
	if n > 0 && c.on.Load() {
		c.all.Add(uint64(n))
	}
}
