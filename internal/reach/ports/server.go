package ports

import (
	"net/netip"
	"slices"
)

// ServerOf returns the container that answers a client of a TCP address on this machine. inside is
// the PID of a process in the client's network namespace; 0 means the machine's. ok is false if no
// container answers, or if it is unknown which one does.
func ServerOf(f *Facts, dial netip.AddrPort, inside int) (c Container, ok bool) {
	addr := dial.Addr().Unmap()
	if inside != 0 && addr.IsLoopback() { // that namespace's own loopback
		return one(f, func(c Container) bool { return c.PID == inside })
	}
	if c, ok := one(f, func(c Container) bool { return slices.Contains(c.Addrs, addr) }); ok {
		return c, true
	}
	if !addr.IsLoopback() && !ownAddress(f, addr) {
		return c, false
	}
	published := func(c Container) bool {
		return slices.ContainsFunc(c.Published, func(p Published) bool {
			return p.Proto == "tcp" && p.Host.Port() == dial.Port() && takes(p.Host.Addr(), addr)
		})
	}
	if c, ok := one(f, published); ok {
		return c, true
	}
	for _, l := range f.Listeners {
		if l.accepts(addr, dial.Port()) && len(l.Owners) > 0 && l.Owners[0].Container != "" {
			return one(f, func(c Container) bool { return c.ID == l.Owners[0].Container })
		}
	}
	return c, false
}

// passers lists programs that listen for a server elsewhere.
var passers = append([]string{"docker-proxy", "dockerd", "conmon", "ssh"}, relays...)

// Passes reports whether a program is one that serves for another one, by its process's name.
func Passes(name string) bool { return slices.Contains(passers, name) }

// Listens reports whether a socket of this machine's own network namespace accepts connections to
// the address.
func Listens(f *Facts, dial netip.AddrPort) bool {
	addr := dial.Addr().Unmap()
	return (addr.IsLoopback() || ownAddress(f, addr)) &&
		slices.ContainsFunc(f.Listeners, func(l Listener) bool {
			return l.Proto == "tcp" && l.accepts(addr, dial.Port())
		})
}

// ProcessAt returns the PID of the process outside containers that serves the address dial. It
// returns the smallest PID of several, or 0 if no such process is known.
func ProcessAt(f *Facts, dial netip.AddrPort) (pid int) {
	addr := dial.Addr().Unmap()
	if !addr.IsLoopback() && !ownAddress(f, addr) {
		return 0
	}
	for _, l := range f.Listeners {
		if !l.accepts(addr, dial.Port()) {
			continue
		}
		for _, p := range l.Owners {
			if p.Container != "" || Passes(p.Name) {
				return 0
			}
			if pid == 0 || p.PID < pid {
				pid = p.PID
			}
		}
	}
	return pid
}

// one returns the only container that matches. ok is false if several match, as in a pod, where any
// of them may serve.
func one(f *Facts, is func(Container) bool) (out Container, ok bool) {
	n := 0
	for _, c := range f.Containers {
		if c.PID != 0 && !c.Rootless && is(c) {
			out, n = c, n+1
		}
	}
	return out, n == 1
}

// accepts reports whether the socket accepts TCP connections to the address and port.
func (l Listener) accepts(addr netip.Addr, port uint16) bool {
	return l.Proto == "tcp" && l.Addr.Port() == port && takes(l.Addr.Addr(), addr) &&
		(!l.V6Only || addr.Is6())
}

func takes(at, dialled netip.Addr) bool {
	at = at.Unmap()
	return at == dialled || at.IsUnspecified() && (at.Is6() || dialled.Is4())
}

func ownAddress(f *Facts, a netip.Addr) bool {
	return slices.ContainsFunc(f.Devices, func(d Device) bool {
		return slices.ContainsFunc(d.Addrs, func(p netip.Prefix) bool { return p.Addr() == a })
	})
}
