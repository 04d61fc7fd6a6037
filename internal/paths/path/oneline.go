package path

import (
	"fmt"
	"slices"
	"strings"
)

const mostSteps = 3

type reason struct {
	text  string
	steps []string
	times map[string]int // by step; "" is the error without one
}

// OneLine joins errors into one line. Each reason appears once, after all steps that failed because
// of it.
func OneLine(err error) string {
	var all []*reason
	add := func(step, text string) {
		i := slices.IndexFunc(all, func(r *reason) bool { return r.text == text })
		if i < 0 {
			i = len(all)
			all = append(all, &reason{text: text, times: map[string]int{}})
		}
		if all[i].times[step]++; all[i].times[step] == 1 && step != "" {
			all[i].steps = append(all[i].steps, step)
		}
	}
	for l := range strings.SplitSeq(err.Error(), "\n") {
		step, text, ok := strings.Cut(l, ": ")
		if !ok {
			step, text = "", l
		}
		add(step, text)
	}
	var out []string
	for _, r := range all {
		out = append(out, r.String())
	}
	return strings.Join(out, "; ")
}

func (r *reason) String() string {
	if len(r.steps) == 0 {
		return r.text + repeated(r.times[""])
	}
	named := r.steps
	if len(named) > mostSteps+1 {
		named = named[:mostSteps]
	}
	var out []string
	for _, s := range named {
		out = append(out, s+repeated(r.times[s]))
	}
	text := strings.Join(out, ", ")
	if more := len(r.steps) - len(named); more > 0 {
		text += fmt.Sprintf(" and %d others", more)
	}
	return text + ": " + r.text
}

func repeated(times int) string {
	if times < 2 {
		return ""
	}
	return fmt.Sprintf(" (%d times)", times)
}
