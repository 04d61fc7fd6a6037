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
	{sample.StudyCompare, func(f *sample.File) Report {
		return comparison.Judge(f)
	}, analysis.ToBaseline, false, nil},
	{sample.StudyScale, func(f *sample.File) Report {
		return scale.Judge(f)
	}, analysis.ToBaseline, false, nil},
	{sample.StudyLadder, func(f *sample.File) Report {
		return ladder.Judge(f)
	}, ladder.Partners, true, nil},
	{sample.StudyEndpoints, func(f *sample.File) Report {
		return endpoints.Judge(f)
	}, analysis.ToBaseline, false, nil},
	{sample.StudyAdvise, func(f *sample.File) Report {
		return advise.Judge(f)
	}, advise.Partners, false, nil},
	{sample.StudySweep, func(f *sample.File) Report {
		return sweep.Judge(f)
	}, analysis.ToBaseline, false, nil},
	{sample.StudyMesh, func(f *sample.File) Report {
		return mesh.Judge(f)
	}, analysis.ToBaseline, false, mesh.Converged},
	{sample.StudyTrace, func(f *sample.File) Report {
		return trace.Judge(f)
	}, analysis.ToBaseline, false, nil},
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
