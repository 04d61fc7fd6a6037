package view

import (
	"encoding/csv"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/published"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
)

// Throughput depends only on mode and shape.
func measuredBulk(t *testing.T) published.Input {
	t.Helper()
	rows, err := published.Rows()
	if err != nil {
		t.Fatal(err)
	}
	gbit := map[string]float64{"native": 40, "host": 39, "bridge": 39.5, "bridge-default": 39.5,
		"publish-nat": 36, "publish-default": 22, "publish-proxy": 22, "routed": 30,
		"pipework": 30.2, "link": 28, "ovs": 9, "overlay": 21}
	f := &sample.File{End: sample.End{Rounds: 7}, Header: sample.Header{
		Environment: sample.Environment{Tool: "0.1.0", Kernel: "6.18", CPUs: 2,
			CPUModel: "Intel Xeon"},
		Plan: sample.Plan{Baseline: "host", Precision: 0.02,
			Loads: []sample.Load{{Kind: "bulk", Streams: 1, Window: 1}}}}}
	p := &f.Header.Plan
	add := func(c sample.Cell) {
		c.On = "lab"
		for _, have := range p.Cells {
			if have == c {
				return
			}
		}
		p.Cells = append(p.Cells, c)
	}
	for _, s := range published.Studies() {
		es, err := s.Entries(rows)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range es {
			if e.Cell.Load != "bulk" || e.Cell.Mode == "overlay" {
				continue
			}
			add(e.Cell)
			base := sample.Cell{Mode: "host", From: e.Cell.From, To: "address", Load: "bulk",
				Shape: e.Cell.Shape}
			if base.From == "host" || base.From == "container" {
				base.To = "loopback"
			}
			add(base)
			base.Control = true
			add(base)
		}
	}
	p.Skipped = []sample.Skip{{Mode: "overlay", From: "remote-container",
		Reason: "the kernel has no vxlan devices"}}
	for _, c := range p.Cells {
		m, _ := mode.Find(c.Mode)
		r, _ := m.Route(c.From, c.To)
		path := sample.Path{Mode: c.Mode, From: c.From, To: c.To, Servers: c.Shape.Servers,
			Clients: c.Shape.Clients, On: c.On}
		for _, h := range r.Hops {
			path.Hops = append(path.Hops, string(h))
		}
		if c.Mode == "ovs" {
			path.Facts = map[string]string{"datapath": "userspace (datapath_type=netdev)"}
		}
		f.Header.Paths = append(f.Header.Paths, path)
	}
	for round := range f.End.Rounds {
		for i, c := range p.Cells {
			x := gbit[string(c.Mode)] * (1 + 0.01*float64((round+i)%3-1)) // a little noise
			f.Visits = append(f.Visits, sample.Visit{Turn: sample.Turn{Round: round, Cell: i},
				Ends:  sample.Ends{Server: sample.Party{Window: 1, Received: int64(x * 1e9 / 8)}},
				Crowd: sample.Crowd{Rates: [][]float64{{x * 1e9 / 8}}},
				Metered: sample.Metered{Elapsed: 1,
					Machine: []sample.CPU{{System: 0.8, Idle: 0.2}, {System: 0.4, Idle: 0.6}}},
				Proof: sample.Proof{Witness: sample.Witness{OK: true}}})
		}
	}
	return published.Input{Name: "all.jsonl", File: f}
}

func TestPublished(t *testing.T) {
	for _, tt := range []struct {
		golden  string
		format  string
		view    func(*published.Report) document.Document
		studies []published.Study
		files   []published.Input
	}{
		{"published.txt", "table", Published, published.Studies()[:1], nil},
		{"published-against.txt", "table", Published, published.Studies()[2:3],
			[]published.Input{measuredBulk(t)}},
		{"published-details.txt", "table", PublishedDetails, published.Studies()[3:4],
			[]published.Input{measuredBulk(t)}},
		{"published-against.json", "json", Published, published.Studies()[3:4],
			[]published.Input{measuredBulk(t)}},
	} {
		t.Run(tt.golden, func(t *testing.T) {
			r, err := published.Compare(tt.studies, tt.files)
			if err != nil {
				t.Fatal(err)
			}
			if tt.format == "json" {
				r.Studies[0].Rows = r.Studies[0].Rows[:2] // its baseline and one compared with it
			}
			b := written(t, tt.format, tt.view(r), format.Options{})
			if tt.format == "json" {
				var again published.Report
				if err := json.Unmarshal([]byte(b), &again); err != nil {
					t.Fatal(err)
				}
				if written(t, "json", tt.view(&again), format.Options{}) != b {
					t.Error("read and written again, the report differs")
				}
				return
			}
			golden(t, tt.golden, b)
			whole(t, tt.view(r), b)
			for l := range strings.Lines(b) {
				if w := ansi.StringWidth(strings.TrimRight(l, "\n")); w > format.DefaultWidth &&
					!strings.Contains(l, "https://") {
					t.Errorf("%d columns: %s", w, l)
				}
			}
		})
	}
}

func TestPublishedIsNarrow(t *testing.T) {
	r, err := published.Compare(published.Studies(), []published.Input{measuredBulk(t)})
	if err != nil {
		t.Fatal(err)
	}
	const columns = 60
	d := Published(r)
	whole(t, d, written(t, "table", d, format.Options{}))
	for i, s := range d.Sections {
		d.Sections[i].Title = nil
		for _, b := range s.Blocks {
			if table, is := b.(document.Table); is && len(table.Rows) == 0 {
				t.Errorf("%s: a table without rows", s.Title)
			}
		}
	}
	b := written(t, "table", d, format.Options{Width: columns})
	for l := range strings.Lines(b) {
		if w := ansi.StringWidth(strings.TrimRight(l, "\n")); w > columns &&
			!strings.Contains(l, "http") {
			t.Errorf("%d columns: %s", w, l)
		}
		if l != "\n" && strings.TrimSpace(l) == "" {
			t.Errorf("a line of %d spaces", len(l))
		}
	}
}

// Wide intervals must not cost a table its places, its CPU columns and what the ratios are taken
// to.
func TestPublishedWithWideIntervals(t *testing.T) {
	m := measuredBulk(t)
	for i := range m.File.Visits {
		v := &m.File.Visits[i]
		v.Server.Received += v.Server.Received * int64(i%5) / 8
	}
	s := published.Studies()[3:]
	r, err := published.Compare(s, []published.Input{m})
	if err != nil {
		t.Fatal(err)
	}
	const columns = 70
	for _, width := range []int{columns, format.DefaultWidth} {
		b := written(t, "table", Published(r), format.Options{Width: width})
		for _, title := range []string{"\n  Throughput\n", "\n  Throughput, same machine\n",
			"\n  Throughput, two machines\n"} {
			_, table, ok := strings.Cut(b, title)
			table, _, _ = strings.Cut(table, "\n\n")
			if !ok || !strings.Contains(table, "idle") || !strings.Contains(table, "to native") {
				t.Errorf("%d columns:%s%s", width, title, table)
			}
			for l := range strings.Lines(table) {
				if l = strings.TrimSpace(l); strings.HasPrefix(l, "publish-default") &&
					!strings.HasPrefix(l, "publish-default from ") {
					t.Errorf("%d columns: no place: %s", width, l)
				}
			}
		}
	}
}

func TestPublishedNamesModesAlike(t *testing.T) {
	r, err := published.Compare(published.Studies(), nil)
	if err != nil {
		t.Fatal(err)
	}
	b := written(t, "csv", Published(r), format.Options{})
	rows, err := csv.NewReader(strings.NewReader(b)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if row[0] == "docker-networking-on-linux" &&
			slices.ContainsFunc(row, func(cell string) bool {
				return strings.HasPrefix(cell, "publish-proxy")
			}) {
			t.Errorf("%q", row)
		}
	}
	for _, s := range r.Studies {
		for _, l := range s.Rows {
			if l.Cell != nil && l.Mode != string(l.Cell.Mode) || l.StudyMode == l.Mode {
				t.Errorf("%s: %s, in the study %q, measured as %v", s.Name, l.Mode, l.StudyMode,
					l.Cell)
			}
		}
	}
}

func TestAllCPUs(t *testing.T) {
	core := analysis.Metric{Unit: "1", Median: 1.2}
	r := usual()
	for i := range r.Cells {
		r.Cells[i].AllCPUs = []analysis.CPUUse{{User: 0.25, SoftIRQ: 0.05, Idle: 0.7}}
	}
	proxied := slices.IndexFunc(r.Cells, func(c analysis.Cell) bool {
		return c.Mode == mode.PublishProxy
	})
	r.Cells[proxied].ProxyCore = &core
	b := written(t, "table", Report(r), format.Options{})
	if fields := "25.0 0.0 0.0 0.0 0.0 5.0 0.0 0.0 0.0 70.0"; strings.Count(
		strings.Join(strings.Fields(b), " "), fields+" 120 ") != 1 {
		t.Errorf("not one row with the proxy's core:\n%s", b)
	}
	for l := range strings.Lines(b) {
		if w := ansi.StringWidth(strings.TrimRight(l, "\n")); w > format.DefaultWidth {
			t.Errorf("%d columns: %s", w, l)
		}
	}
}

func TestClaimsInCSV(t *testing.T) {
	r, err := published.Compare(published.Studies(), nil)
	if err != nil {
		t.Fatal(err)
	}
	b := written(t, "csv", Published(r), format.Options{})
	rows, err := csv.NewReader(strings.NewReader(b)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := func(row []string, column string) string { return row[slices.Index(rows[0], column)] }
	claimed := slices.IndexFunc(rows, func(row []string) bool {
		return strings.HasPrefix(at(row, "notes"), "longest pause, port: more")
	})
	if claimed < 0 {
		t.Fatal("no row of the claim")
	}
	for column, want := range map[string]string{"shape": "", "value": "0.2", "unit": "s"} {
		if got := at(rows[claimed], column); got != want {
			t.Errorf("%s %q, want %q", column, got, want)
		}
	}
}
