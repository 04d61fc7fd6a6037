package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func results(t *testing.T, v sample.Visit) string {
	t.Helper()
	return resultsOf(t, sample.Load{Kind: rr, Warmup: 0.0001, Window: 0.0002}, v)
}

func resultsOf(t *testing.T, l sample.Load, v sample.Visit) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "results")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := sample.NewWriter(f)
	h := sample.Header{Plan: sample.Plan{Loads: []sample.Load{l},
		Cells: []sample.Cell{{Mode: "host", Load: rr}}}}
	for _, err := range []error{w.Header(h), w.Visit(v), w.End(sample.End{})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return file
}

func TestFirstPhases(t *testing.T) {
	got, err := firstPhases(results(t, sample.Visit{}))
	if err != nil {
		t.Fatal(err)
	}
	if want := 300 * time.Microsecond; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestFirstPhasesOfAnEpoch(t *testing.T) {
	got, err := firstPhases(resultsOf(t, sample.Load{
		Kind: rr, Warmup: 0.0001, Window: 0.0002, Slice: 0.004}, sample.Visit{}))
	if err == nil || err.Error() != "its first visit is of an epoch, which takes longer "+
		"than warm-up and window" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestVisitStart(t *testing.T) {
	for _, c := range []struct{ name, script, want string }{
		{"good", "cp RESULTS $LAST", ""},
		{"failed-visit", "cp FAILED $LAST", "no traffic"},
		{"no-file", "true", "no visit"},
		{"failure", "echo sorry; exit 3", "sorry"},
	} {
		t.Run(c.name, func(t *testing.T) {
			script := strings.NewReplacer("RESULTS", results(t, sample.Visit{}),
				"FAILED", results(t, sample.Visit{
					Outcome: sample.Outcome{Failure: "no traffic"}})).Replace(c.script)
			script = "#!/bin/sh\nfor LAST; do :; done\n" + script
			file := filepath.Join(t.TempDir(), "script")
			if err := os.WriteFile(file, []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			b := &bench{options: options{toll: file}}
			v, err := b.visitStart(t.Context())
			if c.want == "" {
				if err != nil || !(v.started > 0) {
					t.Errorf("got %v, %v", v.started, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}
