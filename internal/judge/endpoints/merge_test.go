package endpoints

import (
	"math"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

func TestMergeLeavesOutMovedClocks(t *testing.T) {
	moved := judgetest.Evidence([7]float64{1: 60}, [7]float64{1: 2000}, [7]float64{})
	moved.ClockMoved = 0.5
	visits := []*sample.Visit{{}, {}, {}}
	visits[1].Evidence = moved
	if e := merge(visits); e != nil {
		t.Errorf("%+v", e)
	}
	visits[2].Evidence = judgetest.Evidence([7]float64{1: 70}, [7]float64{1: 900}, [7]float64{1: 30})
	for _, v := range []*sample.Visit{{}, {}} {
		v.Evidence = judgetest.Evidence([7]float64{1: 70}, [7]float64{1: 900}, [7]float64{})
		v.Evidence.Waits = []sample.EvidenceWait{{Cause: sample.WaitNagle, Tokens: 2, Sum: 0.5}}
		visits = append(visits, v)
	}
	if e := merge(visits[2:]); len(e.Waits) != 1 || e.Waits[0].Tokens != 4 || e.Waits[0].Sum != 1 {
		t.Errorf("%+v", e.Waits)
	}
	visits[3].Evidence.HopsUnsure = true
	for i, v := range visits[2:] {
		v.Evidence.End = 1 + 0.1*float64(i)
		v.Evidence.Window, v.Evidence.Hops[0].Stopped = 2, 0.5
		v.Evidence.Parts[1].Last = 0.9 + 0.01*float64(i)
		v.Evidence.Parts[1].Excess = 0.03 + 0.01*float64(i)
	}
	e := merge(append(visits[2:], visits[2:]...))
	if math.Abs(e.End-1.1) > 1e-9 {
		t.Errorf("the mean end: %v", e.End)
	}
	if !e.HopsUnsure || e.Window != 12 || e.Hops[0].Stopped != 3 || e.Hops[1].Stopped != 0 ||
		e.Parts[1].LastHalf < 0.005 || e.Parts[1].LastHalf > 0.015 || e.Parts[1].FirstHalf > 1e-9 {
		t.Errorf("%+v", e)
	}
	// Of six visits' 30, 40 and 50 ms, twice each; Student's t of 5 degrees of freedom is 2.571.
	if want := 6 * 2.571 * math.Sqrt(80e-6/6); math.Abs(e.Parts[1].Excess-0.24) > 1e-9 ||
		math.Abs(e.Parts[1].ExcessHalf-want) > 1e-4 || e.Parts[4].ExcessHalf != 0 {
		t.Errorf("slow gaps: %+v, want ±%v", e.Parts, want)
	}
	if e := merge(visits[2:]); e.Parts[1].LastHalf != 0 || e.Parts[1].ExcessHalf != 0 {
		t.Errorf("an interval of three visits: %+v", e)
	}
	visits = visits[:3]
	if e := merge(visits); e.Responses != 1 || e.Parts[1].Last != 0.9 || e.Excess != 0.030 ||
		!e.Writes || e.HopsUnsure {
		t.Errorf("%+v", e)
	}
}

// Visits during which captures lost packets say nothing, unless they are most of all.
func TestMergeLeavesOutLoss(t *testing.T) {
	for name, tt := range map[string]struct {
		lost                    []int
		responses, sum, leftOut int
	}{
		"none":      {[]int{0, 0, 0}, 3, 0, 0},
		"one":       {[]int{0, 5, 0}, 2, 0, 1},
		"half":      {[]int{0, 5, 0, 5}, 2, 0, 2},
		"most":      {[]int{5, 0, 5}, 3, 10, 0},
		"all":       {[]int{5, 1}, 2, 6, 0},
		"of no one": {nil, 0, 0, 0},
	} {
		var visits []*sample.Visit
		for _, n := range tt.lost {
			e := judgetest.Evidence([7]float64{1: 60}, [7]float64{1: 900}, [7]float64{})
			e.Lost = n
			v := &sample.Visit{}
			v.Evidence = e
			visits = append(visits, v)
		}
		e := merge(visits)
		if tt.lost == nil {
			if e != nil {
				t.Errorf("%s: %+v", name, e)
			}
			continue
		}
		if e.Responses != tt.responses || e.Lost != tt.sum || e.LeftOut != tt.leftOut {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// A route's hops may differ between visits: a part is of those hops over which most tokens were
// followed, and tokens of other visits were not followed over them.
func TestMergeOfOtherHops(t *testing.T) {
	visit := func(hops ...string) *sample.Visit {
		e := judgetest.Evidence([7]float64{1: 60}, [7]float64{1: 200, 4: 700}, [7]float64{})
		e.Hops = nil
		for i, name := range hops {
			e.Hops = append(e.Hops, sample.EvidenceHop{Process: name, Port: 80, PID: i, Stopped: 0.5})
		}
		v := &sample.Visit{}
		v.Evidence = e
		return v
	}
	unseen := visit("auth", "vllm", "nginx")
	unseen.Evidence.Parts, unseen.Evidence.Matched, unseen.Evidence.ByID = nil, 0, 0
	again := visit("vllm", "nginx")
	again.Evidence.Hops[1].PID = 7
	coded := visit("vllm", "nginx")
	coded.Evidence.Matched, coded.Evidence.Hops[1].Unread = 0, "compresses its responses with br"
	for name, tt := range map[string]struct {
		visits   []*sample.Visit
		hop      string
		n, of    int
		stopped  float64
		verdicts bool
	}{
		"unseen": {[]*sample.Visit{unseen, visit("vllm", "nginx")}, "nginx", 24, 48, 0.5, false},
		"most": {[]*sample.Visit{visit("nginx", "x"), again, visit("vllm", "nginx")}, "nginx", 48, 72,
			1, false},
		"compressed":    {[]*sample.Visit{visit("vllm", "nginx"), coded}, "nginx", 24, 48, 1, false},
		"started again": {[]*sample.Visit{visit("vllm", "nginx"), again}, "nginx", 48, 48, 1, true},
	} {
		e := merge(tt.visits)
		p := Division{e}.Part(sample.EvidenceRelay)
		if _, ok := e.Clear(); ok != tt.verdicts || e.Hops[p.Hop].Process != tt.hop ||
			e.Hops[p.Hop].Stopped != tt.stopped || e.Matched != tt.n || e.Tokens != tt.of ||
			math.Abs(p.Last-0.7) > 1e-9 {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// Slow gaps in three rounds may be chance, those in four are not.
func TestSlowGapsOfFewRounds(t *testing.T) {
	for _, rounds := range []int{5, 8, 12, 30} {
		for slow, want := range map[int]bool{1: false, 3: false, 4: true, rounds: true} {
			var visits []*sample.Visit
			for i := range rounds {
				excess := [7]float64{}
				if i < slow {
					excess[5] = 900
				}
				v := &sample.Visit{}
				v.Evidence = judgetest.Evidence([7]float64{1: 60}, [7]float64{1: 1000}, excess)
				visits = append(visits, v)
			}
			if got := len(Division{merge(visits)}.Blamed()) == 1; got != want {
				t.Errorf("slow gaps in %d of %d rounds: blamed is %t", slow, rounds, got)
			}
		}
	}
}

// A server's interval over its routes is unknown if that of a route is.
func TestPooledIntervalNeedsAllRoutes(t *testing.T) {
	for name, tt := range map[string]struct {
		excess, half float64 // of the second route
		want         float64
	}{
		"both":            {0.4, 0.3, 0.25},
		"too few rounds":  {0.4, 0, 0},
		"a quick route":   {0, 0, 0.2},
		"hardly any gaps": {1e-3, 0, 0},
	} {
		cells := make([]analysis.Cell, 2)
		for i := range cells {
			cells[i] = analysis.Cell{Cell: sample.Cell{Load: workload.Chat},
				Evidence: judgetest.Evidence([7]float64{1: 60}, [7]float64{1: 1000}, [7]float64{})}
		}
		a, b := &cells[0].Evidence.Parts[1], &cells[1].Evidence.Parts[1]
		a.Excess, a.ExcessHalf, b.Excess, b.ExcessHalf = 0.4, 0.4, tt.excess, tt.half
		poolServers(cells)
		for _, c := range cells {
			if math.Abs(c.Evidence.ServerSlow-(0.4+tt.excess)/2) > 1e-9 ||
				math.Abs(c.Evidence.ServerSlowHalf-tt.want) > 1e-9 {
				t.Errorf("%s: %g ±%g, want ±%g", name, c.Evidence.ServerSlow,
					c.Evidence.ServerSlowHalf, tt.want)
			}
		}
	}
}

func TestIntervalsByEpochs(t *testing.T) {
	e := judgetest.Evidence([7]float64{}, [7]float64{1: 0.09, 4: 0.12}, [7]float64{})
	e.Parts[1].Epochs = []float64{90e-6, 91e-6, 89e-6, 90e-6} // too few
	e.Parts[4].Epochs = []float64{119e-6, 121e-6, 118e-6, 122e-6, 120e-6}
	got := inEpochs(e)
	// Student's t of 4 degrees of freedom is 2.776.
	if want := 2.776 * math.Sqrt(2.5e-12/5); math.Abs(got.Parts[4].LastHalf-want) > 1e-9 ||
		got.Parts[1].LastHalf != 0 || got.Parts[4].Epochs != nil {
		t.Errorf("%+v, want ±%v", got.Parts, want)
	}
	if e.Parts[4].LastHalf != 0 || len(e.Parts[4].Epochs) != 5 {
		t.Errorf("the file's evidence changed: %+v", e.Parts[4])
	}
}

func TestMergeGPU(t *testing.T) {
	visits := make([]*sample.Visit, 4)
	for i := range visits {
		visits[i] = &sample.Visit{}
	}
	if g := mergeGPU(visits); g != nil {
		t.Errorf("%+v", g)
	}
	visits[1].GPU = &sample.GPU{Device: "0", Engine: "gfx", Slow: sample.GPUTime{Gaps: 1, Time: 2,
		Busy: 1}}
	visits[3].GPU = &sample.GPU{Device: "0", Engine: "compute", Over: 1,
		Rest: sample.GPUTime{Time: 3, Busy: 3}}
	want := sample.GPU{Over: 1, Slow: visits[1].GPU.Slow, Rest: visits[3].GPU.Rest}
	if g := mergeGPU(visits); g == nil || *g != want {
		t.Errorf("%+v", g)
	}
}

func TestMiddleResponseOfVisits(t *testing.T) {
	visit := func(last float64) *sample.Visit {
		e := judgetest.Evidence([7]float64{}, [7]float64{}, [7]float64{})
		e.Response = &sample.EvidenceResponse{Tokens: 2, Written: []float64{0, 0},
			Read: []float64{0.1, last}}
		v := &sample.Visit{}
		v.Evidence = e
		return v
	}
	without, moved := visit(0), visit(0.2)
	without.Evidence.Response, moved.Evidence.ClockMoved = nil, 1
	e := merge([]*sample.Visit{visit(0.9), without, visit(0.3), moved, visit(0.5)})
	if e.Response == nil || e.Response.Read[1] != 0.5 {
		t.Errorf("%+v", e.Response)
	}
	if e := merge([]*sample.Visit{without}); e.Response != nil {
		t.Errorf("%+v", e.Response)
	}
}
