package truth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	judged "github.com/bridgetoll/bridgetoll/internal/judge/trace"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

const (
	nullLimit     = 0.15e-6 // s; how far a path row of identical cells may be from 0
	costLimit     = 0.2e-6  // s for each event
	followedShare = 0.98
)

func ofPrice(p analysis.Price) (amount, error) {
	if p.Unit != "s" || !(p.Low <= p.Median && p.Median <= p.High) || math.IsInf(p.High-p.Low, 0) ||
		p.Low == p.High {
		return amount{}, fmt.Errorf("%g %s (%g to %g) is no time with an interval", p.Median,
			p.Unit, p.Low, p.High)
	}
	return amount{p.Median, max(p.High-p.Median, p.Median-p.Low)}, nil
}

func (a amount) times(f float64) amount { return amount{a.at * f, a.half * math.Abs(f)} }

// atMost tests the whole interval.
func (a amount) atMost(limit float64) verdict {
	switch {
	case a.at-a.half > limit:
		return no
	case a.at+a.half > limit:
		return tooWide
	}
	return yes
}

// near tests whether the amount is within the limit of 0, if its interval can tell.
func (a amount) near(limit float64) verdict {
	switch {
	case math.Abs(a.at) <= limit:
		return yes
	case math.Abs(a.at)-a.half <= limit:
		return tooWide
	}
	return no
}

// within tests whether the amount is within the limit of 0: all of its interval, or none of it.
func (a amount) within(limit float64) verdict {
	switch {
	case math.Abs(a.at)+a.half <= limit:
		return yes
	case math.Abs(a.at)-a.half > limit:
		return no
	}
	return unclear
}

// worst returns no before tooWide before unclear before yes.
func worst(a, b verdict) verdict {
	for _, v := range []verdict{no, tooWide, unclear} {
		if a == v || b == v {
			return v
		}
	}
	return yes
}

const microsecond = 1e-6

// String returns a time in s as text such as "+3.52 ±0.08 µs".
func (a amount) String() string {
	return fmt.Sprintf("%+.2f ±%.2f µs", a.at/microsecond, a.half/microsecond)
}

// tracing returns the report of toll trace, also if some cells have no result.
func (t *trial) tracing(ctx context.Context, args ...string) (*judged.Report, error) {
	out, err := t.run(ctx, append([]string{"trace", "--quiet", "--force", "--busy", "--format",
		"json", "--congestion", t.congestion}, args...)...)
	if err := reported(err); err != nil {
		return nil, err
	}
	return readTrace(out)
}

func readTrace(text []byte) (*judged.Report, error) {
	r := &judged.Report{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("read the report: %w", err)
	}
	return r, nil
}

// A kernel without a tracepoint has merged parts.
func has(merged, part sample.Part) bool { return strings.Contains(string(merged), string(part)) }

type traced struct {
	null, sums, cost map[string]*prices
	order            []string // labels of sums and cost
	events           map[string]float64
}

type prices struct {
	all     []amount
	covered int // that contain 0
	farthest,
	widest float64
}

func (p *prices) add(a amount) {
	p.all = append(p.all, a)
	if a.zero() {
		p.covered++
	}
	p.farthest, p.widest = max(p.farthest, math.Abs(a.at)), max(p.widest, a.half)
}

func put(to map[string]*prices, key string, p analysis.Price) error {
	a, err := ofPrice(p)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	if to[key] == nil {
		to[key] = &prices{}
	}
	to[key].add(a)
	return nil
}

func newTraced() *traced {
	return &traced{null: map[string]*prices{}, sums: map[string]*prices{},
		cost: map[string]*prices{}, events: map[string]float64{}}
}

// add adds a report. A cell of the baseline's mode is the control.
func (a *traced) add(r *judged.Report) error {
	if len(r.Traces) == 0 || len(r.Failed) > 0 {
		return fmt.Errorf("%d traces, failed: %v", len(r.Traces), r.Failed)
	}
	for _, t := range r.Traces {
		if t.Words != "" {
			return fmt.Errorf("%s: %s", t.Label, t.Words)
		}
		label := t.Label + ", from " + string(t.Cell.From)
		if err := put(a.cost, label, t.Cost); err != nil {
			return err
		}
		a.events[label] = t.Events
		if !slices.Contains(a.order, label) {
			a.order = append(a.order, label)
		}
		if t.Cell.Mode != mode.Host {
			if err := put(a.sums, label, t.Unattributed); err != nil {
				return err
			}
			continue
		}
		for _, row := range t.Rows {
			if !row.InPath() {
				continue
			}
			if err := put(a.null, row.Name, row.Added); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *traced) nullTable() table {
	out := table{title: "Traces: identical cells",
		text: fmt.Sprintf("`toll trace`: host against its control. A part holds if it is within "+
			"±%.2f µs of 0 in every run; the last row, if the 95 %% intervals contain 0 as often "+
			"as that, but for a chance of %.1f %%.", nullLimit/microsecond, percent*coverageRisk),
		head: []string{"part", "runs", "farthest", "widest", "interval contains 0", "mean"}}
	n, covered := 0, 0
	for _, name := range slices.Sorted(maps.Keys(a.null)) {
		p := a.null[name]
		v := holdsIf(len(p.all) > 0)
		for _, a := range p.all {
			v = worst(v, a.near(nullLimit))
		}
		if mean(p.all).half > nullLimit {
			v = worst(v, tooWide)
		}
		out.add(v, name, strconv.Itoa(len(p.all)), micros(p.farthest), micros(p.widest),
			strconv.Itoa(p.covered), mean(p.all).String())
		n, covered = n+len(p.all), covered+p.covered
	}
	out.add(holdsIf(n > 0 && covered >= least(n, 0.95, coverageRisk)), "all", strconv.Itoa(n), "",
		"", strconv.Itoa(covered), "")
	return out
}

func micros(s float64) string { return fmt.Sprintf("%.2f µs", s/microsecond) }

func (a *traced) sumsTable() table {
	out := table{title: "Traces: sums",
		text: fmt.Sprintf("What a mode without a relay adds untraced, minus what its "+
			"parts add. It "+
			"holds if the 95 %% intervals contain 0 as often as that, but for a chance of %.1f %%.",
			percent*coverageRisk),
		head: []string{"mode", "runs", "interval contains 0", "not attributed, mean", "widest"}}
	n, covered := 0, 0
	for _, label := range a.order {
		p := a.sums[label]
		if p == nil {
			continue
		}
		out.add(noWord, label, strconv.Itoa(len(p.all)), strconv.Itoa(p.covered),
			mean(p.all).String(), micros(p.widest))
		n, covered = n+len(p.all), covered+p.covered
	}
	out.add(holdsIf(n > 0 && covered >= least(n, 0.95, coverageRisk)), "all", strconv.Itoa(n),
		strconv.Itoa(covered), "", "")
	return out
}

func (a *traced) costTable() table {
	out := table{title: "Traces: what tracing adds to a traced trip",
		text: fmt.Sprintf("A row holds if the whole interval is at most %.1f µs for each event.",
			costLimit/microsecond),
		head: []string{"mode", "runs", "events of a trip", "traced minus untraced", "an event"}}
	for _, label := range a.order {
		of, events := mean(a.cost[label].all), a.events[label]
		each := of.times(1 / events)
		v := holdsIf(events > 0)
		if v == yes {
			v = each.atMost(costLimit)
		}
		out.add(v, label, strconv.Itoa(len(a.cost[label].all)), fmt.Sprintf("%.0f", events),
			of.String(), fmt.Sprintf("%.3f ±%.3f µs", each.at/microsecond, each.half/microsecond))
	}
	return out
}

// tracedModes have no relay and no part that a kernel may lack.
var tracedModes = map[mode.Placement][]string{
	mode.FromHost:      {"bridge", "publish-nat"},
	mode.FromContainer: {"bridge", "publish-nat"},
	mode.FromRemote:    {"publish-nat", "routed"},
}

// parts looks at the parts of host's control and of modes without a relay.
func (t *trial) parts(ctx context.Context) ([]table, error) {
	all := newTraced()
	var lost []error
	from := slices.Sorted(maps.Keys(tracedModes))
	for i := range t.scale.trace.n {
		p := from[i%len(from)]
		r, err := t.tracing(ctx, append(slices.Clone(tracedModes[p]), "--baseline", "host",
			"--from", string(p), "--budget", t.scale.trace.each.String(),
			"--seed", strconv.FormatUint(t.seed+uint64(i), 10))...)
		if err == nil {
			err = all.add(r)
		}
		if ctx.Err() != nil {
			return nil, err
		}
		t.say("trace: run %d of %d, from %s: %v", i+1, t.scale.trace.n, p, err)
		if err != nil {
			lost = append(lost, err)
		}
	}
	return []table{all.nullTable(), all.sumsTable(), all.costTable()}, errors.Join(lost...)
}

// followed traces every mode of the lab.
func (t *trial) followed(ctx context.Context) ([]table, error) {
	out := table{title: "Traces: followed trips",
		text: fmt.Sprintf("Every mode that the lab has here. A row holds if none fails and at "+
			"least %.0f %% of the trips of each are followed, or if it is refused because a "+
			"switch in user space copies datagrams, which have no numbers.", percent*followedShare),
		head: []string{"load", "from", "modes", "skipped", "least followed"}}
	for _, load := range []string{rr, udpRR} {
		for _, p := range mode.Placements() {
			if err := t.followedFrom(ctx, &out, load, p); err != nil {
				return nil, err
			}
		}
	}
	return []table{out}, nil
}

const udpRR = "udp-rr"

func (t *trial) followedFrom(ctx context.Context, out *table, load string,
	p mode.Placement) error {
	var args []string
	for _, m := range mode.OfLab() {
		if slices.Contains(m.Placements(), p) && (load == rr || !m.TCPOnly) {
			args = append(args, string(m.Name))
		}
	}
	r, err := t.tracing(ctx, append(args, "--baseline", "host", "--from", string(p), "--load", load,
		"--budget", t.scale.follow.String(), "--seed", strconv.FormatUint(t.seed, 10))...)
	if ctx.Err() != nil {
		return err
	}
	if err != nil {
		out.add(no, load, string(p), firstLine(err.Error()), "", "")
		return nil
	}
	for _, x := range r.Traces {
		t.say("trace-followed: %s, from %s: %s: %.2f %%; %s", load, p, x.Label,
			percent*x.Followed, x.Words)
	}
	v, lowest := leastFollowed(r)
	out.add(v, load, string(p), strconv.Itoa(len(r.Traces)), strconv.Itoa(len(r.Skipped)), lowest)
	return nil
}

func leastFollowed(r *judged.Report) (v verdict, lowest string) {
	v = holdsIf(len(r.Traces) > 0)
	for _, f := range r.Failed {
		v, lowest = no, fmt.Sprintf("%s: %s", f.Mode, f.Reason)
	}
	worst := math.Inf(1)
	for _, x := range r.Traces {
		copied := x.Words != "" && x.Cell.Load == udpRR &&
			slices.Contains(x.Cell.Hops, string(mode.HopOVS))
		if !copied && (!(x.Followed >= followedShare) || x.Words != "") {
			v = no
		}
		if !(x.Followed >= worst) && len(r.Failed) == 0 {
			worst = x.Followed
			lowest = fmt.Sprintf("%s: %.1f %% of %d", x.Label, percent*x.Followed, x.Trips)
			if x.Words != "" {
				lowest += ": " + x.Words
			}
		}
	}
	return v, lowest
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
