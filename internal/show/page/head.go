package page

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// arranged splits a report's sections: lead is printed above the charts and has the answer, the
// warnings and failures, and the facts of the run; rest is printed below the charts.
func arranged(sections []document.Section) (lead, rest []document.Section) {
	n := leading(sections)
	var warnings, failed []document.Section
	for _, s := range sections[n:] {
		switch {
		case about(s, document.Warnings):
			warnings = append(warnings, s)
		case about(s, document.Failed):
			failed = append(failed, s)
		default:
			rest = append(rest, s)
		}
	}
	lead = slices.Clone(sections[:n])
	at := 0
	if len(lead) > 0 && about(lead[0], document.Answer) {
		at = 1
	}
	return slices.Insert(lead, at, append(warnings, failed...)...), rest
}

// about reports whether a section consists of lists of the given topic.
func about(s document.Section, topic document.Topic) bool {
	return len(s.Blocks) > 0 && !slices.ContainsFunc(s.Blocks, func(b document.Block) bool {
		l, is := b.(document.List)
		return !is || l.Topic != topic
	})
}

// leading returns the number of sections above the charts: the first one, and those after it up to
// the next section with a table.
func leading(sections []document.Section) int {
	isTable := func(b document.Block) bool { _, is := b.(document.Table); return is }
	for i, s := range sections {
		if i > 0 && slices.ContainsFunc(s.Blocks, isTable) {
			return i
		}
	}
	return len(sections)
}
