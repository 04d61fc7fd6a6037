package ports

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// Tried has the commands of --try, which ran in a copy of the machine. The rest of the report is
// about the machine as the commands left it there.
type Tried struct {
	Commands string `json:"commands"`
	Code     int    `json:"code"` // the exit code; 124: they did not end in time
	Output   string `json:"output,omitempty" printable:"text"`
	Cut      bool   `json:"cut,omitempty"` // there was more output
	TimedOut bool   `json:"timed_out,omitempty"`
	// NotFound lists the programs that the shell did not find.
	NotFound []string `json:"not_found,omitempty"`
	// Daemons lists the programs among the commands that ask a daemon, which no copy has.
	Daemons []string `json:"daemons,omitempty"`
	// Hindered lists lines of the output about what may have failed only because it ran in a copy.
	Hindered []string `json:"hindered,omitempty"`
	// Modules lists the modules that the kernel loaded on the machine itself meanwhile.
	Modules []string `json:"modules,omitempty"`
	// Still lists the ports that other machines reach before and after. Those that are not Sure may be
	// reached.
	Still []Exposed `json:"still"`

	others string   // words for other machines
	kept   []Change // who reaches which port before and after
	one    bool     // the report is about one port
	unsure bool     // a connection may be answered before and after
	// redirected lists names of ports in Still that rules redirect to containers.
	redirected []Exposed
	dockerUser bool // there is Docker's chain for the user's rules
}

// NewTried returns the result of commands. after has the machine's rules after them. hidden reports
// whether this machine has a file, and a copy has not.
func NewTried(commands string, out replica.Output, after []replica.RuleText,
	hidden func(name string) bool) *Tried {
	t := &Tried{Commands: commands, Code: out.Code, Output: printable.Text(out.Text), Cut: out.Cut,
		TimedOut: out.TimedOut, Modules: out.Modules}
	for _, m := range notFound.FindAllStringSubmatch(out.Text, -1) {
		t.NotFound = once(t.NotFound, printable.Words(m[1]))
	}
	t.Daemons, t.Hindered = askDaemons(commands), hinderedBy(t.Output, hidden)
	t.dockerUser = slices.ContainsFunc(after, inDockerUser)
	return t
}

// notFound matches what shells print about a program that they do not find.
var notFound = regexp.MustCompile(`(?m)^\S+: (?:.*: )?(\S+): (?:command )?not found$`)

// After returns the facts with the devices and addresses of now, the copy of old after commands.
func (f *Facts) After(old, now *replica.Machine) *Facts {
	out := *f
	out.Copy, out.Changed, out.Missing = nil, true, slices.Clone(f.Missing)
	out.index = nil
	out.Containers = slices.Clone(f.Containers)
	for i := range now.Spaces {
		was, is := &old.Spaces[i], &now.Spaces[i]
		if i == 0 {
			out.Devices = devicesAfter(f.Devices, was, is, now)
			out.Switches.Forward4 = isOn(is, "net/ipv4/ip_forward", f.Switches.Forward4)
			out.Switches.BridgeNF = isOn(is, "net/bridge/bridge-nf-call-iptables", f.Switches.BridgeNF)
			continue
		}
		for j := range out.Containers {
			x := &out.Containers[j]
			if x.Space != is.ID || x.Host || x.Shares != "" || x.PID == 0 {
				continue
			}
			x.Devices = devicesAfter(x.Devices, was, is, now)
			if before, after := addressesOf(was), addressesOf(is); !slices.Equal(before, after) {
				x.Addrs = keep(x.Addrs, after)
				x.Networks = nil // the names of those where it was
			}
		}
	}
	for i := range out.Containers {
		x, was := &out.Containers[i], f.Containers[i]
		bridge := f.bridgeOf(was)
		if x.Cut = nil; x.PID != 0 && bridge != "" && f.linked(was) != out.linked(*x) {
			x.Cut = &Cut{bridge, f.network(f.device(bridge)),
				map[bool]bool{false: was.has(false), true: was.has(true)}}
		}
	}
	return &out
}

// linked returns a text that tells how a container is linked to others.
func (f *Facts) linked(x Container) string {
	var b strings.Builder
	for _, d := range x.Devices {
		if d.Kind == "loopback" {
			continue
		}
		peer, _ := f.peerOf(d)
		fmt.Fprintln(&b, d.Name, d.Up, d.Addrs, peer.Name, peer.Up, peer.Master)
	}
	return b.String()
}

func isOn(s *replica.Space, key string, otherwise bool) bool {
	value, ok := s.Sysctls[key]
	if !ok {
		return otherwise
	}
	return value != "0"
}

// addressesOf returns a namespace's addresses, without those that nobody else can reach.
func addressesOf(s *replica.Space) (out []netip.Addr) {
	for _, l := range s.Links {
		for _, p := range s.Prefixes(l.Index) {
			if a := p.Addr(); !a.IsLoopback() && !a.IsLinkLocalUnicast() {
				out = append(out, a)
			}
		}
	}
	return out
}

// keep returns the elements of now, those of old first and in its order.
func keep[T comparable](old, now []T) []T {
	out := slices.DeleteFunc(slices.Clone(old), func(x T) bool { return !slices.Contains(now, x) })
	for _, x := range now {
		out = once(out, x)
	}
	return out
}

// devicesAfter returns a namespace's devices after commands. is is a namespace of now, and was the
// same one before.
func devicesAfter(old []Device, was, is *replica.Space, now *replica.Machine) (out []Device) {
	names, indexes := map[int]string{}, map[string]int{}
	for _, l := range is.Links {
		names[l.Index] = l.Name
	}
	for _, l := range was.Links {
		indexes[l.Name] = l.Index
	}
	wasUplink, isUplink := uplinks(was), uplinks(is)
	for _, l := range is.Links {
		i := slices.IndexFunc(old, func(d Device) bool { return d.Name == l.Name })
		d := Device{Name: l.Name, Index: l.Index, Kind: l.Kind}
		switch {
		case i >= 0:
			d = old[i]
		case indexes[l.Name] != 0: // the report does not list it
			continue
		case l.Pair():
			d.Peer = l.Parent
			if l.ParentSpace >= 0 && l.ParentSpace < len(now.Spaces) {
				d.PeerSpace = now.Spaces[l.ParentSpace].ID
			}
		}
		d.Master, d.Up, d.MTU = names[l.Master], l.Up, l.MTU
		d.Addrs = keep(d.Addrs, is.Prefixes(l.Index))
		for k, uplink := range map[route]*bool{{six: false, main: true}: &d.Uplink,
			{six: true, main: true}: &d.Uplink6, {six: false}: &d.Router, {six: true}: &d.Router6} {
			k.device = l.Name
			if wasUplink[k] != isUplink[k] {
				*uplink = isUplink[k]
			}
		}
		out = append(out, d)
	}
	return out
}

type route struct {
	device string
	six    bool
	main   bool // of table main
}

// uplinks returns the devices of routes to the internet.
func uplinks(s *replica.Space) map[route]bool {
	names := map[int]string{}
	for _, l := range s.Links {
		names[l.Index] = l.Name
	}
	out := map[route]bool{}
	for _, u := range s.Uplinks() {
		if u.Main { // of either family
			out[route{names[u.Index], false, true}] = true
		}
		out[route{names[u.Index], u.Six, u.Main}] = true
		out[route{names[u.Index], u.Six, false}] = true
	}
	return out
}

// Try compares the report with the one before the commands.
func (r *Report) Try(before *Report, t *Tried) {
	r.Since(before, "")
	r.Tried = t
	t.Still = []Exposed{}
	t.others, t.one = cmp.Or(r.Client, machines), r.Port != 0
	_, was := before.outcomes(nil)
	order, is := r.outcomes(nil)
	complete(was, is)
	had, has := reachedAt(was), reachedAt(is)
	for _, k := range order {
		a, b := k.of(was), k.of(is)
		if !a.path.mayAnswer() || !b.path.mayAnswer() {
			continue
		}
		sure := len(a.path.Doubt)+len(b.path.Doubt) == 0
		if b.path.Client.class() == machines && !b.path.own {
			x := Exposed{Port: k.port, Proto: k.proto, Server: b.server, Reach: machines, Sure: sure}
			t.keeps(x, b.path.Dial)
			if b.path.Kind == ByNAT && !slices.ContainsFunc(t.redirected, x.same) {
				t.redirected = append(t.redirected, x)
			}
		}
		if t.unsure = t.unsure || !sure; !sure {
			continue
		}
		if b.path.Client.class() != machines || !b.path.own {
			partly := has[k.at(b.server)] < had[k.at(a.server)]
			t.kept = addChange(t.kept, k, b, partly, Reason{})
		}
	}
	join(t.kept, order)
}

// mayAnswer reports whether the path leads to an answer, or is not known not to.
func (p Path) mayAnswer() bool { return p.Answers() || p.Kind != "" && len(p.Doubt) > 0 }

func (x Exposed) same(y Exposed) bool {
	return y.Port == x.Port && y.Proto == x.Proto && y.Server == x.Server
}

// keeps adds a port that other machines reach before and after, at the dialled address.
func (t *Tried) keeps(x Exposed, dial string) {
	i := slices.IndexFunc(t.Still, x.same)
	if i < 0 {
		i, t.Still = len(t.Still), append(t.Still, x)
	}
	switch y := &t.Still[i]; {
	case x.Sure == y.Sure:
		y.Dial = once(y.Dial, dial)
	case x.Sure:
		y.Sure, y.Dial = true, []string{dial}
	}
}

// Text returns the sentences about what the commands would change. c compares with the report
// before them.
func (t *Tried) Text(c *Changes) (out []string) {
	switch {
	case t.TimedOut:
		out = append(out, "The commands did not end in time, and were stopped. What follows is what "+
			"they changed until then.")
	case t.Code != 0:
		out = append(out, fmt.Sprintf("The commands failed with exit code %d. What follows is what they "+
			"changed nevertheless.", t.Code))
	}
	if len(t.NotFound) > 0 {
		out = append(out, "Programs that were not found: "+strings.Join(t.NotFound, ", ")+
			". What they would change is not known.")
	}
	if len(t.Daemons) > 0 {
		out = append(out, "Programs that need a daemon, which a copy does not have: "+
			strings.Join(t.Daemons, ", ")+". What they would change is not known: try the rules that "+
			"the daemon writes.")
	}
	if n := len(t.Hindered); n > 0 {
		more := ""
		if n > 1 {
			more = fmt.Sprintf(" (and %d more)", n-1)
		}
		out = append(out, "A command may have failed only because it ran in a copy: "+
			cut(t.Hindered[0])+more+". What it would change is not known.")
	}
	if t.byOwner() {
		out = append(out, "A copy has no user but root, and there iptables and ip take no rule by "+
			"another one (-m owner, uidrange), although they would on this machine. Rules of nft "+
			"(meta skuid) can be tried.")
	}
	lost := conditional("lose", c.Lost, "")
	gained := conditional("gain", c.Gained, "before, ")
	switch {
	case len(lost)+len(gained) == 0:
		out = append(out, "Nobody would gain or lose a port"+c.forCertain())
	case len(lost) == 0:
		out = append(append(out, gained...), "Nobody would lose a port.")
	case len(gained) == 0:
		out = append(append(out, lost...), "Nobody would gain a port.")
	default:
		out = append(append(out, lost...), gained...)
	}
	out = append(append(out, c.otherwise()...), t.rest(c))
	if len(t.redirected) > 0 && t.onlyInput() {
		text := "INPUT does not filter what rules redirect to containers, such as " +
			few(exposedNames(t.redirected)) + ": FORWARD does"
		if t.dockerUser {
			text += ", and there Docker's chain DOCKER-USER"
		}
		out = append(out, text+".")
	}
	if len(t.Modules) > 0 {
		out = append(out, "The kernel of this machine loaded modules meanwhile, perhaps for the "+
			"commands: "+strings.Join(t.Modules, ", ")+".")
	}
	return out
}

// Words of commands that drop what would reach this machine's own sockets, or that change what it
// forwards. Commands that delete rules admit more instead.
var (
	deletes        = regexp.MustCompile(`(?i)[^;&|\n]*(\s-D|\s--delete|\bdelete)\s[^;&|\n]*`)
	filtersInput   = regexp.MustCompile(`(?i)\b(input|ufw)\b`)
	drops          = regexp.MustCompile(`(?i)\b(drop|deny|reject)\b`)
	filtersForward = regexp.MustCompile(`(?i)forward|docker-user|\bufw\s+route\b`)
)

// onlyInput reports whether the commands drop packets in INPUT, and leave alone what is forwarded.
func (t *Tried) onlyInput() bool {
	rest := deletes.ReplaceAllString(t.Commands, "")
	return filtersInput.MatchString(rest) && drops.MatchString(rest) &&
		!filtersForward.MatchString(t.Commands)
}

// byOwner reports whether a command may have failed only because a copy has no users but root.
func (t *Tried) byOwner() bool {
	return strings.Contains(t.Output, "Invalid argument") &&
		byUser.MatchString(t.Commands+"\n"+t.Output)
}

var byUser = regexp.MustCompile(`-owner|\buidrange\b`)

// mostLines is how many lines of the commands' output are shown, and mostRunes how much of each.
const mostLines, mostRunes = 20, 300

// Lines returns the last lines of the commands' output. Long ones are cut.
func (t *Tried) Lines() []string {
	all := strings.Split(strings.TrimSpace(t.Output), "\n")
	all = all[max(0, len(all)-mostLines):]
	for i, line := range all {
		all[i] = cut(line)
	}
	return all
}

func cut(line string) string {
	if r := []rune(line); len(r) > mostRunes {
		return string(r[:mostRunes]) + "…"
	}
	return line
}

// unknown returns why it is not known what all commands would change. The code is "" if it is.
func (t *Tried) unknown() Reason {
	switch {
	case len(t.Daemons) > 0:
		return Reason{Code: DaemonsAsked, Of: strings.Join(t.Daemons, ", ")}
	case len(t.Hindered) > 0:
		return Reason{Code: CommandHindered, Text: cut(t.Hindered[0])}
	case t.byOwner():
		return Reason{Code: CommandHindered, Text: "Invalid argument"}
	}
	return Reason{}
}

// Unknown reports whether it is not known what all commands would change.
func (t *Tried) Unknown() bool { return t.unknown().Code != "" }

// rest says what stays as it is: in the list for containers only if they would lose a port.
func (t *Tried) rest(c *Changes) string {
	var all []string
	kept := grouped(t.kept)
	slices.SortStableFunc(kept, func(a, b group) int { return a.rank() - b.rank() })
	switch {
	case t.one && len(kept) == 0 && t.unsure:
		all = append(all, "It is not known whether a client would reach it.")
	case t.one && len(kept) == 0:
		all = append(all, "No client would reach it.")
	case t.one:
	default:
		all = append(all, t.stillReached())
	}
	inside := slices.ContainsFunc(c.Lost, func(x Change) bool {
		return slices.ContainsFunc(x.Who, isContainer)
	})
	names := map[string][]string{}
	for _, g := range kept {
		names[g.who] = append(names[g.who], g.names())
	}
	for _, g := range kept {
		of, listed := names[g.who], t.one || inside && isContainer(g.who)
		if delete(names, g.who); len(of) == 0 || !listed {
			continue
		}
		last := len(of) - 1
		if last > 0 {
			of[last] = "and " + of[last]
		}
		all = append(all, fmt.Sprintf("%s would still reach %s.", printable.Capital(g.who),
			strings.Join(of, ", ")))
	}
	text := fmt.Sprintf("%d of %s would be as before", c.Same,
		units.Plural(c.Same+c.moved+c.Changed+c.Open, "connection"))
	return strings.Join(append(all, text+c.notCertain()+"."), " ")
}

// stillReached says which ports other machines reach before and after, or may reach.
func (t *Tried) stillReached() string {
	var sure, perhaps []Exposed
	for _, x := range t.Still {
		if x.Sure {
			sure = append(sure, x)
		} else {
			perhaps = append(perhaps, x)
		}
	}
	who := printable.Capital(t.others)
	switch {
	case len(t.Still) == 0:
		return who + " would keep no port."
	case len(perhaps) == 0:
		return who + " would still reach " + few(exposedNames(sure)) + "."
	case len(sure) == 0:
		return who + " may still reach " + few(exposedNames(perhaps)) + "."
	}
	return who + " would still reach " + few(exposedNames(sure)) + ", and may reach " +
		few(exposedNames(perhaps)) + "."
}

// conditional returns a sentence for each group of ports that the same clients would gain or lose
// for the same cause.
func conditional(verb string, all []Change, when string) (out []string) {
	groups := grouped(all)
	slices.SortStableFunc(groups, func(a, b group) int { return a.rank() - b.rank() })
	for _, g := range groups {
		text := fmt.Sprintf("%s would %s %s", printable.Capital(g.who), verb, g.names())
		if g.because != "" {
			text += ": " + when + g.because
		}
		out = append(out, text+".")
	}
	return out
}

// rank sorts other machines before containers, and these before this machine.
func (g group) rank() int {
	switch {
	case g.who == here:
		return 2
	case isContainer(g.who):
		return 1
	}
	return 0
}

// isContainer reports whether words for clients begin with containers.
func isContainer(who string) bool {
	return strings.HasPrefix(who, containers) || strings.HasPrefix(who, "a container ") ||
		strings.HasPrefix(who, "container ")
}
