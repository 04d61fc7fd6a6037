package chart

import (
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/judge/trace"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

// The bridge adds 4 µs in its own part, and takes 1.5 off another.
func traced() *trace.Report {
	µs := func(x, half float64, v stats.Verdict) analysis.Price {
		return analysis.Price{Unit: "s", Median: 1e-6 * x, Low: 1e-6 * (x - half),
			High: 1e-6 * (x + half), N: 4, Epochs: 4, Verdict: v}
	}
	row := func(name string, its, mine float64, v stats.Verdict) trace.Row {
		added := mine - its
		its, mine = 1e-6*its, 1e-6*mine
		return trace.Row{Name: name, Its: &its, Mine: &mine, Added: µs(added, 0.1, v),
			Epochs: []float64{1e-6 * (added - 0.1), 1e-6 * added, 1e-6 * (added + 0.1)}}
	}
	at := 0.0
	segment := func(reply bool, hop, device, where, row string, part sample.Part,
		took float64) trace.Segment {
		s := trace.Segment{SegmentKey: sample.SegmentKey{Reply: reply, Hop: hop, Device: device,
			Where: where, Part: part}, Row: row, At: 1e-6 * at, MidMean: 1e-6 * took}
		at += took
		return s
	}
	t := trace.Trace{Cell: analysis.Cell{Cell: judgetest.HostCell(mode.Bridge, "rr")},
		Label:   "bridge",
		Against: "host", Untraced: µs(2.6, 0.5, stats.Costs),
		Unattributed: µs(0.1, 0.6, stats.Unclear),
		Rows: []trace.Row{row("TCP and IP out", 4.2, 2.7, stats.Gains),
			row("bridge", 0, 4, stats.Costs), row("wake-ups", 17, 17, stats.Nothing)}}
	t.Segments = []trace.Segment{
		segment(false, "", "", "", "TCP and IP out", sample.PartOut, 2.7),
		segment(false, "bridge", "docker0", "machine A", "bridge", sample.PartBridge, 4),
		segment(false, "", "", "", "wake-ups", sample.PartWake, 17),
		segment(true, "", "", "", "TCP and IP out", sample.PartOut, 1),
		segment(true, "bridge", "docker0", "machine A", "bridge", sample.PartBridge, 2),
		segment(true, "", "", "", "TCP and IP out", sample.PartReturn, 1)}
	at = 0
	t.Its = []trace.Segment{
		segment(false, "", "", "", "TCP and IP out", sample.PartOut, 4.2),
		segment(false, "lo", "lo", "", "wake-ups", sample.PartWake, 17)}
	return &trace.Report{Traces: []trace.Trace{t,
		{Label: "refused", Refusal: trace.Refusal{Refused: trace.NoTrips}}}}
}

func TestChartsOfATrace(t *testing.T) {
	v := Trace(traced())
	if len(v) != 1 {
		t.Fatalf("%d groups: a refused cell has nothing to draw", len(v))
	}
	spec := chartOf(t, v, "A round trip").Spec.(trips)
	if len(spec.Trips) != 2 || spec.Trips[0].Label != "host" || !slices.Equal(spec.Pale, []int{2}) {
		t.Fatalf("%+v", spec)
	}
	if got := spec.Trips[0].Lanes; !slices.Equal(got, []string{"client", "lo"}) {
		t.Errorf("lanes %q", got)
	}
	one := spec.Trips[1]
	if !slices.Equal(one.Lanes, []string{"client", "bridge docker0, machine A", "server"}) {
		t.Errorf("lanes %q", one.Lanes)
	}
	if got := one.Bars[1]; got != (tripBar{Lane: 1, Part: 1, From: 2.7, To: 6.7,
		Text: "request, bridge: 4.00 µs"}) {
		t.Errorf("%+v", got)
	}
	for i, lane := range map[int]int{2: 2, 3: 2, 4: 1, 5: 0} {
		if got := one.Bars[i]; got.Lane != lane {
			t.Errorf("bar %d: %+v", i, got)
		}
	}
	bars := chartOf(t, v, "What bridge adds to host").Spec.(falls).Rows
	if len(bars) != 5 || bars[0].To != -1.5 || bars[1].To != 4 || *bars[1].High != 4.1 ||
		bars[4].To != 2.6 {
		t.Errorf("%+v", bars)
	}
	if got := chartOf(t, v, "The path's parts by epoch").Spec.(strips).Rows; len(got) != 2 ||
		got[1].Points[2] != [2]float64{3, 4.1} {
		t.Errorf("%+v", got)
	}
	if got := chartOf(t, v, "Wake-ups and relays").Spec.(strips).Rows; len(got) != 1 {
		t.Errorf("%+v", got)
	}
}

// TestPageNamesRoutes has a run whose command is not recorded, because it may have secrets.
// A chart explains only bars that it has.
func TestHowPartsAreExplained(t *testing.T) {
	of := func(unattributed, untraced int) string {
		added := analysis.Price{N: 6, Unit: "s"}
		c, ok := partChart(trace.Trace{Rows: []trace.Row{{Name: "bridge", Added: added}},
			Unattributed: analysis.Price{N: unattributed}, Untraced: analysis.Price{N: untraced}})
		if bars := len(c.Spec.(falls).Rows); !ok || bars != 1+min(1, unattributed)+min(1, untraced) {
			t.Fatalf("%d bars", bars)
		}
		return c.How
	}
	all, whole, none := of(6, 6), of(0, 6), of(0, 0)
	if !strings.HasPrefix(whole, none) || all == whole || whole == none {
		t.Errorf("%q, %q, %q", all, whole, none)
	}
}

func TestPageNamesRoutes(t *testing.T) {
	r := &analysis.Report{}
	for _, c := range []struct{ name, url string }{
		{"direct", "172.17.0.2:80"}, {"172.17.0.3:80", "172.17.0.3:80"},
		{"direct", "172.17.0.2:80"}} {
		r.Cells = append(r.Cells, analysis.Cell{Cell: sample.Cell{Mode: mode.Name(c.name)},
			Facts: map[string]string{"url": c.url}})
	}
	const want = "toll trace direct=172.17.0.2:80 172.17.0.3:80"
	if got := Run(r, "", "toll trace", nil).Command; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	r.Command = []string{"compare"}
	if got := Run(r, "", "toll trace", nil).Command; got != "toll compare" {
		t.Errorf("a recorded command: %q", got)
	}
}
