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
}

// studies are all of them. A study is a package and a line here; a file of a study of a
// later toll is judged as the first.
var studies = []study{
	{"", func(f *sample.File) Report { return comparison.Judge(f) }, analysis.ToBaseline},
	{sample.StudyScale, func(f *sample.File) Report { return scale.Judge(f) }, analysis.ToBaseline},
	{sample.StudyLadder, func(f *sample.File) Report { return ladder.Judge(f) }, ladder.Partners},
	{sample.StudyEndpoints, func(f *sample.File) Report { return endpoints.Judge(f) }, analysis.ToBaseline},
	{sample.StudyAdvise, func(f *sample.File) Report { return advise.Judge(f) }, advise.Partners},
	{sample.StudySweep, func(f *sample.File) Report { return sweep.Judge(f) }, analysis.ToBaseline},
	{sample.StudyMesh, func(f *sample.File) Report { return mesh.Judge(f) }, analysis.ToBaseline},
}

func of(p sample.Plan) study {
	i := slices.IndexFunc(studies, func(s study) bool { return s.name == p.Study })
	return studies[max(0, i)]
}

// Judge judges a results file.
func Judge(f *sample.File) Report { return of(f.Header.Plan).judge(f) }

// Live judges a run of the plan while it is made.
func Live(p sample.Plan) *analysis.Live { return analysis.NewLive(p, of(p).partners) }
