package view

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
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
	// a mode that is a placebo and no control, and one that nobody knows
	f.Add([]byte(`{"header":{"schema":"` + sample.Schema + `","plan":{"baseline":"host","pins":[{"name":"far"},{"name":"near"}],"cells":[{"mode":"host","from":"host","to":"loopback","load":"bulk","on":"lab"},{"mode":"bridge","from":"host","to":"container","load":"bulk","on":"lab","placebo":true},{"mode":"bridge","from":"host","to":"container6","load":"bulk","on":"docker","tune":"mtu=9000"},{"mode":"new","from":"host","to":"container","load":"bulk","on":"lab"}],"loads":[{"kind":"bulk"},{"kind":"stream"}]}}}
` + visits(4) + `{"end":{"rounds":2}}
`))
	for _, study := range []string{"endpoints", "scale"} {
		f.Add([]byte(`{"header":{"schema":"` + sample.Schema + `","plan":{"study":"` + study + `","baseline":"a","cells":[{"mode":"a","from":"here","load":"sql","on":"endpoint"},{"mode":"b","from":"here","load":"sql","on":"endpoint","placebo":true},{"mode":"a","from":"here","load":"chat","on":"endpoint"},{"mode":"b","from":"here","load":"chat","on":"endpoint"}],"loads":[{"kind":"sql"},{"kind":"chat"},{"kind":"exec"}]},"paths":[{"mode":"b","from":"here","on":"endpoint","dial":"127.0.0.1:80","facts":{"behind_docker_proxy":"172.17.0.2:80"}}]}}
` + visits(4) + `{"end":{"rounds":2}}
`))
	}
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

// Files of each study without what it is about, from busy machines, of which there is something to
// say.
func TestFilesWithLittleInThem(t *testing.T) {
	trio := `{"mode":"host","from":"host","to":"loopback","load":"LOAD","on":"lab"},` +
		`{"mode":"host","from":"host","to":"loopback","load":"LOAD","on":"lab","control":true},` +
		`{"mode":"bridge","from":"host","to":"container","load":"LOAD","on":"lab"}`
	busy := `"contention":{"elapsed_s":5,"cpus":2,"others":2,"stolen":0,"load_average_1m":9}`
	for _, study := range []string{"", "compare", "scale", "ladder", "endpoints", "advise", "sweep",
		"mesh", "trace", "of a later toll"} {
		for _, load := range []string{"bulk", "rr", "stream", "request", "chat", "sql", "exec",
			"new"} {
			for name, cells := range map[string]string{"no-cells": "", "usual": trio,
				"unknown": strings.NewReplacer("host", "x", "bridge", "y").Replace(trio)} {
				for _, loads := range []string{`{"kind":"` + load + `"}`, ""} {
					text := `{"header":{"schema":"` + sample.Schema + `",` + busy +
						`,"plan":{"study":"` + study + `","baseline":"host","cells":[` +
						strings.ReplaceAll(cells, "LOAD", load) + `],"loads":[` + loads + "]}}}\n"
					if cells != "" {
						text += visits(3)
					}
					text += `{"end":{"rounds":2,` + busy + "}}\n"
					t.Run(study+"-"+load+"-"+name+loads, func(t *testing.T) { readable(t, text) })
				}
			}
		}
	}
}

func readable(t *testing.T, text string) {
	t.Helper()
	file, err := sample.Read(strings.NewReader(text))
	if err != nil {
		return // such as a sweep without points
	}
	r := judge.Judge(file)
	docs := []document.Document{Report(r), Summary(r)}
	for _, p := range Parts(r) {
		for _, row := range p.Rows {
			docs = append(docs, Details(r, row))
		}
	}
	for _, d := range docs {
		for _, to := range format.All() {
			if err := to.Write(io.Discard, d, format.Options{}); err != nil && to.Writes(d.Kind) {
				t.Errorf("%s: %v", to.Name, err)
			}
		}
	}
}

// visits returns two rounds of visits to the cells, with counts of all sorts.
func visits(cells int) string {
	var b strings.Builder
	for round := range 2 {
		for cell := range cells {
			fmt.Fprintf(&b, `{"visit":{"round":%d,"cell":%d,"witness":{"ok":true},"elapsed_s":1,`+
				`"client":{"window_s":1,"sent":%d,"trips":9,"counts":{"resent":5,"syn_resent":4,`+
				`"tokens":9,"glued":9,"refused":1}},"server":{"window_s":1,"received":9,`+
				`"counts":{"listen_overflows":3}},"values":{"response":%d,"connect":1},`+
				`"evidence":{"responses":1,"tokens":2,"matched":2,"lost":%d},`+
				`"gpu":{"by":"drm","slow":{"gaps":1,"time_s":1}}}}`+"\n", round, cell, 9+cell,
				2+cell,
				cell)
		}
	}
	return b.String()
}
