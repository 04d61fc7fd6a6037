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
	e.args = []string{"mesh"}
	mesh := sample.Plan{Mesh: &sample.Mesh{}, Loads: []sample.Load{{Kind: workload.RR}}}
	if got := commandOf(mesh, e); got != nil {
		t.Errorf("mesh: %q", got)
	}
}

// What may hold a password is in no results file: the command lines of the user's own programs,
// requests, and URLs with a user, a query or a path that may be a key.
func TestCommandOfServers(t *testing.T) {
	e := env{stdout: io.Discard, stderr: io.Discard}
	e.root = newRoot(e)
	for name, p := range map[string]sample.Plan{
		"endpoints": {Study: sample.StudyEndpoints, Loads: []sample.Load{{Kind: workload.Chat}}},
		"programs":  {Loads: []sample.Load{{Kind: workload.Exec}}},
	} {
		for _, tt := range []struct {
			args []string
			kept bool
		}{
			{[]string{"stream", "a=http://127.0.0.1:8000", "--sessions", "4", "--secret-env=KEY",
				"-4"}, true},
			{[]string{"run", "--recipe", "redis", "a=127.0.0.1:6379"}, true},
			{[]string{"run", "--client", "secret", "127.0.0.1:6379"}, false},
			{[]string{"run", "--server=secret"}, false},
			{[]string{"stream", "http://127.0.0.1", "--prompt", "secret"}, false},
			{[]string{"sql", "postgres://127.0.0.1/shop", "--query", "secret"}, false},
			{[]string{"stream", "http://127.0.0.1/?key=secret"}, false},
			{[]string{"stream", "http://127.0.0.1/secret/v1"}, false},
			{[]string{"stream", "a=HTTPS://127.0.0.1/v1/secret"}, false},
			{[]string{"stream", "a=https://127.0.0.1:8000/v1/chat/completions",
				"http://[::1]/openai/v1/"}, true},
			{[]string{"sql", "postgres://127.0.0.1/shop", "b=mysql://127.0.0.1"}, true},
			{[]string{"sql", "postgres://127.0.0.1/secret/shop"}, false},
			{[]string{"sql", "postgres://app:secret@127.0.0.1/shop"}, false},
			{[]string{"run", "--", "secret"}, false},
		} {
			if e.args = tt.args; (commandOf(p, e) != nil) != tt.kept {
				t.Errorf("%s: %q", name, tt.args)
			}
		}
	}
}
