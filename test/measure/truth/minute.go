package truth

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// narrower is how many times wider the other tool's interval must be than toll's for a row to hold.
const narrower = 10

// minuteRow has what toll and another tool say of bridge in one block.
type minuteRow struct {
	load, tool  string
	ours, their estimate
}

// times returns how many times wider the other tool's interval is.
func (r minuteRow) times() float64 { return math.Expm1(r.their.half) / math.Expm1(r.ours.half) }

// oneMinute compares the intervals that toll and the other tools reach in the same time, as an
// engineer would use these: a second of each mode in turns, and the paired t-interval of the
// ratios.
func (t *trial) oneMinute(ctx context.Context) (_ []table, err error) {
	kept := t.keep()
	defer func() { err = errors.Join(err, kept.close()) }()
	scale := t.scale
	out := table{title: "One minute",
		text: fmt.Sprintf("bridge against host, client and server on a CPU each, in the same "+
			"namespaces. toll measures bulk and rr for %s; then iperf3 and qperf alternate, %d "+
			"pairs of one second each (iperf3 after a second that does not count), with the "+
			"paired t-interval of the ratios' logarithms; %d times in turns. A row holds if the "+
			"ratio of both ratios may be 1, by intervals for all rows together, and if toll's "+
			"interval is at most 1/%d of the tool's.",
			short(scale.minute.each), scale.pairs, scale.minute.n, narrower),
		head: []string{"block", "load", "tool", "bridge to host by it", "by toll", "ratio of both",
			"its interval to toll's"}}
	modes := []mode.Name{mode.Host, mode.Bridge}
	plan, err := t.published(ctx, sample.PinFar, modes, bulk, rr)
	if err != nil {
		return nil, err
	}
	var drawn []minuteRow
	for i := range scale.minute.n {
		plan.Seed = t.seed + uint64(i)
		report, err := t.measure(ctx, plan, scale.minute.each, kept)
		if err != nil {
			return nil, err
		}
		theirs, err := t.alternate(ctx, plan.CPUsOf(plan.Cells[0]), kept, modes)
		if err != nil {
			return nil, err
		}
		for _, r := range rivals {
			row := minuteRow{load: r.load, tool: r.name}
			row.ours, err = r.ratio(report, mode.Bridge)
			if err == nil {
				row.their, err = pairedT(theirs[r.name])
			}
			if err != nil {
				out.add(no, fmt.Sprint(i+1), r.load, r.name, path.OneLine(err), "", "", "")
				continue
			}
			ratio, _ := agreement(row.their.over(row.ours), scale.minute.n*len(rivals), 0)
			out.add(holdsIf(ratio.one() && row.times() >= narrower), fmt.Sprint(i+1), r.load,
				r.name, row.their.String(), row.ours.String(), ratio.String(),
				fmt.Sprintf("%.1f", row.times()))
			drawn = append(drawn, row)
		}
		t.say("minute: block %d of %d", i+1, scale.minute.n)
	}
	if t.picture != "" && len(drawn) > 0 {
		err = os.WriteFile(t.picture, []byte(drawMinute(drawn, scale, t.environment)), 0o644)
	}
	return []table{out}, err
}

// alternate returns, for each tool, the logarithms of the ratios of the second mode to the first.
func (t *trial) alternate(ctx context.Context, cpus sample.CPUs, kept *keeping,
	modes []mode.Name) (map[string][]float64, error) {
	logs := map[string][]float64{}
	for i := range t.scale.pairs {
		for _, r := range rivals {
			order := slices.Clone(modes)
			if i%2 == 1 {
				slices.Reverse(order)
			}
			rate := map[mode.Name]float64{}
			for _, m := range order {
				x, err := r.visit(ctx, &cpus, kept.of(m))
				if err != nil {
					return nil, fmt.Errorf("%s: %s: %w", r.name, m, err)
				}
				rate[m] = r.rate(x)
			}
			logs[r.name] = append(logs[r.name], math.Log(rate[modes[1]]/rate[modes[0]]))
		}
	}
	return logs, nil
}

// pairedT returns the mean of logs with half of its t-interval.
func pairedT(logs []float64) (estimate, error) {
	if len(logs) < 2 {
		return estimate{}, fmt.Errorf("%d pairs are too few for an interval", len(logs))
	}
	mean, sd := stat.MeanStdDev(logs, nil)
	n := float64(len(logs))
	of := distuv.StudentsT{Sigma: 1, Nu: n - 1}
	return estimate{mean, of.Quantile((1+stats.Confidence)/2) * sd / math.Sqrt(n)}, nil
}
