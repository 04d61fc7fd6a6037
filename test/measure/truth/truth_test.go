package truth

import (
	"io"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

func TestParseOptions(t *testing.T) {
	o, err := parse(io.Discard, []string{"-only", "peers,aa", "-full", "-runs", "3"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.only, []string{"peers", "aa"}) || o.scale.name != "full" ||
		o.scale.aa.n != 3 || o.scale.plant.n != 3 {
		t.Errorf("got %+v", o)
	}
	if o, err = parse(io.Discard, nil); err != nil || len(o.only) != len(checks) ||
		o.scale.name != "usual" {
		t.Errorf("got %+v, %v", o, err)
	}
	for _, args := range [][]string{{"-only", "aa,nothing"}, {"-quick", "-full"}, {"-runs", "-1"},
		{"more"}} {
		if o, err := parse(io.Discard, args); err == nil {
			t.Errorf("%v: got %+v and no error", args, o)
		}
	}
}

// The usual scale must have enough blocks for an interval of the peers' ratios.
func TestScale(t *testing.T) {
	s := scaleOf(false, false, 0)
	total := time.Duration(s.aa.n)*s.aa.each +
		time.Duration(len(differences))*(s.pilot+s.reference+time.Duration(
			s.plant.n)*s.plant.each) +
		6*time.Duration(s.length.n)*s.length.each + 4*time.Duration(s.order.n)*s.order.each +
		2*time.Duration(s.company.n)*s.company.each +
		2*time.Duration(s.sustained.n)*s.sustained.each +
		// peers and unpinned; far and near, or idle and busy
		2*2*time.Duration(len(rivals)*s.peers.n)*(s.peers.each+time.Duration(len(checked))*7*time.Second/2) +
		time.Duration(len(rivals)*s.peers.n)*(s.peers.each+time.Duration(len(rootlessModes))*7*time.Second/2) +
		time.Duration(s.minute.n)*(s.minute.each+time.Duration(s.pairs)*2*4*time.Second) +
		time.Duration(s.long.n)*s.long.each + time.Duration(s.short.n)*s.short.each +
		time.Duration(s.trace.n)*s.trace.each + 2*4*s.follow + s.beside +
		time.Duration(len(plantedParts))*(s.traceReference+time.Duration(
			s.tracePlant.n)*s.tracePlant.each) +
		time.Duration((len(plantedTokens)*len(tokenAmounts)+2)*s.tokens*(tokensEach+1))*tokenPace +
		2*time.Duration(s.instants)*2*(tokenFirst+instantTokens*instantPace)
	if most := 80 * time.Minute; total > most {
		t.Errorf("the usual scale takes %s, more than %s", total, most)
	}
	for _, s := range []scale{s, scaleOf(false, true, 0)} {
		if s.peers.n < 6 || s.loaded >= s.long.n || s.loaded >= s.short.n {
			t.Errorf("scale %s: %+v", s.name, s)
		}
	}
}

func TestScaled(t *testing.T) {
	for _, c := range []struct {
		effect float64
		want   int
	}{{0.1, 50}, {0.05, 100}, {0.025, 200}, {10, 1}, {1e-9, 10_000}} {
		if got, err := scaled(100, 0.05, c.effect); err != nil || got != c.want {
			t.Errorf("effect %g: got %d, %v, want %d", c.effect, got, err, c.want)
		}
	}
	for _, none := range []float64{0, -0.1, math.NaN()} {
		if n, err := scaled(100, 0.05, none); err == nil {
			t.Errorf("effect %g: got %d and no error", none, n)
		}
	}
}

func TestPlans(t *testing.T) {
	p := sample.Plan{Same: 0.03, Epoch: 2, Loads: []sample.Load{
		{Kind: bulk, Slice: 0.004, Window: 0.1}, {Kind: rr, Slice: 0.004, Window: 0.1}},
		Cells: []sample.Cell{{Mode: "host", Load: bulk}, {Mode: "host", Load: rr}}}
	if got := sliced(p, 0.008); got.Loads[0].Slice != 0.008 || got.Loads[1].Slice != 0.008 ||
		got.Same == 0 {
		t.Errorf("got %+v", got)
	}
	if got := visited(p, time.Second); got.Loads[0].Slice != 0 || got.Loads[1].Window != 1 ||
		got.Same != 0 || got.Epoch != 0 {
		t.Errorf("got %+v", got)
	}
	if got := under(p, rr); len(got.Loads) != 1 || len(got.Cells) != 1 || got.Cells[0].Load != rr ||
		got.Loads[0].Kind != rr {
		t.Errorf("got %+v", got)
	}
	if p.Loads[0].Slice != 0.004 || p.Loads[0].Window != 0.1 || len(p.Cells) != 2 ||
		p.Cells[0].Load != bulk {
		t.Errorf("the plan itself: %+v", p)
	}
}

func TestLent(t *testing.T) {
	p := &path.Path{Spec: path.Spec{Mode: "bridge"}, Servers: []path.Server{{}},
		Clients: []path.Client{{}}, Hops: []path.Hop{{}},
		Second: 1, Facts: map[string]string{"a": "b"}, Inspect: func() ([]path.Setting, error) {
			return nil, nil
		}}
	closed := false
	p.Undo.Push("close", func() error { closed = true; return nil })
	got := lent(p)
	if err := got.Close(); err != nil || closed {
		t.Errorf("a lent path took the path down: %v", err)
	}
	if got.Spec != p.Spec || len(got.Servers) != 1 || len(got.Clients) != 1 || len(got.Hops) != 1 ||
		got.Second != 1 || got.Facts["a"] != "b" || got.Inspect == nil {
		t.Errorf("got %+v", got)
	}
	if err := p.Close(); err != nil || !closed {
		t.Errorf("the path itself stays: %v", err)
	}
}

func TestWithin(t *testing.T) {
	for _, tt := range []struct {
		name      string
		runs      []float64
		far, near float64
		want      verdict
	}{
		{"between", []float64{1, 2, 4}, 1, 4, yes},
		{"reversed", []float64{1, 2, 4}, 4, 1, yes},
		{"a-little-beyond", []float64{0.92, 4.3}, 1, 4, yes},
		{"one-of-six-above", []float64{2, 2, 2, 2, 2, 5}, 1, 4, yes},
		{"two-of-six-outside", []float64{2, 2, 2, 2, 0.5, 5}, 1, 4, no},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for i, x := range tt.runs {
				tt.runs[i] = math.Log(x)
			}
			var out table
			out.within(rivals[0], "nothing", "host", tt.runs, math.Log(tt.far), math.Log(tt.near))
			if got := out.rows[0].holds; got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestRatesRatio(t *testing.T) {
	r := rates{}
	for i := range 6 {
		state := float64(i) // of the machine
		r["host"], r["bridge"] = append(r["host"], state), append(r["bridge"], state+math.Log(0.9))
	}
	if e, err := r.ratio("bridge"); err != nil || math.Abs(math.Exp(e.at)-0.9) > 1e-9 {
		t.Errorf("%s, %v", e, err)
	}
}

// The plans follow the flags of toll compare.
func TestTollMakesThePlans(t *testing.T) {
	tr := &trial{options: options{toll: pathtest.Toll(t), congestion: "reno"}, stderr: t.Output()}
	for name, plan := range map[string]func() (sample.Plan, error){
		"inert":       func() (sample.Plan, error) { return tr.inert(t.Context()) },
		"host bridge": func() (sample.Plan, error) { return tr.hostBridge(t.Context()) },
		"company":     func() (sample.Plan, error) { return tr.hostBridge(t.Context(), company...) },
		"published":   func() (sample.Plan, error) { return tr.published(t.Context(), bothPins, checked, bulk, rr) },
	} {
		p, err := plan()
		if err != nil || len(p.Cells) == 0 {
			t.Errorf("%s: %d cells, %v", name, len(p.Cells), err)
		}
	}
}
