package judge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/mesh"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

const realRun = "../record/sample/testdata/run.jsonl"

func TestJudgeRealFile(t *testing.T) {
	b, err := os.ReadFile(realRun)
	if err != nil {
		t.Fatal(err)
	}
	f, err := sample.Read(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	r := Judge(f).Base()
	cells := 0
	for _, c := range f.Header.Plan.Cells {
		if !c.Control {
			cells++
		}
	}
	if len(r.Cells)+len(r.Failed) != cells || len(r.Failed) > 0 {
		t.Errorf("%d cells, %+v failed, want %d", len(r.Cells), r.Failed, cells)
	}
	for _, c := range r.Cells {
		if m, ok := c.Metrics[c.Primary]; !ok || !(m.Median > 0) || len(c.Hops) == 0 {
			t.Errorf("%s %s: %+v over %v", c.Label(), c.Load, m, c.Hops)
		}
	}
	first, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	second, err := json.Marshal(Judge(f))
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("judged twice, the reports differ (%v)", err)
	}
}

// JSON has no infinity.
func TestJudgeAbsurdNumbers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*sample.Visit)
	}{
		{"tiny-window", func(v *sample.Visit) { v.Server.Window = 5e-324 }},
		{"huge-cpu-times", func(v *sample.Visit) {
			v.Machine = []sample.CPU{{User: 1e308}, {User: 1e308}}
		}},
		{"tiny-elapsed", func(v *sample.Visit) { v.Elapsed = 5e-324 }},
		{"huge-elapsed", func(v *sample.Visit) { v.Elapsed = 1e308 }},
		{"negative-elapsed", func(v *sample.Visit) { v.Elapsed = -1 }},
		{"huge-proxy", func(v *sample.Visit) { v.Proxy = &sample.ProxyUse{CPU: 1e308} }},
		{"huge-rtt", func(v *sample.Visit) { v.Client.TCP.RTT = 1e308 }},
	} {
		for name, once := range map[string]bool{"every-visit": false, "one-visit": true} {
			t.Run(tt.name+"-"+name, func(t *testing.T) {
				r := judgetest.New(t, judgetest.Trio(mode.Bridge, "bulk")...).Rounds(
					6, judgetest.Steady(8, 8, 4), func(v *sample.Visit) {
						if !once || v.Round == 3 && v.Cell == 2 {
							tt.change(v)
						}
					})
				f, err := reread(r.File)
				if err != nil {
					return
				}
				if _, err := json.Marshal(Judge(f)); err != nil {
					t.Errorf("the report cannot be written: %v", err)
				}
			})
		}
	}
}

func reread(f *sample.File) (*sample.File, error) {
	var b strings.Builder
	w := sample.NewWriter(&b)
	err := w.Header(f.Header)
	for _, v := range f.Visits {
		err = errors.Join(err, w.Visit(v))
	}
	if err != nil {
		return nil, err
	}
	return sample.Read(strings.NewReader(b.String()))
}

func FuzzJudge(f *testing.F) {
	real, err := os.ReadFile(realRun)
	if err != nil {
		f.Fatal(err)
	}
	lines := bytes.SplitAfter(real, []byte("\n"))
	f.Add(bytes.Join(lines[:6], nil)) // a fuzzer mutates small inputs best
	f.Add(real)
	const header = `{"header":{"schema":"bridgetoll.results/2","plan":{"baseline":"host","precision":0.02,"loads":[{"kind":"rr"},{"kind":"bulk"}],"cells":[` +
		`{"mode":"host","from":"host","to":"loopback","load":"bulk"},{"mode":"host","from":"host","to":"loopback","load":"bulk","control":true},` +
		`{"mode":"publish-proxy","from":"host","to":"loopback","load":"rr"},{"mode":"host","from":"host","to":"loopback","load":"rr"}]}}}` + "\n"
	f.Add([]byte(header))
	f.Add([]byte(strings.Replace(header, `"plan":{`, `"plan":{"study":"ladder",`, 1) +
		`{"visit":{"cell":2,"witness":{"ok":true}}}` + "\n" +
		`{"visit":{"cell":3,"witness":{"ok":true}}}` + "\n"))
	f.Add(
		[]byte(
			header +
				`{"visit":{"witness":{"ok":true},"elapsed_s":1,"machine":[{"user":1e308},{"user":1e308}],"server":{"window_s":1e-300,"received":9}}}` + "\n"))
	f.Add([]byte(header + `{"visit":{"cell":2,"witness":{"ok":true},"latency":"SElTVEZB"}}` + "\n" +
		`{"end":{"reason":"budget"}}`))
	f.Add([]byte(header + `{"visit":{"cell":2,"witness":{"ok":true}}}` + "\n" +
		`{"change":{"cells":[0,1,2],"what":"MTU","was":"1500","is":"600","seen_s":1}}`))
	const sliced = `{"header":{"schema":"bridgetoll.results/2","plan":{"baseline":"host","precision":0.02,"same":0.03,"loads":[{"kind":"rr","slice_s":0.004}],"cells":[` +
		`{"mode":"host","from":"host","to":"loopback","load":"rr"},{"mode":"host","from":"host","to":"loopback","load":"rr","control":true},` +
		`{"mode":"native","from":"host","to":"loopback","load":"rr"}]}}}` + "\n"
	slices := ""
	for i := range 9 {
		slices += fmt.Sprintf(
			`{"visit":{"cell":%d,"round":%d,"witness":{"ok":true},"slices":{"slots":[%d,10,%d],"rates":[1e-300,1e15,3],"medians_s":[0,1e-9,%g]}}}`+"\n",
			i%3, i/3, i, 11+i*i, math.Pow10(i-5))
	}
	f.Add([]byte(sliced + slices))
	f.Add([]byte(strings.Replace(sliced, `"plan":{`, `"plan":{"study":"ladder",`, 1) + slices))
	traces := ""
	for i := range 18 {
		state := []string{"", `"traced"`, `"thrice"`, `"hooks"`}[i/3%4]
		if state != "" {
			state = fmt.Sprintf(`,"trace":{"state":%s,"trips":9,"followed":9,"slots":[1,9,5],"totals_s":[1e9,0,1e-9],`+
				`"segments":[{"part":"bridge + `+
				`wake-up","mid_means_s":[1,1e-300,%g],"events":1e9,"steps":["a","b"]},`+
				`{"part":"hook X","reply":true,"mid_means_s":[0,1e9,0],"share":1,"steps":["",""]},`+
				`{"part":"relay","mid_means_s":[1,2,3],"steps":["",""]},{"mid_means_s":[1,2,3],"steps":["",""]}],`+
				`"groups":[{"share":0.1,"steps":["fib_table_lookup"],"odd":[0]}],"broken":[{"share":2}],"lost":1}`,
				state, math.Pow10(i-12))
		}
		traces += fmt.Sprintf(`{"visit":{"cell":%d,"round":%d,"witness":{"ok":true},`+
			`"slices":{"slots":[1,5,9],"rates":[1,2,3],"medians_s":[1e-300,1e9,1]}%s}}`+"\n", i%3,
			i/3, state)
	}
	f.Add([]byte(strings.Replace(sliced, `"plan":{`, `"plan":{"study":"trace","trace":{},`, 1) +
		traces))
	f.Add([]byte(strings.Replace(sliced, `"plan":{`,
		`"plan":{"study":"ladder","trace":{"hooks":true},`, 1) + traces))
	const visit = `{"visit":{"pair":[%d,%d],"sweep":%d,"round":%d,"load":"%s","witness":{"ok":true},"values":{"latency_p50":%g,"throughput":%g}}}` + "\n"
	nodes := `{"header":{"schema":"bridgetoll.results/2","plan":{"study":"mesh","precision":0.02,"loads":[{"kind":"rr"},{"kind":"bulk"}],` +
		`"mesh":{"nodes":[{"name":"a","boot_id":"x"},{"name":"b","boot_id":"x","mtu":9000},{"name":"c","mtu":1500}],"mode":"host","on":"swarm"}}}}` + "\n"
	for sweep := range 3 {
		nodes += fmt.Sprintf(visit, 0, 1, sweep, 0, "rr", 50e-6, 0.0) +
			fmt.Sprintf(visit, 2, 1, sweep, 1, "rr", 1e-12, 0.0) +
			fmt.Sprintf(visit, 0, 2, sweep, 2, "bulk", 0.0, 1e15) +
			fmt.Sprintf(visit, 2, 0, sweep, 2, "bulk", 0.0, 1.0)
	}
	f.Add([]byte(nodes))
	f.Add([]byte(nodes + `{"visit":{"pair":[0,1],"load":"rr","failure":"node b left"}}` + "\n" +
		`{"end":{"reason":"budget","sweeps":3}}`))
	const routes = `{"header":{"schema":"bridgetoll.results/2","plan":{"study":"endpoints","baseline":"a","precision":0.1,"loads":[{"kind":"chat"}],"cells":[` +
		`{"mode":"a","from":"here","load":"chat","on":"endpoint"},{"mode":"a","from":"here","load":"chat","on":"endpoint","control":true},` +
		`{"mode":"b","from":"here","load":"chat","on":"endpoint"}]}}}` + "\n"
	tokens := ""
	for i := range 9 {
		tokens += fmt.Sprintf(`{"visit":{"cell":%d,"round":%d,"values":{"response":1},"evidence":{"hops":[{"port":1},{"port":2}],"responses":3,"by_id":3,"tokens":9,"matched":9,"window_s":1,`+
			`"server_gap_s":1,"gap_s":%g,"slow":1,"excess_s":1,"parts":[{"part":"server","last_s":1,"excess_s":1},{"part":"relay","hop":1,"first_s":1,"last_s":1e9}],`+
			`"waits":[{"cause":"nagle","tokens":9,"sum_s":1}],"response":{"tokens":2,"written_s":[1],"read_s":[1,2],"last_s":[1]}}}}`+"\n",
			i%3, i/3, math.Pow10(i-9))
	}
	f.Add([]byte(routes + tokens))
	f.Add([]byte(routes + strings.ReplaceAll(tokens, `"server",`, `"server","hop":-1,`)))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := sample.Read(bytes.NewReader(b))
		if err != nil {
			return
		}
		r := Judge(file).Base()
		if r.Cells == nil || r.Failed == nil || r.Skipped == nil || r.Warnings == nil ||
			len(r.Findings)+len(r.Found) == 0 {
			t.Fatalf("a list is missing: %+v", r)
		}
		for _, c := range r.Cells {
			_ = c.Label()
		}
		if _, err := json.Marshal(Judge(file)); err != nil {
			t.Errorf("the report cannot be written: %v", err)
		}
		live := Live(file.Header)
		for _, v := range file.Visits {
			live.Add(v)
		}
		live.Standings()
		if file.Header.Plan.Mesh != nil {
			mesh.Converged(file.Header.Plan, file.Pairs)
		}
	})
}
