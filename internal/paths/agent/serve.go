package agent

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/journal"
	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/xfrm"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/meter"
)

// Config configures an agent.
type Config struct {
	Bundle []byte           // the agents' side of the run's key
	Dial   []netip.AddrPort // addresses of the hub, tried in turn
	// connects to the hub, instead of Dial
	Open    func() (net.Conn, error)
	ID      string
	Name    string // "": the host name
	Version string
	// permitted first arguments of processes
	Starts []string
	// makes containers here, for agents behind Open; may be nil
	Engine Engine
	// adds routes here; may be nil
	Router Router
	// how long the agent tries to reach its hub; 0: a minute
	Patience time.Duration
}

const (
	usualPatience = time.Minute
	dialAgain     = 300 * time.Millisecond
	// the wait for the output and input of an ended process
	lastWords = 2 * time.Second
)

// Main runs an agent until its hub releases it or ctx ends. It returns nil if the hub released it.
// All child processes have ended when Main returns.
func Main(ctx context.Context, c Config) (err error) {
	s := &server{config: c, children: map[uint64]*child{}, meterings: map[uint64]*metering{},
		readers: map[string]reader{}, nats: map[string]*translated{}}
	if s.tls, err = openBundle(c.Bundle); err != nil {
		return err
	}
	if s.meter, err = meter.New(); err != nil {
		return err
	}
	s.throttled = machine.Machine{}.Throttler()
	if s.here, err = netns.Here(); err != nil {
		return err
	}
	defer s.here.Close() // kills what is left
	hello, err := s.hello()
	if err != nil {
		return err
	}
	if err := s.reach(ctx, hello); err != nil {
		return err
	}
	forget := context.AfterFunc(ctx, func() { s.line.conn.Close() })
	defer forget()
	err = s.obey()
	s.killAll()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("the hub was silent for %s", s.silence)
	}
	return err
}

type server struct {
	config    Config
	tls       *tls.Config
	hub       netip.AddrPort // where it was reached
	line      *control
	raw       *held
	silence   time.Duration
	channel   channel
	here      *netns.NS
	meter     *meter.Meter
	throttled func() int // nil: the agent has no CPU limit

	tasks sync.WaitGroup

	mu        sync.Mutex
	over      bool
	children  map[uint64]*child
	meterings map[uint64]*metering
	readers   map[string]reader // remember earlier readings
	nats      map[string]*translated
}

func (s *server) hello() (opening, error) {
	host, err := os.Hostname()
	if err != nil {
		return opening{}, err
	}
	name := s.config.Name
	if name == "" {
		name = host
	}
	boot, _ := journal.BootID()      // "" if unknown
	e, _ := machine.Machine{}.Read() // "" if unknown
	return opening{Hello: &Hello{ID: s.config.ID, Name: name, Host: host,
		Kernel: e.Kernel, OS: e.OS, CPUModel: e.CPUModel,
		Boot: boot, Version: s.config.Version, CPUs: runtime.NumCPU()}}, nil
}

var errRefused = errors.New("refused by the hub")

func (s *server) reach(ctx context.Context, hello opening) error {
	p := s.config.Patience
	if p <= 0 {
		p = usualPatience
	}
	if s.config.Open != nil {
		return s.present(ctx, netip.AddrPort{}, hello)
	}
	if len(s.config.Dial) == 0 {
		return errors.New("no address of a hub was given")
	}
	ctx, cancel := context.WithTimeout(ctx, p)
	defer cancel()
	last := errors.New("no time was left")
	for {
		for _, at := range s.config.Dial {
			err := s.present(ctx, at, hello)
			if err == nil || errors.Is(err, errRefused) {
				return err
			}
			if ctx.Err() == nil {
				last = err
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("reach the hub: %w", last)
		case <-time.After(dialAgain):
		}
	}
}

func (s *server) present(ctx context.Context, at netip.AddrPort, hello opening) error {
	c, err := s.dial(ctx, at, hello)
	if err != nil {
		return err
	}
	if err := c.SetReadDeadline(time.Now().Add(handshake)); err != nil {
		return err
	}
	line, err := receive(c.in, maxOpening)
	if err != nil {
		_ = c.Close()
		return fmt.Errorf("%s: %w", at, err)
	}
	w, err := parse[welcome](line)
	if err == nil && (w.Silence < time.Millisecond || w.Silence > maxSilence) && w.Refused == "" {
		err = errNonsense
	}
	switch {
	case err != nil:
		_ = c.Close()
		return fmt.Errorf("%s: %w", at, err)
	case w.Refused != "":
		_ = c.Close()
		return fmt.Errorf("%w: %s", errRefused, clean(w.Refused))
	}
	s.hub, s.silence, s.raw = at, w.Silence, c.raw
	s.line = &control{conn: c.Conn, in: c.in, limit: w.Silence}
	return nil
}

type dialled struct {
	*tls.Conn
	in  *bufio.Reader
	raw *held
}

// dial connects to the hub. The TCP connection is counted until it is closed.
func (s *server) dial(ctx context.Context, at netip.AddrPort, first opening) (dialled, error) {
	ctx, cancel := context.WithTimeout(ctx, handshake)
	defer cancel()
	open := s.config.Open
	if open == nil {
		open = func() (net.Conn, error) {
			d := net.Dialer{KeepAlive: -1}
			return d.DialContext(ctx, "tcp", at.String())
		}
	}
	raw, err := open()
	if err != nil {
		return dialled{}, err
	}
	held := s.channel.add(raw)
	c := tls.Client(held, s.tls)
	line := &control{conn: c, limit: handshake}
	if err = c.HandshakeContext(ctx); err == nil {
		err = line.send(first)
	}
	if err != nil {
		_ = c.Close()
		return dialled{}, fmt.Errorf("%s: %w", at, err)
	}
	return dialled{c, bufio.NewReader(c), held}, c.SetDeadline(time.Time{})
}

// obey carries out requests until the connection ends or the hub is silent for too long. A hush
// permits a longer silence.
func (s *server) obey() error {
	var bears time.Time // end of the longest hush
	for {
		if err := s.line.conn.SetReadDeadline(later(bears, time.Now().Add(s.silence))); err != nil {
			return err
		}
		before := s.raw.read.Load()
		line, err := receive(s.line.in, maxLine)
		if err != nil {
			return err
		}
		took := s.raw.read.Load() - before
		o, err := parseRequest(line)
		if err != nil {
			return err
		}
		if o.Hush > 0 {
			bears = later(bears, time.Now().Add(s.silence+o.Hush))
		}
		switch {
		case o.Ping, o.Hush > 0:
			err = s.line.send(answer{ID: o.ID})
		case o.Clock: // at once: any delay adds to the clock's uncertainty
			err = s.line.send(answer{ID: o.ID, Clock: now()})
		default:
			go func() {
				a, err := s.do(o, took)
				if err != nil {
					a.Error, a.Lacks, a.Remedy = err.Error(), lacks(err), remedyOf(err)
				}
				a.ID = o.ID
				line, err := encode(a)
				if err != nil {
					line, _ = encode(answer{ID: o.ID, Error: "answer: " + clean(err.Error())})
				}
				_ = s.line.write(line) // if that fails, the connection has ended
			}()
		}
		if err != nil {
			return err
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// do carries out a request. took is the number of bytes that the request itself put on the channel.
func (s *server) do(o request, took uint64) (a answer, err error) {
	switch {
	case o.Start != nil:
		a.PID, err = s.start(*o.Start)
	case o.Kill != 0:
		s.kill(o.Kill)
	case o.Meter != nil:
		s.measure(*o.Meter)
		a.Clock = now()
	case o.Use != 0:
		a.Use, err = s.use(o.Use, took)
	case len(o.Counters) > 0:
		a.Counters, err = s.count(o.Counters)
		a.None = errors.Is(err, xfrm.ErrNone)
	case o.List != nil && o.List.Dir != "":
		a.Files, err = files(o.List.Dir)
	case o.List != nil:
		a.Interfaces, err = s.interfaces(o.List.Namespace)
	case o.Inspect != nil:
		a.Settings, err = s.inspect(*o.Inspect)
	case o.Box != nil:
		a.Engine, err = s.box(*o.Box)
	case o.Knock != nil:
		o.Knock.Do()
	case o.Lookup != "":
		a.Addrs, a.Took, err = lookup(o.Lookup)
	case o.Proxy:
		a.Text, err = s.kubeProxy()
	case o.Route != nil:
		err = s.here.Do(func() error {
			w, err := link.RouteTo(*o.Route)
			a.Way = &w
			return err
		})
	case o.Lay != nil:
		err = s.lay(*o.Lay)
	case o.Cards != "":
		a.Cards, err = s.cards(o.Cards)
	}
	return a, err
}
