package view

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/ladder"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

func price(unit string, median, low, high float64, v stats.Verdict) analysis.Price {
	return analysis.Price{Unit: unit, Median: median, Low: low, High: high, N: 7, Verdict: v}
}

func climbed() *ladder.Report {
	r := &ladder.Report{Measured: head().Measured, Said: head().Said}
	r.Study, r.Plan.Baseline, r.Control.Mode = sample.StudyLadder, "native", "native"
	r.Plan.Loads[0], r.Plan.Loads[1] = r.Plan.Loads[1], r.Plan.Loads[0]
	below := map[mode.Name]string{}
	x, gbit := 15.0, 32.0
	for i, rung := range mode.Climb(mode.FromHost, "", []mode.Name{mode.PublishProxy}) {
		prices := pricesOfStep(i)
		if i > 0 {
			x += prices[workload.LatencyP50].Median * 1e6
			gbit *= prices[workload.Throughput].Median
		}
		c := trip(rung.Mode, rung.To, x, 1, 0, stats.Worse)
		r.Cells = append(r.Cells, c, bulk(rung.Mode, rung.To, gbit, 1, 0, stats.Worse))
		below[rung.Mode] = c.Label()
		s := ladder.Step{Mode: c.Mode, From: c.From, To: c.To, On: c.On, Label: c.Label(),
			Below: below[rung.Below], Part: rung.Part, Prices: prices}
		r.Steps = append(r.Steps, s)
	}
	for i := range r.Cells {
		r.Cells[i].Warnings = []analysis.Warning{
			{Code: "thin-tail", Text: "too few samples for p99.9"}}
	}
	r.Findings = []string{
		"Every row was witnessed: its bytes were counted on each hop of its path.",
		"What costs nothing measurable in median latency: Docker's rules on the machine (at " +
			"most 0.5 µs)."}
	r.Skipped = []sample.Skip{{Mode: "netkit", From: "host", To: "container", On: "lab",
		Reason: "the kernel has no netkit devices"}}
	return r
}

func pricesOfStep(i int) map[string]analysis.Price {
	out := map[string]analysis.Price{}
	if i == 0 {
		return out
	}
	out[workload.LatencyP50] = price("s", 5.1e-6, 4.2e-6, 6e-6, stats.Costs)
	out[workload.CPUPerTrip] = price("s", -3e-6, -4.6e-6, -2.1e-6, stats.Gains)
	out[workload.Throughput] = price("ratio", 0.88, 0.81, 0.91, stats.Costs)
	out[workload.CPUPerByte] = price("s/B", 2e-11, -1e-11, 5e-11, stats.Unclear)
	switch i {
	case 1:
		out[workload.LatencyP50] = price("s", 2e-7, -1e-7, 4.4e-7, stats.Nothing)
		out[workload.Throughput] = price("ratio", 1, 0.98, 1.01, stats.Nothing)
	case 2:
		out[workload.Throughput] = analysis.Price{Unit: "ratio", Median: 1, Low: 1, High: 1, N: 7,
			Verdict: stats.Unclear, LimitedBy: "wire"}
	case 3:
		delete(out, workload.CPUPerByte)
	case proxyStep:
		out[workload.LatencyP50] = price("s", 20e-6, 17e-6, 23e-6, stats.Costs)
	}
	return out
}

const proxyStep = 5

// tall has numbers as wide as on a noisy machine.
func tall() *ladder.Report {
	r := climbed()
	r.Steps, r.Cells = nil, nil
	for _, from := range mode.Placements() {
		for _, rung := range mode.Ladder(from, "") {
			c := row(rung.Mode, from, rung.To, "rr", 1234e-6, 1, 0, stats.Worse)
			r.Cells = append(r.Cells, c, row(rung.Mode, from, rung.To, "bulk", 123.4e9, 1, 0,
				stats.Worse))
			s := ladder.Step{Mode: c.Mode, From: c.From, To: c.To, On: c.On, Label: c.Label(),
				Part: rung.Part}
			if b, ok := mode.FindRung(from, "", rung.Below); ok {
				s.Below = row(b.Mode, from, b.To, "rr", 1, 1, 0, "").Label()
				s.Prices = map[string]analysis.Price{
					workload.LatencyP50: price("s", 1234e-6, -1234e-6, 12345e-6, stats.Unclear),
					workload.CPUPerTrip: price("s", 1234e-6, -1234e-6, 12345e-6, stats.Unclear),
					workload.Throughput: price("ratio", 12.34, 1.23, 123, stats.Unclear),
					workload.CPUPerByte: price("s/B", 123e-12, -123e-12, 1234e-12, stats.Unclear),
				}
			}
			r.Steps = append(r.Steps, s)
		}
	}
	return r
}

func TestLadder(t *testing.T) {
	quiet := climbed()
	quiet.Plan.Loads = quiet.Plan.Loads[:1]
	none := climbed()
	none.Steps, none.Cells, none.Findings = nil, nil, []string{"Nothing was measured."}
	for _, tt := range []struct {
		name   string
		report *ladder.Report
	}{{"ladder", climbed()}, {"ladder-rr", quiet}, {"ladder-tall", tall()},
		{"ladder-empty", none}} {
		t.Run(tt.name, func(t *testing.T) {
			got := table(t, tt.report, format.Options{Width: format.DefaultWidth})
			if tt.name != "ladder-tall" {
				golden(t, tt.name+".txt", got)
			}
			fits(t, got)
			color := table(t, tt.report, format.Options{Width: format.DefaultWidth, Color: true})
			if uncolored(color) != got {
				t.Error("colour changes more than colour")
			}
		})
	}
	t.Run("no-tail", func(t *testing.T) {
		if testgolden.HasLine(table(t, climbed(), format.Options{}), "Warnings") {
			t.Error("it warns of percentiles that it does not show")
		}
	})
}

// The mode before the + is named where it is not that of the row above.
func TestSummaryOfBranches(t *testing.T) {
	r := tall()
	r.Answer = &analysis.Answer{}
	got := written(t, "table", Summary(r), format.Options{})
	for _, want := range []string{"    + docker-proxy instead of NAT",
		"    bridge + the overlay's bridge, in a network namespace of its own, instead of " +
			"Docker's"} {
		if !testgolden.HasLine(got, want) {
			t.Errorf("no line %q in %q", want, got)
		}
	}
}

func TestLadderAbsurdNumbers(t *testing.T) {
	r := tall()
	r.Plan.Loads = r.Plan.Loads[:1]
	r.Steps[1].Prices[workload.LatencyP50] = price("s", 1e300, -1e300, 1e300, stats.Unclear)
	if got, want := table(t, r, format.Options{}), "  publish-proxy :lo"; !testgolden.HasLine(got, want) {
		t.Errorf("no line %q in %q", want, got)
	}
}

func TestLadderJSONFields(t *testing.T) {
	b := written(t, "json", Report(climbed()), format.Options{})
	var doc map[string]any
	if err := json.Unmarshal([]byte(b), &doc); err != nil {
		t.Fatal(err)
	}
	for where, keys := range map[string]string{
		"":                           "study steps",
		"steps/0":                    "mode from to on label prices",
		"steps/1":                    "mode from to on label below part prices",
		"steps/1/prices":             "latency_p50 cpu_per_transaction throughput cpu_per_byte",
		"steps/1/prices/latency_p50": "unit median low high n verdict",
		"steps/2/prices/throughput":  "limited_by",
	} {
		o, _ := at(doc, where).(map[string]any)
		for _, k := range strings.Fields(keys) {
			if _, ok := o[k]; !ok {
				t.Errorf("%q has no %q", where, k)
			}
		}
	}
}

func TestPriceColors(t *testing.T) {
	got := table(t, climbed(), format.Options{Color: true})
	const row = "  publish-nat :lo    30.5  \x1b[31m+5.1 ±0.9\x1b[0m  \x1b[32m-3.0 ±1.6\x1b[0m    24.8  " +
		"\x1b[31m88 % (81–91)\x1b[0m  \x1b[33m+0.02 ±0.03 ?\x1b[0m"
	if !testgolden.HasLine(got, row) {
		t.Errorf("no %q in its colours:\n%s", row, got)
	}
}

// The level of each part is the level below it and the price, although medians of their own differ.
func TestLevelsOfALadderAgreeWithPrices(t *testing.T) {
	r := climbed()
	for i := range r.Cells {
		if m := r.Cells[i].Metrics[workload.LatencyP50]; i > 0 && m.Median > 0 {
			m.Median *= 1.4
			r.Cells[i].Metrics[workload.LatencyP50] = m
		}
	}
	l := r.Plan.Loads.Of(workload.RR)
	levels := levelsOf(r.Base(), r.Steps, l)
	for _, s := range r.Steps[1:] {
		p, _ := priceOf(s, l)
		want := units.Digits(1e6 * (levels[s.Below] + p.Median))
		if got := levelOf(r.Base(), s, l, 1e6, levels).Text; got != want || len(levels) != len(r.Steps) {
			t.Errorf("%s is at %s µs, want %s", s.Label, got, want)
		}
	}
}

// An interval that tells nothing about the step below is left out.
func TestHopelessPrice(t *testing.T) {
	for _, tt := range []struct {
		price analysis.Price
		level float64
		want  string
	}{
		{price("s", 19e-6, -470e-6, 470e-6, stats.Unclear), 130e-6, "?"},
		{price("s", 2e-6, -4e-6, 8e-6, stats.Unclear), 130e-6, "+2 ±6 ?"},
		{price("s", 90e-6, 10e-6, 170e-6, stats.Costs), 130e-6, "+90 ±80"},
		{price("ratio", 1.3, 0.4, 3.9, stats.Unclear), 1, "?"},
	} {
		if got := markedPrice(tt.price, "µs", tt.level).Text; got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.price, got, tt.want)
		}
	}
}
