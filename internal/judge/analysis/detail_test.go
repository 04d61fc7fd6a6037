package analysis_test

import (
	"math"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

func bridge(t *testing.T, load string, change func(*sample.Visit)) analysis.Cell {
	t.Helper()
	r := judgetest.New(t, judgetest.Trio(mode.Bridge, load)...).Rounds(
		6, judgetest.Steady(20, 20, 25), change)
	cells := analysis.Judge(r.File).Cells
	return cells[slices.IndexFunc(cells, func(c analysis.Cell) bool { return c.Mode == "bridge" })]
}

func TestLatencies(t *testing.T) {
	qs := bridge(t, "rr", func(*sample.Visit) {}).Latencies
	// 12,000 trips: twelve lie beyond 99.9 %, six beyond 99.95 %.
	if last := qs[len(qs)-1]; last.Percentile != 99.9 || math.Abs(last.Seconds-25e-6) > 0.1e-6 ||
		qs[0].Percentile != 1 {
		t.Errorf("%v", qs)
	}
	if qs := bridge(t, "bulk", func(*sample.Visit) {}).Latencies; qs != nil {
		t.Errorf("bulk has %v", qs)
	}
}

func TestCPUs(t *testing.T) {
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
	us := bridge(t, "bulk", func(v *sample.Visit) {
		v.Machine = append(v.Machine, sample.CPU{Idle: 1}, sample.CPU{ID: 1, Steal: 1, Idle: 3})
		v.Machines = []sample.MachineUse{{Name: "b", CPUs: 2}}
	}).CPUs
	if len(us) != 4 || !near(us[0].User, 0.1) || !near(us[0].System, 0.4) || us[0].Machine != "" ||
		us[2].Machine != "b" ||
		us[3].CPU != 1 || !near(us[3].Steal, 0.25) {
		t.Errorf("%+v", us)
	}
	us = bridge(t, "bulk", func(v *sample.Visit) {
		v.Machine = nil
		for i := range 100 {
			v.Machine = append(v.Machine, sample.CPU{ID: i, User: float64(i), Idle: 100})
		}
	}).CPUs
	if len(us) != 32 || us[0].CPU != 68 || us[31].CPU != 99 {
		t.Errorf("of 100 CPUs %+v", us)
	}
}

func TestCounted(t *testing.T) {
	reading := func(kind string, bytes uint64) sample.HopReading {
		return sample.HopReading{Kind: kind, Name: kind + "0", Where: "machine A",
			Before: sample.Counters{ForwardBytes: 7},
			After:  sample.Counters{ForwardBytes: 7 + bytes, Hits: 1}}
	}
	c := bridge(t, "bulk", func(v *sample.Visit) {
		if v.Hops = []sample.HopReading{reading("bridge", 1000), reading("veth", 2000), reading("proxy", 0)}; v.Round == 3 {
			v.Witness.OK = false
		}
	})
	want := []analysis.Counted{{Kind: "bridge", Name: "bridge0", Where: "machine A",
		ForwardBytes: 5000, Hits: 5},
		{Kind: "veth", Name: "veth0", Where: "machine A", ForwardBytes: 10000, Hits: 5},
		{Kind: "proxy", Name: "proxy0", Where: "machine A", Guard: true, Hits: 5}}
	if !slices.Equal(c.Counted, want) {
		t.Errorf("%+v", c.Counted)
	}
	if m := c.Metrics["throughput"]; !slices.Equal(m.At, []int{0, 1, 2, 4, 5}) ||
		len(m.Rounds) != 5 {
		t.Errorf("rounds %v at %v", m.Rounds, m.At)
	}
}
