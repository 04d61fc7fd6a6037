package ports

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/paths/firewall"
)

type journey struct {
	f     *Facts
	row   *Row
	local bool // outside containers
	moved bool // redirected to another port of this machine
	p     firewall.Packet
	out   Path
}

// ok is false if the client does not dial an address of the row.
func (f *Facts) path(r *Row, c Client) (Path, bool) {
	j := journey{f: f, row: r, local: true}
	var ok bool
	if j.p, ok = f.packet(r, c); !ok {
		return Path{}, false
	}
	j.local = c == Loopback || c == Loopback6 || c == OwnAddr
	dial := netip.AddrPortFrom(j.p.Dst, r.Port)
	j.out = Path{Dial: dial.String(), Hops: []Hop{}}
	j.arrive(c)
	j.follow(dial)
	if j.out.Kind == Nothing || j.out.Kind == Held {
		j.out.Depends = nil
	}
	return j.out, !j.out.elsewhere
}

func (j *journey) hop(kind, text string) { j.out.Hops = append(j.out.Hops, Hop{kind, text}) }

func (j *journey) end(w PathKind, why string) { j.out.Kind, j.out.Why = w, why }

func (j *journey) doubt(s string) {
	if !slices.Contains(j.out.Doubt, s) {
		j.out.Doubt = append(j.out.Doubt, s)
	}
}

func (j *journey) arrive(c Client) {
	switch c {
	case Neighbour:
		j.hop("veth", "the client container's eth0")
		j.hop("bridge", j.p.In)
	case Remote:
		j.hop("wire", j.p.In)
	}
}

func (j *journey) walk(k firewall.Kind, h firewall.Hook, p firewall.Packet) firewall.Outcome {
	return j.walkIn(j.f.Rules, k, h, p)
}

func (j *journey) walkIn(r firewall.Rules, k firewall.Kind, h firewall.Hook,
	p firewall.Packet) firewall.Outcome {
	o := r.Walk(k, h, p)
	for _, u := range o.Unread {
		j.doubt("a rule that toll cannot read, " + u)
	}
	for _, d := range o.Depends {
		if !slices.Contains(j.out.Depends, d) {
			j.out.Depends = append(j.out.Depends, d)
		}
	}
	return o
}

func (j *journey) drops(r firewall.Rules, h firewall.Hook, p firewall.Packet, before string) bool {
	o := j.walkIn(r, firewall.Filter, h, p)
	if o.Verdict != firewall.Drop && o.Verdict != firewall.Reject {
		return false
	}
	where := o.Where
	if o.Rule > 0 {
		where += fmt.Sprintf(" rule %d", o.Rule)
	}
	j.end(Blocked, before+"dropped by "+where)
	j.out.Remedy = unblock(o, p)
	return true
}

// unblock returns "" if no rule can let the packet past the chain. Later chains may still drop it.
func unblock(o firewall.Outcome, p firewall.Packet) string {
	table, chain, _ := strings.Cut(strings.TrimPrefix(o.Where, "policy of "), " ")
	program := "iptables"
	if p.Dst.Is6() {
		program = "ip6tables"
	}
	to := fmt.Sprintf("-d %s -p %s --dport %d", p.Dst, p.Proto, p.Port)
	switch {
	case table == "filter" && chain == "DOCKER-USER":
		return fmt.Sprintf("sudo %s -I DOCKER-USER %d %s -j RETURN", program, max(1, o.Rule), to)
	case table == "filter" && chain == "INPUT":
		return fmt.Sprintf("sudo %s -I INPUT %s -j ACCEPT", program, to)
	}
	return ""
}

func (j *journey) follow(dial netip.AddrPort) {
	hook := firewall.Output
	if !j.local {
		hook = firewall.Prerouting
	}
	if j.drops(j.f.Rules.BeforeDNAT(), hook, j.p, "") { // raw, mangle
		return
	}
	if !j.f.Known.Rules {
		j.guess(dial)
		return
	}
	o := j.walk(firewall.NAT, hook, j.p)
	if o.Verdict == firewall.DNAT && o.To != dial {
		j.p.Orig = dial
		if !j.f.own(o.To.Addr()) {
			j.translated(o)
			return
		}
		j.hop("DNAT", fmt.Sprintf("to %s, by a rule of %s", o.To, o.Where))
		j.p.Dst, j.p.Port = o.To.Addr(), o.To.Port()
		j.moved, dial = true, o.To
	}
	j.deliver(dial)
}

// guess assumes Docker's usual rules, because the real ones could not be read.
func (j *journey) guess(dial netip.AddrPort) {
	j.doubt("the rules cannot be read: this is the route that Docker's own rules make")
	l, ok := listens(j.f.Listeners, j.p.Proto, dial)
	px, proxied := j.f.proxyOf(l)
	dockers := ok && proxied
	to := px.Container
	if !dockers {
		for _, c := range j.f.Containers {
			for _, p := range c.Published {
				if p.Proto == j.p.Proto && p.Host.Port() == dial.Port() && len(c.Addrs) > 0 &&
					p.Host.Addr().Is4() == dial.Addr().Is4() &&
					(p.Host.Addr().IsUnspecified() || p.Host.Addr() == dial.Addr()) {
					to, dockers = netip.AddrPortFrom(c.Addrs[0], p.Port), true
				}
			}
		}
	}
	inside := proxied && px.Rootless || proxied &&
		(dial.Addr().IsLoopback() || j.p.In != "" && j.p.In == j.f.towards(to.Addr()))
	if !dockers || inside || to.Addr().Is4() != dial.Addr().Is4() {
		j.deliver(dial)
		return
	}
	j.hop("DNAT", "to "+to.String()+", by rules that cannot be read")
	j.out.Kind = ByNAT
	j.toContainer(to)
}

func (j *journey) translated(o firewall.Outcome) {
	out := j.f.towards(o.To.Addr())
	j.hop("DNAT", fmt.Sprintf("to %s, by a rule of %s", o.To, o.Where))
	p := j.p
	p.Dst, p.Port = o.To.Addr(), o.To.Port()
	p.Out, p.DstLocal = out, false
	then := "DNAT to " + o.To.String() + ", then "
	if !j.local {
		if j.unforwarded(p.Dst) {
			return
		}
		in := p
		in.Out = ""
		if j.drops(j.f.Rules.AfterDNAT(), firewall.Prerouting, in, then) ||
			j.drops(j.f.Rules, firewall.Forward, p, then) {
			return
		}
	} else if j.drops(j.f.Rules.AfterDNAT(), firewall.Output, p, then) {
		return
	}
	if j.p.Src.IsLoopback() && p.Dst.Is4() && !j.f.Switches.localnet(out) {
		j.out.localnet = orSomething(out)
		j.end(
			Blocked,
			fmt.Sprintf(
				"DNAT to %s, but %s does not carry packets from 127.0.0.1 (route_localnet is 0)",
				o.To, orSomething(out)))
		return
	}
	if j.p.Src.IsLoopback() && p.Dst.Is6() { // seen with Docker Engine 28.5.2
		j.end(
			Blocked,
			fmt.Sprintf(
				"DNAT to %s, but packets from ::1 never leave lo: IPv6 has no route_localnet",
				o.To))
		return
	}
	j.out.Kind = ByNAT
	j.out.Masqueraded = j.walk(firewall.NAT, firewall.Postrouting, p).Verdict == firewall.Masquerade
	if out != "" && j.p.In == out {
		j.out.Kind = Hairpin
		if !j.out.Masqueraded && !j.f.Switches.BridgeNF {
			j.end(
				Blocked,
				"the server's answer goes straight back over "+out+", untranslated: net.bridge.bridge-nf-call-iptables is 0")
			return
		}
	}
	if j.out.Masqueraded {
		j.hop("MASQ", "the server sees "+orSomething(out)+"'s address")
	}
	j.toContainer(o.To)
}

func (j *journey) unforwarded(to netip.Addr) bool {
	key, on := "net.ipv4.ip_forward", j.f.Switches.Forward4
	if to.Is6() {
		key, on = "net.ipv6.conf.all.forwarding", j.f.Switches.Forward6
	}
	if on {
		return false
	}
	j.end(Blocked, "this machine forwards nothing: "+key+" is 0")
	j.out.Remedy = "sudo sysctl -w " + key + "=1"
	return true
}

func orSomething(device string) string {
	if device == "" {
		return "the next device"
	}
	return device
}

func (j *journey) toContainer(to netip.AddrPort) {
	j.out.target = to
	if b := j.f.towards(to.Addr()); b != "" && !j.out.proxy.Rootless {
		j.hop("bridge", b)
		j.hop("veth", "the container's eth0")
	}
	if in := j.f.Ingress; !j.out.proxy.Rootless && in.Addr.IsValid() && to.Addr() == in.Addr {
		j.hop("server", "the swarm's ingress, where IPVS chooses a task of "+in.server(
			j.p.Proto, to.Port()).Name)
		j.doubt("whether any of the service's tasks answers")
		return
	}
	c, ok := j.f.find(to.Addr(), j.out.proxy.Rootless)
	if !ok {
		j.hop("server", to.String()+", of a container that toll does not know")
		j.doubt("whether anything listens on " + to.String())
		return
	}
	if !c.ListenersKnown {
		j.hop("server", c.Name+", port "+fmt.Sprint(to.Port()))
		j.doubt("whether anything listens in " + c.Name)
		return
	}
	if _, ok := listens(c.Listeners, j.p.Proto, to); !ok {
		j.hop("server", c.Name+": nothing listens on "+to.String())
		j.out.nobody = c.Name
		j.end(Nothing, fmt.Sprintf("%s leads to %s, where nothing listens on %s", j.out.Kind,
			c.Name, to))
		return
	}
	j.hop("server", c.Name+" listens on "+to.String())
	j.paused(j.f.containerServer(c, to.Port()))
}

// The kernel still accepts connections for a paused server.
func (j *journey) paused(s Server) {
	if s.State == statePaused {
		j.end(Held, s.describe()+" is paused: the kernel accepts for it, but it does not answer")
	}
}

// Redirected connections do not cross lo.
func (j *journey) redirected(px Proxy) {
	j.out.Kind, j.out.proxy, j.out.Masqueraded = ByShortcut, px, true
	j.out.Hops = []Hop{{"shortcut", fmt.Sprintf(
		"toll fast redirects the connect to %s, past docker-proxy %d", px.Container, px.PID)}}
	j.toContainer(px.Container)
}

func (j *journey) proxied(px Proxy, at netip.AddrPort) {
	j.out.Kind, j.out.proxy = ByProxy, px
	j.out.Masqueraded = true
	j.hop("proxy", fmt.Sprintf("%s %d on %s dials %s", px.Name(), px.PID, at, px.Container))
	if out := j.f.towards(px.Container.Addr()); !px.Rootless && out != "" {
		p := firewall.Packet{Proto: j.p.Proto, Dst: px.Container.Addr(), Port: px.Container.Port(),
			Out: out, SrcLocal: true}
		for _, a := range j.f.device(out).Addrs {
			if a.Addr().Is4() == p.Dst.Is4() {
				p.Src = a.Addr()
			}
		}
		if o := j.walk(firewall.Filter, firewall.Output, p); o.Verdict == firewall.Drop ||
			o.Verdict == firewall.Reject {
			j.end(
				Held,
				"the proxy accepts, and what it sends to "+px.Container.String()+" is dropped by "+o.Where)
			return
		}
	}
	j.toContainer(px.Container)
}

func (j *journey) deliver(dial netip.AddrPort) {
	p := j.p
	before := j.f.Rules.AfterDNAT()
	if j.local {
		j.hop("lo", "this machine")
		if j.drops(before, firewall.Output, p, "") {
			return
		}
		p.In, p.Out, before = "lo", "", j.f.Rules
	}
	if !j.f.Known.Rules && !j.local {
		j.doubt("the rules cannot be read: a firewall may block this")
	}
	if j.drops(before, firewall.Prerouting, p, "") || j.drops(j.f.Rules, firewall.Input, p, "") {
		return
	}
	l, ok := listens(j.f.Listeners, p.Proto, dial)
	if !ok {
		j.end(Nothing, "no socket listens on "+dial.String())
		return
	}
	if l.Addr.Addr() != j.row.addr && !j.moved {
		j.out.elsewhere = true
	}
	if px, ok := j.f.proxyOf(l); ok {
		if j.local && slices.Contains(j.f.Shortcuts, Shortcut{dial, px.Container}) {
			j.redirected(px)
			return
		}
		j.proxied(px, l.Addr)
		return
	}
	if j.f.keeps(l) {
		if j.f.Docker == "" {
			j.doubt("Docker was not asked: dockerd may serve this port itself")
		}
		if j.f.onDemand(l) {
			j.out.Kind, j.out.Masqueraded = ByProxy, true
			j.hop("proxy", "docker-proxy, once dockerd has started it")
			j.doubt(
				"dockerd has the socket, no docker-proxy runs for it, and rules lead 127.0.0.1 nowhere: an engine that starts docker-proxy for its first client answers, another does not")
			return
		}
		j.hop("socket", "of dockerd, which never answers")
		j.end(Held, "dockerd's socket keeps the port taken and accepts, but never answers")
		return
	}
	j.out.Kind = Direct
	j.hop("socket", j.f.serverOf(l).describe()+" listens on "+l.Addr.String())
	j.paused(j.f.serverOf(l))
}

// onDemand reports whether dockerd may start a docker-proxy when a client connects. Engines up to
// 29 start it with the container.
func (f *Facts) onDemand(l Listener) bool {
	own, _ := f.address(false)
	if !f.Known.Rules || !own.IsValid() || !l.Addr.Addr().Is4() || !l.Addr.Addr().IsUnspecified() {
		return false
	}
	c, _, ok := f.publisher(l)
	if !ok || len(c.Addrs) == 0 || f.Switches.localnet(f.towards(c.Addrs[0])) {
		return false
	}
	dialled := func(a netip.Addr) firewall.Verdict {
		return f.Rules.Walk(firewall.NAT, firewall.Output,
			firewall.Packet{Proto: l.Proto, Port: l.Addr.Port(), Src: a, Dst: a, Out: "lo",
				SrcLocal: true, DstLocal: true}).Verdict
	}
	return dialled(own) == firewall.DNAT &&
		dialled(netip.AddrFrom4([4]byte{127, 0, 0, 1})) != firewall.DNAT
}

func (f *Facts) keeps(l Listener) bool {
	if holder(l) != "dockerd" {
		return false
	}
	if f.Docker != "" {
		_, _, ok := f.publisher(l)
		return ok || f.ingressPort(l.Proto, l.Addr.Port())
	}
	return !slices.Contains([]uint16{2375, 2376, 2377, 4243, 7946}, l.Addr.Port())
}

func holder(l Listener) string {
	if len(l.Owners) == 0 {
		return "unknown"
	}
	return l.Owners[0].Name
}
