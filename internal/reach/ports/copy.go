package ports

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// Copy has the connections to make in a copy of the machine, and their outcomes. Call its functions
// in this order: NewCopy, Scans and Found, Dials and Take; then Themselves and Take, Lost and
// Explain, until Themselves has none; then Lacks. The plan of Others, which no report is about,
// needs less; see there.
type Copy struct {
	Machine *replica.Machine
	// Sockets lists the stand-ins for all listening sockets of the copied namespaces.
	Sockets []replica.Socket
	// Left lists what was not tried, with the reasons.
	Left []Missing
	// Untried is the reason why commands that may admit clients were not tried; "": see Trial.
	Untried string

	others *Copy // the connections of this one are left out; nil: none
	f      *Facts
	port   uint16
	// trapsTried has the trials of traps' commands, by the commands' text.
	trapsTried map[string]Trial
	stands     []stand // one for each of Sockets
	found      []service
	asked      []asked
	singled    func() []int // what Machine.Singled returns
}

// stand describes the program that a Socket replaces.
type stand struct {
	listener  Listener
	container *Container // nil: outside containers
}

func (s stand) proxy(f *Facts) (Proxy, bool) {
	if s.container != nil {
		return proxyOf(s.container.Proxies, s.listener)
	}
	return f.proxyOf(s.listener)
}

type service struct {
	proto string
	at    netip.AddrPort
}

type asked struct {
	service // the dialled address
	place
	kind   Client
	server *Container // has the dialled address; nil: the machine has it
	bridge string     // whose traps are looked for; "": the connection is to a port
	tier   int
	answer replica.Answer
	quick  bool      // a doubtful answer is not certain yet
	done   []Command // what changed the copy before the answer
	trial  *Trial    // nil: no command was tried
	// besides is a trial of several commands for another cause that admits this client, too.
	besides *Trial
}

// The tiers of connections. If there are too many connections, whole tiers are left out.
const (
	column  = iota // the table's columns
	address        // the machine's other addresses, other machines' networks
	network        // other containers' networks
	gateway        // the addresses of other containers' bridges
)

// maxDials is the most connections that are made.
const maxDials = 4000

// NewCopy plans the connections to a port, or to every port if port is 0. It sets m.First and
// f.Copy, which it returns.
func NewCopy(f *Facts, m *replica.Machine, port uint16) *Copy {
	c := &Copy{Machine: m, f: f, port: port, singled: sync.OnceValue(m.Singled)}
	go c.singled() // while the copy is built
	f.Copy = c
	f.makeIndex()
	seen := map[replica.Socket]bool{}
	add := func(space int, l Listener, home *Container) {
		s := replica.Socket{Space: space, Proto: l.Proto, Addr: l.Addr, V6Only: l.V6Only,
			Device: l.Device, Mark: l.Mark}
		if seen[s] { // SO_REUSEPORT
			return
		}
		seen[s] = true
		s.Doubt = l.Programs
		of := stand{l, home}
		if p, ok := of.proxy(f); ok && !p.Rootless {
			s.Relay = p.Container
		}
		c.Sockets, c.stands = append(c.Sockets, s), append(c.stands, of)
	}
	for i, space := range m.Spaces {
		if i == 0 {
			for _, l := range f.Listeners {
				add(0, l, nil)
			}
			continue
		}
		for j := range f.Containers {
			if x := &f.Containers[j]; x.Space == space.ID && x.PID != 0 && x.Shares == "" {
				for _, l := range x.Listeners {
					add(i, l, x)
				}
			}
		}
	}
	m.First = f.bridgesOf(port)
	if port != 0 {
		for _, proto := range []string{"tcp", "udp"} {
			for _, a := range []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()} {
				c.found = append(c.found, service{proto, netip.AddrPortFrom(a, port)})
			}
		}
	}
	return c
}

// bridgesOf returns the bridges of the containers that serve or publish a port; 0 is any published
// port.
func (f *Facts) bridgesOf(port uint16) (out []string) {
	for _, x := range f.Containers {
		serves := x.PID != 0 && (slices.ContainsFunc(x.Published, func(p Published) bool {
			return port == 0 || p.Host.Port() == port || p.Port == port
		}) || slices.ContainsFunc(x.Listeners, func(l Listener) bool {
			return port != 0 && l.Addr.Port() == port
		}))
		for _, d := range x.Devices {
			if p, ok := f.peerOf(d); ok && serves && p.Master != "" {
				out = once(out, p.Master)
			}
		}
	}
	return out
}

// container returns the container that has a socket, given its index in Sockets. ok is false if the
// socket is not a container's.
func (c *Copy) container(socket int) (x Container, ok bool) {
	s, _ := c.stand(socket)
	if s.container == nil {
		return x, false
	}
	return *s.container, true
}

// loopback returns the loopback address of a family, and the client that dials it.
func loopback(six bool) (netip.Addr, Client) {
	if six {
		return netip.IPv6Loopback(), Loopback6
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1}), Loopback
}

// maxScans is the most scans that are made.
const maxScans = 16

// Scans returns the scans that find ports which only rules serve. It returns none for a single
// port, or if no rule can redirect packets.
func (c *Copy) Scans() (out []replica.Scan) {
	if c.port != 0 || len(c.Machine.Spaces) == 0 {
		return nil
	}
	if s := c.Machine.Spaces[0]; len(s.Nft.Messages)+len(s.Legacy) == 0 && !c.f.Changed {
		return nil
	}
	var rest []replica.Scan
	for _, six := range []bool{false, true} {
		own, _ := c.f.address(six)
		if !own.IsValid() {
			continue
		}
		out = append(out, replica.Scan{To: own})
		if loop, _ := loopback(six); c.f.HasLoopback(loop) {
			out = append(out, replica.Scan{To: loop})
		}
		far := c.f.machines(six)
		for i, p := range far {
			if i > 0 {
				rest = append(rest, replica.Scan{Client: p.client, To: p.addrs[0]})
				continue
			}
			for _, a := range p.addrs {
				out = append(out, replica.Scan{Client: p.client, To: a})
			}
		}
		for _, p := range c.f.places(six) {
			if p.bridge != "" {
				rest = append(rest, replica.Scan{Client: p.client, To: own})
			}
		}
	}
	out = append(out, rest...)
	if more := len(out) - maxScans; more > 0 {
		out = out[:maxScans]
		c.left("ports that only rules redirect, in "+units.Plural(more, "more scan"),
			"too many networks and addresses", "toll ports PORT")
	}
	if s := c.Machine.Spaces[0]; c.f.Changed || s.Redirects("udp") {
		for _, x := range out[:len(out):len(out)] {
			x.UDP = true
			out = append(out, x)
		}
	}
	return out
}

func (c *Copy) left(what, why, remedy string) {
	c.Left = append(c.Left, Missing{What: what, Why: why, Remedy: remedy})
}

// Found adds the ports that a scan found.
func (c *Copy) Found(s replica.Scan, ports []uint16) {
	any, proto := netip.IPv4Unspecified(), "tcp"
	if s.To.Is6() {
		any = netip.IPv6Unspecified()
	}
	if s.UDP {
		proto = "udp"
	}
	for _, p := range ports {
		c.found = once(c.found, service{proto, netip.AddrPortFrom(any, p)})
	}
}

// FoundIn adds the ports that scans found in another copy of the machine.
func (c *Copy) FoundIn(other *Copy) {
	for _, x := range other.found {
		c.found = once(c.found, x)
	}
}

// SingledIn adds the containers that rules single out in another copy of the machine. They come
// first, so that those that are places there are places here, too.
func (c *Copy) SingledIn(other *Copy) {
	own, others := c.singled, other.singled
	c.singled = sync.OnceValue(func() []int { return keep(others(), slices.Concat(others(), own())) })
}

// Dials returns the connections to make. In a report on a port, each is explained; else Lost has
// those whose packets are lost.
func (c *Copy) Dials() []replica.Dial {
	c.asked = nil
	c.plan()
	if c.others != nil {
		c.asked = slices.DeleteFunc(c.asked, func(q asked) bool {
			return slices.ContainsFunc(c.others.asked, func(o asked) bool {
				return o.service == q.service && o.client == q.client
			})
		})
	}
	slices.SortStableFunc(c.asked, func(a, b asked) int { return a.tier - b.tier })
	if len(c.asked) > maxDials {
		last := c.asked[maxDials].tier
		keep := slices.IndexFunc(c.asked, func(q asked) bool { return q.tier == last })
		if keep == 0 {
			keep = maxDials
		}
		c.left(units.Plural(len(c.asked)-keep, "connection"), fmt.Sprintf(
			"more than %d would take too long; those to other networks and addresses come last",
			maxDials),
			"toll ports PORT tries all connections to one port")
		c.asked = c.asked[:keep]
	}
	return c.first(c.all())
}

// first returns connections that were not made yet. Those of a report on a port are explained at
// once, if they are not too many, so that they are made only once.
func (c *Copy) first(which []int) []replica.Dial {
	quick := c.port == 0 || len(which) > replica.MaxExplained
	out := c.dials(which, !quick)
	for k, i := range which {
		if c.asked[i].quick = quick; quick {
			out[k].Pass = replica.Quickly
		}
	}
	return out
}

func (c *Copy) all() []int {
	out := make([]int, len(c.asked))
	for i := range out {
		out[i] = i
	}
	return out
}

func (c *Copy) dials(which []int, explain bool) []replica.Dial {
	var out []replica.Dial
	for _, i := range which {
		q := c.asked[i]
		out = append(out, replica.Dial{Client: q.client, Proto: q.proto, To: q.at,
			Explain: explain})
	}
	return out
}

// Themselves returns more connections to make: those of the containers that answered others.
func (c *Copy) Themselves() []replica.Dial {
	done := len(c.asked)
	c.planThemselves()
	c.asked = c.asked[:max(done, min(len(c.asked), maxDials))]
	return c.first(c.all()[done:])
}

// Take records the answers to the last connections of Dials or Themselves, in their order.
func (c *Copy) Take(answers []replica.Answer) {
	first := max(len(c.asked)-len(answers), 0)
	for i := range min(len(answers), len(c.asked)) {
		c.asked[first+i].answer = answers[i]
	}
}

// Lost returns the connections to repeat to find out whether and where their packets were lost, and
// their indexes in Dials: those that were not explained yet. For a single port they include some
// that were answered.
func (c *Copy) Lost() (which []int, dials []replica.Dial) {
	left, own := replica.MaxExplained, replica.MaxExplained
	for _, q := range c.asked {
		switch {
		case !q.answer.Explained():
		case q.self:
			own--
		default:
			left--
		}
	}
	left, own = left+min(own, 0), max(own, 0)
	taken := map[int]bool{}
	add := func(most int, want func(asked) bool) {
		for i, q := range c.asked {
			if len(which) < most && len(q.answer.Outcomes) > 0 && !q.answer.Explained() && !taken[i] &&
				want(q) {
				taken[i], which = true, append(which, i)
			}
		}
	}
	lost := func(q asked) bool { return q.answer.Outcomes[0].Doubtful() && c.unclear(q) }
	add(left, func(q asked) bool { return !q.self && lost(q) })
	add(len(which)+own, func(q asked) bool { return q.self && lost(q) })
	add(left, func(q asked) bool { return q.self && c.unclear(q) })
	add(left, func(q asked) bool { return !q.self && c.unclear(q) })
	if c.port != 0 {
		add(left, func(q asked) bool { return q.answer.Outcomes[0].Got == replica.Connected })
	}
	dials = c.dials(which, true)
	for i, q := range c.asked {
		if q.quick && slices.ContainsFunc(q.answer.Outcomes, replica.Outcome.Doubtful) &&
			!taken[i] {
			which, dials = append(which, i), append(dials, c.dials([]int{i}, false)[0])
			dials[len(dials)-1].Pass = replica.Calmly
		}
	}
	return which, dials
}

// unclear reports whether a rule or a fault may have made the connection fail.
func (c *Copy) unclear(q asked) bool {
	switch q.answer.Outcomes[0].Got {
	case replica.Connected, replica.Failed:
		return false
	case replica.Refused:
		_, taken := c.f.listens(q.proto, q.at)
		return taken || q.server != nil || q.bridge != "" || c.port != 0 ||
			c.f.publishedAt(q.service) || c.redirected(q.service)
	}
	return true
}

// redirected reports whether a scan found that rules redirect the port: another machine, which is
// not in the copy, may have refused the connection there.
func (c *Copy) redirected(s service) bool {
	return slices.ContainsFunc(c.found, func(o service) bool {
		return o.proto == s.proto && o.at.Port() == s.at.Port()
	})
}

func (f *Facts) publishedAt(s service) bool {
	return f.indexed().publishedOn[portOfService(s)]
}

// Explain records the answers to the connections of Lost, in their order.
func (c *Copy) Explain(which []int, answers []replica.Answer) {
	for i := range min(len(answers), len(which)) {
		q := &c.asked[which[i]]
		a := &q.answer
		if q.quick && slices.ContainsFunc(a.Outcomes, replica.Outcome.Doubtful) {
			a.Outcomes, a.Unsure = answers[i].Outcomes, nil
		}
		q.quick = false
		if a.Steps, a.Lost = answers[i].Steps, answers[i].Lost; c.port == 0 && answered(*a) {
			a.Steps, a.Lost = nil, nil // a busy machine had lost it, or it is lost in one of two copies
		}
		for _, u := range answers[i].Unsure {
			a.Unsure = once(a.Unsure, u)
		}
	}
}

func answered(a replica.Answer) bool {
	return len(a.Outcomes) > 0 && a.Outcomes[0].Got == replica.Connected
}

// Quoted returns the namespaces with rules that the report quotes: those that dropped packets, or
// redirected them to where nothing listens.
func (c *Copy) Quoted() (out []int) {
	for _, q := range c.asked {
		if l := q.answer.Lost; l != nil && l.Rule != nil {
			out = once(out, l.Space)
		}
		for _, s := range q.answer.Steps {
			if s.Rule != nil {
				out = once(out, s.Space)
			}
		}
	}
	return out
}

// Lacks records parts of the machine that the copy lacks, and the connections that were not made.
func (c *Copy) Lacks(all []replica.Lacks) {
	failed, why := 0, ""
	for _, q := range c.asked {
		if o := q.answer.Outcomes; len(o) > 0 && o[0].Got == replica.Failed {
			failed, why = failed+1, o[0].Err
		}
	}
	if failed > 0 {
		c.left(units.Plural(failed, "connection"), "not made in the copy of the network: "+
			printable.Words(why), "")
	}
	if c.Machine.TPROXY() {
		c.left("ports that TPROXY leads to a program", "a copy's sockets do not take such connections",
			"see the rules: sudo iptables-save; sudo nft list ruleset")
	}
	if names := c.Machine.Services(c.f.Proto, c.port); len(names) > 0 {
		c.left("ports that only IPVS serves: "+few(names), "its services are not in a copy",
			"see them: sudo ipvsadm -L -n")
	}
	var names []string
	for _, l := range all {
		names = once(names, l.What+" ("+c.where(l.Space)+"): "+l.Why)
	}
	if len(names) > 0 {
		c.left("what these do to packets", "they are not in the copy of the network: "+
			few(names), "")
	}
}
