package docker

import (
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// drain removes the path's connection tracking entries. In the containers these are all entries, on
// the machine only those of the path's connections.
func (s *site) drain() (sample.Headroom, error) {
	spots := []local.Swept{{Space: s.engine.ns, Where: s.engine.name, Ours: s.ours()}}
	if s.at != s.engine.spot {
		spots = append(spots, local.Swept{Space: s.at.ns, Where: s.at.name, Ours: s.ours()})
	}
	for _, boxes := range [][]*box{s.Servers, s.Clients} {
		for _, b := range boxes {
			if !b.shares {
				spots = append(spots, local.Swept{Space: b.ns, Where: b.what})
			}
		}
	}
	return local.Drain(spots, len(s.path.Proxies) > 0)
}

// ours returns a function that reports whether an address is a container's, or one that clients
// dial.
func (s *site) ours() func(netip.AddrPort) bool {
	addrs, ports := map[netip.Addr]bool{}, map[netip.AddrPort]bool{}
	for _, boxes := range [][]*box{s.Servers, s.Clients} {
		for _, b := range boxes {
			for _, a := range []netip.Addr{b.addr, b.addr6} {
				if a.IsValid() {
					addrs[a] = true
				}
			}
		}
	}
	for _, c := range s.path.Clients {
		if s.path.Spec.Mode == mode.Shared {
			break // a container's loopback addresses are not the machine's
		}
		ports[c.Dial] = true
		if s.path.Second != 0 {
			ports[netip.AddrPortFrom(c.Dial.Addr(), s.path.Second)] = true
		}
	}
	return func(end netip.AddrPort) bool { return addrs[end.Addr()] || ports[end] }
}
