package build

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// alikes knows which ports no rule, route or socket tells apart, except that each port has rules
// and sockets of its own, which have the same form: for example rules that redirect ports 8001 and
// 8002 to ports 81 and 82 of one container, which listens on both. Connections of a client to such
// ports of an address have the same outcome, except for the ports.
//
// Ports get classes by refinement. The first classes depend on the rules and sockets that name a
// port, in order and without the ports. The next ones also depend on the classes of the other ports
// that these rules and sockets name. Refinement ends when it divides no class.
type alikes struct {
	of      map[uint16][]naming
	class   map[uint16]int // nil: it is not known which ports are alike
	cuts    []uint16       // sorted
	fixed   []uint16       // rules for any port redirect to these
	sockets map[string]int
	known   map[[2]uint16]map[uint16]uint16 // what mapping returned
}

// naming is a rule or socket that names a port, among others.
type naming struct {
	text  string
	ports []uint16
}

// alikes finds out which ports are alike: none if it is not known what a rule does with ports, or
// if rules choose at random.
func (c *machine) alikes() *alikes {
	if c.times > 1 {
		return &alikes{}
	}
	a := &alikes{of: map[uint16][]naming{}, sockets: map[string]int{},
		known: map[[2]uint16]map[uint16]uint16{}}
	for i, s := range c.from.Spaces {
		use, ok := s.Nft.PortUse()
		if !ok || len(s.Legacy) > 0 || slices.ContainsFunc(s.Policy, link.PolicyHasPorts) {
			return &alikes{}
		}
		a.cuts = append(a.cuts, use.Cuts...)
		a.fixed = append(a.fixed, use.Targets...)
		for _, r := range use.Rules {
			tested := map[uint16]bool{}
			for _, t := range r.Tested {
				if p := r.Ports[t]; !tested[p] {
					tested[p] = true
					text := strconv.Itoa(i) + " " + r.Place + " " + strconv.Itoa(t) + " " + r.Text
					a.of[p] = append(a.of[p], naming{text, r.Ports})
				}
			}
		}
	}
	a.addSockets(c.sockets, c.net.Failed())
	slices.Sort(a.cuts)
	a.cuts = slices.Compact(a.cuts)
	a.classify()
	return a
}

func (a *alikes) addSockets(all []replica.Socket, failed map[int]error) {
	of := map[uint16][]naming{}
	for i, s := range all {
		n := naming{text: placeOf(s), ports: []uint16{s.Addr.Port()}}
		if s.Relay.IsValid() {
			n.text += " relay " + s.Relay.Addr().String()
			n.ports = append(n.ports, s.Relay.Port())
		}
		if failed[i] != nil {
			n.text += " failed"
		}
		of[s.Addr.Port()] = append(of[s.Addr.Port()], n)
		a.sockets[socketKey(s, s.Addr.Port())] = i
	}
	for p, list := range of {
		slices.SortFunc(list, func(x, y naming) int { return strings.Compare(x.text, y.text) })
		a.of[p] = append(a.of[p], list...)
	}
}

// placeOf returns all of a socket but its ports.
func placeOf(s replica.Socket) string {
	return fmt.Sprint("socket ", s.Space, s.Proto, s.Addr.Addr(), s.V6Only, s.Device, s.Mark)
}

func socketKey(s replica.Socket, port uint16) string { return fmt.Sprint(placeOf(s), " ", port) }

// classify gives each port that a rule or socket names its class.
func (a *alikes) classify() {
	a.class = map[uint16]int{}
	for p, all := range a.of {
		a.class[p] = 0
		for _, n := range all {
			for _, q := range n.ports {
				a.class[q] = 0
			}
		}
	}
	for classes := 0; ; {
		ids := map[string]int{}
		next := make(map[uint16]int, len(a.class))
		for p := range a.class {
			key := a.key(p)
			if _, ok := ids[key]; !ok {
				ids[key] = len(ids)
			}
			next[p] = ids[key]
		}
		a.class = next
		if len(ids) == classes {
			return
		}
		classes = len(ids)
	}
}

const decimal = 10

// key identifies the class of a port, given the classes so far.
func (a *alikes) key(p uint16) string {
	at, exact := slices.BinarySearch(a.cuts, p)
	b := strconv.AppendBool(strconv.AppendInt(nil, int64(at), decimal), exact)
	b = strconv.AppendInt(append(b, ' '), int64(a.class[p]), decimal)
	if slices.Contains(a.fixed, p) {
		b = strconv.AppendInt(append(b, " is "...), int64(p), decimal)
	}
	for _, n := range a.of[p] {
		b = append(append(b, '\n'), n.text...)
		for _, q := range n.ports {
			b = strconv.AppendInt(append(b, ' '), int64(a.class[q]), decimal)
			b = strconv.AppendBool(b, q == p)
		}
	}
	return string(b)
}

// mapping returns, for each port that matters for connections to p, the port that takes its place
// for connections to q. It returns nil if p and q are not alike.
func (a *alikes) mapping(p, q uint16) map[uint16]uint16 {
	to, ok := a.known[[2]uint16{p, q}]
	if !ok {
		to = a.isomorphism(p, q)
		a.known[[2]uint16{p, q}] = to
	}
	return to
}

func (a *alikes) isomorphism(p, q uint16) map[uint16]uint16 {
	to, taken := map[uint16]uint16{}, map[uint16]bool{}
	todo := [][2]uint16{{p, q}}
	for len(todo) > 0 {
		x, y := todo[0][0], todo[0][1]
		todo = todo[1:]
		if old, known := to[x]; known || taken[y] {
			if !known || old != y {
				return nil
			}
			continue
		}
		to[x], taken[y] = y, true
		of, with := a.of[x], a.of[y]
		if a.class[x] != a.class[y] || len(of) != len(with) {
			return nil
		}
		for i := range of {
			for k := range of[i].ports {
				todo = append(todo, [2]uint16{of[i].ports[k], with[i].ports[k]})
			}
		}
	}
	return to
}

// group has connections that are alike. Only the first is made.
type group struct {
	first int
	rest  []member
}

type member struct {
	index int
	ports map[uint16]uint16
}

// ports groups ports. It returns one of each group, and by that the others, which are alike.
func (a *alikes) ports(all []uint16) (first []uint16, others map[uint16][]uint16) {
	others = map[uint16][]uint16{}
	if a.class == nil {
		return all, others
	}
	at := map[string][]uint16{} // of first
	for _, p := range all {
		class, named := a.class[p]
		in := fmt.Sprint("class ", class)
		if !named { // nothing tells ports between two cuts apart
			in = a.key(p)
		}
		i := slices.IndexFunc(at[in], func(q uint16) bool { return a.mapping(q, p) != nil })
		if i >= 0 {
			others[at[in][i]] = append(others[at[in][i]], p)
			continue
		}
		at[in] = append(at[in], p)
		first = append(first, p)
	}
	return first, others
}

// groups groups dials, whose indexes which has.
func (a *alikes) groups(dials []replica.Dial, which []int) (out []group) {
	type kind struct {
		client replica.Client
		proto  string
		to     netip.Addr
		class  int
	}
	at := map[kind][]int{} // indexes in out
	for _, i := range which {
		d := dials[i]
		port := d.To.Port()
		class, known := a.class[port]
		k := kind{d.Client, d.Proto, d.To.Addr(), class}
		like := func(g int) bool { return a.mapping(dials[out[g].first].To.Port(), port) != nil }
		if n := slices.IndexFunc(at[k], like); n >= 0 {
			g := &out[at[k][n]]
			g.rest = append(g.rest, member{i, a.mapping(dials[g.first].To.Port(), port)})
			continue
		}
		if known {
			at[k] = append(at[k], len(out))
		}
		out = append(out, group{first: i})
	}
	return out
}

// outcomes returns a member's outcomes, given the outcomes of the group's first connection. ok is
// false if no socket corresponds to one that answered.
func (a *alikes) outcomes(of []replica.Outcome, m member, sockets []replica.Socket) (
	out []replica.Outcome, ok bool) {
	port := func(p uint16) uint16 { return cmp.Or(m.ports[p], p) }
	socket := func(i int) (int, bool) {
		if i < 0 {
			return i, true
		}
		j, ok := a.sockets[socketKey(sockets[i], port(sockets[i].Addr.Port()))]
		return j, ok
	}
	for _, o := range of {
		if o.Socket, ok = socket(o.Socket); !ok {
			return nil, false
		}
		o.Relays = slices.Clone(o.Relays)
		for k := range o.Relays {
			if o.Relays[k], ok = socket(o.Relays[k]); !ok {
				return nil, false
			}
		}
		if o.From.IsValid() {
			o.From = netip.AddrPortFrom(o.From.Addr(), port(o.From.Port()))
		}
		out = append(out, o)
	}
	return out, true
}
