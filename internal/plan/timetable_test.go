package plan

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func timetables(t *testing.T) map[string]sample.Plan {
	long := slicedBulk
	long.Slice = 1
	two := func(r *Request) {
		r.From, r.On = []mode.Placement{mode.FromHost, mode.FromContainer},
			[]string{"lab", "docker"}
	}
	return map[string]sample.Plan{
		"default": sliced(t, nil, slicedBulk),
		"baseline-only": sliced(t, func(r *Request) {
			r.Modes = []mode.Name{mode.Host}
		}, slicedBulk),
		"groups": sliced(t, two, slicedRR),
		"all": sliced(t, func(r *Request) {
			two(r)
			r.Modes = mode.Names()
			r.Tunes = []mode.Tunes{"mtu=9000", "gro=on"}
		},
			slicedBulk),
		"long-slices": sliced(t, nil, long),
		"no-baseline": {Epoch: 0.1, Baseline: "host", Loads: []sample.Load{slicedRR},
			Cells: []sample.Cell{{Mode: "bridge", Load: "rr"}, {Mode: "routed", Load: "rr"}}},
	}
}

func epochOf(p sample.Plan, known []bool, round int) Timetable {
	return Epoch(p, unshuffled(p)[0].Cells, Pace{Known: known}, round)
}

func TestEpochIsInOrder(t *testing.T) {
	for name, p := range timetables(t) {
		t.Run(name, func(t *testing.T) {
			l := p.Loads[0]
			tt := epochOf(p, nil, 3)
			free := int64(0)
			for i, s := range slices.Concat(tt.Slots, tt.Windows) {
				if s.Start < free || s.End <= s.Start {
					t.Fatalf("slot %d from %d to %d: free from %d", i, s.Start, s.End, free)
				}
				if s.Measured() && (s.From <= s.Start || s.To >= s.End) {
					t.Errorf("slot %d measures from %d to %d of %d to %d", i, s.From, s.To, s.Start,
						s.End)
				}
				if want := ns(l.Slice); i < len(tt.Slots) && s.Measured() && s.To-s.From != want {
					t.Errorf("slice %d measures %d ns, want %d", i, s.To-s.From, want)
				}
				if want := ns(l.Window); i >= len(tt.Slots) &&
					(s.To-s.From != want || s.From-s.Start != ns(l.Warmup)) {
					t.Errorf("window %+v, want %d ns", s, want)
				}
				free = s.End + ns(rest)
			}
			if last := tt.Windows[len(tt.Windows)-1]; tt.Length < last.End {
				t.Errorf("it is over at %d, the last window at %d", tt.Length, last.End)
			}
		})
	}
}

func TestEpochHasEveryCell(t *testing.T) {
	for name, p := range timetables(t) {
		t.Run(name, func(t *testing.T) {
			tt := epochOf(p, nil, 0)
			type has struct{ runIns, slices, windows int }
			got := make([]has, len(p.Cells))
			for _, s := range tt.Slots {
				h := &got[s.Cell]
				switch {
				case s.Measured():
					h.slices++
				case h.slices > 0:
					t.Errorf("cell %d has a slice before its run-in", s.Cell)
				default:
					h.runIns++
				}
			}
			for _, s := range tt.Windows {
				got[s.Cell].windows++
			}
			for i, h := range got {
				least := leastCycles
				if p.Cells[i].Name() == p.Baseline && p.Cells[i].Tune == "" {
					least /= 2 // it takes turns with the control
				}
				if h.runIns != 1 || h.windows != 1 || h.slices < least {
					t.Errorf("cell %s has %+v", show(p.Cells[i]), h)
				}
			}
		})
	}
}

func TestEpochKeepsTheBaselineNear(t *testing.T) {
	for name, p := range timetables(t) {
		if name == "no-baseline" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			isBase := func(c sample.Cell) bool {
				return c.Name() == p.Baseline && c.Tune == "" && !c.Placebo
			}
			group := func(c sample.Cell) string { return string(c.From) + c.On }
			last := map[string]int{} // slot of a group's baseline
			control := map[string]bool{}
			for i, s := range epochOf(p, nil, 5).Slots {
				c := p.Cells[s.Cell]
				if !s.Measured() {
					continue
				}
				was, ok := last[group(c)]
				if !isBase(c) {
					if !ok || i-was > 3 {
						t.Fatalf("slice %d of %s: the baseline's was %d", i, show(c), was)
					}
					continue
				}
				if ok && control[group(c)] == c.Control {
					t.Errorf("slice %d is of %s again", i, show(c))
				}
				last[group(c)], control[group(c)] = i, c.Control
			}
		})
	}
}

func TestEpochKeepsGroupsTogether(t *testing.T) {
	p := timetables(t)["groups"]
	tt := epochOf(p, nil, 0)
	groups := map[string]bool{}
	for _, c := range p.Cells {
		groups[string(c.From)+c.On] = true
	}
	changes, cells := 0, 0
	before, leads := "", map[string]bool{}
	for _, s := range tt.Slots {
		if !s.Measured() {
			continue
		}
		c := p.Cells[s.Cell]
		cells++
		if g := string(c.From) + c.On; g != before {
			changes++
			before = g
			leads[g] = true
		}
	}
	cycles := slicesOf(tt, 0) // a mode has one slice in each
	if len(groups) != 4 || len(leads) != 4 || changes > 4*cycles || cells < 10*changes/2 {
		t.Errorf("%d groups change %d times in %d cycles of %d slices in all", len(groups), changes,
			cycles, cells)
	}
}

func slicesOf(tt Timetable, cell int) int {
	n := 0
	for _, s := range tt.Slots {
		if s.Measured() && s.Cell == cell {
			n++
		}
	}
	return n
}

// A known cell gives two thirds of its slices to the others, except in the first cycles.
func TestEpochOfKnownCells(t *testing.T) {
	p := timetables(t)["default"]
	p.Epoch = 3
	index := func(m mode.Name) int {
		return slices.IndexFunc(p.Cells, func(c sample.Cell) bool {
			return c.Mode == m && !c.Control
		})
	}
	known := make([]bool, len(p.Cells))
	bridge, native, host := index("bridge"), index("native"), index("host")
	known[bridge], known[host] = true, true
	before, after := epochOf(p, nil, 0), epochOf(p, known, 0)
	n, others := slicesOf(after, bridge), slicesOf(after, native)
	if want := others + 2*leastCycles; 3*n < want-3 || 3*n > want+3 {
		t.Errorf("the known cell has %d slices, others %d", n, others)
	}
	if others <= slicesOf(before, native) {
		t.Errorf("others have %d slices, before one was known %d", others, slicesOf(before, native))
	}
	if base := slicesOf(after, host); base < others/2 {
		t.Errorf("the baseline has %d slices, others %d", base, others)
	}
	if len(after.Windows) != len(p.Cells) {
		t.Errorf("%d windows of %d cells", len(after.Windows), len(p.Cells))
	}
	for i := range known {
		known[i] = true
	}
	if all := epochOf(p, known, 0); slicesOf(all, bridge) == 0 || slicesOf(all, host) == 0 {
		t.Error("where all are known some have no slice")
	}
	p.Epoch = 0.1
	short := epochOf(p, known, 0)
	for cell, c := range p.Cells {
		if n := slicesOf(short, cell); n < leastCycles {
			t.Errorf("in a short epoch %+v has %d slices: too few to be of use", c, n)
		}
	}
}

func TestEpochLength(t *testing.T) {
	span := func(tt Timetable) float64 {
		first := slices.IndexFunc(tt.Slots, Slot.Measured)
		return float64(tt.Windows[0].Start-tt.Slots[first].Start) / 1e9
	}
	for _, tt := range []struct {
		epoch, slice float64
		least, most  float64
	}{
		{1, 0.004, 0.95, 1.05},
		{5, 0.004, 4.95, 5.05},
		// a cycle is 1.1 s or 1.2
		{5.0, 0.1, 4.4, 5.6}, {5.3, 0.1, 4.7, 5.9}, {5.6, 0.1, 5, 6.2}, {5.9, 0.1, 5.3, 6.5},
		{0.001, 0.004, 0.15, 0.35}, // 4 cycles of 7 to 10 slots of 6.7 ms
		{1, 0.5, 4 * 8 * 0.5, 4 * 11 * 0.52},
	} {
		t.Run(fmt.Sprint(tt.epoch, "/", tt.slice), func(t *testing.T) {
			l := slicedBulk
			l.Slice = tt.slice
			p := sliced(t, func(r *Request) { r.Epoch = tt.epoch }, l)
			if got := span(epochOf(p, nil, 0)); got < tt.least || got > tt.most {
				t.Errorf("slices take %v s, want %v to %v", got, tt.least, tt.most)
			}
		})
	}
}

func TestEpochIsDrawnBySeedAndRound(t *testing.T) {
	p := timetables(t)["default"]
	other := p
	other.Seed++
	first := epochOf(p, nil, 0)
	if !reflect.DeepEqual(first, epochOf(p, nil, 0)) {
		t.Error("the same seed and round give two timetables")
	}
	if reflect.DeepEqual(first.Slots, epochOf(p, nil, 1).Slots) ||
		reflect.DeepEqual(first.Slots, epochOf(other, nil, 0).Slots) {
		t.Error("another round or seed gives the same timetable")
	}
	// Any version must reproduce the timetables from a file's seed.
	p = sample.Plan{Seed: 2445519278, Epoch: 0.05, Baseline: "host", Loads: []sample.Load{slicedRR}}
	for _, c := range []sample.Cell{{Mode: "host"}, {Mode: "host", Control: true}, {Mode: "native"},
		{Mode: "bridge"},
		{Mode: "publish-nat"}, {Mode: "publish-proxy"}} {
		c.Load = "rr"
		p.Cells = append(p.Cells, c)
	}
	tt := epochOf(p, nil, 2)
	var got strings.Builder
	for _, s := range tt.Slots {
		fmt.Fprint(&got, s.Cell, " ")
	}
	fmt.Fprintf(&got, "| ")
	for _, s := range tt.Windows {
		fmt.Fprint(&got, s.Cell, " ")
	}
	fmt.Fprintf(&got, "| %d", tt.Length)
	want := "3 2 1 5 0 4 0 3 4 2 1 5 0 3 5 4 1 2 0 4 3 2 1 5 0 3 4 2 1 5 | 3 4 0 1 2 5 | 1067832792"
	if got.String() != want {
		t.Errorf("got %s, want %s", &got, want)
	}
}

// Round trips depend on where in the tick they are, so each cell must be everywhere about equally
// often.
func TestSlicesMeetAllPartsOfATick(t *testing.T) {
	modes := []mode.Name{mode.Host}
	for _, more := range mode.Names()[:12] {
		if more == mode.Host {
			continue
		}
		modes = append(modes, more)
		for _, length := range []float64{0.3, 2} {
			p := sliced(t, func(r *Request) { r.Modes, r.Epoch = slices.Clone(modes), length }, slicedRR)
			checkPartsOfTicks(t, p, epochOf(p, nil, 1))
			checkPartsOfTicks(t, p, epochOf(p, []bool{2: true}, 1))
		}
	}
}

func checkPartsOfTicks(t *testing.T, p sample.Plan, tt Timetable) {
	t.Helper()
	for _, hz := range []time.Duration{100, 250, 300, 1000} {
		tick := time.Second / hz
		parts := make([][]float64, len(p.Cells))
		for _, s := range tt.Slots {
			if s.Measured() {
				parts[s.Cell] = append(parts[s.Cell], float64(s.From%int64(tick))/float64(tick))
			}
		}
		for cell, of := range parts {
			if len(of) < 6 {
				continue
			}
			slices.Sort(of)
			gap := 1 + of[0] - of[len(of)-1]
			for i := range of[1:] {
				gap = max(gap, of[i+1]-of[i])
			}
			if most := min(0.85, 9/float64(len(of))); gap > most {
				t.Errorf("%d cells: %s: none of %d slices begins in %.2f of a tick of %v, want at "+
					"most %.2f", len(p.Cells), show(p.Cells[cell]), len(of), gap, tick, most)
			}
		}
	}
}
