package plan

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

var (
	slicedBulk = sample.Load{Kind: "bulk", Streams: 1, Warmup: 0.02, Window: 0.1, Slice: 0.004}
	slicedRR   = sample.Load{Kind: "rr", Options: sample.RROptions{
		Messages: sample.Messages{Request: 1, Reply: 1}}, Warmup: 0.02, Window: 0.1, Slice: 0.004}
	crr = sample.Load{Kind: "crr", Warmup: 0.05, Window: 0.25}
)

func sliced(t *testing.T, change func(*Request), loads ...sample.Load) sample.Plan {
	t.Helper()
	p, err := Make(request(func(r *Request) {
		r.Loads, r.Same, r.Epoch = loads, 0.03, 1
		if change != nil {
			change(r)
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// All sliced cells of a load share a turn, whatever their group.
func TestTurns(t *testing.T) {
	p := sliced(t, func(r *Request) {
		r.From = []mode.Placement{mode.FromHost, mode.FromContainer}
	}, slicedBulk, slicedRR, crr)
	firsts := map[string]bool{}
	for round := range 40 {
		turns := Turns(p, round)
		var cells []int
		epochs := map[string]int{}
		for _, turn := range turns {
			cells = append(cells, turn.Cells...)
			kinds := map[string]bool{}
			for _, c := range turn.Cells {
				kinds[p.Cells[c].Load] = true
			}
			kind := p.Cells[turn.Cells[0]].Load
			if len(kinds) != 1 || turn.Epoch != (kind != "crr") ||
				!turn.Epoch && len(turn.Cells) != 1 {
				t.Fatalf("round %d: turn %+v of %v", round, turn, kinds)
			}
			if turn.Epoch {
				epochs[kind]++
			}
		}
		if epochs["bulk"] != 1 || epochs["rr"] != 1 {
			t.Fatalf("round %d: epochs %v", round, epochs)
		}
		slices.Sort(cells)
		if len(cells) != len(p.Cells) || len(slices.Compact(cells)) != len(p.Cells) {
			t.Fatalf("round %d: the turns have the cells %v", round, cells)
		}
		firsts[fmt.Sprint(turns[0])] = true
	}
	if len(firsts) < 8 {
		t.Errorf("in 40 rounds only %d turns come first", len(firsts))
	}
}

func TestTurnsOfVisits(t *testing.T) {
	p := sample.Plan{Seed: 2445519278, Cells: make([]sample.Cell, 8)}
	for i, turn := range Turns(p, 1) {
		if want := []int{6, 3, 0, 4, 7, 2, 1, 5}[i]; turn.Epoch ||
			!slices.Equal(turn.Cells, []int{want}) {
			t.Errorf("turn %d is %+v, want a visit to %d", i, turn, want)
		}
	}
}

// A crowd is not sliced, though its load is.
func TestCrowdsAreVisited(t *testing.T) {
	p := sample.Plan{Epoch: 1, Loads: []sample.Load{slicedBulk},
		Cells: []sample.Cell{{Load: "bulk"}, {
			Load: "bulk", Shape: sample.Shape{Servers: 1, Clients: 2, Procs: 1}}}}
	for _, turn := range Turns(p, 0) {
		if len(turn.Cells) != 1 || turn.Epoch != (turn.Cells[0] == 0) {
			t.Errorf("turn %+v", turn)
		}
	}
	if got := LeastRounds(p); got != MinRounds {
		t.Errorf("%d rounds at least", got)
	}
}

func TestLeastRounds(t *testing.T) {
	for _, tt := range []struct {
		name  string
		loads []sample.Load
		want  int
	}{
		{"visits", []sample.Load{bulk, rr}, MinRounds},
		{"slices", []sample.Load{slicedBulk, slicedRR}, 1},
		{"both", []sample.Load{slicedBulk, crr}, MinRounds},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := sliced(t, nil, tt.loads...)
			if got := LeastRounds(p); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
			got, want := LeastTime(p), roundTime(p, FirstShare(p))+float64(tt.want-1)*RoundTime(p)
			if math.Abs(got-want) > 1e-9 {
				t.Errorf("least time %v, want %v", got, want)
			}
		})
	}
}

func TestRoundTimeOfEpochs(t *testing.T) {
	p := sliced(t, nil, slicedBulk, crr)
	var epoch, visits float64
	for _, turn := range Turns(p, 0) {
		if turn.Epoch {
			epoch = float64(Epoch(p, turn.Cells, Pace{}, 0).Length)/1e9 + epochOverhead
		} else {
			visits += crr.Warmup + crr.Window + visitOverhead
		}
	}
	if got := RoundTime(p); math.Abs(got-epoch-visits) > 1e-9 {
		t.Errorf("%v, want %v + %v", got, epoch, visits)
	}
	// 1 s of slices, then a run-in and a window for each of 8 cells.
	if least := 1 + 8*(runIn+0.12); epoch < least || epoch > least+0.6 {
		t.Errorf("an epoch of 8 cells takes %v s, at least %v", epoch, least)
	}
}

func TestMakeRefusesSlices(t *testing.T) {
	for _, tt := range []struct {
		want   string
		change func(*Request)
	}{
		{"load bulk: slice -1s: must not be negative", func(r *Request) { r.Loads[0].Slice = -1 }},
		{"load bulk: slice NaNs: must not be negative", func(r *Request) { r.Loads[0].Slice = math.NaN() }},
		{"load bulk: slices in an epoch of 0s: must be more than 0", func(r *Request) { r.Epoch = 0 }},
		{"load bulk: slices in an epoch of NaNs: must be more than 0", func(r *Request) { r.Epoch = math.NaN() }},
		{"same -0.1: must be from 0 to less than 1", func(r *Request) { r.Same = -0.1 }},
		{"same 1: must be from 0 to less than 1", func(r *Request) { r.Same = 1 }},
		{"same NaN: must be from 0 to less than 1", func(r *Request) { r.Same = math.NaN() }},
	} {
		_, err := Make(request(func(r *Request) {
			r.Loads, r.Same, r.Epoch = []sample.Load{slicedBulk}, 0.03, 1
			tt.change(r)
		}))
		if err == nil || err.Error() != tt.want {
			t.Errorf("error %v, want %q", err, tt.want)
		}
	}
	p := sliced(t, nil, slicedBulk)
	if p.Same != 0.03 || p.Epoch != 1 || p.Loads[0].Slice != 0.004 {
		t.Errorf("plan %+v", p)
	}
}
