package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/build/path"
	"github.com/bridgetoll/bridgetoll/internal/measure/peer"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// rival is another tool that measures what a load of ours does.
type rival struct {
	name, load string
	tool       peer.Tool
	size       int
	// metric is ours that means what the tool's figure does, and inverse says that the
	// one is a rate and the other a time: qperf's time is a mean, and so is that of all
	// trips of a slice.
	metric  string
	inverse bool
}

var rivals = []rival{
	{name: peer.IPerf3, load: bulk, tool: peer.Bulk, size: workload.DefaultWrite, metric: workload.Throughput},
	{name: peer.QPerf, load: rr, tool: peer.Trips, size: 1, metric: workload.Transactions, inverse: true},
}

// programs are those that the checks need besides toll.
func programs(only []string) []string {
	needs := map[string][]string{"planted": {"nft", "tc"}, "peers": {peer.TaskSet, peer.IPerf3, peer.QPerf}}
	var out []string
	for _, name := range only {
		out = append(out, needs[name]...)
	}
	return out
}

// peers compares toll with other tools on the same paths: the ratio of bridge to host
// by each, in blocks in which both measure it.
func (t *trial) peers(ctx context.Context) (_ []table, err error) {
	base, err := t.hostBridge(ctx)
	if err != nil {
		return nil, err
	}
	kept := &keeping{Builder: t.lab, paths: map[path.Spec]*path.Path{}}
	defer func() { err = errors.Join(err, kept.close()) }()
	out := table{title: "Other tools on the same paths",
		text: fmt.Sprintf("Bridge against host by the other tool, a second each in the order host, bridge, bridge, host (or the reverse), and by toll in slices for %s, "+
			"in the same namespaces, on the same CPUs, %d blocks one after another. A row holds if the ratio of both ratios may be 1, by an interval for all rows "+
			"together whose half is at most %.0f %%.", t.scale.peers.each, t.scale.peers.n, percent*wide),
		head: []string{"load", "tool", "bridge / host by it", "by toll", "ratio of both"}}
	for _, r := range rivals {
		theirs, ours, err := t.blocks(ctx, r, under(base, r.load), kept)
		if ctx.Err() != nil {
			return nil, err
		}
		by, few := ofLogs(theirs)
		if err = errors.Join(err, few); err != nil { // the other tool may do
			t.say("peers: %s: %v", r.name, err)
			out.add(no, r.load, r.name, path.OneLine(err), "", "")
			continue
		}
		ratio, v := agreement(by.over(pool(ours)), len(rivals), wide)
		out.add(v, r.load, r.name, by.String(), pool(ours).String(), ratio.String())
	}
	return []table{out}, nil
}

// blocks measures with both, in turns, and returns the logarithms of their ratios
// and our estimates.
func (t *trial) blocks(ctx context.Context, r rival, p sample.Plan, kept *keeping) (theirs []float64, ours []estimate, err error) {
	for i := range t.scale.peers.n {
		p.Seed = t.seed + uint64(i)
		report, err := t.measure(ctx, p, t.scale.peers.each, kept)
		if err != nil {
			return nil, nil, err
		}
		c, err := cell(report, "bridge", "", r.load)
		if err != nil {
			return nil, nil, err
		}
		own, err := ofRatio(c.Metrics[r.metric].Ratio)
		if err != nil {
			return nil, nil, err
		}
		if r.inverse {
			own = own.inverse()
		}
		their, err := t.turn(ctx, r, p.CPUsOf(p.Cells[0]), kept, i%2 == 1)
		if err != nil {
			return nil, nil, err
		}
		t.say("peers: block %d of %d: %s: %s %.3f, toll %s", i+1, t.scale.peers.n, r.load, r.name, math.Exp(their), own)
		theirs, ours = append(theirs, their), append(ours, own)
	}
	return theirs, ours, nil
}

// turn visits host, bridge, bridge, host with the tool, or the reverse, and returns
// the logarithm of the ratio of bridge to host.
func (t *trial) turn(ctx context.Context, r rival, cpus sample.CPUs, kept *keeping, reverse bool) (log float64, err error) {
	if len(cpus.Client) != 1 || len(cpus.Server) != 1 {
		return 0, fmt.Errorf("toll pins a stream to the CPUs %v and %v: one each is needed", cpus.Client, cpus.Server)
	}
	for i := range 4 {
		m := mode.Host
		if (i == 1 || i == 2) != reverse {
			m = mode.Bridge
		}
		x, err := r.visit(ctx, cpus, kept.of(m), kept.port())
		if err != nil {
			return 0, fmt.Errorf("%s: %w", m, err)
		}
		const visits = 2 // of each
		if m == mode.Bridge {
			log += math.Log(x) / visits
		} else {
			log -= math.Log(x) / visits
		}
	}
	return log, nil
}

// rivalTimeout bounds a visit of a second.
const rivalTimeout = 20 * time.Second

// visit runs the tool's server and client at the ends of a path.
func (r rival) visit(ctx context.Context, cpus sample.CPUs, p *path.Path, port uint16) (x float64, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, rivalTimeout, errors.New("it took too long"))
	defer cancel()
	ask := peer.Ask{Addr: netip.AddrPortFrom(p.Clients[0].Dial.Addr(), port), Size: r.size, Window: time.Second,
		Omit: time.Second} // in which a new connection finds its window and its buffers, as toll's run-in does
	server, err := spawn(ctx, p.Servers[0], peer.Pinned(cpus.Server[0], r.tool.Server(ask)))
	if err != nil {
		return 0, err
	}
	defer server.kill() // qperf's goes on until then
	if err := server.listens(ctx, port); err != nil {
		return 0, err
	}
	client, err := spawn(ctx, p.Clients[0], peer.Pinned(cpus.Client[0], r.tool.Client(ask)))
	if err != nil {
		return 0, err
	}
	if err := client.wait(); err != nil {
		return 0, err
	}
	return r.tool.Parse(client.out)
}
