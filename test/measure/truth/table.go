package truth

import (
	"fmt"
	"strings"
)

type verdict string

const (
	yes     verdict = "yes"
	no      verdict = "**no**"
	tooWide verdict = "**no**: too wide to tell"
	unclear verdict = "unclear" // neither that it holds nor that it does not
	noWord  verdict = ""        // the row only informs
)

func holdsIf(ok bool) verdict {
	if ok {
		return yes
	}
	return no
}

type table struct {
	title string
	text  string // what is compared, and when a row holds
	head  []string
	rows  []row
}

type row struct {
	cells []string
	holds verdict
}

func (t *table) add(v verdict, cells ...string) { t.rows = append(t.rows, row{cells, v}) }

// holds returns false if a row does not hold, and if those that are unclear are more than those
// that hold, or none does.
func (t *table) holds() bool {
	hold, open := 0, 0
	for _, r := range t.rows {
		switch r.holds {
		case yes:
			hold++
		case unclear:
			open++
		case noWord:
		default:
			return false
		}
	}
	return hold > 0 && hold >= open
}

func (t *table) markdown() string {
	var b strings.Builder
	line := func(cells ...string) {
		for i, c := range cells {
			cells[i] = strings.ReplaceAll(c, "|", `\|`) // from error messages
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	fmt.Fprintf(&b, "### %s\n\n%s\n\n", t.title, t.text)
	line(append(append([]string{}, t.head...), "holds")...)
	fmt.Fprintln(&b, strings.Repeat("|---", len(t.head)+1)+"|")
	for _, r := range t.rows {
		line(append(append([]string{}, r.cells...), string(r.holds))...)
	}
	return b.String()
}
