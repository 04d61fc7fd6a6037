package ports

import (
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/firewall"
)

// packet is the client's first packet.
func (f *Facts) packet(r *Row, c Client) (firewall.Packet, bool) {
	six := c == Loopback6 || r.Family == "ipv6"
	own, uplink := f.address(six)
	p := firewall.Packet{Proto: r.Proto, Port: r.Port, Dst: own, Src: own, Out: "lo", DstLocal: true}
	switch c {
	case Loopback:
		p.Dst = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		p.Src = p.Dst
	case Loopback6:
		p.Dst = netip.IPv6Loopback()
		p.Src = p.Dst
	case Neighbour:
		bridge, src := f.neighbour(r, six)
		if bridge == "" {
			return p, false
		}
		p.In, p.Out, p.Src = bridge, "", src
	case Remote:
		p.In, p.Out = uplink, ""
		p.Src = netip.MustParseAddr("203.0.113.1") // RFC 5737: nobody's
		if six {
			p.Src = netip.MustParseAddr("2001:db8:ffff::1")
		}
	}
	p.SrcLocal = f.own(p.Src)
	return p, p.Dst.IsValid() && r.concerns(p.Dst)
}

// concerns reports whether who dials a means this row.
func (r *Row) concerns(a netip.Addr) bool {
	switch r.Family {
	case "both":
		return true
	case "ipv4":
		return a.Is4()
	}
	return a.Is6()
}

// neighbour is the bridge of a container near the server, and an address there
// that another container may have.
func (f *Facts) neighbour(r *Row, six bool) (string, netip.Addr) {
	if r.Holder.Kind == Rootlesskit {
		return "", netip.Addr{} // its neighbours are in the engine's network
	}
	bridge := ""
	if c, ok := f.byID(r.Server.ID); ok {
		for _, o := range f.Containers {
			if o.Name == c.Shares {
				c = o
			}
		}
		if len(c.Addrs) > 0 {
			bridge = f.towards(c.Addrs[0])
		}
	}
	for _, d := range f.Devices {
		if !d.Docker || bridge != "" && d.Name != bridge {
			continue
		}
		for _, p := range d.Addrs {
			if p.Addr().Is6() == six && !p.Addr().IsLinkLocalUnicast() {
				return d.Name, f.unused(p)
			}
		}
	}
	return "", netip.Addr{}
}

// unused is an address of the network that none of the known containers has.
func (f *Facts) unused(p netip.Prefix) netip.Addr {
	a := p.Addr().Next()
	for p.Contains(a) {
		if _, taken := f.at(a); !taken {
			break
		}
		a = a.Next()
	}
	return a
}
