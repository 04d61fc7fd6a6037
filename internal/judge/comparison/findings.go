// Package comparison judges modes against a baseline.
package comparison

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

type study struct{ *analysis.Run }

// Judge judges a results file as a comparison.
func Judge(f *sample.File) *analysis.Report {
	j := study{analysis.Open(f)}
	r := j.Report()
	j.Sort(r.Cells)
	j.unpace(r.Cells)
	r.Findings = append(r.Findings, j.findings(r)...)
	r.Answer = j.answer(r)
	return r
}

func (j study) findings(r *analysis.Report) []string {
	var out []string
	if len(r.Cells) == 0 {
		return []string{"Nothing was measured."}
	}
	out = append(out, analysis.Witnessed(r))
	for _, from := range analysis.Placements(r.Cells) {
		if s := j.streamFinding(from); s != "" {
			out = append(out, s)
		}
	}
	if s := j.streamOwn(); s != "" {
		out = append(out, s)
	}
	out = append(out, j.overIPv6()...)
	out = append(out, j.tuneGains()...)
	return append(out, j.againstLab()...)
}

// remedy reports whether a variant was measured only because it may help a mode.
func (j study) remedy(c sample.Cell) bool {
	return c.Tune != "" && slices.ContainsFunc(j.File.Header.Plan.Remedies,
		func(l sample.Lever) bool { return l.Tune == c.Tune })
}

// unpaced reports whether a variant was measured only because the machine's congestion control
// paces.
func (j study) unpaced(c sample.Cell) bool {
	return c.Tune != "" && string(c.Tune) == j.File.Header.Plan.Unpaced
}

func (j study) tuneGains() []string {
	var say sayings
	for i, s := range j.Series {
		plain := s.Cell
		plain.Tune = ""
		b := slices.IndexFunc(j.Series, func(o *analysis.Series) bool { return o.Cell == plain })
		if s.Cell.Tune == "" || b < 0 || j.unpaced(s.Cell) || j.remedy(s.Cell) {
			continue
		}
		if x := j.Against(i, b, analysis.Primary(s.Load), analysis.Label(plain)); x.N > 0 {
			say.add(s.Cell, fmt.Sprintf("%s from %s", analysis.Label(s.Cell),
				s.Cell.From.Words())+j.onPin(s.Cell), j.Words(s.Load, x))
		}
	}
	return say.out
}

func (j study) overIPv6() []string {
	var say sayings
	for i, s := range j.Series {
		m, _ := mode.Find(s.Cell.Mode)
		r, ok := m.Route(s.Cell.From, s.Cell.To)
		four := s.Cell
		four.To = r.To.Over4()
		b := slices.IndexFunc(j.Series, func(o *analysis.Series) bool { return o.Cell == four })
		if !ok || !r.OnRequest() || s.Cell.Control || b < 0 || j.Failed(i) || j.Failed(b) {
			continue
		}
		if x := j.Against(i, b, analysis.Primary(s.Load), "IPv4"); x.N > 0 {
			say.add(s.Cell, fmt.Sprintf("%s over IPv6, from %s", analysis.Label(four),
				s.Cell.From.Words())+j.onPin(s.Cell), j.Words(s.Load, x))
		}
	}
	return say.out
}

func (j study) onPin(c sample.Cell) string {
	return analysis.Plan{Pins: j.File.Header.Plan.Pins}.SayPin(c.Pin)
}

type sayings struct {
	out []string
	at  map[sample.Cell]int // cell without its load -> index in out
}

func (s *sayings) add(c sample.Cell, head, text string) {
	c.Load = ""
	if at, ok := s.at[c]; ok {
		s.out[at] = strings.TrimSuffix(s.out[at], ".") + " and " + text + "."
		return
	}
	if s.at == nil {
		s.at = map[sample.Cell]int{}
	}
	s.at[c] = len(s.out)
	s.out = append(s.out, head+": "+text+".")
}
