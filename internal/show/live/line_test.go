package live

import (
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func stands(label, from, load string, ratio, half float64, lower bool) analysis.Standing {
	return analysis.Standing{Cell: sample.Cell{Mode: mode.Name(label), From: mode.Placement(from),
		Load: load, On: sample.Lab}, Label: label, Higher: !lower,
		Ratio: analysis.Ratio{To: "host", Median: ratio, Low: ratio - half, High: ratio + half,
			N: 3}}
}

func usualStandings() []analysis.Standing {
	return []analysis.Standing{
		stands("native", "host", "bulk", 1.004, 0.01, false),
		stands("bridge", "host", "bulk", 0.95, 0.03, false),
		stands("publish-nat :lo", "host", "bulk", 0.97, 0.02, false),
		stands("publish-proxy :lo6", "host", "bulk", 0.58, 0.04, false),
		stands("bridge", "host", "rr", 1.12, 0.03, true),
		stands("native", "host", "rr", 0.99, 0.01, true),
	}
}

func TestVaryingStanding(t *testing.T) {
	for _, x := range []struct {
		low, high float64
		verdict   stats.Verdict
		want      string
	}{
		{0.1, 2, stats.Unclear, "pasta varies, 10–200 %"},
		{0.0005, 0.055, stats.Worse, "pasta varies, 0.05–5.5 %"},
	} {
		s := standing{label: "pasta", ratio: analysis.Ratio{Median: 0.3, Low: x.low, High: x.high,
			N: 12, Varies: true, Verdict: x.verdict}}
		if got := s.String(); got != x.want {
			t.Errorf("%q, want %q", got, x.want)
		}
	}
}

func TestPages(t *testing.T) {
	for _, tt := range []struct {
		name    string
		columns int
		want    []string
	}{
		{"wide", 120, []string{
			"bulk: native 100 ±1 % · publish-nat :lo 97 ±2 % · bridge 95 ±3 % · " +
				"publish-proxy :lo6 58 ±4 %",
			"rr: native 99 ±1 % · bridge 112 ±3 %"}},
		{"80", 48, []string{"bulk: native 100 ±1 % · publish-nat :lo 97 ±2 %",
			"rr: native 99 ±1 % · bridge 112 ±3 %",
			"bulk: bridge 95 ±3 %", "bulk: publish-proxy :lo6 58 ±4 %"}},
		{"one-to-a-page", 34, []string{"bulk: native 100 ±1 %", "rr: native 99 ±1 %",
			"bulk: publish-nat :lo 97 ±2 %", "rr: bridge 112 ±3 %",
			"bulk: bridge 95 ±3 %", "bulk: publish-proxy :lo6 58 ±4 %"}},
		{"narrow", 24, []string{"bulk: native 100 ±1 %", "rr: native 99 ±1 %",
			"rr: bridge 112 ±3 %", "bulk: bridge 95 ±3 %"}},
		{"too-narrow", 5, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := pagesOf(standingsOf(usualStandings()), tt.columns); !slices.Equal(got, tt.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
	if got := pagesOf(nil, 80); len(got) > 0 {
		t.Errorf("nothing is known: %q", got)
	}
}

func TestPagesOfGroups(t *testing.T) {
	a, b := stands("bridge", "host", "rr", 1, 0.01, true),
		stands("bridge", "remote", "rr", 1.1, 0.01, true)
	b.Cell.On = "docker"
	want := []string{"rr from host on lab: bridge 100 ±1 %",
		"rr from remote on docker: bridge 110 ±1 %"}
	if got := pagesOf(standingsOf([]analysis.Standing{a, b}), 60); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestLine(t *testing.T) {
	s := Progress{Next: "round 3, 4 of 16: publish-proxy from remote-container, udp-rr",
		Elapsed: 12.4,
		Total:   60}
	for _, tt := range []struct {
		name    string
		s       Progress
		ranking []analysis.Standing
		page    int
		columns int
		want    string
	}{
		{"nothing-known", s, nil, 0, 100,
			"[██░░░░░░░░] 48 s left · round 3, 4 of 16: publish-proxy from " +
				"remote-container, udp-rr"},
		{"cut", s, nil, 1, 80,
			"[██░░░░░░░░] 48 s left · round 3, 4 of 16: publish-proxy from remote-container…"},
		{"no-bar", s, usualStandings(), 0, 60,
			"48 s left · bulk: native 100 ±1 % · publish-nat :lo 97 ±2 %"},
		{"narrow", s, usualStandings(), 0, 40, "48 s left · bulk: native 100 ±1 %"},
		{"20", s, usualStandings(), 0, 20, "48 s left · round …"},
		{"tiny", s, usualStandings(), 0, 10, "48 s lef…"},
		{"ranking", s, usualStandings(), 0, 80,
			"[██░░░░░░░░] 48 s left · bulk: native 100 ±1 % · publish-nat :lo 97 ±2 %"},
		{"next-page", s, usualStandings(), 5, 80,
			"[██░░░░░░░░] 48 s left · bulk: bridge 95 ±3 % · publish-proxy :lo6 58 ±4 %"},
		{"over-time", Progress{Elapsed: 75, Total: 60}, usualStandings(), 4, 120,
			"[██████████] 0 s left · bulk: native 100 ±1 % · publish-nat :lo 97 ±2 % · bridge " +
				"95 ±3 % · publish-proxy :lo6 58 ±4 %"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Line(tt.s, tt.ranking, tt.page, tt.columns)
			if got != tt.want || ansi.StringWidth(got) >= tt.columns {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestLineFits(t *testing.T) {
	s := Progress{Next: "round 3, 4 of 16: bridge from host, rr", Elapsed: 12.4, Total: 60}
	for columns := 20; columns <= 200; columns++ {
		for _, ranking := range [][]analysis.Standing{nil, usualStandings()} {
			for page := range 4 {
				got := Line(s, ranking, page, columns)
				if _, _, ok := strings.Cut(got, "48 s left · "); !ok || ansi.StringWidth(got) >= columns ||
					strings.ContainsAny(got, "\n\r") {
					t.Fatalf("%d columns: %q", columns, got)
				}
			}
		}
	}
}

func TestStandingWords(t *testing.T) {
	uneven, single := stands("bridge", "host", "rr", 0.9, 0.02, true),
		stands("bridge", "host", "rr", 0.9, 0, true)
	uneven.Ratio.Low, single.Ratio.N = 0.7, 1
	if got := strings.Join(pagesOf(standingsOf([]analysis.Standing{uneven, single}), 99), ""); got != "rr: bridge 90 ±20 % · bridge 90 % ±?" {
		t.Error(got)
	}
}

func TestStandingsOf(t *testing.T) {
	s := analysis.Standing{Cell: sample.Cell{
		Mode: "bridge", From: "host", To: "container", Load: "rr"}, Label: "bridge",
		Ratio: analysis.Ratio{To: "host"}}
	crowd := s
	crowd.Cell.Shape, crowd.Higher = sample.Shape{Servers: 1, Clients: 4, Procs: 2}, true
	for _, tt := range []struct {
		in    analysis.Standing
		label string
	}{{s, "bridge"}, {crowd, "bridge 1×4×2"}} {
		got := standingsOf([]analysis.Standing{tt.in})
		if len(got) != 1 || got[0].label != tt.label || got[0].lower == tt.in.Higher {
			t.Errorf("%+v, want %s", got, tt.label)
		}
	}
}
