package judge

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

func largeFile(tb testing.TB, visits int) []byte {
	tb.Helper()
	b, err := os.ReadFile("../record/sample/testdata/run.jsonl")
	if err != nil {
		tb.Fatal(err)
	}
	real, err := sample.Read(bytes.NewReader(b))
	if err != nil {
		tb.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var out bytes.Buffer
	w := sample.NewWriter(&out)
	_ = w.Header(real.Header)
	cells := len(real.Header.Plan.Cells)
	for i := range visits {
		v := real.Visits[i%len(real.Visits)]
		v.Round = i / cells
		drift := 0.9 + 0.2*rng.Float64()
		for _, p := range []*sample.Party{&v.Client, &v.Server} {
			p.Received, p.Trips = int64(drift*float64(p.Received)), int64(drift*float64(p.Trips))
		}
		_ = w.Visit(v)
	}
	_ = w.End(sample.End{Reason: sample.EndedByRounds, Rounds: visits / cells})
	return out.Bytes()
}

// The file has the usual loads, sixteen modes and the controls, visits as large as real ones, and
// 13 epochs of some 250 slices.
func minute(tb testing.TB) []byte {
	tb.Helper()
	real, err := os.Open(realRun)
	if err != nil {
		tb.Fatal(err)
	}
	defer real.Close()
	like, err := sample.Read(real)
	if err != nil {
		tb.Fatal(err)
	}
	visits := map[string]sample.Visit{}
	for _, v := range like.Visits {
		if c := like.Header.Plan.Cells[v.Cell]; len(v.Hops) > len(visits[c.Load].Hops) {
			visits[c.Load] = v
		}
	}
	h := like.Header
	p := &h.Plan
	p.Same, p.Epoch, p.Cells = 0.03, 2, nil
	modes := []mode.Name{mode.Host, mode.Native, mode.Shared, mode.Bridge, mode.BridgeDefault,
		mode.PublishNAT, mode.PublishProxy, mode.Routed}
	for i := range p.Loads {
		p.Loads[i].Slice = 0.004
		for _, m := range modes {
			c := judgetest.HostCell(m, p.Loads[i].Kind)
			if p.Cells = append(p.Cells, c); m == mode.Host {
				p.Cells = append(p.Cells, judgetest.Control(c))
			}
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var out bytes.Buffer
	w := sample.NewWriter(&out)
	_ = w.Header(h)
	const epochs, slots = 13, 250
	for round := range epochs {
		for c, cell := range p.Cells {
			v := visits[cell.Load]
			v.Round, v.Cell, v.Slices = round, c, &sample.Slices{}
			for slot := c % 9; slot < slots; slot += 9 {
				x := math.Exp(0.1 * rng.NormFloat64())
				v.Slices.Slots = append(v.Slices.Slots, slot)
				if cell.Load == "rr" {
					v.Slices.Rates, v.Slices.Medians = append(v.Slices.Rates, 5e4*x),
						append(v.Slices.Medians, 2e-5/x)
				} else {
					v.Slices.Rates = append(v.Slices.Rates, 4e9*x)
				}
			}
			_ = w.Visit(v)
		}
	}
	_ = w.End(sample.End{Reason: sample.EndedByBudget, Rounds: epochs})
	return out.Bytes()
}

func TestFileOfAMinuteIsSmall(t *testing.T) {
	file := minute(t)
	if const5MB := 5_000_000; len(file) > const5MB {
		t.Errorf("%d bytes", len(file))
	}
	f, err := sample.Read(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range Judge(f).Base().Cells {
		if x := c.Metrics[c.Primary].Ratio; !c.Baseline &&
			(x == nil || x.Epochs != 13 || x.N < 13*27) {
			t.Errorf("%s, %s: %+v", c.Label(), c.Load, x)
		}
	}
	t.Logf("%d bytes", len(file))
}

func BenchmarkReportOfAMinute(b *testing.B) {
	file := minute(b)
	b.SetBytes(int64(len(file)))
	for b.Loop() {
		f, err := sample.Read(bytes.NewReader(file))
		if err != nil {
			b.Fatal(err)
		}
		Judge(f)
	}
}

// The file has BENCH_VISITS visits. The reader accepts at most a million.
func BenchmarkReport(b *testing.B) {
	visits := 10_000
	if n, err := strconv.Atoi(os.Getenv("BENCH_VISITS")); err == nil {
		visits = n
	}
	file := largeFile(b, visits)
	b.SetBytes(int64(len(file)))
	for b.Loop() {
		f, err := sample.Read(bytes.NewReader(file))
		if err != nil {
			b.Fatal(err)
		}
		if r := Judge(f).Base(); len(r.Cells) == 0 {
			b.Fatal("nothing was judged")
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*visits), "µs/visit")
}
