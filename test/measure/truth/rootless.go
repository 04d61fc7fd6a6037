package truth

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/test/measure/peer"
)

var rootlessModes = []mode.Name{mode.Host, mode.RootlessPublish, mode.RootlessPublishNAT,
	mode.RootlessPublishTap, mode.Pasta, mode.Slirp4netns, mode.RootlessPort, mode.GvisorTapVsock}

var connections = rival{name: peer.NetPerf, load: workload.CRR, tool: peer.Connections, size: 1,
	metric: workload.Connections, rate: func(x float64) float64 { return x },
	unit: "connections a second", scale: 1}

// rootless compares with other tools over the published ports of rootless engines, as peers does.
func (t *trial) rootless(ctx context.Context) (_ []table, err error) {
	kept := t.keep()
	defer func() { err = errors.Join(err, kept.close()) }()
	tools, loads := rivals, []string{bulk, rr}
	lacks := ""
	if _, err := exec.LookPath(peer.NetPerf); err == nil {
		tools, loads = append(slices.Clone(rivals), connections), append(loads, workload.CRR)
	} else {
		lacks = " Without netperf crr has no row."
	}
	var modes []mode.Name
	for _, m := range rootlessModes {
		err := t.lab.Check(ctx, path.Spec{Mode: m, From: mode.FromHost, To: mode.ToLoopback})
		if err != nil {
			lacks += fmt.Sprintf(" Not here: %s: %s.", m, path.OneLine(err))
			continue
		}
		modes = append(modes, m)
	}
	if len(modes) < 2 {
		return nil, errors.New("no mode of rootless engines can be built:" + lacks)
	}
	base, err := t.published(ctx, sample.PinFar, modes, loads...)
	if err != nil {
		return nil, err
	}
	out := table{title: "Other tools over a rootless engine's ports",
		text: fmt.Sprintf("As above, with client and server on a CPU each and the relays on any: "+
			"%d blocks. A row holds if the ratio of both ratios may be 1, by an interval for all "+
			"rows together whose half is at most %.0f %%.%s", t.scale.peers.n, percent*wide, lacks),
		head: []string{"load", "CPUs", "tool", "mode", "to host by it", "by toll", "ratio of both"}}
	for _, r := range tools {
		theirs, ours, err := t.blocks(ctx, block{check: "rootless", modes: modes, rival: r,
			plan: under(base, r.load), pinned: true}, kept)
		if ctx.Err() != nil {
			return nil, err
		}
		if err != nil {
			t.say("rootless: %s: %v", r.name, err)
			out.add(no, r.load, sample.PinFar, r.name, path.OneLine(err), "", "", "")
			continue
		}
		for _, m := range modes[1:] {
			out.agree(r, sample.PinFar, m, string(m), theirs, ours[sample.PinFar],
				len(tools)*(len(modes)-1))
		}
	}
	return []table{out}, nil
}
