package collect

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
)

// relay is a process that listens for servers in another network namespace.
type relay struct {
	ports.Process
	space    string // the servers'; "" if unknown
	uid      uint32
	forwards []forward
	all      bool // the forwards are all of the relay's ports
	source   ports.Source
}

// forward maps a relay's port to the port that it dials in the other namespace. Host port 0 stands
// for all ports; to is 0 if it is the host port's number.
type forward struct {
	proto string
	host  netip.AddrPort
	to    uint16
}

func (r *relay) forward(l ports.Listener) (to uint16, ok bool) {
	for _, f := range r.forwards {
		a, b := f.host.Addr(), l.Addr.Addr()
		if f.proto != l.Proto || f.host.Port() != 0 && f.host.Port() != l.Addr.Port() ||
			a.IsValid() && a != b && (!a.IsUnspecified() || !b.IsUnspecified()) {
			continue
		}
		if f.to == 0 {
			return l.Addr.Port(), true
		}
		return f.to, true
	}
	return 0, false
}

// relays adds a proxy for each socket of a relay. Behind it is a docker-proxy in the other
// namespace, or that namespace itself. A brief collector does not query relays for their forwards.
func (c *collector) relays(proxies []ports.Proxy) {
	known := map[int]*relay{}
	var outgoing []string
	c.f.Listeners = slices.DeleteFunc(c.f.Listeners, func(l ports.Listener) bool {
		if len(l.Owners) == 0 || !ports.IsRelay(l.Owners[0].Name) {
			return false
		}
		o := l.Owners[0]
		if known[o.PID] == nil {
			known[o.PID] = c.relay(o)
		}
		r := known[o.PID]
		to, ok := r.forward(l)
		if !ok && l.Proto == "udp" && r.sends() && !c.brief {
			if r.all {
				return true
			}
			if low := clientPorts(); low[0] <= l.Addr.Port() && l.Addr.Port() <= low[1] {
				outgoing = append(outgoing, fmt.Sprintf("%d (%s)", l.Addr.Port(), o.Name))
				return true
			}
		}
		p := ports.Proxy{PID: o.PID, Proto: l.Proto, Host: l.Addr, Program: o.Name, Rootless: true,
			Space: r.space, Container: netip.AddrPortFrom(netip.IPv4Unspecified(), to), Source: r.source}
		if next := c.next(p, proxies); next != nil {
			p.Next, p.Container, p.Space = &ports.Next{PID: next.PID, Host: next.Host},
				next.Container, next.Space
		}
		c.f.Proxies = append(c.f.Proxies, p)
		return false
	})
	if len(outgoing) > 0 {
		c.missing("UDP ports "+strings.Join(outgoing, ", "),
			"they may be published, or only carry what the relay's containers send", "")
	}
}

// sends reports whether the relay has sockets for what its containers send, in addition to those of
// its ports.
func (r *relay) sends() bool {
	return slices.Contains([]string{ports.Slirp4netns, ports.Pasta, ports.Passt}, r.Name)
}

// next returns the docker-proxy that the relay reaches, in its own namespace or started by it.
// Others may have the same port elsewhere.
func (c *collector) next(r ports.Proxy, proxies []ports.Proxy) (best *ports.Proxy) {
	port := r.Container.Port()
	if port == 0 {
		port = r.Host.Port()
	}
	for _, p := range proxies {
		if p.Proto == r.Proto && p.Host.Port() == port && c.reaches(r, p) &&
			(best == nil || nearer(p, *best, r.Host)) {
			best = &p
		}
	}
	return best
}

func (c *collector) reaches(r, p ports.Proxy) bool {
	if r.Space != "" && p.Space != "" {
		return r.Space == p.Space
	}
	return slices.Contains(c.ancestors[p.PID], r.PID)
}

// nearer reports whether a's address is closer to host than b's: equal, or else of the same family.
// For a port published at a wildcard, docker-proxy listens at the family's loopback address there.
func nearer(a, b ports.Proxy, host netip.AddrPort) bool {
	rank := func(p ports.Proxy) int {
		switch {
		case p.Host == host:
			return 2
		case p.Host.Addr().Is4() == host.Addr().Is4():
			return 1
		}
		return 0
	}
	return rank(a) > rank(b)
}

func (c *collector) relay(o ports.Process) *relay {
	r := &relay{Process: o}
	switch o.Name {
	case ports.Pasta, ports.Passt:
		r.space = c.only(netns.Held(o.PID))
		r.source = ports.SourceMachines
		args := arguments(o.PID)
		r.forwards, r.all = pastaForwards(args, o.Name == ports.Pasta)
		if at := controlSocket(args); at != "" && !c.brief {
			r.uid = owner(o.PID)
			r.askPasta(at, c.deadline())
		}
	case ports.Slirp4netns:
		r.space = c.only(netns.Held(o.PID))
		r.source = ports.SourceOthers
		if !c.brief {
			r.askSlirp4netns(c.deadline())
		}
	case ports.Rootlessport:
		r.space = c.childSpace(o.PID, "")
		r.source = ports.SourceHidden
	case ports.Rootlesskit:
		api := listensAt(o.PID)
		r.space = c.childSpace(o.PID, stateDir(api))
		if !c.brief {
			r.askRootlesskit(c.deadline())
		}
	case ports.Gvproxy:
		r.source = ports.SourceHidden
	}
	return r
}

// only returns the one namespace that is not the machine's, or "" if there are none or several.
func (c *collector) only(ids []string, err error) string {
	ids = slices.DeleteFunc(ids, func(id string) bool { return id == c.f.Space })
	if err != nil || len(ids) != 1 {
		return ""
	}
	return ids[0]
}

// childSpace returns the namespace in which a process's children run, or with a detached network
// the one that is mounted in its directory of state.
func (c *collector) childSpace(pid int, state string) string {
	var ids []string
	for _, p := range c.procs {
		if p.parent != pid {
			continue
		}
		if p.space != "" {
			ids = append(ids, p.space)
		}
		if id := netns.MountedAt(p.PID, path.Join(state, "netns")); id != "" && state != "" {
			return id
		}
	}
	slices.Sort(ids)
	return c.only(slices.Compact(ids), nil)
}

// published sets the containers behind relays as the engine lists them.
func (c *collector) published() {
	for i := range c.f.Proxies {
		p := &c.f.Proxies[i]
		for _, x := range c.f.Containers {
			for _, at := range x.Published {
				if !p.Rootless || p.Next != nil || p.ID != "" || at.Proto != p.Proto ||
					!alike(at.Host, p.Host) {
					continue
				}
				switch {
				case x.Space != "" && x.Space == p.Space:
					p.ID, p.Container = x.ID, netip.AddrPortFrom(netip.IPv4Unspecified(), at.Port)
				case x.Rootless && len(x.Addrs) > 0 && c.mayReach(*p, x):
					p.ID, p.Container = x.ID, netip.AddrPortFrom(x.Addrs[0], at.Port)
				}
			}
		}
	}
}

// mayReach reports whether the container of a rootless engine may be behind the relay: their
// networks are linked, or it is not known whether they are.
func (c *collector) mayReach(p ports.Proxy, x ports.Container) bool {
	known := slices.ContainsFunc(x.Devices, func(d ports.Device) bool { return d.PeerSpace != "" })
	return p.Space == "" || !known && p.Program == ports.Rootlesskit ||
		slices.ContainsFunc(x.Devices, func(d ports.Device) bool {
			return d.PeerSpace == p.Space
		})
}

// alike reports whether a relay at b may serve a port published at a. Wildcards of both families
// are alike, because a relay may take both.
func alike(a, b netip.AddrPort) bool {
	return a == b || a.Port() == b.Port() && a.Addr().IsUnspecified() && b.Addr().IsUnspecified()
}

// relaySpaces returns the namespaces in which relays' servers are.
func (c *collector) relaySpaces() map[string]bool {
	out := map[string]bool{}
	for _, p := range c.f.Proxies {
		if p.Rootless && p.Space != "" {
			out[p.Space] = true
		}
	}
	return out
}

// ends reports whether a relay's server is in the namespace itself. A rootlesskit's may be an
// engine's network, where the engine itself holds the port for containers.
func (c *collector) ends(x ports.Container) bool {
	return slices.ContainsFunc(c.f.Proxies, func(p ports.Proxy) bool {
		return p.Rootless && p.Space == x.Space && p.Space != "" && p.Next == nil &&
			(p.Program != ports.Rootlesskit ||
				slices.ContainsFunc(x.Listeners, func(l ports.Listener) bool {
					return l.Proto == p.Proto && l.Addr.Port() == p.Container.Port() &&
						!slices.ContainsFunc(l.Owners, func(o ports.Process) bool {
							return o.Name == "dockerd" || o.Name == "docker-proxy"
						})
				}))
	})
}
