package ports

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// bypass finds ports that are published on 127.0.0.1 while others reach the container itself.
func (f *Facts) bypass(rows []Row) []Trap {
	t := about(PublishedBypass)
	t.Remedy = "upgrade to Docker Engine 28, which drops such packets"
	var rules []string // a container's port, "/" and the command that drops packets to it
	var which []int
	type server struct {
		id, proto string
		port      uint16
	}
	of := func(r Row) server { return server{r.Server.ID, r.Proto, r.Server.Port} }
	published := map[server]bool{} // to others than this machine
	for _, r := range rows {
		if !r.addr.IsLoopback() {
			published[of(r)] = true
		}
	}
	for _, r := range rows {
		if !r.addr.IsLoopback() || published[of(r)] {
			continue
		}
		for _, p := range r.Dials {
			if !p.own || p.Client != Remote || !p.Answers() {
				continue
			}
			a, _ := netip.ParseAddrPort(p.Dial)
			program := "iptables"
			if a.Addr().Is6() {
				program = "ip6tables"
			}
			which = append(which, f.Copy.toContainer(r, p)...)
			rules = once(rules, fmt.Sprintf("%d/%s -t raw -A PREROUTING -d %s ! -i %s -p %s",
				a.Port(), program, a.Addr(), orSomething(f.towards(a.Addr())), r.Proto))
			t.add(r, fmt.Sprintf("%s answers %s at %s", r.Server.describe(), p.From, p.Dial))
			break
		}
	}
	var scripts []string
	for _, rule := range FoldNames(rules) {
		port, command, _ := strings.Cut(rule, "/")
		scripts = append(scripts, command+" --dport "+strings.Replace(port, "-", ":", 1)+" -j DROP")
	}
	commands := here0(scripts...)
	t.Remedy = joined(", or: ", t.Remedy, f.Copy.told(commands))
	t.trials = []TrapTrial{{Commands: commands, which: which,
		ended: f.Copy.pathIs(func(p Path) bool { return !p.Answers() })}}
	return t.found()
}

// toContainer returns the indexes of the connections of a path's client to the container of a row.
func (c *Copy) toContainer(r Row, p Path) (out []int) {
	for i := range c.asked {
		if q := &c.asked[i]; q.server != nil && q.kind == p.Client && q.from == p.From &&
			q.proto == r.Proto && q.at.String() == p.Dial {
			out = append(out, i)
		}
	}
	return out
}

// here0 returns root's commands in the machine's namespace, or none if a shell would take one
// otherwise.
func here0(scripts ...string) (out []Command) {
	if !forShell(scripts) {
		return nil
	}
	for _, script := range scripts {
		out = append(out, Command{Text: "sudo " + script, script: script})
	}
	return out
}

// Machines at a bridge without an address get addresses for documentation (RFC 5737).
var (
	atPort  = netip.MustParseAddr("198.51.100.1")
	atOther = netip.MustParseAddr("198.51.100.2")
)

// maxBridges is the most bridges on which frames are tried.
const maxBridges = 4

// planBridges adds connections between two ports of each bridge that is not Docker's, and from
// there to the internet.
func (c *Copy) planBridges() {
	if c.port != 0 || len(c.Machine.Spaces) == 0 || c.f.Changed {
		return
	}
	uplink, card := c.f.address(false)
	tried := 0
	for _, d := range c.f.Devices {
		if d.Kind != "bridge" || d.Docker || d.Uplink || !slices.ContainsFunc(c.f.Devices,
			func(p Device) bool { return p.Master == d.Name }) {
			continue
		}
		if tried++; tried > maxBridges {
			return
		}
		ask := func(from replica.Client, to netip.Addr, bridge string) {
			c.asked = append(c.asked, asked{service: service{"tcp", netip.AddrPortFrom(to, 80)},
				place: place{client: from}, bridge: bridge, tier: column})
		}
		guest := replica.Client{Bridge: d.Name}
		net, addressed := c.f.prefixOn(d.Name, false)
		from, to, guests := c.guests(d)
		switch {
		case guests:
			guest = replica.Client{Space: from}
			ask(guest, to, d.Name)
		case addressed:
			other := c.f.unused(net)
			ask(replica.Client{Card: d.Name, Source: other}, net.Addr(), other.String())
			ask(guest, other, d.Name)
		default:
			guest.Source = atPort
			ask(replica.Client{Card: d.Name, Source: atOther}, atPort, atOther.String())
			ask(guest, atOther, d.Name)
		}
		if addressed && card != "" && c.f.Switches.Forward4 {
			ask(replica.Client{Card: card, Source: anybody}, uplink, anybody.String())
			ask(guest, anybody, d.Name)
		}
	}
}

// guests returns the index of a namespace at the bridge, and the address of another namespace
// there.
func (c *Copy) guests(bridge Device) (from int, to netip.Addr, ok bool) {
	spaces := c.Machine.Spaces
	var first netip.Prefix
	for i := 1; i < len(spaces); i++ {
		for _, l := range spaces[i].Links {
			space, port := c.Machine.Other(i, l)
			if port == nil || space != 0 || port.Master != bridge.Index || bridge.Index == 0 {
				continue
			}
			for _, a := range spaces[i].Prefixes(l.Index) {
				switch {
				case !a.Addr().Is4():
				case !first.IsValid():
					from, first = i, a
				case i != from && first.Masked().Contains(a.Addr()):
					return from, a.Addr(), true
				}
			}
		}
	}
	return 0, netip.Addr{}, false
}

// unused returns an address of the network that no container has.
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

// bridgeNF finds bridges whose traffic is dropped by rules for routed traffic, such as Docker's
// policy of FORWARD.
func (f *Facts) bridgeNF([]Row) []Trap {
	if f.Copy == nil {
		return nil
	}
	var out []Trap
	for _, d := range f.Devices {
		if d.Docker { // see masqueraded
			continue
		}
		var frames, routed *Path
		var which []int // connections that are lost
		for i, q := range f.Copy.asked {
			if q.bridge != d.Name {
				continue
			}
			p, ok := f.Copy.path(q)
			if !ok || unlost(p) {
				continue
			}
			if q.at.Addr() == anybody {
				routed = &p
			} else {
				frames = &p
			}
			which = append(which, i)
		}
		net, _ := f.prefixOn(d.Name, false)
		if routed != nil && !f.Copy.translates(net) {
			routed = nil // no NAT for this network: not meant to leave
		}
		t := about(BridgeNFDrop)
		t.About.Of = d.Name
		switch {
		case routed != nil:
			t.About.Code = BridgeOutDrop
			seen := sight{"a TCP packet from there to the internet is ", routed.Why, ""}
			t.let(f.Copy, routed.Block, which, "-i "+d.Name, "-o "+d.Name+
				" -m conntrack --ctstate RELATED,ESTABLISHED")
			if frames != nil {
				seen.after = "; so is one to another machine there, because " +
					"net.bridge.bridge-nf-call-iptables is 1"
			}
			t.seen = []sight{seen}
		case frames != nil:
			t.seen = []sight{{fmt.Sprintf("net.bridge.bridge-nf-call-iptables is 1, and a TCP packet from "+
				"%s to %s is ", d.Name, d.Name), frames.Why, ""}}
			t.let(f.Copy, frames.Block, which, "-i "+d.Name+" -o "+d.Name)
			t.unfilter(f.Copy, which)
		default:
			continue
		}
		out = append(out, t)
	}
	return out
}

// unfilter adds the remedy that no rule sees frames, unless it was tried and does not help.
func (t *Trap) unfilter(c *Copy, which []int) {
	commands := here0("sysctl -w net.bridge.bridge-nf-call-iptables=0")
	t.trials = append(t.trials, TrapTrial{Commands: commands, which: which, ended: c.pathIs(unlost)})
	if text := c.told(commands); text != "" {
		t.Remedy += "; or, if no container network needs it, " + text
	}
}

// translates reports whether a rule replaces the source address of packets from the network with
// this machine's.
func (c *Copy) translates(net netip.Prefix) bool {
	return len(c.translators(net.Addr(), "")) > 0
}

// inDockerUser reports whether a rule is in Docker's chain for the user's rules, or leads there.
func inDockerUser(r replica.RuleText) bool {
	return r.Chain == "DOCKER-USER" || strings.Contains(r.Text, "DOCKER-USER")
}

// let sets the remedy: commands that accept packets with the matches before the block. Where Docker
// writes iptables rules, it does so in DOCKER-USER.
func (t *Trap) let(c *Copy, b *Block, which []int, matches ...string) {
	chain := "FORWARD"
	if slices.ContainsFunc(c.Machine.Spaces[0].Text, inDockerUser) {
		chain = "DOCKER-USER"
	}
	if b.Table != "filter" {
		for i, m := range matches {
			matches[i] = fmt.Sprintf("a rule before %s %s that accepts %s", b.Table, b.Chain, m)
		}
		t.Remedy = strings.Join(matches, "; ")
		return
	}
	scripts := slices.Clone(matches)
	for i, m := range matches {
		scripts[i] = "iptables -I " + chain + " " + m + " -j ACCEPT"
	}
	commands := here0(scripts...)
	t.trials = []TrapTrial{{Commands: commands, which: which, ended: c.pathIs(unlost)}}
	if t.Remedy = c.told(commands); t.Remedy == "" {
		t.Remedy = fmt.Sprintf("a rule before %s %s", b.Table, b.Chain) + inVain(commands, "toll's own")
	}
}
