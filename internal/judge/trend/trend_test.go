package trend_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/trend"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

func summary(t *testing.T, x float64, change ...func(*sample.File)) trend.Summary {
	t.Helper()
	f := judgetest.New(t, judgetest.Trio(mode.Bridge, workload.Bulk)...).Rounds(
		6, judgetest.Steady(40, 40, 40*x)).File
	f.Header.Started = time.Date(2026, 11, 23, 5, 0, 0, 0, time.UTC)
	f.Header.Environment.Kernel = "6.1"
	for _, c := range change {
		c(f)
	}
	return trend.Summarize(f.Header, analysis.Judge(f), "1.0")
}

func TestSummary(t *testing.T) {
	s := summary(t, 0.5)
	if len(s.Rows) != 1 || s.Rows[0].Label != "bridge" || s.Rows[0].Median != 0.5 ||
		s.Rows[0].Metric != workload.Throughput || !s.Rows[0].Higher ||
		strings.Join(s.Modes, " ") != "host bridge" || strings.Join(s.Loads, " ") != "bulk rr" ||
		s.Rounds != 6 {
		t.Errorf("%+v", s)
	}
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := trend.Read(b, "1.0"); !ok || got.Rows[0] != s.Rows[0] {
		t.Errorf("read back: %+v", got)
	}
	if _, ok := trend.Read(b, "1.1"); ok {
		t.Error("another version's judgement was taken")
	}
	for _, bad := range []string{"", "nonsense", "{}",
		`{"schema":"bridgetoll.history/1","judged_by":"1.0","rows":3}`} {
		if _, ok := trend.Read([]byte(bad), "1.0"); ok {
			t.Errorf("%q was taken", bad)
		}
	}
	evil, _ := trend.Read(
		[]byte(
			"{\"schema\":\"bridgetoll.history/1\",\"judged_by\":\"1.0\",\"rows\":[{\"label\":\"\\u001b[2J\"}]}"), "1.0")
	if got, want := evil.Rows[0].Label, `\x1b[2J`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestCommandLine(t *testing.T) {
	for want, s := range map[string]trend.Summary{
		"toll compare …": {Study: sample.StudyCompare, Plan: "x"},
		"toll stream …": {Study: sample.StudyEndpoints, Baseline: "port-1",
			Modes: []string{"port-1", "port-2"}},
		"toll run …": {Study: sample.StudyEndpoints, Loads: []string{workload.Exec}},
		"toll fast on …": {Study: sample.StudyEndpoints, Loads: []string{workload.Exec},
			Baseline: "port-80", Modes: []string{"port-80", "fast-80"}},
	} {
		if got := s.CommandLine(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestSwept(t *testing.T) {
	s := summary(t, 0.5, func(f *sample.File) {
		f.Header.Plan.Sweep = &sample.Sweep{Axis: "request",
			Points: []sample.Point{{Name: "1", Value: 1}, {Name: "16k", Value: 16384}}}
	})
	if s.Swept != "request=1,16k" {
		t.Errorf("%q", s.Swept)
	}
}

func TestUnusual(t *testing.T) {
	run := func(host float64, change ...func(*sample.File)) trend.Summary {
		f := judgetest.New(t, judgetest.Trio(mode.Bridge, workload.Bulk)...).Rounds(
			6, judgetest.Steady(host, host, host)).File
		for _, c := range change {
			c(f)
		}
		return trend.Summarize(f.Header, analysis.Judge(f), "1.0")
	}
	redis := func(rate float64) trend.Summary {
		return trend.Summary{Kernel: "6.1", Bases: []trend.Base{{Quantity: trend.Quantity{
			Label: "host", From: "host", Load: workload.Exec, Work: "redis, 10 s", Pin: "far",
			Metric: "requests"}, Unit: "1/s", Median: rate}}}
	}
	newer := func(f *sample.File) { f.Header.Environment.Kernel = "6.2" }
	usual := []trend.Summary{run(45), run(57), run(46), run(44)}
	for _, c := range []struct {
		name   string
		now    trend.Summary
		before []trend.Summary
		want   float64 // the usual figure; 0: nothing moved
	}{
		{"usual", run(47), usual, 0},
		{"moved", run(57), usual, 45.5e9},
		{"program", redis(29934), []trend.Summary{redis(21106), redis(21106), redis(21106)}, 21106},
		{"few-runs", run(57), usual[:2], 0},
		{"another-kernel", run(57, newer), usual, 0},
	} {
		got := trend.Unusual(c.now, c.before)
		if c.want == 0 && len(got) == 0 {
			continue
		}
		if len(got) != 1 || !judgetest.Near(got[0].Usual, c.want) ||
			!reflect.DeepEqual(got[0].Base, c.now.Bases[0]) {
			t.Errorf("%s: %+v, usually %g", c.name, got, c.want)
		}
	}
}

func TestTrends(t *testing.T) {
	l := trend.List{Runs: []trend.Entry{
		{Number: 1, Summary: summary(t, 0.7, func(f *sample.File) {
			f.Header.Environment.Kernel = "6.2"
		})},
		{Number: 2, Summary: summary(t, 0.9, func(f *sample.File) {
			f.Header.Plan.Loads[0].Streams = 4
		})},
		{Number: 3, Error: "it cannot be read"},
		{Number: 4, Summary: summary(t, 0.5)},
	}}
	got := trend.Of(l, nil)
	if len(got.Lines) != 2 || len(got.Lines[0].Points) != 2 || len(got.Lines[1].Points) != 1 {
		t.Fatalf("%+v", got.Lines)
	}
	if p := got.Lines[0].Points; p[0].Run != 4 || p[0].Median != 0.5 || len(p[0].Changed) != 0 ||
		p[1].Run != 1 || p[1].Median != 0.7 ||
		strings.Join(p[1].Changed, ", ") != "kernel 6.1 → 6.2" {
		t.Errorf("%+v", p)
	}
	tuned := trend.List{Runs: []trend.Entry{{Number: 1, Summary: summary(t, 0.7,
		func(f *sample.File) {
			c := &f.Header.Plan.Cells[2]
			c.Mode, c.To, c.Tune = mode.PublishProxy, mode.ToLoopback, "gro=on"
		})}}}
	if got := trend.Of(tuned, []string{"publish-proxy+gro=on"}); len(got.Lines) != 1 ||
		got.Lines[0].Label != "publish-proxy :lo+gro=on" {
		t.Errorf("of a variant: %+v", got.Lines)
	}
	if got := trend.Of(l, []string{"routed"}); len(got.Lines) != 0 {
		t.Errorf("of another mode: %+v", got.Lines)
	}
}
