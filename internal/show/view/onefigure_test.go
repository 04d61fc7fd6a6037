package view

import (
	"bytes"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

var numbersIn = regexp.MustCompile(`\d+(\.\d+)?(e[+-]?\d+)?`)

// has accepts the number to three digits, in any unit.
func has(text string, x float64) bool {
	mantissa := func(x float64) float64 { return x / math.Pow(10, math.Floor(math.Log10(x))) }
	for _, s := range numbersIn.FindAllString(text, -1) {
		const rounding = 0.003
		if n, err := strconv.ParseFloat(s, 64); err == nil && n > 0 && len(s) > 2 &&
			math.Abs(mantissa(n)-mantissa(x)) < rounding {
			return true
		}
	}
	return false
}

// Every output must show the slices' median, not the windows'.
func TestOneMedianInAllOutputs(t *testing.T) {
	const slices, windows, above = 39.8e-6, 37.1e-6, 46.3e-6
	run := judgetest.New(t, judgetest.Trio(mode.Bridge, workload.RR)...)
	p := &run.File.Header.Plan
	p.Same = 0.03
	for i := range p.Loads {
		p.Loads[i].Slice, p.Loads[i].Window = 0.004, 0.05
	}
	run.Rounds(8, judgetest.Steady(1, 1, 1), func(v *sample.Visit) {
		took := slices
		h := sample.NewHistogram()
		for x, n := range map[float64]int64{windows: 600, above: 400} {
			if err := h.RecordValues(int64(1e9*x), n); err != nil {
				t.Fatal(err)
			}
		}
		if v.Cell < 2 {
			took = 0.75 * slices
		}
		e, err := sample.Encode(h)
		if err != nil {
			t.Fatal(err)
		}
		v.Latency, v.Slices = e, &sample.Slices{}
		for k := range 20 {
			wobble := took * (1 + 1e-4*float64((7*k+3*v.Cell+v.Round)%5-2))
			v.Slices.Slots = append(v.Slices.Slots, 3*k+v.Cell)
			v.Slices.Medians, v.Slices.Rates = append(v.Slices.Medians, wobble),
				append(v.Slices.Rates, 0.91/wobble)
		}
	})
	r := judge.Judge(run.File)
	var row PartRow
	for _, c := range r.Base().Cells {
		if c.Mode == mode.Bridge {
			row.Cells = append(row.Cells, c)
		}
	}
	documents := map[string]document.Document{
		"summary": Summary(r), "tables": Report(r), "details": Details(r, row)}
	for name, d := range documents {
		for _, f := range format.All() {
			if !f.Writes(d.Kind) {
				continue
			}
			var b bytes.Buffer
			if err := f.Write(&b, d, format.Options{}); err != nil {
				t.Fatal(err)
			}
			if !has(b.String(), slices) {
				t.Errorf("%s as %s has no 39.8 µs:\n%.2000s", name, f.Name, b.String())
			}
			// Some outputs have the windows' lower percentiles and label them as such.
			if has(b.String(), windows) && f.Name != "json" && f.Name != "html" &&
				name != "details" {
				t.Errorf("%s as %s has the windows' median:\n%s", name, f.Name, b.String())
			}
		}
	}
	for _, q := range row.Cells[0].Latencies {
		if q.Percentile == 50 {
			t.Errorf("the windows' median is among the latencies")
		}
	}
	if x, ok := row.Cells[0].LatencyAt(50); !ok || !judgetest.Near(x, slices) {
		t.Errorf("percentile 50: %g", x)
	}
}

// The tables of a page have the levels of its charts, which agree with the ratios.
func TestPagesHaveOneLevel(t *testing.T) {
	r := head()
	base, c := bulk(mode.Host, mode.ToLoopback, 31.9, 1, 0, ""),
		bulk(mode.Bridge, mode.ToContainer,
			27.4, 0.5, 0.02, "worse")
	m := c.Metrics[workload.Throughput]
	m.Level = 15.95e9
	c.Metrics[workload.Throughput] = m
	r.Cells = []analysis.Cell{base, c}
	page := written(t, "html", Report(r), format.Options{})
	_, body, _ := strings.Cut(page, `id="tables"`)
	body, _, _ = strings.Cut(body, "<script")
	if strings.Contains(body, ">27.4<") || !strings.Contains(body, ">16.0<") {
		t.Errorf("the tables have a median of their own:\n%s", body)
	}
	if text := written(t, "table", Report(r), format.Options{}); !slices.Contains(strings.Fields(text), "27.4") {
		t.Errorf("--details has no median of its own:\n%s", text)
	}
}
