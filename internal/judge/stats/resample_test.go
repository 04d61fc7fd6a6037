package stats

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

func plain(xs []float64) Summary {
	rng := rand.New(rand.NewPCG(0x746f6c6c, 1))
	medians := make([]float64, resamples)
	for i := range medians {
		drawn := make([]float64, len(xs))
		for j := range drawn {
			drawn[j] = xs[rng.IntN(len(xs))]
		}
		medians[i] = Median(drawn)
	}
	slices.Sort(medians)
	return Summary{Median: Median(xs), Low: medians[50], High: medians[1949], N: len(xs)}
}

func TestSummarizeIsThePlainBootstrap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{2, 3, 8, 9, 100, 101, 255, 256, 257, 999, 100, 8} {
		xs := make([]float64, n)
		for i := range xs {
			xs[i] = float64(rng.IntN(n)) - float64(n)/2 // many are equal, some negative
		}
		if got, want := Summarize(xs), plain(xs); got != want {
			t.Errorf("%d values: %+v, want %+v", n, got, want)
		}
	}
}

func TestLargeSummaries(t *testing.T) {
	var drawn []uint8
	draw(100, make([]uint8, 100), func(_ int, times []uint8) { drawn = append(drawn, times...) })
	if !slices.Equal(drawn, resamplingOf(100).times) {
		t.Error("what is kept is not what is drawn")
	}
	xs := make([]float64, maxKept/resamples+1)
	for i := range xs {
		xs[i] = float64(i % 1000)
	}
	if s := Summarize(xs); s.N != len(xs) ||
		!(s.Low < s.Median && s.Median < s.High && s.High-s.Low < 50) {
		t.Errorf("%+v", s)
	}
	if slices.ContainsFunc(kept.last, func(r *resampling) bool { return r.n == len(xs) }) {
		t.Error("it is kept")
	}
}

func TestKeptResamplingsAreBounded(t *testing.T) {
	var wg sync.WaitGroup
	for n := range 10 { // 8 MB each
		wg.Go(func() { resamplingOf(4000 + n) })
	}
	wg.Wait()
	total := 0
	for _, r := range kept.last {
		total += len(r.times)
	}
	if total == 0 || total > maxKept {
		t.Errorf("%d bytes are kept, at most %d may be", total, maxKept)
	}
}

func BenchmarkSummarize(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	xs := make([]float64, 1000)
	for i := range xs {
		xs[i] = rng.Float64()
	}
	for b.Loop() {
		Summarize(xs)
	}
}
