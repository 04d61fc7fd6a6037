package agent

import (
	"encoding/json"
	"errors"
	"fmt"
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
		return s.counting(c, c.NAT.in(at))
	case c.ESP != nil:
		return c.ESP.in(at), nil
	case c.Proxy != nil:
		return s.relaying(c, at)
	}
	return nil, errNonsense
}

func (n NAT) in(at space) reader {
	var (
		hits uint64
		last map[netip.AddrPort]bool
	)
	return func() (sample.Counters, error) {
		var now []netip.AddrPort
		err := at.Do(func() (err error) {
			now, err = conntrack.Rewritten(conntrack.Rewrite{
				Proto: n.Proto, To: n.To, Now: n.Now, From: n.From, As: n.As, Source: n.Source})
			return needs(capNet, err)
		})
		if err != nil {
			return sample.Counters{}, err
		}
		seen := make(map[netip.AddrPort]bool, len(now))
		for _, client := range now {
			if seen[client] = true; !last[client] {
				hits++
			}
		}
		last = seen
		return sample.Counters{Hits: hits}, nil
	}
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
