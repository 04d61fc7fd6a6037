package sweep

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

func TestKnee(t *testing.T) {
	bands := map[rune]analysis.Band{'c': analysis.Beyond, 'w': analysis.Within,
		'?': analysis.Unknown}
	for _, c := range []struct {
		points string
		shape  Shape
	}{
		{"ccccc", Every},
		{"cc?cc", Every},
		{"wwwww", None},
		{"wwccc", From},
		{"ww?cc", From},
		{"w?c?c", From},
		{"wwcc?", From},
		{"?wccc", From},
		{"??ccc", From},
		{"ccwww", UpTo},
		{"c?w?w", UpTo},
		{"?cw?w", UpTo},
		{"cc???", UpTo},
		{"?cc??", From},
		{"cwcww", Several},
		{"wcw?w", Several},
		{"ww???", Unclear},
		{"?????", Unclear},
	} {
		var points []Point
		for i, b := range c.points {
			points = append(points, Point{Point: fmt.Sprint(i + 1), Band: bands[b]})
		}
		k := KneeOf(points)
		if k.Shape != c.shape {
			t.Errorf("%s is %s; want %s", c.points, k.Shape, c.shape)
		}
	}
	if k := KneeOf(nil); k.Shape != None {
		t.Errorf("no points: %+v", k)
	}
}

func sweepOf(t testing.TB, points int, slice float64) *judgetest.Run {
	s := &sample.Sweep{Axis: "streams"}
	var cells []sample.Cell
	var loads []sample.Load
	for i := range points {
		name := fmt.Sprint(i + 1)
		s.Points = append(s.Points, sample.Point{Name: name, Value: float64(i + 1)})
		loads = append(loads, sample.Load{Kind: workload.Bulk, Point: name, Streams: i + 1,
			Window: 1, Slice: slice})
		for _, c := range judgetest.Trio(mode.Bridge, workload.Bulk) {
			c.Point = name
			cells = append(cells, c)
		}
	}
	r := judgetest.New(t, cells...)
	p := &r.File.Header.Plan
	p.Study, p.Sweep = sample.StudySweep, s
	p.Loads, p.Same = loads, 0.03
	return r
}

func TestCurves(t *testing.T) {
	const points = 4
	r := sweepOf(t, points, 0)
	ratios := []float64{1, 0.99, 0.9, 0.5}
	rng := rand.New(rand.NewPCG(3, 4))
	r.Rounds(12, func(_, cell int) float64 {
		x := 10 * (1 + 0.002*rng.NormFloat64())
		if cell%3 == 2 {
			x *= ratios[cell/3]
		}
		return x
	})
	got := Judge(r.File)
	if len(got.Curves) != 1 || len(got.Curves[0].Points) != points {
		t.Fatalf("curves: %+v", got.Curves)
	}
	c := got.Curves[0]
	if k := c.Knee; k.Shape != From || k.Beside != "2" || k.At != "3" {
		t.Errorf("the knee is %+v", k)
	}
	want := []analysis.Finding{{Code: Knees, From: mode.FromHost, On: "lab", Load: workload.Bulk,
		Rows: []int{0}}, {Code: analysis.AllWitnessed}, {Code: Meaning}}
	if !reflect.DeepEqual(got.Found, want) {
		t.Errorf("found %+v, want %+v", got.Found, want)
	}
	var order []string
	for _, c := range got.Cells {
		order = append(order, c.Name()+" "+string(c.Band))
	}
	if s := strings.Join(order, ", "); s != "host at 1 , host at 2 , host at 3 , host at 4 , bridge at 1 within, bridge at 2 within, bridge at 3 costs, bridge at 4 costs" {
		t.Errorf("cells in the order %s", s)
	}
}

func TestIPv6(t *testing.T) {
	for _, six := range []bool{true, false} {
		s := &sample.Sweep{Axis: "streams"}
		var cells []sample.Cell
		var loads []sample.Load
		for i := range 2 {
			name := fmt.Sprint(i + 1)
			s.Points = append(s.Points, sample.Point{Name: name, Value: float64(i + 1)})
			loads = append(loads, sample.Load{Kind: workload.Bulk, Point: name, Streams: i + 1,
				Window: 1})
			over := judgetest.Cell(mode.Bridge, mode.FromHost, mode.ToContainer6, workload.Bulk)
			for _, c := range append(judgetest.Trio(mode.Bridge, workload.Bulk),
				over)[:3+map[bool]int{true: 1}[six]] {
				c.Point = name
				cells = append(cells, c)
			}
		}
		r := judgetest.New(t, cells...)
		p := &r.File.Header.Plan
		p.Study, p.Sweep = sample.StudySweep, s
		p.Loads, p.Same = loads, 0.03
		r.Rounds(12, func(_, cell int) float64 {
			return []float64{40, 40, 40, 20}[cell%(len(cells)/2)]
		})
		got := Judge(r.File)
		if is := got.Found[0].Code == KneesOverIPv4; is != six ||
			six && (got.OverIPv4[0].Knee.Shape != Every ||
				got.OverIPv4[0].Label != "bridge :ctr6") {
			t.Errorf("IPv6 %v: %+v, %+v", six, got.Found, got.OverIPv4)
		}
	}
}

func TestCurveWithoutAPoint(t *testing.T) {
	r := sweepOf(t, 3, 0)
	r.Rounds(9, judgetest.Steady(10, 10, 5, 10, 10, 5, 10, 10, 5), func(v *sample.Visit) {
		if v.Cell == 3 {
			v.Failure = "broken"
		}
	})
	got := Judge(r.File)
	if len(got.Curves) != 1 || len(got.Curves[0].Points) != 2 ||
		got.Curves[0].Knee.Shape != Every || len(got.Failed) == 0 {
		t.Errorf("curves %+v, failed %+v", got.Curves, got.Failed)
	}
}

func TestNoPoints(t *testing.T) {
	r := sweepOf(t, 2, 0)
	r.File.Header.Plan.Sweep = nil
	if got := Judge(r.Rounds(2, judgetest.Steady(1, 1, 1, 1, 1, 1)).File); len(got.Curves) != 0 ||
		len(got.Found) != 1 || got.Found[0].Code != analysis.AllWitnessed {
		t.Errorf("%+v, %+v", got.Curves, got.Found)
	}
	r = sweepOf(t, 2, 0) // only the baseline has results
	alone := Judge(r.Rounds(2, judgetest.Steady(1, 1, 1, 1, 1, 1), func(v *sample.Visit) {
		if v.Cell%3 == 2 {
			v.Failure = "broken"
		}
	}).File)
	if alone.Found[0].Code != NoCurve {
		t.Errorf("%+v", alone.Found)
	}
}

// At most 5 % of noisy flat curves may have a knee, even if every point is at the edge of what is
// called the same.
func TestFlatCurvesHaveNoKnee(t *testing.T) {
	const (
		curves, points = 200, 5
		// the rate, and the effect of chance in this number of curves
		allowed = 0.05 + 0.03
	)
	for _, c := range []struct {
		name   string
		slices bool
		truth  float64
	}{{"rounds-equal", false, 1}, {"rounds-at-the-edge", false, 0.97}, {"slices-equal", true, 1},
		{"slices-at-the-edge", true, 0.97}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(7, uint64(len(c.name))))
			knees, costs := 0, 0
			for range curves {
				f := noisyFile(t, rng, points, c.slices, c.truth)
				j := analysis.Open(f)
				var at []Point
				for i, s := range j.Series {
					if b, ok := j.BaselineOf(i); ok && b != i && !s.Cell.Control {
						at = append(at, Point{Point: s.Cell.Point,
							Band: j.BandOf(i, b, workload.Throughput, confidence(points))})
					}
				}
				if len(at) != points {
					t.Fatalf("%d points", len(at))
				}
				k := KneeOf(at)
				if len(k.Costs) > 0 {
					costs++
				}
				if k.Shape == From || k.Shape == UpTo {
					knees++
				}
			}
			t.Logf("%d of %d curves have a point that costs more, %d a knee", costs, curves, knees)
			if share := float64(costs) / curves; share > allowed {
				t.Errorf("%.1f %% of flat curves have a point that costs more", 100*share)
			}
		})
	}
}

func TestStepIsFound(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for _, sliced := range []bool{false, true} {
		f := noisyFile(t, rng, 4, sliced, 1, 1, 0.8, 0.8)
		if k := Judge(f).Curves[0].Knee; k.Shape != From || k.At != "3" || k.Beside != "2" {
			t.Errorf("sliced %v: %+v", sliced, k)
		}
	}
}

// truth has the mode's shares of the baseline's throughput by point. The last one is that of all
// further points.
func noisyFile(t testing.TB, rng *rand.Rand, points int, sliced bool,
	truth ...float64) *sample.File {
	rounds, slice := 12, 0.
	if sliced {
		rounds, slice = 5, 0.004
	}
	r := sweepOf(t, points, slice)
	level := func(cell int) float64 {
		if cell%3 != 2 {
			return 1
		}
		return truth[min(cell/3, len(truth)-1)]
	}
	var drift float64
	r.Rounds(rounds, func(_, cell int) float64 {
		if cell%3 == 0 {
			drift = math.Exp(0.2 * rng.NormFloat64()) // of the machine, the same for neighbours
		}
		return 10 * drift * level(cell) * math.Exp(0.015*rng.NormFloat64())
	}, func(v *sample.Visit) {
		if !sliced {
			return
		}
		const n = 30
		// own is the effect of the epoch's processes and connections.
		own := math.Exp(0.012 * rng.NormFloat64() / math.Sqrt2)
		s := &sample.Slices{}
		for k := range n {
			s.Slots = append(s.Slots, 3*k+v.Cell%3)
			s.Rates = append(s.Rates, 1e9*level(v.Cell)*own*math.Exp(0.05*rng.NormFloat64()))
		}
		v.Slices = s
	})
	r.File.Header.Plan.Epoch = 1
	return r.File
}

func TestConfidenceIsShared(t *testing.T) {
	if got := []float64{confidence(1), confidence(5), confidence(0)}; !slices.Equal(got,
		[]float64{0.95, 0.99, 0.95}) {
		t.Errorf("%v", got)
	}
}
