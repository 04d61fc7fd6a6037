// Package sentence puts findings into words, for all studies and formats: one table has the
// sentences, one the words that their blanks stand for.
package sentence

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/trace"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// Told is a judged report of any study, or a prediction.
type Told interface {
	Base() *analysis.Report
	Tell(a *analysis.Answer, findings []string)
}

// Fill sets the answer and the findings in words of a report that has findings as values.
func Fill(r Told) {
	fillTraces(r)
	fillDoubts(r)
	fillNotes(r)
	base := r.Base()
	FillWarnings(base.Warnings)
	for _, c := range base.Cells {
		FillWarnings(c.Warnings)
	}
	if len(base.Found) == 0 {
		return
	}
	w := &writer{r: base, study: r}
	var answer, codes []string // codes: of the findings with which the answer's items begin
	details := map[int][]string{}
	shown := map[string]int{} // sentences, by code
	for fs := range alike(base.Found) {
		f := fs[0]
		t := find(f.Code)
		w.enter(f)
		text, at := w.fill(t.text, fs), t.details
		if t.continues { // the sentence before is in both
			answer[len(answer)-1] += text
			if at > 0 {
				details[at][len(details[at])-1] += text
			}
			continue
		}
		if at > 0 {
			if said := w.fill(cmp.Or(t.detail, t.text), fs); said != "" {
				details[at] = append(details[at], said)
			}
		}
		if shown[f.Code]++; text == "" || shown[f.Code] > t.most || slices.Contains(answer, text) {
			continue
		}
		if answer = w.add(answer, t, f, text); len(answer) > len(codes) {
			codes = append(codes, f.Code)
		}
	}
	findings := []string{}
	for _, at := range slices.Sorted(maps.Keys(details)) {
		findings = append(findings, details[at]...)
	}
	var said *analysis.Answer
	if len(answer) > 0 {
		said = &analysis.Answer{Question: w.question(), Text: answer, Brief: w.brief(answer, codes)}
	}
	r.Tell(said, findings)
}

// add adds a sentence to an answer: to its last item if both are about the same.
func (w *writer) add(answer []string, t template, f analysis.Finding, text string) []string {
	head, last := "", len(answer)-1
	if t.placed {
		head = w.head(f)
	}
	joined := t.item != "" && (!t.placed || head != "")
	switch {
	case joined && t.item == w.item && t.list != "":
		answer[last] = strings.TrimSuffix(answer[last], ".") + "; " + text
		return answer
	case joined && t.item == w.item:
		answer[last] += " " + text
		return answer
	case joined && head != "":
		text = strings.ToLower(text[:1]) + text[1:]
	}
	w.item = t.item
	return append(answer, t.list+head+text)
}

// alike yields findings that one sentence is about.
func alike(all []analysis.Finding) iter.Seq[[]analysis.Finding] {
	return func(yield func([]analysis.Finding) bool) {
		for len(all) > 0 {
			n, merge := 1, find(all[0].Code).merge
			for n < len(all) && merge != nil && all[n].Code == all[0].Code && merge(all[0], all[n]) {
				n++
			}
			if !yield(all[:n]) {
				return
			}
			all = all[n:]
		}
	}
}

type place struct {
	from mode.Placement
	on   string
}

func placeOf(f analysis.Finding) place { return place{f.From, f.On} }

type writer struct {
	r     *analysis.Report
	study Told         // that r is the base of
	trace *trace.Trace // whose own findings are told; nil: the report's
	over  string       // the label of its other cell, if the finding is about that
	place place
	item  string // of the answer's last item: the template's
	named bool   // the figures of the place have named their metrics
}

func (w *writer) enter(f analysis.Finding) {
	if placeOf(f) != w.place {
		w.place, w.item, w.named = placeOf(f), "", false
	}
}

// head returns the finding's place if the answer has sentences on several, or "".
func (w *writer) head(f analysis.Finding) string {
	var parts []string
	differs := func(of func(analysis.Finding) string) bool {
		return slices.ContainsFunc(w.r.Found, func(o analysis.Finding) bool {
			return find(o.Code).placed && of(o) != of(f)
		})
	}
	if differs(func(f analysis.Finding) string { return f.On }) {
		parts = append(parts, "on "+f.On)
	}
	if differs(func(f analysis.Finding) string { return string(f.From) }) {
		parts = append(parts, "from "+f.From.Words())
	}
	if len(parts) == 0 {
		return ""
	}
	return printable.Capital(strings.Join(parts, ", ") + ": ")
}

var questions = map[sample.Study]string{
	sample.StudyEndpoints: "What does each route cost?",
	sample.StudyScale:     "What happens as clients are added?",
	sample.StudyLadder:    "What does each part of the {ladder} cost?",
	sample.StudySweep:     "From which {axis} on does a mode cost more?",
	sample.StudyTrace:     "Where do the microseconds go?",
	sample.StudyAdvise:    "What makes {searched} faster here?",
	sample.StudyMesh:      "Is a node or a link at fault?",
}

// question returns what the findings answer.
func (w *writer) question() string {
	if w.r.Study == sample.StudyEndpoints &&
		slices.ContainsFunc(w.r.Plan.Loads, workload.Alone) {
		return "Is it the network?"
	}
	for _, f := range w.r.Found {
		if q := find(f.Code).question; q != "" {
			return w.fill(q, []analysis.Finding{f})
		}
	}
	return w.fill(cmp.Or(questions[w.r.Study], "What does each mode cost?"), nil)
}

// fill returns a template's text with the words for its {blanks}.
func (w *writer) fill(text string, fs []analysis.Finding) string {
	return fill(text, func(blank string) string { return blanks[blank](w, fs) })
}

// fill returns a text with the words for its {blanks}.
func fill(text string, words func(blank string) string) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(text, "{")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		blank, after, _ := strings.Cut(rest, "}")
		b.WriteString(words(blank))
		text = after
	}
}

func (w *writer) cells(f analysis.Finding) (out []analysis.Cell) {
	for _, i := range f.Cells {
		out = append(out, w.r.Cells[i])
	}
	return out
}
