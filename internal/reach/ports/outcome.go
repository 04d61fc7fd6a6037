package ports

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// outcome turns the answer to a connection into a path.
type outcome struct {
	c   *Copy
	f   *Facts
	q   asked
	out Path
}

// path returns the path that the answer to q shows. ok is false if there is no answer.
func (c *Copy) path(q asked) (Path, bool) {
	a := q.answer
	if len(a.Outcomes) == 0 {
		return Path{}, false
	}
	o := outcome{c: c, f: c.f, q: q, out: Path{Client: q.kind, From: q.from, Dial: q.at.String(),
		Hops: []Hop{}, self: q.self, card: q.client.Card, single: q.single, network: q.network}}
	if a.Outcomes[0].Got == replica.Failed {
		o.end(Nothing, Reason{Code: NotMade})
		o.doubt(Reason{Code: NotMade})
		return o.out, true
	}
	for _, text := range a.Unsure {
		o.doubt(Reason{Code: Uncopied, Text: text})
	}
	got := a.Outcomes[0]
	o.out.Source, o.out.Seen = text(got.Source), text(got.Seen)
	o.arrive()
	switch got.Got {
	case replica.Connected:
		o.answered(got)
	case replica.Closed, replica.Silent:
		o.accepted(got)
	case replica.Refused:
		o.refused()
	default:
		o.lost()
	}
	if in := c.f.Ingress.Addr; in.IsValid() && got.Got != replica.Connected &&
		(o.destination().Addr() == in || o.out.proxy != nil && o.out.proxy.Container.Addr() == in) {
		o.ingress()
	}
	if o.out.Answers() && q.kind == Remote && !c.f.faces(q) {
		o.doubt(Reason{Code: RouteThere, At: q.at.Addr().String()})
	}
	if d := c.f.device(q.client.Card); o.out.Answers() && d.admitsNot(q.client.Source) {
		o.doubt(Reason{Code: NoPeer, Of: d.Name, At: q.client.Source.String()})
	}
	o.follow()
	if o.out.Trial = c.trialOf(q, o.out.candidates); o.out.Trial != nil {
		o.out.Remedy = o.out.Trial.text()
	}
	return o.out, true
}

// faces reports whether an address is one that other machines behind a card dial without a route of
// their own: it is in the card's network or, if the whole internet is behind the card, no private
// address of another network.
func (f *Facts) faces(q asked) bool {
	card := f.device(q.client.Card)
	near := slices.ContainsFunc(card.Addrs, func(p netip.Prefix) bool {
		return p.Contains(q.at.Addr())
	})
	return near || q.near(q.at.Addr()) || q.server == nil && q.router && !q.at.Addr().IsPrivate()
}

// admitsNot reports whether a device drops what comes from the address because no peer may have it.
func (d Device) admitsNot(a netip.Addr) bool {
	return a.IsValid() && d.Allowed != nil && !slices.ContainsFunc(d.Allowed,
		func(p netip.Prefix) bool { return p.Contains(a) })
}

func text(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func (o *outcome) hop(kind, text string) { o.out.Hops = append(o.out.Hops, Hop{kind, text}) }

func (o *outcome) end(k PathKind, why Reason) { o.out.Kind, o.out.Why = k, why }

func (o *outcome) doubt(what Reason) { o.out.Doubt = once(o.out.Doubt, what) }

func (o *outcome) local() bool { return o.q.place.kind == OwnAddr }

func (o *outcome) arrive() {
	switch {
	case o.q.client.Bridge != "":
		o.hop("veth", "the client container's eth0")
		o.hop("bridge", o.q.client.Bridge)
	case o.q.client.Card != "":
		o.hop("wire", o.q.client.Card)
	}
}

func (c *Copy) stand(i int) (stand, bool) {
	if i < 0 || i >= len(c.stands) {
		return stand{}, false
	}
	return c.stands[i], true
}

func (o *outcome) answered(got replica.Outcome) {
	s, ok := o.c.stand(got.Socket)
	if !ok {
		o.end(Blocked, Reason{Code: UnknownSocket})
		return
	}
	px, at, relayed := o.relay(got)
	if !relayed {
		at = s
	}
	o.out.server = o.c.serverOf(s)
	o.out.took(at.listener)
	if at.container != nil { // no proxy of an engine inside the container
		o.out.server = o.c.serverOf(at)
	}
	switch {
	case at.container == nil && relayed:
		o.proxied(px, at.listener.Addr)
		o.into(px.Container, s)
	case at.container == nil:
		o.here(s.listener)
	case at.container == o.q.server:
		o.out.Kind = Direct
		o.into(o.q.at, at)
	default:
		o.translated(got, at)
	}
	if at.container != nil && relayed {
		o.hop("proxy", fmt.Sprintf("docker-proxy %d in %s dials %s, of %s", px.PID,
			at.container.Name, px.Container, o.c.serverOf(s).describe()))
	}
	o.servers()
	if got.From.IsValid() && !o.f.tunnels(s.listener) {
		o.elsewhere(got.From)
	}
}

// servers lists the servers that answered in turn, with addresses where names are equal.
func (o *outcome) servers() {
	var all []stand
	lost := false
	for _, got := range o.q.answer.Outcomes {
		s, ok := o.c.stand(got.Socket)
		if ok = ok && got.Got == replica.Connected; ok {
			all = append(all, s)
		}
		lost = lost || !ok
	}
	if lost && len(o.out.Doubt) == 0 {
		o.doubt(Reason{Code: AtRandom})
	}
	for _, s := range slices.Clone(all) {
		all = append(all, o.c.twins(s)...)
	}
	for _, s := range all {
		name := o.c.serverOf(s).describe()
		if s.container != nil && slices.ContainsFunc(all, func(x stand) bool {
			return x.container != s.container && o.c.serverOf(x).describe() == name
		}) {
			name += " at " + netip.AddrPortFrom(s.container.address(s.listener,
				o.q.at.Addr().Is6()), s.listener.Addr.Port()).String()
		}
		o.out.Servers = once(o.out.Servers, name)
	}
	if len(o.out.Servers) < 2 {
		o.out.Servers = nil
	}
}

// twins returns the programs that share a server's TCP port by SO_REUSEPORT. The copy has one
// stand-in for all.
func (c *Copy) twins(s stand) (out []stand) {
	if s.listener.Proto != "tcp" {
		return nil
	}
	var all []*Listener
	if s.container == nil {
		all = c.f.socketsOn("tcp", s.listener.Addr.Port())
	} else {
		all = pointers(s.container.Listeners)
	}
	for _, l := range all {
		if l.Proto == "tcp" && l.Addr == s.listener.Addr && l.Device == s.listener.Device &&
			l.Inode != s.listener.Inode {
			out = append(out, stand{*l, s.container})
		}
	}
	return out
}

// elsewhere records that a datagram's answer does not come from the dialled address.
func (o *outcome) elsewhere(from netip.AddrPort) {
	switch v := o.f.dockerMajor(); {
	case o.out.Kind == ByProxy && v >= ownSource:
		return
	case o.out.Kind == ByProxy && v > 0:
		o.end(Blocked, Reason{Code: WrongSource, At: from.Addr().String()})
	default:
		o.doubt(Reason{Code: AnswersFrom, At: from.Addr().String()})
	}
	o.out.answered = from
}

// relay returns the docker-proxy that accepted the connection, and its socket. Without an answer it
// is the socket that listens on the address.
func (o *outcome) relay(got replica.Outcome) (px Proxy, at stand, ok bool) {
	switch {
	case len(got.Relays) > 0:
		at, ok = o.c.stand(got.Relays[0])
	case got.Got != replica.Connected && o.q.server == nil:
		at.listener, ok = o.f.listens(o.q.proto, o.q.at)
	}
	if ok {
		px, ok = at.proxy(o.f)
	}
	return px, at, ok
}

// took notes the machine's socket that took the connection.
func (p *Path) took(l Listener) { p.socket, p.inode = l.Addr, l.Inode }

func (o *outcome) proxied(px Proxy, at netip.AddrPort) {
	o.out.Kind, o.out.proxy = ByProxy, &px
	if o.out.Masqueraded = px.hides(o.q.kind, o.q.at.Addr()); o.out.Masqueraded && px.Rootless {
		o.out.Seen = "" // the copy has nothing behind a relay
	}
	if o.local() && slices.Contains(o.f.Shortcuts, Shortcut{o.q.at, px.Container}) {
		o.out.Kind = ByShortcut // shortcuts do not cross lo
		o.hop("shortcut", fmt.Sprintf("toll fast redirects the connect to %s, past docker-proxy %d",
			px.Container, px.PID))
		return
	}
	if o.local() {
		o.hop("lo", "this machine")
	}
	o.hop("proxy", fmt.Sprintf("%s %d on %s %s", px.name(), px.PID, at, o.f.dials(px)))
	if n := px.Next; n != nil {
		o.hop("proxy", fmt.Sprintf("docker-proxy %d on %s there dials %s", n.PID, n.Host,
			px.Container))
	}
}

// into adds the hops into a container to the socket that answered.
func (o *outcome) into(to netip.AddrPort, s stand) {
	o.out.target = to
	if s.container == nil {
		o.hop("socket", o.out.server.describe()+" listens on "+s.listener.Addr.String())
	} else {
		if b := o.f.bridgeAt(*s.container, to.Addr()); b != "" && b != o.q.client.Bridge {
			o.hop("bridge", b)
		}
		o.hop("veth", "the container's eth0")
		o.hop("server", s.container.Name+" listens on "+to.String()+o.redirectedInside(to, s))
	}
	o.held(s)
}

// redirectedInside returns the words for a port that the container's own rules redirect, as those
// of a service mesh's sidecar do, or "".
func (o *outcome) redirectedInside(to netip.AddrPort, s stand) string {
	at := s.listener.Addr.Port()
	if at == to.Port() || o.q.proto == "udp" {
		return ""
	}
	words := fmt.Sprintf(", and its own rules redirect that to port %d", at)
	if len(s.listener.Owners) > 0 {
		words += fmt.Sprintf(", of %s %d", s.listener.Owners[0].Name, s.listener.Owners[0].PID)
	}
	for _, l := range s.container.Listeners {
		if l.Proto == o.q.proto && l.Addr.Port() == to.Port() && len(l.Owners) > 0 {
			return words + fmt.Sprintf("; %s %d listens on %s", l.Owners[0].Name, l.Owners[0].PID,
				l.Addr)
		}
	}
	return words
}

// held ends the path at a server that does not answer although the kernel accepts connections for
// it.
func (o *outcome) held(s stand) {
	if o.out.server.State == statePaused {
		o.end(Held, Reason{Code: ServerPaused, Of: o.out.server.describe()})
	} else if why := s.listener.stuck(); why.Code != "" {
		why.Of = o.out.server.describe()
		o.end(Held, why)
	}
}

// here ends the path at a socket outside containers.
func (o *outcome) here(l Listener) {
	px, proxied := o.f.proxyOf(l)
	if o.local() && !proxied && !IsRelay(holder(l)) {
		o.hop("lo", "this machine")
	}
	if l.takes(o.q.proto, o.q.at) == 0 {
		o.out.moved = true
		o.hop("DNAT", "to "+l.Addr.String())
	}
	switch {
	case proxied: // the copy has nothing behind a relay
		o.proxied(px, l.Addr)
		o.behind(px)
	case IsRelay(holder(l)):
		o.proxied(Proxy{PID: l.Owners[0].PID, Program: holder(l), Rootless: true}, l.Addr)
		o.doubt(Reason{Code: BehindRelay, Of: holder(l)})
	case o.c == nil && len(l.Owners) == 0:
		o.out.Kind = Unknown
		o.doubt(Reason{Code: WhoseSocket})
	case o.f.keeps(l):
		name := holder(l)
		if o.f.Docker == "" && name == "dockerd" {
			o.doubt(Reason{Code: DockerUnasked})
		}
		o.hop("socket", "of "+name+", which never answers")
		o.end(Held, Reason{Code: Reserved, Of: name})
	default:
		o.out.Kind = Direct
		o.hop("socket", o.out.server.describe()+" listens on "+l.Addr.String())
		o.held(stand{listener: l})
	}
}

// behind ends the path at a relay's server.
func (o *outcome) behind(px Proxy) {
	o.out.target = px.Container
	c, known := o.f.behind(px)
	where := px.Container.String()
	switch {
	case !px.ends():
	case !known:
		o.doubt(Reason{Code: BehindRelay, Of: px.name()})
		return
	case px.Container.Port() == 0:
		o.hop("server", c.Name)
		o.doubt(Reason{Code: PortBehind, Of: c.Name, By: px.name()})
		return
	default:
		where = fmt.Sprintf("its port %d", px.Container.Port())
	}
	if !known || !c.ListenersKnown {
		o.hop("server", where)
		o.doubt(Reason{Code: ListensOn, At: where})
		return
	}
	l, ok := c.serves(o.q.proto, px.Container)
	if ok && px.keepsFamily() && !c.servesFamily(o.q.proto, px.Container.Port(), o.q.at.Addr().Is6()) {
		ok, where = false, where+" over "+family(o.q.at.Addr().Is6())
	}
	if !ok {
		o.unserved(c.Name, where)
		return
	}
	o.hop("server", c.Name+" listens on "+where)
	if px.ends() && !l.Addr.Addr().IsUnspecified() {
		o.doubt(Reason{Code: DialsOnly, Of: c.Name, By: px.name(), At: l.Addr.Addr().String()})
	}
	o.held(stand{listener: l})
}

// serves returns the socket that takes what a proxy sends to the address. For 0.0.0.0 it is any
// socket of the port, preferably one on all addresses.
func (c Container) serves(proto string, to netip.AddrPort) (best Listener, ok bool) {
	if !to.Addr().IsUnspecified() {
		return listens(c.Listeners, proto, to)
	}
	for _, l := range c.Listeners {
		if l.Proto == proto && l.Addr.Port() == to.Port() &&
			(!ok || l.Addr.Addr().IsUnspecified()) {
			best, ok = l, true
		}
	}
	return best, ok
}

// servesFamily reports whether a socket of the container takes what is sent to the port over an
// address family.
func (c Container) servesFamily(proto string, port uint16, six bool) bool {
	return slices.ContainsFunc(c.Listeners, func(l Listener) bool {
		a := l.Addr.Addr()
		return l.Proto == proto && l.Addr.Port() == port &&
			(a.Unmap().Is6() == six || a == netip.IPv6Unspecified() && !l.V6Only)
	})
}

// translated ends the path in a container to which rules redirect.
func (o *outcome) translated(got replica.Outcome, s stand) {
	to := o.destination()
	if to == o.q.at {
		to = netip.AddrPortFrom(s.container.address(s.listener, to.Addr().Is6()),
			s.listener.Addr.Port())
	}
	o.out.Kind = ByNAT
	o.hop("DNAT", "to "+to.String())
	if b := o.f.bridgeAt(*s.container, to.Addr()); b != "" && b == o.q.client.Bridge {
		o.out.Kind = Hairpin
	}
	o.out.Masqueraded = got.Seen.IsValid() && got.Source.IsValid() && got.Seen != got.Source
	if o.out.Masqueraded {
		o.hop("MASQ", "the server sees "+got.Seen.String())
	}
	o.into(to, s)
}

// address returns the container's address of the family at which the socket is reached.
func (c Container) address(l Listener, six bool) netip.Addr {
	if a := l.Addr.Addr().Unmap(); !a.IsUnspecified() {
		return a
	}
	for _, a := range c.Addrs {
		if a.Is6() == six {
			return a
		}
	}
	return l.Addr.Addr()
}

// destination returns the last destination of the packet, if it was followed.
func (o *outcome) destination() netip.AddrPort {
	to := o.q.at
	for _, s := range o.q.answer.Steps {
		if !s.Reply && s.Dst.IsValid() {
			to = s.Dst
		}
	}
	if l := o.q.answer.Lost; l != nil && !l.Reply && l.Dst.IsValid() {
		return l.Dst
	}
	return to
}

func (c *Copy) serverOf(s stand) Server {
	if s.container == nil {
		return c.f.serverOf(s.listener)
	}
	return c.f.containerServer(*s.container, s.listener.Addr.Port())
}

// dockerMajor returns the engine's major version, or 0 if it is not known.
func (f *Facts) dockerMajor() int {
	n, _ := strconv.Atoi(strings.SplitN(f.Docker, ".", 2)[0])
	return n
}
