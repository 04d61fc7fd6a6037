package truth

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// difference changes the path of bridge with the inert tune, and in some cases of bridge itself.
type difference struct {
	name string
	load string
	// aim computes the final size from a run with the first one; nil: first is final.
	first int
	aim   func(first int, c analysis.Cell) (int, error)
	plant func(size int) plants
	what  func(size int) string
}

const (
	bulkShare = 0.05 // of the throughput
	tripDelay = 2e-6 // s
	rateShare = 0.035
)

// pathRate is in bit/s: far less than any machine's bridge.
const pathRate = 2_000_000_000

const firstRules = 100

var differences = []difference{
	{name: "chain of rules", load: bulk, first: firstRules,
		aim: func(n int, c analysis.Cell) (int, error) {
			return scaled(n, -math.Log1p(-bulkShare), -math.Log(c.Metrics[c.Primary].Ratio.Median))
		},
		plant: func(n int) plants { return plants{inert: chain(n)} },
		what:  func(n int) string { return fmt.Sprintf("%d rules of nftables", n) }},
	{name: "limit of the rate", load: bulk,
		plant: func(int) plants {
			return plants{"": limit(pathRate), inert: limit(pathRate * (1 - rateShare))}
		},
		what: func(int) string {
			return fmt.Sprintf("tbf at %.4g instead of %.4g Gbit/s", pathRate*(1-rateShare)/1e9,
				pathRate/1e9)
		}},
	{name: "delay of a trip", load: rr, first: firstRules,
		aim: func(n int, c analysis.Cell) (int, error) {
			m := c.Metrics[c.Primary]
			return scaled(n, tripDelay, m.Median*(1-1/m.Ratio.Median))
		},
		plant: func(n int) plants { return plants{inert: chain(n)} },
		what:  func(n int) string { return fmt.Sprintf("%d rules of nftables", n) }},
}

func scaled(first int, want, effect float64) (int, error) {
	const least, most = 1, 10_000
	if !(effect > 0) {
		return 0, fmt.Errorf("%d of them cost nothing, so how many cost enough cannot be said",
			first)
	}
	return int(min(max(float64(first)*want/effect, least), most)), nil
}

const (
	// share of runs in which a planted difference must be found
	foundShare = 0.9
	// probability that a row fails although its intervals are right in 95 of 100 cases
	missRisk = 0.005
)

func (t *trial) inert(ctx context.Context) (sample.Plan, error) {
	return t.plan(ctx, "bridge", "--baseline", "bridge", "--tune", inert, "--load", bulk+","+rr,
		"--pin", sample.PinFar, "--seed", strconv.FormatUint(t.seed, 10))
}

func (t *trial) planted(ctx context.Context) ([]table, error) {
	out := table{title: "Planted differences",
		text: fmt.Sprintf(
			"Bridge against bridge with something in its path. Each is sized by a run of visits "+
				"of %s (windows of 0.25 s, no slices), then looked for in runs of %s. A row holds "+
				"if at least %.0f %% of the runs say worse, and their intervals agree with the "+
				"long run's as often as 95 %% intervals do.", t.scale.reference, t.scale.plant.each,
			percent*foundShare),
		head: []string{"planted", "load", "is", "by visits", "runs", "found", "mean of the runs",
			"agree"}}
	base, err := t.inert(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range differences {
		err := t.find(ctx, &out, d, under(base, d.load))
		if ctx.Err() != nil {
			return nil, err
		}
		if err != nil { // others may still be found
			t.say("planted: %s: %v", d.name, err)
			out.add(no, d.name, d.load, path.OneLine(err), "", "", "", "", "")
		}
	}
	return []table{out}, nil
}

func (t *trial) find(ctx context.Context, out *table, d difference, p sample.Plan) error {
	size, err := t.sizeOf(ctx, d, p)
	if err != nil {
		return err
	}
	paths := planting{t.lab, d.plant(size)}
	const window = 250 * time.Millisecond
	r, err := t.measure(ctx, visited(p, window), t.scale.reference, paths)
	if err != nil {
		return err
	}
	reference, _, err := ratioOf(r, "bridge", inert, d.load)
	if err != nil {
		return err
	}
	t.say("planted: %s: %s: %s by visits", d.name, d.what(size), reference)
	var (
		all          []estimate
		found, agree int
	)
	for i := range t.scale.plant.n {
		p.Seed = t.seed + uint64(i)
		r, err := t.measure(ctx, p, t.scale.plant.each, paths)
		if err != nil {
			return err
		}
		e, ratio, err := ratioOf(r, "bridge", inert, d.load)
		if err != nil {
			t.say("planted: %s: run %d of %d: %v", d.name, i+1, t.scale.plant.n, err)
			continue
		}
		t.say("planted: %s: run %d of %d: %s, %s", d.name, i+1, t.scale.plant.n, e, ratio.Verdict)
		all = append(all, e)
		if ratio.Verdict == stats.Worse {
			found++
		}
		if e.over(reference).one() {
			agree++
		}
	}
	if len(all) == 0 {
		return fmt.Errorf("no run has a result")
	}
	n := t.scale.plant.n
	v := holdsIf(float64(found) >= foundShare*float64(n) &&
		agree >= least(n, stats.Confidence, missRisk))
	if v == yes && math.Expm1(reference.half) > wide { // anything agrees with so wide an interval
		v = tooWide
	}
	out.add(v, d.name, d.load, d.what(size), reference.String(), strconv.Itoa(n),
		strconv.Itoa(found), mean(all).String(), strconv.Itoa(agree))
	return nil
}

func (t *trial) sizeOf(ctx context.Context, d difference, p sample.Plan) (size int, err error) {
	if d.aim == nil {
		return d.first, nil
	}
	const most, more = 1600, 4
	for first := d.first; first <= most; first *= more {
		if size, err = t.pilot(ctx, d, p, first); err == nil || ctx.Err() != nil {
			break
		}
	}
	return size, err
}

func (t *trial) pilot(ctx context.Context, d difference, p sample.Plan, first int) (size int,
	err error) {
	r, err := t.measure(ctx, p, t.scale.pilot, planting{t.lab, d.plant(first)})
	if err != nil {
		return 0, err
	}
	c, err := cell(r, "bridge", inert, d.load)
	if err != nil {
		return 0, err
	}
	e, err := ofRatio(c.Metrics[c.Primary].Ratio)
	if err != nil {
		return 0, err
	}
	t.say("planted: %s: first tried with %d rules: %s", d.name, first, e)
	return d.aim(first, c)
}
