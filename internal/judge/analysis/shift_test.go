package analysis_test

import (
	"math"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// A change is the quotient of the ratios beside it, also where only one run has slices.
func TestChangeIsTheQuotientOfItsRatios(t *testing.T) {
	sliced := newSlicedRun(t, four(workload.Bulk)...).epochs(8, 40, 40, 30, 18).File
	whole := newSlicedRun(t, four(workload.Bulk)...).epochs(8, 40, 41, 33, 20).File
	few := newSlicedRun(t, four(workload.Bulk)...).epochs(1, 40, 41, 33, 20).File
	for k := range few.Visits {
		few.Visits[k].Slices = nil
	}
	for name, now := range map[string]*sample.File{"slices": whole, "rounds": few} {
		runs := analysis.Runs{Old: analysis.Open(sliced), New: analysis.Open(now)}
		x, ok := runs.Ratio(analysis.Match{Old: 2, New: 2}, workload.Throughput)
		if want := x.New.Median / x.Old.Median; !ok || math.Abs(x.Median/want-1) > 1e-9 ||
			x.Low > x.Median || x.High < x.Median {
			t.Errorf("%s: %+v, want %g", name, x, want)
		}
	}
}
