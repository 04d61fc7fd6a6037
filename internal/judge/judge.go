// Package judge turns a results file into a judged report, by the rules of the file's study. It
// needs only the file, so any machine can judge any run again.
package judge

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/advise"
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/comparison"
	"github.com/bridgetoll/bridgetoll/internal/judge/endpoints"
	"github.com/bridgetoll/bridgetoll/internal/judge/ladder"
	"github.com/bridgetoll/bridgetoll/internal/judge/mesh"
	"github.com/bridgetoll/bridgetoll/internal/judge/scale"
	"github.com/bridgetoll/bridgetoll/internal/judge/sweep"
	"github.com/bridgetoll/bridgetoll/internal/judge/trace"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Report is the judgement of a results file by its study. docs/results.md documents its JSON form.
type Report interface {
	// Base returns the part that all studies share.
	Base() *analysis.Report
	// Empty reports whether nothing has a result.
	Empty() bool
	// Complete reports whether everything planned has a result.
	Complete() bool
	// Tell sets the answer and the findings in words.
	Tell(a *analysis.Answer, findings []string)
}

type study struct {
	name  sample.Study
	judge func(*sample.File) Report
	// partners returns the cell that each cell is compared with during a run.
	partners analysis.Partners
	nameBoth bool // labels of ratios also name the partner
	// converged reports whether more visits to a mesh would change nothing; nil for other studies.
	converged func(sample.Plan, []sample.PairVisit) bool
}

// The first entry also judges files of unknown studies, which a later toll may have written.
var studies = []study{
	{sample.StudyCompare, by(comparison.Judge), analysis.ToBaseline, false, nil},
	{sample.StudyScale, by(scale.Judge), analysis.ToBaseline, false, nil},
	{sample.StudyLadder, by(ladder.Judge), ladder.Partners, true, nil},
	{sample.StudyEndpoints, by(endpoints.Judge), analysis.ToBaseline, false, nil},
	{sample.StudyAdvise, by(advise.Judge), advise.Partners, false, nil},
	{sample.StudySweep, by(sweep.Judge), analysis.ToBaseline, false, nil},
	{sample.StudyMesh, by(mesh.Judge), analysis.ToBaseline, false, mesh.Converged},
	{sample.StudyTrace, by(trace.Judge), analysis.ToBaseline, false, nil},
}

func by[R Report](judge func(*sample.File) R) func(*sample.File) Report {
	return func(f *sample.File) Report { return judge(f) }
}

func of(p sample.Plan) study {
	i := slices.IndexFunc(studies, func(s study) bool { return s.name == p.Study })
	return studies[max(0, i)]
}

// Judge judges a results file by the rules of its study.
func Judge(f *sample.File) Report { return of(f.Header.Plan).judge(f) }

// Converged returns a function that reports whether more visits to a mesh would change nothing, or
// nil for other plans.
func Converged(p sample.Plan) func(sample.Plan, []sample.PairVisit) bool { return of(p).converged }

// Live returns a judge that follows a run with this plan and these paths visit by visit.
func Live(h sample.Header) *analysis.Live {
	l := analysis.NewLive(h, of(h.Plan).partners)
	l.NameBoth = of(h.Plan).nameBoth
	return l
}

// SoFar judges the file of a run that is still going on. The report leaves out unvisited cells, and
// a missing end of the file is not an error.
func SoFar(f *sample.File) Report {
	if !f.Truncated {
		return Judge(f)
	}
	visited := make([]bool, len(f.Header.Plan.Cells))
	for _, v := range f.Visits {
		visited[v.Cell] = true
	}
	g := f.Keep(func(cell int) bool { return visited[cell] })
	g.Truncated = false
	return Judge(g)
}
