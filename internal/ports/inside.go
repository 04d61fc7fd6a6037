package ports

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/paths/firewall"
)

// Foreign is a client in a container of another network. Like Neighbour and Remote it dials the
// container's own address. For these ports, OwnAddr is this machine.
const Foreign Client = "network"

var inside = []Client{OwnAddr, Neighbour, Foreign, Remote}

// Insiders returns the clients of ports that are not published.
func Insiders() []Client { return slices.Clone(inside) }

// ephemeral is the first port of net.ipv4.ip_local_port_range: a UDP socket above is more likely a
// client's.
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
	for _, c := range f.Containers {
		if c.PID == 0 || c.Rootless || c.Host || c.Shares != "" {
			continue
		}
		for _, l := range c.Listeners {
			to, ok := c.reached(l)
			if !ok || port != 0 && to.Port() != port || c.publishes(l) {
				continue
			}
			x := Inside{Port: to.Port(), Proto: l.Proto, Server: f.containerServer(c, to.Port()),
				Networks: append([]string{}, c.Networks...),
				Dial:     to.String(), Paths: map[Client]Path{}}
			for _, from := range inside {
				if p, ok := f.into(from, l.Proto, to); ok {
					x.Paths[from] = p
				}
			}
			if !slices.ContainsFunc(out, func(o Inside) bool {
				return o.Dial == x.Dial && o.Proto == x.Proto
			}) {
				out = append(out, x)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Inside) int {
		return cmp.Or(cmp.Compare(a.Server.Name, b.Server.Name), cmp.Compare(a.Port, b.Port),
			cmp.Compare(a.Proto, b.Proto))
	})
	return out
}

// ok is false if the socket is on the container's loopback, or likely a client's.
func (c Container) reached(l Listener) (to netip.AddrPort, ok bool) {
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

func (c Container) publishes(l Listener) bool {
	return slices.ContainsFunc(c.Published, func(p Published) bool {
		return p.Proto == l.Proto && p.Port == l.Addr.Port()
	})
}

// ok is false if this machine cannot have such a client.
func (f *Facts) into(from Client, proto string, to netip.AddrPort) (Path, bool) {
	bridge := f.towards(to.Addr())
	if bridge == "" { // macvlan, or the machine has no address there
		return Path{}, false
	}
	row := Row{Port: to.Port(), Proto: proto, addr: to.Addr()}
	j := journey{f: f, row: &row, local: from == OwnAddr,
		out: Path{Kind: Direct, Dial: to.String(), Hops: []Hop{}},
		p:   firewall.Packet{Proto: proto, Port: to.Port(), Dst: to.Addr(), Out: bridge}}
	six := to.Addr().Is6()
	switch from {
	case OwnAddr:
		j.p.Src, j.p.SrcLocal = f.addressOn(bridge, six), true
	case Neighbour:
		net, ok := f.prefixOn(bridge, six)
		if !ok {
			return Path{}, false
		}
		j.p.In, j.p.Src = bridge, f.unused(net)
		j.p.Sources = &firewall.Sources{Among: net.Masked(),
			Except: []netip.Prefix{single(net.Addr()), single(to.Addr())}}
	case Foreign:
		other, net, ok := f.otherBridge(bridge, six)
		if !ok {
			return Path{}, false
		}
		j.p.In, j.p.Src = other, f.unused(net)
		j.p.Sources = &firewall.Sources{Among: net.Masked(),
			Except: []netip.Prefix{single(net.Addr())}}
	case Remote:
		own, uplink := f.address(six)
		if !own.IsValid() {
			return Path{}, false
		}
		j.p.In = uplink
		j.p.Src, j.p.Sources = f.anyone(uplink, six)
		if f.Client.IsValid() && f.Client.Is6() == six {
			j.p.Src, j.p.Sources = f.Client, nil
		}
	}
	switch from {
	case Neighbour:
		j.hop("veth", "the client container's eth0")
	case Foreign:
		j.hop("veth", "the client container's eth0")
		j.hop("bridge", j.p.In)
	case Remote:
		j.hop("wire", j.p.In)
	}
	j.enter(to)
	return j.out, true
}

func (j *journey) enter(to netip.AddrPort) {
	if !j.f.Known.Rules {
		j.doubt("the rules cannot be read: a firewall may block this")
	}
	switch {
	case j.local:
		if j.drops(j.f.Rules, firewall.Output, j.p, "") {
			return
		}
	case j.p.In == j.p.Out && !j.f.Switches.BridgeNF: // bridged: no rule applies
	default:
		if j.p.In != j.p.Out && j.unforwarded(to.Addr()) {
			return
		}
		in := j.p
		in.Out = ""
		if j.drops(j.f.Rules, firewall.Prerouting, in, "") ||
			j.drops(j.f.Rules, firewall.Forward, j.p, "") {
			return
		}
	}
	j.toContainer(to)
	if j.out.Kind == Direct && j.p.In != "" && j.p.In != j.p.Out && !j.f.device(j.p.In).Docker {
		j.doubt("whether the other machine has a route to " + to.Addr().String())
	}
}

func (f *Facts) addressOn(device string, six bool) netip.Addr {
	p, _ := f.prefixOn(device, six)
	return p.Addr()
}

func (f *Facts) prefixOn(device string, six bool) (netip.Prefix, bool) {
	for _, p := range f.device(device).Addrs {
		if p.Addr().Is6() == six && !p.Addr().IsLinkLocalUnicast() {
			return p, true
		}
	}
	return netip.Prefix{}, false
}

func (f *Facts) otherBridge(bridge string, six bool) (string, netip.Prefix, bool) {
	for _, d := range f.Devices {
		if !d.Docker || d.Name == bridge {
			continue
		}
		if p, ok := f.prefixOn(d.Name, six); ok {
			return d.Name, p, true
		}
	}
	return "", netip.Prefix{}, false
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

type Attached struct {
	Name      string   `json:"name"`
	Kind      string   `json:"kind"`
	MTU       int      `json:"mtu"`
	Addresses []string `json:"addresses"`
	// Peer is the other end on this machine, and Master its bridge; "": none.
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

// Both ends must name each other's index, because an index is unique only in its namespace.
func (f *Facts) peerOf(d Device) (Device, bool) {
	for _, p := range f.Devices {
		if d.Kind == "veth" && d.Peer != 0 && p.Kind == "veth" && p.Index == d.Peer &&
			p.Peer == d.Index {
			return p, true
		}
	}
	return Device{}, false
}
