package truth

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

type setting struct {
	name string
	plan sample.Plan
}

// The half widths beyond which an agreement shows too little.
const (
	narrow = 0.05
	wide   = 0.10 // for long windows and other programs, which are no more precise
)

type question struct {
	name, title, text, what string
	loads                   []string
	settings                []setting // the first is the reference
	runs                    runs
	limit                   float64
}

// ask measures all settings in shuffled turns, and compares them with the first.
func (t *trial) ask(ctx context.Context, q question, b path.Builder) ([]table, error) {
	found := map[string][][]estimate{} // by load and setting
	for _, load := range q.loads {
		found[load] = make([][]estimate, len(q.settings))
	}
	rng := rand.New(rand.NewPCG(t.seed, uint64(len(q.settings))))
	for turn := range q.runs.n {
		for _, i := range rng.Perm(len(q.settings)) {
			r, err := t.measure(ctx, q.settings[i].plan, q.runs.each, b)
			if err != nil {
				return nil, err
			}
			for _, load := range q.loads {
				e, _, err := ratioOf(r, "bridge", "", load)
				if err != nil {
					t.say("%s: turn %d of %d: %s: %v", q.name, turn+1, q.runs.n, q.settings[i].name,
						err)
					continue
				}
				t.say("%s: turn %d of %d: %s: %s: %s", q.name, turn+1, q.runs.n, q.settings[i].name,
					load, e)
				found[load][i] = append(found[load][i], e)
			}
		}
	}
	return []table{q.table(found)}, nil
}

func (q question) table(found map[string][][]estimate) table {
	out := table{title: q.title,
		text: fmt.Sprintf(
			"%s %s A row holds if the ratio of its ratio to the first's may be 1, by an "+
				"interval for all rows together whose half is at most %.0f %%.",
			q.text, q.runs.text(), percent*q.limit),
		head: []string{"load", q.what, "bridge / host", "to the first"}}
	tests := len(q.loads) * (len(q.settings) - 1)
	for _, load := range q.loads {
		first := found[load][0]
		for i, s := range q.settings {
			one := found[load][i]
			switch {
			case len(one) == 0:
				out.add(no, load, s.name, "no result", "")
			case i == 0:
				out.add(noWord, load, s.name, mean(one).String(), "")
			case len(first) == 0:
				out.add(no, load, s.name, mean(one).String(), "no result")
			default:
				ratio, v := agreement(mean(one).over(mean(first)), tests, q.limit)
				out.add(v, load, s.name, mean(one).String(), ratio.String())
			}
		}
	}
	return out
}

func (r runs) text() string {
	return fmt.Sprintf("%d × %s in each, in shuffled turns.", r.n, r.each)
}

func (t *trial) hostBridge(ctx context.Context, more ...string) (sample.Plan, error) {
	args := append([]string{"host", "bridge", "--baseline", "host", "--load", bulk + "," + rr,
		"--pin", sample.PinFar, "--seed", strconv.FormatUint(t.seed, 10)}, more...)
	return t.plan(ctx, args...)
}

func (t *trial) length(ctx context.Context) ([]table, error) {
	base, err := t.hostBridge(ctx)
	if err != nil {
		return nil, err
	}
	q := question{name: "length", title: "Slices of other lengths", what: "slices",
		loads: []string{bulk, rr}, runs: t.scale.length, limit: narrow,
		text: "Bridge against host in slices of 1 to 32 ms."}
	for _, ms := range []float64{4, 1, 2, 8, 16, 32} {
		q.settings = append(q.settings, setting{fmt.Sprintf("%g ms", ms), sliced(base, ms/1000)})
	}
	return t.ask(ctx, q, t.lab)
}

func (t *trial) order(ctx context.Context) ([]table, error) {
	base, err := t.hostBridge(ctx)
	if err != nil {
		return nil, err
	}
	q := question{name: "order", title: "Other orders", what: "seed", loads: []string{bulk, rr},
		runs: t.scale.order, limit: narrow,
		text: "Bridge against host, the slices in orders of several seeds."}
	const seeds = 4
	for i := range uint64(seeds) {
		p := base
		p.Seed = t.seed + i
		q.settings = append(q.settings, setting{strconv.FormatUint(p.Seed, 10), p})
	}
	return t.ask(ctx, q, t.lab)
}

var company = []string{"native", "bridge-default", "routed", "pipework", "publish-nat",
	"publish-proxy", "--to", "loopback,address"}

func (t *trial) company(ctx context.Context) ([]table, error) {
	alone, err := t.hostBridge(ctx)
	if err != nil {
		return nil, err
	}
	among, err := t.hostBridge(ctx, company...)
	if err != nil {
		return nil, err
	}
	q := question{name: "company", title: "Alone and in company", what: "in the run",
		loads: []string{bulk, rr}, runs: t.scale.company, limit: narrow,
		text: "Bridge against host, alone in the run and with other modes between."}
	const ownCells = 3 // host, its control and bridge
	for _, p := range []sample.Plan{alone, among} {
		cells := len(p.Cells)/len(p.Loads) - ownCells
		q.settings = append(q.settings, setting{fmt.Sprintf("%d other cells of a load", cells), p})
	}
	return t.ask(ctx, q, t.lab)
}

func (t *trial) sustained(ctx context.Context) ([]table, error) {
	base, err := t.hostBridge(ctx)
	if err != nil {
		return nil, err
	}
	base = under(base, bulk)
	q := question{name: "sustained", title: "Slices and sustained transfers", what: "measured in",
		loads: []string{bulk}, runs: t.scale.sustained, limit: wide,
		text:     "Bridge against host in slices, and in visits whose windows are a second long.",
		settings: []setting{{"slices", base}, {"windows of 1 s", visited(base, time.Second)}}}
	return t.ask(ctx, q, t.lab)
}
