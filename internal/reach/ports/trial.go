package ports

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// Reasons why commands are not tried.
const (
	untriedList = "toll ports PORT tries it"
	untriedCopy = "toll did not try it in this report"
)

// trialOf returns the trial of a connection's candidates. It returns nil if there are none.
func (c *Copy) trialOf(q asked, candidates []Command) *Trial {
	switch {
	case q.trial != nil:
		return q.trial
	case q.besides != nil:
		return q.besides
	case len(candidates) == 0:
		return nil
	case c.Untried != "":
		return &Trial{Commands: candidates[:1], Untried: c.Untried}
	case c.port == 0:
		return &Trial{Commands: candidates[:1], Untried: untriedList}
	}
	return &Trial{Commands: candidates[:1], Untried: untriedCopy}
}

// lostAt is the place where packets of a connection are lost.
type lostAt struct {
	space        int
	reply        bool
	table, chain string
	number       int
	why          replica.Why
	device       string
}

// lostAt returns the place in the unchanged machine: the rules that commands inserted do not count.
func (q *asked) lostAt() lostAt {
	l := q.answer.Lost
	if l == nil {
		return lostAt{}
	}
	at := lostAt{space: l.Space, reply: l.Reply, why: l.Why}
	if l.Rule == nil {
		at.device = l.Device
		return at
	}
	at.table, at.chain, at.number = l.Rule.Table, l.Rule.Chain, q.numberBefore()
	return at
}

// numberBefore returns the number that the rule had before the commands of q.done.
func (q *asked) numberBefore() int {
	l, n := q.answer.Lost, q.answer.Lost.Rule.Number
	for _, d := range q.done {
		if n > 1 && d.inserts == (chainAt{l.Space, l.Rule.Table, l.Rule.Chain}) {
			n--
		}
	}
	return n
}

// Losing returns the indexes of the connections whose packets are lost and for which commands are
// known that may admit them, or only those that are listed as traps. Those of the most distant
// clients come first.
func (c *Copy) Losing(traps bool) []int {
	if traps && !slices.ContainsFunc(c.asked, asked.fromLoopback) {
		return nil
	}
	rows := c.f.rows()
	at, led := byService(rows), map[int]bool{}
	rowAt := map[int]int{} // of connections
	var out []int
	for i, q := range c.asked {
		p, ok := c.path(q)
		if !ok || q.bridge != "" {
			continue
		}
		if q.server == nil {
			r := rowOf(rows, at[portOfService(q.service)], q, p)
			rowAt[i], led[r] = r, led[r] || p.led()
		}
		if !p.Answers() && len(p.candidates) > 0 && p.nobody == "" && (!traps || p.localnet != "" &&
			p.Client == Loopback) {
			out = append(out, i)
		}
	}
	out = slices.DeleteFunc(out, func(i int) bool {
		r, ok := rowAt[i]
		return ok && (r < 0 || rows[r].found && !led[r]) // nothing listens there
	})
	order := []Client{Remote, Neighbour, OwnAddr, Loopback, Loopback6, Foreign, Itself}
	slices.SortStableFunc(out, func(a, b int) int {
		own := func(i int) int {
			if c.asked[i].server != nil {
				return 1
			}
			return 0
		}
		rank := func(i int) int { return slices.Index(order, c.asked[i].kind) }
		return cmp.Or(own(a)-own(b), rank(a)-rank(b))
	})
	return out
}

// fromLoopback reports whether a connection from 127.0.0.1 is lost.
func (q asked) fromLoopback() bool {
	l := q.answer.Lost
	return q.kind == Loopback && l != nil && l.Why == replica.Localnet
}

// Settled reports whether a trial of the connection's cause, or one that admits its client, has
// been recorded.
func (c *Copy) Settled(i int) bool { return c.asked[i].trial != nil }

// Unsettled returns the first n of the connections that are not settled, each with another cause.
func (c *Copy) Unsettled(which []int, n int) (out []int) {
	seen := map[string]bool{}
	for _, i := range which {
		if len(out) == n {
			break
		}
		if c.Settled(i) || seen[c.causeOf(i)] {
			continue
		}
		seen[c.causeOf(i)] = true
		out = append(out, i)
	}
	return out
}

// Candidates returns the commands that may admit the client of a connection, in the order in which
// to try them.
func (c *Copy) Candidates(i int) []Command {
	p, _ := c.path(c.asked[i])
	return p.candidates
}

// Further returns the next candidates if packets of a connection get past the places in which they
// were lost before. answer is what the connection gets, with Explain, in a copy changed by done.
func (c *Copy) Further(i int, done []Command, answer replica.Answer, places []any) (next []Command,
	place any) {
	q := c.asked[i]
	q.answer, q.done = answer, done
	at := q.lostAt()
	if answer.Lost == nil || slices.Contains(places, any(at)) {
		return nil, at
	}
	p, _ := c.path(q)
	return p.candidates, at
}

// Place returns the place in which the connection's packets are lost on the unchanged machine, for
// Further.
func (c *Copy) Place(i int) any { return c.asked[i].lostAt() }

// Through reports whether every attempt of a connection with the answer got to a server.
func (c *Copy) Through(i int, answer replica.Answer) bool {
	q := c.asked[i]
	q.answer, q.trial = answer, nil
	p, ok := c.path(q)
	return ok && p.Answers() && !slices.ContainsFunc(answer.Outcomes, func(o replica.Outcome) bool {
		return o.Got != replica.Connected
	})
}

// Further addresses of machines behind a router, which must be admitted with the first one.
var (
	witnesses  = []netip.Addr{netip.MustParseAddr("203.0.113.77"), netip.MustParseAddr("9.200.3.4")}
	witnesses6 = []netip.Addr{netip.MustParseAddr("2001:db8:ffff::77"),
		netip.MustParseAddr("2620:fe::9")}
)

// DialsOf returns the connection and, if its client's address stands for any, the same connection
// from other addresses.
func (c *Copy) DialsOf(i int) []replica.Dial {
	out := c.dials([]int{i}, false)
	d := out[0]
	others := witnesses
	if d.To.Addr().Is6() {
		others = witnesses6
	}
	if d.Card == "" || c.f.Client.IsValid() || d.Source != anybody && d.Source != anybody6 {
		return out
	}
	for _, d.Source = range others {
		out = append(out, d)
	}
	return out
}

// AllDials returns all connections of Dials and Themselves.
func (c *Copy) AllDials() []replica.Dial { return c.dials(c.all(), false) }

// Rejected records that none of n commands admits the client of a connection.
func (c *Copy) Rejected(i, n int) { c.settle(i, &Trial{Commands: []Command{}, Rejected: n}) }

// Unfinished records that commands, which come after n that do not admit the client of a
// connection, were not tried, and why.
func (c *Copy) Unfinished(i, n int, commands []Command, why string) {
	c.settle(i, &Trial{Commands: commands, Untried: why, Rejected: n})
}

// settle records a trial for all connections of the same cause, or for each what admits it together
// with others.
func (c *Copy) settle(i int, t *Trial) {
	same := c.causeOf(i)
	for j := range c.asked {
		if q := &c.asked[j]; q.trial == nil && c.causeOf(j) == same {
			q.trial = cmp.Or(q.besides, t)
		}
	}
}

// causeOf identifies connections whose packets are lost in the same place, and that may be admitted
// by the same commands.
func (c *Copy) causeOf(i int) string {
	q := c.asked[i]
	if q.answer.Lost == nil {
		return fmt.Sprint(i)
	}
	p, _ := c.path(q)
	return fmt.Sprintf("%+v %+v", q.lostAt(), p.candidates)
}

// Effect has the indexes of connections that get through only after commands, and of those that no
// longer do.
type Effect struct {
	Of           *Copy
	Gained, Lost []int
}

// Effect compares the answers to AllDials in a changed copy with those in the unchanged one.
func (c *Copy) Effect(answers []replica.Answer) Effect {
	e := Effect{Of: c}
	for j := range min(len(answers), len(c.asked)) {
		switch before, now := c.Through(j, c.asked[j].answer), c.Through(j, answers[j]); {
		case now && !before:
			e.Gained = append(e.Gained, j)
		case before && !now:
			e.Lost = append(e.Lost, j)
		}
	}
	return e
}

// Unexplained returns those of the connections for whose loss no cause is known.
func (c *Copy) Unexplained(which []int) []int {
	return slices.DeleteFunc(slices.Clone(which), func(j int) bool {
		return c.asked[j].answer.Lost.Caused()
	})
}

// Again returns the connections with the given indexes, to be made once more.
func (c *Copy) Again(which []int) []replica.Dial { return c.dials(which, false) }

// LostAgain returns those of the indexes whose connections, by the answers to Again, did not get
// through.
func (c *Copy) LostAgain(which []int, answers []replica.Answer) (out []int) {
	for k, j := range which[:min(len(which), len(answers))] {
		if !c.Through(j, answers[k]) {
			out = append(out, j)
		}
	}
	return out
}

// maxOthers is the most connections to other ports that are compared.
const maxOthers = 1000

// Others returns a plan of connections to the ports that c's report is not about, or nil if there
// are too many. Call its AllDials, then Take.
func (c *Copy) Others() *Copy {
	all := &Copy{Machine: c.Machine, Sockets: c.Sockets, f: c.f, stands: c.stands, others: c,
		singled: c.singled}
	n := len(all.Dials())
	all.asked = slices.DeleteFunc(all.asked, func(q asked) bool { return q.bridge != "" })
	if n == 0 || n > maxOthers {
		return nil
	}
	return all
}

// Admitted records that commands admit the client of a connection, after n others were rejected.
// effects are their effects on c's connections and on others.
func (c *Copy) Admitted(i int, commands []Command, n int, effects ...Effect) {
	var gained []int
	var opens, closes []string
	for _, e := range effects {
		if closes = append(closes, e.Of.named(e.Lost)...); e.Of == c {
			gained = e.Gained
		} else {
			opens = append(opens, e.Of.named(e.Gained)...)
		}
	}
	if !slices.Contains(gained, i) {
		gained = append(gained, i)
	}
	causes := map[int]Reason{}
	for _, j := range gained {
		p, _ := c.path(c.asked[j])
		causes[j] = p.cause()
	}
	same, groups := c.causeOf(i), map[Reason]*Trial{}
	own := func(j int) bool { // whether the command is one for the connection's own cause
		return len(commands) == 1 && slices.ContainsFunc(c.Candidates(j), func(x Command) bool {
			return x.Text == commands[0].Text
		})
	}
	for _, j := range gained {
		q, why := &c.asked[j], causes[j]
		if groups[why] == nil {
			others := slices.DeleteFunc(slices.Clone(gained), func(k int) bool {
				return causes[k] == why
			})
			groups[why] = &Trial{Commands: commands, Rejected: n,
				Opens: append(c.named(others), opens...), Closes: closes}
		}
		switch {
		case q.trial == nil && (c.causeOf(j) == same || own(j)),
			q.trial != nil && (q.trial.Untried != "" || len(q.trial.Commands) == 0 ||
				len(q.trial.Commands) > len(commands)):
			q.trial = groups[why]
		case q.besides == nil: // fewer or other commands may do
			q.besides = groups[why]
		}
	}
}

// named returns texts such as "3001/tcp to a container on podman0" for connections.
func (c *Copy) named(which []int) (out []string) {
	names := map[string][]string{}
	places := map[string]map[string][]string{} // by name and class
	for _, i := range which {
		q := c.asked[i]
		p := Path{Client: q.kind, From: q.from}
		name := fmt.Sprintf("%d/%s", q.at.Port(), q.proto)
		if q.server != nil {
			name += " at " + q.at.Addr().String()
		}
		if places[name] == nil {
			out, places[name] = append(out, name), map[string][]string{}
		}
		class := p.Client.class()
		names[name] = once(names[name], class)
		places[name][class] = once(places[name][class], p.place())
	}
	for i, name := range out {
		var who []string
		for _, class := range names[name] {
			if all := places[name][class]; len(all) == 1 {
				class = all[0]
			}
			who = append(who, class)
		}
		out[i] = name + " to " + few(who)
	}
	return out
}
