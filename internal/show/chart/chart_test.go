package chart

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/difference"
	"github.com/bridgetoll/bridgetoll/internal/judge/ladder"
	"github.com/bridgetoll/bridgetoll/internal/judge/mesh"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

func comparison(t *testing.T) judge.Report {
	cells := append(judgetest.Trio(mode.Bridge, "bulk"), judgetest.Trio(mode.Bridge, "rr")...)
	r := judgetest.New(t, cells...).Rounds(
		12, judgetest.Noisy([]float64{0.001, 0.002, 0.003, 0.001, 0.002, 0.003}, 40, 40, 30, 20, 20,
			25),
		func(v *sample.Visit) {
			v.Hops = []sample.HopReading{{Kind: "veth", Name: "veth0", Where: "machine A",
				After: sample.Counters{ForwardBytes: 1_000_000, BackwardBytes: 500}}}
		})
	r.File.Header.Plan.Same = 0.03
	return judge.Judge(r.File)
}

// varying has a mode whose rounds lie far apart.
func varying(t *testing.T) *analysis.Report {
	rates := []float64{0.4, 44, 6, 1}
	cells := append(judgetest.Trio(mode.Bridge, "bulk"),
		judgetest.HostCell(mode.PublishNAT, "bulk"))
	return judge.Judge(judgetest.New(t, cells...).Rounds(12, func(round, cell int) float64 {
		return []float64{40, 40, rates[round%len(rates)], 30}[cell]
	}).File).Base()
}

// A dot would be a median that describes few rounds.
func TestVaryingRowHasARange(t *testing.T) {
	rows := Cells(varying(t))[0].Charts[0].Spec.(intervals).Rows
	i := slices.IndexFunc(rows, func(r intervalRow) bool { return r.Varies })
	if len(rows) != 3 || i < 0 || rows[i].Label != "bridge" || *rows[i].Low > 0.02 ||
		*rows[i].High < 1 {
		t.Errorf("%+v", rows)
	}
}

func climbed(t *testing.T) *ladder.Report { return climbedUnder(t, "rr") }

func climbedUnder(t *testing.T, load string) *ladder.Report {
	var cells []sample.Cell
	for i, r := range mode.Climb(mode.FromHost, "", []mode.Name{mode.Bridge}) {
		c := judgetest.Cell(r.Mode, mode.FromHost, r.To, load)
		if cells = append(cells, c); i == 0 {
			cells = append(cells, judgetest.Control(c))
		}
	}
	xs := []float64{20, 20, 22, 25, 27, 30, 33, 36}
	r := judgetest.New(t, cells...)
	r.File.Header.Plan.Study, r.File.Header.Plan.Baseline = sample.StudyLadder, cells[0].Name()
	r.Rounds(8, judgetest.Steady(xs[:len(cells)]...))
	return ladder.Judge(r.File)
}

func crowds(t *testing.T) judge.Report {
	var cells []sample.Cell
	for _, n := range []int{1, 4, 16} {
		for _, c := range judgetest.Trio(mode.Bridge, "bulk") {
			c.Shape = sample.Shape{Servers: 1, Clients: n, Procs: 1}
			cells = append(cells, c)
		}
	}
	r := judgetest.New(t, cells...)
	r.File.Header.Plan.Study = sample.StudyScale
	for i := range r.File.Header.Paths {
		r.File.Header.Paths[i].Servers, r.File.Header.Paths[i].Clients = 1, cells[i].Shape.Clients
	}
	r.Rounds(8, judgetest.Steady(40, 40, 30, 40, 40, 30, 40, 40, 30), func(v *sample.Visit) {
		n := r.File.Header.Plan.Cells[v.Cell].Shape.Clients
		for range n {
			v.Rates = append(v.Rates, []float64{float64(v.Server.Received) / float64(n)})
		}
	})
	return judge.Judge(r.File)
}

// The third of three nodes is slow.
func cluster() *mesh.Mesh {
	x := func(v float64) *float64 { return &v }
	m := &mesh.Mesh{Sweeps: 3, Nodes: []mesh.Node{
		{Node: sample.Node{Name: "a"}}, {Node: sample.Node{Name: "b"}},
		{Node: sample.Node{Name: "c"}}}}
	for i, ratio := range []float64{1, 1.01, 1.8} {
		m.Nodes[i].Effects = map[string]mesh.Effect{
			workload.LatencyP50: {Ratio: ratio, Low: x(0.9 * ratio), High: x(1.1 * ratio), Of: 2,
				Slow: 0}}
	}
	m.Metrics = map[string]mesh.Metric{workload.LatencyP50: {
		Load: "rr", Unit: "s", Median: 80e-6, Links: 3,
		Matrix: [][]*float64{{nil, x(50e-6), x(90e-6)}, {x(50e-6), nil, x(80e-6)},
			{x(90e-6), x(80e-6), nil}},
		Slow: [][]bool{{false, false, true}, {false, false, true}, {true, true, false}}}}
	return m
}

func chartOf(t *testing.T, groups []document.ChartGroup, title string) document.Chart {
	t.Helper()
	for _, c := range all(groups) {
		if strings.HasPrefix(c.Title, title) {
			return c
		}
	}
	t.Fatalf("no chart %q", title)
	return document.Chart{}
}

func all(groups []document.ChartGroup) (out []document.Chart) {
	for _, g := range groups {
		for _, c := range g.Charts {
			if c.Kind != "" {
				out = append(out, c)
			}
		}
	}
	return out
}

func TestChartsOfAComparison(t *testing.T) {
	r := comparison(t).Base()
	v := Cells(r)
	rows := chartOf(t, v, "Throughput, against host").Spec.(intervals).Rows
	if len(rows) != 2 || rows[0].Value != 1 || rows[0].Low != nil ||
		math.Abs(rows[1].Value-0.75) > 0.01 ||
		rows[1].Verdict != "worse" || *rows[1].Low > rows[1].Value ||
		*rows[1].High < rows[1].Value {
		t.Errorf("intervals %+v", rows)
	}
	strip := chartOf(t, v, "Throughput by round, Gbit/s").Spec.(strips)
	if len(strip.Rows) != 2 || len(strip.Rows[1].Points) != 12 ||
		strip.Rows[1].Points[0] != [2]float64{1, 29.91} || strip.Baseline != "host" {
		t.Errorf("strips %+v", strip)
	}
	curves := chartOf(t, v, "Latency by percentile").Spec.(lines)
	// Ten of the 24,000 trips lie beyond 99.95 %, and five beyond 99.98 %.
	if last := curves.Series[1].Points; last[len(last)-1][0] != 99.95 ||
		math.Abs(last[4][1]-25) > 0.1 {
		t.Errorf("curve %+v", last)
	}
	party := chartOf(t, v, "CPU time per byte by party").Spec.(stacks)
	// 0.4 s of the client in 40 Gbit are 0.08 s/GB.
	if x := party.Rows[0].Values; math.Abs(x[0]-0.08) > 0.001 || math.Abs(x[1]-0.04) > 0.001 ||
		x[2] != 0 || math.Abs(x[3]-0.04) > 0.001 {
		t.Errorf("parties %v", x)
	}
	cpus := chartOf(t, v, "The machine's CPUs").Spec.(stacks)
	if x := cpus.Rows[0].Values; len(cpus.Rows) != 4 || x[0] != 10 || x[2] != 40 || x[9] != 50 {
		t.Errorf("CPUs %+v", cpus.Rows)
	}
	if p := paths(r); len(p) != 2 || len(p[0].Paths[0].Guards)+len(p[0].Paths[0].Hops) != 1 {
		t.Errorf("paths %+v", p)
	}
}

func TestChartsOfALadder(t *testing.T) {
	v := Ladder(climbed(t))
	rows := chartOf(t, v, "Median latency, part by part").Spec.(falls).Rows
	if len(rows) < 3 || rows[0].Below != nil || math.Abs(rows[0].To-20) > 0.1 {
		t.Fatalf("bars %+v", rows)
	}
	for i, r := range rows[1:] {
		if r.Below == nil || rows[*r.Below].To != r.From || *r.Below > i || r.To < r.From {
			t.Errorf("bar %+v", r)
		}
	}
	for load, chart := range map[string][2]string{"rr": {"Median latency, part by part", "price, µs"},
		"bulk": {"Throughput, part by part", "ratio to that"}} {
		c := chartOf(t, Ladder(climbedUnder(t, load)), chart[0])
		if got := c.Table.Columns[2].Title(); got != chart[1] {
			t.Errorf("%s: the price's head is %q, want %q", load, got, chart[1])
		}
	}
}

func TestChartsOfScaling(t *testing.T) {
	spec := chartOf(t, Crowds(crowds(t).Base()), "Total throughput").Spec.(growths)
	if len(spec.Shapes) != 3 || len(spec.Series) != 2 || len(spec.Series[1].Points) != 3 ||
		math.Abs(spec.Series[1].Points[2].Value-30) > 0.1 {
		t.Errorf("%+v", spec)
	}
	for title, head := range map[string]string{"Total throughput": "median, Gbit/s",
		"Fairness": "median"} {
		if got := chartOf(t, Crowds(crowds(t).Base()), title).Table.Columns[1].Title(); got != head {
			t.Errorf("%s: the head is %q, want %q", title, got, head)
		}
	}
}

func TestChartsOfAMesh(t *testing.T) {
	v := Mesh(cluster())
	spec := chartOf(t, v, "Round trips between nodes, µs").Spec.(heats)
	if len(spec.Cells) != 6 || spec.Cells[1] != (heat{0, 2, 90, 1}) {
		t.Errorf("%+v", spec)
	}
	if rows := chartOf(t, v, "Nodes: round trips").Spec.(intervals).Rows; len(rows) != 3 ||
		rows[2].Value != 1.8 {
		t.Errorf("%+v", rows)
	}
}

func TestNothingToDraw(t *testing.T) {
	without := &analysis.Report{Measured: analysis.Measured{
		Cells: []analysis.Cell{{Cell: sample.Cell{Mode: "host", Load: "rr"}}}}}
	for name, groups := range map[string][]document.ChartGroup{
		"no cells": Cells(&analysis.Report{}),
		"no mesh":  Mesh(&mesh.Mesh{}), "a cell without figures": Cells(without)} {
		if drawn := all(groups); len(drawn) > 0 {
			t.Errorf("%s: %+v", name, drawn)
		}
	}
}

func TestFigures(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{threeDigits(0), "0.000"}, {threeDigits(0.12345), "0.123"}, {threeDigits(1.2345), "1.23"},
		{threeDigits(12.345), "12.3"}, {threeDigits(999.9), "1000"},
		{threeDigits(123456), "123456"},
		{scaleFor("s", 43e-6).text(43.26e-6), "43.3 µs"}, {scaleFor("s", 0.5).text(0.5), "500 ms"},
		{scaleFor("bit/s", 3e10).text(3e10), "30.0 Gbit/s"},
		{scaleFor("s/B", 1e-9).text(0.4e-9), "0.400 s/GB"}, {scaleFor("bit/s", 0).unit, "kbit/s"},
		{humane(999, "B"), "999 B"}, {humane(1_234_567, "B"), "1.23 MB"},
		{humane(1234, "packets"), "1.23 k packets"}, {humane(0, ""), "0"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
	for _, x := range []float64{0, math.NaN(), math.Inf(1), -1.23456, 29.9149} {
		if got := fourDigits(x); math.IsNaN(got) || math.Abs(got) > 30 {
			t.Errorf("fourDigits(%v) is %v", x, got)
		}
	}
}

// The bridge costs more at the last two request sizes.
func sweeps(t *testing.T) judge.Report {
	s := &sample.Sweep{Axis: "request", Unit: "B",
		Points: []sample.Point{{Name: "1", Value: 1}, {Name: "1400", Value: 1400},
			{Name: "16k", Value: 16384}}}
	var cells []sample.Cell
	var loads []sample.Load
	for _, p := range s.Points {
		loads = append(loads, sample.Load{Kind: workload.RR, Point: p.Name, Window: 1})
		for _, c := range judgetest.Trio(mode.Bridge, workload.RR) {
			c.Point = p.Name
			cells = append(cells, c)
		}
	}
	r := judgetest.New(t, cells...)
	p := &r.File.Header.Plan
	p.Study, p.Sweep, p.Loads, p.Same = sample.StudySweep, s, loads, 0.03
	r.Rounds(12, judgetest.Steady(20, 20, 20.1, 20, 20, 24, 20, 20, 30))
	return judge.Judge(r.File)
}

func TestChartsOfASweep(t *testing.T) {
	v := Curves(sweeps(t).Base())
	c := chartOf(t, v, "Median latency by request size, against host")
	spec := c.Spec.(growths)
	if c.Kind != "scaling" || spec.Line == nil || *spec.Line != 1 || spec.Band == nil ||
		len(spec.Shapes) != 3 || len(spec.Series) != 1 {
		t.Fatalf("%+v", spec)
	}
	for i, want := range []float64{1.005, 1.2, 1.5} {
		p := spec.Series[0].Points[i]
		if p.Shape != spec.Shapes[i] || !judgetest.Near(p.Value, want) || p.Low == nil {
			t.Errorf("point %d is %+v, want %g", i, p, want)
		}
	}
	if row := c.Table.Rows[1]; row.Cells[0].Text != "bridge at 1400" ||
		row.Cells[1].Text != "120 %" || row.Cells[3].Text != "costs" {
		t.Errorf("%+v", row)
	}
	own := chartOf(t, v, "Median latency by request size")
	for _, c := range all(v) {
		if c.Title == "Median latency by request size" {
			own = c
		}
	}
	if spec := own.Spec.(growths); spec.Line != nil || len(spec.Series) != 2 {
		t.Errorf("%+v", spec)
	}
}

// The bridge was slower in the second run.
func changed(t *testing.T) *difference.Report {
	file := func(bridge float64) *sample.File {
		cells := append(judgetest.Trio(mode.Bridge, workload.Bulk),
			judgetest.Trio(mode.Bridge, workload.RR)...)
		r := judgetest.New(t, cells...).Rounds(
			12, judgetest.Noisy([]float64{0.001, 0.002, 0.003, 0.001, 0.002, 0.003}, 40, 40,
				40*bridge, 20, 20, 25))
		r.File.Header.Plan.Same = 0.03
		r.File.Header.Started = time.Date(2026, 11, 23, 5, 4, 0, 0, time.UTC)
		r.File.Header.Environment.Host = "web1"
		return r.File
	}
	r, err := difference.Judge(difference.Input{Name: "old.jsonl", File: file(0.8)},
		difference.Input{Name: "new.jsonl", File: file(0.6)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestChartsOfADifference(t *testing.T) {
	v := Difference(changed(t))
	c := chartOf(t, v.Groups, "Throughput: the new run against the old one")
	spec := c.Spec.(intervals)
	if len(spec.Rows) != 2 || spec.Line == nil || spec.Band == nil {
		t.Fatalf("%+v", spec)
	}
	if r := spec.Rows[0]; r.Label != "host" || r.Text != "baseline" || r.Value != 1 {
		t.Errorf("the baseline is %+v", r)
	}
	if r := spec.Rows[1]; r.Label != "bridge" || math.Abs(r.Value-0.75) > 0.01 ||
		r.Verdict != "worse" || r.Figure != "80 % → 60 %" || r.Low == nil {
		t.Errorf("the bridge is %+v", r)
	}
	if want := "old.jsonl, 2026-11-23 05:04 UTC, on web1 → new.jsonl, 2026-11-23 05:04 UTC, on web1"; v.Lede != want {
		t.Errorf("the head has %q, want %q", v.Lede, want)
	}
}

func TestHead(t *testing.T) {
	base := comparison(t).Base()
	if p := Run(base, "Title", "toll compare", nil); p.Command != "toll compare" || p.Lede != "" {
		t.Errorf("of a file that does not say: %q, %q", p.Command, p.Lede)
	}
	base.Command = []string{"compare", "bridge", "--from", "host,container", "--wire",
		"it's 1 Gbit/s", ""}
	base.Started, base.Environment.Host = time.Date(2026, 11, 25, 18, 40, 9, 0, time.UTC), "web1"
	v := Run(base, "Title", "toll compare", nil)
	if want := `toll compare bridge --from host,container --wire 'it'\''s 1 Gbit/s' ''`; v.Command != want {
		t.Errorf("the command is %q, want %q", v.Command, want)
	}
	if want := "2026-11-25 18:40 UTC · on web1"; v.Lede != want {
		t.Errorf("the head has %q, want %q", v.Lede, want)
	}
}

// Rows have the label that a user can type, Docker's words, figure and ratio. No row may be
// missing.
func TestRowsOfRatios(t *testing.T) {
	r := comparison(t)
	for i := range r.Base().Cells {
		if c := &r.Base().Cells[i]; c.Load == workload.RR {
			delete(c.Metrics, workload.CPUPerTrip)
			if m := c.Metrics[workload.LatencyP99]; !c.Baseline {
				m.Ratio = nil
				c.Metrics[workload.LatencyP99] = m
			}
			c.CPU, c.CPUs = analysis.CPUSplit{Unit: c.CPU.Unit}, nil
			if c.Baseline {
				c.CPU.Client, c.CPUs = 1e-6, []analysis.CPUUse{{Idle: 1}}
			}
		}
	}
	v := Cells(r.Base())
	row := chartOf(t, v, "Throughput, against host").Spec.(intervals).Rows[1]
	if row.Label != "bridge" || row.Docker == "" || row.Figure != "30.0 Gbit/s" {
		t.Errorf("%+v", row)
	}
	missing := 0
	for _, c := range all(v) {
		if s, is := c.Spec.(stacks); is {
			if last := s.Rows[len(s.Rows)-1]; last.Label == "bridge" && last.Text == notMeasured {
				missing++
			}
		}
	}
	if missing != 2 {
		t.Errorf("%d charts of CPU time say that the bridge's was not measured", missing)
	}
	cell := r.Base().Cells[0]
	for want, m := range map[string]analysis.Metric{notMeasured: {},
		"no ratio": {Rounds: []float64{1}}} {
		cell.Baseline = false
		if row, entry := ratioRow(cell, m, scale{1, ""}); !row.None || row.Text != want ||
			entry[4] != want || entry[3] != "" {
			t.Errorf("%+v, %q", row, entry)
		}
	}
}

// One interval would squeeze the others, and one row has no value.
func cutChart() document.Chart {
	one, wide, narrow := 1.0, 40.0, 0.7
	s := intervals{Line: &one, Axis: "ratio to host",
		Rows: []intervalRow{{Label: "host", Value: 1, Text: "baseline"},
			{Label: "bridge", Value: 0.8, Text: "0.80"},
			{Label: "native", Value: 1.1, Low: &narrow, High: &wide, Text: "1.1"},
			{Label: "far", Value: 60, Text: "60"},
			{Label: "none", None: true, Value: 1, Text: notMeasured}}}
	s.cut()
	return document.Chart{Kind: "interval", Title: "Cut", Spec: s}
}

func TestLimits(t *testing.T) {
	for _, x := range []struct {
		name         string
		values, ends []float64
		want         *[2]float64
	}{
		{"nothing", nil, nil, nil},
		{"nothing far", []float64{1, 0.8, 1.4}, []float64{0.7, 1.5}, nil},
		{"a proxy", []float64{1, 1.24, 1.4, 1.41, 3.88}, nil, nil},
		{"all the same", []float64{1, 1.001, 1.05}, []float64{0.98, 1.08}, nil},
		{"a usual interval", []float64{1, 0.93}, []float64{0.77, 1.1}, nil},
		{"a wide interval", []float64{1, 1.5}, []float64{0.9, 30}, &[2]float64{0.9, 2}},
		{"an end beside the axis", []float64{1, 1.5}, []float64{0.9, 2.03}, nil},
		{"both ends", []float64{1, 1.5}, []float64{-4, 30}, &[2]float64{0.5, 2}},
		{"a far value", []float64{1, 1.1, 1.2, 60}, []float64{0.9, 1.3, 59, 61},
			&[2]float64{0.9, 1.375}},
	} {
		got := limits(1, leastFar, x.values, x.ends)
		if (got == nil) != (x.want == nil) ||
			got != nil && (math.Abs(got[0]-x.want[0]) > 1e-9 || math.Abs(got[1]-x.want[1]) > 1e-9) {
			t.Errorf("%s: %v, want %v", x.name, got, x.want)
		}
	}
	if s := cutChart().Spec.(intervals); s.Limits == nil || s.Limits[1] > 2 || s.cutNote() == "" {
		t.Errorf("%+v", s)
	}
	if top := topOf([]float64{20, 25}, 100); top == nil || *top != 50 {
		t.Errorf("%v", top)
	}
	if top := topOf([]float64{20, 25}, 60); top != nil {
		t.Errorf("%v", *top)
	}
}

// The unit of work is the load's, and CPU time of which no party is known is not divided.
func TestPartiesOfRoutes(t *testing.T) {
	cell := analysis.Cell{Cell: sample.Cell{Mode: "direct", Load: workload.SQL},
		CPU: analysis.CPUSplit{Unit: "s", Rest: 0.01}}
	sql := workload.Of(sample.Load{Kind: workload.SQL})
	if c, ok := partyChart([]analysis.Cell{cell}, sql); ok {
		t.Errorf("%+v", c)
	}
	cell.CPU.Client = 1e-9 // what a second digit of 0.000 would be
	if c, ok := partyChart([]analysis.Cell{cell}, sql); ok {
		t.Errorf("not to be seen: %+v", c)
	}
	cell.On, cell.CPU.Client = sample.OnEndpoint, 0.002
	c, ok := partyChart([]analysis.Cell{cell}, sql)
	if !ok || c.Title != "CPU time per page by party" || c.Table.Columns[0].Title() != "route, ms" {
		t.Errorf("%t, %q", ok, c.Title)
	}
}
