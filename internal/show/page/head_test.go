package page

import (
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

func TestArranged(t *testing.T) {
	list := func(topic document.Topic) document.Section {
		return document.Section{Title: document.Strongly(string(topic)),
			Blocks: []document.Block{document.List{Topic: topic, Items: []string{"x"}}}}
	}
	facts := document.Section{Blocks: []document.Block{
		document.Paragraph{Text: document.Plainly("facts")}}}
	rows := document.Section{Title: document.Strongly("table"),
		Blocks: []document.Block{document.Table{}}}
	said := func(ss []document.Section) (out []string) {
		for _, s := range ss {
			out = append(out, s.Title.String())
		}
		return out
	}
	lead, rest := arranged([]document.Section{
		list(document.Answer), facts, rows, list(document.Failed), list(document.Skipped),
		list(document.Warnings)})
	if got, want := said(lead), []string{"answer", "warnings", "failed", ""}; !slices.Equal(got,
		want) {
		t.Errorf("above the charts stand %q, want %q", got, want)
	}
	if got, want := said(rest), []string{"table", "skipped"}; !slices.Equal(got, want) {
		t.Errorf("below the charts stand %q, want %q", got, want)
	}
	study := document.Section{Title: document.Strongly("study"), Blocks: facts.Blocks}
	lead, rest = arranged([]document.Section{
		list(document.Answer), facts, list(document.Notes), study, list(document.Findings), rows})
	if got, want := said(rest), []string{"study", "findings", "table"}; !slices.Equal(got, want) ||
		len(lead) != 3 {
		t.Errorf("above the charts stand %q, below them %q, want %q", said(lead), got, want)
	}
}
