package tokens

import (
	"math"
	"slices"
	"sort"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/writes"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// run is when a thread was on a CPU, and for how long it had waited for one until it was, ns.
type run struct{ in, out, waited int64 }

// AddRun adds a run of a thread. Its times must be CLOCK_REALTIME's.
func (l *Log) AddRun(e writes.Event) {
	l.runs[e.Thread] = append(l.runs[e.Thread], run{e.Since, e.At, e.Waited})
}

// split is how a thread spent the time until it wrote: asleep, waiting for a CPU, and else on one.
type split struct {
	asleep, waited int64
	woken          int64 // asleep from the beginning of that time on
	known          bool
}

// trimRuns forgets all but the last runs of each thread.
func (l *Log) trimRuns() {
	const kept = 1000
	for t, list := range l.runs {
		l.runs[t] = slices.Clone(list[max(0, len(list)-kept):])
	}
}

// spent returns how the thread that wrote the byte before an offset spent a time.
func (l *Log) spent(list []writing, offset, from, to int64) split {
	w, ok := covering(list, offset)
	if !ok {
		return split{}
	}
	return l.spentBy(w.Event, from, to)
}

// spentBy returns how a thread spent a time before it wrote.
func (l *Log) spentBy(w writes.Event, from, to int64) (s split) {
	if w.Thread == 0 || to < from {
		return s
	}
	runs := l.runs[w.Thread]
	i := sort.Search(len(runs), func(i int) bool { return runs[i].out >= w.At })
	var last run
	switch {
	case i < len(runs) && runs[i].in <= w.At:
		last = runs[i]
	case w.Since != 0: // it goes on
		last = run{w.Since, math.MaxInt64, w.Waited}
	default:
		return s
	}
	ran := int64(0)
	for {
		ran += max(0, min(last.out, to)-max(last.in, from))
		if last.in <= from {
			s.woken = 0
			break
		}
		if i--; i < 0 {
			return s // for how long it had waited before is not known
		}
		before := runs[i]
		off := last.in - max(before.out, from)
		waited := max(0, min(last.waited-before.waited, off))
		s.waited, s.woken = s.waited+waited, off-waited
		if last = before; last.out <= from {
			break
		}
	}
	s.asleep, s.known = max(0, to-from-ran-s.waited), true
	return s
}

// The stretches of a process that its runs divide, and into what.
var dividedBy = map[sample.Part][2]sample.Part{
	sample.PartRelayed: {sample.PartRelayedAsleep, sample.PartRelayedWait},
	sample.PartServer:  {sample.PartServerAsleep, sample.PartServerWait},
}

// split divides the stretches in processes, if it is known of nearly all exchanges how these spent
// their time. The others are divided as those on average.
func (f *followed) split() {
	var out []instant
	rows := make([]Row, len(f.rows))
	process := 0
	for i, x := range f.stretches {
		parts, divided := dividedBy[x.Part]
		var usual usage
		if divided {
			usual, divided = f.usage(i, process)
			process++
		}
		if divided {
			asleep, waits := x, x
			asleep.Part, asleep.name, asleep.records = parts[0], x.Hop+" awake", 0
			waits.Part, waits.name, waits.records = parts[1], x.Hop+" on a CPU", 0
			out = append(out, asleep, waits)
		}
		for k, row := range f.rows {
			own := row[i]
			if divided {
				s := f.splits[k][process-1]
				if !s.known {
					s = usual.of(own)
				}
				s = s.within(own)
				rows[k] = append(rows[k], s.asleep, s.waited)
				own -= s.asleep + s.waited
			}
			rows[k] = append(rows[k], own)
		}
		out = append(out, x)
	}
	f.stretches, f.rows = out, slices.Clip(rows)
}

// sleepers returns the processes whose threads slept for a moment in most exchanges when these came
// to them. A thread that writes after a longer sleep waited for the work of another one. It must be
// called before split.
func (f *followed) sleepers() (out []sample.Sleeper) {
	const moment = int64(300 * time.Microsecond)
	process := 0
	for i, x := range f.stretches {
		if _, ok := dividedBy[x.Part]; !ok {
			continue
		}
		var woken []int64
		for k, row := range f.rows {
			if s := f.splits[k][process]; s.known && min(s.woken, row[i]) <= moment {
				woken = append(woken, min(s.woken, row[i]))
			}
		}
		process++
		if slices.Sort(woken); len(woken) > 0 && 2*len(woken) >= len(f.rows) {
			if took := woken[len(woken)/2]; took > 0 {
				out = append(out, sample.Sleeper{Process: x.Hop, Took: seconds(took)})
			}
		}
	}
	return out
}

// usage is the shares of its time that a process was asleep and waited for a CPU.
type usage struct{ asleep, waited float64 }

// usage returns how the process of a stretch spent its time in the exchanges of which that is known.
// ok is false if these are too few.
func (f *followed) usage(stretch, process int) (u usage, ok bool) {
	const (
		fewUnknown = 20 // of which one may be unknown
		least      = 3
	)
	known, all := 0, int64(0)
	for k, row := range f.rows {
		s := f.splits[k][process]
		if !s.known {
			continue
		}
		s = s.within(row[stretch])
		u.asleep, u.waited = u.asleep+float64(s.asleep), u.waited+float64(s.waited)
		known, all = known+1, all+row[stretch]
	}
	if all > 0 {
		u.asleep, u.waited = u.asleep/float64(all), u.waited/float64(all)
	}
	// A visit's first exchange often is: for how long its thread had waited before is not known.
	unknown := len(f.rows) - known
	return u, known > 0 && unknown == 0 ||
		known >= least && unknown <= max(1, len(f.rows)/fewUnknown)
}

func (u usage) of(stretch int64) split {
	return split{asleep: int64(u.asleep * float64(stretch)), waited: int64(u.waited * float64(stretch))}
}

// within returns the split without what exceeds a stretch.
func (s split) within(stretch int64) split {
	s.waited = min(s.waited, stretch)
	s.asleep = min(s.asleep, stretch-s.waited)
	return s
}
