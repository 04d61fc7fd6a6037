package documenttest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/advise"
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/ladder"
	"github.com/bridgetoll/bridgetoll/internal/judge/mesh"
	"github.com/bridgetoll/bridgetoll/internal/judge/predict"
	"github.com/bridgetoll/bridgetoll/internal/judge/published"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/judge/sweep"
	"github.com/bridgetoll/bridgetoll/internal/judge/trace"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

type judged struct {
	analysis.Measured
	analysis.Said
	Advice []advise.Advice `json:"advice"`
	Steps  []ladder.Step   `json:"steps"`
	Traces []trace.Trace   `json:"traces"`
	Curves []sweep.Curve   `json:"curves"`

	OverIPv4 []sweep.Curve `json:"over_ipv4"`
	Rows     []predict.Row `json:"rows"`

	Mesh    *mesh.Mesh         `json:"mesh"`
	Files   []published.File   `json:"files"`
	Studies []published.Result `json:"studies"`
}

// Contradictions returns the findings and the rows that disagree with the figures in the document's
// JSON.
func Contradictions(d document.Document) []string {
	var r judged
	b, err := json.Marshal(d.JSON)
	if err != nil || json.Unmarshal(b, &r) != nil || r.Answer == nil {
		return nil
	}
	return slices.Concat(unlike(d), r.unsupported(), r.published())
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
