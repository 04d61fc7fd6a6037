package ports

import (
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// TrapTrial has commands that end a trap, and the connections that show whether they do.
type TrapTrial struct {
	Commands []Command
	Dials    []replica.Dial // with Explain

	which []int            // of Copy.asked
	ended func(asked) bool // with the answer after the commands
}

// TrapTrials returns what is to be tried about the report's traps.
func (c *Copy) TrapTrials() (out []TrapTrial) {
	if !slices.ContainsFunc(c.asked, asked.mayBeTrap) {
		return nil
	}
	for _, t := range Judge(c.f, c.port).Traps {
		for _, x := range t.trials {
			if len(x.Commands) > 0 {
				x.Dials = c.dials(x.which, true)
				out = append(out, x)
			}
		}
	}
	return out
}

// mayBeTrap reports whether TrapTrials may return a trial for the connection's sake. Judging all
// takes longer.
func (q asked) mayBeTrap() bool {
	answered := len(q.answer.Outcomes) > 0 && q.answer.Outcomes[0].Got == replica.Connected
	return q.bridge != "" && !answered || q.server != nil && q.kind == Remote && answered &&
		slices.ContainsFunc(q.server.Published, func(p Published) bool {
			return p.Proto == q.proto && p.Port == q.at.Port() && p.Host.Addr().IsLoopback()
		})
}

// TrapTried records whether commands end a trap. answers are those to the connections after the
// commands; nil: a command failed. Then, why is the reason or, if it ended in vain, "".
func (c *Copy) TrapTried(x TrapTrial, answers []replica.Answer, why string) {
	ended := len(answers) == len(x.which)
	for k, i := range x.which {
		if !ended {
			break
		}
		q := c.asked[i]
		q.answer = answers[k]
		ended = x.ended(q)
	}
	if c.trapsTried == nil {
		c.trapsTried = map[string]Trial{}
	}
	t := Trial{Commands: x.Commands, Untried: why}
	if why == "" && !ended {
		t = Trial{Rejected: 1}
	}
	c.trapsTried[lines(x.Commands)] = t
}

func lines(all []Command) string {
	t := Trial{Commands: all}
	return t.line()
}

// told returns commands that end a trap, with the words for whether that was tried. It returns ""
// if they were tried and do not help.
func (c *Copy) told(commands []Command) string {
	t := Trial{Commands: commands, Untried: untriedCopy}
	if c == nil {
		return t.text()
	}
	if c.Untried != "" {
		t.Untried = c.Untried
	}
	if tried, ok := c.trapsTried[lines(commands)]; ok {
		t = tried
	}
	return t.text()
}

// inVain returns the words for commands of which told says nothing, or "" if there are none.
func inVain(commands []Command, what string) string {
	if len(commands) == 0 {
		return ""
	}
	return "; " + what + ", tried in a copy, does not help"
}

// withoutDaemons is why commands of a daemon's client, or that load modules, cannot be tried.
const withoutDaemons = "no daemon runs and no module is loaded in a copy"

// untriable returns a command line with the reason why no copy shows what it does.
func untriable(command, why string) string { return command + " (not tried: " + why + ")" }

// pathIs returns a condition for TrapTrial.ended on the path of the connection.
func (c *Copy) pathIs(want func(Path) bool) func(asked) bool {
	return func(q asked) bool {
		p, ok := c.path(q)
		return ok && want(p)
	}
}

// unlost reports whether no rule of this machine drops the packets of a path.
func unlost(p Path) bool { return p.Block == nil || p.Block.Where != here || p.Block.Chain == "" }

// joined joins the parts of a text that are not "".
func joined(sep string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), sep)
}
