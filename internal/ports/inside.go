package ports

import (
	"cmp"
	"net/netip"
	"slices"
)

// Foreign is a client in a container of another network. For unpublished ports, Neighbour, Foreign
// and Remote dial the container's own address, and OwnAddr means this machine.
const Foreign Client = "network"

var inside = []Client{OwnAddr, Neighbour, Foreign, Remote}

// Insiders returns the clients of ports that are not published.
func Insiders() []Client { return slices.Clone(inside) }

// ephemeral is the default first port of net.ipv4.ip_local_port_range. A UDP socket on it or a
// higher port is more likely a client's.
const ephemeral = 32768

// Inside is a listening port of a container that is not published. Clients dial the container's
// address.
type Inside struct {
	Port     uint16          `json:"port"`
	Proto    string          `json:"protocol"`
	Server   Server          `json:"server"`
	Networks []string        `json:"networks"`
	Dial     string          `json:"dial"`
	Paths    map[Client]Path `json:"paths"`
}

func (f *Facts) insides(port uint16) []Inside {
	out := []Inside{}
	for i := range f.Containers {
		c := &f.Containers[i]
		for _, x := range c.insides(port) {
			if c.publishes(x.proto, x.at.Port()) {
				continue
			}
			out = append(out, Inside{Port: x.at.Port(), Proto: x.proto, Dial: x.at.String(),
				Server:   f.containerServer(*c, x.at.Port()),
				Networks: append([]string{}, c.Networks...), Paths: f.pathsInto(c, x)})
		}
	}
	slices.SortStableFunc(out, func(a, b Inside) int {
		return cmp.Or(cmp.Compare(a.Server.Name, b.Server.Name), cmp.Compare(a.Port, b.Port),
			cmp.Compare(a.Proto, b.Proto))
	})
	return out
}

// pathsInto returns the first path of each kind of client.
func (f *Facts) pathsInto(c *Container, x service) map[Client]Path {
	out := map[Client]Path{}
	if f.Copy == nil {
		for _, from := range inside {
			out[from] = Path{Kind: Direct, Client: from, Dial: x.at.String(), Hops: []Hop{},
				Doubt: []string{Untried}}
		}
		return out
	}
	for _, q := range f.Copy.asked {
		if q.server == c && q.service == x {
			if p, ok := f.Copy.path(q); ok && out[q.kind].Kind == "" {
				out[q.kind] = p
			}
		}
	}
	return out
}

// insides returns the addresses at which the container's sockets are reached in its network. Port 0
// selects all ports.
func (c *Container) insides(port uint16) (out []service) {
	if c.PID == 0 || c.Rootless || c.Host || c.Shares != "" {
		return nil
	}
	for _, l := range c.Listeners {
		to, ok := c.reached(l)
		if ok && (port == 0 || to.Port() == port) {
			out = once(out, service{l.Proto, to})
		}
	}
	return out
}

// reached returns the address at which a socket is reached. ok is false if the socket is on the
// container's loopback device, or is likely a client's.
func (c *Container) reached(l Listener) (to netip.AddrPort, ok bool) {
	at := l.Addr.Addr().Unmap()
	if at.IsLoopback() || l.Proto == "udp" && l.Addr.Port() >= ephemeral {
		return to, false
	}
	for _, a := range c.Addrs {
		if a == at || at.IsUnspecified() && (a.Is4() == at.Is4() || at.Is6() && !l.V6Only) {
			return netip.AddrPortFrom(a, l.Addr.Port()), true
		}
	}
	return to, false
}

func (c *Container) publishes(proto string, port uint16) bool {
	return slices.ContainsFunc(c.Published, func(p Published) bool {
		return p.Proto == proto && p.Port == port
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
			Devices: []Attached{}}
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
	for _, p := range f.Devices {
		if d.Kind == "veth" && d.Peer != 0 && p.Kind == "veth" && p.Index == d.Peer &&
			p.Peer == d.Index && (d.PeerSpace == "" || d.PeerSpace == f.Space) {
			return p, true
		}
	}
	return Device{}, false
}
