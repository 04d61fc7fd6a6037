package view

import (
	"bytes"
	"encoding/csv"
	"errors"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/predict"
	"github.com/bridgetoll/bridgetoll/internal/judge/published"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

// In each round, bridge has 0.8 of host's throughput and 1.25 times its latency. Round 1 of its
// bulk has no result.
func drifting(t *testing.T) judge.Report {
	t.Helper()
	r := judgetest.New(t, append(judgetest.Trio(mode.Bridge, "bulk"),
		judgetest.Trio(mode.Bridge, "rr")...)...)
	drift := []float64{1, 1.07, 0.9, 1.2, 1.01, 0.97, 1.11, 0.93, 1.3}
	factor := []float64{30, 30, 24, 40, 40, 50}
	for round := range drift {
		for cell := range factor {
			if round == 1 && cell == 2 {
				continue
			}
			r.Visit(round, cell, factor[cell]*drift[round])
		}
	}
	r.File.End.Rounds = len(drift)
	return judge.Judge(r.File)
}

func foreign() *analysis.Report {
	r := head()
	c := bulk(mode.Bridge, mode.ToContainer, 1, 0.5, 0.1, "worse")
	c.Mode, c.Tune, c.Load, c.LimitedBy = `=cmd|' /C calc'!A0 "x\y"`, "a/b c%", workload.Exec, "+1"
	c.Metrics["throughput"] = analysis.Metric{
		Unit: "req", Median: 3, Low: 2, High: 4, Rounds: []float64{2, 3, 4}}
	c.Metrics["@p 99"] = analysis.Metric{Unit: "s", Median: -3, Low: -4, High: -2,
		Rounds: []float64{-4, -3, -2}}
	c.Metrics[""] = analysis.Metric{Rounds: []float64{1, math.Inf(1)}, Median: math.NaN()}
	r.Cells = []analysis.Cell{c}
	r.Failed = []analysis.Failed{{Cell: sample.Cell{
		Mode: "-2+3", From: "host", To: "container", Load: "bulk", On: "lab"},
		Reason: "it broke,\n\"really\"", Evidence: "@x"}}
	return r
}

// everyKind returns a document of each kind that has a page, by name.
func everyKind(t *testing.T) map[string]document.Document {
	t.Helper()
	study, err := published.Compare(published.Studies(), []published.Input{measuredBulk(t)})
	if err != nil {
		t.Fatal(err)
	}
	documents := map[string]document.Document{
		"report": Report(usual()), "empty": Report(head()), "ladder": Report(climbed()),
		"trace":  Report(traced()),
		"advise": Report(advised()), "difference": Difference(changed(t)),
		"drift": Report(drifting(t)),
		"scale": Report(crowded()), "sweep": Report(swept(t)), "wide": Report(widest(mode.All())),
		"published": Published(study), "ports": Ports(pricedPorts(), true),
		"served": Served(new(busyServer())), "trace routes": Report(judge.Judge(judgetest.Routes(30,
			judgetest.Divided(4e-6, 4e-3)))),
		"predict": Prediction(prediction(predict.Workload{Queries: 20, Bytes: 4096, QPS: 500}))}
	for name, r := range meshReports() {
		documents["mesh "+name] = Report(r)
	}
	for name, r := range routeReports() {
		documents["endpoints "+name] = Report(r)
	}
	return documents
}

func TestEveryKindInEveryFormat(t *testing.T) {
	for name, d := range everyKind(t) {
		for _, f := range format.All() {
			// no links
			none := name == "empty" || f.Name == "benchfmt" && strings.HasPrefix(name, "mesh") ||
				f.Name == "expect" && len(d.Conditions) == 0
			var b bytes.Buffer
			err := f.Write(&b, d, format.Options{})
			if f.Writes(d.Kind) != (err == nil) || err == nil && b.Len() == 0 && !none {
				t.Errorf("%s of %s: %d bytes, %v", f.Name, name, b.Len(), err)
			}
		}
	}
}

func TestHolding(t *testing.T) {
	r := pricedPorts()
	expect, _ := format.Find("expect")
	var b strings.Builder
	if err := expect.Write(&b, Holding(r), format.Options{}); err != nil {
		t.Fatal(err)
	}
	want := strings.Join(r.ExpectNow(), "\n") + "\n"
	if b.String() != want || len(r.ExpectNow()) == 0 {
		t.Errorf("got\n%swant\n%s", &b, want)
	}
}

func csvRows(t *testing.T, text string) (rows []map[string]string) {
	t.Helper()
	all, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, fields := range all[1:] {
		row := map[string]string{}
		for i, name := range all[0] {
			row[name] = fields[i]
		}
		rows = append(rows, row)
	}
	return rows
}

func numberOf(m analysis.Metric, i int) int {
	if m.At == nil {
		return i
	}
	return m.At[i]
}

func TestCSV(t *testing.T) {
	r := drifting(t)
	rows := csvRows(t, written(t, "csv", Report(r), format.Options{}))
	find := func(c analysis.Cell, metric, statistic, round string) map[string]string {
		t.Helper()
		var found []map[string]string
		for _, x := range rows {
			if x["mode"] == string(c.Mode) && x["load"] == c.Load && x["metric"] == metric &&
				x["statistic"] == statistic && x["round"] == round {
				found = append(found, x)
			}
		}
		if len(found) != 1 {
			t.Fatalf("%d rows of %s %s %s %s", len(found), c.Mode, metric, statistic, round)
		}
		return found[0]
	}
	is := func(text string, want float64) {
		t.Helper()
		if x, err := strconv.ParseFloat(text, 64); err != nil || x != want {
			t.Errorf("%s, want %v", text, want)
		}
	}
	for _, c := range r.Base().Cells {
		for name, m := range c.Metrics {
			for i, x := range m.Rounds {
				is(find(c, name, "round", strconv.Itoa(numberOf(m, i)))["value"], x)
			}
			sum := find(c, name, "median", "")
			is(sum["value"], m.Median)
			is(sum["low"], m.Low)
			is(sum["high"], m.High)
			is(sum["n"], float64(len(m.Rounds)))
			if x := m.Ratio; x != nil {
				row := find(c, name, "ratio", "")
				is(row["value"], x.Median)
				is(row["high"], x.High)
				if row["verdict"] != string(x.Verdict) || row["against"] != "host" ||
					row["unit"] != "ratio" || row["load"] != c.Load {
					t.Errorf("%v", row)
				}
			}
		}
	}
	bridge := r.Base().Cells[slices.IndexFunc(r.Base().Cells, func(c analysis.Cell) bool {
		return c.Mode == "bridge" && c.Load == "bulk"
	})]
	if got := bridge.Metrics[workload.Throughput].At; !slices.Equal(got,
		[]int{0, 2, 3, 4, 5, 6, 7, 8}) {
		t.Errorf("rounds %v", got)
	}
}

func TestCSVOfForeignText(t *testing.T) {
	rows := csvRows(t, written(t, "csv", Report(foreign()), format.Options{}))
	negative := false
	for _, r := range rows {
		for name, x := range r {
			number := slices.Contains([]string{"value", "low", "high"}, name)
			if strings.IndexAny(x, "=+-@\t\r") == 0 && !number {
				t.Errorf("%s is %q", name, x)
			}
			negative = negative || number && x == "-3"
			if strings.Contains(x, "NaN") || strings.Contains(x, "Inf") {
				t.Errorf("%s is %q", name, x)
			}
		}
	}
	last := rows[len(rows)-1]
	if !negative || rows[0]["mode"] != `'=cmd|' /C calc'!A0 "x\y"` ||
		last["statistic"] != "failed" || last["value"] != "" ||
		last["notes"] != "it broke,\n\"really\": @x" {
		t.Errorf("%v\n%v", rows[0], last)
	}
}

// benchstat's own reader and statistics find toll's medians, and toll's ratios if each round has
// the same ratio.
func TestBenchfmtAgrees(t *testing.T) {
	r := drifting(t)
	centers, higher := benchstat(t, written(t, "benchfmt", Report(r), format.Options{}))
	ratios := 0
	for _, c := range r.Base().Cells {
		name := func(mode, to string) string {
			return "Compare/mode=" + mode + "/from=host/to=" + to + "/on=lab/load=" + c.Load
		}
		for metric, unit := range map[string]string{workload.Throughput: "B/s",
			workload.CPUPerByte: "cpu-sec/B", workload.LatencyP50: "sec/op",
			workload.LatencyP99: "p99-sec/op", workload.Transactions: "op/s",
			workload.CPUPerTrip: "cpu-sec/op", workload.Involuntary: "involuntary-switches"} {
			m, ok := c.Metrics[metric]
			if !ok {
				continue
			}
			want := m.Median
			if m.Unit == "bit/s" {
				want /= 8
			}
			got, ok := centers[name(string(c.Mode), string(c.To))][unit]
			if !ok || math.Abs(got-want) > 1e-9*math.Abs(want) {
				t.Errorf("%s %s: %v, want %v", c.Mode, metric, got, want)
			}
			if higher[unit] != m.Higher {
				t.Errorf("%s: higher is better: %t", unit, higher[unit])
			}
			// In bulk, bridge lacks a round that host has, which changes host's median.
			if m.Ratio == nil || metric != c.Primary || c.Load == "bulk" {
				continue
			}
			ratios++
			if quotient := got / centers[name("host", "loopback")][unit]; math.Abs(quotient-m.Ratio.Median) > 0.001 {
				t.Errorf("%s %s: quotient %v, ratio %v", c.Mode, metric, quotient, m.Ratio.Median)
			}
		}
	}
	if ratios == 0 {
		t.Error("no ratio was compared")
	}
}

// benchstat returns the medians by name and unit, and for each unit whether higher is better.
func benchstat(t *testing.T, text string) (centers map[string]map[string]float64,
	higher map[string]bool) {
	t.Helper()
	values := map[string]map[string][]float64{}
	in := benchfmt.NewReader(strings.NewReader(text), "toll")
	for in.Scan() {
		switch rec := in.Result().(type) {
		case *benchfmt.SyntaxError:
			t.Error(rec)
		case *benchfmt.Result:
			if got := rec.GetConfig("kernel"); got != "" && got != "6.18.44" {
				t.Errorf("kernel %q", got)
			}
			if values[rec.Name.String()] == nil {
				values[rec.Name.String()] = map[string][]float64{}
			}
			for _, v := range rec.Values {
				values[rec.Name.String()][v.Unit] = append(
					values[rec.Name.String()][v.Unit], v.Value)
			}
		}
	}
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
	centers, higher = map[string]map[string]float64{}, map[string]bool{}
	for name, units := range values {
		centers[name] = map[string]float64{}
		for unit, xs := range units {
			centers[name][unit] = in.Units().GetAssumption(unit).Summary(
				benchmath.NewSample(xs, &benchmath.DefaultThresholds), 0.95).Center
			higher[unit] = in.Units().GetBetter(unit) > 0
		}
	}
	return centers, higher
}

// Names and units of foreign programs are one word each and remain distinct.
func TestBenchfmtOfForeignText(t *testing.T) {
	centers, _ := benchstat(t, written(t, "benchfmt", Report(foreign()), format.Options{}))
	const name = `Compare/mode==cmd|'%20%2FC%20calc'!A0%20"x\y"/from=host/to=container/tune=a%2Fb%20c%25/on=lab/load=exec`
	if got := centers[name]; len(centers) != 1 || got["throughput-req"] != 3 ||
		got["@p%2099-sec"] != -3 || got["value"] != 1 {
		t.Errorf("%v", centers)
	}
	links, _ := benchstat(t, written(t, "benchfmt", Report(meshReports()["mesh"]),
		format.Options{}))
	if got := links["Mesh/mode=host/from=node-1/to=node-2/on=swarm/load=rr"]["sec/op"]; got <= 0 ||
		len(links) < 20 {
		t.Errorf("%v of %d links", got, len(links))
	}
}

func TestOpenMetrics(t *testing.T) {
	for name, r := range map[string]judge.Report{"usual": usual(), "drifting": drifting(t),
		"ladder": climbed(), "mesh": meshReports()["mesh"], "trace": traced(),
		"chat": routeReports()["chat"], "foreign": foreign(), "empty": head()} {
		t.Run(name, func(t *testing.T) {
			text := written(t, "openmetrics", Report(r), format.Options{})
			values := gauges(t, text)
			if !strings.HasSuffix(text, "\n# EOF\n") || strings.Count(text, "# EOF") != 1 {
				t.Error("it does not end as it should")
			}
			for _, c := range r.Base().Cells {
				if m := c.Metrics[workload.Throughput]; c.Load == "bulk" && c.On == sample.Lab {
					of := "toll_throughput_bits_per_second from=host load=bulk mode=" +
						string(c.Mode) +
						" on=lab stat=low study=" + string(r.Base().Study) + " to=" + string(c.To)
					if got, ok := values[of]; !ok || got != m.Low {
						t.Errorf("%s: %v, want %v", of, got, m.Low)
					}
				}
			}
		})
	}
	values := gauges(t, written(t, "openmetrics", Report(usual()), format.Options{}))
	const of = " from=host load=bulk metric=throughput mode=bridge on=lab"
	if values["toll_verdict"+of+" study=compare to=container verdict=worse"] != 1 ||
		values["toll_baseline_ratio against=host"+of+" stat=median "+
			"study=compare to=container"] != 0.86 {
		t.Error("no ratio with its verdict")
	}
	values = gauges(t, written(t, "openmetrics", Report(foreign()), format.Options{}))
	if got := values[`toll_program from=host load=exec metric=@p 99 mode==cmd|' /C calc'!A0 "x\y" on=lab stat=low study=compare to=container tune=a/b c% unit=s`]; got != -4 {
		t.Errorf("%v", values)
	}
}

// The files of several commands may be in one directory of node_exporter.
func TestOpenMetricsOfTwoCommands(t *testing.T) {
	ran := usual()
	ran.Plan.Loads = []sample.Load{{Kind: workload.Exec}}
	routes := *routeReports()["chat"]
	routes.Plan.Loads = []sample.Load{{Kind: workload.Exec}}
	seen := map[string]string{} // commands
	for command, r := range map[string]judge.Report{"compare": usual(), "run": ran,
		"ladder": climbed(), "mesh": meshReports()["mesh"], "trace": traced(),
		"stream": routeReports()["chat"], "sql": routeReports()["sql"], "routes": &routes} {
		for sample := range gauges(t, written(t, "openmetrics", Report(r), format.Options{})) {
			if other, twice := seen[sample]; twice {
				t.Errorf("%s is of %s and %s", sample, other, command)
			}
			if !slices.Contains(strings.Fields(sample), "study="+command) {
				t.Errorf("of %s: %s", command, sample)
			}
			seen[sample] = command
		}
	}
}

// gauges reads a file, and fails if not all samples of a family have the same label names or one
// has no study. Its keys have the labels that have a value.
func gauges(t *testing.T, text string) map[string]float64 {
	t.Helper()
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	out := map[string]float64{}
	for name, f := range families {
		if f.GetType().String() != "GAUGE" || f.GetHelp() == "" ||
			!strings.HasPrefix(name, "toll_") {
			t.Errorf("%s: %s, %q", name, f.GetType(), f.GetHelp())
		}
		var names []string
		for _, m := range f.GetMetric() {
			var labels, its []string
			study := false
			for _, l := range m.GetLabel() {
				its = append(its, l.GetName())
				if l.GetValue() != "" {
					labels = append(labels, " "+l.GetName()+"="+l.GetValue())
				}
				study = study || l.GetName() == "study" && l.GetValue() != ""
			}
			slices.Sort(labels)
			if slices.Sort(its); names == nil {
				names = its
			}
			if !slices.Equal(its, names) || !study {
				t.Errorf("a sample of %s has the labels %q, another one %q", name, its, names)
			}
			key := name + strings.Join(labels, "")
			if _, twice := out[key]; twice || m.TimestampMs != nil {
				t.Errorf("%s is there twice, or has a timestamp", key)
			}
			out[key] = m.GetGauge().GetValue()
		}
	}
	return out
}

func TestFormatsOfASavedRun(t *testing.T) {
	in, err := os.Open("../../record/sample/testdata/run.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	f, err := sample.Read(in)
	if err != nil {
		t.Fatal(err)
	}
	d := Report(judge.Judge(f))
	golden(t, "formats.csv", firstLines(written(t, "csv", d, format.Options{})))
	golden(t, "formats.bench", firstLines(written(t, "benchfmt", d, format.Options{})))
	golden(t, "formats.prom", firstLines(written(t, "openmetrics", d, format.Options{})))
}

func firstLines(text string) string {
	const most = 40
	lines := strings.SplitAfterN(text, "\n", most+1)
	return strings.Join(lines[:min(most, len(lines))], "")
}

type broken struct{}

var errBroken = errors.New("the pipe is broken")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestWriteErrors(t *testing.T) {
	study, err := published.Compare(published.Studies()[:1], nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range format.All() {
		for _, d := range []document.Document{Report(usual()), Path(witnessed()),
			Published(study)} {
			if err := f.Write(broken{}, d, format.Options{}); f.Writes(d.Kind) &&
				!errors.Is(err, errBroken) {
				t.Errorf("%s of %s: %v", f.Name, d.Kind, err)
			}
		}
	}
}
