package analysis

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

func TestPairUp(t *testing.T) {
	at := func(n int, x float64) SliceValue { return SliceValue{n, x} }
	for _, tt := range []struct {
		name           string
		mine, partners []SliceValue
		centre, worth  float64
	}{
		{"between-two", []SliceValue{at(5, 10)}, []SliceValue{at(4, 1), at(7, 3)}, 8, 4.0 / 3},
		{"nearest-before-and-after", []SliceValue{at(5, 10)},
			[]SliceValue{at(1, 99), at(4, 1), at(7, 3), at(9, 99)}, 8, 4.0 / 3},
		{"only-before", []SliceValue{at(5, 10)}, []SliceValue{at(2, 99), at(4, 1)}, 9, 1},
		{"only-after", []SliceValue{at(5, 10)}, []SliceValue{at(6, 1), at(7, 99)}, 9, 1},
		// The variance of the mean of two pairs that share their only partner is 1/2 + 1 times a
		// slice's, and a pair's is 2.
		{"one-partner-for-two", []SliceValue{at(5, 10), at(6, 10)}, []SliceValue{at(4, 1)}, 9,
			4.0 / 3},
		{"own-partners", []SliceValue{at(1, 3), at(11, 5)},
			[]SliceValue{at(0, 1), at(2, 1), at(10, 1), at(12, 1)}, 3, 8.0 / 3},
		{"nothing", nil, []SliceValue{at(1, 1)}, 0, 0},
		{"nobody", []SliceValue{at(1, 1)}, nil, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := PairUp(tt.mine, tt.partners)
			if e.N == 0 && tt.worth == 0 {
				return
			}
			if math.Abs(e.Centre-tt.centre) > 1e-9 || math.Abs(e.Worth-tt.worth) > 1e-9 ||
				e.N < len(tt.mine) {
				t.Errorf("got %+v, want %g, worth %g", e, tt.centre, tt.worth)
			}
		})
	}
}

// A busy machine occasionally slows a slice by much. Equal cells must not look different because of
// that, however their slices are paired.
func TestSkewedNoiseIsNoDifference(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 3))
	sum := 0.0
	const epochs = 200
	for range epochs {
		var mine, partners []SliceValue
		for n := range 40 {
			slow := 0.05 * rng.NormFloat64()
			if rng.Float64() < 0.35 {
				slow += 0.5
			}
			if s := (SliceValue{n, slow}); n%2 == 0 {
				partners = append(partners, s)
			} else {
				mine = append(mine, s)
			}
		}
		sum += PairUp(mine, partners).Centre / epochs
	}
	if math.Abs(sum) > 0.01 {
		t.Errorf("equal cells differ by %.1f %%", 100*sum)
	}
}

func TestControlsSlicesAreTheBaselines(t *testing.T) {
	cell := sample.Cell{Mode: mode.Host, Load: workload.Bulk}
	control, bridge, native := cell, cell, cell
	control.Control, bridge.Mode, native.Mode = true, mode.Bridge, mode.Native
	f := &sample.File{Header: sample.Header{
		Plan: sample.Plan{Baseline: cell.Name(), Loads: []sample.Load{{Kind: workload.Bulk}},
			Cells: []sample.Cell{cell, control, bridge, native}}}}
	for i, gbit := range []float64{30, 30, 28, 30} {
		v := sample.Visit{Turn: sample.Turn{Cell: i},
			Proof: sample.Proof{Witness: sample.Witness{OK: true}}, Slices: &sample.Slices{}}
		for k := range 30 {
			v.Slices.Slots = append(v.Slices.Slots, 4*k+(i+k)%4)
			v.Slices.Rates = append(v.Slices.Rates, gbit*1e9/8*(1+0.01*float64((k*7+i)%5)))
		}
		f.Visits = append(f.Visits, v)
	}
	j := Open(f)
	for _, tt := range []struct {
		i, b int
		want []int
	}{{2, 0, []int{0, 1}}, {1, 0, []int{0}}, {2, 3, []int{3}}, {0, 3, []int{3}}, {3, 2, []int{2}}} {
		if got := j.partners(tt.i, tt.b); !slices.Equal(got, tt.want) {
			t.Errorf("cell %d against cell %d: partners %v, want %v", tt.i, tt.b, got, tt.want)
		}
	}
	whole := j.epoch(2, 0, 0, workload.Throughput)
	j.Series[1].slices = nil
	if half := j.epoch(2, 0, 0, workload.Throughput); half.Worth >= whole.Worth {
		t.Errorf("with half of the partners the pairs are worth %.1f, with all %.1f", half.Worth,
			whole.Worth)
	}
}
