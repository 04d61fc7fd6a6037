package truth

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/test/measure/peer"
)

// A rival measures the same as one of toll's loads.
type rival struct {
	name, load string
	tool       peer.Tool
	size       int
	metric     string // toll's metric that corresponds to what rate returns
	// rate converts the tool's figure into that metric: qperf's time is half of a mean round trip.
	rate  func(x float64) float64
	unit  string
	scale float64
}

var rivals = []rival{
	{name: peer.IPerf3, load: bulk, tool: peer.Bulk, size: workload.DefaultWrite,
		metric: workload.Throughput, rate: func(x float64) float64 {
			return x
		},
		unit: "Gbit/s", scale: 1e9},
	{name: peer.QPerf, load: rr, tool: peer.Trips, size: 1, metric: workload.Transactions,
		rate: func(x float64) float64 {
			return 1 / (2 * x)
		},
		unit: "1000 round trips a second", scale: 1e3},
}

// ratio returns toll's ratio for a mode of what the other tool's rate is: round trips a second,
// where toll's verdict is about the time that each takes.
func (r rival) ratio(report *analysis.Report, m mode.Name) (estimate, error) {
	c, err := cell(report, string(m), "", r.load)
	if err != nil {
		return estimate{}, err
	}
	e, err := ofRatio(c.Metrics[r.metric].Ratio)
	if err != nil {
		return e, fmt.Errorf("%s, %s: %w", m, r.load, err)
	}
	return e, nil
}

func programs(only []string) []string {
	others := []string{peer.TaskSet, peer.IPerf3, peer.QPerf}
	needs := map[string][]string{"planted": {"nft", "tc"}, "peers": others, "minute": others,
		"unpinned": others, "rootless": others, "trace-planted": {"nft", "tc", "ip"},
		"tokens":      {"ip", "tc"},
		"tokens-load": {"ip"}, "tokens-cost": {"ip"}, "trace-routes": {"ip", "nft"},
		"trace-served": {"redis-server", "redis-benchmark", inPostgres("postgres")[0],
			inPostgres("pgbench")[0]}}
	var out []string
	for _, name := range only {
		out = append(out, needs[name]...)
	}
	return out
}

// The other modes are compared with the first.
var checked = []mode.Name{mode.Host, mode.Bridge, mode.PublishNAT, mode.PublishProxy}

func (t *trial) published(ctx context.Context, pin string, modes []mode.Name,
	loads ...string) (sample.Plan, error) {
	var args []string
	for _, m := range modes {
		args = append(args, string(m))
	}
	return t.plan(ctx, append(args, "--baseline", "host", "--to", "loopback",
		"--load", strings.Join(loads, ","), "--pin", pin,
		"--seed", strconv.FormatUint(t.seed, 10))...)
}

// Qperf needs a second port.
func (t *trial) keep() *keeping {
	return &keeping{Builder: t.lab, second: true, paths: map[path.Spec]*path.Path{}}
}

// peers compares ratios to host in blocks, in which toll and another tool measure the same paths on
// the same CPUs.
func (t *trial) peers(ctx context.Context) (_ []table, err error) {
	kept := t.keep()
	defer func() { err = errors.Join(err, kept.close()) }()
	out := table{title: "Other tools on the same paths and CPUs",
		text: fmt.Sprintf(
			"Each mode against host by the other tool, a second each, all modes forth and back, "+
				"and by toll in slices for %s, in the same namespaces, pinned to the same CPUs "+
				"(far: one each; near: both, and docker-proxy, on one), %d blocks one after "+
				"another. docker-proxy's round trips also by toll in visits of "+
				fmt.Sprint(
					visitWindow)+", which do not pause either. A row holds if the ratio of both "+
				"ratios may be 1, by an "+
				"interval for all rows together whose half is at most %.0f %%.", t.scale.peers.each,
			t.scale.peers.n, percent*wide),
		head: []string{"load", "CPUs", "tool", "mode", "to host by it", "by toll", "ratio of both"}}
	pins := []string{sample.PinFar, sample.PinNear}
	rows := len(rivals)*len(pins)*(len(checked)-1) + 1
	for _, pin := range pins {
		base, err := t.published(ctx, pin, checked, bulk, rr)
		if err != nil {
			return nil, err
		}
		for _, r := range rivals {
			theirs, ours, err := t.blocks(ctx, block{
				check: "peers", modes: checked, rival: r, plan: under(base, r.load),
				pinned: true}, kept)
			if ctx.Err() != nil {
				return nil, err
			}
			if err != nil { // the other tool may work
				t.say("peers: %s: %v", r.name, err)
				out.add(no, r.load, pin, r.name, path.OneLine(err), "", "", "")
				continue
			}
			for _, m := range checked[1:] {
				out.agree(r, pin, m, string(m), theirs, ours[pin], rows)
			}
			if pin != sample.PinFar || r.load != rr {
				continue
			}
			visits := block{check: "peers, in visits", modes: checked, rival: r,
				plan: visited(under(base, r.load), visitWindow), pinned: true}
			if theirs, ours, err = t.blocks(ctx, visits, kept); err != nil {
				return nil, err
			}
			out.agree(r, pin, mode.PublishProxy, string(mode.PublishProxy)+", visits", theirs,
				ours[pin], rows)
		}
	}
	return []table{out}, nil
}

const visitWindow = 250 * time.Millisecond

func (t *table) agree(r rival, pin string, m mode.Name, name string, theirs rates, ours *found,
	rows int) {
	own, none := ours.ratio(m)
	by, few := theirs.ratio(m)
	if err := errors.Join(none, few); err != nil {
		t.add(no, r.load, pin, r.name, name, path.OneLine(err), "", "")
		return
	}
	ratio, v := agreement(by.over(own), rows, wide)
	t.add(v, r.load, pin, r.name, name, by.String(), own.String(), ratio.String())
}

type block struct {
	check  string
	modes  []mode.Name // host first
	rival  rival
	plan   sample.Plan
	pinned bool // pin the tool, too, to the CPUs of the plan's first cell
}

// Each block has one logarithm of a rate.
type rates map[mode.Name][]float64

func (r rates) ratio(m mode.Name) (estimate, error) {
	var logs []float64
	for i, x := range r[m] {
		logs = append(logs, x-r[mode.Host][i])
	}
	return ofLogs(logs)
}

// found holds, for one placement on CPUs, each block's ratios to host and logarithm of host's own
// rate.
type found struct {
	ratios map[mode.Name][]estimate
	host   []float64
}

func (t *trial) blocks(ctx context.Context, b block, kept *keeping) (theirs rates,
	ours map[string]*found, err error) {
	theirs, ours = rates{}, map[string]*found{}
	for i := range t.scale.peers.n {
		p := b.plan
		p.Seed = t.seed + uint64(i)
		report, err := t.measure(ctx, p, t.scale.peers.each, kept)
		if err != nil {
			return nil, nil, err
		}
		for _, pin := range p.Pins {
			if _, known := ours[pin.Name]; !known {
				ours[pin.Name] = &found{ratios: map[mode.Name][]estimate{}}
			}
			if err := ours[pin.Name].add(report, pin.Name, b); err != nil {
				return nil, nil, err
			}
		}
		var cpus *sample.CPUs
		if b.pinned {
			c := p.CPUsOf(p.Cells[0])
			cpus = &c
		}
		their, err := t.turn(ctx, b, cpus, kept, i%2 == 1)
		if err != nil {
			return nil, nil, err
		}
		for m, x := range their {
			theirs[m] = append(theirs[m], x)
		}
		t.say("%s: block %d of %d: %s by %s, pinned: %t", b.check, i+1, t.scale.peers.n,
			b.rival.load, b.rival.name, b.pinned)
	}
	return theirs, ours, nil
}

func (f *found) add(r *analysis.Report, pin string, b block) error {
	by := b.rival
	for _, m := range b.modes {
		c, err := cell(r, string(m), "", by.load)
		if err != nil {
			return err
		}
		c, ok := r.WithPin(c, pin)
		if !ok {
			return fmt.Errorf("%s, %s, %s: not measured", m, by.load, pin)
		}
		x := c.Metrics[by.metric]
		if m == mode.Host {
			f.host = append(f.host, math.Log(x.Median))
			continue
		}
		if ratio, err := ofRatio(x.Ratio); err == nil { // a busy machine may spoil a block
			f.ratios[m] = append(f.ratios[m], ratio)
		}
	}
	return nil
}

func (f *found) ratio(m mode.Name) (estimate, error) {
	if len(f.ratios[m]) == 0 {
		return estimate{}, errors.New("no ratio has an interval")
	}
	return mean(f.ratios[m]), nil
}

// turn visits all modes forwards and then backwards, or the reverse, and returns the logarithms of
// the tool's rates. Nothing is pinned if cpus is nil.
func (t *trial) turn(ctx context.Context, b block, cpus *sample.CPUs, kept *keeping,
	reverse bool) (map[mode.Name]float64, error) {
	if cpus != nil && (len(cpus.Client) != 1 || len(cpus.Server) != 1) {
		return nil, fmt.Errorf("toll pins a stream to the CPUs %v and %v: one each is needed",
			cpus.Client, cpus.Server)
	}
	order := slices.Clone(b.modes)
	if reverse {
		slices.Reverse(order)
	}
	back := slices.Clone(order)
	slices.Reverse(back)
	logs := map[mode.Name]float64{}
	for _, m := range append(order, back...) {
		x, err := b.rival.visit(ctx, cpus, kept.of(m))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m, err)
		}
		const visits = 2 // of each mode
		logs[m] += math.Log(b.rival.rate(x)) / visits
	}
	return logs, nil
}

// rivalTimeout limits a visit of a second.
const rivalTimeout = 20 * time.Second

// The tool's ends are pinned unless cpus is nil.
func (r rival) visit(ctx context.Context, cpus *sample.CPUs, p *path.Path) (x float64, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, rivalTimeout, errors.New("it took too long"))
	defer cancel()
	if p.Drain != nil { // the last visit left the path's ports in TIME_WAIT
		if _, err := p.Drain(); err != nil {
			return 0, err
		}
	}
	at := peer.Ends{Server: p.Servers[0], Client: p.Clients[0]}
	if cpus != nil {
		at.ServerCPUs, at.ClientCPUs = cpus.Server, cpus.Client
		back, err := moveProxies(p, cpus.Relay)
		if err != nil {
			return 0, err
		}
		defer back()
	}
	return r.tool.Visit(ctx, at, peer.Ask{Listen: p.Servers[0].Listen, Dial: p.Clients[0].Dial,
		Second: p.Second, Size: r.size, Window: time.Second,
		Omit: time.Second}, // the connection's window and buffers grow, as in toll's warm-up
		nil)
}

// moveProxies moves the path's proxies to the CPUs, as toll does. back undoes it.
func moveProxies(p *path.Path, cpus []int) (back func(), err error) {
	own := map[int][]int{}
	back = func() {
		for pid, was := range own {
			_ = machine.SetAffinity(pid, was) // the proxy may have ended
		}
	}
	for _, x := range p.Proxies {
		if len(cpus) == 0 {
			break
		}
		if own[x.PID], err = machine.AffinityOf(x.PID); err == nil {
			err = machine.SetAffinity(x.PID, cpus)
		}
		if err != nil {
			back()
			return nil, err
		}
	}
	return back, nil
}
