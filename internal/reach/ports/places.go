package ports

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// place is a place from which clients connect.
type place struct {
	kind      Client // OwnAddr: this machine
	client    replica.Client
	from      string
	bridge    string         // a container's bridge, or a name of its network
	addrs     []netip.Addr   // this machine's addresses in that network; all for this machine
	router    bool           // behind a router
	container *Container     // an existing one; nil: a new one
	self      bool           // it has the port's server
	single    bool           // rules may treat it differently from others of its network
	network   string         // the name of the bridge's network
	nets      []netip.Prefix // of containers that a machine reaches directly, besides the card's
}

// The words for a machine at a card, and for one behind the card's router.
const (
	atCard       = "a machine at "
	behindRouter = "a machine behind "
	routerOf     = "'s router"
)

// anybody and anybody6 are addresses for documentation (RFC 5737, RFC 3849), which a machine behind
// a router gets.
var (
	anybody  = netip.MustParseAddr("203.0.113.1")
	anybody6 = netip.MustParseAddr("2001:db8:ffff::1")
)

func (f *Facts) places(six bool) []place {
	here, hosts := place{kind: OwnAddr}, f.hosting()
	var out []place
	for _, d := range f.Devices {
		own := d.own(six)
		if len(own) == 0 && !f.hasResident(d, six) {
			continue
		}
		here.addrs = append(here.addrs, own...)
		if hosts(d) {
			network := f.network(d)
			out = append(out, place{kind: Neighbour, bridge: d.Name, addrs: own, network: network,
				client: replica.Client{Bridge: d.Name}, from: "a container on " + network})
		}
	}
	return append(append([]place{here}, out...), f.machines(six)...)
}

// hasResident reports whether a container on the bridge has an address of the family.
func (f *Facts) hasResident(bridge Device, six bool) bool {
	return bridge.Kind == "bridge" && bridge.Up && slices.ContainsFunc(f.Containers,
		func(c Container) bool {
			return c.PID != 0 && slices.ContainsFunc(c.Addrs, func(a netip.Addr) bool {
				return a.Is6() == six && f.bridgeAt(c, a) == bridge.Name
			})
		})
}

// unbridged returns existing containers as places, two of each network without a bridge.
func (c *Copy) unbridged(six bool) (out []place) {
	number := map[string]int{}
	for i := range c.Machine.Spaces {
		x, ok := c.containerIn(i)
		if !ok || c.f.unbridged(*x) == "" || number[c.f.unbridged(*x)] == 2 || !x.has(six) {
			continue
		}
		number[c.f.unbridged(*x)]++
		out = append(out, c.existing(i, x))
	}
	return out
}

// mostSingle is the most containers that are places because commands changed how they are linked,
// and the most others that are because rules single them out.
const mostSingle = 8

// single returns existing containers on bridges that rules may treat differently from others of
// their networks, or that commands changed, as places of IPv4 and of IPv6.
func (c *Copy) single() map[bool][]place {
	out := map[bool][]place{}
	cut, singled := c.onBridges(c.cut()), c.onBridges(c.singled())
	all := cut[:min(len(cut), mostSingle)]
	singled = slices.DeleteFunc(singled, func(i int) bool { return slices.Contains(all, i) })
	all = append(slices.Clip(all), singled[:min(len(singled), mostSingle)]...)
	for _, i := range all {
		x, _ := c.containerIn(i)
		for _, six := range []bool{false, true} {
			if p := c.existing(i, x); x.had(six) {
				d := c.f.device(p.bridge)
				p.single, p.addrs, p.network = true, d.own(six), c.f.network(d)
				if x.Cut != nil {
					p.network = x.Cut.network
				}
				out[six] = append(out[six], p)
			}
		}
	}
	n := len(all)
	for _, i := range slices.Concat(cut, singled) {
		all = once(all, i)
	}
	if more := len(all) - n; more > 0 {
		c.left("connections from "+units.Plural(more, "container"), fmt.Sprintf("%d containers may be "+
			"treated differently from others of their networks, and %d are tried", len(all), n), "")
	}
	return out
}

// onBridges returns those of the namespaces that are of containers on bridges, with an address.
func (c *Copy) onBridges(spaces []int) (out []int) {
	for _, i := range spaces {
		x, ok := c.containerIn(i)
		if ok && c.f.unbridged(*x) == "" && (x.had(false) || x.had(true)) {
			out = append(out, i)
		}
	}
	return out
}

// cut returns the namespaces of containers that commands linked differently.
func (c *Copy) cut() (out []int) {
	for i := range c.Machine.Spaces {
		if x, ok := c.containerIn(i); ok && x.Cut != nil {
			out = append(out, i)
		}
	}
	return out
}

// had reports whether a device of the container has an address of the family, or had one before
// commands.
func (c *Container) had(six bool) bool {
	return c.has(six) || c.Cut != nil && c.Cut.families[six]
}

// has reports whether a device of the container has an address of the family.
func (c *Container) has(six bool) bool {
	return slices.ContainsFunc(c.Devices, func(d Device) bool {
		return len(d.own(six)) > 0
	})
}

// existing returns a container, which has a namespace of the machine, as a place.
func (c *Copy) existing(space int, x *Container) place {
	out := place{kind: Neighbour, client: replica.Client{Space: space}, container: x,
		bridge: cmp.Or(c.f.unbridged(*x), c.f.bridgeOf(*x)), from: "container " + x.Name}
	if out.bridge == "" && x.Cut != nil {
		out.bridge = x.Cut.bridge
	}
	return out
}

// unbridged returns a name of the container's network, or "" if the network has a bridge.
func (f *Facts) unbridged(c Container) string {
	for _, d := range c.Devices {
		if d.Kind == "macvlan" || d.Kind == "ipvlan" {
			return fmt.Sprintf("%s of %d in %s", d.Kind, d.Peer, strings.Join(c.Networks, " "))
		}
		if peer, ok := f.peerOf(d); ok && peer.Master == "" {
			return "veth " + peer.Name
		}
	}
	return ""
}

// endsIn reports whether a device is one end of a pair whose other end is in a container.
func (f *Facts) endsIn(d Device) bool {
	return d.Master == "" && slices.ContainsFunc(f.Containers, func(c Container) bool {
		return c.PID != 0 && slices.ContainsFunc(c.Devices, func(x Device) bool {
			peer, ok := f.peerOf(x)
			return ok && peer.Name == d.Name
		})
	})
}

// machines returns the places of other machines. The first represents them all.
func (f *Facts) machines(six bool) []place {
	if f.Client.IsValid() {
		if f.Client.Is6() != six {
			return nil
		}
		own, device := f.address(six)
		if near := f.device(cmp.Or(f.ClientDevice, f.towards(f.Client))); near.Name != "" {
			if device = near.Name; len(near.own(six)) > 0 {
				own = near.own(six)[0]
			}
		}
		if device == "" {
			return nil
		}
		return []place{{kind: Remote, from: f.Client.String(), addrs: []netip.Addr{own},
			client: replica.Client{Card: device, Source: f.Client}}}
	}
	var routers, others, out []place // others are only in other tables than main
	far := anybody
	if six {
		far = anybody6
	}
	hosts, virtual := f.hosting(), f.virtual(six)
	for _, d := range f.Devices {
		own := d.own(six)
		if len(own) == 0 || d.alone() || hosts(d) || !d.Up || f.endsIn(d) {
			continue
		}
		near := place{kind: Remote, from: atCard + d.Name, addrs: append(own, virtual...),
			client: replica.Client{Card: d.Name}}
		if main := d.Uplink && (!six || d.Uplink6); main || !six && d.Router || six && d.Router6 {
			behind := near
			behind.router, behind.from = true, behindRouter+d.Name+routerOf
			behind.client.Source = far
			if main {
				routers = append(routers, behind)
			} else {
				others = append(others, behind)
			}
		}
		out = append(out, near)
	}
	return slices.Concat(routers, others, out)
}

// hosts reports whether a device is the bridge of containers.
func (f *Facts) hosts(d Device) bool { return f.hosting()(d) }

// hosting returns the function hosts, for calls with many devices.
func (f *Facts) hosting() func(Device) bool {
	used := map[string]bool{}
	for _, c := range f.Containers {
		if c.PID != 0 {
			used[f.bridgeOf(c)] = true
		}
	}
	return func(d Device) bool {
		return d.Docker || d.Kind == "bridge" && !d.Uplink && used[d.Name]
	}
}

// virtual returns the machine's addresses that are in no network of a card: others reach them by
// routes, or because a load balancer or a BGP router sends packets here.
func (f *Facts) virtual(six bool) (out []netip.Addr) {
	for _, d := range f.Devices {
		if d.alone() {
			out = append(out, d.own(six)...)
		}
	}
	return out
}

// alone reports whether no other machine is at the device.
func (d Device) alone() bool { return slices.Contains([]string{"loopback", "dummy", "vrf"}, d.Kind) }

// own returns the device's addresses, without link-local ones and those that every machine has.
func (d Device) own(six bool) (out []netip.Addr) {
	for _, p := range d.Addrs {
		if p.Addr().Is6() == six && !p.Addr().IsLinkLocalUnicast() && !p.Addr().IsLoopback() {
			out = append(out, p.Addr())
		}
	}
	return out
}

func (d Device) has(a netip.Addr) bool {
	return slices.ContainsFunc(d.Addrs, func(p netip.Prefix) bool { return p.Addr() == a })
}

// network returns the name of a bridge's Docker network if it is known, else the bridge's own.
func (f *Facts) network(bridge Device) string {
	for _, c := range f.Containers {
		if len(c.Networks) == 1 && c.PID != 0 && f.bridgeOf(c) == bridge.Name {
			return c.Networks[0]
		}
	}
	return bridge.Name
}

// bridgeOf returns the first bridge to which a container is linked, or "".
func (f *Facts) bridgeOf(c Container) string {
	for _, a := range append(slices.Clone(c.Addrs), netip.Addr{}) {
		if b := f.bridgeAt(c, a); b != "" {
			return b
		}
	}
	return ""
}

// bridgeAt returns the bridge to which the container's device with the address is linked. The zero
// address selects any device.
func (f *Facts) bridgeAt(c Container, a netip.Addr) string {
	if c.Rootless {
		return ""
	}
	for _, d := range c.Devices {
		if p, ok := f.peerOf(d); ok && p.Master != "" && (d.has(a) || !a.IsValid()) {
			return p.Master
		}
	}
	if d := f.device(f.towards(a)); len(c.Devices) == 0 && a.IsValid() && d.Kind == "bridge" {
		return d.Name
	}
	return ""
}

// homeOf returns the container whose network the server uses.
func (f *Facts) homeOf(s Server) (Container, bool) {
	c, ok := f.byID(s.ID)
	for _, o := range f.Containers {
		if ok && c.Shares != "" && o.Name == c.Shares {
			return o, true
		}
	}
	return c, ok
}

// CheckClient returns an error if a cannot be another machine's address.
func (f *Facts) CheckClient(a netip.Addr) error {
	switch d := f.device(f.towards(a)); {
	case f.own(a):
		return fmt.Errorf(
			"%s is this machine's own address: the first columns show its clients", a)
	case d.Docker:
		return fmt.Errorf("%s is in the network of %s: see the column of a container", a,
			d.Name)
	}
	return nil
}

// concerns reports whether a client of the family may reach the row's socket.
func (r *Row) concerns(six bool) bool {
	return r.Family == "both" || (r.Family == "ipv6") == six
}

// neighbour returns the server's bridge. If it is not known, it returns another Docker network's.
func (f *Facts) neighbour(r *Row, six bool) string {
	if IsRelay(r.Holder.Kind) {
		return ""
	}
	bridge := ""
	if c, ok := f.homeOf(r.Server); ok {
		bridge = f.bridgeOf(c)
	}
	for _, d := range f.Devices {
		if !d.Docker || bridge != "" && d.Name != bridge {
			continue
		}
		if slices.ContainsFunc(d.Addrs, func(p netip.Prefix) bool {
			return p.Addr().Is6() == six && !p.Addr().IsLinkLocalUnicast()
		}) {
			return d.Name
		}
	}
	return ""
}
