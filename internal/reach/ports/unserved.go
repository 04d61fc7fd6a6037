package ports

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

func (o *outcome) nobody(name string, to netip.AddrPort) {
	o.out.target = to
	o.unserved(name, to.String())
}

func (o *outcome) unserved(name, where string) {
	o.out.nobody = name
	o.hop("server", name+": nothing listens on "+where)
	why := Reason{Code: NobodyBehind, Of: name, By: string(cmp.Or(o.out.Kind, ByNAT)), At: where}
	if rule, text := o.redirection(); rule != "" {
		why.Code, why.By, why.Text = NobodyByRule, rule, text
	}
	o.end(Nothing, why)
}

// accepted ends the path of a connection that a proxy accepted but did not relay.
func (o *outcome) accepted(got replica.Outcome) {
	px, at, relayed := o.relay(got)
	if !relayed {
		o.end(Held, Reason{Code: NotAnswered})
		return
	}
	o.out.took(at.listener)
	o.proxied(px, at.listener.Addr)
	o.out.target = px.Container
	name := px.Container.String()
	if c, ok := o.f.behind(px); ok {
		name = c.Name
	}
	if got.Got == replica.Closed && o.q.answer.Lost == nil {
		o.nobody(name, px.Container)
		return
	}
	why := Reason{Code: NothingBehind}
	if o.q.answer.Lost != nil {
		why = o.blocked(px.Container)
		why.Code, why.At = LostBehind, px.Container.String()
	}
	o.end(Held, why)
}

func (o *outcome) refused() {
	to := o.destination()
	if o.q.answer.Lost != nil && o.q.answer.Lost.Rule != nil {
		o.lost()
		return
	}
	if o.q.server != nil && to == o.q.at {
		o.end(Nothing, Reason{Code: NothingOn, At: o.q.at.String()})
		return
	}
	if o.beyond(to) {
		o.onward(to)
		return
	}
	if to != o.q.at {
		name := to.Addr().String()
		if o.f.own(to.Addr()) {
			name = here
		}
		if c, ok := o.c.lastContainer(o.q.answer.Steps); ok {
			name = c.Name
		} else if c, ok := o.f.at(to.Addr()); ok {
			name = c.Name
		}
		o.hop("DNAT", "to "+to.String())
		o.nobody(name, to)
		return
	}
	o.end(Nothing, Reason{Code: NoSocket, At: o.q.at.String()})
}

// beyond reports whether rules send the packet to an address that is neither this machine's nor in
// the network of one of its containers. The copy has no programs there.
func (o *outcome) beyond(to netip.AddrPort) bool {
	if last, ok := o.lastStep(); ok && last.Space > 0 && !last.Out {
		return false // a container's own address
	}
	_, known := o.f.at(to.Addr())
	return to != o.q.at && !known && !o.f.own(to.Addr()) &&
		!o.f.hosts(o.f.device(o.f.towards(to.Addr())))
}

// onward ends the path of a packet that rules send to another machine.
func (o *outcome) onward(to netip.AddrPort) {
	o.end(ByNAT, Reason{})
	o.out.target, o.out.server = to, Server{Kind: "unknown", Name: to.String()}
	o.hop("DNAT", "to "+to.String())
	o.hop("server", to.String()+", outside this machine and its containers")
	o.doubt(Reason{Code: AnswersBeyond, At: to.String()})
}

// deaf reports whether it is certain that no socket of the container takes what is sent to the
// address.
func (c Container) deaf(proto string, to netip.AddrPort) bool {
	_, serves := c.serves(proto, to)
	return c.ListenersKnown && !serves
}

func (c *Copy) lastContainer(steps []replica.Step) (*Container, bool) {
	for _, s := range slices.Backward(steps) {
		if x, ok := c.containerIn(s.Space); ok && !s.Reply {
			return x, true
		}
	}
	return nil, false
}

func (c *Copy) containerIn(space int) (*Container, bool) {
	if space <= 0 || space >= len(c.Machine.Spaces) {
		return nil, false
	}
	for i := range c.f.Containers {
		if x := &c.f.Containers[i]; x.Space == c.Machine.Spaces[space].ID && x.Shares == "" {
			return x, true
		}
	}
	return nil, false
}

// ingress ends the path where IPVS, which the copy lacks, chooses a server.
func (o *outcome) ingress() {
	to := o.destination()
	o.out.target = netip.AddrPortFrom(o.f.Ingress.Addr, to.Port())
	o.out.nobody, o.out.Block, o.out.candidates = "", nil, nil
	o.out.server = o.f.Ingress.server(o.q.proto, to.Port())
	if o.out.Kind = ByProxy; o.out.proxy == nil || o.out.proxy.PID == 0 {
		o.out.Kind = ByNAT
	}
	o.out.Why = Reason{}
	o.hop("server", "the swarm's ingress, where IPVS chooses a task of "+o.out.server.Name)
	o.doubt(Reason{Code: TaskAnswers})
}

// redirected reports whether rules sent the client's own packet to the address. A proxy's has
// another source port.
func (o *outcome) redirected(to netip.AddrPort) bool {
	steps, l := o.q.answer.Steps, o.q.answer.Lost
	if l != nil && !l.Reply && l.Space == 0 && l.Dst == to && (l.Device != "" || len(steps) == 0) {
		return true // it came in, or was dropped before a proxy could get it
	}
	return slices.ContainsFunc(steps, func(s replica.Step) bool {
		return !s.Reply && s.Dst == to && s.Src.Port() == steps[0].Src.Port()
	})
}

func (o *outcome) lost() {
	to := o.destination()
	if l := o.q.answer.Lost; o.beyond(to) && (l == nil || l.Rule == nil && (l.Space < 0 ||
		!l.Reply && (l.Why == replica.Leaves || l.Why == replica.NoNeighbour))) {
		o.onward(to)
		return
	}
	why := Reason{Code: NoAnswer}
	switch px, at, relayed := o.relay(replica.Outcome{}); {
	case relayed && o.q.proto == "udp" && to == px.Container && !o.redirected(to):
		o.proxied(px, at.listener.Addr)
		if c, ok := o.f.behind(px); ok && o.q.answer.Lost == nil && c.deaf("udp", to) {
			o.nobody(c.Name, to)
			return
		}
		why.By, why.At = px.name(), to.String()
	case to != o.q.at:
		why.At = to.String()
		o.hop("DNAT", "to "+to.String())
	}
	if o.q.answer.Lost == nil {
		o.end(Blocked, why)
		return
	}
	o.out.target = to
	why.Code, why.Lost = Lost, o.blocked(to).Lost
	o.end(Blocked, why)
	l := o.q.answer.Lost
	if c, ok := o.f.at(to.Addr()); ok && l.Why == replica.NoNeighbour && !l.Reply &&
		c.deaf(o.q.proto, to) {
		o.out.nobody = c.Name
	}
}
