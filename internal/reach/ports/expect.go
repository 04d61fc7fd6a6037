package ports

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	"github.com/bridgetoll/bridgetoll/internal/text/suggest"
)

// Expectation is a line of a file of --expect, and whether it holds.
type Expectation struct {
	Line    string `json:"line"`
	Number  int    `json:"number"` // of the line in the file, from 1
	Holds   Holds  `json:"holds"`
	Because Reason `json:"because,omitzero"` // why it does not hold, or is not certain

	follow  []Reason // what Because follows from
	against Reason   // that another line excludes this one
	who     string   // a class of clients
	network string   // of containers; "": any
	not     bool
	only    bool
	ports   []portRange
}

// Holds tells whether an expectation holds.
type Holds string

const (
	Yes   Holds = "holds"
	No    Holds = "fails"
	Maybe Holds = "?"
)

// reached is what a kind of client gets at a port.
type reached struct {
	port  uint16
	proto string
	own   bool // at a container's own address
	path  Path
}

// certain reports whether nothing that decides the path is unknown. That other clients get another
// result makes no difference to this one's.
func (p Path) certain() bool { return len(p.Doubt) == 0 }

// reachedBy lists the paths of a kind of client.
func (r *Report) reachedBy(class, network string) (out []reached) {
	is := func(p Path) bool {
		return p.Client.class() == class && p.Client != Itself && !p.self && !p.vain &&
			(network == "" || strings.Join(strings.Fields(p.network), " ") == network)
	}
	for _, row := range r.Ports {
		for _, p := range row.Dials {
			if is(p) {
				out = append(out, reached{row.Port, row.Proto, p.own, p})
			}
		}
	}
	for _, in := range r.Inside {
		for _, p := range in.Dials {
			if is(p) {
				out = append(out, reached{in.Port, in.Proto, true, p})
			}
		}
	}
	return out
}

// Expect judges the expectations. The report must be one on every port.
func (r *Report) Expect(all []Expectation) {
	r.Expected = []Expectation{}
	for _, e := range all {
		e.judge(r)
		if r.Tried != nil && r.Tried.Unknown() {
			e.fall(Maybe, r.Tried.unknown())
		}
		i := slices.IndexFunc(all, func(o Expectation) bool { return o.excludes(e) || e.excludes(o) })
		if e.Holds == No && i >= 0 {
			e.against = Reason{Code: LinesExclude, At: fmt.Sprintf("%d and %d",
				min(e.Number, all[i].Number), max(e.Number, all[i].Number))}
		}
		r.Expected = append(r.Expected, e)
	}
}

func (e *Expectation) judge(r *Report) {
	paths := r.reachedBy(e.who, e.network)
	e.Holds, e.Because, e.follow = Yes, Reason{}, nil
	switch {
	case e.network == "" || len(paths) > 0:
	case r.guessed:
		e.fall(Maybe, Reason{Code: NetworkUnknown, Of: e.network})
		return
	default:
		e.fall(No, r.notOn(e.network, e.Number))
		return
	}
	if e.only { // first, because a port too many is worse than one too few
		e.judgeOthers(paths)
	}
	slices.SortStableFunc(paths, func(a, b reached) int { return int(a.port) - int(b.port) })
	for _, p := range e.ports {
		e.judgePorts(p, paths, r.guessed)
	}
	if r.guessed && (e.not || e.only) {
		e.fall(Maybe, Reason{Code: RedirectsUnknown})
	}
}

// notOn returns that no container is on a network, with what its name may have meant.
func (r *Report) notOn(name string, line int) Reason {
	out := Reason{Code: NobodyOnNetwork, Of: name, N: line}
	i := slices.IndexFunc(r.Containers, func(h Home) bool { return h.Name == name })
	if i >= 0 && len(r.Containers[i].Networks) > 0 {
		out.Code, out.By = NetworkIsHome, printable.List(r.Containers[i].Networks)
		return out
	}
	var known []string
	for _, w := range r.whos() {
		if w.network != "" {
			known = append(known, w.network)
		}
	}
	switch near := suggest.Words(name, known); {
	case len(near) > 0:
		out.Code, out.By = NetworkMeant, strings.Join(near, " or ")
	case len(known) > 0:
		out.Code, out.By = NetworksKnown, few(known)
	}
	return out
}

// fall lets the expectation fail or be uncertain, unless that is known for a better reason.
func (e *Expectation) fall(to Holds, because Reason, follow ...Reason) {
	if e.Holds == Yes || e.Holds == Maybe && to == No {
		e.Holds, e.Because, e.follow = to, because, follow
	}
}

func (e *Expectation) say(w Words) {
	e.Because.say(w)
	for i, x := range e.follow {
		e.Because.Words += map[bool]string{true: ": ", false: "; "}[i == 0] + w.Reason(x)
	}
	if e.against.Code != "" {
		e.Because.Words += "; " + w.Reason(e.against)
	}
}

// judgeOthers judges that no other ports are reached.
func (e *Expectation) judgeOthers(paths []reached) {
	for _, x := range paths { // a neighbour with a route may reach containers' own addresses
		switch {
		case x.own || !x.path.mayAnswer() || e.Holds == Maybe && !x.path.certain():
		case slices.ContainsFunc(e.ports, func(p portRange) bool { return p.has(x.port, x.proto) }):
		case x.path.certain():
			e.fall(No, Reason{Code: Reaches, Of: x.path.who(), At: x.path.Dial + "/" + x.proto})
			return
		default:
			e.fall(Maybe, Reason{Code: MayReach, Of: x.path.who(), At: x.path.Dial + "/" + x.proto})
		}
	}
}

// judgePorts judges what is expected of consecutive ports. paths are sorted by port.
func (e *Expectation) judgePorts(p portRange, paths []reached, guessed bool) {
	for n := int(p.low); n <= int(p.high) && e.Holds != No; n++ {
		from, _ := slices.BinarySearchFunc(paths, n, func(x reached, n int) int {
			return int(x.port) - n
		})
		paths = paths[from:]
		if e.not && len(paths) > 0 && int(paths[0].port) > n { // nobody serves those between
			n = min(int(paths[0].port), int(p.high))
		}
		var at []reached
		for _, x := range paths {
			if int(x.port) != n {
				break
			}
			if x.proto == p.proto && (e.not || !x.path.single) { // others do not follow from one
				at = append(at, x)
			}
		}
		switch {
		case len(at) > 0:
			e.judgePort(at, guessed)
		case e.not && len(paths) == 0:
			return
		case !e.not && guessed:
			e.fall(Maybe, Reason{Code: ServedUnknown, At: fmt.Sprintf("%d/%s", n, p.proto)})
		case !e.not:
			e.fall(No, Reason{Code: NothingServes, At: fmt.Sprintf("%d/%s", n, p.proto)})
		}
	}
}

// judgePort judges what is expected of a port.
func (e *Expectation) judgePort(at []reached, guessed bool) {
	var yes, maybe, last *Path
	for _, x := range at {
		switch {
		case !x.path.Answers() && x.path.certain():
			last = &x.path
		case x.path.Answers() && x.path.certain():
			yes = &x.path
		case !x.own || !e.not: // whether there is a route to a container is another question
			maybe = &x.path
		}
	}
	switch {
	case e.not && yes != nil:
		e.fall(No, Reason{Code: Reaches, Of: yes.who(), At: yes.Dial})
	case yes != nil, e.not && maybe == nil:
	case maybe != nil:
		e.fall(Maybe, Reason{Code: ReachUnknown, Of: maybe.who(), At: maybe.Dial}, maybe.Doubt...)
	case last != nil && guessed:
		e.fall(Maybe, Reason{Code: ServedUnknown, At: last.Dial})
	case last != nil:
		e.fall(No, Reason{Code: GetsNoAnswer, Of: last.who(), At: last.Dial}, last.reason())
	}
}

// cause returns where and why packets were lost, without what sent them there, or else why the path
// ends where it does.
func (p *Path) cause() Reason {
	if p.lost != nil {
		return Reason{Code: Lost, Lost: *p.lost}
	}
	return p.Why
}

// reason returns why the path ends without a server.
func (p Path) reason() Reason {
	if p.lost != nil {
		return Reason{Code: ItIsLost, Lost: *p.lost}
	}
	return p.Why
}

// ExpectNow returns lines for a file of --expect that hold now.
func (r *Report) ExpectNow() []string {
	var out []string
	for _, who := range r.whos() {
		sure, open := map[string]bool{}, map[string]bool{}
		var names []string
		for _, x := range r.reachedBy(who.class, who.network) {
			name := fmt.Sprintf("%d/%s", x.port, x.proto)
			switch {
			case who.class == machines && x.own || x.path.single || !x.path.mayAnswer():
				continue
			case x.path.certain():
				sure[name] = true
			default:
				open[name] = true
			}
			names = once(names, name)
		}
		list := func(of, not map[string]bool) []string {
			return FoldNames(sortedPorts(slices.DeleteFunc(slices.Clone(names), func(n string) bool {
				return !of[n] || not[n]
			})))
		}
		certain, doubtful := list(sure, nil), list(open, sure)
		verb := " reach "
		if who.class == here {
			verb = " reaches "
		}
		switch {
		case who.class == machines && len(doubtful) == 0 && len(certain) == 0:
			out = append(out, who.text+verb+"no port")
		case who.class == machines && len(doubtful) == 0:
			out = append(out, who.text+verb+"only "+strings.Join(certain, " "))
		case len(certain) > 0:
			out = append(out, who.text+verb+strings.Join(certain, " "))
		}
		if len(doubtful) > 0 {
			out = append(out, "# not certain: "+who.text+verb+strings.Join(doubtful, " "))
		}
	}
	return out
}

type who struct{ class, network, text string }

// whos lists the kinds of clients, and the networks of containers.
func (r *Report) whos() []who {
	out := []who{{machines, "", machines}}
	if r.Client != "" {
		out[0].text = r.Client
	}
	var networks []string
	for _, x := range r.reachedBy(containers, "") {
		if n, ok := strings.CutPrefix(x.path.From, "a container on "); ok {
			networks = once(networks, n)
		}
	}
	slices.Sort(networks)
	for _, n := range networks {
		out = append(out, who{containers, n, containers + " on " + n})
	}
	return append(out, who{here, "", here})
}

// sortedPorts sorts texts such as "443/tcp" by protocol and port.
func sortedPorts(names []string) []string {
	slices.SortFunc(names, func(a, b string) int {
		x, errX := parsePorts(a)
		y, errY := parsePorts(b)
		if errX != nil || errY != nil || x.proto != y.proto {
			return strings.Compare(x.proto, y.proto)
		}
		return int(x.low) - int(y.low)
	})
	return names
}
