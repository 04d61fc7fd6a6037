package page

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// arranged divides the sections. lead, for above the charts, has the answer, warnings, failures and
// facts of the run; rest has the others.
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

func about(s document.Section, topic document.Topic) bool {
	return len(s.Blocks) > 0 && !slices.ContainsFunc(s.Blocks, func(b document.Block) bool {
		l, is := b.(document.List)
		return !is || l.Topic != topic
	})
}

// leading returns the number of sections above the charts: the first one, and those after it up to
// the next section with a table, or with a title and more than lists.
func leading(sections []document.Section) int {
	for i, s := range sections {
		below := func(b document.Block) bool {
			switch b.(type) {
			case document.Table:
				return true
			case document.List:
				return false
			}
			return len(s.Title) > 0
		}
		if i > 0 && slices.ContainsFunc(s.Blocks, below) {
			return i
		}
	}
	return len(sections)
}
