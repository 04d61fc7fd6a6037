package ports

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

const (
	fullShare      = 0.8      // share of conntrack's table
	proxyBytes     = 64 << 20 // through one proxy, on open connections
	proxyConns     = 64       // open through one proxy
	proxyCores     = 0.1      // CPU used by one proxy, in cores
	leastLocalOnly = 1        // connections that raise a doubt
)

func (f *Facts) conntrack([]Row) []Trap {
	if f.TrackedMax == 0 || float64(f.Tracked) < fullShare*float64(f.TrackedMax) {
		return nil
	}
	return []Trap{{Code: ConntrackFull, About: Reason{Code: ConntrackFull},
		Evidence: fmt.Sprintf("nf_conntrack_count is %d of nf_conntrack_max %d (%.0f %%)",
			f.Tracked, f.TrackedMax, 100*float64(f.Tracked)/float64(f.TrackedMax)),
		Remedy: untriable(fmt.Sprintf("sudo sysctl -w net.netfilter.nf_conntrack_max=%d",
			2*f.TrackedMax), untracked) + ", and see who opens them: sudo conntrack -L"}}
}

func (f *Facts) proxyLoad(rows []Row) []Trap {
	nat, proxied := true, false
	t := about(ProxyLoad)
	measure := ""
	for _, p := range f.Proxies {
		if p.Rootless { // a rootless engine needs its proxies
			continue
		}
		bytes, n := f.carried(p)
		if bytes < proxyBytes && n < proxyConns && p.CPU < proxyCores {
			continue
		}
		seen := fmt.Sprintf("docker-proxy %d on %s has %s open, with %.0f MiB so far", p.PID, p.Host,
			units.Plural(n, "connection"), float64(bytes)/(1<<20))
		if p.CPU >= proxyCores {
			seen += fmt.Sprintf(", and uses %.2f of a core now", p.CPU)
		}
		if p.Memory > 0 {
			seen += fmt.Sprintf(", in %.1f MiB of memory", float64(p.Memory)/(1<<20))
		}
		if measure = "sudo toll compare bridge publish --on docker"; p.Proto == "udp" {
			measure += " --load udp-rr"
		}
		t.add(newRow(p.Proto, p.Host), seen)
		own := p.ownAddress(rows)
		nat, proxied = nat && own == ByNAT, proxied || own == ByProxy
	}
	t.Remedy = "instead of 127.0.0.1 or ::1, " + pastProxy(nat)
	if !proxied { // the engine writes rules
		t.Remedy += "; or set \"userland-proxy\": false in daemon.json"
	}
	t.Remedy += "; to measure what that saves: " + measure
	return t.found()
}

// ownAddress returns how this machine's own address leads to the proxy's port; "": it does not.
func (p Proxy) ownAddress(rows []Row) PathKind {
	i := slices.IndexFunc(rows, newRow(p.Proto, p.Host).same)
	if i < 0 {
		return ""
	}
	return rows[i].Paths[OwnAddr].Kind
}

// pastProxy returns what to dial instead of an address that docker-proxy serves. nat means that the
// engine's rules serve this machine's own address.
func pastProxy(nat bool) string {
	if nat {
		return "dial the machine's own address, which NAT serves, or the container's"
	}
	return "dial the container's own address"
}

func (f *Facts) carried(p Proxy) (bytes uint64, connections int) {
	for _, c := range f.indexed().carried[p.PID] {
		if c.Local.Port() == p.Host.Port() {
			bytes, connections = bytes+c.Bytes, connections+1
		}
	}
	return bytes, connections
}

// allProxies summarizes the docker-proxies of a port, or of every port if port is 0. It returns nil
// if there are none.
func (f *Facts) allProxies(port uint16) *Proxies {
	var out Proxies
	for _, p := range f.Proxies {
		if p.Rootless || port != 0 && p.Host.Port() != port {
			continue
		}
		_, n := f.carried(p)
		out.Number, out.Memory, out.Connections = out.Number+1, out.Memory+p.Memory,
			out.Connections+n
	}
	if out.Number == 0 {
		return nil
	}
	return &out
}

// localOnly finds ports that are open to every machine and used only by this one.
func (f *Facts) localOnly(rows []Row) []Trap {
	if !f.Known.Flows {
		return nil // only that shows other machines' NAT connections
	}
	t := about(PublicLocalOnly)
	t.Remedy = "if only this machine needs it, publish it with -p 127.0.0.1:PORT:TARGET"
	for _, r := range rows {
		if r.Proto != "tcp" || r.Family != "ipv4" || !r.addr.IsUnspecified() ||
			r.Server.Kind != "container" || r.Holder.Kind == "server" {
			continue
		}
		local, others := f.clientsOf(r.Port)
		if others > 0 || local < leastLocalOnly {
			continue
		}
		t.add(r, fmt.Sprintf(
			"at this moment %d has %s open from this machine and none from elsewhere",
			r.Port, units.Plural(local, "connection")))
	}
	return t.found()
}

func (f *Facts) clientsOf(port uint16) (local, others int) {
	for _, c := range f.Connections {
		switch {
		case c.Remote.Port() == port && f.own(c.Remote.Addr().Unmap()) &&
			f.own(c.Local.Addr().Unmap()):
			local++ // the client's own socket
		case c.Local.Port() == port && !f.own(c.Remote.Addr().Unmap()):
			others++
		}
	}
	for _, c := range f.Flows {
		if c.Proto == "tcp" && c.To.Port() == port && f.own(c.To.Addr()) && !f.own(c.From) {
			others++
		}
	}
	return local, others
}

func (f *Facts) unpublished([]Row) []Trap {
	t := about(Unpublished)
	t.Remedy = "to publish it on this machine: -p PORT:PORT; otherwise nothing"
	for _, c := range f.Containers {
		if c.PID == 0 || c.Rootless || c.Host || c.Shares != "" {
			continue
		}
		for _, e := range c.Exposed {
			same := func(proto string, port uint16) bool { return proto == e.Proto && port == e.Port }
			asked := slices.ContainsFunc(c.Asked, func(p Published) bool {
				return same(p.Proto, p.Port)
			})
			if asked || c.ListenersKnown && !slices.ContainsFunc(c.Listeners,
				func(l Listener) bool { return same(l.Proto, l.Addr.Port()) }) {
				continue
			}
			said := ""
			if !c.ListenersKnown {
				said = "; whether it listens is not known"
			}
			t.add(Row{Port: e.Port, Proto: e.Proto}, fmt.Sprintf(
				"%d/%s of container %s in %s: the image or --expose names it%s", e.Port, e.Proto,
				c.Name, strings.Join(c.Networks, ", "), said))
		}
	}
	return t.found()
}

func (f *Facts) mtus([]Row) []Trap {
	_, up := f.address(false)
	uplink := f.device(up)
	groups := map[string][]string{}
	small := map[string]bool{}
	for _, c := range f.Containers {
		if c.PID == 0 || c.Rootless || c.Host || c.Shares != "" {
			continue
		}
		for _, d := range c.Devices {
			if d.Kind == "loopback" || !d.Up {
				continue
			}
			said, differ, narrow := f.mtuPath(d, uplink)
			if differ {
				groups[said] = append(groups[said], c.Name)
				small[said] = narrow
			}
		}
	}
	var out []Trap
	for said, names := range groups {
		t := Trap{Code: MTUDiffers, Evidence: said,
			About: Reason{Code: MTUDiffers, Of: strings.Join(names, ", ")},
			Remedy: "set one MTU everywhere (\"mtu\" in daemon.json, or --opt " +
				"com.docker.network.driver.mtu=N for a network), then recreate the containers"}
		if small[said] {
			t.About.Code = SmallMTU
		}
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b Trap) int {
		return cmp.Or(cmp.Compare(a.About.Of, b.About.Of), cmp.Compare(a.About.Code, b.About.Code))
	})
	return out
}

func (f *Facts) device(name string) Device {
	for _, d := range f.Devices {
		if d.Name == name && name != "" {
			return d
		}
	}
	return Device{}
}

// mtuPath returns the MTUs along the path out of a container. narrow means that a later MTU is
// smaller than the container's.
func (f *Facts) mtuPath(d, uplink Device) (said string, differ, narrow bool) {
	devices := []Device{{Name: "the container's " + d.Name, MTU: d.MTU}}
	if port, ok := f.peerOf(d); ok {
		bridge := f.device(port.Master)
		if bridge.Out != "" {
			uplink = Device{Name: bridge.Out, MTU: bridge.OutMTU}
		}
		devices = append(devices, Device{Name: "its veth", MTU: port.MTU}, bridge, uplink)
	}
	var parts []string
	for _, x := range devices {
		if x.MTU == 0 {
			continue
		}
		parts = append(parts, fmt.Sprintf("%s %d", x.Name, x.MTU))
		differ = differ || x.MTU != d.MTU
		narrow = narrow || x.MTU < d.MTU
	}
	return strings.Join(parts, ", "), differ, narrow
}
