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
	r := Judge(f)
	var got []string
	for _, x := range labelled(r, r.Found) {
		if strings.HasPrefix(x, AgainstLab) {
			got = append(got, x)
		}
	}
	if want := []string{"against-lab host 1.20 of the lab (better)",
		"against-lab bridge 1.00 of the lab (same)"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
