package peer

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

func record(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		file  string
		parse func([]byte) (float64, error)
		want  float64
	}{
		{"iperf3.json", parseIperf3, 58567001729.747459},
		{"qperf.txt", parseQperf, 40.1978e-6},
		{"qperf-human.txt", parseQperf, 2.39e-6},
		{"sockperf.txt", parseSockperf, 45.845e-6},
		{"netperf.txt", parseNetperf, 36310.95},
	} {
		t.Run(c.file, func(t *testing.T) {
			got, err := c.parse(record(t, c.file))
			if err != nil {
				t.Fatal(err)
			}
			const enough = 1e-9
			if math.Abs(got/c.want-1) > enough {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestParseRejects(t *testing.T) {
	for _, c := range []struct {
		name  string
		parse func([]byte) (float64, error)
		text  string
		want  string
	}{
		{"iperf3-empty", parseIperf3, "", "read iperf3's output: unexpected end of JSON input"},
		{"iperf3-error", parseIperf3, string(record(t, "iperf3-error.json")),
			"iperf3: unable to connect to server: Connection refused"},
		{"iperf3-nothing-received", parseIperf3, `{"end":{"sum_received":{"bits_per_second":0}}}`,
			"iperf3's received rate is 0"},
		{"iperf3-no-end", parseIperf3, `{"end":{}}`, "iperf3's received rate is 0"},
		{"qperf-empty", parseQperf, "", "read qperf's output: no latency in it"},
		{"qperf-failed", parseQperf, string(record(t, "qperf-error.txt")),
			"read qperf's output: no latency in it"},
		{"qperf-unit", parseQperf, "    latency  =  45 weeks",
			"read qperf's output: latency \"45 weeks\""},
		{"qperf-number", parseQperf, "    latency  =  x us",
			"read qperf's output: \"x\" is not a number"},
		{"qperf-zero", parseQperf, "    latency  =  0 ns", "qperf's latency is 0"},
		{"qperf-nan", parseQperf, "    latency  =  NaN ns",
			"read qperf's output: \"NaN\" is not a number"},
		{"sockperf-empty", parseSockperf, "", "read sockperf's output: no latency in it"},
		{"sockperf-number", parseSockperf, "Summary: Latency is 1.2.3 usec",
			"read sockperf's output: \"1.2.3\" is not a number"},
		{"sockperf-dropped", parseSockperf, "Summary: Latency is 1.2 usec\n# dropped messages = 3;",
			"read sockperf's output: it dropped messages, or does not say that it did not"},
		{"netperf-empty", parseNetperf, "", "read netperf's output: \"\""},
		{"netperf-number", parseNetperf, "1 2 3 4 5 six",
			"read netperf's output: \"six\" is not a number"},
		{"netperf-zero", parseNetperf, "1 2 3 4 5 0", "netperf's rate is 0"},
		{"sockperf-silent", parseSockperf, "Summary: Latency is 1.2 usec\n",
			"read sockperf's output: it dropped messages, or does not say that it did not"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.parse([]byte(c.text))
			if err == nil || err.Error() != c.want {
				t.Errorf("got %v, %v; want an error with %q", got, err, c.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"iperf3.json", "iperf3-error.json", "qperf.txt",
		"qperf-human.txt", "sockperf.txt", "netperf.txt"} {
		f.Add(record(f, name))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, parse := range []func([]byte) (float64, error){parseIperf3, parseQperf,
			parseSockperf, parseNetperf} {
			if x, err := parse(b); err == nil && (!(x > 0) || math.IsInf(x, 0)) {
				t.Errorf("%v without an error", x)
			}
		}
	})
}

func TestListens(t *testing.T) {
	table := string(record(t, "proc-net-tcp.txt"))
	for _, c := range []struct {
		name string
		port uint16
		want bool
	}{
		{"listening", 20001, true},
		{"connected-only", 20002, false},
		{"absent", 20004, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := listed(table, c.port); got != c.want {
				t.Errorf("port %d: got %v", c.port, got)
			}
		})
	}
}
