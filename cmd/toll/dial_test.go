package main

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/bridgetoll/bridgetoll/internal/ports"
)

// neighbours returns, by server, the command that runs a program in the network of the server's
// container. The key is the server's name, or its id where Docker is not asked.
func neighbours(e *dockerHost) map[string][]string {
	in := func(name string) []string {
		return []string{"nsenter", "-n", "-t", e.run("docker", "inspect", "-f", "{{.State.Pid}}", name)}
	}
	all := map[string][]string{"default": in("quiet"), "other": in("other"), "dual": in("mate")}
	for _, name := range []string{"other", "dual"} {
		all[e.run("docker", "inspect", "-f", "{{.Id}}", name)[:12]] = all[name]
	}
	return all
}

// asking has the addresses that are dialled from one place, and what the report says about each.
type asking struct {
	client ports.Client
	in     []string // the command that runs a program there
	said   map[string]ports.Path
}

// askings returns everything that a report says about TCP.
func askings(e *dockerHost, r *ports.Report) (all []asking) {
	e.t.Helper()
	for _, c := range ports.Clients() {
		from := map[string]asking{} // by place
		for _, row := range r.Ports {
			p, ok := row.Paths[c]
			if !ok || row.Proto != "tcp" {
				continue
			}
			place := "default"
			if _, apart := e.neighbours[row.Server.Name]; apart {
				place = row.Server.Name
			}
			if len(p.Doubt) > 0 {
				e.t.Errorf("%s from %s: %v", p.Dial, c, p.Doubt)
			}
			if from[place].said == nil {
				from[place] = asking{client: c, said: map[string]ports.Path{}}
			}
			from[place].said[p.Dial] = p
		}
		for place, a := range from {
			switch c {
			case ports.Remote:
				a.in = []string{"ip", "netns", "exec", "far"}
			case ports.Neighbour:
				a.in = e.neighbours[place]
			}
			all = append(all, a)
		}
	}
	return append(all, insiders(e, r)...)
}

// insiders dials what container quiet does not publish, by its own address. Another machine has no
// route there.
func insiders(e *dockerHost, r *ports.Report) (all []asking) {
	e.t.Helper()
	for _, x := range r.Inside {
		if x.Server.Name != "quiet" || x.Port != 9000 {
			continue
		}
		for c, in := range map[ports.Client][]string{ports.OwnAddr: nil, ports.Neighbour: e.neighbours["default"], ports.Foreign: e.neighbours["other"]} {
			p, ok := x.Paths[c]
			if !ok || len(p.Doubt) > 0 {
				e.t.Errorf("%s from %s: %+v", x.Dial, c, p)
			}
			all = append(all, asking{c, in, map[string]ports.Path{p.Dial: p}})
		}
	}
	return all
}

// dialAll dials every address of the report at once, because those that are not answered time out,
// and compares the results with the report.
func dialAll(e *dockerHost, echo string, r *ports.Report) {
	e.t.Helper()
	var n atomic.Int64
	var wg sync.WaitGroup
	for _, a := range askings(e, r) {
		wg.Go(func() {
			dial := func(addrs ...string) string {
				out, err := e.try(slices.Concat(a.in, []string{echo, "dial"}, addrs)...)
				if err != nil {
					e.t.Error(err)
				}
				return out
			}
			for line := range strings.Lines(dial(slices.Collect(maps.Keys(a.said))...)) {
				f := strings.Fields(line)
				n.Add(1)
				want := a.said[f[0]]
				// The kernel repeats an ARP request without an answer after a second.
				if want.Answers() && f[1] == "silent" {
					if again := strings.Fields(dial(f[0])); len(again) == len(f) {
						f = again
					}
				}
				if want.Answers() != (f[1] == "answered") {
					e.t.Errorf("%s from %s: toll says %s (%s), in reality it is %s", f[0], a.client, want.Kind, want.Why, f[1])
				}
			}
		})
	}
	wg.Wait()
	if const20 := int64(20); n.Load() < const20 {
		e.t.Errorf("only %d paths were tried", n.Load())
	}
}
