package view

import (
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
)

func FuzzReport(f *testing.F) {
	run, err := os.ReadFile("../../record/sample/testdata/run.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(run)
	f.Add([]byte(`{"header":{"schema":"bridgetoll.results/2","plan":{"study":"mesh","mesh":{"nodes":[{"name":"a"},{"name":"b"}],"mode":"host","on":"swarm"},"loads":[{"kind":"rr"}]}}}
{"visit":{"pair":[0,1],"load":"rr","values":{"latency_p50":5e-5},"witness":{"ok":true}}}
{"end":{"sweeps":1}}
`))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := sample.Read(bytes.NewReader(b))
		if err != nil {
			return
		}
		for _, to := range format.All() {
			if err := to.Write(io.Discard, Report(judge.Judge(file)), format.Options{}); err != nil {
				t.Errorf("%s: %v", to.Name, err)
			}
		}
	})
}
