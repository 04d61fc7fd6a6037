package page

import (
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// Any results file that can be read and judged has a page.
func FuzzPage(f *testing.F) {
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
		if err := Write(io.Discard, document.Document{Kind: document.AReport, Value: judge.Judge(file)}); err != nil {
			t.Error(err)
		}
	})
}
