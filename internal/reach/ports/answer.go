package ports

import (
	"cmp"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// Reach is the most distant kind of client that reaches a port.
type Reach string

// The kinds of clients, the most distant first.
const (
	FromMachines   Reach = "other machines"
	FromContainers Reach = "containers"
	FromHere       Reach = "this machine"
	FromItself     Reach = "its own container"
	FromNowhere    Reach = "nobody"
)

// Exposed is a port and the most distant kind of client that reaches it.
type Exposed struct {
	Port   uint16 `json:"port"`
	Proto  string `json:"protocol"`
	Server string `json:"server"`
	Reach  Reach  `json:"reach"`
	// Sure is false if a deciding fact is unknown, also about more distant clients, or if the answer
	// depends on the client.
	Sure bool     `json:"sure"`
	Dial []string `json:"dial"` // addresses that these clients dial

	refused bool // this machine's own connection was refused
	untried bool // the report's client is of another address family
	own     bool // Dial has the container's own addresses only
	// perhaps is the most distant kind of client that gets no answer in the copy, but may get one on
	// the machine; FromNowhere: none.
	perhaps Reach
}

func (r *Report) exposure() []Exposed {
	out := []Exposed{}
	client, _ := netip.ParseAddr(r.Client)
	add := func(x Exposed) {
		i := slices.IndexFunc(out, func(o Exposed) bool {
			return o.Port == x.Port && o.Proto == x.Proto && o.Server == x.Server
		})
		if i >= 0 {
			x.untried = x.untried && out[i].untried
			x.perhaps = farther(x.perhaps, out[i].perhaps)
			out[i].untried, out[i].perhaps = x.untried, x.perhaps
		}
		switch {
		case i < 0:
			out = append(out, x)
		case rank(x.Reach) < rank(out[i].Reach) ||
			x.Reach == out[i].Reach && x.Sure && !out[i].Sure:
			out[i] = x
		case x.Reach == out[i].Reach:
			for _, d := range x.Dial {
				out[i].Dial = once(out[i].Dial, d)
			}
			out[i].own = out[i].own && x.own
		}
	}
	for _, row := range r.Ports {
		x := Exposed{Port: row.Port, Proto: row.Proto, Server: row.Server.brief(),
			untried: client.IsValid() && !row.concerns(client.Is6())}
		x.take(row.Dials)
		add(x)
	}
	for _, in := range r.Inside {
		x := Exposed{Port: in.Port, Proto: in.Proto, Server: in.Server.brief(),
			untried: client.IsValid() && client.Is6() != overIPv6(in.Dial)}
		var dials []Path
		for _, c := range append([]Client{Itself}, inside...) {
			if p, ok := in.Paths[c]; ok {
				p.own = true
				dials = append(dials, p)
			}
		}
		x.take(dials)
		add(x)
	}
	for i := range out {
		out[i].Sure = out[i].Sure && rank(out[i].perhaps) >= rank(out[i].Reach)
	}
	slices.SortStableFunc(out, func(a, b Exposed) int { return rank(a.Reach) - rank(b.Reach) })
	return out
}

func rank(r Reach) int {
	return slices.Index([]Reach{FromMachines, FromContainers, FromHere, FromItself, FromNowhere}, r)
}

func farther(a, b Reach) Reach {
	if rank(b) < rank(a) {
		return b
	}
	return a
}

// reach returns the kind of clients to which the path's belongs.
func (p Path) reach() Reach {
	switch p.Client {
	case Remote:
		return FromMachines
	case Neighbour, Foreign:
		return FromContainers
	case Itself:
		return FromItself
	}
	return FromHere
}

// take sets who reaches the port by the paths, and who may reach it from further away.
func (x *Exposed) take(dials []Path) {
	x.Reach, x.Sure, x.Dial, x.perhaps = FromNowhere, true, []string{}, FromNowhere
	fromHere := func(p Path) bool { return p.Client.class() == here }
	x.refused = slices.ContainsFunc(dials, fromHere) && !slices.ContainsFunc(dials,
		func(p Path) bool { return fromHere(p) && (p.Answers() || len(p.Doubt) > 0) })
	for _, p := range dials {
		reach := p.reach()
		switch {
		case x.untried && p.Client == Remote, p.vain:
			continue
		case p.self && p.mayAnswer():
			x.perhaps = farther(x.perhaps, FromItself)
			continue
		case !p.Answers():
			if p.mayAnswer() {
				x.perhaps = farther(x.perhaps, reach)
			}
			continue
		}
		sure := len(p.Doubt) == 0 && len(p.Depends) == 0
		switch by := rank(reach) - rank(x.Reach); {
		case by < 0:
			x.Reach, x.Sure, x.Dial = reach, sure, []string{p.Dial}
			x.own = p.own
		case by == 0:
			x.Sure, x.Dial = x.Sure || sure, once(x.Dial, p.Dial)
			x.own = x.own && p.own
		}
	}
}

const fewNamed = 8

// sentence has the first words of what is said about ports with the reach.
type sentence struct {
	reach         Reach
	refused       bool // this machine's connections were refused; only containers' ports
	counted       bool // the number of ports follows
	sure, notSure string
}

const (
	itselfReaches = "Only its own container reaches"
	perhapsItself = "Perhaps only its own container reaches"
)

// sentences are about all machines, or about one client if the others were not tried.
func (r *Report) sentences() []sentence {
	const both = "Containers and this machine reach"
	if r.Client != "" {
		return []sentence{
			{FromMachines, false, true, r.Client + " reaches", r.Client + " may reach"},
			{FromContainers, false, true, both, "Containers may reach"},
			{FromContainers, true, false, "Containers reach", "Containers may reach"},
			{FromHere, false, false, "This machine reaches", "This machine may reach"},
			{FromItself, false, false, itselfReaches, perhapsItself},
			{FromNowhere, false, false, "No tried client gets an answer on",
				"Perhaps no tried client gets an answer on"},
		}
	}
	return []sentence{
		{FromMachines, false, true, "Other machines reach", "Other machines may reach"},
		{FromContainers, false, true, both, "Containers may reach"},
		{FromContainers, true, false, "Only containers reach", "Perhaps only containers reach"},
		{FromHere, false, false, "Only this machine reaches", "Perhaps only this machine reaches"},
		{FromItself, false, false, itselfReaches, perhapsItself},
		{FromNowhere, false, false, "Nothing answers on", "Perhaps nothing answers on"},
	}
}

func (r *Report) answer() *analysis.Answer {
	if len(r.Exposure) == 0 {
		return nil
	}
	a := &analysis.Answer{Question: "What is reached from where?", Text: []string{}}
	more := ""
	for _, x := range r.sentences() {
		var sure, open []Exposed
		for _, e := range r.Exposure {
			switch {
			case e.Reach != x.reach || x.reach == FromContainers && e.refused != x.refused:
			case e.Sure:
				sure = append(sure, e)
			default:
				open = append(open, e)
			}
		}
		switch {
		case len(sure) > 0 && x.counted:
			a.Add(fmt.Sprintf("%s %s%s: %s.", x.sure, units.Plural(len(sure), "port"), more,
				few(reachedNames(sure))))
		case len(sure) > 0:
			a.Add(fmt.Sprintf("%s %s.", x.sure, few(reachedNames(sure))))
		case len(open) == 0 && r.Port == 0 && x.reach == FromMachines && r.perhapsReached():
			a.Add(fmt.Sprintf("It is not certain that %s no port.", strings.ToLower(x.sure[:1])+x.sure[1:]))
		case len(open) == 0 && r.Port == 0 && x.reach == FromMachines:
			a.Add(x.sure + " no port.")
		}
		if len(sure) > 0 {
			more = " more"
		}
		if len(open) > 0 && x.notSure != "" {
			a.Add(fmt.Sprintf("%s %s.", x.notSure, few(reachedNames(open))))
		}
	}
	untried := slices.DeleteFunc(slices.Clone(r.Exposure), func(e Exposed) bool {
		return !e.untried
	})
	if len(untried) > 0 {
		a.Add(fmt.Sprintf("Not tried for %s, an %s address: %s.", r.Client,
			family(strings.Contains(r.Client, ":")), few(reachedNames(untried))))
	}
	if n := len(r.Traps); n > 0 && r.Port == 0 {
		a.Add(fmt.Sprintf("%d %s listed below.", n,
			map[bool]string{true: "trap is", false: "traps are"}[n == 1]))
	}
	return a
}

// perhapsReached reports whether other machines may reach a port, which they do not in the copy.
func (r *Report) perhapsReached() bool {
	return slices.ContainsFunc(r.Exposure, func(x Exposed) bool { return x.perhaps == FromMachines })
}

// reachedNames returns texts such as "8080/tcp (web:80)". They end in " at 172.17.0.2:80" if
// clients reach only the container's own address.
func reachedNames(list []Exposed) (out []string) {
	at := func(x Exposed) string {
		if !x.own {
			return ""
		}
		return strings.TrimSuffix(x.Dial[0], portOf(x.Dial[0]))
	}
	groups := map[string][]Exposed{}
	var order []string
	for _, x := range list {
		order = once(order, at(x))
		groups[at(x)] = append(groups[at(x)], x)
	}
	for _, address := range order {
		for _, name := range exposedNames(groups[address]) {
			if address != "" {
				_, port, ok := cutLast(strings.TrimSuffix(name, ")"), ":")
				if name += " at " + address; ok {
					name += ":" + port
				}
			}
			out = append(out, name)
		}
	}
	return out
}

// from is a place of clients and the address family that they dial.
type from struct {
	class, who string
	six        bool
}

// reason is why clients of a port get no answer.
type reason struct {
	name  string
	why   Reason
	kind  PathKind
	doubt bool // the machine may answer
}

func (x reason) is() string {
	if x.doubt {
		return "may be"
	}
	return "is"
}

// shut returns sentences that name the clients which get no answer, the cause and the remedies.
// Commands are lines of their own.
func (r *Report) shut(w Words) (out []string) {
	var order []reason
	var said []string // commands
	hit, all, trials := map[reason][]from{}, map[string][]from{}, map[reason][]tried{}
	for _, c := range []Client{Remote, Neighbour, OwnAddr, Loopback, Loopback6} {
		for _, row := range r.Ports {
			for _, p := range row.Dials {
				if p.Client != c || p.own || p.vain {
					continue
				}
				by := from{c.class(), p.who(), overIPv6(p.Dial)}
				all[row.name()] = once(all[row.name()], by)
				if p.Kind != Blocked && p.Kind != Held {
					continue
				}
				x := reason{row.name(), p.cause(), p.Kind, !p.certain()}
				if p.Kind == Held {
					x.why = p.Why
				}
				if hit[x] == nil {
					order = append(order, x)
				}
				hit[x], trials[x] = once(hit[x], by), addTried(trials[x], p, by)
			}
		}
	}
	for _, x := range order {
		lines := []string{fmt.Sprintf("From %s, %s %s %s: %s.", few(r.together(hit[x],
			all[x.name])), x.name, x.is(), x.kind, w.Reason(x.why))}
		for _, t := range trials[x] {
			who := "them"
			if len(trials[x]) > 1 {
				who = t.who(r.together(t.by, all[x.name]))
			}
			if len(t.Commands) > 0 && slices.Contains(said, t.text()) {
				lines = append(lines, t.again(who, !x.doubt))
				continue
			}
			lines, said = append(lines, t.sentences(who, !x.doubt)...), append(said, t.text())
		}
		out = append(out, strings.Join(lines, "\n"))
	}
	return out
}

// tried is a trial, the clients that it concerns and the addresses that they dial.
type tried struct {
	*Trial
	by []from
	at []string
}

// addTried adds the client of a path to those of an equal trial.
func addTried(all []tried, p Path, by from) []tried {
	if p.Trial == nil {
		return all
	}
	i := slices.IndexFunc(all, func(o tried) bool { return reflect.DeepEqual(o.Trial, p.Trial) })
	if i < 0 {
		i, all = len(all), append(all, tried{Trial: p.Trial})
	}
	all[i].by = once(all[i].by, by)
	all[i].at = once(all[i].at, strings.TrimSuffix(p.Dial, portOf(p.Dial)))
	return all
}

// who returns the clients' names, with the address that all of them dial.
func (t tried) who(names []string) string {
	if len(t.at) > 1 {
		return few(names)
	}
	at := " at " + t.at[0]
	for i := range names {
		names[i] = strings.TrimSuffix(names[i], at)
	}
	return few(names) + at
}

// together returns names for the clients in hit: the class if all of its clients are, with the
// address family if only one of both is.
func (r *Report) together(hit, all []from) (names []string) {
	for _, class := range []string{machines, containers, here} {
		var of [2]int // clients by family
		var who [2][]string
		for _, c := range all {
			i := 0
			if c.six {
				i = 1
			}
			if c.class == class {
				of[i]++
				if slices.Contains(hit, c) {
					who[i] = append(who[i], c.who)
				}
			}
		}
		for i := range who {
			if len(who[i]) > 0 && len(who[i]) == of[i] {
				who[i] = []string{class}
				if class == machines {
					who[i] = []string{cmp.Or(r.Client, machines)}
				}
			}
		}
		for i, six := range []bool{false, true} {
			for _, name := range who[i] {
				if of[1-i] > 0 && !slices.Contains(who[1-i], name) &&
					(class != here || name == here) { // else the name has the address
					name += " over " + family(six)
				}
				names = once(names, name)
			}
		}
	}
	return names
}

// overIPv6 reports whether a dialled ADDRESS:PORT is of IPv6.
func overIPv6(dial string) bool { return strings.HasPrefix(dial, "[") }

func family(six bool) string {
	if six {
		return "IPv6"
	}
	return "IPv4"
}

const machines, containers = "other machines", "containers"

func (c Client) class() string {
	switch c {
	case Remote:
		return machines
	case Neighbour, Foreign, Itself:
		return containers
	}
	return here
}

// who returns the words for the client's place.
func (p Path) who() string {
	if p.Client.class() == here {
		return "this machine at " + strings.TrimSuffix(p.Dial, portOf(p.Dial))
	}
	return p.place()
}

func portOf(dial string) string { return dial[strings.LastIndex(dial, ":"):] }

func few(names []string) string {
	if len(names) <= fewNamed {
		return printable.List(names)
	}
	return strings.Join(names[:fewNamed], ", ") + fmt.Sprintf(" and %d more", len(names)-fewNamed)
}

const unknownProgram = "program not known"

func (s Server) brief() string {
	switch {
	case s.Kind == "container" && s.Network == "" && s.Port != 0:
		return fmt.Sprintf("%s:%d", s.Name, s.Port)
	case s.Name != "":
		return s.Name
	}
	return unknownProgram
}
