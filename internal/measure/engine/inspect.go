package engine

import (
	"context"
	"errors"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

const (
	// inspectEvery is the least time between two readings of the paths' settings, and inspectShare
	// their largest share of the run's time.
	inspectEvery = 5 * time.Second
	inspectShare = 0.01
	// settle is how long a difference must last, because other programs rewrite rules in several
	// steps.
	settle = 200 * time.Millisecond
)

type inspection struct {
	built map[key][]path.Setting
	lost  map[key]bool
	at    int64 // last reading, by the run's clock
	took  time.Duration
	right float64 // start of the last reading, in s since the run's start
	round int     // whose visits followed the last reading
}

// survey reads the settings with which inspect compares later ones.
func (r *run) survey() {
	in := &r.inspection
	in.built, in.lost = map[key][]path.Setting{}, map[key]bool{}
	r.timed(0, func() {
		for k, p := range r.paths {
			if p.Inspect == nil {
				continue
			}
			if all, err := p.Inspect(); err == nil { // otherwise the next reading reports it
				in.built[k] = all
			}
		}
	})
}

func (r *run) timed(round int, read func()) {
	in := &r.inspection
	at := r.Clock.Now()
	in.right, in.round = r.elapsed(), round
	read()
	in.at = r.Clock.Now()
	in.took = time.Duration(in.at - at)
}

func (r *run) inspectIfDue(ctx context.Context, round int) error {
	in := &r.inspection
	since := time.Duration(r.Clock.Now() - in.at)
	if since < inspectEvery || in.took.Seconds() > inspectShare*since.Seconds() {
		return nil
	}
	return r.inspect(ctx, round)
}

// inspect records differences from the original settings, and excludes the cells of changed paths.
// The error is a *path.CutError if settings can no longer be read.
func (r *run) inspect(ctx context.Context, round int) error {
	in := &r.inspection
	var (
		changed []sample.Change
		cut     error
	)
	right, first := in.right, in.round
	r.timed(round, func() {
		for _, k := range paths(r.Plan) {
			p := r.paths[k]
			if p == nil || p.Inspect == nil || in.lost[k] {
				continue
			}
			var found []sample.Difference
			if found, cut = r.differences(ctx, k); cut != nil {
				return
			}
			for _, d := range found {
				in.lost[k] = true
				changed = append(changed, sample.Change{
					Difference: d, Cells: r.cellsOn(k), Round: first, Right: right,
					Seen: r.elapsed()})
			}
			if in.lost[k] {
				r.giveUp(k)
			}
		}
	})
	for _, c := range changed {
		if err := r.Out.Change(c); err != nil {
			return err
		}
	}
	return cut
}

func (r *run) differences(ctx context.Context, k key) ([]sample.Difference, error) {
	found, cut := r.compare(k)
	if len(found) == 0 || cut != nil {
		return nil, cut
	}
	_ = r.Clock.Sleep(ctx, r.Clock.Now()+int64(settle))
	return r.compare(k)
}

// compare treats a path whose settings cannot be read as changed.
func (r *run) compare(k key) ([]sample.Difference, error) {
	built, ok := r.inspection.built[k]
	now, err := r.paths[k].Inspect()
	left, cut := (*path.LeftError)(nil), (*path.CutError)(nil)
	switch {
	case errors.As(err, &left):
		return []sample.Difference{{Where: "node " + left.Node, What: sample.ChangeLeft,
			Was: "there", Is: path.OneLine(left.Err)}}, nil
	case errors.As(err, &cut):
		return nil, cut
	case err != nil && lostMachine(r.paths[k].Machines) != nil:
		m := lostMachine(r.paths[k].Machines)
		return []sample.Difference{{Where: m.Name(), What: sample.ChangeLeft, Was: "there",
			Is: path.OneLine(m.Err())}}, nil
	case err != nil:
		return []sample.Difference{{Where: k.on, What: "reading its settings", Was: "possible",
			Is: "not: " + path.OneLine(err)}}, nil
	case !ok:
		return []sample.Difference{{Where: k.on, What: "reading its settings", Was: "impossible",
			Is: "possible"}}, nil
	}
	return path.Differences(built, now), nil
}

func lostMachine(all []path.Machine) path.Machine {
	for _, m := range all {
		if m.Err() != nil {
			return m
		}
	}
	return nil
}

func (r *run) cellsOn(k key) []int {
	var out []int
	for i, c := range r.Plan.Cells {
		if keyOf(r.Plan, c) == k {
			out = append(out, i)
		}
	}
	return out
}

func (r *run) giveUp(k key) {
	for _, i := range r.cellsOn(k) {
		r.fails[i] = giveUpAfter
	}
}
