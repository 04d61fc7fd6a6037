package analysis_test

import (
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

func withLoad(t *testing.T, l sample.Load, x float64,
	change ...func(*sample.Visit)) *analysis.Report {
	t.Helper()
	r := judgetest.New(t, judgetest.Trio(mode.Bridge, l.Kind)...)
	l.Window = 1
	r.File.Header.Plan.Loads = []sample.Load{l}
	return analysis.Judge(r.Rounds(enough, judgetest.Steady(x, x, x),
		append([]func(*sample.Visit){calm}, change...)...).File)
}

func TestOptionMetrics(t *testing.T) {
	const gbit = int64(1e9 / 8)
	for _, tt := range []struct {
		name   string
		load   sample.Load
		change func(*sample.Visit)
		want   map[string]float64
		absent []string
	}{
		{"both-ways", sample.Load{Kind: "bulk", Options: sample.BulkOptions{Bidir: true},
			Warmup: 0.1}, func(v *sample.Visit) {
			v.Client.Received, v.Client.Window = 3*gbit, 0.5
			v.Server.Received, v.Server.Window = 8*gbit, 2
		}, map[string]float64{workload.Throughput: 10e9, workload.ThroughputOut: 4e9,
			workload.ThroughputBack: 6e9, workload.CPUPerByte: 0.8 / 1.25e9},
			[]string{workload.CompletionTime, workload.ZerocopyCopied}},
		{"bytes", sample.Load{Kind: "bulk", Options: sample.BulkOptions{Bytes: gbit}},
			func(v *sample.Visit) {
				v.Server.Received, v.Server.Window, v.Elapsed = gbit, 0.25, 0.27
			}, map[string]float64{workload.Throughput: 4e9, workload.CompletionTime: 0.25,
				workload.CPUPerByte: 0.8 / float64(gbit)}, []string{workload.ThroughputOut}},
		{"bytes-reverse", sample.Load{Kind: "bulk",
			Options: sample.BulkOptions{Bytes: gbit, Reverse: true}}, func(v *sample.Visit) {
			v.Server.Received, v.Client.Received, v.Client.Window = 0, gbit, 0.5
		}, map[string]float64{workload.Throughput: 2e9, workload.CompletionTime: 0.5}, nil},
		{"bytes-both-ways", sample.Load{Kind: "bulk",
			Options: sample.BulkOptions{Bytes: gbit, Bidir: true}}, func(v *sample.Visit) {
			v.Server.Received, v.Server.Window = gbit, 0.25
			v.Client.Received, v.Client.Window = gbit, 0.5
		}, map[string]float64{workload.Throughput: 6e9, workload.CompletionTime: 0.5}, nil},
		{"zerocopy", sample.Load{Kind: "bulk", Options: sample.BulkOptions{Send: "zerocopy"},
			Warmup: 0.1}, func(v *sample.Visit) {
			v.Client.Counts = map[string]int64{"zerocopy_sends": 400, "zerocopy_copied": 100}
		}, map[string]float64{workload.ZerocopyCopied: 0.25, workload.Throughput: 50e9},
			[]string{workload.CompletionTime}},
		{"zerocopy-without-reports", sample.Load{
			Kind: "bulk", Options: sample.BulkOptions{Send: "zerocopy"}, Warmup: 0.1}, nil, nil,
			[]string{workload.ZerocopyCopied}},
		{"beside", sample.Load{Kind: "rr", Options: sample.RROptions{Beside: true}, Warmup: 0.1},
			func(v *sample.Visit) {
				v.Server.Counts = map[string]int64{"beside_received": gbit, "beside_ns": 5e8}
			}, map[string]float64{workload.BesideThroughput: 2e9,
				workload.Transactions: judgetest.TripsPerVisit},
			[]string{workload.CPUPerTrip, workload.SendsHeld}},
		{"open-loop", sample.Load{Kind: "rr",
			Options: sample.RROptions{Rate: judgetest.TripsPerVisit}, Warmup: 0.1},
			lateness(20_000), map[string]float64{
				workload.SendsHeld:      0.1,
				workload.OwnLatenessP50: 20e-6,
				workload.OwnLatenessP99: 20e-6,
				workload.CPUPerTrip:     0.8 / judgetest.TripsPerVisit},
			[]string{workload.BesideThroughput}},
		{"plain", sample.Load{Kind: "rr", Warmup: 0.1}, nil,
			map[string]float64{workload.Transactions: judgetest.TripsPerVisit},
			[]string{workload.SendsHeld, workload.OwnLatenessP50, workload.BesideThroughput}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var change []func(*sample.Visit)
			if tt.change != nil {
				change = append(change, tt.change)
			}
			c := judgetest.Find(t, withLoad(t, tt.load, 50, change...), mode.Bridge, tt.load.Kind)
			for name, want := range tt.want {
				if m := c.Metrics[name]; !judgetest.Near(m.Median, want) || m.Unit == "" ||
					m.Ratio == nil || !judgetest.Near(m.Ratio.Median, 1) {
					t.Errorf("%s: got %+v, want %v", name, m, want)
				}
			}
			for _, name := range tt.absent {
				if m, ok := c.Metrics[name]; ok {
					t.Errorf("unexpected %s %+v", name, m)
				}
			}
			if workload.RROf(tt.load).Beside && c.CPU.Client != 0 {
				t.Errorf("the stream's CPU time is a round trip's: %+v", c.CPU)
			}
		})
	}
}

// lateness makes an open loop's visit in which a tenth of the requests was held up and the client
// sent the others late by ns.
func lateness(ns int64) func(*sample.Visit) {
	return func(v *sample.Visit) {
		h := sample.NewHistogram()
		_ = h.RecordValues(ns, 1800)
		e, _ := sample.Encode(h)
		v.Times = map[string]*sample.EncodedHisto{"own_lateness": e}
		v.Client.Counts = map[string]int64{"sends": 2000, "sends_held": 200}
	}
}

func TestOptionWarnings(t *testing.T) {
	copied := func(n int64) func(*sample.Visit) {
		return func(v *sample.Visit) {
			v.Client.Counts = map[string]int64{"zerocopy_sends": 100, "zerocopy_copied": n}
		}
	}
	for _, tt := range []struct {
		name   string
		load   sample.Load
		us     float64
		change func(*sample.Visit)
		want   []string
	}{
		{"copied", sample.Load{Kind: "bulk", Options: sample.BulkOptions{Send: "zerocopy"},
			Warmup: 0.1}, 50, copied(90), []string{"zerocopy-copied"}},
		{"not-copied", sample.Load{Kind: "bulk", Options: sample.BulkOptions{Send: "zerocopy"},
			Warmup: 0.1}, 50, copied(10), []string{}},
		{"on-schedule", sample.Load{Kind: "rr",
			Options: sample.RROptions{Rate: judgetest.TripsPerVisit}, Warmup: 0.1}, 50,
			lateness(5_000), []string{}},
		{"below-rate", sample.Load{Kind: "rr",
			Options: sample.RROptions{Rate: 1.1 * judgetest.TripsPerVisit}, Warmup: 0.1}, 50,
			lateness(5_000), []string{"below-rate"}},
		{"own-lateness", sample.Load{Kind: "rr",
			Options: sample.RROptions{Rate: judgetest.TripsPerVisit}, Warmup: 0.1}, 50,
			lateness(40_000), []string{"own-lateness"}},
		{"behind", sample.Load{Kind: "rr", Options: sample.RROptions{Rate: judgetest.TripsPerVisit},
			Warmup: 0.1}, 50, lateness(600_000), []string{"behind"}},
		{"not-behind-with-more-connections", sample.Load{
			Kind: "rr", Streams: 4, Options: sample.RROptions{Rate: judgetest.TripsPerVisit},
			Warmup: 0.1}, 2000, lateness(600_000), []string{}},
		{"closed-loop", sample.Load{Kind: "rr", Warmup: 0.1}, 50, nil, []string{}},
		{"late-transfer", sample.Load{Kind: "bulk", Options: sample.BulkOptions{Bytes: 1000}}, 50,
			func(v *sample.Visit) {
				v.Client.Late, v.Server.Window = 0.006, 0.1
			}, []string{"late"}},
		{"punctual-transfer", sample.Load{Kind: "bulk", Options: sample.BulkOptions{Bytes: 1000}},
			50, func(v *sample.Visit) {
				v.Client.Late, v.Server.Window = 0.004, 0.1
			}, []string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var change []func(*sample.Visit)
			if tt.change != nil {
				change = append(change, tt.change)
			}
			r := withLoad(t, tt.load, tt.us, change...)
			if got := judgetest.Codes(judgetest.Find(t, r, mode.Bridge, tt.load.Kind).Warnings); !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			for _, w := range judgetest.Find(t, r, mode.Bridge, tt.load.Kind).Warnings {
				if w.Code == analysis.Late && w.Found.What != analysis.SizedTransfer {
					t.Errorf("a transfer has no warm-up: %+v", w.Found)
				}
			}
		})
	}
}
