package comparison

import (
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestDockerIsHeldAgainstTheLab(t *testing.T) {
	load := sample.Load{Kind: "bulk", Window: 1}
	f := &sample.File{Header: sample.Header{
		Plan: sample.Plan{Baseline: "host", Loads: []sample.Load{load}, Precision: 0.02}}}
	rates := []int64{100, 100, 50, 120, 120, 50} // host, its control, bridge: lab, docker
	for _, on := range []string{"lab", "docker"} {
		for i, m := range []mode.Name{mode.Host, mode.Host, mode.Bridge} {
			to := mode.ToLoopback
			if m == mode.Bridge {
				to = mode.ToContainer
			}
			f.Header.Plan.Cells = append(f.Header.Plan.Cells,
				sample.Cell{Mode: m, From: "host", To: to, Load: "bulk", On: on, Control: i == 1})
		}
	}
	for round := range 8 {
		for cell, rate := range rates {
			v := sample.Visit{Turn: sample.Turn{Round: round, Cell: cell},
				Proof: sample.Proof{Witness: sample.Witness{OK: true}}}
			v.Server = sample.Party{Window: 1, Received: rate*1000 + int64(round)}
			v.Client = sample.Party{Window: 1, Sent: rate * 1000}
			f.Visits = append(f.Visits, v)
		}
	}
	got := Judge(f).Findings
	for _, want := range []string{"host on docker, from the machine itself: 12",
		"bridge on docker, from the machine itself: 100 %"} {
		if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("no %q in\n%s", want, strings.Join(got, "\n"))
		}
	}
	if !slices.ContainsFunc(got, func(s string) bool {
		return strings.Contains(s, "of the lab's throughput (same)")
	}) {
		t.Errorf("bridge is not the same:\n%s", strings.Join(got, "\n"))
	}
}
