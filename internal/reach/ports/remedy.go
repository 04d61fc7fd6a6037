package ports

import (
	"fmt"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// Command is a command line that may admit a client.
type Command struct {
	// Text is the command line for a root shell on the machine, as it is printed.
	Text string `json:"command"`
	// As is the command that was tried instead, such as the rule that a daemon would write; "": Text
	// was tried.
	As string `json:"tried_as,omitempty"`

	script string // what is run in the copy
	space  int    // in this namespace
	// inserts is the chain in which the command inserts a rule before others; zero: none.
	inserts chainAt
}

// chainAt is a chain of a namespace. The table is named as in replica.RuleText.
type chainAt struct {
	space        int
	table, chain string
}

// Script returns what to run in the copy.
func (c Command) Script() replica.Command {
	return replica.Command{Script: []byte(c.script), Space: c.space, Alone: true}
}

// Trial has the commands that admit a client, and the result of trying them in a copy of the
// machine.
type Trial struct {
	// Commands admit the client together. If they were not tried, these are the first ones that may.
	// Empty: none of those that were tried does.
	Commands []Command `json:"commands"`
	// Untried is the reason why Commands were not tried; "": they were.
	Untried string `json:"not_tried,omitempty"`
	// Rejected is the number of other commands that were tried and do not admit the client.
	Rejected int `json:"rejected,omitempty"`
	// Opens and Closes list the ports that other clients gain and lose, such as "3001/tcp to
	// containers on podman0". Only clients that toll ports tries are considered.
	Opens  []string `json:"opens,omitempty"`
	Closes []string `json:"closes,omitempty"`
}

// IsCommand reports whether a line of an answer is a command.
func IsCommand(line string) bool { return strings.HasPrefix(line, "sudo ") }

// how returns the words in brackets that say whether and how the commands were tried.
func (t *Trial) how() string {
	if t.Untried != "" {
		return "(not tried: " + t.Untried + ")"
	}
	var as []string
	for _, c := range t.Commands {
		if c.As != "" {
			as = append(as, c.As)
		}
	}
	if len(as) > 0 {
		return "(tried in a copy as " + strings.Join(as, "; ") + ")"
	}
	return "(tried in a copy)"
}

// text returns the commands in one line, or "" if there are none.
func (t *Trial) text() string {
	if len(t.Commands) == 0 {
		return ""
	}
	return t.line() + " " + t.how()
}

// line returns the commands in one line; t may be nil.
func (t *Trial) line() string {
	if t == nil {
		return ""
	}
	var all []string
	for _, c := range t.Commands {
		all = append(all, c.Text)
	}
	return strings.Join(all, "; ")
}

// sentences returns what an answer says about the commands for clients: each sentence and each
// command is a line of its own. sure is false if the copy may have lost the clients' packets, and the
// machine does not.
func (t *Trial) sentences(who string, sure bool) (out []string) {
	n := len(t.Commands)
	it, s := "They", ""
	if n == 1 {
		it, s = "It", "s"
	}
	switch {
	case n == 0 && t.Rejected == 1:
		return []string{"One command was tried in a copy, and does not admit " + who + "."}
	case n == 0:
		return []string{fmt.Sprintf("%s commands were tried in a copy, and none admits %s.",
			number(t.Rejected), who)}
	case t.Untried != "" || !sure && n == 1:
		out = []string{fmt.Sprintf("This may admit %s %s:", who, t.how())}
	case !sure:
		out = []string{fmt.Sprintf("%s commands together may admit %s %s:", number(n), who, t.how())}
	case n == 1:
		out = []string{fmt.Sprintf("This admits %s %s:", who, t.how())}
	default:
		out = []string{fmt.Sprintf("%s commands together admit %s %s:", number(n), who, t.how())}
	}
	for _, c := range t.Commands {
		out = append(out, c.Text)
	}
	if strings.Contains(t.line(), "sudo firewall-cmd ") {
		out = append(out, "firewalld forgets this when it is reloaded; entered again with --permanent, "+
			"it stays.")
	}
	for _, x := range []struct {
		verb string
		list []string
	}{{"open", t.Opens}, {"close", t.Closes}} {
		if len(x.list) > 0 {
			out = append(out, fmt.Sprintf("%s also %s%s %s, of the clients tried.", it, x.verb, s,
				few(x.list)))
		}
	}
	return out
}

// again returns a sentence about clients for whom the same commands were named before.
func (t *Trial) again(who string, sure bool) string {
	text := "The same command"
	if len(t.Commands) > 1 {
		text = "The same commands together"
	}
	switch {
	case t.Untried != "" || !sure:
		return text + " may admit " + who + "."
	case len(t.Commands) > 1:
		return text + " admit " + who + "."
	}
	return text + " admits " + who + "."
}

func number(n int) string {
	words := []string{"No", "One", "Two", "Three", "Four"}
	if n < len(words) {
		return words[n]
	}
	return fmt.Sprint(n)
}
