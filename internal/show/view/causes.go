package view

import (
	"slices"
	"strconv"
	"strings"
)

// causes collects why things have no result. Causes that differ only in counts are one, with the
// range of each count.
type causes struct{ all []*cause }

type cause struct {
	words []string
	most  []string // the words of the largest counts
	names []string
}

// add adds that a cause applies to the named thing.
func (r *causes) add(name, text string) {
	words := strings.Split(text, " ")
	for _, o := range r.all {
		if o.alike(words) {
			o.take(words)
			o.names = append(o.names, name)
			return
		}
	}
	r.all = append(r.all, &cause{words, slices.Clone(words), []string{name}})
}

// items returns a text for each cause, in the order in which they came: the names, as join lists
// them, and the reason.
func (r *causes) items(join func(names []string) string) []string {
	var out []string
	for _, o := range r.all {
		out = append(out, join(o.names)+o.text())
	}
	return out
}

func (r *cause) alike(words []string) bool {
	if len(words) != len(r.words) {
		return false
	}
	for i, w := range words {
		if w != r.words[i] && (!counts(words, i) || !counts(r.words, i)) {
			return false
		}
	}
	return true
}

// counts reports whether word i is a count of the words after it. A number at the end may be a code.
func counts(words []string, i int) bool {
	_, err := strconv.Atoi(words[i])
	return err == nil && i+1 < len(words)
}

func (r *cause) take(words []string) {
	for i, w := range words {
		if w == r.words[i] && w == r.most[i] {
			continue
		}
		n, _ := strconv.Atoi(w)
		if low, _ := strconv.Atoi(r.words[i]); n < low {
			r.words[i] = w
		}
		if high, _ := strconv.Atoi(r.most[i]); n > high {
			r.most[i] = w
		}
	}
}

func (r *cause) text() string {
	out := slices.Clone(r.words)
	for i, w := range r.most {
		if w != out[i] {
			out[i] += "–" + w
		}
	}
	return strings.Join(out, " ")
}
