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
	f.Add([]byte(`{"header":{"schema":"` + sample.Schema + `","plan":{"study":"trace","trace":{},"baseline":"host","cells":[{"mode":"host","from":"host","to":"loopback","load":"rr","on":"lab"},{"mode":"bridge","from":"host","to":"container","load":"rr","on":"lab"}],"loads":[{"kind":"rr","slice_s":0.004}]}}}
{"visit":{"round":0,"cell":0,"witness":{"ok":true},"trace":{"state":"traced","trips":9,"followed":9,"slots":[0],"totals_s":[4e-5],"mid_mean_s":4e-5,"segments":[{"part":"wake-up","mid_means_s":[4e-5],"mid_mean_s":4e-5,"share":1,"events":2,"steps":["a","b"]}]}}}
{"visit":{"round":0,"cell":1,"witness":{"ok":true},"trace":{"state":"traced","trips":9,"followed":9,"slots":[1],"totals_s":[5e-5],"mid_mean_s":5e-5,"segments":[{"hop":"bridge","part":"bridge","mid_means_s":[5e-5],"mid_mean_s":5e-5,"share":1,"events":2,"steps":["a","b"]}],"groups":[{"share":1,"steps":["a"],"odd":[0]}]}}}
{"end":{"rounds":1}}
`))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := sample.Read(bytes.NewReader(b))
		if err != nil {
			return
		}
		for _, to := range format.All() {
			d := Report(judge.Judge(file))
			if err := to.Write(io.Discard, d, format.Options{}); err != nil && to.Writes(d.Kind) {
				t.Errorf("%s: %v", to.Name, err)
			}
		}
	})
}
