package ports

import (
	"cmp"
	"net/netip"
	"slices"
)

// Foreign is a client in a container of another network. For ports in containers, Neighbour,
// Foreign and Remote dial the container's own address, and OwnAddr means this machine. Itself is
// the server's own container, which dials a loopback address.
const (
	Foreign Client = "network"
	Itself  Client = "itself"
)

var inside = []Client{OwnAddr, Neighbour, Foreign, Remote}

// Insiders returns the clients of ports in containers.
func Insiders() []Client { return slices.Clone(inside) }

// ephemeral is the default first port of net.ipv4.ip_local_port_range. A UDP socket on it or a
// higher port is more likely a client's.
const ephemeral = 32768

// Inside is a listening port of a container. Clients dial the container's address. A published port
// is an Inside only in a report on that port, with Facts.Everything, or if this machine has no port
// for it.
type Inside struct {
	Port     uint16   `json:"port"`
	Proto    string   `json:"protocol"`
	Server   Server   `json:"server"`
	Networks []string `json:"networks"`
	Dial     string   `json:"dial"`
	// Loopback is the container's loopback address if the program listens only there; else "".
	Loopback  string          `json:"loopback,omitempty"`
	Published bool            `json:"published,omitempty"`
	Paths     map[Client]Path `json:"paths"`
	// Dials has all connections that were tried in the copy of the machine, as Row.Dials.
	Dials []Path `json:"dials,omitempty"`
}

// insider is an address at which a container's socket is reached in its network.
type insider struct {
	service
	loopback netip.AddrPort // where the program listens if only there; else zero
}

func (f *Facts) insides(port uint16) []Inside {
	out := []Inside{}
	into := f.askedOf()
	for i := range f.Containers {
		c := &f.Containers[i]
		for _, x := range c.insides(port) {
			if port == 0 && !f.Everything && c.publishesAt(x.service) {
				continue
			}
			in := Inside{Port: x.at.Port(), Proto: x.proto, Dial: x.at.String(),
				Server:    f.containerServer(*c, x.at.Port()),
				Networks:  append([]string{}, c.Networks...),
				Published: c.publishesAt(x.service)}
			in.Paths, in.Dials = f.pathsInto(x, into[c])
			if x.loopback.IsValid() {
				in.Loopback = x.loopback.String()
			}
			if port != 0 || in.Loopback == "" || in.answers() {
				out = append(out, in)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Inside) int {
		return cmp.Or(cmp.Compare(a.Server.Name, b.Server.Name), cmp.Compare(a.Port, b.Port),
			cmp.Compare(a.Proto, b.Proto))
	})
	return out
}

// answers reports whether a client outside the container gets an answer for certain.
func (in *Inside) answers() bool {
	return slices.ContainsFunc(inside, func(c Client) bool {
		p := in.Paths[c]
		return p.Answers() && !p.untried()
	})
}

// askedOf returns the connections to containers' own addresses.
func (f *Facts) askedOf() map[*Container][]*asked {
	out := map[*Container][]*asked{}
	if f.Copy == nil {
		return out
	}
	for i := range f.Copy.asked {
		if q := &f.Copy.asked[i]; q.server != nil {
			out[q.server] = append(out[q.server], q)
		}
	}
	return out
}

// pathsInto returns the first path of each kind of client, and all, given the connections to the
// container.
func (f *Facts) pathsInto(x insider, into []*asked) (out map[Client]Path, all []Path) {
	out = map[Client]Path{}
	if f.Copy == nil && x.loopback.IsValid() {
		return out, nil
	}
	if f.Copy == nil {
		for _, from := range inside {
			out[from] = Path{Kind: Direct, Client: from, Dial: x.at.String(), Hops: []Hop{},
				Doubt: []Reason{{Code: Untried}}}
		}
		return out, nil
	}
	for _, q := range into {
		if q.service == x.service || q.kind == Itself && q.proto == x.proto && q.at == x.loopback {
			p, ok := f.Copy.path(*q)
			if !ok {
				continue
			}
			if all = append(all, p); out[q.kind].Kind == "" {
				out[q.kind] = p
			}
		}
	}
	for kind, p := range out {
		for i := range all {
			o := &all[i]
			if o.Client == kind && p.besides(o) && p.Answers() != o.Answers() {
				p.Depends = once(p.Depends, o.From+": "+string(o.Kind))
			}
		}
		out[kind] = p
	}
	return out, all
}

// insides returns the addresses at which the container's sockets are reached in its network. Port 0
// selects all ports.
func (c *Container) insides(port uint16) (out []insider) {
	if c.PID == 0 || c.Rootless || c.Host || c.Shares != "" {
		return nil
	}
	add := func(l Listener, loopback netip.AddrPort) {
		for _, a := range c.reached(l, loopback.IsValid()) {
			at := service{l.Proto, netip.AddrPortFrom(a, l.Addr.Port())}
			if !slices.ContainsFunc(out, func(x insider) bool { return x.service == at }) {
				out = append(out, insider{at, loopback})
			}
		}
	}
	asked := slices.DeleteFunc(slices.Clone(c.Listeners), func(l Listener) bool {
		return port != 0 && l.Addr.Port() != port
	})
	for _, l := range asked {
		if !l.Addr.Addr().Unmap().IsLoopback() {
			add(l, netip.AddrPort{})
		}
	}
	for _, l := range asked { // an engine's name server listens on 127.0.0.11
		if a := l.Addr.Addr().Unmap(); a == netip.AddrFrom4([4]byte{127, 0, 0, 1}) ||
			a == netip.IPv6Loopback() {
			add(l, netip.AddrPortFrom(a, l.Addr.Port()))
		}
	}
	return out
}

// reached returns the container's addresses, the first of each device and family, at which a socket
// is reached or, with loopback, would be if it did not listen on the loopback device only. It
// returns none for sockets that are likely a client's.
func (c *Container) reached(l Listener, loopback bool) (out []netip.Addr) {
	if l.Proto == "udp" && l.Addr.Port() >= ephemeral {
		return nil
	}
	at := l.Addr.Addr().Unmap()
	for _, a := range c.Addrs {
		switch {
		case slices.ContainsFunc(out, func(o netip.Addr) bool {
			return o.Is4() == a.Is4() && c.deviceAt(o) == c.deviceAt(a)
		}):
		case a == at, loopback && a.Is4() == at.Is4(),
			at.IsUnspecified() && (a.Is4() == at.Is4() || at.Is6() && !l.V6Only):
			out = append(out, a)
		}
	}
	return out
}

// deviceAt returns the index of the container's device with an address, or -1 if it is not known.
func (c *Container) deviceAt(a netip.Addr) int {
	return slices.IndexFunc(c.Devices, func(d Device) bool { return d.has(a) })
}

// publishes reports whether a port of this machine is published for the container's.
func (c *Container) publishes(proto string, port uint16) bool {
	return slices.ContainsFunc(c.Published, func(p Published) bool {
		return p.Proto == proto && p.Port == port && p.Host.Port() != 0
	})
}

// publishesAt reports whether a port of this machine is published for the container's address, over
// its address family. In gateway mode "routed" none is, perhaps for one family.
func (c *Container) publishesAt(s service) bool {
	return slices.ContainsFunc(c.Published, func(p Published) bool {
		return p.Proto == s.proto && p.Port == s.at.Port() && p.Host.Port() != 0 &&
			p.Host.Addr().Is6() == s.at.Addr().Is6()
	})
}

// Home describes the network devices of a container.
type Home struct {
	Name     string   `json:"name"`
	Image    string   `json:"image,omitempty"`
	ID       string   `json:"id,omitempty"`
	State    string   `json:"state"`
	Networks []string `json:"networks"`
	// Network is "host" or "container:NAME" if the container shares a network, else "".
	Network   string     `json:"network,omitempty"`
	Addresses []string   `json:"addresses"`
	Devices   []Attached `json:"devices"` // empty if not known
	// Processes are what `docker top` lists, with this machine's PIDs; empty if not known.
	Processes []Process `json:"processes,omitempty"`
}

// Attached is a network device of a container.
type Attached struct {
	Name      string   `json:"name"`
	Kind      string   `json:"kind"`
	MTU       int      `json:"mtu"`
	Addresses []string `json:"addresses"`
	// Peer is the other end of the pair on this machine, and Master that end's bridge; "": none.
	Peer   string `json:"peer,omitempty"`
	Master string `json:"master,omitempty"`
}

func (f *Facts) homes() []Home {
	out := []Home{}
	for _, c := range f.Containers {
		if c.PID == 0 {
			continue
		}
		h := Home{Name: c.Name, Image: c.Image, ID: c.ID, State: c.State,
			Networks: append([]string{}, c.Networks...), Addresses: []string{},
			Devices: []Attached{}, Processes: c.Processes}
		switch {
		case c.Host:
			h.Network = "host"
		case c.Shares != "":
			h.Network = "container:" + c.Shares
		}
		for _, a := range c.Addrs {
			h.Addresses = append(h.Addresses, a.String())
		}
		for _, d := range c.Devices {
			if d.Kind != "loopback" {
				h.Devices = append(h.Devices, f.attached(d))
			}
		}
		out = append(out, h)
	}
	slices.SortStableFunc(out, func(a, b Home) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func (f *Facts) attached(d Device) Attached {
	a := Attached{Name: d.Name, Kind: d.Kind, MTU: d.MTU, Addresses: []string{}}
	for _, p := range d.Addrs {
		if !p.Addr().IsLinkLocalUnicast() {
			a.Addresses = append(a.Addresses, p.String())
		}
	}
	if peer, ok := f.peerOf(d); ok {
		a.Peer, a.Master = peer.Name, peer.Master
	}
	return a
}

// peerOf returns the other end of a veth pair. Both ends must name each other's index, because an
// index is unique only in its namespace.
func (f *Facts) peerOf(d Device) (Device, bool) {
	if d.Kind != "veth" || d.Peer == 0 || d.PeerSpace != "" && d.PeerSpace != f.Space {
		return Device{}, false
	}
	i := slices.IndexFunc(f.Devices, func(p Device) bool {
		return p.Kind == "veth" && p.Index == d.Peer && p.Peer == d.Index
	})
	if i < 0 {
		return Device{}, false
	}
	return f.Devices[i], true
}
