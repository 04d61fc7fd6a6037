package ports

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// Changes is who gained and lost which port since an older report.
type Changes struct {
	Since string `json:"since"` // the older machine's file
	// Elsewhere is whether the file has none of this machine's network cards, so it may be another's.
	Elsewhere bool     `json:"elsewhere,omitempty"`
	Gained    []Change `json:"gained"`
	Lost      []Change `json:"lost"`
	// Moved lists ports that answer as before, but by another server, or with another address of the
	// client.
	Moved []Change `json:"moved"`
	// Same is the number of connections that end as before, Open of those about which one of the
	// reports is not certain.
	Same int `json:"same"`
	Open int `json:"not_certain"`
	// Doubts has the reasons of those, each once.
	Doubts []Reason `json:"not_certain_because,omitempty"`
	// Changed is the number of connections that were gained or lost.
	Changed int `json:"changed"`

	moved int // number of connections in Moved
}

// Change is a port whose answers clients gained or lost.
type Change struct {
	Port   uint16   `json:"port"`
	Proto  string   `json:"protocol"`
	Server string   `json:"server"`
	Who    []string `json:"who"`  // "other machines", "a container on shop", …
	Dial   []string `json:"dial"` // the addresses
	// Because is what lost the answer now or, of a gain, what prevented it before; "": the port did
	// not exist.
	Because Reason `json:"because,omitzero"`

	partly  bool   // these clients get an answer at another address before and after
	briefly string // Because, as the end of a sentence
}

// compared identifies a connection in two reports.
type compared struct {
	proto, client, from, dial string
	port                      uint16
}

type outcomeOf struct {
	server string
	path   *Path // of the report
}

// outcomes returns the connections of a report, with new names of cards by those that they had. A
// container's own address may change, so its name stands for it.
func (r *Report) outcomes(renamed map[string]string) (order []compared,
	all map[compared]outcomeOf) {
	all = map[compared]outcomeOf{}
	add := func(k compared, o outcomeOf) {
		if _, ok := all[k]; !ok {
			order = append(order, k)
		}
		if had, ok := all[k]; !ok || !had.path.Answers() {
			all[k] = o
		}
	}
	for _, row := range r.Ports {
		for i := range row.Dials {
			if p := &row.Dials[i]; !p.own && !p.self {
				add(compared{row.Proto, p.Client.kin(), p.at(renamed), p.Dial, row.Port},
					outcomeOf{p.serverOf(row.Server), p})
			}
		}
	}
	for _, in := range r.Inside {
		for i := range in.Dials {
			p, name := &in.Dials[i], in.Server.Name
			if overIPv6(in.Dial) {
				name += " over IPv6"
			}
			add(compared{in.Proto, p.Client.kin(), p.at(renamed), name, in.Port},
				outcomeOf{p.serverOf(in.Server), p})
		}
	}
	return order, all
}

// at returns From with the new name of the client's card, if it has one.
func (p Path) at(renamed map[string]string) string {
	now := renamed[p.card]
	switch {
	case now == "":
	case p.From == atCard+p.card:
		return atCard + now
	case p.From == behindRouter+p.card+routerOf:
		return behindRouter + now + routerOf
	}
	return p.From
}

// of returns the outcome of a connection, with an empty path if the report does not have it.
func (k compared) of(all map[compared]outcomeOf) outcomeOf {
	o, ok := all[k]
	if !ok {
		o.path = &Path{}
	}
	return o
}

// complete adds to the connections of a report those that only the other one has of containers
// which rules single out: without such rules, they are like others of the network.
func complete(all, other map[compared]outcomeOf) {
	for k, o := range other {
		if _, ok := all[k]; ok || !o.path.single {
			continue
		}
		like := k
		like.from = "a container on " + o.path.network
		if x, ok := all[like]; ok {
			p := *x.path
			p.From, p.single = o.path.From, true
			all[k] = outcomeOf{x.server, &p}
		}
	}
}

// serverOf returns the name of the server that answered or, if none did, of the row's.
func (p Path) serverOf(row Server) string {
	if p.Answers() && p.server.Name != "" {
		return p.server.brief()
	}
	return row.brief()
}

// kin returns the kind of client for comparisons: another container may join the server's network.
func (c Client) kin() string {
	if c == Foreign {
		c = Neighbour
	}
	return string(c)
}

// Since compares the report with an older one, of the file since.
func (r *Report) Since(old *Report, since string) {
	c := &Changes{Since: since, Gained: []Change{}, Lost: []Change{}, Moved: []Change{},
		Elsewhere: since != "" && len(old.cards) > 0 && len(r.cards) > 0}
	renamed := map[string]string{}
	for mac, was := range old.cards {
		is, ours := r.cards[mac]
		c.Elsewhere = c.Elsewhere && !ours
		if was != "" && is != "" && was != is {
			renamed[was] = is
		}
	}
	before, was := old.outcomes(renamed)
	order, is := r.outcomes(nil)
	for _, k := range before {
		if _, ok := is[k]; !ok {
			order = append(order, k)
		}
	}
	complete(was, is)
	complete(is, was)
	had, has := reachedAt(was), reachedAt(is)
	var doubts []Reason
	for _, k := range order {
		a, b := k.of(was), k.of(is)
		otherwise := moved(a, b)
		switch {
		case len(a.path.Doubt)+len(b.path.Doubt) > 0 &&
			(a.path.Kind != b.path.Kind || doubted(a.path, b.path, since == "")):
			c.Open++
			doubts = append(append(doubts, b.path.Doubt...), a.path.Doubt...)
		case otherwise.Code != "":
			c.Moved = addChange(c.Moved, k, b, false, otherwise)
			c.moved++
		case a.path.Answers() == b.path.Answers():
			c.Same++
		case b.path.Answers() && a.path.Kind == "" && had[k.at(b.server)] > 0: // at another address
			c.Same++
		case a.path.Answers() && b.path.Kind == "" && has[k.at(a.server)] > 0 &&
			old.absent(*a.path, k, r, is, absentNow).Code == "" && r.hasAddress(*a.path): // not tried there
			c.Same++
		case b.path.Answers():
			c.Changed++
			partly := had[k.at(b.server)] > 0
			because := a.path.reason()
			if a.path.Kind == "" {
				because = r.absent(*b.path, k, old, was, absentThen)
			}
			c.Gained = addChange(c.Gained, k, b, partly, because)
		default:
			c.Changed++
			because := b.path.reason()
			switch {
			case b.path.Kind == "":
				because = old.absent(*a.path, k, r, is, absentNow)
				b.path = &Path{Client: a.path.Client, From: a.path.From, Dial: a.path.Dial}
			case a.path.redirected() && because.Code == NoSocket:
				because.Code = NotRedirected
			}
			partly := has[k.at(a.server)] > 0
			c.Lost = addChange(c.Lost, k, outcomeOf{a.server, b.path}, partly, because)
		}
	}
	join(c.Gained, order)
	join(c.Lost, order)
	join(c.Moved, order)
	c.Doubts = joinRoutes(doubts)
	r.Changes = c
}

// unnamed reports whether the text of Server.brief lacks the name, or has a container's ID, for which
// Docker was not asked.
func unnamed(server string) bool {
	name, _, _ := strings.Cut(server, ":")
	return server == unknownProgram || name == "" || shortID.MatchString(name)
}

var shortID = regexp.MustCompile("^[0-9a-f]{12}$")

// doubted reports whether a path has other doubts than before, or, if the two were not read at once,
// whether only one has any: texts in doubts, such as numbers of programs, differ between boots.
func doubted(a, b *Path, together bool) bool {
	lacks := func(of, other []Reason) bool {
		return slices.ContainsFunc(of, func(r Reason) bool { return !slices.Contains(other, r) })
	}
	if !together {
		return (len(a.Doubt) > 0) != (len(b.Doubt) > 0)
	}
	return lacks(a.Doubt, b.Doubt) || lacks(b.Doubt, a.Doubt)
}

// moved returns how an answered connection differs from before. The code is "" if it does not, or
// if that is not certain.
func moved(a, b outcomeOf) Reason {
	hidden := func(p *Path) string {
		if p.Masqueraded {
			return p.Seen
		}
		return ""
	}
	switch {
	case !a.path.Answers() || !b.path.Answers() || len(a.path.Doubt)+len(b.path.Doubt) > 0:
		return Reason{}
	case a.server != b.server && (unnamed(a.server) || unnamed(b.server)):
		return Reason{}
	case a.server != b.server:
		return Reason{Code: OtherServer, Of: b.server, By: a.server}
	case hidden(a.path) == hidden(b.path):
		return Reason{}
	case b.path.Masqueraded && b.path.Seen != "":
		return Reason{Code: SeenAs, At: b.path.Seen}
	case b.path.Masqueraded:
		return Reason{Code: NoLongerSeen}
	}
	return Reason{Code: SeenItself}
}

// joinRoutes returns the reasons, each once, and one for all addresses to which there may be no
// route.
func joinRoutes(all []Reason) (out []Reason) {
	var to []string
	for _, d := range all {
		if d.Code == RouteThere {
			to = once(to, d.At)
		}
	}
	for _, d := range all {
		if d.Code == RouteThere {
			d.At = few(to)
		}
		out = once(out, d)
	}
	return out
}

// cards returns the names of the machine's network cards by hardware address, "" if several have it:
// of devices that are neither made by software nor have their other end on the machine.
func (f *Facts) cards() map[string]string {
	out := map[string]string{}
	if f.Copy == nil {
		return out
	}
	m := f.Copy.Machine
	for _, l := range m.Spaces[0].Links {
		_, end := m.Other(0, l)
		card := l.Kind == "" || l.Kind == "device" || l.Pair() && end == nil
		if card && slices.ContainsFunc(l.MAC, func(b byte) bool { return b != 0 }) {
			name := l.Name
			if _, twice := out[string(l.MAC)]; twice {
				name = ""
			}
			out[string(l.MAC)] = name
		}
	}
	return out
}

// redirected reports whether rules lead the path to its server.
func (p Path) redirected() bool { return p.moved || p.Kind == ByNAT || p.Kind == Hairpin }

// reachable is a server's port for clients at a place, at any address.
type reachable struct {
	proto, place, server string
	port                 uint16
}

func (k compared) at(server string) reachable {
	place := Path{Client: Client(k.client), From: k.from}.place()
	return reachable{k.proto, place, server, k.port}
}

// reachedAt counts the addresses at which clients get an answer.
func reachedAt(all map[compared]outcomeOf) map[reachable]int {
	out := map[reachable]int{}
	for k, o := range all {
		if o.path.Answers() {
			out[k.at(o.server)]++
		}
	}
	return out
}

// absence has the codes of reasons that a connection is not in the other report.
type absence struct{ served, container, route, address, device, down Code }

var (
	absentNow  = absence{NotServed, NoneThere, NoRouteThere, AddressGone, DeviceGone, DeviceDown}
	absentThen = absence{"", NoneWasThere, NoRouteLed, AddressNew, DeviceNew, DeviceWasDown}
)

// absent returns the reason, with one of the codes, that a connection of r is not in the other
// report, whose outcomes are all: nobody serves the port there, or the client's place or the
// dialled address is not there. It is none if that is not known.
func (r *Report) absent(p Path, k compared, other *Report, all map[compared]outcomeOf,
	codes absence) Reason {
	served, place := false, false
	for x, o := range all {
		place = place || o.path.place() == p.place()
		served = served || x.port == k.port && x.proto == k.proto
	}
	to, _ := netip.ParseAddrPort(p.Dial)
	switch {
	case !served:
		return Reason{Code: codes.served}
	case place:
		return r.without(to.Addr(), "", other, codes)
	case p.Client.class() == containers:
		return Reason{Code: codes.container}
	case p.card == "":
		return Reason{}
	}
	why := r.without(to.Addr(), p.card, other, codes)
	if why.Code == "" && strings.HasPrefix(p.From, behindRouter) {
		why.Code = codes.route
	}
	return why
}

// without returns the reason, with one of the codes, that the other report does not have the
// address, or one of a device's of the same family, or the device. It is none if it has all.
func (r *Report) without(a netip.Addr, device string, other *Report, codes absence) Reason {
	for _, d := range r.devices {
		if d.Name != device && (device != "" || !d.has(a)) {
			continue
		}
		i := slices.IndexFunc(other.devices, func(o Device) bool { return o.Name == d.Name })
		if i < 0 {
			return Reason{Code: codes.device, Of: d.Name}
		}
		if o := other.devices[i]; d.Up && !o.Up {
			return Reason{Code: codes.down, Of: d.Name}
		}
		for _, p := range d.Addrs {
			there := slices.ContainsFunc(other.devices, func(o Device) bool { return o.has(p.Addr()) })
			if !there && (p.Addr() == a || device != "" && p.Addr().Is4() == a.Is4()) {
				return Reason{Code: codes.address, Of: d.Name, At: p.Addr().String()}
			}
		}
	}
	return Reason{}
}

// addChange adds a change to the one of the same port and cause.
func addChange(all []Change, k compared, o outcomeOf, partly bool, because Reason) []Change {
	because = because.without(o.path.Dial)
	x := Change{Port: k.port, Proto: k.proto, Server: o.server, Because: because,
		partly: partly}
	i := slices.IndexFunc(all, func(y Change) bool {
		return y.Port == x.Port && y.Proto == x.Proto && y.Server == x.Server && y.Because == because &&
			y.partly == partly
	})
	if i < 0 {
		i, all = len(all), append(all, x)
	}
	all[i].Who = once(all[i].Who, o.path.place())
	all[i].Dial = once(all[i].Dial, o.path.Dial)
	return all
}

// place returns the client's place, or its class if there is only one.
func (p Path) place() string {
	if p.Client.class() == here {
		return here
	}
	return cmp.Or(p.From, p.Client.class())
}

// join replaces the places of changes' clients by their class if all of its places changed. order
// has the connections that were compared.
func join(list []Change, order []compared) {
	type port struct {
		number uint16
		proto  string
	}
	clients := map[port][]Path{}
	for _, x := range list {
		clients[port{x.Port, x.Proto}] = nil
	}
	for _, k := range order {
		at := port{k.port, k.proto}
		if of, ok := clients[at]; ok {
			clients[at] = append(of, Path{Client: Client(k.client), From: k.from})
		}
	}
	for i, x := range list {
		list[i].Who = together(x, clients[port{x.Port, x.Proto}])
	}
}

// together returns the places of a change's clients, or their class if all of its places changed.
// clients are those of the change's port.
func together(x Change, clients []Path) (out []string) {
	for _, class := range []string{machines, containers, here} {
		var all []string
		for _, p := range clients {
			if p.Client.class() == class {
				all = once(all, p.place())
			}
		}
		changed := slices.DeleteFunc(slices.Clone(all), func(place string) bool {
			return !slices.Contains(x.Who, place)
		})
		switch {
		case len(changed) == len(all) && len(all) > 1:
			out = append(out, class)
		default:
			out = append(out, changed...)
		}
	}
	return out
}

// Text returns the sentences about the changes.
func (c *Changes) Text() (out []string) {
	if c.Elsewhere {
		out = append(out, "The file may be of another machine: it has none of the network cards here.")
	}
	out = append(out, sentencesOf("Gained", c.Gained, "before, ")...)
	out = append(out, sentencesOf("Lost", c.Lost, "")...)
	if len(c.Gained)+len(c.Lost) == 0 {
		out = append(out, "Nobody gained or lost a port"+c.forCertain())
	}
	out = append(out, c.otherwise()...)
	return append(out, units.Plural(c.Same, "connection")+" as before"+c.notCertain()+".")
}

// forCertain ends a sentence that nobody gained or lost a port.
func (c *Changes) forCertain() string {
	if c.Open > 0 {
		return " for certain."
	}
	return "."
}

// otherwise returns a sentence for each port that answers otherwise.
func (c *Changes) otherwise() (out []string) {
	for _, x := range c.Moved {
		out = append(out, fmt.Sprintf("%s from %s: %s.", exposedNames([]Exposed{{Port: x.Port,
			Proto: x.Proto, Server: x.Server}})[0], printable.List(x.Who), x.Because.Words))
	}
	return out
}

// notCertain returns the words for connections about which a report is not certain, with the first
// reasons, to follow others; "": there are none.
func (c *Changes) notCertain() string {
	if c.Open == 0 {
		return ""
	}
	const most = 2
	var why []string
	for _, d := range c.Doubts[:min(most, len(c.Doubts))] {
		why = append(why, d.Words)
	}
	if more := len(c.Doubts) - most; more > 0 {
		why = append(why, fmt.Sprintf("%d more", more))
	}
	text := fmt.Sprintf("; %d not certain", c.Open)
	if len(why) > 0 {
		text += ": " + printable.List(why)
	}
	return text
}

// sentencesOf returns a sentence for each group of ports that the same clients gained or lost for
// the same cause.
func sentencesOf(verb string, all []Change, when string) (out []string) {
	for _, g := range grouped(all) {
		text := fmt.Sprintf("%s: %s by %s", verb, g.names(), g.who)
		if g.because != "" {
			text += ": " + when + g.because
		}
		out = append(out, text+".")
	}
	return out
}

// group has ports that the same clients gained or lost for the same cause.
type group struct {
	who, because string
	at           string // the addresses, if these clients reach the ports at others; else ""
	ports        []Exposed
}

// names returns the ports in words.
func (g group) names() string {
	if g.at == "" {
		return few(exposedNames(g.ports))
	}
	return few(exposedNames(g.ports)) + " at " + g.at
}

func grouped(all []Change) (out []group) {
	for _, x := range all {
		who, at := printable.List(x.Who), ""
		if x.partly {
			at = few(hosts(x.Dial))
		}
		i := slices.IndexFunc(out, func(g group) bool {
			return g.who == who && g.because == x.briefly && g.at == at
		})
		if i < 0 {
			i, out = len(out), append(out, group{who: who, because: x.briefly, at: at})
		}
		out[i].ports = append(out[i].ports, Exposed{Port: x.Port, Proto: x.Proto, Server: x.Server})
	}
	return out
}

// hosts returns the addresses without ports.
func hosts(dials []string) (out []string) {
	for _, d := range dials {
		if a, err := netip.ParseAddrPort(d); err == nil {
			d = a.Addr().String()
		}
		out = once(out, d)
	}
	return out
}
