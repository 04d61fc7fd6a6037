package chart

import (
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/published"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// The rows are the baseline, a ratio that holds here, one that is unclear and one that was not
// measured.
func besidePublished() *published.Report {
	row := func(of mode.Name, x float64, m *analysis.Ratio, v published.Verdict) published.Line {
		l := published.Line{Row: published.Row{Mode: string(of), Metric: "throughput",
			Value: 8, Printed: "8", Unit: "Gbit/s"},
			Cell: &sample.Cell{Mode: of, From: "host"}}
		if x > 0 {
			l.Ratios = []published.Ratio{{To: 0, Published: x, Measured: m, Verdict: v}}
		}
		return l
	}
	ratio := func(median, half float64, v stats.Verdict) *analysis.Ratio {
		return &analysis.Ratio{To: "native", Median: median, Low: median - half,
			High: median + half, N: 12, Verdict: v}
	}
	return &published.Report{Files: []published.File{{Name: "run.jsonl"}},
		Studies: []published.Result{{Name: "a-study", Title: "A study", Baseline: "native",
			Rows: []published.Line{row("native", 0, nil, ""),
				row("bridge", 0.83, ratio(0.9, 0.02, stats.Worse), published.Holds),
				row("host", 0.95, ratio(0.97, 0.2, stats.Unclear), published.Unclear),
				row("publish-nat", 1.4, nil, published.NotMeasured)}}}}
}

func TestPublishedChart(t *testing.T) {
	r := besidePublished()
	groups := publishedGroups(r)
	if len(groups) != 1 || groups[0].Title != "A study" || len(groups[0].Charts) != 2 {
		t.Fatalf("groups %+v", groups)
	}
	c := groups[0].Charts[1]
	rows := c.Spec.(intervals).Rows
	if len(rows) != 3 || len(c.Table.Rows) != 3 || c.Title != "Throughput: ratios to native" {
		t.Fatalf("chart %+v", c)
	}
	for i, want := range []struct {
		label, text, verdict string
		value, beside        float64
		interval             bool
	}{
		{"bridge from host", "90 % (88–92) holds", "holds", 0.9, 0.83, true},
		{"host from host", "97 % (77–117) unclear", "unclear", 0.97, 0.95, true},
		{"publish-nat from host", "140 %, not measured", "", 1.4, 1.4, false},
	} {
		got := rows[i]
		if got.Label != want.label || got.Text != want.text || got.Verdict != want.verdict ||
			got.Value != want.value || *got.Beside != want.beside ||
			(got.Low != nil) != want.interval {
			t.Errorf("row %+v, want %+v", got, want)
		}
	}
	var cells []string
	for _, x := range c.Table.Rows[0].Cells {
		cells = append(cells, x.Text)
	}
	if want := []string{"bridge from host", "83 %", "90 % (88–92)", "holds"}; !slices.Equal(cells,
		want) {
		t.Errorf("figures %q, want %q", cells, want)
	}
	r.Files = nil // nothing was measured
	if bare := publishedGroups(r)[0].Charts[1]; len(bare.Table.Columns) != 2 {
		t.Errorf("columns %+v", bare.Table.Columns)
	}
}

func TestPublishedStudies(t *testing.T) {
	r, err := published.Compare(published.Studies(), nil)
	if err != nil {
		t.Fatal(err)
	}
	groups := publishedGroups(r)
	if len(groups) < len(r.Studies) {
		t.Fatalf("%d of %d studies have charts", len(groups), len(r.Studies))
	}
	for _, g := range groups {
		for _, c := range g.Charts {
			labels := map[string]bool{}
			if crowds, is := c.Spec.(growths); is {
				if len(crowds.Shapes) < 4 || len(crowds.Series) < 3 || crowds.Axis != "Gbit/s" ||
					len(c.Table.Rows) < 12 {
					t.Errorf("%s, %s: %d shapes, %d series", g.Title, c.Title, len(crowds.Shapes),
						len(crowds.Series))
				}
				continue
			}
			if bars, is := c.Spec.(stacks); is {
				for _, row := range bars.Rows {
					if row.Values[0] <= 0 || labels[row.Label] {
						t.Errorf("%s, %s: %+v", g.Title, c.Title, row)
					}
					labels[row.Label] = true
				}
				continue
			}
			for _, row := range c.Spec.(intervals).Rows {
				if labels[row.Label] {
					t.Errorf("%s, %s: two rows are called %q", g.Title, c.Title, row.Label)
				}
				labels[row.Label] = true
			}
		}
	}
}

// The lines are in the study's unit.
func TestCrowdChart(t *testing.T) {
	row := func(label string, was float64, here *published.Here) published.Line {
		return published.Line{Row: published.Row{
			Mode: "link", Value: was, Printed: threeDigits(was), Unit: "Gbit/s"},
			Cell: &sample.Cell{Mode: "link"}, Table: "clients; Gbit/s for each", Label: label,
			Here: here}
	}
	s := published.Result{Rows: []published.Line{row("1", 12, &published.Here{Unit: "bit/s",
		Value: published.Value{Median: 30e9, Low: 29e9, High: 32e9, N: 9}}), row("2", 8.1, nil)}}
	c, ok := crowdChart(s, "clients; Gbit/s for each", true)
	spec, is := c.Spec.(growths)
	if !ok || !is || !slices.Equal(spec.Shapes, []string{"1", "2"}) || len(spec.Series) != 2 {
		t.Fatalf("%+v %v", c, ok)
	}
	if theirs, ours := spec.Series[0], spec.Series[1]; theirs.Label != "link, published" ||
		len(theirs.Points) != 2 || theirs.Points[1].Value != 8.1 ||
		ours.Label != "link, here" || len(ours.Points) != 1 || ours.Points[0].Value != 30 ||
		*ours.Points[0].High != 32 {
		t.Errorf("%+v", spec.Series)
	}
}

// The bars are in the study's unit, this machine's below each.
func TestFigureChart(t *testing.T) {
	row := func(of mode.Name, was float64, here *published.Here) published.Line {
		return published.Line{Row: published.Row{Mode: string(of), Metric: "throughput", Value: was,
			Printed: threeDigits(was), Unit: "Gbit/s"}, Cell: &sample.Cell{Mode: of, From: "host"},
			Here: here}
	}
	s := published.Result{Rows: []published.Line{row("publish-default", 41.9, &published.Here{
		Unit: "bit/s", Value: published.Value{Median: 30e9, Low: 29e9, High: 31e9, N: 9}}),
		row("host", 70, nil)}}
	c, ok := figureChart(s, "throughput", true)
	spec, is := c.Spec.(stacks)
	if !ok || !is || c.Title != "Throughput, Gbit/s" {
		t.Fatalf("%+v %v", c, ok)
	}
	want := []stackRow{{"publish-default from host", []float64{41.9, 0}, "41.9 published"},
		{"publish-default from host, here", []float64{0, 30}, "30.0 ±1.0"},
		{"host from host", []float64{70, 0}, "70.0 published"}}
	if !slices.EqualFunc(spec.Rows, want, func(a, b stackRow) bool {
		return a.Label == b.Label && a.Text == b.Text && slices.Equal(a.Values, b.Values)
	}) {
		t.Errorf("%+v", spec.Rows)
	}
	c, ok = figureChart(s, "throughput", false)
	if bare := c.Spec.(stacks); !ok || len(bare.Parts) != 1 || len(c.Table.Columns) != 2 {
		t.Errorf("without files: %+v", c)
	}
}
