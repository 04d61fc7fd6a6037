// Package judge turns a results file into a judged report, by the rules of the file's study.
// It needs nothing but the file, so any machine can judge any run again.
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
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Report is what a study says of a results file. As JSON it is documented in
// docs/results.md.
type Report interface {
	// Base is what the reports of all studies have.
	Base() *analysis.Report
	// Empty reports whether nothing has a result, Complete whether all has.
	Empty() bool
	Complete() bool
}

// study judges the results files of one kind.
type study struct {
	name  string // as a plan has it
	judge func(*sample.File) Report
	// partners say what each cell's ratio is to while a run goes on.
	partners analysis.Partners
	// converged says of a mesh's visits that more would tell nothing new; nil: it is no mesh.
	converged func(sample.Plan, []sample.PairVisit) bool
}

// studies are all of them. A study is a package and a line here; a file of a study of a
// later toll is judged as the first.
var studies = []study{
	{"", func(f *sample.File) Report { return comparison.Judge(f) }, analysis.ToBaseline, nil},
	{sample.StudyScale, func(f *sample.File) Report { return scale.Judge(f) }, analysis.ToBaseline, nil},
	{sample.StudyLadder, func(f *sample.File) Report { return ladder.Judge(f) }, ladder.Partners, nil},
	{sample.StudyEndpoints, func(f *sample.File) Report { return endpoints.Judge(f) }, analysis.ToBaseline, nil},
	{sample.StudyAdvise, func(f *sample.File) Report { return advise.Judge(f) }, advise.Partners, nil},
	{sample.StudySweep, func(f *sample.File) Report { return sweep.Judge(f) }, analysis.ToBaseline, nil},
	{sample.StudyMesh, func(f *sample.File) Report { return mesh.Judge(f) }, analysis.ToBaseline, mesh.Converged},
}

func of(p sample.Plan) study {
	i := slices.IndexFunc(studies, func(s study) bool { return s.name == p.Study })
	return studies[max(0, i)]
}

// Judge judges a results file.
func Judge(f *sample.File) Report { return of(f.Header.Plan).judge(f) }

// Converged is what says of a mesh's visits, while it is measured, that more would tell nothing
// new; nil if the plan is no mesh's.
func Converged(p sample.Plan) func(sample.Plan, []sample.PairVisit) bool { return of(p).converged }

// Live judges a run of the plan while it is made.
func Live(p sample.Plan) *analysis.Live { return analysis.NewLive(p, of(p).partners) }
