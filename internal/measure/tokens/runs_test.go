package tokens

import (
	"math"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/writes"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// TestSpent divides the time from 1000 to 1100 of a thread that writes at 1095.
func TestSpent(t *testing.T) {
	for name, tt := range map[string]struct {
		runs  []run
		since int64
		want  split
	}{
		"slept and waited": {[]run{{900, 950, 5}, {1040, 1200, 35}}, 0,
			split{asleep: 10, waited: 30, woken: 10, known: true}},
		"goes on": {[]run{{900, 950, 5}}, 1040,
			split{asleep: 10, waited: 30, woken: 10, known: true}},
		"ran all the time": {[]run{{900, 1200, 5}}, 0, split{asleep: 0, waited: 0, known: true}},
		"was stopped":      {[]run{{900, 1020, 5}, {1080, 1200, 65}}, 0, split{asleep: 0, waited: 60, known: true}},
		"several runs": {[]run{{900, 1010, 5}, {1020, 1030, 15}, {1060, 1098, 25}}, 0,
			split{asleep: 22, waited: 20, known: true}},
		"slept twice": {[]run{{900, 950, 5}, {1030, 1040, 5}, {1060, 1098, 5}}, 0,
			split{asleep: 52, woken: 30, known: true}},
		"waited before": {[]run{{900, 950, 5}, {1010, 1200, 65}}, 0, split{asleep: 0, waited: 10, known: true}},
		"no run before": {[]run{{1040, 1200, 35}}, 0, split{}},
		"no run at all": {nil, 0, split{}},
	} {
		l := NewLog(nil)
		for _, r := range tt.runs {
			l.AddRun(writes.Event{Thread: 7, Since: r.in, At: r.out, Waited: r.waited})
		}
		w := []writing{{0, 10, writes.Event{Thread: 7, At: 1095, Since: tt.since, Waited: 35}}}
		if got := l.spent(w, 10, 1000, 1100); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
		if got := l.spent(w, 11, 1000, 1100); got.known {
			t.Errorf("%s: nobody wrote that byte: %+v", name, got)
		}
	}
}

// TestFollowDivides has a relay that sleeps for 3 of the 10 µs of each direction, and waits for 2. How
// it spent those of the first exchange is not always known.
func TestFollowDivides(t *testing.T) {
	const thread = 9
	divided := map[sample.Part]float64{sample.PartRelayedAsleep: 3, sample.PartRelayedWait: 2,
		sample.PartRelayed: 5, sample.PartServer: 198}
	for name, tt := range map[string]struct {
		n     int
		known bool // the first exchange
		want  map[sample.Part]float64
	}{
		"all known":      {40, true, divided},
		"one of few":     {6, false, divided},
		"one of too few": {3, false, map[sample.Part]float64{sample.PartRelayed: 10}},
		"few, all known": {3, true, divided},
	} {
		o := newOver()
		all := play(o, tt.n, 200*us)
		if tt.known {
			o.log.AddRun(writes.Event{Thread: thread, Since: 9000 * us, At: 9001 * us})
		}
		for i := range tt.n {
			at := int64(10_000*us) + int64(i)*10_000*us
			o.log.AddWrite(1, writes.Event{At: at + 14*us, Seq: uint32(40002 + i*request1),
				Len: uint32(request1), Local: 41000, Remote: 5432, Kind: writes.Write, Thread: thread})
			o.log.AddRun(writes.Event{Thread: thread, Since: at + 10*us, At: at + 100*us,
				Waited: int64(i)*2*us + 2*us})
		}
		got := o.log.Follow(0, chainOver, all)
		parts := map[sample.Part]float64{}
		for _, g := range got.Segments {
			if !g.Reply {
				parts[g.Part] += g.MidMean * 1e6
			}
		}
		for part, want := range tt.want {
			if math.Abs(parts[part]-want) > 1e-6 {
				t.Errorf("%s: %s: %v µs, want %v of %v", name, part, parts[part], want, parts)
			}
		}
		// One at each instant but those of runs, and the relay's two runs, two writes and a segment.
		if got.Followed != tt.n || got.Events != 12+5 || math.Abs(got.MidMean-300e-6) > 1e-12 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
