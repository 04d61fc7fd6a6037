package cli

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/trend"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

func TestPriorsOfHistory(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("SUDO_UID", "")
	t.Setenv(historyEnv.name, "")
	cell := sample.Cell{From: "host", Load: workload.RR, On: "lab"}
	p := sample.Plan{Cells: []sample.Cell{cell, cell},
		CPUs: sample.CPUs{Client: []int{0}, Server: []int{1}},
		Loads: []sample.Load{{Kind: workload.RR, Slice: 0.004,
			Options: sample.RROptions{Messages: sample.Messages{Request: 1, Reply: 1}}}}}
	env := sample.Environment{Kernel: "6.1", CPUModel: "EPYC"}
	if got, _ := priorsOf(p, env); got != nil {
		t.Errorf("an empty history says %+v", got)
	}
	s, err := findHistory()
	if err != nil {
		t.Fatal(err)
	}
	set := trend.Setting{From: "host", Work: "rr, 1 byte each way", Slice: 0.004, On: "lab",
		CPUs: "[0] [1] []"}
	for k, judged := range []string{version, version, "another"} {
		summary, err := json.Marshal(trend.Summary{
			Schema:  trend.Schema,
			Layout:  trend.Layout,
			Judged:  judged,
			Kernel:  env.Kernel,
			CPU:     env.CPUModel,
			Spreads: []trend.Spread{{Setting: set, Metric: workload.LatencyP50, SD: 0.01}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Keep(time.Unix(int64(k), 0), []byte("results"), summary); err != nil {
			t.Fatal(err)
		}
	}
	want := sample.Prior{From: "host", Load: workload.RR, On: "lab", Metric: workload.LatencyP50,
		Variance: 1e-4, Freedom: 8}
	if got, _ := priorsOf(p, env); len(got) != 1 || got[0] != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	read := 0
	if got := summaries(s, 1, func(trend.Summary) bool { read++; return true }); len(got) != 1 ||
		read != 1 {
		t.Errorf("%d summaries of %d that were read, not the newest of this version", len(got), read)
	}
	t.Setenv(historyEnv.name, "off")
	if got, _ := priorsOf(p, env); got != nil {
		t.Errorf("a history that is off says %+v", got)
	}
}
