package ports

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// blocked sets the path's Block and Remedy, and returns where and why packets were lost, in words
// that follow "is".
func (o *outcome) blocked(to netip.AddrPort) string {
	lost := o.q.answer.Lost
	b := &Block{Where: o.c.where(lost.Space), Reply: lost.Reply}
	o.out.Block = b
	why := ""
	if lost.Rule != nil {
		r := o.c.ruleText(lost)
		b.Table, b.Chain, b.Number = r.Table, r.Chain, r.Number
		b.Rule, b.Policy = r.Text, r.Number == 0
		why = "dropped by "
		if lost.Rule.Reject {
			why = "rejected by "
		}
		if b.Policy {
			why += "the policy of "
		}
		why += o.c.tableText(lost, r) + " " + b.Chain
		if !b.Policy {
			why += fmt.Sprintf(" rule %d", b.Number)
		}
		if b.Where != here {
			why += " in " + b.Where
		}
		if b.Rule != "" {
			why += ": " + b.Rule
		}
		o.out.Remedy = o.inside(o.unblock(to))
	} else {
		b.Cause, o.out.Remedy = o.cause(to)
		why = "lost in " + b.Where + ": " + b.Cause
	}
	if b.Reply {
		why = "answered, but the answer is " + why
	}
	o.out.lost = why
	return why
}

// inside returns the command that runs the given one in the network namespace where the packet was
// lost.
func (o *outcome) inside(command string) string {
	space := o.q.answer.Lost.Space
	if command == "" || space <= 0 || space >= len(o.c.Machine.Spaces) {
		return command
	}
	pid := o.c.Machine.Spaces[space].PID
	if x, ok := o.c.containerIn(space); ok {
		pid = x.PID
	}
	if pid == 0 {
		return ""
	}
	return strings.Replace(command, "sudo ", fmt.Sprintf("sudo nsenter -t %d -n ", pid), 1)
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

// ruleText returns the rule's text: the user's if it is known, in iptables' syntax for tables that
// iptables writes.
func (c *Copy) ruleText(l *replica.Lost) replica.RuleText {
	r := l.Rule.RuleText
	if l.Space >= 0 && l.Space < len(c.Machine.Spaces) {
		r.Text = cmp.Or(r.Text, c.Machine.Spaces[l.Space].TextOf(r))
	}
	if family, table, ok := strings.Cut(r.Table, " "); ok && (family == "ip" || family == "ip6") &&
		slices.Contains(iptables, table) {
		r.Table = table
	}
	return r
}

// tableText returns the name of the rule's table in the program that lists the rule: nft's for a
// table that iptables-save leaves out, and for a rule of which it prints only parts.
func (c *Copy) tableText(l *replica.Lost, r replica.RuleText) string {
	byNft := false
	for _, t := range c.textsOf(l.Space) {
		if t.Table != l.Rule.Table || r.Number != 0 && (t.Chain != r.Chain || t.Number != r.Number) {
			continue
		}
		if strings.HasPrefix(t.Text, "-A ") {
			return r.Table
		}
		byNft = true
	}
	if byNft {
		return l.Rule.Table
	}
	return r.Table
}

func (c *Copy) textsOf(space int) []replica.RuleText {
	if space < 0 || space >= len(c.Machine.Spaces) {
		return nil
	}
	return c.Machine.Spaces[space].Text
}

// iptables lists the tables that iptables writes.
var iptables = []string{"filter", "nat", "mangle", "raw", "security"}

// unblock returns the command after which the rule no longer drops the packet, or "" if none is
// known. Later chains may still drop it.
func (o *outcome) unblock(to netip.AddrPort) string {
	b, q := o.out.Block, o.q
	program := "sudo iptables"
	if to.Addr().Is6() {
		program = "sudo ip6tables"
	}
	jail, banned := strings.CutPrefix(b.Chain, "f2b-")
	match := fmt.Sprintf("-d %s -p %s --dport %d", to.Addr(), q.proto, to.Port())
	switch {
	case b.Reply:
		return ""
	case banned && o.out.Source != "":
		return fmt.Sprintf("sudo fail2ban-client set %s unbanip %s", jail, o.out.Source)
	case strings.HasPrefix(b.Chain, "ufw-docker"), strings.HasPrefix(b.Chain, "ufw-") &&
		strings.HasSuffix(b.Chain, "-forward"):
		return fmt.Sprintf("sudo ufw route allow proto %s from any to %s port %d", q.proto,
			to.Addr(), to.Port())
	case strings.HasPrefix(b.Chain, "ufw-"), b.Policy && b.Chain == "INPUT" && o.f.hasUFW(o.c):
		return fmt.Sprintf("sudo ufw allow %d/%s", to.Port(), q.proto)
	case strings.HasSuffix(b.Table, "firewalld"):
		return fmt.Sprintf("sudo firewall-cmd --add-port=%d/%s", to.Port(), q.proto)
	case b.Table != "filter":
		return ""
	case b.Chain == "DOCKER-USER":
		return fmt.Sprintf("%s -I DOCKER-USER %d %s -j RETURN", program, max(1, b.Number), match)
	case slices.Contains([]string{"INPUT", "OUTPUT", "FORWARD"}, b.Chain):
		return fmt.Sprintf("%s -I %s %s -j ACCEPT", program, b.Chain, match)
	}
	return ""
}

func (f *Facts) hasUFW(c *Copy) bool {
	return len(c.Machine.Spaces) > 0 && slices.ContainsFunc(c.Machine.Spaces[0].Text,
		func(r replica.RuleText) bool { return strings.HasPrefix(r.Chain, "ufw-") })
}

// cause returns the words for why the packet was lost without a rule, and the remedy, or "" if none
// is known.
func (o *outcome) cause(to netip.AddrPort) (cause, remedy string) {
	l := o.q.answer.Lost
	device, came := orSomething(l.Device), cmp.Or(o.q.client.Bridge, o.q.client.Card)
	switch l.Why {
	case replica.ReversePath:
		whose := o.out.Source
		if l.Reply {
			whose = to.Addr().String()
		}
		return fmt.Sprintf("rp_filter at %s: %s is not routed back through it", device, whose),
			o.sysctl("net.ipv4.conf."+device+".rp_filter", "2")
	case replica.NoRoute:
		if l.Reply {
			return "no route back to " + o.out.Source, ""
		}
		return "no route to " + to.Addr().String(), ""
	case replica.ReplyElsewhere:
		if cause = "the answer leaves by " + device; came != "" && l.Space == 0 {
			cause += " instead of " + came
		}
		return cause, o.routeBack()
	case replica.ReplyUnnatted:
		cause = "the server's answer goes straight to the client, untranslated"
		if !o.f.Switches.BridgeNF && o.q.client.Bridge != "" {
			return cause + ": net.bridge.bridge-nf-call-iptables is 0",
				"sudo modprobe br_netfilter; " + o.sysctl("net.bridge.bridge-nf-call-iptables", "1")
		}
		return cause, ""
	case replica.NotForwarded:
		key := "net.ipv4.ip_forward"
		switch all := o.c.Machine.Spaces[max(l.Space, 0)].Sysctls; {
		case to.Addr().Is6():
			key = "net.ipv6.conf.all.forwarding"
		case all["net/ipv4/ip_forward"] == "1" && l.Device != "": // off for one device
			key = "net.ipv4.conf." + strings.ReplaceAll(l.Device, ".", "/") + ".forwarding"
		}
		return "it does not forward packets: " + key + " is 0", o.sysctl(key, "1")
	case replica.Localnet:
		return o.localnet(to.Addr().Is6())
	case replica.NoNeighbour:
		if l.Reply {
			return o.unanswered()
		}
		return o.noNeighbour(to)
	case replica.Leaves:
		if cause, remedy = o.strays(to); cause != "" {
			return cause, remedy
		}
		return "it leaves by " + device + ", and no machine there answers", ""
	case replica.Untraced:
		if cause, remedy = o.hairpin(); cause != "" {
			return cause, remedy
		}
		if s, ok := o.lastStep(); ok && !l.Reply && s.Out && s.Space == 0 && s.Device != came &&
			!o.f.hosts(o.f.device(s.Device)) {
			cause = "it leaves by " + s.Device
			if net, ok := o.f.prefixOn(o.f.towards(to.Addr()), to.Addr().Is6()); ok {
				return cause, toMain(net)
			}
			return cause, ""
		}
		return "no nf_tables rule dropped it, and toll does not know what did", ""
	}
	return "no rule dropped it, and toll does not know why", ""
}

// noNeighbour returns cause and remedy if nobody answers for an address.
func (o *outcome) noNeighbour(to netip.AddrPort) (cause, remedy string) {
	if cause, remedy = o.strays(to); cause != "" {
		return cause, remedy
	}
	bridge := o.f.device(o.f.towards(to.Addr()))
	if c, ok := o.f.at(to.Addr()); ok && bridge.Kind == "bridge" {
		for _, d := range c.Devices {
			port, linked := o.f.peerOf(d)
			if linked && d.has(to.Addr()) && port.Master != bridge.Name {
				return fmt.Sprintf("container %s has the address %s, but its %s is no port of %s",
						c.Name, to.Addr(), port.Name, bridge.Name),
					fmt.Sprintf("sudo ip link set %s master %s", port.Name, bridge.Name)
			}
		}
	}
	if card := o.q.client.Card; o.q.answer.Lost.Space < 0 && card != "" && to == o.q.at {
		if c, ok := o.f.at(to.Addr()); ok { // the client looks for it in its own network
			return o.unproxied(c, card)
		}
	}
	return "no machine has the address " + to.Addr().String(), ""
}

// unproxied returns cause and remedy if a container's address is in the network of a card, where
// nobody answers for it.
func (o *outcome) unproxied(c Container, card string) (cause, remedy string) {
	a := o.q.at.Addr()
	cause = fmt.Sprintf("%s is in the network of %s, and this machine does not answer there for %s",
		a, card, c.Name)
	if a.Is4() {
		return cause, fmt.Sprintf("sudo ip neigh add proxy %s dev %s", a, card)
	}
	return cause, fmt.Sprintf("sudo sysctl -w net.ipv6.conf.%s.proxy_ndp=1; "+
		"sudo ip -6 neigh add proxy %s dev %s", strings.ReplaceAll(card, ".", "/"), a, card)
}

// hairpin returns cause and remedy if a container's packets to its own published port do not come
// back to it.
func (o *outcome) hairpin() (cause, remedy string) {
	l := o.q.answer.Lost
	if !o.q.self || l.Reply || l.Space != 0 {
		return "", ""
	}
	for _, d := range o.q.container.Devices {
		port, ok := o.f.peerOf(d)
		if ok && port.Master != "" && !o.c.Machine.Spaces[0].Hairpin(port.Name) {
			return fmt.Sprintf("the bridge does not send it back: %s has no hairpin mode", port.Name),
				"sudo bridge link set dev " + port.Name + " hairpin on"
		}
	}
	return "", ""
}

// strays returns cause and remedy if routes lead a packet past the network of its destination.
func (o *outcome) strays(to netip.AddrPort) (cause, remedy string) {
	l, home := o.q.answer.Lost, o.f.towards(to.Addr())
	if net, ok := o.f.prefixOn(home, to.Addr().Is6()); ok && l.Space == 0 && !l.Reply &&
		l.Device != "" && l.Device != home {
		return fmt.Sprintf("it leaves by %s, not by %s", l.Device, home), toMain(net)
	}
	return "", ""
}

// sysctl returns the command that sets a sysctl where the packet was lost.
func (o *outcome) sysctl(key, value string) string {
	return o.inside("sudo sysctl -w " + key + "=" + value)
}

// routeBack returns the command that routes answers from this machine back to the client, or "".
func (o *outcome) routeBack() string {
	source, err := netip.ParseAddr(o.out.Source)
	if err != nil || o.q.answer.Lost.Space != 0 {
		return ""
	}
	net := netip.PrefixFrom(source, source.BitLen())
	if p, ok := o.f.prefixOn(o.q.client.Bridge, source.Is6()); ok {
		net = p.Masked()
	} else if p, ok := o.f.prefixOn(o.q.client.Card, source.Is6()); ok && p.Contains(source) {
		net = p.Masked()
	}
	return toMain(net)
}

// localnet returns the cause and remedy for a packet of a loopback address that may not leave lo.
func (o *outcome) localnet(six bool) (cause, remedy string) {
	device := o.q.answer.Lost.Device
	if six { // seen with Docker Engine 28.5.2
		o.out.localnet = orSomething(device)
		if o.q.answer.Lost.Reply { // seen with Docker Engine 29
			return "it comes in by " + device + ", and IPv6 takes packets to ::1 from lo only: it has " +
				"no route_localnet", ""
		}
		return "packets from ::1 never leave lo: IPv6 has no route_localnet", ""
	}
	if c, ok := o.c.containerIn(o.q.answer.Lost.Space); ok {
		return o.unmasqueraded(c)
	}
	if o.out.localnet = cmp.Or(device, o.c.leadsTo(o.q)); o.out.localnet == "" {
		return "packets from 127.0.0.1 may not leave lo: route_localnet is 0", ""
	}
	key := "net.ipv4.conf." + o.out.localnet + ".route_localnet"
	return o.out.localnet + " drops packets from 127.0.0.1: " + key + " is 0",
		o.sysctl(key, "1")
}

// unmasqueraded returns cause and remedy if packets from 127.0.0.1 get to a container, which drops
// them.
func (o *outcome) unmasqueraded(c *Container) (cause, remedy string) {
	cause = "no rule changes the source 127.0.0.1, which " + c.Name + " drops"
	if bridge := o.f.bridgeOf(*c); bridge != "" {
		return cause, "sudo iptables -t nat -A POSTROUTING -o " + bridge +
			" -m addrtype --src-type LOCAL -j MASQUERADE"
	}
	return cause, ""
}

// toMain returns the command that makes packets to a network use the main routing table, before
// other policy rules.
func toMain(net netip.Prefix) string {
	six := map[bool]string{true: "-6 "}[net.Addr().Is6()]
	return "sudo ip " + six + "rule add pref 1 to " + net.Masked().String() + " lookup main"
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

// unanswered returns cause and remedy if no neighbour replies when a container resolves the next
// hop of its answer. A strict rp_filter ignores such requests from addresses that it would not
// route back.
func (o *outcome) unanswered() (cause, remedy string) {
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
			return fmt.Sprintf("it leaves by %s, and strict rp_filter at %s ignores it", d.Name,
				p.Master), "sudo sysctl -w net.ipv4.conf." + p.Master + ".rp_filter=2"
		}
	}
	return "no next hop answers", ""
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
