package view

import (
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/published"
	"github.com/bridgetoll/bridgetoll/internal/show/chart"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/sentence"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// Published compares published figures with measured ones.
func Published(r *published.Report) document.Document { return publishedDocument(r, false) }

// PublishedDetails adds the ratios of large tables, the CPUs' time and all notes.
func PublishedDetails(r *published.Report) document.Document { return publishedDocument(r, true) }

func publishedDocument(r *published.Report, details bool) document.Document {
	for _, f := range r.Files {
		sentence.FillWarnings(f.Warnings)
	}
	d := document.Document{Kind: document.AComparison, JSON: r, Data: publishedData(r),
		Page: func() document.Page {
			return chart.Published(r)
		}, Sections: []document.Section{answerSection(&r.Answer), measuredFiles(r)}}
	for _, s := range r.Studies {
		d.Add(publishedStudy(s, len(r.Files) > 0, details)...)
	}
	d.Add(publishedFoot(r, details)...)
	return d
}

func measuredFiles(r *published.Report) (out document.Section) {
	for _, f := range r.Files {
		facts := machineFacts(f.Environment)
		facts[0] = f.Name + ": " + facts[0]
		if f.Wire != nil {
			facts = append(facts, "wire "+f.Wire.String())
		}
		out.Add(plainFacts(strings.Join(append(facts, units.Plural(f.Rounds, "round")), document.Facts)))
	}
	return out
}

func publishedStudy(s published.Result, measured, details bool) []document.Section {
	out := []document.Section{{Title: document.Strongly(s.Name).Then(" · "+s.Year, document.Plain),
		Blocks: []document.Block{paragraph(1, s.Title),
			paragraph(1, s.URL), paragraph(1, s.Setup+".")}}}
	var items []string
	for _, f := range s.Findings {
		text := f.Text
		if measured {
			text += ": " + findingWords(f)
		}
		items = append(items, text)
	}
	findings := document.Section{Title: document.Plainly("Findings"), Level: 1,
		Blocks: []document.Block{document.List{Topic: document.Findings, Items: items, Level: 2}}}
	if s.Rows[0].Table == "" {
		out = append(append(out, findings), publishedGrid(s, measured)...)
		out = append(out, publishedTables(s, measured)...)
	} else { // the tables are what its readers know
		out = append(append(out, crosstabs(s, measured, details)...), findings)
	}
	out = append(out, claims(s, measured)...)
	if details {
		out = append(out, publishedCPUs(s)...)
	}
	out = append(out, notes(s, details)...)
	return append(out, toMeasure(s, measured)...)
}

// findingWords returns a finding's verdict, how many ratios support it, and under which conditions.
func findingWords(f published.Finding) string {
	words := string(f.Verdict)
	if tally := f.Tally(); tally != "" {
		words += " (" + tally + ")"
	}
	if len(f.Notes) > 0 {
		words += "; " + strings.Join(f.Notes, "; ")
	}
	return words
}

// notes lists how this machine differs from the study's conditions. details adds the data's notes,
// and why rows have no cell or no ratio.
func notes(s published.Result, details bool) []document.Section {
	if !details {
		return notesList(s.Differs)
	}
	var own, ours []string
	for _, r := range s.Rows {
		if _, words, ok := strings.Cut(r.Unit, asPrinted); ok {
			own = appendNew(own, shortUnit(r.Unit)+asPrinted+words)
		}
		if r.Table == "" { // a table's notes name its columns
			own = appendNew(own, r.Note)
		}
		if r.WhyNot != "" {
			ours = appendNew(ours, r.WhyNot)
		}
		for _, x := range r.Ratios {
			ours = appendNew(ours, x.Why)
		}
	}
	ours = append(ours, s.Notes...)
	if len(own) > 0 {
		ours = append([]string{"its own: " + strings.Join(own, "; ")}, ours...)
	}
	return notesList(ours)
}

func notesList(items []string) []document.Section {
	if len(items) == 0 {
		return nil
	}
	return []document.Section{{Title: document.Plainly("Notes"), Level: 1,
		Blocks: []document.Block{document.List{Topic: document.Notes, Items: items, Level: 2}}}}
}

func appendNew(list []string, text string) []string {
	if text == "" || slices.ContainsFunc(list, func(have string) bool {
		return strings.Contains(have, text)
	}) {
		return list
	}
	return append(list, text)
}

// toMeasure returns the commands that measure a study's cells. With measured, it returns only those
// for missing cells.
func toMeasure(s published.Result, measured bool) []document.Section {
	out := document.Section{Title: document.Plainly("To measure it here:"), Level: 1}
	if measured {
		out.Title = document.Plainly("To measure what is missing:")
	}
	for _, c := range s.Commands {
		if !measured || c.Missing > 0 {
			out.Add(document.Command{Line: c.Command})
		}
	}
	if len(out.Blocks) == 0 {
		return nil
	}
	if s.Takes != "" {
		out.Add(paragraph(2, s.Takes))
	}
	return append([]document.Section{out}, measuredElsewhere(s, measured)...)
}

func measuredElsewhere(s published.Result, measured bool) (out []document.Section) {
	for _, c := range s.Commands {
		for _, x := range c.Elsewhere {
			if !measured || c.Missing > 0 {
				out = append(out, document.Section{Level: 1, Close: true,
					Title:  document.Plainly("The same on " + x.Where + ":"),
					Blocks: []document.Block{document.Command{Line: x.Args}}})
			}
		}
	}
	return out
}

func publishedFoot(r *published.Report, details bool) []document.Section {
	more := "Doubts about the studies, and each CPU's time: --details."
	if details {
		more = ""
	}
	if len(r.Files) == 0 {
		return []document.Section{{Blocks: []document.Block{
			paragraph(1, strings.TrimSpace(
				"toll published --against FILE puts what such a run measured beside these figures. "+more))}}}
	}
	out := []document.Section{{Blocks: []document.Block{
		paragraph(1,
			"holds: the same direction, or no difference in both; gone: a difference that is none any more; "+
				"reversed: the other direction; new: a difference where none was published (at most 5 %); unclear: too few rounds "+
				"or too much noise to tell."),
		faint(strings.TrimSpace(
			"Figures and ratios of this machine have 95 % intervals; ratios are taken round by round. " + more)),
	}}}
	var items []string
	for _, f := range r.Files {
		for _, w := range f.Warnings {
			items = append(items, f.Name+": "+w.Text)
		}
	}
	return append(out, list(document.Warnings, "Warnings", items))
}
