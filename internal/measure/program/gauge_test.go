package program

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestParseGauge(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     sample.Gauge
	}{
		{"bare", `size=(\d+)`, sample.Gauge{Name: "size", Scale: 1, Pattern: `(\d+)`}},
		{"equals-in-expression", `x=a=(\d)`, sample.Gauge{Name: "x", Scale: 1, Pattern: `a=(\d)`}},
		{"time-is-lower", `p50:ms=(\d+)`, sample.Gauge{
			Name: "p50", Unit: "s", Scale: 1e-3, Lower: true, Pattern: `(\d+)`}},
		{"time-said-higher", `battery:h:higher=(\d+)`,
			sample.Gauge{Name: "battery", Unit: "s", Scale: 3600, Pattern: `(\d+)`}},
		{"direction-before-unit", `lag:lower:MB=(\d+)`,
			sample.Gauge{Name: "lag", Unit: "B", Scale: 1e6, Lower: true, Pattern: `(\d+)`}},
		{"rate-is-higher", `rate:/s=(\d+)`, sample.Gauge{
			Name: "rate", Unit: "1/s", Scale: 1, Pattern: `(\d+)`}},
		{"share", `hits:%=(\d+)%`, sample.Gauge{
			Name: "hits", Unit: "1", Scale: 0.01, Pattern: `(\d+)%`}},
		{"printed-unit", `bw:bit/s=(\d+) (\S+)`,
			sample.Gauge{Name: "bw", Unit: "bit/s", Scale: 1, Pattern: `(\d+) (\S+)`}},
		{"unprinted-groups", `x=(?:a|b)(\d+)`,
			sample.Gauge{Name: "x", Scale: 1, Pattern: `(?:a|b)(\d+)`}},
		{"longest-name", strings.Repeat("n", 40) + `=(\d)`,
			sample.Gauge{Name: strings.Repeat("n", 40), Scale: 1, Pattern: `(\d)`}},
		{"longest-expression", `x=(\d)` + strings.Repeat("y", maxPattern-4),
			sample.Gauge{Name: "x", Scale: 1, Pattern: `(\d)` + strings.Repeat("y", maxPattern-4)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ParseGauge(c.in)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestParseGaugeRefuses(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"empty", "", "it must be NAME=REGEXP"},
		{"no-equals", `latency(\d+)`, "it must be NAME=REGEXP"},
		{"no-name", `=(\d+)`, `"" is not a name for a metric: letters, digits, dots and dashes, ` +
			`and not elapsed`},
		{"name-with-space", `a b=(\d+)`,
			`"a b" is not a name for a metric: letters, digits, dots and dashes, and not elapsed`},
		{"name-of-digits", `99=(\d+)`,
			`"99" is not a name for a metric: letters, digits, dots and dashes, and not elapsed`},
		{"name-too-long", strings.Repeat("n", 41) + `=(\d)`,
			`"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn" is not a name for a metric: letters, ` +
				`digits, dots and dashes, and not elapsed`},
		{"reserved", `elapsed:s=(\d+)`, `"elapsed" is not a name for a metric: letters, digits, ` +
			`dots and dashes, and not elapsed`},
		{"unknown-unit", `x:furlongs=(\d+)`, `unknown unit "furlongs"`},
		{"unknown-direction", `x:s:sideways=(\d+)`, `unknown unit "sideways"`},
		{"no-group", `x=\d+`, "the expression needs a group in parentheses for the number, " +
			"and may have a second one for its unit; it has 0"},
		{"three-groups", `x:s=(\d)(\d)(\d)`, "the expression needs a group in parentheses for " +
			"the number, and may have a second one for its unit; it has 3"},
		{"printed-unit-of-nothing", `x=(\d+) (\w+)`, "the second group is a unit, so the name " +
			"needs one: x:s, x:bit/s, …"},
		{"not-an-expression", `x=(\d+`, "error parsing regexp: missing closing ): `(?m)(\\d+`"},
		{"nothing-to-repeat", `x=*(\d+)`, "error parsing regexp: missing argument to " +
			"repetition operator: `*`"},
		{"look-ahead", `x=(\d+)(?=ms)`, "error parsing regexp: invalid or unsupported Perl " +
			"syntax: `(?=`"},
		{"huge", `x=(\d)` + strings.Repeat("y", maxPattern), "the expression has 4100 bytes; " +
			"at most 4096 are allowed"},
		{"huge-by-repetition", `x=((\d{1000}){1000})`, "error parsing regexp: invalid repeat " +
			"count: `{1000}`"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if g, err := ParseGauge(c.in); err == nil || err.Error() != c.want {
				t.Errorf("ParseGauge = %+v, %v; want %q", g, err, c.want)
			}
		})
	}
}

func TestExtract(t *testing.T) {
	for _, c := range []struct {
		name, gauge, output string
		want                float64
	}{
		{"number", `x=n (\d+)`, "n 7\n", 7},
		{"last-match", `x=n (\d+)`, "n 1\nn 2\nn 3\n", 3},
		{"last-on-a-line", `x=n(\d)`, "n1 n2\n", 2},
		{"own-line", `x=^n (\d+)$`, "begin\nn 5\nin 6\n", 5},
		{"thousands", `x=n ([\d,.]+)`, "n 1,234,567.5", 1234567.5},
		{"exponent", `x=n (\S+)`, "n 2.5e+09", 2.5e9},
		{"negative-zero", `x=n (\S+)`, "n -0", 0},
		{"unit-of-gauge", `x:ms=n (\d+)`, "n 250", 0.25},
		{"micro-sign", `x:s=n (\d+)(\S+)`, "n 250µs", 250e-6},
		{"greek-mu", `x:s=n (\d+)(\S+)`, "n 250μs", 250e-6},
		{"printed-ms", `x:us=n ([\d.]+) ?(\w+)`, "n 1.5 ms", 1.5e-3},
		{"iperf-words", `x:bit/s=([\d.]+) (\S+)`, "9.41 Gbits/sec", 9.41e9},
		{"binary-prefix", `x:B/s=([\d.]+) (\S+)`, "3 MiB/s", 3 << 20},
		{"per-cent", `x:%=([\d.]+) ?(%)`, "12.5%", 0.125},
		{"prefix-alone", `x:/s=n ([\d.]+)(k?/s)`, "n 74.3k/s", 74300},
		{"carriage-returns", `x=(\d+)%`, "10%\r20%\r100%\r\n", 100},
		{"junk-around", `x=n (\d+)`, "\xff\xfe\x00n 8\x00\xff", 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := ParseGauge(c.gauge)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := extract(g, c.output); err != nil ||
				math.Abs(got-c.want) > 1e-12*math.Abs(c.want) {
				t.Errorf("extract = %v, %v; want %v", got, err, c.want)
			}
		})
	}
}

func TestExtractRefuses(t *testing.T) {
	for _, c := range []struct{ name, gauge, output, want string }{
		{"no-output", `p50=n (\d+)`, "", `no metric p50: nothing in the output matches n (\d+)`},
		{"no-match", `p50=n (\d+)`, "hello\nworld\n",
			`no metric p50: nothing in the output matches n (\d+)`},
		{"other-kind", `p50:s=n (\d+) (\S+)`, "n 5 MB",
			`metric p50: printed in "MB", which cannot be converted to s`},
		{"bits-for-bytes", `bw:B/s=(\d+) (\S+)`, "5 Mbit/s",
			`metric bw: printed in "Mbit/s", which cannot be converted to B/s`},
		{"unknown-unit", `p50:s=n (\d+) (\S+)`, "n 5 jiffies",
			`metric p50: unknown unit "jiffies"`},
		{"last-has-another-unit", `p50:s=n (\d+) (\S+)`, "n 5 ms\nn 5 MB\n",
			`metric p50: printed in "MB", which cannot be converted to s`},
		{"nan", `x=n (\S+)`, "n NaN", `metric x: "NaN" is not a number`},
		{"inf", `x=n (\S+)`, "n +Inf", `metric x: "+Inf" is not a number`},
		{"too-large", `x=n (\S+)`, "n 1e999", `metric x: "1e999" is not a number`},
		{"too-large-with-its-unit", `x:TB=n (\S+)`, "n 1e300", `metric x: "1e300" is not a number`},
		{"negative", `x=n (\S+)`, "n -3", `metric x: "-3" is negative`},
		{"negative-with-its-unit", `x:s=n (\S+?)(ms)`, "n -0.5ms", `metric x: "-0.5" is negative`},
		{"word", `x=n (\S+)`, "n many", `metric x: "many" is not a number`},
		{"unmatched-group", `x=n(?: (\d+))?`, "n", `metric x: "" is not a number`},
		{"comma-for-a-point", `x=n (\S+)`, "n 1,5", `metric x: "1,5" is not a number`},
		{"commas-elsewhere", `x=n (\S+)`, "n 12,34,567", `metric x: "12,34,567" is not a number`},
		{"comma-behind-the-point", `x=n (\S+)`, "n 1.234,567",
			`metric x: "1.234,567" is not a number`},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := ParseGauge(c.gauge)
			if err != nil {
				t.Fatal(err)
			}
			if x, err := extract(g, c.output); err == nil ||
				err.Error() != c.want {
				t.Errorf("extract = %v, %v; want %q", x, err, c.want)
			}
		})
	}
}

// The manual has expressions for clients without a recipe.
func TestManualsExpressions(t *testing.T) {
	want := map[string]map[string]float64{
		"fortio":        {"rate": 132822.9, "p50": 5.14769e-05, "errors": 0},
		"fortio-1.75.3": {"rate": 54189.5, "p50": 7.43833e-05, "errors": 0},
		"k6":            {"p50": 284.66e-6, "failed": 0},
		"vegeta":        {"p50": 242.398e-6, "success": 1},
		"oha":           {"p50": 537.3e-6, "rate": 7118.4982, "success": 1, "ok": 7128},
		"oha-404":       {"p50": 801.3e-6, "rate": 3318.2943, "success": 1}, // ok fails
		"oha-killed":    {"p50": 465.1e-6, "rate": 7533.9551, "success": 0.5766, "ok": 13090},
	}
	text, err := os.ReadFile("../../../docs/commands/run.md")
	if err != nil {
		t.Fatal(err)
	}
	metrics := regexp.MustCompile(`--metric '([^']+)'`)
	found := 0
	for _, command := range strings.Split(string(text), "\ntoll run ")[1:] {
		for client, values := range want { // a program, and its version if there are several
			program, _, _ := strings.Cut(client, "-")
			if !strings.Contains(command, program+" ") || !strings.Contains(command, "web:8080") {
				continue
			}
			found++
			said, err := os.ReadFile(filepath.Join("testdata/others", client+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			command, _, _ = strings.Cut(command, "```")
			got := map[string]float64{}
			for _, m := range metrics.FindAllStringSubmatch(command, -1) {
				g, err := ParseGauge(m[1])
				if err != nil {
					t.Fatal(err)
				}
				x, err := extract(g, string(said))
				if _, wanted := values[g.Name]; err != nil && wanted {
					t.Errorf("%s: %v", client, err)
				} else if err == nil {
					got[g.Name] = x
				}
			}
			if d := cmp.Diff(values, got, cmpopts.EquateApprox(1e-9, 0)); d != "" {
				t.Errorf("%s\n%s", client, d)
			}
		}
	}
	if found != len(want) {
		t.Errorf("%d commands", found)
	}
}

func FuzzParseGauge(f *testing.F) {
	for _, r := range recipes {
		for _, g := range r.Gauges {
			f.Add(g.text)
		}
	}
	for _, s := range []string{"", "=", "x=", ":::=", "x:s:lower:higher=(.)", "x=(?i)(a)(b)(c)",
		"x:µs=((", "x:%=\xff(.)", "é=(.)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		g, err := ParseGauge(s)
		if err != nil {
			return
		}
		if g.Name == "" || g.Scale <= 0 || len(g.Pattern) > maxPattern {
			t.Errorf("%q was read as %+v", s, g)
		}
		check(t, g, s)
	})
}

func FuzzExtract(f *testing.F) {
	f.Add(`x:s=n ([\d.,e+-]+) ?(\S*)`, "n 1,500.25 ms\nn 3 us\n")
	f.Add(`x=(.*)`, "0x1p-2\n1_000\nNaN")
	f.Add(`x:TB=(\S+)`, "9e299")
	f.Add(`x=()`, "\xff\x00")
	f.Fuzz(func(t *testing.T, gauge, output string) {
		const enough = 1 << 10 // the fuzzer's expressions may be slow
		if len(gauge) > enough || len(output) > enough {
			return
		}
		if g, err := ParseGauge(gauge); err == nil {
			check(t, g, output)
		}
	})
}

// check requires a number that a results file can have, or an error that names the metric.
func check(t *testing.T, g sample.Gauge, output string) {
	t.Helper()
	x, err := extract(g, output)
	switch {
	case err != nil && !strings.Contains(err.Error(), "metric "+g.Name):
		t.Errorf("%+v: %v", g, err)
	case err == nil && (math.IsNaN(x) || math.IsInf(x, 0)):
		t.Errorf("%+v found %v in %q", g, x, output)
	}
}
