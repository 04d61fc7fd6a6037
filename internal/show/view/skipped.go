package view

import (
	"slices"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

type unmeasured struct {
	reason, remedy, on string
	labels             []string
	from               map[string][]string // places by label
}

// NotMeasured returns a sentence for each reason: what is not measured, why, and what to try. on
// returns a prefix for what a backend cannot build; nil: no prefix.
func NotMeasured(skips []sample.Skip, on func(string) string) []string {
	var all []*unmeasured
	for _, s := range skips {
		where := ""
		if on != nil && s.On != "" {
			where = on(s.On)
		}
		i := slices.IndexFunc(all, func(u *unmeasured) bool {
			return u.reason == s.Reason && u.remedy == s.Remedy && u.on == where
		})
		if i < 0 {
			i = len(all)
			all = append(all, &unmeasured{reason: s.Reason, remedy: s.Remedy, on: where,
				from: map[string][]string{}})
		}
		all[i].add(s)
	}
	var out []string
	for _, u := range all {
		out = append(out, u.String())
	}
	return out
}

func (u *unmeasured) add(s sample.Skip) {
	label := string(s.Mode)
	if s.To != "" {
		label = analysis.Label(sample.Cell{Mode: s.Mode, From: s.From, To: s.To, Tune: s.Tune})
	}
	if !slices.Contains(u.labels, label) {
		u.labels = append(u.labels, label)
	}
	if from := s.From.Words(); from != "" && !slices.Contains(u.from[label], from) {
		u.from[label] = append(u.from[label], from)
	}
}

func (u *unmeasured) String() string {
	who := u.who()
	if u.on != "" {
		who = u.on + ", " + who
	}
	return without(who, u.reason, u.remedy)
}

// who returns the names of the rows. Those that are not measured from the same places are named
// together.
func (u *unmeasured) who() string {
	var parts []string
	left := slices.Clone(u.labels)
	for len(left) > 0 {
		from := u.from[left[0]]
		same := func(l string) bool { return slices.Equal(u.from[l], from) }
		var labels []string
		for _, l := range left {
			if same(l) {
				labels = append(labels, l)
			}
		}
		left = slices.DeleteFunc(left, same)
		text := printable.List(labels)
		if len(from) > 0 {
			text += " from " + printable.List(from)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

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

// counts reports whether word i is a count of the words after it. A number at the end may be a
// code.
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
