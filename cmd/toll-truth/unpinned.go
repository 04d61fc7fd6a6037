package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/bridgetoll/bridgetoll/internal/build/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// unpinnedWidth is the widest half of an interval of an unpinned tool's figure that says anything: the
// placements themselves differ by more.
const unpinnedWidth = 0.5

// unpinned compares what other tools find that pin nothing, as engineers run them, with the range
// that toll reports by default: from one placement on CPUs to the other.
func (t *trial) unpinned(ctx context.Context) (_ []table, err error) {
	base, err := t.published(ctx, sample.PinFar+","+sample.PinNear)
	if err != nil {
		return nil, err
	}
	if len(base.Pins) < 2 {
		return nil, errors.New("toll has one placement on CPUs here")
	}
	kept := t.keep()
	defer func() { err = errors.Join(err, kept.close()) }()
	out := table{title: "Other tools that pin nothing",
		text: fmt.Sprintf("Each mode by the other tool, which the scheduler places, a second each, and by toll in slices of both placements for %s, %d blocks one after "+
			"another; on an otherwise idle machine, and beside a process that keeps a CPU half busy. A row holds if the tool's interval, of which half is at most "+
			"%.0f %%, and the range from far to near with toll's intervals have values in common.", t.scale.peers.each, t.scale.peers.n, percent*unpinnedWidth),
		head: []string{"beside", "load", "tool", "figure", "by it", "by toll, far", "near"}}
	for _, busy := range []bool{false, true} {
		if err := t.unpinnedBeside(ctx, &out, base, kept, busy); err != nil {
			return nil, err
		}
	}
	return []table{out}, nil
}

// unpinnedBeside adds the rows on an idle machine, or beside a half busy CPU.
func (t *trial) unpinnedBeside(ctx context.Context, out *table, base sample.Plan, kept *keeping, busy bool) error {
	beside := "nothing"
	if busy {
		const half = 0.5
		beside = "a half-busy CPU"
		stop, err := startWork(work{processes: 1, share: half, cpus: base.Pins[0].CPUs.Client})
		if err != nil {
			return err
		}
		defer stop()
	}
	for _, r := range rivals {
		theirs, ours, err := t.blocks(ctx, block{check: "unpinned, beside " + beside, rival: r, plan: under(base, r.load)}, kept)
		if ctx.Err() != nil {
			return err
		}
		if err != nil {
			t.say("unpinned: %s: %v", r.name, err)
			out.add(no, beside, r.load, r.name, path.OneLine(err), "", "", "")
			continue
		}
		far, near := ours[sample.PinFar], ours[sample.PinNear]
		var host [3]estimate // by the tool, far, near
		var few error
		for i, logs := range [][]float64{theirs[mode.Host], far.host, near.host} {
			if host[i], few = ofLogs(logs); few != nil {
				break
			}
			host[i].log -= math.Log(r.scale)
		}
		if few != nil {
			out.add(no, beside, r.load, r.name, path.OneLine(few), "", "", "")
			continue
		}
		out.within(r, beside, "host, "+r.unit, host[0], host[1], host[2])
		for _, m := range checked[1:] {
			ratio, few := theirs.ratio(m)
			inFar, noFar := far.ratio(m)
			inNear, noNear := near.ratio(m)
			if err := errors.Join(few, noFar, noNear); err != nil {
				out.add(no, beside, r.load, r.name, string(m)+" / host", path.OneLine(err), "", "")
				continue
			}
			out.within(r, beside, string(m)+" / host", ratio, inFar, inNear)
		}
	}
	return nil
}

// within adds a row that holds if a tool's figure is in the range from far to near.
func (t *table) within(r rival, beside, figure string, theirs, far, near estimate) {
	low, high := min(far.log-far.half, near.log-near.half), max(far.log+far.half, near.log+near.half)
	v := holdsIf(theirs.log+theirs.half >= low && theirs.log-theirs.half <= high)
	if v == yes && math.Expm1(theirs.half) > unpinnedWidth {
		v = tooWide
	}
	t.add(v, beside, r.load, r.name, figure, theirs.String(), far.String(), near.String())
}
