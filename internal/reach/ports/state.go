package ports

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// A container does not stay up if it restarted at least manyRestarts times, the last time at most
// shortUp ago.
const (
	manyRestarts = 2
	shortUp      = time.Minute
)

func (f *Facts) stopped(rows []Row) []Trap {
	conflicts := f.conflicts(rows)
	var out []Trap
	for _, c := range f.Containers {
		ports := portNames(c.Asked)
		switch {
		case c.State == statePaused:
			for _, r := range rows {
				if r.Server.ID == c.ID && !slices.Contains(ports, r.name()) {
					ports = append(ports, r.name())
				}
			}
			out = append(out, Trap{Code: Paused, Ports: ports,
				About:    Reason{Code: Paused, Of: c.Name},
				Evidence: "Docker says so", Remedy: untriable("docker unpause "+c.Name, withoutDaemons)})
		case len(ports) == 0 || c.State != "restarting" &&
			(c.PID == 0 || c.Restarts < manyRestarts || c.Up > shortUp),
			// reported as a conflict
			slices.ContainsFunc(conflicts, func(t Trap) bool { return t.container == c.ID }):
		default:
			t := Trap{Code: Restarting, Ports: ports,
				About:    Reason{Code: Restarting, Of: c.Name, By: c.State, At: strings.Join(ports, ", ")},
				Evidence: "restarted " + units.Plural(c.Restarts, "time"),
				Remedy:   "see why it ends: docker logs " + c.Name}
			if c.PID != 0 {
				t.Evidence += fmt.Sprintf(", the last time %.0f s ago", c.Up.Seconds())
			}
			if last := lastLine(c.LastLog); last != "" {
				t.Evidence += fmt.Sprintf("; its last output: %q", last)
			}
			out = append(out, t)
		}
	}
	return out
}

func lastLine(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

func portNames(asked []Published) []string {
	var out []string
	for _, p := range asked {
		name := fmt.Sprintf("%d/%s", p.Host.Port(), p.Proto)
		if p.Host.Port() != 0 && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

func (f *Facts) internal([]Row) []Trap {
	var out []Trap
	for _, c := range f.Containers {
		if !c.Internal || len(c.Asked) == 0 || c.PID == 0 {
			continue
		}
		ports := portNames(c.Asked)
		out = append(out, Trap{Code: InternalNetwork, Ports: ports,
			About: Reason{Code: InternalNetwork, Of: c.Name, At: strings.Join(ports, ", ")},
			Evidence: "-p asks for it, and all its networks are internal: " +
				strings.Join(c.Networks, ", "),
			Remedy: fmt.Sprintf(
				"connect it to a network that is not internal: %s; or dial its own address from this machine",
				untriable("docker network connect NETWORK "+c.Name, withoutDaemons))})
	}
	return out
}

// unpublishing lists drivers whose networks this machine's ports do not reach.
var unpublishing = []string{"ipvlan", "macvlan", "null"}

// ignored finds containers whose -p Docker accepts and ignores.
func (f *Facts) ignored([]Row) []Trap {
	var out []Trap
	for _, c := range f.Containers {
		if len(c.Asked) == 0 || c.PID == 0 || c.Host || len(c.Drivers) == 0 ||
			slices.ContainsFunc(c.Drivers, func(d string) bool {
				return !slices.Contains(unpublishing, d)
			}) {
			continue
		}
		t := Trap{Code: PublishedIgnored, Ports: portNames(c.Asked),
			About: Reason{Code: PublishedIgnored, Of: c.Name},
			Evidence: fmt.Sprintf("-p asks for %s, and its networks are of driver %s: %s",
				strings.Join(FoldNames(portNames(c.Asked)), ", "), strings.Join(c.Drivers, ", "),
				strings.Join(c.Networks, ", "))}
		t.Remedy = untriable("docker network connect bridge "+c.Name, withoutDaemons) +
			", and recreate it with -p"
		if len(c.Addrs) > 0 {
			t.Remedy = fmt.Sprintf(
				"dial the container's own address, %s; to do so this machine needs a device on "+
					"that network: %s, with an address and a route; or %s",
				netip.AddrPortFrom(c.Addrs[0], c.Asked[0].Port),
				untriable("sudo ip link add own0 link CARD type "+c.Drivers[0]+" mode bridge",
					"the card is yours to choose"), t.Remedy)
		}
		out = append(out, t)
	}
	return out
}

// udpSource finds UDP servers that listen on all addresses: the kernel answers from the address
// nearest to the client, not from the dialled one.
func (f *Facts) udpSource(rows []Row) []Trap {
	t := about(UDPSource)
	t.Remedy = "make it listen on the address that clients dial, or make clients dial the address " +
		"nearest to them"
	if f.Copy != nil {
		for _, r := range rows {
			for _, p := range r.Dials {
				if p.answered.IsValid() {
					from := p.From
					if from == "" {
						from = "this machine"
					}
					t.add(r, fmt.Sprintf("%s listens on all addresses; asked at %s by %s, it answers from %s%s",
						udpHolder(&r), p.Dial, from, p.answered.Addr(), f.unless(&r)))
				}
			}
		}
		return t.found()
	}
	for i := range rows {
		r := &rows[i]
		if r.Proto != "udp" || r.Address != "*" && !r.addr.IsUnspecified() {
			continue
		}
		if l, ok := f.socketOf(r); ok && f.tunnels(l) {
			continue
		}
		seen := f.otherSource(r)
		if seen == "" {
			continue
		}
		if r.Holder.Kind == "docker-proxy" && f.dockerMajor() >= ownSource {
			continue
		}
		t.add(*r, udpHolder(r)+" listens on all addresses; "+seen+f.unless(r))
	}
	return t.found()
}

// tunnelPorts are the usual ports of devices with UDP sockets that belong to the kernel. At others
// the socket may be a process's that toll may not see.
var tunnelPorts = map[string][]uint16{"geneve": {6081}, "vxlan": {4789, 8472}, "wireguard": {51820}}

// tunnels reports whether a socket is the kernel's, for a tunnel's outer packets. Those are no
// answers to the other end's packets. The device may be in another namespace than its socket, such
// as that of an overlay network.
func (f *Facts) tunnels(l Listener) bool {
	if l.Proto != "udp" || len(l.Owners) > 0 {
		return false
	}
	var kinds []string
	for _, d := range f.Devices {
		kinds = append(kinds, d.Kind)
	}
	if f.Copy != nil {
		for _, s := range f.Copy.Machine.Spaces {
			for _, d := range s.Links {
				kinds = append(kinds, d.Kind)
			}
		}
	}
	return slices.ContainsFunc(kinds, func(kind string) bool {
		return slices.Contains(tunnelPorts[kind], l.Addr.Port())
	})
}

func (f *Facts) unless(r *Row) string {
	switch {
	case r.Holder.Kind != "docker-proxy":
		return ", unless it sets the source address itself, which toll cannot see"
	case f.dockerMajor() == 0:
		return ", unless it is of Docker Engine 28 or later"
	}
	return ", as docker-proxies before Docker Engine 28 do"
}

// otherSource returns the words for an answer from an address other than the dialled one, or "".
// For clients behind NAT rules, connection tracking restores the address.
func (f *Facts) otherSource(r *Row) string {
	six := r.Family == "ipv6"
	asked, uplink := f.address(six)
	bridge := f.neighbour(r, six)
	var behind, from []string
	for _, d := range f.Devices {
		kind := r.Paths[OwnAddr].Kind
		if d.Name == bridge {
			kind = r.Paths[Neighbour].Kind
		}
		if d.Name == uplink || !d.Up || d.Kind == "loopback" ||
			kind != Direct && kind != ByProxy ||
			d.Kind == "bridge" && !slices.ContainsFunc(f.Devices, func(p Device) bool {
				return p.Master == d.Name
			}) {
			continue
		}
		for _, p := range d.Addrs {
			if p.Addr().Is6() == six && !p.Addr().IsLinkLocalUnicast() {
				behind, from = append(behind, d.Name), append(from, p.Addr().String())
				break
			}
		}
	}
	if len(behind) == 0 {
		return ""
	}
	return fmt.Sprintf("asked at %s by a client behind %s, it answers from %s", asked,
		strings.Join(behind, ", "), strings.Join(from, ", "))
}

// ownSource is the first major version of Docker Engine whose docker-proxy answers UDP from the
// dialled address.
const ownSource = 28

func udpHolder(r *Row) string {
	if r.Holder.Kind == "docker-proxy" || IsRelay(r.Holder.Kind) {
		return fmt.Sprintf("%s %d", r.Holder.Kind, r.Holder.PID)
	}
	return r.Server.describe()
}
