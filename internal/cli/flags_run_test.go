package cli

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

func TestCommandOf(t *testing.T) {
	e := env{stdout: io.Discard, stderr: io.Discard}
	e.root = newRoot(e)
	bulk := sample.Plan{Loads: []sample.Load{{Kind: workload.Bulk}}}
	for line, want := range map[string]string{
		"compare bridge --save run.jsonl --rounds 3 --details": "compare bridge --rounds 3",
		"--load rr --save=run.jsonl --force --quiet":           "--load rr",
		"compare --output=a.txt --format json --live --seed 7": "compare --seed 7",
		"ladder": "ladder",
		"":       "",
	} {
		e.args = strings.Fields(line)
		got := commandOf(bulk, e)
		if got == nil || !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
	for name, p := range map[string]sample.Plan{
		"endpoints": {Study: sample.StudyEndpoints, Loads: []sample.Load{{Kind: workload.Chat}}},
		"programs":  {Loads: []sample.Load{{Kind: workload.Exec}}},
		"mesh":      {Mesh: &sample.Mesh{}, Loads: []sample.Load{{Kind: workload.RR}}},
	} {
		if got := commandOf(p, env{args: []string{"run"}}); got != nil {
			t.Errorf("%s: %q", name, got)
		}
	}
}
