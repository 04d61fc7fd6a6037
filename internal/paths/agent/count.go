package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/conntrack"
	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/xfrm"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

const (
	capAdmin  = "CAP_SYS_ADMIN"
	capNet    = "CAP_NET_ADMIN"
	capPtrace = "CAP_SYS_PTRACE"
)

type lackError struct {
	capability string
	err        error
}

func (e *lackError) Error() string { return e.err.Error() }
func (e *lackError) Unwrap() error { return e.err }

func needs(capability string, err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return &lackError{capability, err}
	}
	return err
}

func lacks(err error) string {
	var l *lackError
	if errors.As(err, &l) {
		return l.capability
	}
	return ""
}

type reader = func() (sample.Counters, error)

func (s *server) count(what []Counter) ([]sample.Counters, error) {
	out := make([]sample.Counters, len(what))
	for i, c := range what {
		read, err := s.reader(c)
		if err != nil {
			return nil, err
		}
		if out[i], err = read(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// space is the network namespace of a file; "": the agent's own.
type space struct {
	file string
	own  *netns.NS
}

var _ local.Space = space{}

// Do opens the namespace for each call and closes it again: an open file would keep the namespace
// alive after Docker removes it.
func (s space) Do(f func() error) error {
	if s.file == "" {
		return s.own.Do(f)
	}
	ns, err := netns.Join(s.file)
	if err != nil {
		return needs(capAdmin, err)
	}
	defer ns.Close()
	return ns.Do(f)
}

func (space) Start(*exec.Cmd) error { return errors.ErrUnsupported }

func (s *server) reader(c Counter) (reader, error) {
	at := space{c.Namespace, s.here}
	switch {
	case c.Device != nil:
		read := local.Device(at, c.Device.Name, c.Device.ForwardRx)
		if c.Device.OneWay {
			read = local.OneWay(read)
		}
		return read, nil
	case c.NAT != nil:
		return s.counting(c, s.translated(at).reader(*c.NAT))
	case c.ESP != nil:
		return c.ESP.in(at), nil
	case c.Proxy != nil:
		return s.relaying(c, at)
	}
	return nil, errNonsense
}

// translated counts the connections that the rules of a namespace rewrite. It removes those that
// have ended from the kernel's table: otherwise a connection from the port of one that has ended
// would not count, because it takes the place of its entry.
type translated struct {
	space
	mu sync.Mutex
	of map[NAT]*natCount
}

type natCount struct {
	hits uint64
	open map[netip.AddrPort]bool // clients whose connections had not ended
}

// reader returns a reader that counts each connection once. Others may select the same connections.
func (t *translated) reader(n NAT) reader {
	return func() (sample.Counters, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.of[n] == nil {
			t.of[n] = &natCount{}
		}
		related := map[conntrack.Rewrite]*natCount{}
		for o, c := range t.of {
			if o.Proto == n.Proto && o.To == n.To {
				related[conntrack.Rewrite(o)] = c
			}
		}
		var open, ended []conntrack.Translation
		err := t.Do(func() (err error) {
			open, ended, err = conntrack.Take(n.Proto, n.To.Addr().Unmap().Is6(),
				func(x conntrack.Translation) bool {
					for r := range related {
						if r.Selects(x) {
							return true
						}
					}
					return false
				})
			return needs(capNet, err)
		})
		for r, c := range related {
			c.add(r, open, ended)
		}
		return sample.Counters{Hits: t.of[n].hits}, err
	}
}

func (c *natCount) add(r conntrack.Rewrite, open, ended []conntrack.Translation) {
	now := map[netip.AddrPort]bool{} // whether it is open
	for i, list := range [][]conntrack.Translation{ended, open} {
		for _, x := range list {
			if r.Selects(x) {
				now[x.From] = i > 0
			}
		}
	}
	for client := range now {
		if !c.open[client] {
			c.hits++
		}
	}
	maps.DeleteFunc(now, func(_ netip.AddrPort, open bool) bool { return !open })
	c.open = now
}

func (e ESP) in(at space) reader {
	return func() (c sample.Counters, err error) {
		err = at.Do(func() error {
			f, err := xfrm.Between(e.Client, e.Server)
			if err != nil {
				return needs(capNet, err)
			}
			b, err := xfrm.Between(e.Server, e.Client)
			c = sample.Counters{ForwardBytes: f.Bytes, ForwardPackets: f.Packets,
				BackwardBytes: b.Bytes, BackwardPackets: b.Packets}
			return needs(capNet, err)
		})
		return c, err
	}
}

// translated returns the counts of a namespace.
func (s *server) translated(at space) *translated {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nats[at.file] == nil {
		s.nats[at.file] = &translated{space: at, of: map[NAT]*natCount{}}
	}
	return s.nats[at.file]
}

const maxReaders = 1024

// relaying returns a reader of a relay's sockets. It remembers the sockets that it has seen.
func (s *server) relaying(c Counter, at space) (reader, error) {
	p := local.Proxy{Space: at, PID: c.Proxy.PID, Listens: c.Proxy.Listens, Target: c.Proxy.Target,
		Beside: c.Proxy.Beside}
	read := p.Relayed()
	return s.counting(c, func() (sample.Counters, error) {
		c, err := read()
		return c, needs(capPtrace, err)
	})
}

// counting returns the counter's reader: first at the first call, later the same one, because
// readers remember earlier readings.
func (s *server) counting(c Counter, first reader) (reader, error) {
	key, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.readers[string(key)]; r != nil {
		return r, nil
	}
	if len(s.readers) >= maxReaders {
		return nil, fmt.Errorf("more than %d counters that remember earlier readings", maxReaders)
	}
	var mu sync.Mutex
	s.readers[string(key)] = func() (sample.Counters, error) {
		mu.Lock()
		defer mu.Unlock()
		return first()
	}
	return s.readers[string(key)], nil
}

func (s *server) interfaces(namespace string) (out []Interface, err error) {
	err = space{namespace, s.here}.Do(func() error {
		all, err := link.Survey()
		if err != nil {
			return err
		}
		for _, d := range all {
			info, err := link.Describe(d.Name)
			if err != nil {
				continue
			}
			out = append(out, Interface{Link: sample.Link{
				Name: d.Name, Kind: info.Kind, MTU: info.MTU, Qdisc: info.Qdisc,
				Offloads: info.Offloads, Rate: info.Rate},
				Index: d.Index, Up: d.Up, Peer: d.Peer, Master: d.Master, Addrs: d.Addrs,
				Uplink: d.Uplink})
		}
		return nil
	})
	return out, err
}

func files(dir string) (out []string, err error) {
	all, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range all {
		out = append(out, f.Name())
	}
	return out, nil
}

// Counter selects a counter in a network namespace of an agent's machine. Exactly one kind is set.
type Counter struct {
	// Namespace is the file of a network namespace in the agent's view; "" is its own. Another one
	// needs CAP_SYS_ADMIN.
	Namespace string  `json:"namespace,omitempty"`
	Device    *Device `json:"device,omitempty"`
	NAT       *NAT    `json:"nat,omitempty"`
	ESP       *ESP    `json:"esp,omitempty"`
	Proxy     *Proxy  `json:"proxy,omitempty"`
}

// Device selects a network device's counters, read as by path/local.Device.
type Device struct {
	Name string `json:"name"`
	// ForwardRx means that received packets go to the server.
	ForwardRx bool `json:"forward_rx,omitempty"`
	// OneWay counts only the forward direction, for a device that counts packets of both
	// directions there.
	OneWay bool `json:"one_way,omitempty"`
}

// NAT selects connections that dialled To and that rules redirected to Now. Each one that is in the
// connection tracking table at a reading is a hit once. The reading removes TCP connections that
// have ended from the table. NAT needs CAP_NET_ADMIN.
type NAT struct {
	Proto string         `json:"proto"` // tcp or udp
	To    netip.AddrPort `json:"to"`
	Now   netip.AddrPort `json:"now"`
	// From is the client's address, As the address that replaces it; invalid: any.
	From netip.Addr `json:"from,omitzero"`
	As   netip.Addr `json:"as,omitzero"`
	// how rules must have rewritten the client's address
	Source conntrack.Source `json:"source,omitempty"`
}

// ESP selects what the ESP states between two machines have carried. It needs CAP_NET_ADMIN.
type ESP struct {
	Client netip.Addr `json:"client"` // source of packets to the server
	Server netip.Addr `json:"server"`
}

// Proxy selects the traffic of a docker-proxy for TCP, read as by path/local.Proxy. It needs
// CAP_SYS_PTRACE and the machine's PID namespace.
type Proxy struct {
	PID     int            `json:"pid"` // in the agent's view
	Listens uint16         `json:"listens"`
	Target  netip.AddrPort `json:"target"`
	Beside  bool           `json:"beside,omitempty"` // the client is on the proxy's machine
}
