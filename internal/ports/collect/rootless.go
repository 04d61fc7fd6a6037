package collect

import (
	"net/netip"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/ports"
)

// A docker-proxy runs for each port in rootlesskit's namespaces. Its arguments name the port and
// the container.
func (c *collector) rootless(proxies []ports.Proxy) {
	for _, l := range c.f.Listeners {
		if !holds(l) {
			continue
		}
		var best ports.Proxy
		for _, p := range proxies {
			if p.Proto == l.Proto && p.Host.Port() == l.Addr.Port() && c.runs(l, p) &&
				(best.PID == 0 || nearer(p, best, l)) {
				best = p
			}
		}
		if best.PID != 0 {
			c.addRootless(l, best)
		}
	}
}

// runs reports whether the rootlesskit started the docker-proxy. Another one's may have the same
// port in its own namespace.
func (c *collector) runs(l ports.Listener, p ports.Proxy) bool {
	all, known := c.ancestors[p.PID]
	return !known || slices.ContainsFunc(l.Owners, func(o ports.Process) bool {
		return slices.Contains(all, o.PID)
	})
}

// Inside the namespaces, a wildcard is a loopback address of its family.
func nearer(a, b ports.Proxy, l ports.Listener) bool {
	rank := func(p ports.Proxy) int {
		switch {
		case p.Host == l.Addr:
			return 2
		case p.Host.Addr().Is4() == l.Addr.Addr().Is4():
			return 1
		}
		return 0
	}
	return rank(a) > rank(b)
}

func (c *collector) rootlessPublished() {
	for _, l := range c.f.Listeners {
		if !holds(l) || slices.ContainsFunc(c.f.Proxies, func(p ports.Proxy) bool {
			return p.PID == l.Owners[0].PID && p.Proto == l.Proto && p.Host == l.Addr
		}) {
			continue
		}
		for _, x := range c.f.Containers {
			for _, p := range x.Published {
				if x.Rootless && len(x.Addrs) > 0 && p.Proto == l.Proto && p.Host == l.Addr {
					c.addRootless(l, ports.Proxy{Proto: p.Proto,
						Container: netip.AddrPortFrom(x.Addrs[0], p.Port)})
				}
			}
		}
	}
}

func holds(l ports.Listener) bool {
	return len(l.Owners) > 0 && l.Owners[0].Name == ports.Rootlesskit
}

func (c *collector) addRootless(l ports.Listener, p ports.Proxy) {
	p.PID, p.Host, p.Rootless = l.Owners[0].PID, l.Addr, true
	c.f.Proxies = append(c.f.Proxies, p)
}
