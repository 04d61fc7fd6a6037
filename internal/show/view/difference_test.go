package view

import (
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/difference"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

func changed(t *testing.T) *difference.Report {
	t.Helper()
	measured := func(bridge, proxy float64, more ...sample.Cell) *sample.File {
		cells := append(judgetest.Trio(mode.Bridge, workload.Bulk),
			judgetest.HostCell(mode.PublishProxy, workload.Bulk))
		cells = append(append(cells, judgetest.Trio(mode.Bridge, workload.RR)...), more...)
		noise := []float64{0.004, 0.006, 0.005, 0.3, 0.004, 0.006, 0.005, 0.01}
		f := judgetest.New(t, cells...).Rounds(
			12, judgetest.Noisy(noise, 40, 40, 40*bridge, 40*proxy, 20, 20, 24, 21)).File
		f.Header.Started = time.Date(2026, 11, 23, 5, 0, 0, 0, time.UTC)
		f.Header.Environment = sample.Environment{
			Tool: "0.1.0", Kernel: "6.1.0", CPUs: 2, CPUModel: "AMD EPYC"}
		return f
	}
	old := measured(0.8, 0.4, judgetest.HostCell(mode.Routed, workload.RR))
	now := measured(0.6, 0.4)
	now.Header.Environment.Kernel, now.Header.Environment.Tool = "6.12.0", "0.2.0"
	for i := range now.Header.Paths {
		now.Header.Paths[i].Sysctls = map[string]string{"net.ipv4.tcp_rmem": "4096 131072 6291456"}
	}
	now.Header.Paths[1].Facts = map[string]string{"rules": "Docker Engine 29.0.0"}
	r, err := difference.Judge(difference.Input{Name: "old.jsonl", File: old},
		difference.Input{Name: "new.jsonl", File: now})
	if err != nil {
		t.Fatal(err)
	}
	r.FailAbove(0.05)
	return r
}

func TestDifference(t *testing.T) {
	d := Difference(changed(t))
	for name, width := range map[string]int{"difference": 0, "difference-60": 60} {
		b := written(t, "table", d, format.Options{Width: width})
		if width == 0 {
			whole(t, d, b)
		}
		golden(t, name+".txt", b)
		for _, l := range strings.Split(b, "\n") {
			if width > 0 && len([]rune(l)) > width {
				t.Errorf("%s: wider than %d columns: %q", name, width, l)
			}
		}
	}
}
