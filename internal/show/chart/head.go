package chart

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/difference"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// Run returns the page of a judged run with the given charts. command is the command that makes
// such runs, for a run whose own command is unknown; the routes that were measured follow it.
func Run(r *analysis.Report, title, command string, groups []document.ChartGroup) document.Page {
	if r.Command != nil {
		command = sample.CommandLine(r.Command)
	} else {
		command += routes(r)
	}
	return document.Page{Title: title, Command: command, Lede: dateAndHost(r.Started, r.Environment),
		Groups: groups, Paths: paths(r), Facts: facts(r)}
}

// routes returns the routes to running servers as arguments, without secrets, each after a space.
func routes(r *analysis.Report) string {
	var all []string
	for _, c := range r.Cells {
		word := c.Facts["url"]
		if word == "" {
			continue
		}
		if name := string(c.Mode); !strings.Contains(word, name) {
			word = name + "=" + word
		}
		if !slices.Contains(all, word) {
			all = append(all, word)
		}
	}
	return strings.TrimPrefix(sample.CommandLine(all), sample.CommandLine(nil))
}

func dateAndHost(began time.Time, e sample.Environment) string {
	var facts []string
	if !began.IsZero() {
		facts = append(facts, dateOf(began))
	}
	if e.Host != "" {
		facts = append(facts, "on "+e.Host)
	}
	return strings.Join(facts, document.Facts)
}

func dateOf(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") + " UTC" }

func differenceLine(r *difference.Report) string {
	var facts []string
	for _, s := range []difference.Side{r.Old, r.New} {
		fact := s.Name
		if !s.Started.IsZero() {
			fact += ", " + dateOf(s.Started)
		}
		if s.Environment.Host != "" {
			fact += fmt.Sprintf(", on %s", s.Environment.Host)
		}
		facts = append(facts, fact)
	}
	return strings.Join(facts, " → ")
}
