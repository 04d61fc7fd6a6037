package collect

import (
	"net/netip"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/ports"
)

// rootless finds where a rootlesskit's ports lead to. It runs a docker-proxy for
// each in its own namespaces, whose arguments name the same port and the container.
func (c *collector) rootless(proxies []ports.Proxy) {
	for _, l := range c.f.Listeners {
		if !holds(l) {
			continue
		}
		var best ports.Proxy
		for _, p := range proxies {
			if p.Proto == l.Proto && p.Host.Port() == l.Addr.Port() && (best.PID == 0 || nearer(p, best, l)) {
				best = p
			}
		}
		if best.PID != 0 {
			c.addRootless(l, best)
		}
	}
}

// nearer reports whether a proxy's address is more like the socket's than that of
// another. Inside, wildcards are loopback addresses of their family.
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

// rootlessPublished adds the ports that the engine reports and that no proxy
// serves.
func (c *collector) rootlessPublished() {
	for _, l := range c.f.Listeners {
		if !holds(l) || slices.ContainsFunc(c.f.Proxies, func(p ports.Proxy) bool { return p.PID == l.Owners[0].PID && p.Proto == l.Proto && p.Host == l.Addr }) {
			continue
		}
		for _, x := range c.f.Containers {
			for _, p := range x.Published {
				if x.Rootless && len(x.Addrs) > 0 && p.Proto == l.Proto && p.Host == l.Addr {
					c.addRootless(l, ports.Proxy{Proto: p.Proto, Container: netip.AddrPortFrom(x.Addrs[0], p.Port)})
				}
			}
		}
	}
}

// holds reports whether the socket is a rootlesskit's.
func holds(l ports.Listener) bool { return len(l.Owners) > 0 && l.Owners[0].Name == ports.Rootlesskit }

func (c *collector) addRootless(l ports.Listener, p ports.Proxy) {
	p.PID, p.Host, p.Rootless = l.Owners[0].PID, l.Addr, true
	c.f.Proxies = append(c.f.Proxies, p)
}
