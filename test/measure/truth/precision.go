package truth

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
)

// The largest half width of an interval, as a share of the ratio, in runs of a minute and of ten
// seconds.
const (
	longWidth  = 0.025
	shortWidth = 0.06
)

func (t *trial) precision(ctx context.Context) ([]table, error) {
	out := table{title: "Precision",
		text: fmt.Sprintf(
			"`toll compare` with all its defaults (all usual modes, bulk and rr), alone and "+
				"beside %d niced processes that work in bursts. The widest half "+
				"of an interval of all rows, as a share of the ratio; a row holds if it is at "+
				"most %.1f %% after a minute and %.0f %% after ten seconds.",
			burners, percent*longWidth, percent*shortWidth),
		head: []string{"time", "beside", "rows", "without a result", "widest of bulk",
			"widest of rr"}}
	for _, l := range []struct {
		runs
		width float64
	}{{t.scale.long, longWidth}, {t.scale.short, shortWidth}} {
		for i := range l.n {
			if err := t.precise(ctx, &out, l.runs, l.width, i); err != nil {
				return nil, err
			}
		}
	}
	return []table{out}, nil
}

func (t *trial) precise(ctx context.Context, out *table, l runs, width float64, i int) error {
	beside := "nothing"
	args := []string{"--load", bulk + "," + rr, "--budget", l.each.String(), "--seed",
		strconv.FormatUint(t.seed+uint64(i), 10)}
	if i >= l.n-t.scale.loaded {
		stop, err := startWork(ordinary)
		if err != nil {
			return err
		}
		defer stop()
		beside, args = fmt.Sprintf("%d processes", burners), append(args, "--busy")
	}
	r, err := t.compare(ctx, args...)
	if err != nil {
		return err
	}
	by, rows := widths(r)
	t.say("precision: %s, run %d of %d beside %s: bulk %s, rr %s", l.each, i+1, l.n, beside,
		by[bulk], by[rr])
	holds := rows > 0 && len(r.Failed) == 0 && max(by[bulk].half, by[rr].half) <= math.Log1p(width)
	out.add(holdsIf(holds), short(l.each), beside, strconv.Itoa(rows), strconv.Itoa(len(r.Failed)),
		by[bulk].String(), by[rr].String())
	return nil
}

func short(d time.Duration) string { return fmt.Sprintf("%g s", d.Seconds()) }

type widest struct {
	half float64
	name string
}

func (w widest) String() string { return halfWidth(w.half) + " (" + w.name + ")" }

// A row without an interval has an infinite width.
func widths(r *analysis.Report) (by map[string]widest, rows int) {
	by = map[string]widest{}
	for _, c := range r.Cells {
		if c.Baseline {
			continue
		}
		rows++
		e, err := ofRatio(c.Metrics[c.Primary].Ratio)
		if err != nil {
			e.half = math.Inf(1)
		}
		if e.half >= by[c.Load].half {
			by[c.Load] = widest{e.half, c.Name()}
		}
	}
	return by, rows
}
