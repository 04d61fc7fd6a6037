package ports

import (
	"net/netip"
	"slices"
)

func (f *Facts) own(a netip.Addr) bool {
	if a.IsLoopback() {
		return true
	}
	for _, d := range f.Devices {
		for _, p := range d.Addrs {
			if p.Addr() == a {
				return true
			}
		}
	}
	return false
}

// address returns the address that other machines dial, and its device. That is the device with the
// default route, or else any network card.
func (f *Facts) address(six bool) (netip.Addr, string) {
	var best netip.Addr
	device := ""
	rank := 0
	for _, d := range f.Devices {
		score := 1
		switch {
		case d.Kind == "loopback" || !d.Up || d.Docker:
			continue
		case d.Uplink:
			score = 3
		case d.Master == "" && d.Kind != "bridge":
			score = 2
		}
		for _, p := range d.Addrs {
			if p.Addr().Is4() == !six && !p.Addr().IsLinkLocalUnicast() && score > rank {
				best, device, rank = p.Addr(), d.Name, score
			}
		}
	}
	return best, device
}

func (f *Facts) towards(a netip.Addr) string {
	device, bits := "", -1
	for _, d := range f.Devices {
		for _, p := range d.Addrs {
			if d.Kind != "loopback" && p.Masked().Contains(a) && p.Bits() > bits {
				device, bits = d.Name, p.Bits()
			}
		}
	}
	return device
}

func (f *Facts) at(a netip.Addr) (Container, bool) { return f.find(a, f.Space, false) }

func (f *Facts) behind(p Proxy) (Container, bool) {
	if c, ok := f.byID(p.ID); ok {
		return c, true
	}
	if p.ends() {
		return f.inSpace(p.Space)
	}
	return f.find(p.Container.Addr(), p.Space, p.Rootless)
}

func (f *Facts) inSpace(space string) (Container, bool) {
	for i := range f.Containers {
		c := &f.Containers[i]
		if space != "" && c.Space == space && c.PID != 0 && c.Shares == "" {
			return *c, true
		}
	}
	return Container{}, false
}

// linked reports whether a device links the container to the namespace. Containers of several
// engines may have the same address, and this distinguishes them.
func (c Container) linked(space string, rootless bool) bool {
	known := func(d Device) bool { return d.PeerSpace != "" }
	if space == "" || !slices.ContainsFunc(c.Devices, known) {
		return c.Rootless == rootless
	}
	return slices.ContainsFunc(c.Devices, func(d Device) bool { return d.PeerSpace == space })
}

func (f *Facts) find(a netip.Addr, space string, rootless bool) (Container, bool) {
	for i := range f.Containers {
		c := &f.Containers[i]
		if slices.Contains(c.Addrs, a) && c.linked(space, rootless) && !c.Host && c.Shares == "" &&
			c.PID != 0 {
			return *c, true
		}
	}
	return Container{}, false
}

// sharing returns the containers with c's network, c first.
func (f *Facts) sharing(c Container) []Container {
	out := []Container{c}
	for _, o := range f.Containers {
		if o.Shares != "" && o.Shares == c.Name && o.PID != 0 {
			out = append(out, o)
		}
	}
	return out
}

func (f *Facts) byID(id string) (Container, bool) {
	for i := range f.Containers {
		if id != "" && f.Containers[i].ID == id {
			return f.Containers[i], true
		}
	}
	return Container{}, false
}

func (f *Facts) proxyOf(l Listener) (Proxy, bool) {
	k := portOfService(service{l.Proto, l.Addr})
	return bestOf(f.indexed().proxiesBy[k], func(p *Proxy) int { return p.holds(&l) })
}

func proxyOf(all []Proxy, l Listener) (Proxy, bool) {
	return bestOf(pointers(all), func(p *Proxy) int { return p.holds(&l) })
}

// holds returns how likely the socket is the proxy's; 0: it is not. With -use-listen-fd, the
// arguments may have another wildcard than the socket, so the process is compared.
func (p *Proxy) holds(l *Listener) int {
	known := len(l.Owners) > 0
	switch own := known && l.Owners[0].PID == p.PID; {
	case p.Proto != l.Proto || p.Host.Port() != l.Addr.Port():
		return 0
	case p.Host == l.Addr && (own || !known):
		return 2
	case own:
		return 1
	}
	return 0
}

// bestOf is like best, and returns a copy.
func bestOf[T any](all []*T, score func(*T) int) (out T, ok bool) {
	if x := best(all, score); x != nil {
		return *x, true
	}
	return out, false
}

// listens returns the socket that takes packets to the address. Like the kernel, it prefers an
// exact address to a wildcard.
func listens(all []Listener, proto string, to netip.AddrPort) (Listener, bool) {
	return bestOf(pointers(all), func(l *Listener) int { return l.takes(proto, to) })
}

// listens returns the machine's socket that takes packets to the address.
func (f *Facts) listens(proto string, to netip.AddrPort) (Listener, bool) {
	return bestOf(f.socketsOn(proto, to.Port()), func(l *Listener) int { return l.takes(proto, to) })
}

// takes returns how exactly the socket's address is the one of packets; 0: it does not take them.
func (l *Listener) takes(proto string, to netip.AddrPort) int {
	switch a := l.Addr.Addr(); {
	case l.Proto != proto || l.Addr.Port() != to.Port():
		return 0
	case a == to.Addr() || a.Is4In6() && a.Unmap() == to.Addr():
		return 3
	case a.IsUnspecified() && a.Is4() == to.Addr().Is4():
		return 2
	case a.IsUnspecified() && a.Is6() && to.Addr().Is4() && !l.V6Only:
		return 1
	}
	return 0
}
