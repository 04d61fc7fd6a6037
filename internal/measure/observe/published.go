package observe

import (
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/conntrack"
)

// published finds the ports that clients of this machine dial to reach a server: its own, and those
// that packet filters redirect to it.
type published struct {
	dialled []netip.AddrPort // by toll
	next    time.Time        // when to look again
}

// lookForPorts makes the log and the recorder, if there is one, take what clients do at the ports that
// connections show by now. It looks so rarely that it takes little of a CPU, and not again if what
// clients read cannot be recorded.
func (s *serving) lookForPorts() error {
	const times = 200 // what it takes itself
	p := &s.ports
	blind := s.log != nil && (s.writes == nil || !s.writes.Reads())
	if blind || time.Now().Before(p.next) {
		return nil
	}
	began := time.Now()
	all := append([]uint16{s.at.to.Port()}, s.dialled...)
	for _, a := range append(s.redirected(), p.dialled...) {
		all = append(all, a.Port())
	}
	p.next = time.Now().Add(time.Second + times*time.Since(began))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dialled = slices.Compact(slices.Sorted(slices.Values(all)))
	if s.writes == nil {
		return nil
	}
	s.log.Dialled(s.dialled...)
	return s.writes.Dial(s.dialled)
}

// redirected returns the addresses from which packet filters redirect connections to the server, by the
// connections that namespaces know.
func (s *serving) redirected() (from []netip.AddrPort) {
	proto := "tcp"
	if s.udp {
		proto = "udp"
	}
	to := s.addresses()
	for found := true; found; { // a namespace may redirect what another one does
		found = false
		for _, space := range s.spaces {
			_ = space.Visit(func() error {
				// Without a table, to ask for it could load the kernel's connection tracking.
				if use, err := conntrack.Read(); err != nil || use.Entries == 0 {
					return err
				}
				_, _ = conntrack.Translations(proto, func(t conntrack.Translation) bool {
					if t.To != t.Now && slices.Contains(to, t.Now) && !slices.Contains(to, t.To) {
						to, from, found = append(to, t.To), append(from, t.To), true
					}
					return false
				})
				return nil
			})
		}
	}
	return from
}

// addresses returns those of the server's namespace, with its port.
func (s *serving) addresses() (out []netip.AddrPort) {
	out = []netip.AddrPort{s.at.to}
	_ = s.spaces[s.at.space].Visit(func() error {
		all, err := net.InterfaceAddrs()
		for _, a := range all {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				out = append(out, netip.AddrPortFrom(p.Addr().Unmap(), s.at.to.Port()))
			}
		}
		return err
	})
	return out
}
