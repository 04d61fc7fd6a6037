package published

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func studyOf(name string) (s Study, ok bool) {
	i := slices.IndexFunc(studies, func(s Study) bool { return s.Name == name })
	if i < 0 {
		return Study{}, false
	}
	return studies[i], true
}

func entries(t *testing.T, name string) (Study, []Entry) {
	t.Helper()
	rows, err := Rows()
	if err != nil {
		t.Fatal(err)
	}
	s, ok := studyOf(name)
	if !ok {
		t.Fatalf("no study %s", name)
	}
	es, err := s.Entries(rows)
	if err != nil {
		t.Fatal(err)
	}
	return s, es
}

func TestEveryRowHasACell(t *testing.T) {
	n := 0
	for _, name := range Names() {
		s, es := entries(t, name)
		n += len(es)
		for _, e := range es {
			if e.Why != "" {
				t.Errorf("%s: %s %s: %s", name, e.Mode, e.Shape, e.Why)
				continue
			}
			m, ok := mode.Find(e.Cell.Mode)
			if _, routed := m.Route(e.Cell.From, e.Cell.To); !ok || !routed {
				t.Errorf("%s: no route for %+v", name, e.Cell)
			}
			if e.Cell.Load != e.Load || e.Figure.Metric == "" || e.Command >= len(s.Commands) {
				t.Errorf("%s: %+v", name, e.Ours)
			}
		}
	}
	if n != 103 {
		t.Errorf("%d rows belong to studies, want 103", n)
	}
}

func TestPublishedRatios(t *testing.T) {
	type side struct{ mode, metric, place, label string }
	for _, tt := range []struct {
		study    string
		of, to   side
		smallest bool
		want     float64
	}{
		{"docker-networking-on-linux", side{mode: "publish-nat", metric: throughput},
			side{mode: "publish-proxy", metric: throughput}, false, 1.29},
		{"docker-networking-on-linux", side{mode: "publish-nat", metric: cpuIdle},
			side{mode: "publish-proxy", metric: cpuIdle}, false, 2.19},
		{"docker-networking-on-linux", side{mode: "host", metric: adjusted + "publish-proxy"},
			side{mode: "publish-proxy", metric: cpuIdle}, false, 2.8},
		{"docker-networking-on-linux", side{mode: "host", metric: adjusted + "publish-nat"},
			side{mode: "publish-nat", metric: cpuIdle}, false, 1.3},
		{"llm-token-streaming-bridge-vs-host", side{mode: "bridge", metric: response},
			side{mode: "host", metric: response}, false, 2.33},
		{"docker-network-performance-2014", side{mode: "ovs", label: "20"},
			side{mode: "routed", label: "20"}, false, 1.75},
		{"docker-network-performance-2014", side{mode: "link", label: "16"},
			side{mode: "link", label: "1"}, true, 0.1},
		{"docker-network-performance-2014", side{mode: "ovs", label: "4×4"},
			side{mode: "pipework", label: "4×4"}, false, 1.25},
		{"sql-server-docker-network-drivers-2019", side{mode: "bridge", metric: throughput},
			side{mode: "native", metric: throughput}, false, 0.87},
		{"sql-server-docker-network-drivers-2019", side{mode: "overlay", metric: throughput},
			side{mode: "native", metric: throughput}, false, 0.68},
		{"docker-network-performance-2014", side{mode: "link", label: "4×1"},
			side{mode: "link", label: "1×4"}, false, 1.48},
		{"sql-server-docker-network-drivers-2019", side{mode: "publish-proxy", metric: throughput},
			side{mode: "bridge", metric: throughput}, false, 0.83},
		{"docker-host-vs-bridge-qperf", side{mode: "host", metric: oneWay, place: "same machine"},
			side{mode: "bridge", metric: oneWay, place: "same machine"}, false, 0.87},
		{"docker-host-vs-bridge-qperf", side{mode: "bridge", metric: oneWay, place: "two machines"},
			side{mode: "native", metric: oneWay, place: "two machines"}, false, 1.17},
	} {
		s, es := entries(t, tt.study)
		is := func(e Entry, w side) bool {
			return e.Mode == w.mode && (w.metric == "" || e.Metric == w.metric) &&
				(w.place == "" || e.Placement == w.place) && e.Label == w.label
		}
		found := false
		for _, c := range s.compare(es) {
			if is(es[c.Of], tt.of) && is(es[c.To], tt.to) && c.Smallest == tt.smallest {
				found = true
				if math.Abs(c.Ratio-tt.want) > 0.006 {
					t.Errorf("%s: %v to %v is %v, want %v", tt.study, tt.of, tt.to, c.Ratio,
						tt.want)
				}
				break
			}
		}
		if !found {
			t.Errorf("%s: %v is not compared with %v", tt.study, tt.of, tt.to)
		}
	}
}

func TestFindingsRestOnRatios(t *testing.T) {
	for _, name := range Names() {
		s, es := entries(t, name)
		rests := make([]int, len(s.Findings))
		for _, c := range s.compare(es) {
			if c.Finding >= len(rests) || !(c.Ratio > 0) || math.IsInf(c.Ratio, 0) || c.Of == c.To {
				t.Fatalf("%s: %+v", name, c)
			}
			rests[c.Finding]++
		}
		for _, c := range s.Claims {
			rests[c.Finding]++
		}
		for i, n := range rests {
			if n == 0 {
				t.Errorf("%s: nothing supports %q", name, s.Findings[i])
			}
		}
	}
}

func TestProxyIsMeasuredOnTheMachineItself(t *testing.T) {
	s, _ := studyOf("sql-server-docker-network-drivers-2019")
	all := map[mode.Name]float64{mode.Native: 50, mode.Host: 50, mode.PublishDefault: 20}
	r, err := Compare([]Study{s}, []Input{{Name: "a.jsonl", File: file(1, 9, all)}})
	if err != nil {
		t.Fatal(err)
	}
	got := r.Studies[0]
	for _, l := range got.Rows {
		if l.Mode != string(mode.PublishProxy) || l.Metric != throughput {
			continue
		}
		if m := l.Ratios[0].Measured; m == nil || m.Median != 0.4 || l.Ratios[0].Verdict != Holds {
			t.Errorf("to native: %+v", l.Ratios[0])
		}
		if x := l.Ratios[1]; x.Verdict != NotMeasured {
			t.Errorf("to NAT, which the file has not: %+v", x)
		}
		if l.Here == nil || l.Here.Text(l.In().By) != "20.0 ±0.0" {
			t.Errorf("here %+v", l.Here)
		}
	}
	if f := got.Findings[2]; f.Verdict != Incomplete || f.Verdicts[Holds] != 1 {
		t.Errorf("%+v, want half of it to be measured", f)
	}
	if c := got.Commands; c[0].Missing == 0 || c[1].Missing != 1 {
		t.Errorf("commands %+v", c)
	}
}

func TestHostStandsForNativeOnASwarm(t *testing.T) {
	s, _ := studyOf("docker-host-vs-bridge-qperf")
	f := file(1, 9, map[mode.Name]float64{mode.Host: 50, mode.PublishDefault: 20})
	for i := range f.Header.Plan.Cells {
		c := &f.Header.Plan.Cells[i]
		c.On, c.From, c.To = sample.Swarm, "remote", "address"
		if c.Mode == mode.PublishDefault {
			c.From = "remote-container"
		}
	}
	r, err := Compare([]Study{s}, []Input{{Name: "swarm.jsonl", File: f}})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range r.Studies[0].Rows {
		if l.Placement != twoMachines || l.Metric != throughput {
			continue
		}
		switch l.Mode {
		case string(mode.Native):
			if l.Here == nil || l.Here.StandsFor != string(mode.Native) {
				t.Errorf("native's figure here: %+v", l.Here)
			}
		case string(mode.Bridge):
			if m := l.Ratios[0].Measured; m == nil || m.Median != 0.4 {
				t.Errorf("the published port to what stands for native: %+v", l.Ratios[0])
			}
		}
	}
	if !slices.Contains(r.Studies[0].Notes,
		"on a swarm there is no native mode: host replaces it") {
		t.Errorf("notes %q", r.Studies[0].Notes)
	}
}

func TestFindingVerdict(t *testing.T) {
	for _, tt := range []struct {
		verdicts map[Verdict]int
		mostly   bool
		want     Verdict
	}{
		{nil, false, ""},
		{map[Verdict]int{Holds: 2}, false, Holds},
		{map[Verdict]int{Holds: 2, Unclear: 1}, false, Unclear},
		{map[Verdict]int{Holds: 1, NotMeasured: 1}, false, Incomplete},
		{map[Verdict]int{Holds: 1, Unclear: 1, NotMeasured: 1}, false, Unclear},
		{map[Verdict]int{NotMeasured: 2}, false, NotMeasured},
		{map[Verdict]int{Gone: 1, Unclear: 1}, false, Fails},
		{map[Verdict]int{Reversed: 1, Holds: 1}, false, Partly},
		{map[Verdict]int{Holds: 6, Reversed: 1, Emerged: 2}, true, Holds},
		{map[Verdict]int{Holds: 4, Reversed: 5}, true, Fails},
		{map[Verdict]int{Holds: 4, Unclear: 5}, true, Unclear},
		{map[Verdict]int{Holds: 4, NotMeasured: 5}, true, Incomplete},
		{map[Verdict]int{Unclear: 1, NotMeasured: 5}, true, Unclear},
		{map[Verdict]int{Unclear: 1, NotMeasured: 5}, false, Unclear},
		{map[Verdict]int{Gone: 1, NotMeasured: 5}, true, Unclear},
		{map[Verdict]int{Holds: 1, Unclear: 1, NotMeasured: 5}, true, Unclear},
		{map[Verdict]int{Holds: 2, Gone: 1, NotMeasured: 6}, true, Incomplete},
	} {
		if got := (Finding{Verdicts: tt.verdicts}).verdict(tt.mostly); got != tt.want {
			t.Errorf("%v, mostly %v: got %q, want %q", tt.verdicts, tt.mostly, got, tt.want)
		}
	}
}

func TestFindingNamesItsDatapath(t *testing.T) {
	s, _ := studyOf("docker-network-performance-2014")
	f := file(1, 9, map[mode.Name]float64{mode.Host: 40, mode.NATAlias: 30, mode.OVS: 9})
	for i := range f.Header.Plan.Cells {
		c := &f.Header.Plan.Cells[i]
		c.From, c.To, c.Shape = "container", "container",
			sample.Shape{Servers: 1, Clients: 2, Procs: 1}
		f.Header.Paths = append(f.Header.Paths,
			sample.Path{Mode: c.Mode, From: c.From, To: c.To, On: c.On, Servers: 1, Clients: 2,
				Facts: map[string]string{"datapath": map[mode.Name]string{
					"ovs": "userspace (datapath_type=netdev)"}[c.Mode]}})
	}
	for i := range f.Visits {
		v := &f.Visits[i]
		v.Rates = [][]float64{{float64(v.Server.Received)}}
	}
	r, err := Compare([]Study{s}, []Input{{Name: "a.jsonl", File: f}})
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range r.Studies[0].Findings[:2] {
		if noted := len(x.Notes) == 1; noted != (i == 0) {
			t.Errorf("%q: notes %q", x.Text, x.Notes)
		}
	}
	if text := strings.Join(r.Answer.Text, " "); text != "1 of 5 findings does not hold: Open "+
		"vSwitch carries more than every other mode, whatever the number of clients (reversed 1, "+
		"not measured 19 of 20 ratios) [measured on another datapath of Open vSwitch: userspace "+
		"(datapath_type=netdev)]. 4 are not measured: see the commands below." {
		t.Errorf("the answer does not say it: %s", text)
	}
}

func TestClaims(t *testing.T) {
	for _, s := range studies {
		for _, c := range s.Claims {
			if c.Finding >= len(s.Findings) || c.Command >= len(s.Commands) || c.Text == "" ||
				(c.To.Metric == "") != (c.Bound > 0) {
				t.Errorf("%s: %+v", s.Name, c)
			}
			for _, f := range []analysis.Figure{c.Of, c.To} {
				m, ok := mode.Find(f.Cell.Mode)
				if _, routed := m.Route(f.Cell.From, f.Cell.To); f.Metric != "" &&
					(!ok || !routed) {
					t.Errorf("%s: no route for %+v", c.Text, f.Cell)
				}
				if tunes, err := mode.ParseTunes(string(f.Cell.Tune)); f.Cell.Tune != "" &&
					(err != nil || tunes != f.Cell.Tune) {
					t.Errorf("%s: tune %q is written %q: %v", c.Text, f.Cell.Tune, tunes, err)
				}
			}
		}
	}
}

func TestJudgeClaims(t *testing.T) {
	x := func(low, high float64, v stats.Verdict) analysis.Ratio {
		return analysis.Ratio{Median: (low + high) / 2, Low: low, High: high, N: 8, Verdict: v}
	}
	for _, tt := range []struct {
		want     Direction
		measured analysis.Ratio
		verdict  Verdict
	}{
		{Alike, x(0.99, 1.01, stats.Same), Holds},
		{Alike, x(1.2, 1.3, stats.Worse), Emerged},
		{Alike, x(0.9, 1.2, stats.Unclear), Unclear},
		{Less, x(0.5, 0.6, stats.Better), Holds},
		{Less, x(1.5, 1.6, stats.Worse), Reversed},
		{More, x(1.5, 1.6, stats.Worse), Holds},
		{More, x(0.99, 1.01, stats.Same), Gone},
		{More, x(0.9, 1.4, stats.Unclear), Unclear},
		{More, analysis.Ratio{Median: 2, Low: 2, High: 2, N: 1, Verdict: stats.Worse}, Unclear},
	} {
		if got := judgeDirection(tt.want, tt.measured); got != tt.verdict {
			t.Errorf("%s, %+v: got %s, want %s", tt.want, tt.measured, got, tt.verdict)
		}
	}
	for _, tt := range []struct {
		want    Direction
		most    float64
		n       int
		verdict Verdict
	}{{More, 0.25, 8, Holds}, {More, 0.04, 8, Gone}, {Less, 0.04, 8, Holds},
		{Less, 0.25, 8, Emerged}, {More, 0.25, 2, Unclear}} {
		if got := judgeBound(tt.want, 0.2, tt.most, tt.n); got != tt.verdict {
			t.Errorf("%s, %v: got %s, want %s", tt.want, tt.most, got, tt.verdict)
		}
	}
}

func TestAnswer(t *testing.T) {
	finding := func(text string, v ...Verdict) Finding {
		f := Finding{Text: text, Verdicts: map[Verdict]int{}}
		for _, x := range v {
			f.Verdicts[x]++
		}
		f.Verdict = f.verdict(false)
		return f
	}
	r := Report{Files: []File{{Name: "a"}},
		Studies: []Result{{Findings: []Finding{
			finding("one", Holds, Holds), finding("two", Gone, Holds, NotMeasured),
			finding("three", Reversed), finding("four", Unclear, NotMeasured),
			finding("five", NotMeasured)}}}}
	want := []string{"1 of 5 findings holds: one.", "1 does not hold: three (reversed).",
		"1 holds in part: two (holds 1, gone 1, not measured 1 of 3 ratios).",
		"1 is unclear: measure longer (--budget) or on a quieter machine.",
		"1 is not measured: see the commands below."}
	if got := r.answer().Text; !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if r.Files = nil; len(r.answer().Text) != 1 {
		t.Errorf("of no file: %q", r.answer().Text)
	}
}

func TestShapes(t *testing.T) {
	for _, tt := range []struct {
		words, label string
		shape        sample.Shape
		share        int
	}{
		{"1 server container, 16 client containers", "16",
			sample.Shape{Servers: 1, Clients: 16, Procs: 1}, 16},
		{"4 server containers, 4 client containers", "4",
			sample.Shape{Servers: 4, Clients: 4, Procs: 1}, 4},
		{"1 server, 2x4 (client containers x clients in each)", "2×4",
			sample.Shape{Servers: 1, Clients: 2, Procs: 4}, 8},
		{"0 server containers, 4 client containers", "", sample.Shape{}, 0},
		{"many", "", sample.Shape{}, 0},
	} {
		o, err := crowdOurs(Row{Mode: "link", Load: "bulk", Shape: tt.words})
		if (err == nil) != (tt.share > 0) || err == nil &&
			(o.Label != tt.label || o.Cell.Shape != tt.shape || o.Share != tt.share) {
			t.Errorf("%q: %+v, %v", tt.words, o, err)
		}
	}
}

func TestJudge(t *testing.T) {
	x := func(low, high float64, v stats.Verdict) analysis.Ratio {
		return analysis.Ratio{Median: (low + high) / 2, Low: low, High: high, N: 8, Verdict: v}
	}
	few := x(0.5, 0.6, stats.Worse)
	few.N = stats.MinJudged - 1
	for _, tt := range []struct {
		name      string
		published float64
		measured  analysis.Ratio
		want      Verdict
	}{
		{"same-direction", 0.8, x(0.4, 0.5, stats.Worse), Holds},
		{"same-direction-of-latency", 1.3, x(1.1, 1.2, stats.Worse), Holds},
		{"no-difference-in-both", 1.02, x(0.98, 1.03, stats.Same), Holds},
		{"no-difference-but-unclear", 1.02, x(0.97, 1.03, stats.Unclear), Holds},
		{"small-difference-is-alike", 0.98, x(0.96, 0.98, stats.Worse), Holds},
		{"gone", 0.8, x(0.97, 1.03, stats.Same), Gone},
		{"gone-within-the-floor", 0.8, x(0.97, 1.03, stats.Unclear), Gone},
		{"not-gone-if-it-may-be-there", 0.93, x(0.92, 1.02, stats.Same), Unclear},
		{"reversed", 1.3, x(0.5, 0.6, stats.Worse), Reversed},
		{"new", 1, x(0.5, 0.6, stats.Worse), Emerged},
		{"perhaps-new", 1, x(0.9, 0.97, stats.Worse), Unclear},
		{"unclear", 0.8, x(0.7, 1.2, stats.Unclear), Unclear},
		{"few-rounds", 0.8, few, Unclear},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := judge(tt.published, tt.measured); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// The run has a value in Gbit/s for each mode, from the host to 127.0.0.1; host is the baseline.
func file(streams, rounds int, gbit map[mode.Name]float64) *sample.File {
	f := &sample.File{Header: sample.Header{Plan: sample.Plan{Baseline: "host", Precision: 0.02,
		Loads: []sample.Load{{Kind: "bulk", Streams: streams, Window: 1}}}}}
	p := &f.Header.Plan
	for _, m := range mode.Names() {
		if gbit[m] == 0 {
			continue
		}
		c := sample.Cell{Mode: m, From: "host", To: "loopback", Load: "bulk", On: "lab"}
		p.Cells = append(p.Cells, c)
		if m == mode.Host {
			c.Control = true
			p.Cells = append(p.Cells, c)
		}
	}
	for r := range rounds {
		for i, c := range p.Cells {
			f.Visits = append(f.Visits, sample.Visit{Turn: sample.Turn{Round: r, Cell: i},
				Ends: sample.Ends{Server: sample.Party{
					Window: 1, Received: int64(gbit[c.Mode] * 1e9 / 8)}},
				Metered: sample.Metered{Elapsed: 1},
				Proof:   sample.Proof{Witness: sample.Witness{OK: true}}})
		}
	}
	return f
}

func TestCompare(t *testing.T) {
	s, _ := studyOf("docker-networking-on-linux")
	all := map[mode.Name]float64{mode.Host: 50, mode.PublishNAT: 40, mode.PublishDefault: 20}
	one, ten := Input{Name: "one.jsonl", File: file(1, 9, all)},
		Input{Name: "ten.jsonl", File: file(10, 6, all)}
	half := Input{Name: "half.jsonl", File: file(
		10, 6, map[mode.Name]float64{mode.Host: 50, mode.PublishNAT: 40})}
	for _, tt := range []struct {
		name    string
		files   []Input
		file    string
		verdict Verdict
		notes   int
		missing int
	}{
		{"nothing", nil, "", NotMeasured, 0, 0},
		{"other-options-are-noted", []Input{one}, "one.jsonl", Holds, 1, 3},
		{"the-study's-options-are-preferred", []Input{one, ten}, "ten.jsonl", Holds, 0, 3},
		{"in-any-order", []Input{ten, one}, "ten.jsonl", Holds, 0, 3},
		{"one-side-only", []Input{half}, "", NotMeasured, 0, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := Compare([]Study{s}, tt.files)
			if err != nil {
				t.Fatal(err)
			}
			res := r.Studies[0]
			var got Ratio
			for _, l := range res.Rows {
				if l.Mode == "publish-nat" && l.Metric == throughput {
					got = l.Ratios[0]
				}
			}
			if got.File != tt.file || got.Verdict != tt.verdict ||
				len(res.Notes)-len(s.Doubts) != tt.notes || res.Commands[0].Missing != tt.missing {
				t.Errorf("%+v, notes %q, %+v", got, res.Notes, res.Commands)
			}
			if tt.file != "" && got.Measured.Median != 2 {
				t.Errorf("measured %+v, want 2", got.Measured)
			}
		})
	}
}

// A figure has the digits that its interval justifies, and a zero has none.
func TestValueText(t *testing.T) {
	for _, tt := range []struct {
		v    Value
		by   float64
		want string
	}{
		{Value{41.9e9, 41.6e9, 42.2e9, 9}, 1e-9, "41.9 ±0.3"},
		{Value{45e9, 34e9, 54e9, 9}, 1e-9, "45 (34–54)"},
		{Value{0.034, 0.034, 0.034, 1}, 1e3, "34.0"},
		{Value{0, 0, 0, 9}, 100, "0 ±0"},
	} {
		if got := tt.v.Text(tt.by); got != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.v, got, tt.want)
		}
	}
}

// What a finding says in figures is the quotient of the study's own.
func TestFindingsHaveTheirFigures(t *testing.T) {
	_, es := entries(t, "docker-host-vs-bridge-qperf")
	of := func(m mode.Name, metric string) float64 {
		return es[find(es, func(e Entry) bool {
			return e.Row.Mode == string(m) && e.Row.Metric == metric && e.Placement == sameMachine
		})].Value
	}
	s, _ := studyOf("docker-host-vs-bridge-qperf")
	want := fmt.Sprintf(
		"on one machine host networking's throughput is %.0f %% bigger than a bridge's, its "+
			"latency %.0f %% less",
		100*(of(mode.Host, throughput)/of(mode.Bridge, throughput)-1),
		100*(1-of(mode.Host, oneWay)/of(mode.Bridge, oneWay)))
	if s.Findings[2] != want {
		t.Errorf("%q, want %q", s.Findings[2], want)
	}
}

// A real link between machines has no rate that toll set.
func TestPeersHaveNoWire(t *testing.T) {
	for on, want := range map[string]int{sample.Lab: 1, sample.Peer: 0} {
		s, _ := studyOf("sql-server-docker-network-drivers-2019")
		f := file(1, 9, map[mode.Name]float64{mode.Host: 50, mode.Native: 51})
		for i := range f.Header.Plan.Cells {
			c := &f.Header.Plan.Cells[i]
			c.On, c.From, c.To = on, "remote", "address"
			f.Header.Paths = append(f.Header.Paths,
				sample.Path{Mode: c.Mode, From: c.From, To: c.To,
					On: on, Hops: []string{string(mode.HopWire)}})
		}
		r, err := Compare([]Study{s}, []Input{{Name: "far.jsonl", File: f}})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(r.Studies[0].Differs); got != want {
			t.Errorf("%s: %q", on, r.Studies[0].Differs)
		}
	}
}
