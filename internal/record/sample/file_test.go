package sample

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

// realFile is made by
//
//	toll compare bridge publish-proxy --rounds 2 --window 50ms --quiet --save internal/record/sample/testdata/run.jsonl
func realFile(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/run.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func full(t testing.TB) *File {
	t.Helper()
	h := NewHistogram()
	for i := range int64(1000) {
		if err := h.RecordValue(20_000 + 10*i); err != nil {
			t.Fatal(err)
		}
	}
	latency, err := Encode(h)
	if err != nil {
		t.Fatal(err)
	}
	party := Party{Window: 0.25, Sent: 1 << 30, Received: 1 << 20, Trips: 10, TotalSent: 1 << 31,
		TotalRecv:   1 << 21,
		Connections: 4,
		CPU:         0.2,
		BusiestCPU:  0.8,
		Involuntary: 3,
		CPUs:        []int{0},
		RSS:         1 << 23,
		Late:        0.0003,
		TCP: TCPInfo{Retransmits: 2, RTT: 0.00005, RTTVar: 0.00001, Cwnd: 40, MSS: 1448, PMTU: 1500,
			Packet: 1500, Headers: 52, Device: "eth0", DeviceMTU: 1500}}
	cells := []Cell{
		{Mode: "host", From: "host", To: "loopback", Load: "rr", On: "lab"},
		{Mode: "host", From: "host", To: "loopback", Load: "rr", On: "lab", Control: true},
	}
	f := &File{
		Header: Header{Schema: Schema, Started: time.Date(
			2026, 11, 21, 20, 48, 43, 744638635, time.UTC),
			Environment: Environment{Tool: "0.1.0", Kernel: "6.18", CPUModel: "Intel Xeon", CPUs: 2,
				CPUsAllowed: []int{0, 1},
				Mitigations: map[string]string{"retbleed": "Vulnerable"}, CgroupCPUs: 1.5,
				Cards: []Card{{Name: "eth0", Where: "node a", Driver: "ixgbe", Device: true,
					NUMA: new(int), Speed: 10e9, Duplex: FullDuplex,
					Queues:     &CardQueues{Combined: 2},
					Interrupts: []Interrupt{{38, "eth0-TxRx-0", "0"}},
					RPS:        map[string]string{"rx-0": "3"}}}},
			Plan: Plan{Study: StudyCompare, Seed: 1<<64 - 1, Rounds: 2, Budget: 60, Precision: 0.02,
				Baseline: "host", Pin: "none",
				Loads: []Load{{Kind: "rr", Streams: 2, Options: RROptions{}, Warmup: 0.05,
					Window: 0.25}},
				Cells: cells,
				Skipped: []Skip{{Mode: "shared", From: "host", Reason: "there is no such path",
					Remedy: "--from container"}}},
			Paths: []Path{{Mode: "host", From: "host", To: "loopback", On: "lab",
				Dial: "127.0.0.1:1", Listen: "0.0.0.0:1",
				Hops: []string{"lo"},
				Links: []Link{{Name: "lo", MTU: 65536, Offloads: map[string]bool{"tso": true},
					Rate: 1e9}},
				Cards: []CardName{{"eth0", "node a"}, {"eth1", "gone"}}}},
		},
		End: End{Reason: EndedByRounds, Rounds: 2, Elapsed: 3.5},
	}
	for round := range 2 {
		for cell := range cells {
			f.Visits = append(f.Visits, Visit{Turn: Turn{Round: round, Cell: cell, At: 0.5},
				Ends: Ends{Client: party, Server: party},
				Metered: Metered{Proxy: &ProxyUse{"docker-proxy", 0.1, 4 << 20},
					Machine: []CPU{{User: 0.1, System: 0.2, IRQ: 0.3, SoftIRQ: 0.4, Steal: 0.5,
						Idle: 0.6}}, Elapsed: 0.25},
				Proof: Proof{Hops: []HopReading{
					{Kind: "lo", Name: "lo", Where: "machine A",
						After: Counters{1, 2, 3, 4, 5, 6}}}, Witness: Witness{OK: true}},
				Timings:   Timings{Latency: latency},
				Throttled: 1})
		}
	}
	f.Changes = []Change{{Difference: Difference{
		Where: "machine A", What: "MTU of eth0", Was: "1500", Is: "600"}, Cells: []int{0, 1},
		Round: 1, Right: 1, Seen: 2},
		{Difference: Difference{Where: "machine A", What: "eth0", Was: "veth"}, Cells: []int{0},
			Right: 1, Seen: 2}}
	return f
}

// write leaves out the End if f is Truncated.
func write(w io.Writer, f *File) error {
	out := NewWriter(w)
	err := out.Header(f.Header)
	for _, v := range f.Visits {
		err = errors.Join(err, out.Visit(v))
	}
	for _, c := range f.Changes {
		err = errors.Join(err, out.Change(c))
	}
	if !f.Truncated {
		err = errors.Join(err, out.End(f.End))
	}
	return err
}

func written(t testing.TB, f *File) string {
	t.Helper()
	var b strings.Builder
	if err := write(&b, f); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestRoundTrip(t *testing.T) {
	f := full(t)
	got, err := Read(strings.NewReader(written(t, f)))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, f) {
		t.Errorf("got  %+v\nwant %+v", got, f)
	}
}

// testdata/visits.jsonl has visits of several loads, and some with each field set.
func TestVisitsKeepTheirBytes(t *testing.T) {
	b, err := os.ReadFile("testdata/visits.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for want := range bytes.Lines(append(b, realFile(t)...)) {
		var l line
		var raw struct{ Visit map[string]json.RawMessage }
		if err := errors.Join(json.Unmarshal(want, &l), json.Unmarshal(want, &raw)); err != nil {
			t.Fatal(err)
		}
		if l.Visit == nil {
			continue
		}
		for name := range raw.Visit {
			seen[name] = true
		}
		var got bytes.Buffer
		if err := NewWriter(&got).Visit(*l.Visit); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("read   %swritten %s", want, got.Bytes())
		}
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Visit]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); !f.Anonymous && !seen[name] {
			t.Errorf("no visit of testdata/visits.jsonl has %s (%q)", f.Name, name)
		}
	}
}

func TestWriterSetsTheSchema(t *testing.T) {
	text := written(t, &File{Header: Header{Schema: "something else"}})
	if !strings.HasPrefix(text, `{"header":{"schema":"`+Schema+`"`) {
		t.Errorf("file starts %.60q", text)
	}
	if n := strings.Count(text, "\n"); n != 2 || !strings.HasSuffix(text, "\n") {
		t.Errorf("header and end make %d lines: %q", n, text)
	}
}

func TestReadRealFile(t *testing.T) {
	f, err := Read(bytes.NewReader(realFile(t)))
	if err != nil {
		t.Fatal(err)
	}
	cells := len(f.Header.Plan.Cells)
	if f.Truncated || f.End.Reason != EndedByRounds || f.End.Rounds != 2 ||
		len(f.Visits) != 2*cells {
		t.Errorf("truncated %t, end %+v, %d visits of %d cells", f.Truncated, f.End, len(f.Visits),
			cells)
	}
	for i, v := range f.Visits {
		c := f.Header.Plan.Cells[v.Cell]
		if _, ok := f.Header.PathOf(c); !ok {
			t.Errorf("visit %d: no path of %+v", i, c)
		}
		if (v.Latency != nil) != (c.Load == "rr") {
			t.Errorf("visit %d of %s has latencies: %t", i, c.Load, v.Latency != nil)
		}
		if v.Latency == nil {
			continue
		}
		if h, err := v.Latency.Decode(); err != nil || h.TotalCount() != v.Client.Trips {
			t.Errorf("visit %d: %v, or its histogram has not its %d trips", i, err, v.Client.Trips)
		}
	}
}

func TestReadCutAnywhere(t *testing.T) {
	f := full(t)
	text := written(t, f)
	header := strings.Index(text, "\n")
	for n := 0; n < len(text); n++ {
		got, err := Read(strings.NewReader(text[:n]))
		if n < header {
			if !errors.Is(err, ErrEmpty) {
				t.Fatalf("cut at %d, in the header: %v", n, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		// Without its newline, a line may still be whole.
		lines := strings.Split(text[:n], "\n")
		whole := len(lines) - 1
		if json.Valid([]byte(lines[whole])) {
			whole++
		}
		want := min(whole-1, len(f.Visits))
		if ended := whole == 2+len(f.Visits)+len(f.Changes); len(got.Visits) != want ||
			got.Truncated == ended {
			t.Fatalf("cut at %d: %d visits, truncated %t; want %d, %t", n, len(got.Visits),
				got.Truncated, want, !ended)
		}
		if got.Truncated && (got.End.Reason != EndedCutShort || got.End.Rounds != want/2) {
			t.Fatalf("cut at %d: end %+v with %d visits", n, got.End, want)
		}
	}
}

const okHeader = `{"header":{"schema":"` + Schema +
	`","plan":{"cells":[{"mode":"host"},{"mode":"bridge"}]}}}`

func TestRead(t *testing.T) {
	visit := func(s string) string { return `{"visit":{` + s + `}}` }
	const end = `{"end":{"reason":"budget","rounds":9}}`
	for _, tt := range []struct {
		name   string
		lines  []string
		line   int    // of the *SyntaxError; 0: none
		fails  string // part of the error; "": the file is read
		visits int
		cut    bool
		open   bool
	}{
		{name: "header-and-end", lines: []string{okHeader, end}},
		{name: "no-end", lines: []string{okHeader, visit(`"cell":1`)}, visits: 1, cut: true},
		{name: "header-only", lines: []string{okHeader}, cut: true},
		{name: "blank-lines", lines: []string{"", okHeader, "", visit(`"cell":1`), "", end, ""},
			visits: 1},
		{name: "carriage-returns", lines: []string{
			okHeader + "\r", visit(`"cell":1`) + "\r", end + "\r"}, visits: 1},
		{name: "unknown-members", lines: []string{okHeader, visit(`"cell":1,"colour":"red"`), end},
			visits: 1},
		{name: "last-line-cut", lines: []string{okHeader, visit(`"cell":0`), `{"visit":{"ce`},
			visits: 1, cut: true, open: true},
		{name: "last-line-whole-but-open", lines: []string{okHeader, visit(`"cell":0`)}, visits: 1,
			cut: true, open: true},
		{name: "end-open", lines: []string{okHeader, visit(`"cell":0`), end}, visits: 1,
			open: true},
		{name: "last-line-ended-but-cut", lines: []string{
			okHeader, visit(`"cell":0`), `{"visit":{"ce`}, line: 3,
			fails: "line 3: unexpected end of JSON input"},
		{name: "last-line-garbage", lines: []string{okHeader, visit(`"cell":0`), "garbage"},
			line: 3, fails: "line 3: invalid character 'g' looking for beginning of value"},
		{name: "last-line-of-another-type", lines: []string{okHeader, `[1]`}, line: 2, open: true,
			fails: "line 2: json: cannot unmarshal array into Go value of type sample.line"},
		{name: "end-cut", lines: []string{okHeader, `{"end":{"rea`}, cut: true, open: true},

		{name: "empty", fails: ErrEmpty.Error()},
		{name: "blank", lines: []string{"", ""}, fails: ErrEmpty.Error()},
		{name: "header-cut", lines: []string{`{"header":{"sch`}, open: true,
			fails: ErrEmpty.Error() + " (line 1: it was cut off)"},
		{name: "one-line-of-text", lines: []string{"hello"}, fails: ErrEmpty.Error() +
			" (line 1: invalid character 'h' looking for beginning of value)"},
		{name: "text", lines: []string{"hello", "world"}, line: 1, fails: "no header: this is not a toll results file, or the run died before its first " +
			"visit (line 1: invalid character 'h' looking for beginning of value)"},
		{name: "binary", lines: []string{"\x7fELF\x02\x01", "\x00"}, line: 1,
			fails: "no header: this is not a toll results file, or the run died before its " +
				"first visit (line 1: invalid character '\\x7f' looking for beginning of " +
				"value)"},
		{name: "lines-of-another-program", lines: []string{`{"Action":"run"}`, `{"Action":"pass"}`},
			fails: ErrEmpty.Error()},
		{name: "array", lines: []string{`[1,2]`, okHeader}, line: 1,
			fails: "no header: this is not a toll results file, or the run died before its " +
				"first visit (line 1: json: cannot unmarshal array into Go value of type " +
				"sample.line)"},
		{name: "visit-first", lines: []string{visit(`"cell":0`), okHeader},
			fails: ErrEmpty.Error()},
		{name: "wrong-schema", lines: []string{`{"header":{"schema":"bridgetoll.results/3"}}`},
			line: 1,
			fails: `line 1: schema "bridgetoll.results/3": this toll reads only ` +
				`"bridgetoll.results/2"`},
		{name: "no-schema", lines: []string{`{"header":{}}`}, line: 1, fails: `line 1: schema "": this toll reads only "bridgetoll.results/2"`},

		{name: "bad-middle-line", lines: []string{
			okHeader, visit(`"cell":0`), `{"visit":{"ce`, visit(`"cell":1`), end}, line: 3,
			fails: "line 3: unexpected end of JSON input"},
		{name: "bad-line-before-a-blank", lines: []string{okHeader, `{"visit":{"ce`, "", end},
			line: 2, fails: "line 2: unexpected end of JSON input"},
		{name: "wrong-type", lines: []string{okHeader, visit(`"cell":"x"`), end}, line: 2,
			fails: "line 2: json: cannot unmarshal string into Go struct field " +
				"Visit.visit.Turn.cell of type int"},
		{name: "number-beyond-its-type", lines: []string{
			okHeader, visit(`"client":{"cpu_s":1e999}`), end}, line: 2,
			fails: "line 2: json: cannot unmarshal number 1e999 into Go struct field " +
				"Party.visit.Ends.client.cpu_s of type float64"},
		{name: "second-header", lines: []string{okHeader, okHeader}, line: 2,
			fails: "line 2: a second header"},
		{name: "record-after-the-end", lines: []string{okHeader, end, visit(`"cell":0`)}, line: 3,
			fails: "line 3: a record after the end"},
		{name: "second-end", lines: []string{okHeader, end, end}, line: 3,
			fails: "line 3: a record after the end"},
		{name: "cut-record-after-the-end", lines: []string{okHeader, end, `{"vis`}, line: 3,
			fails: "line 3: a record after the end"},
		{name: "neither", lines: []string{okHeader, `{}`}, line: 2,
			fails: "line 2: unknown record: not a header, visit, change, step or end"},
		{name: "null-visit", lines: []string{okHeader, `{"visit":null}`}, line: 2,
			fails: "line 2: unknown record: not a header, visit, change, step or end"},

		{name: "cell-beyond-the-plan", lines: []string{okHeader, visit(`"cell":2`)}, line: 2,
			fails: "line 2: cell 2 is not in the plan, which has 2 cells"},
		{name: "change-before-the-header", lines: []string{`{"change":{"cells":[0]}}`, okHeader},
			fails: ErrEmpty.Error()},
		{name: "change-of-a-cell-beyond-the-plan",
			lines: []string{okHeader, `{"change":{"cells":[0,2]}}`}, line: 2,
			fails: "line 2: cell 2 is not in the plan, which has 2 cells"},
		{name: "change-of-too-many-cells", lines: []string{
			okHeader, `{"change":{"cells":[0,1,1]}}`}, line: 2, fails: "line 2: a change of 3 cells: the plan has only 2"},
		{name: "change-in-a-negative-round", lines: []string{okHeader, `{"change":{"round":-1}}`},
			line: 2, fails: "line 2: impossible round -1"},
		{name: "change-at-an-absurd-time", lines: []string{okHeader, `{"change":{"seen_s":1e10}}`},
			line: 2, fails: "line 2: impossible time 1e+10"},
		{name: "negative-cell", lines: []string{okHeader, visit(`"cell":-1`)}, line: 2,
			fails: "line 2: cell -1 is not in the plan, which has 2 cells"},
		{name: "negative-round", lines: []string{okHeader, visit(`"round":-1`)}, line: 2,
			fails: "line 2: impossible round -1"},
		{name: "absurd-round", lines: []string{okHeader, visit(`"round":1000001`)}, line: 2,
			fails: "line 2: impossible round 1000001"},
		{name: "negative-window", lines: []string{okHeader, visit(`"client":{"window_s":-1}`)},
			line: 2, fails: "line 2: impossible time -1"},
		{name: "absurd-window", lines: []string{okHeader, visit(`"server":{"window_s":1e10}`)},
			line: 2, fails: "line 2: impossible time 1e+10"},
		{name: "absurd-cpu", lines: []string{okHeader, visit(`"client":{"cpu_s":1e300}`)}, line: 2,
			fails: "line 2: impossible time 1e+300"},
		{name: "negative-share", lines: []string{okHeader, visit(`"client":{"busiest_cpu":-0.5}`)},
			line: 2, fails: "line 2: impossible time -0.5"},
		{name: "absurd-share-of-time", lines: []string{okHeader, visit(`"together":1.5`)}, line: 2,
			fails: "line 2: impossible share of the time 1.5"},
		{name: "negative-bytes", lines: []string{okHeader, visit(`"client":{"sent":-1}`)}, line: 2,
			fails: "line 2: negative count -1"},
		{name: "negative-trips", lines: []string{okHeader, visit(`"server":{"trips":-7}`)}, line: 2,
			fails: "line 2: negative count -7"},
		{name: "too-many-cpus", lines: []string{
			okHeader, visit(`"machine":[` + strings.Repeat("{},", maxCPUs) + `{}]`)}, line: 2,
			fails: "line 2: 4097 CPUs, at most 4096 are read"},
		{name: "too-many-cells", lines: []string{
			`{"header":{"schema":"` + Schema + `","plan":{"cells":[` +
				strings.Repeat("{},", maxCells) + `{}]}}}`},
			line: 1, fails: "line 1: 10001 cells, at most 10000 are read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var text string
			if len(tt.lines) > 0 {
				text = strings.Join(tt.lines, "\n") + "\n"
			}
			if tt.open {
				text = strings.TrimSuffix(text, "\n")
			}
			f, err := Read(strings.NewReader(text))
			if tt.fails == "" {
				if err != nil {
					t.Fatal(err)
				}
				if len(f.Visits) != tt.visits || f.Truncated != tt.cut {
					t.Errorf("%d visits, truncated %t; want %d, %t", len(f.Visits), f.Truncated,
						tt.visits, tt.cut)
				}
				return
			}
			if err == nil || f != nil || err.Error() != tt.fails {
				t.Fatalf("error %q, want %q", err, tt.fails)
			}
			var s *syntaxError
			if got := errors.As(err, &s); got && s.Line != tt.line && tt.line != 0 ||
				!got && tt.line != 0 {
				t.Errorf("error %v, want a *SyntaxError in line %d", err, tt.line)
			}
			if tt.line == 0 && !errors.Is(err, ErrEmpty) {
				t.Errorf("error %v is not ErrEmpty", err)
			}
		})
	}
}

func TestReadTooLongLine(t *testing.T) {
	long := strings.NewReader(okHeader + "\n" + `{"visit":{"failure":"`)
	_, err := Read(io.MultiReader(long, io.LimitReader(letters{}, maxLine+1),
		strings.NewReader(`"}}`+"\n")))
	var s *syntaxError
	if !errors.As(err, &s) || s.Line != 2 || err.Error() != "line 2: longer than 1 MiB" {
		t.Errorf("error %v", err)
	}
}

// TestWriteTooLongLine writes nothing that Read would refuse, with which a run of hours would be
// lost.
func TestWriteTooLongLine(t *testing.T) {
	f := full(t)
	for len(f.Header.Plan.Cells) < 2*maxCells {
		f.Header.Plan.Cells = append(f.Header.Plan.Cells, f.Header.Plan.Cells[0])
	}
	var out bytes.Buffer
	w := NewWriter(&out)
	err := w.Header(f.Header)
	if err == nil || err.Error() != "write results: a record is longer than 1 MiB" || out.Len() > 0 {
		t.Errorf("%d bytes: %v", out.Len(), err)
	}
	if again := w.End(End{}); !errors.Is(again, err) {
		t.Errorf("then %v", again)
	}
}

// letters is text without an end.
type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestReadPassesOnReadErrors(t *testing.T) {
	broken := errors.New("the disk is gone")
	_, err := Read(io.MultiReader(strings.NewReader(okHeader+"\n"), failing{broken}))
	if !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// Complete rounds are those in which every cell was visited.
func TestRoundsOfACutFile(t *testing.T) {
	visit := func(round, cell int) Visit { return Visit{Turn: Turn{Round: round, Cell: cell}} }
	for _, tt := range []struct {
		name   string
		visits []Visit
		want   int
	}{
		{"none", nil, 0},
		{"half-a-round", []Visit{visit(0, 1)}, 0},
		{"one-and-a-half", []Visit{visit(0, 1), visit(0, 0), visit(1, 0)}, 1},
		{"two", []Visit{visit(0, 1), visit(0, 0), visit(1, 0), visit(1, 1)}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := full(t)
			f.Visits, f.Truncated = tt.visits, true
			got, err := Read(strings.NewReader(written(t, f)))
			if err != nil || got.End.Rounds != tt.want {
				t.Errorf("%+v, %v; want %d rounds", got.End, err, tt.want)
			}
		})
	}
}

// short accepts left writes, and then fails.
type short struct {
	left   int
	writes int
}

var errFull = errors.New("no space left on device")

func (s *short) Write(p []byte) (int, error) {
	s.writes++
	if s.left == 0 {
		return 0, errFull
	}
	s.left--
	return len(p), nil
}

func TestWriterKeepsFailing(t *testing.T) {
	out := &short{left: 1}
	w := NewWriter(out)
	if err := w.Header(Header{}); err != nil {
		t.Fatal(err)
	}
	first := w.Visit(Visit{})
	if !errors.Is(first, errFull) || !strings.HasPrefix(first.Error(), "write results: ") {
		t.Fatalf("error %v", first)
	}
	out.left = 10 // there is space again, but the file has a hole
	for _, err := range []error{w.Visit(Visit{}), w.End(End{})} {
		if !errors.Is(err, errFull) {
			t.Errorf("after an error: %v", err)
		}
	}
	if out.writes != 2 {
		t.Errorf("%d writes, want none after the first error", out.writes)
	}
}

// One record is one write, so that a killed run leaves whole lines.
func TestWriterIsUnbuffered(t *testing.T) {
	f := full(t)
	out := &short{left: -1}
	if err := write(out, f); err != nil {
		t.Fatal(err)
	}
	if want := 2 + len(f.Visits) + len(f.Changes); out.writes != want {
		t.Errorf("%d writes for %d records", out.writes, want)
	}
}

func TestLoadsOf(t *testing.T) {
	p := Plan{Loads: []Load{{Kind: "bulk", Streams: 4}, {Kind: "rr", Nodelay: "on"}}}
	for _, l := range append([]Load{{Kind: "udp"}}, p.Loads...) {
		if got := p.Loads.Of(l.Kind); got != l {
			t.Errorf("Loads.Of(%q) = %+v, want %+v", l.Kind, got, l)
		}
	}
}

func TestPathOf(t *testing.T) {
	f := full(t)
	c := f.Header.Plan.Cells[0]
	if p, ok := f.Header.PathOf(c); !ok || p.Dial != "127.0.0.1:1" {
		t.Errorf("path %+v, %t", p, ok)
	}
	for _, change := range []func(*Cell){
		func(c *Cell) { c.Mode = "bridge" }, func(c *Cell) { c.From = "remote" },
		func(c *Cell) { c.To = "address" }, func(c *Cell) { c.On = "docker" },
	} {
		other := c
		change(&other)
		if p, ok := f.Header.PathOf(other); ok {
			t.Errorf("%+v was measured on %+v", other, p)
		}
	}
}

func TestCounters(t *testing.T) {
	if got := (Counters{10, 20, 30, 40, 50, 60}).Sub(Counters{1, 2, 3, 4, 5, 6}); got != (Counters{9, 18, 27, 36, 45, 54}) {
		t.Errorf("difference %+v", got)
	}
	if got := (CPU{User: 1, System: 2, IRQ: 4, SoftIRQ: 8, Steal: 16, Idle: 32}).Busy(); got != 15 {
		t.Errorf("busy %v: stolen and idle time must not count", got)
	}
}

// FuzzRead checks that no file makes the reader panic, and that what it accepts is valid and can be
// written and read again.
func FuzzRead(f *testing.F) {
	real := realFile(f)
	lines := bytes.SplitAfter(real, []byte("\n"))
	f.Add(bytes.Join(lines[:4], nil)) // small inputs are what a fuzzer changes best
	f.Add(real[:len(real)/2])
	f.Add([]byte(written(f, full(f))))
	f.Add(
		[]byte(okHeader + "\n" + `{"visit":{"cell":1,"machine":[{"user":1e308},{"user":1e308}]}}` +
			"\n" + `{"end":{}}`))
	f.Add(
		[]byte(
			slicedHeader + "\n" +
				`{"visit":{"slices":{"slots":[0,7],"rates":[1e4,1.23456789e15],"medians_s":[1e-4,0],"lost":1},"witness":{"ok":true}}}` + "\n" + `{"end":{}}`))
	f.Add([]byte(written(f, meshFile(f))))
	f.Add(
		[]byte(
			meshHeader + "\n" +
				`{"visit":{"pair":[0,2],"sweep":1,"load":"rr","witness":{"ok":true},"values":{"latency_p50":6e-5}}}` + "\n" + `{"end":{"sweeps":1}}`))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := Read(bytes.NewReader(b))
		if err != nil {
			if got != nil || err.Error() == "" {
				t.Fatalf("file %v with error %q", got, err)
			}
			return
		}
		for _, v := range got.Visits {
			if v.Cell < 0 || v.Cell >= len(got.Header.Plan.Cells) {
				t.Fatalf("cell %d of %d", v.Cell, len(got.Header.Plan.Cells))
			}
			if v.Latency != nil {
				_, _ = v.Latency.Decode() // must not panic
			}
		}
		for _, c := range got.Changes {
			for _, i := range c.Cells {
				if i < 0 || i >= len(got.Header.Plan.Cells) {
					t.Fatalf("a change of cell %d of %d", i, len(got.Header.Plan.Cells))
				}
			}
		}
		for _, v := range got.Pairs {
			n := len(got.Header.Plan.Mesh.Nodes)
			if v.Pair[0] == v.Pair[1] || min(v.Pair[0], v.Pair[1]) < 0 ||
				max(v.Pair[0], v.Pair[1]) >= n || (v.Value > 0) == (v.Failure != "") {
				t.Fatalf("%+v of %d nodes", v, n)
			}
		}
		first := written(t, got)
		again, err := Read(strings.NewReader(first))
		if err != nil {
			t.Fatalf("what was read cannot be read again: %v", err)
		}
		if second := written(t, again); second != first {
			t.Fatalf("the second reading differs:\n%s\n%s", first, second)
		}
	})
}
