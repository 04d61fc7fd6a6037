package ports

import (
	"cmp"
	"fmt"
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/paths/firewall"
)

func (f *Facts) packet(r *Row, c Client) (firewall.Packet, bool) {
	six := c == Loopback6 || r.Family == "ipv6"
	own, uplink := f.address(six)
	p := firewall.Packet{Proto: r.Proto, Port: r.Port, Dst: own, Src: own, Out: "lo",
		DstLocal: true}
	switch c {
	case Loopback:
		p.Dst = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		p.Src = p.Dst
	case Loopback6:
		p.Dst = netip.IPv6Loopback()
		p.Src = p.Dst
	case Neighbour:
		bridge, net := f.neighbour(r, six)
		if bridge == "" {
			return p, false
		}
		p.In, p.Out, p.Src = bridge, "", f.unused(net)
		p.Sources = &firewall.Sources{Among: net.Masked(),
			Except: []netip.Prefix{single(net.Addr())}}
	case Remote:
		p.In, p.Out = uplink, ""
		p.Src, p.Sources = f.anyone(uplink, six)
		if f.Client.IsValid() && f.Client.Is6() == six {
			p.Src, p.Sources = f.Client, nil
			p.In = cmp.Or(f.towards(f.Client), uplink)
		}
	}
	p.SrcLocal = f.own(p.Src)
	return p, p.Dst.IsValid() && r.concerns(p.Dst)
}

// anyone returns an example of another machine's address, and the set of all possible ones.
func (f *Facts) anyone(uplink string, six bool) (netip.Addr, *firewall.Sources) {
	// RFC 5737: unassigned
	example, all := netip.MustParseAddr("203.0.113.1"), netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	if six {
		example, all = netip.MustParseAddr("2001:db8:ffff::1"),
			netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	}
	s := &firewall.Sources{Among: all}
	for _, d := range f.Devices {
		for _, p := range d.Addrs {
			s.Except = append(s.Except, single(p.Addr()))
			if d.Name != uplink {
				s.Except = append(s.Except, p.Masked())
			}
		}
	}
	return example, s
}

func single(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// CheckClient returns an error if a cannot be another machine's address.
func (f *Facts) CheckClient(a netip.Addr) error {
	switch d := f.device(f.towards(a)); {
	case f.own(a):
		return fmt.Errorf(
			"%s is this machine's own address: the first columns are of its own clients", a)
	case d.Docker:
		return fmt.Errorf("%s is in the network of %s: the column of a container is for those", a,
			d.Name)
	}
	return nil
}

func (r *Row) concerns(a netip.Addr) bool {
	switch r.Family {
	case "both":
		return true
	case "ipv4":
		return a.Is4()
	}
	return a.Is6()
}

// neighbour falls back to another Docker network if the server's is not known.
func (f *Facts) neighbour(r *Row, six bool) (string, netip.Prefix) {
	if r.Holder.Kind == Rootlesskit {
		return "", netip.Prefix{}
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
				return d.Name, p
			}
		}
	}
	return "", netip.Prefix{}
}

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
