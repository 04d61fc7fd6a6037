package model

import (
	"math"
	"slices"
)

func (f *Fit) sort(visits []Measurement) {
	links := f.Nodes * f.Nodes
	f.first = make([]int32, links+1)
	link := func(v Measurement) int {
		a, b := v.Pair[0], v.Pair[1]
		if !f.Directed {
			a, b = min(a, b), max(a, b)
		}
		return a*f.Nodes + b
	}
	good := func(v Measurement) bool {
		return v.Slowness > 0 && !math.IsInf(v.Slowness, 0) && v.Pair[0] != v.Pair[1]
	}
	for _, v := range visits {
		if good(v) {
			f.first[link(v)+1]++
		}
	}
	for i := range links {
		f.first[i+1] += f.first[i]
	}
	f.Visits = int(f.first[links])
	f.visits = make([]visit, f.Visits)
	next := slices.Clone(f.first)
	sweeps, rounds := numbers[int]{}, numbers[[2]int]{}
	for _, v := range visits {
		if !good(v) {
			continue
		}
		l := link(v)
		f.visits[next[l]] = visit{int32(l), sweeps.of(v.Sweep), rounds.of([2]int{v.Sweep, v.Round}),
			math.Log(v.Slowness)}
		next[l]++
	}
	f.Sweeps, f.rounds = len(sweeps.all), len(rounds.all)
}

// numbers assigns consecutive numbers to keys. It caches the last key, because most visits have the
// key of the one before.
type numbers[K comparable] struct {
	all    map[K]int32
	last   K
	number int32
}

func (n *numbers[K]) of(k K) int32 {
	if n.all != nil && k == n.last {
		return n.number
	}
	if n.all == nil {
		n.all = map[K]int32{}
	}
	number, ok := n.all[k]
	if !ok {
		number = int32(len(n.all))
		n.all[k] = number
	}
	n.last, n.number = k, number
	return number
}

// manyInRound is the least number of visits for which a round has a level of its own. The median of
// fewer depends on which nodes happen to meet.
const manyInRound = 32

// times returns the number of each visit's time, which is its sweep or, if rounds is set and its
// round is large enough, its round.
func (f *Fit) times(rounds bool) []int32 {
	out := make([]int32, len(f.visits))
	if !rounds {
		for i, v := range f.visits {
			out[i] = v.sweep
		}
		return out
	}
	count := make([]int, f.rounds)
	for _, v := range f.visits {
		count[v.round]++
	}
	ids := make([]int32, f.rounds+f.Sweeps) // of rounds and sweeps, plus 1; 0: none yet
	last := int32(0)
	for i, v := range f.visits {
		t := v.round
		if count[t] < manyInRound {
			t = int32(f.rounds) + v.sweep
		}
		if ids[t] == 0 {
			last++
			ids[t] = last
		}
		out[i] = ids[t] - 1
	}
	return out
}

func (f *Fit) takeRounds(times []int32) {
	count := f.count(times)
	rest := make([][]float64, len(count))
	for t, n := range count {
		rest[t] = make([]float64, 0, n)
	}
	for i, v := range f.visits {
		rest[times[i]] = append(rest[times[i]], v.y-f.expected(v.link))
	}
	levels := make([]float64, len(count))
	for t, xs := range rest {
		levels[t] = lowMedian(xs)
	}
	f.takeOff(times, levels)
}

func (f *Fit) takeOff(times []int32, levels []float64) {
	typical := lowMedian(slices.Clone(levels))
	for i := range f.visits {
		f.visits[i].y -= levels[times[i]] - typical
	}
}

func (f *Fit) count(times []int32) []int {
	var count []int
	for _, t := range times {
		for int(t) >= len(count) {
			count = append(count, 0)
		}
		count[t]++
	}
	return count
}
