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
	for _, c := range f.Containers {
		if space != "" && c.Space == space && c.PID != 0 && c.Shares == "" {
			return c, true
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
	for _, c := range f.Containers {
		if !c.linked(space, rootless) || c.Host || c.Shares != "" || c.PID == 0 {
			continue
		}
		for _, own := range c.Addrs {
			if own == a {
				return c, true
			}
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
	for _, c := range f.Containers {
		if id != "" && c.ID == id {
			return c, true
		}
	}
	return Container{}, false
}

func (f *Facts) proxyOf(l Listener) (Proxy, bool) { return proxyOf(f.Proxies, l) }

func proxyOf(all []Proxy, l Listener) (Proxy, bool) {
	for _, p := range all {
		if p.Proto == l.Proto && p.Host == l.Addr &&
			(len(l.Owners) == 0 || l.Owners[0].PID == p.PID) {
			return p, true
		}
	}
	// With -use-listen-fd, the arguments may have another wildcard than the socket, so the process
	// is compared.
	for _, p := range all {
		if len(l.Owners) > 0 && l.Owners[0].PID == p.PID && p.Proto == l.Proto &&
			p.Host.Port() == l.Addr.Port() {
			return p, true
		}
	}
	return Proxy{}, false
}

// listens returns the socket that takes packets to the address. Like the kernel, it prefers an
// exact address to a wildcard.
func listens(all []Listener, proto string, to netip.AddrPort) (Listener, bool) {
	best, rank := Listener{}, 0
	for _, l := range all {
		if l.Proto != proto || l.Addr.Port() != to.Port() {
			continue
		}
		score := 0
		a := l.Addr.Addr()
		switch {
		case a == to.Addr() || a.Is4In6() && a.Unmap() == to.Addr():
			score = 3
		case a.IsUnspecified() && a.Is4() == to.Addr().Is4():
			score = 2
		case a.IsUnspecified() && a.Is6() && to.Addr().Is4() && !l.V6Only:
			score = 1
		}
		if score > rank {
			best, rank = l, score
		}
	}
	return best, rank > 0
}
