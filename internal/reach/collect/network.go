package collect

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/kernel/conntrack"
	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
)

func (c *collector) network() {
	devices, err := link.Survey()
	if err != nil {
		c.missing("network devices", err.Error(), "")
	}
	c.f.Devices = c.convert(devices, c.f.Space)
	c.f.Switches = ports.Switches{Forward4: on("net.ipv4.ip_forward"),
		BridgeNF: on("net.bridge.bridge-nf-call-iptables")}
	if c.f.Switches.RoutedBySocket, err = link.RoutedBySocket(); err != nil {
		c.f.Switches.RoutedBySocket = err.Error()
	}
	c.f.Switches.ClientPorts = clientPorts()
	if use, err := conntrack.Read(); err == nil {
		c.f.Tracked, c.f.TrackedMax = use.Entries, use.Max
	}
	if !c.brief {
		v4, v6 := link.NeighbourTables()
		c.f.Neighbours = []ports.NeighbourTable{{Family: "ipv4", Entries: v4.Entries, Max: v4.Max},
			{Family: "ipv6", Entries: v6.Entries, Max: v6.Max}}
	}
	if !c.brief && !c.root {
		c.missing("NAT and firewall rules", "only root may read them", asRoot)
	}
}

func (c *collector) flows() {
	own, served := map[netip.Addr]bool{}, map[uint16]bool{}
	for _, a := range addresses(c.f.Devices) {
		own[a] = true
	}
	for _, l := range c.f.Listeners {
		// A port that is published has these sockets, if any.
		if l.Proto == "udp" && len(l.Owners) > 0 && !slices.Contains([]string{"docker-proxy",
			"dockerd", "conmon"}, l.Owners[0].Name) {
			served[l.Addr.Port()] = true
		}
	}
	flows, err := conntrack.Flows(func(f conntrack.Flow) bool {
		return own[f.To.Addr()] && !served[f.To.Port()]
	})
	if err != nil {
		if c.root { // otherwise the error about the rules covers it
			c.missing("connections through NAT", err.Error(), "")
		}
		return
	}
	c.f.Known.Flows = true
	for _, f := range flows {
		c.f.Flows = append(c.f.Flows, ports.Flow(f))
	}
}

func on(key string) bool {
	v, err := sysctl.Get(key)
	return err == nil && v != "0"
}

// clientPorts returns net.ipv4.ip_local_port_range, which applies to IPv6 too.
func clientPorts() (out [2]uint16) {
	text, err := sysctl.Get("net.ipv4.ip_local_port_range")
	if err != nil {
		return out
	}
	if _, err := fmt.Sscan(text, &out[0], &out[1]); err != nil {
		return [2]uint16{}
	}
	return out
}

// internet is an address whose route is looked up; nothing is sent there.
var internet = netip.AddrFrom4([4]byte{1, 1, 1, 1})

// uplinks sets the device through which each bridge's network reaches the internet. Policy rules
// may give containers another one than the main table.
func (c *collector) uplinks() {
	for i := range c.f.Devices {
		d := &c.f.Devices[i]
		for _, p := range d.Addrs {
			from := p.Masked().Addr().Next()
			if from == p.Addr() {
				from = from.Next()
			}
			if d.Kind != "bridge" || !p.Addr().Is4() || !p.Contains(from) {
				continue
			}
			if r, err := link.RouteFrom(from, internet, d.Name); err == nil && r.Device != d.Name {
				d.Out, d.OutMTU = r.Device, cmp.Or(r.MTU, r.DeviceMTU)
			}
			break
		}
	}
}

// convert must run in the devices' namespace.
func (c *collector) convert(devices []link.Device, space string) []ports.Device {
	var out []ports.Device
	spaces := c.peerSpaces(devices)
	if space != c.f.Space {
		spaces[-1] = space // both ends are in the container
	}
	for _, d := range devices {
		x := ports.Device{Name: d.Name, Index: d.Index, Kind: d.Kind, MTU: d.MTU,
			Up: d.Up, Master: d.Master, Peer: d.Peer, Addrs: d.Addrs, Uplink: d.Uplink,
			Uplink6: d.Uplink6, Router: d.Router, Router6: d.Router6,
			Docker: d.Kind == "bridge" && dockers(d.Name)}
		if d.Space >= 0 || d.Peer != 0 {
			x.PeerSpace = spaces[d.Space]
		}
		if d.Kind == "wireguard" {
			x.Allowed, _ = link.Allowed(d.Name) // others than root do not judge by it
		}
		out = append(out, x)
	}
	return out
}

// peerSpaces returns the namespaces to which the devices lead, by their ids. Those with a process
// have a name; others are ports.Nameless.
func (c *collector) peerSpaces(devices []link.Device) map[int]string {
	wanted, out := map[int]bool{}, map[int]string{}
	for _, d := range devices {
		if d.Space >= 0 {
			wanted[d.Space] = true
		}
	}
	machine, errMachine := link.NamespaceID(c.pid)
	if errMachine == nil && wanted[machine] {
		out[machine] = c.f.Space
	}
	asked := map[string]bool{"": true, c.f.Space: true}
	for _, p := range c.procs {
		if len(out) == len(wanted) {
			break
		}
		if asked[p.space] {
			continue
		}
		asked[p.space] = true
		if id, err := link.NamespaceID(p.PID); err == nil && wanted[id] {
			out[id] = p.space
		}
	}
	for id := range wanted {
		if out[id] == "" && errMachine == nil {
			out[id] = ports.Nameless
		}
	}
	return out
}

func dockers(name string) bool {
	id, own := strings.CutPrefix(name, "br-")
	return name == "docker0" || name == "docker_gwbridge" ||
		own && len(id) == 12 && strings.Trim(id, "0123456789abcdef") == ""
}

// spaces reads containers' devices, and finds containers of engines that were not queried.
func (c *collector) spaces() {
	if c.f.Space == "" {
		return
	}
	known := map[string]bool{c.f.Space: true, "": true}
	for i := range c.f.Containers {
		x := &c.f.Containers[i]
		if x.PID == 0 {
			continue
		}
		c.listenersIn(x)
		if x.Space != "" {
			if !x.Host && x.Shares == "" {
				x.Devices, _ = c.devicesIn(x.PID, x.Space)
			}
			known[x.Space] = true
		}
	}
	c.addHosted()
	relays := c.relaySpaces()
	if !c.root && (slices.ContainsFunc(c.f.Containers, func(x ports.Container) bool {
		return x.PID != 0 && !x.Host
	}) || c.f.Docker == "" && len(c.f.Proxies) > 0) {
		c.missing("devices in containers (their MTU)", "only root may enter their namespaces",
			asRoot)
	}
	c.addLinked(c.strangers(known, relays), relays)
}

// strangers returns containers in namespaces that are not known yet, and adds these to known.
func (c *collector) strangers(known, relays map[string]bool) (out []ports.Container) {
	named := map[string]bool{}
	for _, x := range c.f.Containers {
		named[x.ID] = x.PID != 0
	}
	started := c.started()
	for _, p := range c.procs {
		if known[p.space] || !c.root && !relays[p.space] {
			continue
		}
		known[p.space] = true
		x := started[p.space]
		x.ID = cmp.Or(x.ID, p.Container)
		if named[x.ID] { // a process entered a new network namespace
			x = ports.Container{}
		}
		named[x.ID] = x.ID != ""
		var err error
		if x.Devices, err = c.devicesIn(p.PID, p.space); err != nil && c.root {
			continue // ended meanwhile
		}
		x.PID = cmp.Or(x.PID, p.PID)
		x.Space, x.State, x.Addrs = p.space, "running", addresses(x.Devices)
		x.Name = cmp.Or(x.Name, x.ID[:min(len(x.ID), 12)])
		if x.ID == "" {
			x.Name = ports.NameOf(p.Name)
		}
		if len(x.Addrs) > 0 || relays[x.Space] {
			out = append(out, x)
		}
	}
	return out
}

// addHosted adds the containers in the machine's own network whose engine was not queried, if
// their names are known.
func (c *collector) addHosted() {
	for _, p := range c.procs {
		x := c.starters[p.parent]
		if x.Name == "" || p.space != c.f.Space || slices.ContainsFunc(c.f.Containers,
			func(o ports.Container) bool { return o.ID == x.ID }) {
			continue
		}
		x.PID, x.Space, x.State, x.Host = p.PID, p.space, "running", true
		c.f.Containers = append(c.f.Containers, x)
	}
}

// started returns the ids, names and first processes of the containers that conmon and containerd
// started, by namespace.
func (c *collector) started() map[string]ports.Container {
	out := map[string]ports.Container{}
	for _, p := range c.procs {
		if x, ok := c.starters[p.parent]; ok && out[p.space].ID == "" {
			x.PID = p.PID
			out[p.space] = x
		}
	}
	return out
}

// addLinked adds the containers whose network is linked to the machine's, then those behind them
// and behind relays.
func (c *collector) addLinked(strangers []ports.Container, relays map[string]bool) {
	for i := range strangers {
		if relays[strangers[i].Space] {
			c.listenersIn(&strangers[i])
		}
	}
	for behind := false; ; behind = true {
		more := 0
		strangers = slices.DeleteFunc(strangers, func(x ports.Container) bool {
			switch {
			case !behind && c.linked(x), behind && relays[x.Space] && c.ends(x),
				behind && !relays[x.Space] && c.inner(x, relays):
			default:
				return false
			}
			more++
			x.Rootless = behind
			if !x.ListenersKnown {
				c.listenersIn(&x)
			}
			if server := mainServer(x.Listeners); x.ID == "" && server != "" {
				x.Name = ports.NameOf(server)
			}
			c.f.Containers = append(c.f.Containers, x)
			return true
		})
		if behind && more == 0 {
			return
		}
	}
}

// mainServer returns the name of the process that serves the lowest port, over TCP if any does, or
// "" if no owner is known. The kernel lists sockets in an order that varies.
func mainServer(all []ports.Listener) (name string) {
	var lowest ports.Listener
	for _, l := range all {
		if len(l.Owners) > 0 && (name == "" || cmp.Or(cmp.Compare(l.Proto, lowest.Proto),
			cmp.Compare(l.Addr.Port(), lowest.Addr.Port())) < 0) {
			lowest, name = l, l.Owners[0].Name
		}
	}
	return name
}

// linked reports whether the container's network is linked to the machine's. A veth with an address
// on the machine's side is a network card of the machine, unless it is the way out of the other
// side and not of the machine. replica.Read decides alike.
func (c *collector) linked(x ports.Container) bool {
	return slices.ContainsFunc(x.Devices, func(d ports.Device) bool {
		return d.PeerSpace == c.f.Space && (d.Kind == "macvlan" || d.Kind == "ipvlan" ||
			d.Kind == "veth" && slices.ContainsFunc(c.f.Devices, func(p ports.Device) bool {
				return p.Index == d.Peer && p.Peer == d.Index && (p.Master != "" ||
					len(addresses([]ports.Device{p})) == 0 || d.Uplink && !p.Uplink)
			}))
	})
}

func (c *collector) inner(x ports.Container, relays map[string]bool) bool {
	return slices.ContainsFunc(x.Devices, func(d ports.Device) bool {
		return d.PeerSpace != x.Space && d.Master == "" && (relays[d.PeerSpace] ||
			slices.ContainsFunc(c.f.Containers, func(o ports.Container) bool {
				return o.Space != "" && o.Space != c.f.Space && d.PeerSpace == o.Space
			}))
	})
}

// listenersIn reads the container's sockets. Without privileges, V6Only and queues are not known.
func (c *collector) listenersIn(x *ports.Container) {
	err := netns.Visit(x.PID, func() error {
		all, err := sock.Listening()
		if err == nil && slices.ContainsFunc(all, func(s sock.Socket) bool { return s.Waiting > 0 }) {
			all, err = sock.Table() // with the connections that wait
		}
		if err == nil {
			x.Listeners = c.listeners(all, x.Space)
		}
		return err
	})
	if err != nil {
		all, err := sock.ListenersOf(x.PID)
		if err != nil {
			return
		}
		x.Listeners = c.listeners(all, x.Space)
	}
	x.ListenersKnown = true
	for _, p := range c.others {
		if p.Space == x.Space && x.Space != "" {
			x.Proxies = append(x.Proxies, p)
		}
	}
}

func (c *collector) devicesIn(pid int, space string) (out []ports.Device, err error) {
	err = netns.Visit(pid, func() error {
		devices, err := link.Survey()
		out = c.convert(devices, space)
		return err
	})
	return out, err
}

// addresses returns the devices' addresses except those that nobody else can reach: loopback and
// link-local ones. Others at the loopback device come last.
func addresses(devices []ports.Device) (out []netip.Addr) {
	var virtual []netip.Addr
	for _, d := range devices {
		for _, a := range d.Addrs {
			switch {
			case a.Addr().IsLoopback(), a.Addr().IsLinkLocalUnicast():
			case d.Kind == "loopback":
				virtual = append(virtual, a.Addr())
			default:
				out = append(out, a.Addr())
			}
		}
	}
	return append(out, virtual...)
}
