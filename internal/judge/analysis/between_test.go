package analysis_test

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

func crowdCell(m mode.Name, s sample.Shape) sample.Cell {
	c := judgetest.Cell(m, mode.FromContainer, mode.ToContainer, "bulk")
	c.Shape = s
	return c
}

func TestBetween(t *testing.T) {
	one, four := sample.Shape{Servers: 1, Clients: 1, Procs: 1},
		sample.Shape{Servers: 1, Clients: 4, Procs: 1}
	host := judgetest.Cell(mode.Host, mode.FromContainer, mode.ToLoopback, "bulk")
	host.Shape = one
	cells := []sample.Cell{host, judgetest.Control(host), crowdCell(mode.Link, one),
		crowdCell(mode.OVS, one), crowdCell(mode.Link, four),
		judgetest.HostCell(mode.Native, "bulk")}
	f := judgetest.New(t, cells...).Rounds(
		6, judgetest.Noisy([]float64{0, 0.1, 0, 0, 0, 0}, 40, 40, 10, 5, 20, 40),
		func(v *sample.Visit) {
			if cells[v.Cell].Shape.Crowd() {
				v.Rates = [][]float64{{float64(v.Server.Received)}}
			}
		}).File
	p := analysis.Pair(f)
	anyone := func(c sample.Cell) sample.Cell { c.On = ""; return c }
	plain := crowdCell(mode.Link, sample.Shape{})
	for _, tt := range []struct {
		name     string
		of, to   analysis.Figure
		want     float64 // 0: none
		verdict  stats.Verdict
		labelled string
	}{
		{"two-modes", analysis.Figure{cells[3], workload.Throughput, 0},
			analysis.Figure{cells[2], workload.Throughput, 0}, 0.5, stats.Worse, "link"},
		{"any-backend", analysis.Figure{anyone(cells[3]), workload.Throughput, 0},
			analysis.Figure{anyone(cells[2]), workload.Throughput, 0}, 0.5, stats.Worse, "link"},
		{"one-of-each-is-no-crowd", analysis.Figure{cells[3], workload.Throughput, 0},
			analysis.Figure{plain, workload.Throughput, 0}, 0.5, stats.Worse, "link"},
		{"shared", analysis.Figure{cells[4], workload.Throughput, 4},
			analysis.Figure{cells[2], workload.Throughput, 1}, 0.5, stats.Worse, "link"},
		{"floor-of-the-load", analysis.Figure{cells[4], workload.Throughput, 2},
			analysis.Figure{cells[5], workload.Throughput, 1}, 0.25, stats.Worse, "native"},
		{"same", analysis.Figure{cells[2], workload.Throughput, 0},
			analysis.Figure{cells[2], workload.Throughput, 0}, 1, stats.Same, "link"},
		{"no-such-cell", analysis.Figure{crowdCell(mode.Pipework, one), workload.Throughput, 0},
			analysis.Figure{cells[2], workload.Throughput, 0}, 0, "", ""},
		{"no-such-metric", analysis.Figure{cells[3], workload.LatencyP50, 0},
			analysis.Figure{cells[2], workload.LatencyP50, 0}, 0, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, ok := p.Between(tt.of, tt.to)
			if ok != (tt.want > 0) || ok && (!judgetest.Near(r.Median, tt.want) ||
				r.Verdict != tt.verdict || r.To != tt.labelled || r.N != 6) {
				t.Errorf("got %+v %v, want %v %s to %s", r, ok, tt.want, tt.verdict, tt.labelled)
			}
		})
	}
}

// As in the row itself, the range of what varies decides, however well its median is known.
func TestBetweenOfWhatVaries(t *testing.T) {
	cells := judgetest.Trio(mode.Bridge, "bulk")
	rates := []float64{4, 80, 8, 60}
	byRounds := judgetest.New(t, cells...).Rounds(40, func(round, cell int) float64 {
		if cell == 2 {
			return rates[round%len(rates)]
		}
		return 40
	}).File
	bySlices := newSlicedRun(t, four("bulk")...).epochs(8, 40, 40, 30, 40).File
	for i := range bySlices.Visits {
		if v := &bySlices.Visits[i]; v.Cell == 2 {
			for k := range v.Slices.Rates {
				v.Slices.Rates[k] = rates[k%len(rates)] * 1e9 / 8
			}
		}
	}
	for name, f := range map[string]*sample.File{"rounds": byRounds, "slices": bySlices} {
		p := analysis.Pair(f)
		of := func(cell, share int) analysis.Figure {
			return analysis.Figure{Cell: f.Header.Plan.Cells[cell], Metric: workload.Throughput,
				Share: share}
		}
		x, ok := p.Between(of(2, 1), of(0, 1))
		if !ok || !x.Varies || x.Low > 0.2 || x.High < 1.4 || x.Verdict != stats.Unclear {
			t.Errorf("by %s: %+v", name, x)
		}
		if y, _ := p.Between(of(2, 2), of(0, 1)); !judgetest.Near(2*y.Low, x.Low) ||
			!judgetest.Near(2*y.High, x.High) || !judgetest.Near(2*y.Median, x.Median) {
			t.Errorf("by %s, half of it: %+v, want half of %+v", name, y, x)
		}
	}
}

func TestBetweenWithoutResult(t *testing.T) {
	cells := judgetest.Trio(mode.Bridge, "bulk")
	r := judgetest.New(t, cells...)
	r.File.Header.Plan.Skipped = []sample.Skip{{Mode: "netkit", Reason: "the kernel has no netkit"}}
	r.Rounds(6, judgetest.Steady(8, 8, 4), func(v *sample.Visit) {
		if v.Cell == 2 {
			v.Witness = sample.Witness{Evidence: "bridge: counted 0 bytes"}
		}
	})
	p := analysis.Pair(r.File)
	if x, ok := p.Between(analysis.Figure{Cell: cells[2], Metric: workload.Throughput}, analysis.Figure{Cell: cells[0], Metric: workload.Throughput}); ok {
		t.Errorf("an unwitnessed cell has the ratio %v", x)
	}
	for _, tt := range []struct {
		cell sample.Cell
		want string
	}{
		{cells[0], ""},
		{cells[2], "the path was not witnessed: bridge: counted 0 bytes"},
		{judgetest.HostCell(mode.Netkit, "bulk"), "the kernel has no netkit"},
		{judgetest.HostCell(mode.Native, "bulk"), ""},
	} {
		if got := p.Missing(tt.cell); (tt.want == "") != (got == "") ||
			got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.cell.Mode, got, tt.want)
		}
	}
}

func TestValue(t *testing.T) {
	host := judgetest.HostCell(mode.Host, "bulk")
	p := analysis.Pair(judgetest.New(t, host, judgetest.Control(host)).Rounds(
		6, judgetest.Noisy([]float64{0.1, 0.1}, 40, 40)).File)
	whole, ok := p.Value(analysis.Figure{Cell: host, Metric: workload.Throughput})
	if !ok || len(whole.Rounds) != 6 || whole.Low > whole.Median || whole.High < whole.Median {
		t.Fatalf("%+v %v", whole, ok)
	}
	half, _ := p.Value(analysis.Figure{Cell: host, Metric: workload.Throughput, Share: 2})
	if !judgetest.Near(half.Median*2, whole.Median) || !judgetest.Near(half.High*2, whole.High) ||
		!judgetest.Near(half.Rounds[5]*2, whole.Rounds[5]) {
		t.Errorf("half of %+v is %+v", whole, half)
	}
	if _, ok := p.Value(analysis.Figure{Cell: host, Metric: workload.LatencyP50}); ok {
		t.Error("bulk has a latency")
	}
}

func TestCPUTimeOfOtherVisits(t *testing.T) {
	host := judgetest.HostCell(mode.Host, "bulk")
	f := judgetest.New(t, host, judgetest.Control(host)).Rounds(
		6, judgetest.Noisy([]float64{0, 0}, 40, 40), func(v *sample.Visit) {
			if v.Machine = nil; v.Round > 0 { // the first visits have no counts
				v.Machine = []sample.CPU{{System: 1, Idle: 1}}
			}
		}).File
	got, ok := analysis.Pair(f).CPUTime(host)
	if !ok || len(got.CPUs) != 1 || len(got.All) != 1 || !judgetest.Near(got.CPUs[0].Idle, 0.5) {
		t.Errorf("%+v %v", got, ok)
	}
}

// The idle share is mpstat's, without waiting for I/O. The proxy's share is of one core.
func TestCPUTime(t *testing.T) {
	host := judgetest.HostCell(mode.Host, "bulk")
	f := judgetest.New(t, host, judgetest.Control(host)).Rounds(
		6, judgetest.Noisy([]float64{0, 0}, 40, 40), func(v *sample.Visit) {
			v.Elapsed = 2
			v.Machine = []sample.CPU{{User: 0.5, Nice: 0.5, Idle: 1},
				{ID: 1, System: 1, IOWait: 0.5, Idle: 0.5}}
			v.Proxy = &sample.ProxyUse{CPU: 2.4}
		}).File
	p := analysis.Pair(f)
	got, ok := p.CPUTime(host)
	if !ok || got.Idle == nil || got.Proxy == nil || !judgetest.Near(got.Idle.Median, 1.5/4) ||
		!judgetest.Near(got.Proxy.Median, 1.2) {
		t.Fatalf("%+v %v", got, ok)
	}
	if u := got.CPUs; len(u) != 2 || !judgetest.Near(u[0].Nice, 0.25) ||
		!judgetest.Near(u[0].User, 0.25) || !judgetest.Near(u[1].IOWait, 0.25) {
		t.Errorf("%+v", u)
	}
	if all := got.All; len(all) != 1 || !judgetest.Near(all[0].System, 0.25) ||
		!judgetest.Near(all[0].Idle, 1.5/4) {
		t.Errorf("all CPUs: %+v", all)
	}
	if _, ok := p.CPUTime(judgetest.HostCell(mode.Native, "bulk")); ok {
		t.Error("a cell that was not measured has CPU time")
	}
}
