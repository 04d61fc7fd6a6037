package live

import "github.com/bridgetoll/bridgetoll/internal/show/document"

func (m Model) helpPage() document.Document {
	keys := [][2]string{
		{"↑ ↓  j k", "pick a row, or scroll"},
		{"PgUp PgDn", "half a page up, down"},
		{"Home End", "the first row, the last"},
		{"Enter", "the row's details: rounds, percentiles, hops, CPU time"},
		{"Esc", "back to the tables"},
		{"s", "sort: as in the report, by mode, value, verdict, price"},
		{"1 … 5", "pick one of these orders"},
		{"r", "reverse the order"},
		{"w", "what was not measured, and all warnings"},
		{"?", "this help"},
	}
	if m.running {
		keys = append(keys, [2]string{"q", "quit: asks whether to stop the run"},
			[2]string{"Ctrl-C", "stop the run, and print what there is"})
	} else {
		keys = append(keys, [2]string{"q", "quit"})
	}
	t := document.Table{Level: 1, Columns: make([]document.Column, 2)}
	for _, k := range keys {
		t.Rows = append(t.Rows, document.Row{Cells: document.Texts(k[0], k[1])})
	}
	words := func(s string) document.Paragraph {
		return document.Paragraph{Level: 1, Text: document.Plainly(s)}
	}
	d := document.Document{Sections: []document.Section{
		{Title: document.Strongly("Keys"), Blocks: []document.Block{t}}}}
	read := document.Section{Title: document.Strongly("How to read it")}
	read.Add(words(
		"● is the ratio to the baseline, ─ its 95 % interval, │ the baseline; a difference between the dots counts as the same. In columns of several placements, = is the same, ? unclear, ~ varies. Every order except by mode puts the best first."))
	if m.running {
		read.Add(words(
			"During a measurement the screen stands still, because drawing costs CPU time. It is redrawn between " +
				"epochs and visits, and keys take effect then; q and Ctrl-C take effect at once."))
	}
	d.Sections = append(d.Sections, read)
	return d
}
