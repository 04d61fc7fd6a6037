package view

import (
	"slices"
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
