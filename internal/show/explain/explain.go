// Package explain explains words of the output. Modes, loads and metrics come from their
// catalogues, all others from words.txt.
package explain

import (
	_ "embed" // words.txt
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/heads"
	"github.com/bridgetoll/bridgetoll/internal/text/suggest"
)

type Entry struct {
	Group string
	Name  string
	Also  []string // other words for it, such as heads of columns
	Text  []string
}

const (
	Modes   = "Modes"
	Loads   = "Loads"
	Metrics = "Metrics"
)

//go:embed words.txt
var wordsText string

// All returns the entries, ordered by group.
func All() []Entry {
	out := parse(wordsText)
	for _, m := range mode.All() {
		out = append(out, ofMode(m))
	}
	for _, w := range workload.All() {
		out = append(out, Entry{Group: Loads, Name: w.Name, Text: []string{w.About}})
	}
	return append(out, metrics()...)
}

// parse reads the format of words.txt. "# " begins a group; "= " an entry, with its other words
// after commas; each further line is a paragraph.
func parse(text string) (out []Entry) {
	group := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if title, ok := strings.CutPrefix(line, "# "); ok {
			group = title
			continue
		}
		if names, ok := strings.CutPrefix(line, "= "); ok {
			words := strings.Split(names, ", ")
			out = append(out, Entry{Group: group, Name: words[0], Also: words[1:]})
			continue
		}
		if line != "" && len(out) > 0 {
			e := &out[len(out)-1]
			e.Text = append(e.Text, line)
		}
	}
	return out
}

func ofMode(m mode.Mode) Entry {
	e := Entry{Group: Modes, Name: string(m.Name), Text: []string{
		sentence(m.Summary) + " " + m.Engine() + ": " + m.Docker,
	}}
	if m.Lost != "" || m.Caveat == "" {
		e.Text = append(e.Text, "Gives up: "+m.GivesUp())
	}
	if m.Caveat != "" {
		e.Text = append(e.Text, "Note: "+m.Caveat)
	}
	var routes, out []string
	for _, r := range m.Routes {
		text := "from " + r.From.Words()
		if same := slices.IndexFunc(m.Routes, func(o mode.Route) bool {
			return o.From == r.From && slices.Equal(o.Hops, r.Hops)
		}); m.Routes[same].To != r.To {
			continue // included in the first
		}
		var to []string
		for _, o := range m.RoutesFrom(r.From) {
			if slices.Equal(o.Hops, r.Hops) {
				to = append(to, string(o.To))
			}
		}
		text += " to " + strings.Join(to, ", ")
		if text += " over " + r.String(); r.To.Outside() {
			out = append(out, text)
		} else {
			routes = append(routes, text)
		}
	}
	e.Text = append(e.Text, "Reached "+strings.Join(routes, "; "))
	if out != nil {
		e.Text = append(e.Text, "Leads out "+strings.Join(out, "; "))
	}
	return e
}

func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] + "." }

func metrics() (out []Entry) {
	also := headsOf()
	for _, m := range workload.Metrics() {
		unit := m.Unit
		if unit == "" {
			unit = "that of the throughput"
		}
		out = append(out, Entry{Group: Metrics, Name: m.Name, Also: also[m.Name],
			Text: []string{m.Words, "Unit in JSON: " + unit}})
	}
	return out
}

func headsOf() map[string][]string {
	out := map[string][]string{}
	for _, w := range workload.All() {
		if !slices.Contains(out[w.Primary], w.Noun) {
			out[w.Primary] = append(out[w.Primary], w.Noun)
		}
		for _, c := range heads.All(w) {
			if c.Metric == "" {
				continue
			}
			for _, head := range []string{c.Title(), strings.TrimSpace(c.Head[0])} {
				if head != "" && !slices.Contains(out[c.Metric], head) {
					out[c.Metric] = append(out[c.Metric], head)
				}
			}
		}
	}
	return out
}

// Find returns the entries for a word, several if it has several meanings. If there is none, it
// tries to ignore case, a flag's dashes, a unit after a comma, the name in "% of NAME", and whether
// the word is one or several. The error for an unknown word is a *suggest.UnknownError.
func Find(word string) ([]Entry, error) {
	word = strings.TrimSpace(word)
	all := All()
	equal := func(a, b string) bool { return a == b }
	short, _, _ := strings.Cut(word, ", ")
	one := strings.TrimSuffix(word, "s")
	of := word
	if strings.HasPrefix(word, "% of ") {
		of = "% of"
	}
	for _, try := range []struct {
		word string
		same func(a, b string) bool
	}{{word, equal}, {word, strings.EqualFold}, {short, strings.EqualFold},
		{strings.TrimLeft(word, "-"), strings.EqualFold}, {one, strings.EqualFold},
		{one + "s", strings.EqualFold}, {of, strings.EqualFold}} {
		if try.word == "" {
			continue
		}
		if out := matching(all, func(name string) bool {
			return try.same(name, try.word)
		}); len(out) > 0 {
			return out, nil
		}
	}
	var known []string
	for _, e := range all {
		known = append(append(known, e.Name), e.Also...)
	}
	slices.Sort(known)
	return nil, &suggest.UnknownError{What: "word", Words: []string{word},
		Known: slices.Compact(known)}
}

func matching(all []Entry, is func(name string) bool) (out []Entry) {
	for _, e := range all {
		if is(e.Name) || slices.ContainsFunc(e.Also, is) {
			out = append(out, e)
		}
	}
	return out
}

func (e Entry) Title() string {
	title := e.Name
	if len(e.Also) > 0 {
		title += " (" + strings.Join(e.Also, ", ") + ")"
	}
	return fmt.Sprintf("%s: %s", strings.ToLower(strings.TrimSuffix(e.Group, "s")), title)
}
