package ports

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// change changes the answer to a connection.
type change func(replica.Dial, *replica.Answer)

// try judges f after connections in a copy with Docker's rules, whose answers are changed.
func try(f *Facts, port uint16, changes ...change) *Report {
	return trySingled(f, port, nil, changes...)
}

// trySingled does as try, where rules single out the containers in the namespaces with the indexes.
func trySingled(f *Facts, port uint16, singled []int, changes ...change) *Report {
	return tryOn(machineOf(f), f, port, singled, changes...)
}

// machineOf returns a machine with the namespaces of facts.
func machineOf(f *Facts) *replica.Machine {
	m := &replica.Machine{Spaces: []replica.Space{{ID: f.Space,
		Nft: nft.Saved{Messages: make([]raw.Message, 1)}}}}
	for _, c := range f.Containers {
		if c.Space != "" && c.Shares == "" {
			m.Spaces = append(m.Spaces, replica.Space{ID: c.Space})
		}
	}
	return m
}

// tryOn does as trySingled on a machine.
func tryOn(m *replica.Machine, f *Facts, port uint16, singled []int, changes ...change) *Report {
	c := NewCopy(f, m, port)
	c.singled = func() []int { return singled }
	answers := func(dials []replica.Dial) (out []replica.Answer) {
		for _, q := range dials {
			a := usual(c, q)
			for _, change := range changes {
				if change != nil {
					change(q, &a)
				}
			}
			out = append(out, a)
		}
		return out
	}
	for _, s := range c.Scans() {
		if s.UDP { // no rule redirects any
			continue
		}
		var found []uint16
		for port := range uint16(10000) {
			q := replica.Dial{Client: s.Client, Proto: "tcp", To: netip.AddrPortFrom(s.To, port)}
			if a := answers([]replica.Dial{q})[0]; a.Outcomes[0].Got == replica.Connected {
				found = append(found, port)
			}
		}
		c.Found(s, found)
	}
	c.Take(answers(c.Dials()))
	c.Take(answers(c.Themselves()))
	which, dials := c.Lost()
	c.Explain(which, answers(dials))
	c.Lacks(nil)
	return judged(f, port)
}

// At most mostSingle containers that rules single out are places, and the report says how many are
// not.
func TestManySingledOut(t *testing.T) {
	f := manyBridges(mostSingle + 3)
	all := make([]int, len(f.Containers))
	for i := range all {
		all[i] = i + 1
	}
	trySingled(f, 0, all)
	from := map[string]bool{}
	for _, q := range f.Copy.asked {
		if q.single {
			from[q.from] = true
		}
	}
	if len(from) != mostSingle || len(f.Copy.Left) != 1 ||
		f.Copy.Left[0].What != "connections from 3 containers" {
		t.Errorf("%d, %+v", len(from), f.Copy.Left)
	}
	other := trySingledCopy(2, 3)
	if other.SingledIn(trySingledCopy(1, 3)); !slices.Equal(other.singled(), []int{1, 3, 2}) {
		t.Errorf("%v", other.singled())
	}
}

// Containers that commands changed take no place from those that rules single out.
func TestSingledOutBesidesCut(t *testing.T) {
	f := manyBridges(mostSingle + 3)
	for i := range mostSingle + 1 {
		f.Containers[i].Cut = &Cut{bridge: f.Devices[1+2*i].Name, families: map[bool]bool{false: true}}
	}
	for last, left := range map[int]int{mostSingle + 1: 0, mostSingle + 2: 1} { // the first is cut
		f.Copy = nil
		trySingled(f, 0, []int{1, last})
		from := map[int]bool{}
		for _, q := range f.Copy.asked {
			if q.single {
				from[q.client.Space] = true
			}
		}
		if len(from) != mostSingle+1 || !from[last] || len(f.Copy.Left) != left {
			t.Errorf("%d: %v, %+v", last, from, f.Copy.Left)
		}
	}
}

func trySingledCopy(which ...int) *Copy { return &Copy{singled: func() []int { return which }} }

// Connections of servers' containers to themselves are explained besides those of others, in all
// rounds together as many as these, and instead of them.
func TestLostOfThemselves(t *testing.T) {
	c := &Copy{f: &Facts{}}
	round := func() int {
		for range replica.MaxExplained {
			c.asked = append(c.asked, asked{place: place{self: true}, answer: replica.Answer{
				Outcomes: []replica.Outcome{{Got: replica.Timeout, Socket: -1}}}})
		}
		which, _ := c.Lost()
		for _, i := range which {
			c.asked[i].answer.Lost = &replica.Lost{}
		}
		return len(which)
	}
	if first, second, third := round(), round(), round(); first != replica.MaxExplained ||
		second != replica.MaxExplained || third != 0 {
		t.Errorf("%d, then %d, then %d", first, second, third)
	}
}

// usual returns the answer with Docker's rules.
func usual(c *Copy, q replica.Dial) replica.Answer {
	f := c.f
	for _, x := range f.Containers {
		if x.Space == "" || x.Shares != "" || x.Rootless {
			continue
		}
		if slices.Contains(x.Addrs, q.To.Addr()) {
			return c.inside(q, x, q.To)
		}
		for _, p := range x.Published {
			six := p.Host.Addr().Is6()
			i := slices.IndexFunc(x.Addrs, func(a netip.Addr) bool { return a.Is6() == six })
			if i < 0 || p.Proto != q.Proto || p.Host.Port() != q.To.Port() ||
				q.To.Addr().Is6() != six || q.To.Addr() == netip.IPv6Loopback() ||
				!p.Host.Addr().IsUnspecified() && p.Host.Addr() != q.To.Addr() {
				continue
			}
			proxied, loop := len(f.Proxies) > 0, q.To.Addr().IsLoopback()
			if !proxied || !loop && q.Bridge != "docker0" {
				return c.inside(q, x, netip.AddrPortFrom(x.Addrs[i], p.Port))
			}
		}
	}
	l, ok := listens(f.Listeners, q.Proto, q.To)
	if !ok {
		return answer(-1, q, "")
	}
	i := c.socketOf(l, "")
	px, ok := f.proxyOf(l)
	if !ok || px.Rootless {
		return answer(i, q, "")
	}
	a := answer(-1, q, "")
	if x, ok := f.behind(px); ok {
		a = c.inside(q, x, px.Container)
	}
	a.Steps = nil
	a.Outcomes[0].Relays = []int{i}
	if a.Outcomes[0].Got == replica.Refused {
		a.Outcomes[0].Got = replica.Closed
	}
	return a
}

// inside returns the answer of a container to which packets are redirected.
func (c *Copy) inside(q replica.Dial, x Container, to netip.AddrPort) replica.Answer {
	l, ok := listens(x.Listeners, q.Proto, to)
	if !ok {
		return answer(-1, q, to.String())
	}
	return answer(c.socketOf(l, x.Space), q, to.String())
}

func (c *Copy) socketOf(l Listener, space string) int {
	return slices.IndexFunc(c.stands, func(s stand) bool {
		return s.listener.Addr == l.Addr && s.listener.Proto == l.Proto &&
			(s.container == nil && space == "" || s.container != nil && s.container.Space == space)
	})
}

// answer returns the answer of a socket, or without one if socket is -1. to is the last destination
// of the packet.
func answer(socket int, q replica.Dial, to string) replica.Answer {
	o := replica.Outcome{Got: replica.Connected, Socket: socket, Source: q.Source, Seen: q.Source}
	if socket < 0 {
		o.Got = replica.Refused
	}
	a := replica.Answer{Outcomes: []replica.Outcome{o}}
	if to != "" && q.Explain {
		a.Steps = []replica.Step{{Dst: q.To}, {Dst: netip.MustParseAddrPort(to)}}
	}
	return a
}

func lose(q replica.Dial, a *replica.Answer, l replica.Lost) {
	a.Outcomes = []replica.Outcome{{Got: replica.Timeout, Socket: -1, Source: q.Source}}
	if q.Explain {
		a.Lost = &l
	}
}

// losing returns a change that loses the packets of clients: "machine", "container", or the address
// that this machine dials.
func losing(clients string, l replica.Lost) change {
	return func(q replica.Dial, a *replica.Answer) {
		who := q.To.Addr().String()
		switch {
		case q.Card != "":
			who = "machine"
		case q.Bridge != "":
			who = "container"
		}
		if slices.Contains(strings.Fields(clients), who) {
			lose(q, a, l)
		}
	}
}

func rule(table, chain string, number int, text string) *replica.Rule {
	return &replica.Rule{RuleText: replica.RuleText{Table: table, Chain: chain, Number: number,
		Text: text}}
}
