package endpoints_test

import (
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/endpoints"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

func TestAnswerSaysHowBusyTheGPUWas(t *testing.T) {
	const rounds = 6
	drm := sample.GPU{By: sample.GPUByDRM, Device: "0000:0a:00.0", Engine: "compute", Over: 0.005,
		Slow: sample.GPUTime{Gaps: 2, Time: 0.1, Busy: 0.097},
		Rest: sample.GPUTime{Time: 1, Busy: 0.96}}
	smi := sample.GPU{By: sample.GPUByNvidiaSMI, Device: "GPU-1", Over: 1,
		Slow: sample.GPUTime{Gaps: 1, Time: 2, Busy: 0.1}}
	for name, tt := range map[string]struct {
		of   map[int]*sample.GPU // by cell: a, its control, b
		want string
	}{
		"DRM, over both routes": {map[int]*sample.GPU{0: &drm, 1: &drm, 2: &drm},
			"Over a and b, the server's GPU was busy for 97 % of the time of 12 slow gaps and " +
				"96 % of the rest (by DRM's counters)."},
		"nvidia-smi, over one": {map[int]*sample.GPU{2: &smi},
			"Over b, the server's GPU was busy for 5 % of the time of 6 slow gaps of " +
				"more than 1 s " +
				"(by nvidia-smi, which averages over up to 1 s)."},
		"no slow gap": {map[int]*sample.GPU{0: {By: sample.GPUByDRM, Rest: drm.Rest}}, ""},
		"unknown":     {nil, ""},
	} {
		r := newRoutes(t, workload.Chat, "a", "b")
		for round := range rounds {
			for cell := range 3 {
				r.chatted(round, cell, 50*time.Millisecond, 0)
				r.File.Visits[len(r.File.Visits)-1].GPU = tt.of[cell]
			}
		}
		report := judged(r.File)
		text := strings.Join(report.Answer.Text, "\n")
		if (tt.want != "" && !testgolden.HasLine(text, tt.want)) ||
			found(report, endpoints.GPUBusy) != (tt.want != "") {
			t.Errorf("%s: %s", name, text)
		}
	}
	if drm.Slow.Gaps != 2 {
		t.Error("a visit was changed")
	}
}
