package analysis

import (
	"bytes"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// largeFile is a results file of that many visits: those of a real file again
// and again, each with other figures.
func largeFile(tb testing.TB, visits int) []byte {
	tb.Helper()
	b, err := os.ReadFile("../sample/testdata/run.jsonl")
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
	_ = w.Header(real.Header) // a buffer takes everything
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

// BenchmarkReport reads and judges a file; the largest that is read has a
// million visits. BENCH_VISITS says how many this one has.
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
		if r := Judge(f); len(r.Cells) == 0 {
			b.Fatal("nothing was judged")
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*visits), "µs/visit")
}
