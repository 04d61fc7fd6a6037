package truth

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

const (
	// how far outside toll's range a run of another tool may lie, as a share: the machine's state
	// changes between runs
	beyond = 0.1
	// share of the runs that must lie in the range
	mostRuns = 0.8
)

// unpinned compares other tools, run as engineers run them, with toll's default range: from one
// placement on CPUs to the other.
func (t *trial) unpinned(ctx context.Context) (_ []table, err error) {
	base, err := t.published(ctx, bothPins, checked, bulk, rr)
	if err != nil {
		return nil, err
	}
	if len(base.Pins) < 2 {
		return nil, errors.New("toll has one placement on CPUs here")
	}
	kept := t.keep()
	defer func() { err = errors.Join(err, kept.close()) }()
	out := table{title: "Other tools that pin nothing",
		text: fmt.Sprintf(
			"Each mode by the other tool, which the scheduler places, a second each, and by toll "+
				"in slices of both placements for %s, %d blocks one after another; on an "+
				"otherwise idle machine, and beside a process that keeps a CPU half busy. Of "+
				"bulk, a row holds if the tool's ratio to host and the range of toll's have "+
				"values in common. Runs of rr differ by what the scheduler does: a row holds if "+
				"%.0f %% of them lie in the range from far to near, or within %.0f %% of "+
				"it.", t.scale.peers.each, t.scale.peers.n,
			percent*mostRuns, percent*beyond),
		head: []string{"beside", "load", "tool", "figure", "by it", "toll, far", "near",
			"in the range"}}
	for _, busy := range []bool{false, true} {
		if err := t.unpinnedBeside(ctx, &out, base, kept, busy); err != nil {
			return nil, err
		}
	}
	return []table{out}, nil
}

func (t *trial) unpinnedBeside(ctx context.Context, out *table, base sample.Plan, kept *keeping,
	busy bool) error {
	beside := "nothing"
	if busy {
		beside = halfBusy
		stop, err := startHalfBusy(base.Pins[0].CPUs.Client...)
		if err != nil {
			return err
		}
		defer stop()
	}
	for _, r := range rivals {
		theirs, ours, err := t.blocks(ctx, block{
			check: "unpinned, beside " + beside, modes: checked, rival: r,
			plan: under(base, r.load)}, kept)
		if ctx.Err() != nil {
			return err
		}
		if err != nil {
			t.say("unpinned: %s: %v", r.name, err)
			out.add(no, beside, r.load, r.name, path.OneLine(err), "", "", "", "")
			continue
		}
		rows := t.withinRange
		// at most one of whose programs a half-busy CPU delays: ratios, by all runs
		if r.load == bulk {
			rows = t.ratiosWithin
		}
		if err := rows(out, beside, r, theirs, ours); err != nil {
			t.say("unpinned: %s: %v", r.name, err)
			out.add(no, beside, r.load, r.name, path.OneLine(err), "", "", "", "")
		}
	}
	return nil
}

func (t *trial) withinRange(out *table, beside string, r rival, theirs rates,
	ours map[string]*found) error {
	var pins [2]map[mode.Name]float64
	for i, pin := range []string{sample.PinFar, sample.PinNear} {
		host, err := ofLogs(ours[pin].host)
		if err != nil {
			return err
		}
		pins[i] = map[mode.Name]float64{mode.Host: host.at}
		for _, m := range checked[1:] {
			ratio, err := ours[pin].ratio(m)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", m, pin, err)
			}
			pins[i][m] = host.at + ratio.at
		}
	}
	for _, m := range checked {
		out.within(r, beside, string(m), theirs[m], pins[0][m], pins[1][m])
	}
	return nil
}

// All runs of the tool count: its ratio to host may be in the range of toll's ratios.
func (t *trial) ratiosWithin(out *table, beside string, r rival, theirs rates,
	ours map[string]*found) error {
	for _, m := range checked[1:] {
		by, few := theirs.ratio(m)
		far, noFar := ours[sample.PinFar].ratio(m)
		near, noNear := ours[sample.PinNear].ratio(m)
		if err := errors.Join(few, noFar, noNear); err != nil {
			return fmt.Errorf("%s: %w", m, err)
		}
		low, high := min(far.at-far.half, near.at-near.half),
			max(far.at+far.half, near.at+near.half)
		v := holdsIf(by.at+by.half >= low && by.at-by.half <= high)
		out.add(v, beside, r.load, r.name, string(m)+" / host", by.String(), far.String(),
			near.String(), "")
	}
	return nil
}

// The row holds if most runs are in the range.
func (t *table) within(r rival, beside, m string, runs []float64, far, near float64) {
	low, high := min(far, near)-math.Log1p(beyond), max(far, near)+math.Log1p(beyond)
	inside := 0
	for _, x := range runs {
		if low <= x && x <= high {
			inside++
		}
	}
	rate := func(log float64) string { return fmt.Sprintf("%.3g", math.Exp(log)/r.scale) }
	span := rate(slices.Min(runs)) + " to " + rate(slices.Max(runs))
	v := holdsIf(float64(inside) >= mostRuns*float64(len(runs)))
	t.add(v, beside, r.load, r.name, m+", "+r.unit, span, rate(far), rate(near),
		fmt.Sprintf("%d of %d", inside, len(runs)))
}
