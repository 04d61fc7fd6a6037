package program

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/testversions"
	"github.com/bridgetoll/bridgetoll/internal/text/suggest"
)

// recorded is what the recipes find in testdata: a file is named by its recipe, which may be
// followed by a dash and more.
var recorded = map[string]map[string]float64{
	"iperf3": {"throughput": 22644871139.87, "retransmits": 19},
	"iperf3-3.9-bidir": {"throughput": 9935491695.32717, "retransmits": 17,
		"reverse": 13658984165.590897},
	"iperf3-3.9-udp": {"throughput": 1048458.5726398644, "lost": 0, "jitter": 2.2216796875e-6},
	"iperf3-3.9-udp-bidir": {"throughput": 1048350.6046200066, "reverse": 1310438.2557750084,
		"lost": 0, "jitter": 2.812744140625e-6},
	"iperf3-3.12-bidir": {"throughput": 14880743490.205088, "retransmits": 116,
		"reverse": 7425706786.010408},
	"iperf3-3.12-udp": {"throughput": 1042835.1922665724, "lost": 0,
		"jitter": 3.491943359375e-6},
	"iperf3-3.22":         {"throughput": 18093757012.03404, "retransmits": 3},
	"iperf3-3.22-reverse": {"throughput": 15182760883.300941, "retransmits": 7},
	"iperf3-3.22-bidir": {"throughput": 11256073159.715229, "retransmits": 7,
		"reverse": 13656958709.811136},
	"iperf3-3.22-udp": {"throughput": 1047196.8417594029, "lost": 0, "jitter": 6.277099609375e-6},
	"iperf3-3.22-udp-bidir": {"throughput": 1308427.6347838587, "reverse": 1308427.6347838587,
		"lost": 0, "jitter": 18.669952392578126e-6},
	"netperf":            {"p50": 83e-6, "p99": 138e-6, "mean": 76.91e-6, "trips": 12990.32},
	"netperf-20210121":   {"p50": 57e-6, "p99": 108e-6, "mean": 44.36e-6, "trips": 22516.93},
	"pgbench":            {"latency": 0.129e-3, "tps": 7722.573375, "connect": 3.705e-3},
	"pgbench-13":         {"latency": 0.030e-3, "tps": 32927.272052},
	"pgbench-15-connect": {"latency": 3.263e-3, "tps": 306.442275, "connect": 2.576e-3},
	"pgbench-18":         {"latency": 0.042e-3, "tps": 24092.234031, "connect": 1.751e-3},
	"pgbench-18-connect": {"latency": 2.281e-3, "tps": 438.399831, "connect": 1.769e-3},
	"qperf":              {"trip-mean": 81.8e-6, "half-mean": 40.9e-6, "bandwidth": 1.7e9},
	"qperf-0.4.11-3":     {"trip-mean": 23.8e-6, "half-mean": 11.9e-6, "bandwidth": 1.6e9},
	"redis":              {"requests": 58139.54, "p50": 0.079e-3, "p99": 0.223e-3},
	"redis-6.0":          {"requests": 119904.08},
	"redis-8.0":          {"requests": 116279.07, "p50": 0.039e-3, "p99": 0.151e-3},
	"redis-valkey-9.1":   {"requests": 123152.71, "p50": 0.039e-3, "p99": 0.127e-3},
	"sockperf": {"trip-p50": 84.726e-6, "trip-p99": 127.32e-6, "half-p50": 42.363e-6,
		"half-p99": 63.66e-6, "half-mean": 43.003e-6},
	"sockperf-3.7-sid": {"trip-p50": 4.496e-6, "trip-p99": 75.658e-6, "half-p50": 2.248e-6,
		"half-p99": 37.829e-6, "half-mean": 6.141e-6},
	"wrk":     {"requests": 73762.94, "p50": 100e-6, "p99": 205e-6},
	"wrk-404": {"requests": 189451.77, "p50": 31e-6, "p99": 123e-6, "bad-responses": 208432},
	"wrk-killed": {"requests": 62821.29, "p50": 31e-6, "p99": 107e-6, "connect-errors": 0,
		"read-errors": 8, "write-errors": 277761, "timeouts": 0},
	"pgbench-18-killed": {"latency": 0.054e-3, "tps": 18521.728761, "connect": 1.555e-3},
	"wrk-4.1.0-4":       {"requests": 186943.56, "p50": 32e-6, "p99": 143e-6},
}

// faults is why the visits of other files in testdata fail.
var faults = map[string]string{
	"iperf3-3.12-busy": `it did not do all its work: it said: "error": "the server is busy ` +
		`running a test. try again later"`,
	"iperf3-3.22-killed": `it did not do all its work: it said: "error": "control socket has ` +
		`closed unexpectedly"`,
	"pgbench-18-killed": "it did not do all its work: it said: pgbench: error: Run was " +
		"aborted; the above results are incomplete.",
	"wrk-404": "it did not do all its work: it said: Non-2xx or 3xx responses: 208432",
	"wrk-killed": "it did not do all its work: it said: Socket errors: connect 0, read " +
		"8, write 277761, timeout 0",
}

// printed is what the file of a recipe's client has, and the recipe.
func printed(t *testing.T, name string) (State, sample.Program) {
	t.Helper()
	recipe, _, _ := strings.Cut(name, "-")
	r, err := FindRecipe(recipe)
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.Program()
	if err != nil {
		t.Fatal(err)
	}
	said, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return State{Stdout: string(said), Elapsed: time.Second}, p
}

// versioned are files of a recipe's program, or of another one that it takes, of a version.
var versioned = regexp.MustCompile(`^([a-z]+3?)-(?:([a-z]+)-)?(\d+\.[\d.]*\d|\d\d|\d{8})\b`)

func TestRecipesFindTheirMetrics(t *testing.T) {
	for _, r := range recipes {
		if len(recorded[r.Name]) == 0 {
			t.Errorf("%s: nothing is recorded", r.Name)
		}
	}
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".txt")
		t.Run(name, func(t *testing.T) {
			if m := versioned.FindStringSubmatch(name); m != nil {
				program := m[1]
				if m[2] != "" {
					program = m[2]
				}
				testversions.Ran(t, program, m[3], "recorded output read")
			}
			st, p := printed(t, name)
			got, err := st.Values(p)
			if fault := faults[name]; errorText(err) != fault {
				t.Errorf("Values = %v, %v; want %q", got, err, fault)
			}
			want := map[string]float64{sample.Elapsed: 1}
			maps.Copy(want, recorded[name])
			if d := cmp.Diff(want, got, cmpopts.EquateApprox(1e-9, 0)); d != "" {
				t.Error(d)
			}
		})
	}
}

// The beginning of a long output is lost, and warnings are printed around it.
func TestEndOfALongReportIsRead(t *testing.T) {
	st, p := printed(t, "iperf3-3.22")
	begin := strings.Index(st.Stdout, `"intervals"`)
	st.Stdout, st.Stderr = st.Stdout[begin+40:], "warning: {end"
	got, err := st.Values(p)
	if want := recorded["iperf3-3.22"]["throughput"]; err != nil || got["throughput"] != want {
		t.Errorf("Values = %v, %v; want %g", got, err, want)
	}
}

func TestFirstMetricOfARecipeIsNeeded(t *testing.T) {
	for _, c := range []struct{ name, out, want string }{
		{"iperf3", `{"end": {"sum_sent": {"bits_per_second": 1}}}`,
			"no metric throughput: the output has no JSON with end.sum_received.bits_per_second " +
				"or end.sum.bits_per_second"},
		{"iperf3", "{}", "no metric throughput"},
		{"iperf3", `{"end": {"sum": {"bits_per_second": 5`, "no metric throughput"},
		{"iperf3", `{"end": {"sum": {"bits_per_second": "fast"}}}`, "no metric throughput"},
		{"iperf3", `{"end": ` + strings.Repeat(`{"end": `, 1000), "no metric throughput"},
		{"redis", `"SET","5"`, "no metric requests"},
		{"pgbench", "tps = 5 ", "no metric latency"},
	} {
		_, p := printed(t, c.name)
		if got, err := (State{Stdout: c.out}).Values(p); err == nil ||
			!strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: Values = %v, %v; want %q", c.name, got, err, c.want)
		}
	}
}

// A metric that the user names may not be missing, nor may one be what cannot be read.
func TestOptionalMetrics(t *testing.T) {
	_, p := printed(t, "redis")
	if _, err := (State{Stdout: `"GET","5","1","1","many"`}).Values(p); err != nil {
		t.Errorf("without p50: %v", err)
	}
	p.Gauges[1].Pattern = `"GET","5","(\w+)"`
	if _, err := (State{Stdout: `"GET","5","many"`}).Values(p); err == nil {
		t.Error("a word was read as p50")
	}
	p.Gauges[1].Optional = false
	if _, err := (State{Stdout: `"GET","5"`}).Values(p); err == nil {
		t.Error("p50 is missing")
	}
}

func TestBusyServerIsTriedAgain(t *testing.T) {
	busy, p := printed(t, "iperf3-3.12-busy")
	well, _ := printed(t, "iperf3-3.22")
	for _, c := range []struct {
		name          string
		busy, runs    int
		waited        time.Duration
		stop, wantErr bool
	}{
		{"idle", 0, 1, 0, false, false},
		{"soon", 2, 3, 625 * time.Millisecond, false, false},
		{"for-long", 100, busyTries, 8043 * time.Millisecond, false, true},
		{"stopped", 100, 1, 0, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			runs, waited := 0, time.Duration(0)
			st, err := Again(p, func() (State, error) {
				if runs++; runs <= c.busy {
					return busy, nil
				}
				return well, nil
			}, func(d time.Duration) error {
				if c.stop {
					return errors.New("stop")
				}
				waited += d
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			_, err = st.Values(p)
			if runs != c.runs || waited.Round(time.Millisecond) != c.waited ||
				(err != nil) != c.wantErr {
				t.Errorf("%d runs in %s: %v", runs, waited, err)
			}
		})
	}
}

func FuzzInJSON(f *testing.F) {
	f.Add("end.sum.x", `{"end": {"sum": {"x": 1e5}, "sum": {"x": -2}}}`)
	f.Add("end.sum.x#2", `"end" : {"sum": {"x": 1}, "sum": {"x": 0}`)
	f.Add("a.1.b#-1", `"a": {"1": [{}, {"b": 1}]}`)
	f.Add("", `"": {`)
	f.Fuzz(func(t *testing.T, path, output string) {
		if n, ok := inJSON(path, output); ok {
			if _, err := json.Number(n).Float64(); err != nil && !errors.Is(err, strconv.ErrRange) {
				t.Errorf("%q in %q is %q", path, output, n)
			}
		}
	})
}

func TestRecipesAreWhole(t *testing.T) {
	if !slices.IsSortedFunc(recipes, func(a, b Recipe) int {
		return strings.Compare(a.Name, b.Name)
	}) {
		t.Error("the recipes are not in the order of their names")
	}
	for _, r := range recipes {
		p, err := r.Program()
		if err != nil {
			t.Fatal(err)
		}
		for end, command := range map[string]string{"server": p.Server, "client": p.Client} {
			// A shell in between would not pass the signal on.
			if !strings.Contains(command, "exec ") {
				t.Errorf("%s: %s: no exec", r.Name, end)
			}
		}
		if p.Ready == "" || r.What == "" || len(r.Needs) == 0 || len(p.Gauges) == 0 ||
			p.Recipe != r.Name || p.NoRoot != r.NoRoot {
			t.Errorf("%+v", r)
		}
	}
}

func TestBadRecipeIsNamed(t *testing.T) {
	if _, err := (Recipe{Name: "soup", Gauges: lines("salt")}).Program(); err == nil ||
		err.Error() != "recipe soup: it must be NAME=REGEXP" {
		t.Errorf("Program = %v", err)
	}
}

func TestFindRecipe(t *testing.T) {
	if r, err := FindRecipe("redis"); err != nil || r.Name != "redis" {
		t.Errorf("FindRecipe = %+v, %v", r, err)
	}
	const want = "recipes are: iperf3, netperf, pgbench, qperf, redis, sockperf, wrk"
	var unknown *suggest.UnknownError
	if _, err := FindRecipe("soup"); !errors.As(err, &unknown) || unknown.Hint() != want {
		t.Errorf("FindRecipe = %v, want the hint %q", err, want)
	}
}

func TestCheckNamesWhatIsMissing(t *testing.T) {
	r := Recipe{Needs: []Need{{"sh", "dash"}, {"no-such-server", "soup"},
		{"no-such-client", "soup"}, {"no-such-tool", "spoons (non-free)"}}}
	var missing *missingError
	if err := r.Check(); !errors.As(err, &missing) {
		t.Fatalf("Check = %v", err)
	}
	got, want := missing.Error(), "not installed: no-such-server, no-such-client, no-such-tool"
	if got != want {
		t.Errorf("error %q, want %q", got, want)
	}
	got, want = missing.Hint(),
		"install soup, spoons (non-free) (Debian's names of the packages)"
	if got != want {
		t.Errorf("hint %q, want %q", got, want)
	}
	r.Needs = r.Needs[:1]
	if err := r.Check(); err != nil {
		t.Errorf("Check = %v", err)
	}
	missing.Needs = missing.Needs[:2] // of one package
	t.Setenv("PATH", t.TempDir())
	got, want = missing.Hint(), "install soup (Debian's name of the package)"
	if got != want {
		t.Errorf("hint %q, want %q", got, want)
	}
}
