// Package comparison judges modes against a baseline.
package comparison

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// The codes of a comparison's findings.
const (
	Compared = "compared"  // one load's Cells, by their ratios to the baseline
	Keep     = "keep"      // Cells of one route; Pin is the CPU placement that decides
	Avoid    = "avoid"     // as Keep; What is what to do instead
	Varies   = "varies"    // as Keep
	Open     = "uncertain" // as Keep

	OverIPv6   = "over-ipv6"   // Ratios to the same paths over IPv4
	Tuned      = "tuned"       // Ratios to the modes without tunes
	AgainstLab = "against-lab" // Ratios to the lab's models of the modes

	Limited       = "limited"        // the throughput of all Cells, by the same party or link
	HiddenByLink  = "hidden-by-link" // as Limited: the throughput of several modes shows no difference
	OnlyMeasured  = "only-measured"  // nothing else was
	OnlyResult    = "only-result"    // all else failed or was skipped
	MostlyPacing  = "mostly-pacing"  // N of Of verdicts are unclear, mostly for that reason
	Relayed       = "relayed"        // What carries each packet, of at most N bytes (0: not known)
	LeverHelps    = "lever-helps"    // What, on Cells
	LeverHarms    = "lever-harms"    // as LeverHelps
	LeverSame     = "lever-same"     // as LeverHelps
	LeverUnclear  = "lever-unclear"  // as LeverHelps
	WithoutRelay  = "without-relay"  // how a container of mode What does without one
	TokensFaster  = "tokens-faster"  // no Price of a response is as large as a published one
	TokensSlower  = "tokens-slower"  // all Prices are
	TokensUnclear = "tokens-unclear" // some may be
	TokensLate    = "tokens-late"    // by a published stall, over Cells
	TokensInTime  = "tokens-in-time"
	OwnDelays     = "own-delays" // of the stream's load, in Values
)

// BusiestCPU names the largest share of a window, among OwnDelays, in which a thread ran.
const BusiestCPU = "busiest_cpu"

type study struct{ *analysis.Run }

// Judge judges a results file as a comparison.
func Judge(f *sample.File) *analysis.Report {
	j := study{analysis.Open(f)}
	r := j.Report()
	j.Sort(r.Cells)
	j.unpace(r.Cells)
	r.Found = j.findings(r)
	return r
}

func (j study) findings(r *analysis.Report) []analysis.Finding {
	if len(r.Cells) == 0 {
		return []analysis.Finding{{Code: analysis.NothingMeasured}}
	}
	out := j.besides(r, OverIPv6, j.overIPv4)
	shown, unsure := OfCells(r, len(out) > 0)
	out = append(out, shown...)
	out = append(out, j.relays(r)...)
	for _, from := range analysis.Placements(r.Cells) {
		out = append(out, j.streamed(r, from)...)
	}
	out = append(append(out, j.besides(r, Tuned, j.untuned)...),
		j.besides(r, AgainstLab, inLab)...)
	if len(out)+len(unsure) == 0 {
		out = []analysis.Finding{alone(r)}
	}
	if r.TooBusy() {
		// for the same reason
		out, unsure = slices.Insert(out, 0, analysis.Finding{Code: analysis.Busy}), nil
	}
	out = append(out, unsure...)
	return append(append(out, j.ownDelays()...), analysis.Finding{Code: analysis.AllWitnessed})
}

// alone returns why nothing is compared.
func alone(r *analysis.Report) analysis.Finding {
	f := analysis.Finding{Code: OnlyMeasured}
	if len(r.Failed)+len(r.Skipped) > 0 {
		f.Code = OnlyResult
	}
	for i := range r.Cells {
		f.Cells = append(f.Cells, i)
	}
	return f
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

// besides returns a finding for each path, over all its loads, with its ratios to the cell that
// other returns. name is the other cell in the ratios; other returns "" if there is none.
func (j study) besides(r *analysis.Report, code string,
	other func(sample.Cell) (c sample.Cell, name string)) (out []analysis.Finding) {
	at := map[sample.Cell]int{} // a cell without its load -> index in out
	for i, s := range j.Series {
		c, name := other(s.Cell)
		b := slices.IndexFunc(j.Series, func(o *analysis.Series) bool { return o.Cell == c })
		if name == "" || s.Cell.Control || b < 0 || j.Failed(i) || j.Failed(b) {
			continue
		}
		x := j.Against(i, b, analysis.Primary(s.Load), name)
		if x.N == 0 {
			continue
		}
		path := s.Cell
		path.Load = ""
		k, ok := at[path]
		if !ok {
			k = len(out)
			at[path], out = k, append(out, analysis.Finding{Code: code})
		}
		out[k].Cells = append(out[k].Cells, r.At(s.Cell))
		out[k].Ratios = append(out[k].Ratios, x)
	}
	return out
}

func (j study) untuned(c sample.Cell) (sample.Cell, string) {
	if c.Tune == "" || j.unpaced(c) || j.remedy(c) {
		return c, ""
	}
	c.Tune = ""
	return c, analysis.Label(c)
}

func (j study) overIPv4(c sample.Cell) (sample.Cell, string) {
	m, _ := mode.Find(c.Mode)
	r, ok := m.Route(c.From, c.To)
	if !ok || !r.OnRequest() {
		return c, ""
	}
	c.To = r.To.Over4()
	return c, "IPv4"
}

// inLab returns the lab's model of a cell of another backend, to show how well the lab models it.
func inLab(c sample.Cell) (sample.Cell, string) {
	if c.On == sample.Lab {
		return c, ""
	}
	c.On = sample.Lab
	return c, "the lab"
}
