package format

import (
	"cmp"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// benchFormat writes Go's benchmark format, a line for each cell and round
// (https://golang.org/design/14313-benchmark-format).
var benchFormat = Format{Name: "benchfmt", Kinds: []document.Kind{document.AReport},
	write: writeBench}

func writeBench(w io.Writer, d document.Document, _ Options) error {
	b := bench{w: w, config: benchConfig(d.Run), rounds: map[int][]string{}}
	b.units(d.Figures)
	metric := "" // the last that had rounds
	for f := range d.Figures {
		if f.Subject != b.of {
			b.flush()
			b.of, metric = f.Subject, ""
		}
		switch f.Statistic {
		case document.Round:
			metric = f.Metric
		case document.Median: // a link of a mesh has no rounds
			if f.From == "" || f.Metric == metric {
				continue
			}
		default:
			continue
		}
		if v, unit := benchValue(f); !math.IsNaN(v) && !math.IsInf(v, 0) {
			b.rounds[f.Round] = append(b.rounds[f.Round], fmt.Sprintf(" %v %s", v, unit))
		}
	}
	b.flush()
	return b.err
}

type bench struct {
	w      io.Writer
	config string // written before the first result; then ""
	of     document.Subject
	rounds map[int][]string // values with units, each after a blank
	err    error
}

func (b *bench) write(format string, args ...any) {
	if b.err == nil {
		_, b.err = fmt.Fprintf(b.w, format, args...)
	}
}

func (b *bench) flush() {
	for _, round := range slices.Sorted(maps.Keys(b.rounds)) {
		b.write("%sBenchmark%s 1%s\n", b.config, benchName(b.of),
			strings.Join(b.rounds[round], ""))
		b.config = ""
	}
	clear(b.rounds)
}

// units declares the direction of units whose direction benchstat does not assume.
func (b *bench) units(figures iter.Seq[document.Figure]) {
	better := map[string]string{}
	for f := range figures {
		if f.Higher && (f.Statistic == document.Round || f.Statistic == document.Median) {
			_, unit := benchValue(f)
			better[unit] = "higher"
		}
	}
	delete(better, "B/s")
	for _, unit := range slices.Sorted(maps.Keys(better)) {
		b.write("Unit %s better=%s\n", unit, better[unit])
	}
}

// benchConfig omits what differs from run to run, because benchstat compares only results with the
// same configuration.
func benchConfig(r *document.Run) string {
	var b strings.Builder
	for _, c := range []struct{ key, value string }{
		{"toll", r.Tool}, {"kernel", r.Kernel}, {"cpu", r.CPU}, {"cpus", fmt.Sprint(r.CPUs)},
		{"virtualization", r.Virtualization}, {"wire", r.Wire},
	} {
		if c.value != "" && c.value != "0" {
			fmt.Fprintf(&b, "%s: %s\n", c.key, c.value)
		}
	}
	return b.String() + "\n"
}

func benchName(c document.Subject) string {
	study := []rune(c.Study)
	var b strings.Builder
	b.WriteString(strings.ToUpper(string(study[:1])) + string(study[1:]))
	for _, p := range []struct{ key, value string }{
		{"mode", c.Mode}, {"from", c.From}, {"to", c.To}, {"tune", c.Tune}, {"shape", crowd(c)},
		{"on", c.On}, {"load", c.Load}, {"point", c.Point}, {"pin", c.Pin},
	} {
		if p.value != "" {
			b.WriteString("/" + p.key + "=" + benchPart(p.value))
		}
	}
	return b.String()
}

// crowd returns a shape such as "1x16x4", or "" if there is one of each.
func crowd(s document.Subject) string {
	if s.Servers == 1 && s.Clients == 1 && s.ClientProcs == 1 {
		return ""
	}
	return fmt.Sprintf("%dx%dx%d", s.Servers, s.Clients, s.ClientProcs)
}

// benchPart escapes foreign text as in a URL.
func benchPart(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == '/' || r == '%' || r <= ' ' || r == 0x85 || r == 0xa0 ||
			r > 0x2000 && strings.TrimSpace(string(r)) == "" {
			for _, c := range []byte(string(r)) {
				fmt.Fprintf(&b, "%%%02X", c)
			}
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

var benchUnits = map[[2]string]string{
	{workload.Throughput, "bit/s"}: "B/s", {workload.CPUPerByte, "s/B"}: "cpu-sec/B",
	{workload.CPUPerTrip, "s"}: "cpu-sec/op", {workload.Transactions, "1/s"}: "op/s",
	{workload.LatencyP50, "s"}: "sec/op", {workload.LatencyP90, "s"}: "p90-sec/op",
	{workload.LatencyP99, "s"}:  "p99-sec/op",
	{workload.LatencyP999, "s"}: "p99.9-sec/op", {workload.LatencyMax, "s"}: "max-sec/op",
}

// benchValue returns a figure in a unit that benchstat scales if it is in bytes or seconds. The
// units of other metrics begin with the metric's name.
func benchValue(f document.Figure) (value float64, unit string) {
	const bitsPerByte = 8
	value = f.Value
	if f.Unit == "bit/s" {
		value /= bitsPerByte
	}
	if special, ok := benchUnits[[2]string{f.Metric, f.Unit}]; ok {
		return value, special
	}
	end, known := map[string]string{"s": "-sec", "bit/s": "-B/s", "1/s": "/s", "1": "",
		"s/B": "-sec/B"}[f.Unit]
	if !known && f.Unit != "" && !strings.HasSuffix(f.Metric, f.Unit) {
		end = "-" + benchPart(f.Unit)
	}
	return value, cmp.Or(benchPart(strings.ReplaceAll(f.Metric, "_", "-"))+end, "value")
}
