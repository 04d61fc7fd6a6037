package truth

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// inert is a tune that changes nothing: the bridge's devices have this MTU anyway. nodelay=on is
// not inert. It sends the last segment of each write at once, which made bulk 2 % slower on one CPU
// and 1 to 2 % faster on two.
const inert = "mtu=1500"

const (
	// largest share of verdicts on identical modes that may be better or worse
	wrongShare = 1.0 / 200
	// probability that intervals with a true coverage of 95 % fail the check
	coverageRisk = 0.025
)

type tally struct {
	n, covered int
	by         map[stats.Verdict]int
	widest     float64
}

func (t *tally) add(v stats.Verdict, e estimate) {
	if t.by == nil {
		t.by = map[stats.Verdict]int{}
	}
	t.n++
	t.by[v]++
	if e.half > 0 && e.one() {
		t.covered++
	}
	t.widest = max(t.widest, e.half)
}

func (t *tally) join(o *tally) {
	t.n += o.n
	t.covered += o.covered
	t.widest = max(t.widest, o.widest)
	for v, n := range o.by {
		t.by[v] += n
	}
}

func (t *tally) identical() bool {
	wrong := t.by[stats.Better] + t.by[stats.Worse]
	return t.n > 0 && float64(wrong) <= wrongShare*float64(t.n) && t.by[""] == 0 &&
		t.covered >= least(t.n, stats.Confidence, coverageRisk)
}

const bothPins = sample.PinFar + "," + sample.PinNear

type situation struct {
	busy bool
	pins string
}

// Unpinned ends are measured in visits, which need more time.
func (s situation) runs(aa runs) runs {
	const longer, fewer = 5, 2
	if s.pins == sample.PinNone {
		return runs{max(1, aa.n/fewer), aa.each * longer / 2}
	}
	return aa
}

func (s situation) beside() string {
	if s.busy {
		return halfBusy
	}
	return "nothing"
}

// identical compares bridge with bridge and the inert tune, as users run toll: with pinned and
// unpinned ends, on an idle machine and with a half-busy CPU.
func (t *trial) identical(ctx context.Context) ([]table, error) {
	out := table{title: "Identical modes",
		text: fmt.Sprintf(
			"`toll compare bridge --baseline bridge --tune %s --congestion %s --budget %s`, %d "+
				"times in each situation, each with its own seed; unpinned half as often, and "+
				"longer. It holds if at most one verdict of %.0f is better or worse, and the 95 "+
				"%% intervals contain 1 as often as that, but for a chance of %.1f "+
				"%%.", inert, t.congestion,
			t.scale.aa.each, t.scale.aa.n, 1/wrongShare, percent*coverageRisk),
		head: []string{"beside", "CPUs", "load", "rows", "interval contains 1",
			"same", "unclear", "better", "worse", "no result", "widest"}}
	all := tally{by: map[stats.Verdict]int{}}
	for _, s := range []situation{
		{pins: bothPins}, {pins: sample.PinNone},
		{busy: true, pins: bothPins}, {busy: true, pins: sample.PinNone},
	} {
		if err := t.identicalIn(ctx, s, &out, &all); err != nil {
			return nil, err
		}
	}
	out.add(holdsIf(all.identical()), all.cells("all", "", "")...)
	return []table{out}, nil
}

func (t *trial) identicalIn(ctx context.Context, s situation, out *table, all *tally) error {
	if s.busy {
		stop, err := startHalfBusy(0)
		if err != nil {
			return err
		}
		defer stop()
	}
	tallies, order := map[[2]string]*tally{}, [][2]string(nil)
	made := s.runs(t.scale.aa)
	for i := range made.n {
		r, err := t.compare(ctx, "bridge", "--baseline", "bridge", "--tune", inert,
			"--load", bulk+","+rr, "--pin", s.pins, "--budget", made.each.String(),
			"--congestion", t.congestion,
			"--seed", strconv.FormatUint(t.seed+uint64(i), 10))
		if err != nil {
			return err
		}
		for _, row := range inertRows(r) {
			key := [2]string{row.pin, row.load}
			if tallies[key] == nil {
				tallies[key], order = &tally{}, append(order, key)
			}
			tallies[key].add(row.verdict, row.ratio)
			t.say("aa: beside %s, run %d of %d: %s, %s: %s, %s", s.beside(), i+1, made.n,
				row.load, row.pin, row.ratio, row.verdict)
		}
	}
	for _, key := range order {
		out.add(noWord, tallies[key].cells(s.beside(), key[0], key[1])...)
		all.join(tallies[key])
	}
	return nil
}

// An empty verdict means no result.
type inertRow struct {
	pin, load string
	ratio     estimate
	verdict   stats.Verdict
}

func inertRows(r *analysis.Report) (out []inertRow) {
	for _, c := range r.Cells {
		if c.Tune != inert {
			continue
		}
		row := inertRow{pin: pinName(c.Pin), load: c.Load}
		if e, err := ofRatio(c.Metrics[c.Primary].Ratio); err == nil {
			row.ratio, row.verdict = e, c.Metrics[c.Primary].Ratio.Verdict
		}
		out = append(out, row)
	}
	for _, f := range r.Failed {
		if f.Tune == inert {
			out = append(out, inertRow{pin: pinName(f.Pin), load: f.Load})
		}
	}
	return out
}

func pinName(pin string) string { return cmp.Or(pin, sample.PinNone) }

func (t *tally) cells(beside, pin, load string) []string {
	out := []string{beside, pin, load, strconv.Itoa(t.n), strconv.Itoa(t.covered)}
	for _, v := range []stats.Verdict{stats.Same, stats.Unclear, stats.Better, stats.Worse, ""} {
		out = append(out, strconv.Itoa(t.by[v]))
	}
	return append(out, halfWidth(t.widest))
}
