package stats

import (
	"math/rand/v2"
	"slices"
	"sync"
)

const resamples = 2000

// maxKept is the largest number of bytes of all cached resamplings.
const maxKept = 32 << 20

// resampling holds how often each index occurs in each resample of n values: once on average, and
// never 256 times. The seed is fixed.
type resampling struct {
	n     int
	times []uint8
}

// kept caches resamplings, because drawing takes far longer than using them, and a report repeats
// the same sizes.
var kept struct {
	sync.Mutex
	last []*resampling // the latest used first
}

func resample(n int, f func(i int, times []uint8)) {
	if n*resamples > maxKept {
		draw(n, make([]uint8, n), f)
		return
	}
	r := resamplingOf(n)
	for i := range resamples {
		f(i, r.times[i*n:(i+1)*n])
	}
}

func resamplingOf(n int) *resampling {
	kept.Lock()
	defer kept.Unlock()
	at := slices.IndexFunc(kept.last, func(r *resampling) bool { return r.n == n })
	var r *resampling
	if at >= 0 {
		r = kept.last[at]
		kept.last = slices.Delete(kept.last, at, at+1)
	} else {
		r = &resampling{n: n, times: make([]uint8, 0, n*resamples)}
		draw(n, make([]uint8, n), func(_ int, times []uint8) {
			r.times = append(r.times, times...)
		})
	}
	kept.last = slices.Insert(kept.last, 0, r)
	for bytes, i := 0, 0; i < len(kept.last); i++ {
		if bytes += len(kept.last[i].times); bytes > maxKept {
			kept.last = slices.Delete(kept.last, i, len(kept.last))
		}
	}
	return r
}

func draw(n int, times []uint8, f func(i int, times []uint8)) {
	const seed1, seed2 = 0x746f6c6c, 1
	rng := rand.New(rand.NewPCG(seed1, seed2))
	for i := range resamples {
		clear(times)
		for range n {
			times[rng.IntN(n)]++
		}
		f(i, times)
	}
}

// ranked holds values in ascending order, with their original indexes.
type ranked struct {
	values  []float64
	indexes []int
}

func rank(xs []float64) ranked {
	r := ranked{make([]float64, len(xs)), make([]int, len(xs))}
	for i := range r.indexes {
		r.indexes[i] = i
	}
	slices.SortFunc(r.indexes, func(a, b int) int {
		switch { // all values are finite
		case xs[a] < xs[b]:
			return -1
		case xs[a] > xs[b]:
			return 1
		}
		return 0
	})
	for k, i := range r.indexes {
		r.values[k] = xs[i]
	}
	return r
}

func (r ranked) median(times []uint8) float64 {
	n := len(r.values)
	k, seen := 0, int(times[r.indexes[0]])
	for ; seen <= (n-1)/2; seen += int(times[r.indexes[k]]) {
		k++
	}
	low := r.values[k]
	if n%2 == 1 {
		return low
	}
	for ; seen <= n/2; seen += int(times[r.indexes[k]]) {
		k++
	}
	return medianSorted([]float64{low, r.values[k]})
}
