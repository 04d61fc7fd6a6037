package view

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/gate"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

func gated(t *testing.T) *gate.Report {
	t.Helper()
	cells := append(judgetest.Trio(mode.Bridge, workload.Bulk),
		judgetest.Trio(mode.Bridge, workload.RR)...)
	f := judgetest.New(t, cells...).Rounds(
		12, judgetest.Noisy([]float64{0.004, 0.006, 0.005, 0.004, 0.006, 0.005}, 40, 40, 32, 20, 20,
			24)).File
	f.Header.Environment = sample.Environment{
		Tool: "0.1.0", Kernel: "6.1.0", CPUs: 2, CPUModel: "AMD EPYC"}
	var all []gate.Sentence
	for _, text := range []string{"bridge.throughput >= 0.7 of host", "bridge.cpu <= 110% of host",
		"bridge.latency <= 24us", "bridge.throughput > 1 of routed", "routed.latency <= 1ms"} {
		s, err := gate.Parse(text, gate.WordsOf(f))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return gate.Judge("run.jsonl", f, all)
}

func TestGate(t *testing.T) {
	d := Gate(gated(t))
	b := written(t, "table", d, format.Options{Width: 60})
	golden(t, "gate.txt", b)
	whole(t, d, b)
}
