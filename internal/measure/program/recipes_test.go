package program

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/text/suggest"
)

// recorded is what the recipes find in testdata: what the programs of Debian 12 printed (iperf3
// 3.12, qperf 0.4.11, sockperf 3.7, redis-benchmark 7.0.15, wrk 4.1.0, pgbench 15.18), and netperf
// 2.7.0, over the loopback device.
var recorded = map[string]map[string]float64{
	"iperf3":   {"throughput": 22644871139.87, "retransmits": 19},
	"netperf":  {"p50": 83e-6, "p99": 138e-6, "mean": 76.91e-6, "trips": 12990.32},
	"pgbench":  {"latency": 0.129e-3, "tps": 7722.573375, "connect": 3.705e-3},
	"qperf":    {"latency": 40.9e-6, "bandwidth": 1.7e9},
	"redis":    {"requests": 58139.54, "p50": 0.079e-3, "p99": 0.223e-3},
	"sockperf": {"p50": 42.363e-6, "p99": 63.66e-6, "mean": 43.003e-6},
	"wrk":      {"requests": 73762.94, "p50": 100e-6, "p99": 205e-6},
}

func TestRecipesFindTheirMetrics(t *testing.T) {
	for _, r := range recipes {
		t.Run(r.Name, func(t *testing.T) {
			p, err := r.Program()
			if err != nil {
				t.Fatal(err)
			}
			said, err := os.ReadFile(filepath.Join("testdata", r.Name+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			if len(p.Gauges) != len(recorded[r.Name]) {
				t.Errorf("%d metrics, %d were recorded", len(p.Gauges), len(recorded[r.Name]))
			}
			for _, g := range p.Gauges {
				want := recorded[r.Name][g.Name]
				if got, err := extract(g, string(said)); err != nil || got < want*(1-1e-9) ||
					got > want*(1+1e-9) || want == 0 {
					t.Errorf("%s = %v, %v; want %v", g.Name, got, err, want)
				}
			}
		})
	}
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
	if _, err := (Recipe{Name: "soup", Gauges: []string{"salt"}}).Program(); err == nil ||
		!strings.Contains(err.Error(), "recipe soup: ") {
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
		"install the Debian packages soup, spoons (non-free), or their equivalents"
	if got != want {
		t.Errorf("hint %q, want %q", got, want)
	}
	missing.Needs = missing.Needs[:2] // of one package
	got, want = missing.Hint(), "install the Debian package soup, or its equivalent"
	if got != want {
		t.Errorf("hint %q, want %q", got, want)
	}
	r.Needs = r.Needs[:1]
	if err := r.Check(); err != nil {
		t.Errorf("Check = %v", err)
	}
}
