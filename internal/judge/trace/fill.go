package trace

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// fill sets the rows, their sums, and the part of Untraced that they do not explain.
func (s *study) fill(t *Trace, i, b int) {
	untraced := s.Excess(i, b, workload.LatencyP50)
	rest := untraced
	sums := map[kind]stats.Estimate{}
	rows := s.rowsOf(i, b)
	n := s.natOf(i, b, rows)
	for _, row := range rows {
		p := rowPart(row)
		added := s.added(i, b, p)
		t.Rows = append(t.Rows, s.row(row, i, b, added, n.parts[row]))
		e := sums[p.kind]
		e.Centre += added.Centre
		sums[p.kind] = e
	}
	if n.Name != "" {
		for k := range t.Rows {
			t.Rows[k].Name = withoutNAT(t.Rows[k].Name)
		}
		at := slices.IndexFunc(rows, func(row string) bool { return rank(row) > rank(rowNAT) })
		t.Rows = slices.Insert(t.Rows, at, n.Row) // the wake-ups have the last row
		for _, all := range [][]Segment{t.Segments, t.Its} {
			for k := range all {
				all[k].Row = withoutNAT(all[k].Row)
			}
		}
	}
	prices := map[kind]*analysis.Price{inPath: &t.Path, inWakes: &t.WakeUps, inRelay: &t.Relay,
		inEnds: &t.Ends}
	for _, k := range []kind{inPath, inWakes, inRelay, inEnds} {
		if _, ok := sums[k]; !ok && (k == inRelay || k == inEnds || s.File.Header.Plan.Foreign()) {
			continue
		}
		p := allOf(k)
		e := s.added(i, b, p).Estimate
		e.Centre = sums[k].Centre // the rows' sum, from which the median of pairs differs slightly
		*prices[k] = price(e, s.bias(i, p), s.none(b, k))
		rest = rest.Plus(e.Times(-1))
	}
	if untraced.Pairs > 0 {
		t.Unattributed = price(rest, 0, s.none(b, inWakes))
	}
}

// none returns the time, in s, that is reported as none in rows of a kind.
func (s *study) none(b int, k kind) float64 {
	if k == inPath {
		return nothing
	}
	p := s.File.Header.Plan
	m, _ := s.Series[b].Metric(workload.LatencyP50)
	return max(nothing, cmp.Or(p.Same, p.Precision)*m.Median)
}

// bias returns the absolute value, in s, of what a part adds to the control of cell i's group. It
// returns 0 for the control itself and for a group without a control.
func (s *study) bias(i int, p part) float64 {
	for _, o := range s.pairs {
		c := s.Series[o[0]].Cell
		if c.Control && o[0] != i && analysis.SameGroup(c, s.Series[i].Cell) {
			return math.Abs(s.added(o[0], o[1], p).Centre)
		}
	}
	return 0
}

// rowsOf returns the names of the rows in which trips of one of the cells spent time.
func (s *study) rowsOf(i, b int) []string {
	names := map[string]bool{}
	for _, x := range append(s.cells[i].judged(), s.cells[b].judged()...) {
		for name, r := range x.rows {
			if slices.ContainsFunc(r.slots, func(v analysis.SliceValue) bool { return v.X != 0 }) {
				names[name] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(names), func(a, b string) int {
		return cmp.Or(rank(a)-rank(b), cmp.Compare(a, b))
	})
}

func rowPart(row string) part {
	k := kindOf(row)
	return part{"row " + row, func(x seen) *sum { return x.rows[row] }, k, spreads[k]}
}

func allOf(k kind) part {
	sd := spreads[k]
	if k == inPath {
		sd = sdPath
	}
	return part{fmt.Sprint("all ", k), func(x seen) *sum {
		return x.total(func(row string) bool { return kindOf(row) == k })
	}, k, sd}
}

// row returns a row without its NAT, which has a row of its own; nil: it has none.
func (s *study) row(name string, i, b int, d difference, n *nat) Row {
	p := rowPart(name)
	cost := func(r *sum) float64 { return s.costs.total(r.events, p.kind) }
	mine, its := s.midMean(i, sample.Traced, p, cost), s.midMean(b, sample.Traced, p, cost)
	out := Row{Name: shown(name, s.devices(i, b, name), sample.UDP(s.Series[i].Cell.Load))}
	if n != nil {
		d.Estimate = d.Plus(n.Times(-1))
		d.rounds = slices.Clone(d.rounds)
		for k := range d.rounds {
			d.rounds[k] -= n.Centre
		}
		mine, its = less(mine, n.mine), less(its, n.its)
	}
	out.Added, out.Epochs = price(d.Estimate, s.bias(i, p), s.none(b, p.kind)), d.rounds
	out.takes(mine, its)
	for _, hook := range s.hooksOf(i, b, name) {
		out.Hooks = append(out.Hooks, s.hook(name, hook, i, b))
	}
	out.Parts = s.partsOf(name, i, b)
	out.settle()
	return out
}

// settle makes a part of a row what the others leave of it, for each is a median of its own: the
// last one of a process, which is asleep then, and the largest one of the network.
func (r *Row) settle() {
	if len(r.Parts) == 0 || r.Mine == nil {
		return
	}
	k := len(r.Parts) - 1
	if r.Name == rowNetwork {
		for i := range r.Parts {
			if r.Parts[i].mine() > r.Parts[k].mine() {
				k = i
			}
		}
	}
	rest, added := *r.Mine, r.Added.Median
	for i, p := range r.Parts {
		if i != k {
			rest, added = rest-p.mine(), added-p.Added.Median
		}
	}
	rest = max(0, rest)
	last := &r.Parts[k]
	last.Mine = &rest
	if last.Added.N > 0 {
		by := added - last.Added.Median
		last.Added.Median += by
		last.Added.Low, last.Added.High = last.Added.Low+by, last.Added.High+by
	}
}

func (r *Row) mine() float64 {
	if r.Mine == nil {
		return 0
	}
	return *r.Mine
}

// partsOf returns how a process spent a row of cell i, or where on the network it was, compared
// with cell b unless that is i; nil: that is not known.
func (s *study) partsOf(row string, i, b int) (out []Row) {
	k := kindOf(row)
	cost := func(r *sum) float64 { return s.costs.total(r.events, k) }
	for _, name := range s.partNames(row, i, b) {
		p := part{partOfRow(row) + name, func(x seen) *sum {
			return x.parts[[2]string{row, name}]
		}, k, spreads[k]}
		mine := s.midMean(i, sample.Traced, p, cost)
		its := s.midMean(b, sample.Traced, p, cost)
		switch {
		case mine != nil || its != nil:
		case row == rowNetwork: // only epochs with copies have it
			continue
		default:
			return nil
		}
		one := Row{Name: name, Mine: mine}
		if row == rowNetwork {
			one.Name = s.onNetwork(name, i, b)
		}
		if b != i {
			d := s.added(i, b, p)
			one.Added = price(d.Estimate, s.bias(i, p), s.none(b, k))
			one.takes(mine, its)
		}
		out = append(out, one)
	}
	return out
}

// partOfRow begins the names of the parts of a row.
func partOfRow(row string) string { return "part " + row + " " }

// partNames returns the names of the parts of a row that divide it in all epochs of two cells.
func (s *study) partNames(row string, i, b int) []string {
	names := []string{own, "waiting for a CPU", "asleep"}
	if row == rowNetwork {
		names = nil
	}
	for _, x := range append(s.cells[i].judged(), s.cells[b].judged()...) {
		divided := x.rows[row] == nil
		for key := range x.parts {
			if key[0] != row {
				continue
			}
			divided = divided || row == rowNetwork || key[1] == names[1]
			if !slices.Contains(names, key[1]) {
				names = append(names, key[1])
			}
		}
		if !divided {
			return nil
		}
	}
	if row == rowNetwork {
		slices.SortFunc(names, byLeg)
	}
	return names
}

func hookPart(row, name string) part {
	return part{"hook " + row + " " + name, func(x seen) *sum {
		return x.hooks[[2]string{row, name}]
	}, inHook, sdRow}
}

func (s *study) hook(row, name string, i, b int) Row {
	d, mine, its := s.inHook(hookPart(row, name), i, b)
	out := Row{Name: name, Added: price(d.Estimate, 0, nothing), Epochs: d.rounds}
	out.takes(mine, its)
	return out
}

// inHook returns what a part in hooks adds, and the two cells' mid-means.
func (s *study) inHook(p part, i, b int) (d difference, mine, its *float64) {
	epochs := s.epochs(i, b, p, sample.TracedHooks)
	further := s.empty * (count(s.events(i, p, sample.TracedHooks)) -
		count(s.events(b, p, sample.TracedHooks)))
	e := s.moderate(i, b, p, shifted(epochs, -further/unit(p)), nil)
	cost := func(r *sum) float64 { return s.empty * count(r.events) }
	return difference{e, centres(p, epochs, further)},
		s.midMean(i, sample.TracedHooks, p, cost), s.midMean(b, sample.TracedHooks, p, cost)
}

// takes sets Mine and Its so that they differ by what is added. The two mid-means would not: they
// come from different epochs and have the noise of slow trips.
func (r *Row) takes(mine, its *float64) {
	r.Mine, r.Its = mine, its
	if mine == nil || r.Added.N == 0 {
		return
	}
	x := r.Added.Median
	if its != nil {
		x += *its
	}
	x = max(0, x)
	r.Mine = &x
}

func count(events map[steps]float64) (sum float64) {
	for _, at := range slices.SortedFunc(maps.Keys(events), byName) {
		sum += events[at]
	}
	return sum
}

// midMean returns the mid-mean of cell i's part without what tracing costs, in s, or nil if the
// cell lacks the part.
func (s *study) midMean(i int, state sample.Tracing, p part, cost func(*sum) float64) *float64 {
	var all []float64
	for _, x := range s.cells[i].by[state] {
		if r := p.of(x); r != nil {
			all = append(all, max(0, r.midMean-cost(r)))
		}
	}
	if len(all) == 0 {
		return nil
	}
	x := stats.Median(all)
	return &x
}

func (s *study) hooksOf(i, b int, row string) []string {
	var out []string
	for _, x := range slices.Concat(s.cells[i].by[sample.TracedHooks],
		s.cells[b].by[sample.TracedHooks]) {
		for key := range x.hooks {
			if key[0] == row && key[1] != rowNAT && !slices.Contains(out, key[1]) {
				out = append(out, key[1])
			}
		}
	}
	slices.SortFunc(out, func(a, b string) int {
		return cmp.Or(slices.Index(sample.Hooks, a)-slices.Index(sample.Hooks, b), cmp.Compare(a, b))
	})
	return out
}

// emptyHook returns the time, in s, between the events around an empty hook. No epoch has copies of
// these programs, so it is what an event costs elsewhere, but at most the time of the fastest hook.
func emptyHook(cells []tracing, event float64) float64 {
	least := event
	for _, t := range cells {
		for _, x := range t.by[sample.TracedHooks] {
			for _, g := range x.Segments {
				if _, is := hookOf(g.SegmentKey); is && g.Events > 0 {
					least = min(least, g.MidMean/g.Events)
				}
			}
		}
	}
	return max(0, least)
}

func (s *study) devices(i, b int, row string) (out []string) {
	if !strings.Contains(row, rowDevices) {
		return nil
	}
	for _, x := range append(s.cells[i].judged(), s.cells[b].judged()...) {
		if r := x.rows[row]; r != nil {
			for _, d := range r.devices {
				if !slices.Contains(out, d) {
					out = append(out, d)
				}
			}
		}
	}
	return out
}

// cost returns what one copy of the programs adds to cell i's trips: what epochs with one copy
// show, and a third of what epochs with three show.
func (s *study) cost(i int) analysis.Price {
	one := s.copies(i, sample.Traced)
	three := s.copies(i, sample.TracedThrice).Times(1.0 / sample.TraceCopies)
	return price(together(one, three), 0, nothing)
}

// copies returns what tracing in a state adds, in s: the medians of its slices minus the medians in
// the untraced epochs before and after.
func (s *study) copies(i int, state sample.Tracing) stats.Estimate {
	p := part{sd: sdRelay}
	var epochs []stats.Epoch
	for _, x := range s.cells[i].by[state] {
		plain := around(s.Series[i].Values[workload.LatencyP50], x.round)
		if len(plain) == 0 {
			continue
		}
		var all []float64
		for _, total := range x.Totals {
			all = append(all, (total-stats.Median(plain))/unit(p))
		}
		epochs = append(epochs, stats.NewEpoch(all, float64(len(all))))
	}
	return stats.Moderate(epochs, stats.Assumed).Times(unit(p))
}

// together returns the mean of two estimates of the same quantity, weighted by their precision.
func together(a, b stats.Estimate) stats.Estimate {
	switch {
	case a.Pairs == 0:
		return b
	case b.Pairs == 0:
		return a
	}
	of := b.Error * b.Error / (a.Error*a.Error + b.Error*b.Error)
	if math.IsNaN(of) {
		of = 0.5 // both are exact
	}
	return a.Times(of).Plus(b.Times(1 - of))
}

// around returns the values of the nearest rounds before and after a round.
func around(values map[int]float64, round int) []float64 {
	rounds := slices.Sorted(maps.Keys(values))
	at, _ := slices.BinarySearch(rounds, round)
	var out []float64
	for _, r := range rounds[max(0, at-1):min(at+1, len(rounds))] {
		out = append(out, values[r])
	}
	return out
}

// segments returns cell i's segments in the order of a trip. The cost of tracing is subtracted from
// their times.
func (s *study) segments(i int) []Segment {
	type found struct {
		key sample.SegmentKey
		all []sample.Segment
	}
	epochs := s.cells[i].by[sample.Traced]
	var list []found
	for _, x := range epochs {
		after := 0 // position for segments that are not in the list
		for _, g := range x.Segments {
			k := slices.IndexFunc(list, func(f found) bool { return f.key == g.SegmentKey })
			if k < 0 {
				k = after
				list = slices.Insert(list, k, found{key: g.SegmentKey})
			}
			list[k].all = append(list[k].all, g)
			after = k + 1
		}
	}
	out := make([]Segment, len(list))
	now, slowest := 0.0, s.cells[i].slowest()
	for k, f := range list {
		mid := func(of func(sample.Segment) float64) float64 {
			var xs []float64
			for _, g := range f.all {
				xs = append(xs, of(g))
			}
			return stats.Median(xs)
		}
		cost := mid(s.costs.segment)
		net := func(of func(sample.Segment) float64) float64 { return max(0, mid(of)-cost) }
		row := rowOf(f.key)
		out[k] = Segment{SegmentKey: f.key, Row: shown(row, s.devices(i, i, row),
			sample.UDP(s.Series[i].Cell.Load)), At: now, Cost: cost,
			MidMean: net(func(g sample.Segment) float64 { return g.MidMean }),
			P99:     net(func(g sample.Segment) float64 { return g.P99 }),
			Share:   mid(func(g sample.Segment) float64 { return g.Share }),
			Slowest: slowest.of(f.key), Tail: s.cells[i].tail(f.key)}
		now += out[k].MidMean
	}
	return out
}
