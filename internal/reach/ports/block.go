package ports

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// blocked sets the path's Block and the candidates for its remedy, and returns where and why
// packets were lost.
func (o *outcome) blocked(to netip.AddrPort) Reason {
	lost := o.q.answer.Lost
	b := &Block{Where: o.c.where(lost.Space), Reply: lost.Reply}
	o.out.Block = b
	var l Loss
	if lost.Rule != nil {
		r := lost.Rule.RuleText
		r.Number = o.q.numberBefore()
		r = o.c.ruleText(lost.Space, r)
		b.Table, b.Chain, b.Number = r.Table, r.Chain, r.Number
		b.Rule, b.Policy = r.Text, r.Number == 0
		l = Loss{Code: Dropped, Table: o.c.tableText(lost.Space, lost.Rule.Table, r), Chain: b.Chain,
			Rule: b.Rule, Number: b.Number}
		if lost.Rule.Reject {
			l.Code = Rejected
		}
		o.out.candidates = o.afterRule(to)
	} else {
		l, o.out.candidates = o.cause(to)
	}
	if l.Reply = b.Reply; b.Where != here {
		l.Where = b.Where
	}
	o.out.lost = &l
	return o.out.cause()
}

// here is the Where of a Block outside containers.
const here = "this machine"

func (c *Copy) where(space int) string {
	if space == 0 {
		return here
	}
	if x, ok := c.containerIn(space); ok {
		return "container " + x.Name
	}
	if space < 0 {
		return "the client's own network"
	}
	return "another network namespace"
}

// ruleText adds the text of a rule in a namespace: the user's if it is known, in iptables' syntax
// for tables that iptables writes.
func (c *Copy) ruleText(space int, r replica.RuleText) replica.RuleText {
	if spaces := c.Machine.Spaces; space >= 0 && space < len(spaces) {
		r.Text = cmp.Or(r.Text, spaces[space].TextOf(r))
	}
	if family, table, ok := strings.Cut(r.Table, " "); ok && (family == "ip" || family == "ip6") &&
		slices.Contains(iptables, table) {
		r.Table = table
	}
	return r
}

// tableText returns the name of a rule's table in the program that lists the rule: nft's for a
// table that iptables-save leaves out, and for a rule of which it prints only parts. Table is nft's
// name, r is as ruleText returns it.
func (c *Copy) tableText(space int, table string, r replica.RuleText) string {
	byNft := false
	for _, t := range c.textsOf(space) {
		if t.Table != table || r.Number != 0 && (t.Chain != r.Chain || t.Number != r.Number) {
			continue
		}
		if strings.HasPrefix(t.Text, "-A ") {
			return r.Table
		}
		byNft = true
	}
	if byNft {
		return table
	}
	return r.Table
}

// redirection returns the place and the text of the rule that redirects the packet to a port of the
// namespace that it is in. The place is "" if no such rule is known, the text if it is not.
func (o *outcome) redirection() (place, text string) {
	for _, s := range o.q.answer.Steps {
		if s.Rule == nil {
			continue
		}
		r := o.c.ruleText(s.Space, *s.Rule)
		place = fmt.Sprintf("%s %s rule %d", o.c.tableText(s.Space, s.Rule.Table, r), r.Chain, r.Number)
		text = r.Text
	}
	return place, text
}

func (c *Copy) textsOf(space int) []replica.RuleText {
	if space < 0 || space >= len(c.Machine.Spaces) {
		return nil
	}
	return c.Machine.Spaces[space].Text
}

// iptables lists the tables that iptables writes.
var iptables = []string{"filter", "nat", "mangle", "raw", "security"}

// cause returns why the packet was lost without a rule, and the commands that may help, in the
// order in which to try them.
func (o *outcome) cause(to netip.AddrPort) (cause Loss, remedies []Command) {
	l := o.q.answer.Lost
	if x, ok := o.c.containerIn(l.Space); ok && o.q.self && !l.Reply && x == o.q.container {
		return o.returned(to)
	}
	switch l.Why {
	case replica.ReversePath:
		whose := o.out.Source
		if l.Reply {
			whose = to.Addr().String()
		}
		return Loss{Code: StrictSource, Device: l.Device, At: whose}, o.looser(l.Space, l.Device)
	case replica.NoRoute, replica.ReplyElsewhere, replica.ReplyUnnatted:
		return o.misrouted(to)
	case replica.NotForwarded:
		key, six := "net.ipv4.ip_forward", to.Addr().Is6()
		switch all := o.c.Machine.Spaces[max(l.Space, 0)].Sysctls; {
		case six:
			key = "net.ipv6.conf.all.forwarding"
		case all["net/ipv4/ip_forward"] == "1" && l.Device != "": // off for one device
			key = "net.ipv4.conf." + sysctlName(l.Device) + ".forwarding"
		}
		return Loss{Code: NotForwarded, Key: key}, o.forwarding(key, six)
	case replica.Localnet:
		return o.localnet(to.Addr().Is6())
	case replica.NoNeighbour:
		if l.Reply {
			return o.unanswered(to)
		}
		return o.noNeighbour(to)
	case replica.Leaves:
		if cause, remedies = o.strays(to); cause.Code != "" {
			return cause, remedies
		}
		return Loss{Code: LeftUnanswered, Device: l.Device}, nil
	case replica.Untraced:
		return o.untraced(to)
	}
	return Loss{Code: NoReason}, nil
}

// misrouted returns cause and remedies if a packet has no route, or if the answer takes another
// one.
func (o *outcome) misrouted(to netip.AddrPort) (cause Loss, remedies []Command) {
	l := o.q.answer.Lost
	came, at := cmp.Or(o.bridge(), o.q.client.Card), to.Addr().String()
	net, known := o.f.prefixOn(o.f.towards(to.Addr()), to.Addr().Is6())
	switch {
	case l.Why == replica.NoRoute && l.Reply:
		return Loss{Code: NoRouteBack, At: o.out.Source}, o.routeBack(to)
	case l.Why == replica.NoRoute && l.Space == 0 && to == o.q.at && o.f.own(to.Addr()) &&
		!o.local():
		return Loss{Code: NoRouteRedirected}, nil
	case l.Why == replica.NoRoute && known && l.Space == 0:
		return Loss{Code: NoRoute, At: at}, o.towards(net)
	case l.Why == replica.NoRoute:
		return Loss{Code: NoRoute, At: at}, nil
	case l.Why == replica.ReplyElsewhere:
		if cause = (Loss{Code: AnswerElsewhere, Device: l.Device}); l.Space == 0 {
			cause.Other = came
		}
		return cause, o.routeBack(to)
	}
	cause = Loss{Code: Untranslated}
	match := fmt.Sprintf("-d %s -p %s --dport %d", to.Addr(), o.q.proto, to.Port())
	if net, ok := o.f.prefixOn(o.bridge(), to.Addr().Is6()); ok {
		match = "-s " + net.Masked().String() + " " + match
	}
	if !o.f.Switches.BridgeNF && o.bridge() != "" {
		cause.Key = "net.bridge.bridge-nf-call-iptables"
		set := o.run(0, "sysctl -w "+cause.Key+"=1")
		remedies = instead("sudo modprobe br_netfilter; "+set[0].Text, set)
	}
	return cause, append(remedies, o.masquerade(match, to.Addr().Is6())...)
}

// bridge returns the machine's bridge at which the client is a new container or an existing one.
func (o *outcome) bridge() string {
	return cmp.Or(o.q.client.Bridge, o.f.device(o.q.place.bridge).Name)
}

// untraced returns cause and remedies if the last device shows why a packet was lost.
func (o *outcome) untraced(to netip.AddrPort) (cause Loss, remedies []Command) {
	if cause, remedies = o.hairpin(); cause.Code != "" {
		return cause, remedies
	}
	came := cmp.Or(o.bridge(), o.q.client.Card)
	if s, ok := o.lastStep(); ok && !o.q.answer.Lost.Reply && s.Out && s.Space == 0 &&
		s.Device != came && !o.f.hosts(o.f.device(s.Device)) {
		if net, ok := o.f.prefixOn(o.f.towards(to.Addr()), to.Addr().Is6()); ok {
			remedies = o.towards(net)
		}
		return Loss{Code: Left, Device: s.Device}, remedies
	}
	return Loss{Code: NoNftReason}, nil
}

// noNeighbour returns cause and remedies if nobody answers for an address.
func (o *outcome) noNeighbour(to netip.AddrPort) (cause Loss, remedies []Command) {
	if cause, remedies = o.strays(to); cause.Code != "" {
		return cause, remedies
	}
	bridge := o.f.device(o.f.towards(to.Addr()))
	if c, ok := o.f.at(to.Addr()); ok && bridge.Kind == "bridge" {
		for _, d := range c.Devices {
			port, linked := o.f.peerOf(d)
			if linked && d.has(to.Addr()) && port.Master != bridge.Name {
				return Loss{Code: NotInBridge, Of: c.Name, At: to.Addr().String(), Device: port.Name,
						Other: bridge.Name},
					o.run(0, fmt.Sprintf("ip link set %s master %s up", port.Name, bridge.Name))
			}
		}
	}
	if card := o.q.client.Card; o.q.answer.Lost.Space < 0 && card != "" && to == o.q.at {
		if c, ok := o.f.at(to.Addr()); ok { // the client looks for it in its own network
			return o.unproxied(c, card)
		}
	}
	return Loss{Code: NoMachine, At: to.Addr().String()}, nil
}

// unproxied returns cause and remedies if a container's address is in the network of a card, where
// nobody answers for it.
func (o *outcome) unproxied(c Container, card string) (cause Loss, remedies []Command) {
	a := o.q.at.Addr()
	cause = Loss{Code: NotProxied, Of: c.Name, At: a.String(), Device: card}
	if a.Is4() {
		return cause, o.run(0, fmt.Sprintf("ip neigh add proxy %s dev %s", a, card))
	}
	return cause, o.run(0, "sysctl -w net.ipv6.conf."+sysctlName(card)+".proxy_ndp=1",
		fmt.Sprintf("ip -6 neigh add proxy %s dev %s", a, card))
}

// hairpin returns cause and remedies if a container's packets to its own published port do not come
// back to it.
func (o *outcome) hairpin() (cause Loss, remedies []Command) {
	l := o.q.answer.Lost
	if !o.q.self || l.Reply || l.Space != 0 {
		return Loss{}, nil
	}
	for _, d := range o.q.container.Devices {
		port, ok := o.f.peerOf(d)
		if ok && port.Master != "" && !o.c.Machine.Spaces[0].Hairpin(port.Name) {
			return Loss{Code: NoHairpin, Device: port.Name},
				o.run(0, "bridge link set dev "+port.Name+" hairpin on")
		}
	}
	return Loss{}, nil
}

// returned returns cause and remedies if a container's packet to its own published port comes back
// to it, but with its own address as the source.
func (o *outcome) returned(to netip.AddrPort) (cause Loss, remedies []Command) {
	return Loss{Code: OwnPacket}, o.masquerade(fmt.Sprintf(
		"-s %s -d %s -p %s --dport %d", to.Addr(), to.Addr(), o.q.proto, to.Port()), to.Addr().Is6())
}

// strays returns cause and remedies if routes lead a packet past the network of its destination.
func (o *outcome) strays(to netip.AddrPort) (cause Loss, remedies []Command) {
	l, home := o.q.answer.Lost, o.f.towards(to.Addr())
	if net, ok := o.f.prefixOn(home, to.Addr().Is6()); ok && l.Space == 0 && !l.Reply &&
		l.Device != "" && l.Device != home {
		return Loss{Code: WrongDevice, Device: l.Device, Other: home}, o.towards(net)
	}
	return Loss{}, nil
}

// localnet returns the cause and remedies for a packet of a loopback address that may not leave lo.
func (o *outcome) localnet(six bool) (cause Loss, remedies []Command) {
	device := o.q.answer.Lost.Device
	if six { // seen with Docker Engine 28.5.2
		o.out.localnet = orSomething(device)
		if o.q.answer.Lost.Reply { // seen with Docker Engine 29
			return Loss{Code: Loopback6In, Device: device}, nil
		}
		return Loss{Code: Loopback6Out}, nil
	}
	if c, ok := o.c.containerIn(o.q.answer.Lost.Space); ok {
		return o.unmasqueraded(c)
	}
	if o.out.localnet = cmp.Or(device, o.c.leadsTo(o.q)); o.out.localnet == "" {
		return Loss{Code: LoopbackOut}, nil
	}
	key := "net.ipv4.conf." + sysctlName(o.out.localnet) + ".route_localnet"
	return Loss{Code: LoopbackDropped, Device: o.out.localnet, Key: key}, o.sysctl(key, "1")
}

// unmasqueraded returns cause and remedies if packets from 127.0.0.1 get to a container, which
// drops them.
func (o *outcome) unmasqueraded(c *Container) (cause Loss, remedies []Command) {
	cause = Loss{Code: LoopbackSource, Of: c.Name}
	if bridge := o.f.bridgeOf(*c); bridge != "" {
		return cause, o.masquerade("-o "+bridge+" -m addrtype --src-type LOCAL", false)
	}
	return cause, nil
}

// leadsTo returns the bridge to which other clients' connections to the port are redirected, or "".
func (c *Copy) leadsTo(q asked) string {
	for _, o := range c.asked {
		if o.server != nil || o.proto != q.proto || o.at.Port() != q.at.Port() {
			continue
		}
		for _, got := range o.answer.Outcomes {
			if x, ok := c.container(got.Socket); ok && got.Got == replica.Connected {
				return c.f.bridgeOf(x)
			}
		}
	}
	return ""
}

// unanswered returns cause and remedies if no neighbour replies when a container resolves the next
// hop of its answer. A strict rp_filter ignores such requests from addresses that it would not
// route back.
func (o *outcome) unanswered(to netip.AddrPort) (cause Loss, remedies []Command) {
	l := o.q.answer.Lost
	came, _ := o.lastStep()
	x, ok := o.c.containerIn(l.Space)
	for i := 0; ok && i < len(x.Devices); i++ {
		d := x.Devices[i]
		p, linked := o.f.peerOf(d)
		if l.Device != "" && d.Name != l.Device || d.Name == came.Device || !linked {
			continue
		}
		set := o.c.Machine.Spaces[0].Sysctls
		key := "net/ipv4/conf/" + p.Master + "/rp_filter"
		if p.Master != "" && max(set[key], set["net/ipv4/conf/all/rp_filter"]) == "1" {
			return Loss{Code: StrictNeighbour, Device: d.Name, Other: p.Master}, o.looser(0, p.Master)
		}
	}
	return Loss{Code: NoNextHop}, o.routeBack(to)
}

func (o *outcome) lastStep() (last replica.Step, ok bool) {
	for _, s := range o.q.answer.Steps {
		if !s.Reply {
			last, ok = s, true
		}
	}
	return last, ok
}

func (f *Facts) prefixOn(device string, six bool) (netip.Prefix, bool) {
	for _, p := range f.device(device).Addrs {
		if p.Addr().Is6() == six && !p.Addr().IsLinkLocalUnicast() {
			return p, true
		}
	}
	return netip.Prefix{}, false
}

func orSomething(device string) string { return cmp.Or(device, "the next device") }
