package ports

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Expectation is a line of a file of --expect, and whether it holds.
type Expectation struct {
	Line    string `json:"line"`
	Holds   Holds  `json:"holds"`
	Because string `json:"because,omitempty"` // why it does not hold, or is not certain

	who     string // a class of clients
	network string // of containers; "": any
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

// portRange is consecutive ports of a protocol.
type portRange struct {
	low, high uint16
	proto     string
}

func (p portRange) has(port uint16, proto string) bool {
	return p.proto == proto && p.low <= port && port <= p.high
}

const (
	maxExpectations = 10000
	maxLine         = 4096

	byteOrderMark = "\ufeff" // with which editors on Windows begin a file
)

var comment = regexp.MustCompile(`(^|\s)#.*`)

// ParseExpectations reads the lines of a file of --expect: "WHO reach [only] PORT…", "WHO do not
// reach PORT…", "WHO reach no port" and "nobody outside reaches PORT…". It skips empty lines and
// comments, which begin with "#" after a space or at the beginning of a line. client is the address
// of --client, which may be a WHO.
func ParseExpectations(r io.Reader, client netip.Addr) ([]Expectation, error) {
	var out []Expectation
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, maxLine), maxLine)
	number := 1
	for ; in.Scan(); number++ {
		text := in.Text()
		if number == 1 {
			text = strings.TrimPrefix(text, byteOrderMark)
		}
		if !utf8.ValidString(text) {
			return nil, fmt.Errorf("line %d is not UTF-8 text", number)
		}
		words := strings.Fields(comment.ReplaceAllString(text, ""))
		if len(words) == 0 {
			continue
		}
		e, err := parseExpectation(words, client)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if out = append(out, e); len(out) > maxExpectations {
			return nil, fmt.Errorf("more than %d lines", maxExpectations)
		}
	}
	switch err := in.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("line %d is longer than %d bytes", number, maxLine)
	case err != nil:
		return nil, fmt.Errorf("read expectations: %w", err)
	case len(out) == 0:
		return nil, errors.New("there is no line that could be checked")
	}
	return out, nil
}

func parseExpectation(words []string, client netip.Addr) (e Expectation, err error) {
	e.Line = strings.Join(words, " ")
	verb := len(words) - 1 // the last one, because a network may have such a name
	for ; verb >= 0 && words[verb] != "reach" && words[verb] != "reaches"; verb-- {
	}
	if verb < 0 {
		return e, fmt.Errorf("%q has no \"reach\"", e.Line)
	}
	who, rest := words[:verb], words[verb+1:]
	if n := len(who); n > 2 && (who[n-2] == "do" || who[n-2] == "does") && who[n-1] == "not" {
		e.not, who = true, who[:n-2]
	}
	if e.who, e.network, err = parseWho(who, client); err != nil {
		return e, err
	}
	if strings.Join(who, " ") == "nobody outside" {
		e.not = true
	}
	switch {
	case strings.Join(rest, " ") == "no port" && !e.not:
		e.only = true
		return e, nil
	case len(rest) > 0 && rest[0] == "only" && !e.not:
		e.only, rest = true, rest[1:]
	}
	if len(rest) == 0 {
		return e, fmt.Errorf("%q names no port", e.Line)
	}
	for _, w := range rest {
		p, err := parsePorts(strings.TrimSuffix(w, ","))
		if err != nil {
			return e, err
		}
		e.ports = append(e.ports, p)
	}
	return e, nil
}

func parseWho(words []string, client netip.Addr) (who, network string, err error) {
	text := strings.Join(words, " ")
	switch {
	case text == machines, text == "nobody outside", client.IsValid() && text == client.String():
		return machines, "", nil
	case text == containers, text == here:
		return text, "", nil
	case len(words) > 2 && words[0] == containers && words[1] == "on":
		return containers, strings.Join(words[2:], " "), nil
	}
	if a, err := netip.ParseAddr(text); err == nil {
		return "", "", fmt.Errorf("%s is judged only with --client %s", a, a)
	}
	return "", "", fmt.Errorf("%q is not one of: other machines, containers, containers on NETWORK, "+
		"this machine, nobody outside, the address of --client", text)
}

func parsePorts(text string) (p portRange, err error) {
	number, proto, ok := strings.Cut(text, "/")
	low, high, ranged := strings.Cut(number, "-")
	if !ranged {
		high = low
	}
	a, errA := strconv.ParseUint(low, 10, 16)
	b, errB := strconv.ParseUint(high, 10, 16)
	if !ok || proto != "tcp" && proto != "udp" || errA != nil || errB != nil || a == 0 || a > b {
		return p, fmt.Errorf("%q is not a port such as 443/tcp or 8000-8010/udp", text)
	}
	return portRange{uint16(a), uint16(b), proto}, nil
}

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
			(network == "" || strings.Join(strings.Fields(p.From), " ") == "a container on "+network)
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
		r.Expected = append(r.Expected, e)
	}
}

func (e *Expectation) judge(r *Report) {
	paths := r.reachedBy(e.who, e.network)
	e.Holds, e.Because = Yes, ""
	fall := func(to Holds, because string) {
		if e.Holds == Yes || e.Holds == Maybe && to == No {
			e.Holds, e.Because = to, because
		}
	}
	switch {
	case e.network == "" || len(paths) > 0:
	case r.guessed:
		fall(Maybe, "whether a container is on "+e.network+" is not known: "+notCopied)
		return
	default:
		fall(No, "no container is on "+e.network)
		return
	}
	if e.only { // first, because a port too many is worse than one too few
		e.judgeOthers(paths, fall)
	}
	slices.SortStableFunc(paths, func(a, b reached) int { return int(a.port) - int(b.port) })
	for _, p := range e.ports {
		e.judgePorts(p, paths, r.guessed, fall)
	}
	if r.guessed && (e.not || e.only) {
		fall(Maybe, "whether rules redirect other connections is not known: "+notCopied)
	}
}

const notCopied = "connections were not tried in a copy of the machine"

// judgeOthers judges that no other ports are reached.
func (e *Expectation) judgeOthers(paths []reached, fall func(Holds, string)) {
	for _, x := range paths { // a neighbour with a route may reach containers' own addresses
		switch {
		case x.own || !x.path.Answers() || e.Holds == Maybe && !x.path.certain():
		case slices.ContainsFunc(e.ports, func(p portRange) bool { return p.has(x.port, x.proto) }):
		case x.path.certain():
			fall(No, x.path.who()+" reaches "+x.path.Dial+"/"+x.proto)
			return
		default:
			fall(Maybe, x.path.who()+" may reach "+x.path.Dial+"/"+x.proto)
		}
	}
}

// judgePorts judges what is expected of consecutive ports. paths are sorted by port.
func (e *Expectation) judgePorts(p portRange, paths []reached, guessed bool,
	fall func(Holds, string)) {
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
			if x.proto == p.proto {
				at = append(at, x)
			}
		}
		switch {
		case len(at) > 0:
			e.judgePort(at, guessed, fall)
		case e.not && len(paths) == 0:
			return
		case !e.not && guessed:
			fall(Maybe, fmt.Sprintf("whether rules serve %d/%s is not known: %s", n, p.proto, notCopied))
		case !e.not:
			fall(No, fmt.Sprintf("nothing serves %d/%s", n, p.proto))
		}
	}
}

// judgePort judges what is expected of a port.
func (e *Expectation) judgePort(at []reached, guessed bool, fall func(Holds, string)) {
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
		fall(No, yes.who()+" reaches "+yes.Dial)
	case yes != nil, e.not && maybe == nil:
	case maybe != nil:
		fall(Maybe, strings.Join(append([]string{"whether " + maybe.who() + " reaches " + maybe.Dial +
			" is not known"}, maybe.Doubt...), ": "))
	case last != nil && guessed:
		fall(Maybe, "whether rules serve "+last.Dial+" is not known: "+notCopied)
	case last != nil:
		fall(No, last.who()+" gets no answer at "+last.Dial+": "+last.reason())
	}
}

// reason returns why the path ends without a server.
func (p Path) reason() string {
	if p.lost != "" {
		return "it is " + p.lost
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
			case who.class == machines && x.own || !x.path.Answers():
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
