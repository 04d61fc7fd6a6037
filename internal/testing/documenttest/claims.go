package documenttest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/advise"
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/ladder"
	"github.com/bridgetoll/bridgetoll/internal/judge/mesh"
	"github.com/bridgetoll/bridgetoll/internal/judge/published"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/judge/trace"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

type judged struct {
	analysis.Measured
	analysis.Said
	Advice []advise.Advice `json:"advice"`
	Steps  []ladder.Step   `json:"steps"`
	Traces []trace.Trace   `json:"traces"`

	Mesh    *mesh.Mesh         `json:"mesh"`
	Files   []published.File   `json:"files"`
	Studies []published.Result `json:"studies"`
}

// Contradictions returns the sentences of an answer that disagree with the verdicts in the
// document's JSON.
func Contradictions(d document.Document) []string {
	var r judged
	b, err := json.Marshal(d.JSON)
	if err != nil || json.Unmarshal(b, &r) != nil || r.Answer == nil {
		return nil
	}
	out := unlike(d)
	for _, text := range answerOf(d) {
		for _, sentence := range strings.Split(strings.TrimSuffix(text, "."), ". ") {
			for _, why := range r.against(sentence) {
				out = append(out, fmt.Sprintf("%q: %s", sentence, why))
			}
		}
	}
	return out
}

var words = map[string]stats.Verdict{string(stats.Better): stats.Gains,
	string(stats.Worse): stats.Costs, string(stats.Same): stats.Nothing,
	string(stats.Unclear): stats.Unclear}

// unlike returns rows whose verdict column disagrees with all their figures.
func unlike(d document.Document) (out []string) {
	for t := range tables(d) {
		at := slices.IndexFunc(t.Columns, func(c document.Column) bool {
			return c.Title() == "verdict"
		})
		if at < 0 {
			continue
		}
		for _, row := range t.Rows {
			var verdicts []string
			for _, c := range row.Cells {
				if c.Number != nil && c.Number.Verdict != "" {
					verdicts = append(verdicts, c.Number.Verdict)
				}
			}
			for _, word := range strings.Split(row.Cells[at].Text, ", ") {
				if words[word] != "" && len(verdicts) > 0 && !slices.Contains(verdicts, word) &&
					!slices.Contains(verdicts, string(words[word])) {
					out = append(out, fmt.Sprintf("%q: the figures are %q",
						row.Cells[0].Text+": "+word, verdicts))
				}
			}
		}
	}
	return out
}

func answerOf(d document.Document) (out []string) {
	for _, s := range d.Sections {
		for _, b := range s.Blocks {
			if l, ok := b.(document.List); ok && l.Topic == document.Answer {
				out = append(out, l.Items...)
			}
		}
	}
	return out
}

func (r judged) against(sentence string) []string {
	var out []string
	for _, rule := range []func(judged, string) []string{judged.verdicts, judged.advised,
		judged.routes, judged.levers, judged.parts, judged.open,
		judged.curves, judged.faults, judged.findings, judged.traces} {
		out = append(out, rule(r, sentence)...)
	}
	return out
}

var (
	parentheses = regexp.MustCompile(` ?\([^()]*\)`)
	underOne    = regexp.MustCompile(`(?:^|[:;] )(better|worse|same|unclear): ([^;]*)`)
	verb        = regexp.MustCompile(`(?i)^(?:.*: )?(keep|avoid|not certain yet:) (.*)$`)
	againstOne  = regexp.MustCompile(`^Against (.+?): (.*)$`)
	sameAs      = regexp.MustCompile(`^(.*) (?:has|have) the same .* as `)
	differing   = regexp.MustCompile(`^It is unclear whether (?:the .* over )?(.*) differs? from`)
	unclearOf   = regexp.MustCompile(`^(\d+) of (\d+) verdicts (?:is|are) unclear`)
)

// cells returns the cells with the longest label that the name begins with. Other text may follow
// the label.
func (r judged) cells(name string) (out []analysis.Cell) {
	longest := ""
	for _, c := range r.Cells {
		if l := c.Label(); len(l) > len(longest) &&
			(name == l || strings.HasPrefix(name, l+" ") || strings.HasPrefix(name, l+":")) {
			longest = l
		}
	}
	for _, c := range r.Cells {
		if c.Label() == longest && longest != "" {
			out = append(out, c)
		}
	}
	return out
}

// has reports whether a cell has the verdict v, for itself or for a ratio of the metric. If of is
// "", any metric counts.
func has(cells []analysis.Cell, of string, v stats.Verdict) bool {
	return slices.ContainsFunc(cells, func(c analysis.Cell) bool {
		if c.Verdict() == v {
			return true
		}
		for name, m := range c.Metrics {
			for _, x := range []*analysis.Ratio{m.Ratio, m.Scaling} {
				if x != nil && x.Verdict == v && (of == "" || name == of) {
					return true
				}
			}
		}
		return false
	})
}

// verdicts checks "noun, of Y's: worse: a 80 %; same: b".
func (r judged) verdicts(sentence string) (out []string) {
	if !strings.Contains(sentence, ", of ") || r.Steps != nil {
		return nil
	}
	report := &analysis.Report{Measured: r.Measured}
	for _, m := range underOne.FindAllStringSubmatch(parentheses.ReplaceAllString(sentence, ""),
		-1) {
		for _, name := range strings.Split(m[2], ", ") {
			cells := slices.DeleteFunc(r.cells(name), func(c analysis.Cell) bool {
				return r.Study == "" && !strings.Contains(
					strings.ToLower(sentence), strings.ToLower(report.NounOf(c))+", of ") &&
					!strings.Contains(sentence, report.Plan.SayPin(c.Pin)+", of ")
			})
			metric := ""
			if r.Study == "" && len(cells) > 0 {
				metric = cells[0].Primary
			}
			if !has(cells, metric, stats.Verdict(m[1])) {
				out = append(out, fmt.Sprintf("no cell of %q is %s", name, m[1]))
			}
		}
	}
	return out
}

// dear is the ratio from which the answer advises against a mode.
const dear = 1.5

// advised checks "Keep a: …; b", "Avoid c" and "Not certain yet: d".
func (r judged) advised(sentence string) (out []string) {
	m := verb.FindStringSubmatch(sentence)
	if m == nil || r.Advice != nil {
		return nil
	}
	for _, text := range strings.Split(m[2], "; ") {
		cells := r.cells(text)
		if len(cells) == 0 { // an alternative, or figures of another CPU placement
			continue
		}
		better, worse := has(cells, cells[0].Primary, stats.Better),
			has(cells, cells[0].Primary, stats.Worse)
		same, much := has(cells, cells[0].Primary, stats.Same),
			slices.ContainsFunc(cells, muchWorse)
		switch strings.ToLower(m[1]) {
		case "keep":
			if !better && !worse && !same {
				out = append(out, text+" is kept, and nothing is certain")
			}
		case "avoid":
			if !much {
				out = append(out, text+" is avoided, and certainly not much worse")
			}
		default:
			if better || worse || same {
				out = append(out, text+" is not uncertain")
			}
		}
		if strings.Contains(text, "no certain difference") && (better || worse) &&
			!strings.Contains(text, "CPU") { // of one placement of several
			out = append(out, text+": a difference is certain")
		}
		if strings.Contains(text, ": the same") && !same {
			out = append(out, text+": it is not the same")
		}
	}
	return out
}

func muchWorse(c analysis.Cell) bool {
	x := c.Metrics[c.Primary]
	if x.Ratio == nil || c.Verdict() != stats.Worse {
		return false
	}
	return c.FillsLink() || x.Higher && 1/x.Ratio.High >= dear || !x.Higher && x.Ratio.Low >= dear
}

func (r judged) routes(sentence string) (out []string) {
	if r.Study != sample.StudyEndpoints {
		return nil
	}
	hold := func(name string, want ...stats.Verdict) {
		cells := r.cells(name)
		if len(cells) > 0 && !slices.ContainsFunc(want, func(v stats.Verdict) bool {
			return has(cells, cells[0].Primary, v)
		}) {
			out = append(out, fmt.Sprintf("no verdict of %q is %v", name, want))
		}
	}
	names := func(text string) []string {
		return strings.Split(strings.ReplaceAll(text, " and ", ", "), ", ")
	}
	if m := againstOne.FindStringSubmatch(sentence); m != nil {
		for _, text := range strings.Split(m[2], "; ") {
			switch {
			case strings.Contains(text, " adds "):
				hold(text, stats.Worse)
			case strings.Contains(text, " off the "):
				hold(text, stats.Better)
			default:
				hold(text, stats.Better, stats.Worse)
			}
		}
	}
	if m := sameAs.FindStringSubmatch(sentence); m != nil {
		for _, name := range names(m[1]) {
			hold(name, stats.Same)
		}
	}
	if m := differing.FindStringSubmatch(sentence); m != nil {
		for _, name := range names(m[1]) {
			hold(name, stats.Unclear)
		}
	}
	return out
}

func (r judged) levers(sentence string) (out []string) {
	for _, a := range r.Advice {
		said := strings.TrimPrefix(sentence, a.Mode+": ")
		if len(r.Advice) > 1 && said == sentence {
			continue
		}
		for _, l := range a.Levers {
			worse := slices.ContainsFunc(l.Effects(), func(e advise.Effect) bool {
				return e.Ratio.Verdict == stats.Worse
			})
			better := slices.ContainsFunc(l.Effects(), func(e advise.Effect) bool {
				return e.Ratio.Verdict == stats.Better
			})
			switch {
			case strings.HasPrefix(said, "Nothing that was tried helps") && better && !worse &&
				slices.Contains([]advise.Verdict{advise.Recommended, advise.NotSure, advise.NoGain},
					l.Verdict):
				out = append(out, l.Name+" helps: "+string(l.Verdict))
			case strings.HasPrefix(said, "Use "+l.Gist+":") &&
				(l.Verdict != advise.Recommended || worse || !better):
				out = append(out, l.Name+" is "+string(l.Verdict))
			case strings.HasPrefix(said, "Not "+l.Gist+":") &&
				(l.Verdict != advise.AtAPrice || !worse):
				out = append(out, l.Name+" is "+string(l.Verdict))
			}
		}
	}
	return out
}

func (r judged) parts(sentence string) (out []string) {
	for _, s := range r.Steps {
		for metric, p := range s.Prices {
			noun := map[string]string{"latency_p50": "Median latency",
				"throughput": "Throughput"}[metric]
			if noun == "" || s.Part == "" || !strings.HasPrefix(sentence, noun) {
				continue
			}
			if strings.Contains(sentence, s.Part+" adds ") && p.Verdict != stats.Costs ||
				strings.Contains(sentence, s.Part+" takes ") && p.Verdict != stats.Gains {
				if !slices.ContainsFunc(r.Steps, func(o ladder.Step) bool {
					return o.Part == s.Part && o.Prices[metric].Verdict != p.Verdict
				}) {
					out = append(out, s.Part+" "+string(p.Verdict))
				}
			}
		}
	}
	return out
}

// traces checks "a adds 3.2 µs (…) to b's round trip: +3.2 ±0.3 µs in the path, …".
func (r judged) traces(sentence string) (out []string) {
	for _, t := range r.Traces {
		said := map[stats.Verdict]string{stats.Costs: t.Label + " adds ",
			stats.Gains: t.Label + " takes ", stats.Nothing: t.Label + " adds nothing measurable ",
			stats.Unclear: "What " + t.Label + " adds "}
		begins, verdict := "", stats.Verdict("")
		for v, text := range said {
			if strings.HasPrefix(sentence, text) && len(text) > len(begins) {
				begins, verdict = text, v
			}
		}
		_, parts, ok := strings.Cut(sentence, "'s round trip")
		switch {
		case verdict == "" || t.Untraced.N == 0:
			continue
		case verdict != t.Untraced.Verdict:
			out = append(out, t.Label+": "+string(t.Untraced.Verdict))
		case verdict == stats.Costs && !strings.Contains(sentence, t.Untraced.Amount()):
			out = append(out, t.Label+": "+t.Untraced.Amount())
		}
		for where, p := range map[string]analysis.Price{"in the path": t.Path,
			"in wake-ups": t.WakeUps, "in the relay": t.Relay, "not attributed": t.Unattributed} {
			said := strings.Contains(parts, p.Value()+" µs "+where) ||
				strings.Contains(parts, p.Value()+" "+where)
			if ok && strings.Contains(parts, where) && !said {
				out = append(out, t.Label+": "+p.Value()+" are "+where)
			}
		}
	}
	return out
}

func (r judged) open(sentence string) []string {
	m := unclearOf.FindStringSubmatch(sentence)
	if m == nil || r.Study != "" {
		return nil
	}
	all, open := 0, 0
	for _, c := range r.Cells {
		x := c.Metrics[c.Primary].Ratio
		if x != nil && !x.Undecided() && !r.Plan.OnlyUnpaced(c) {
			if all++; x.Verdict == stats.Unclear {
				open++
			}
		}
	}
	if all > 0 && (m[1] != fmt.Sprint(open) || m[2] != fmt.Sprint(all)) {
		return []string{fmt.Sprintf("%d of %d are", open, all)}
	}
	return nil
}
