package judgetest

import (
	"math"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// Routes returns a traced run over a direct route and, if relay is positive, one over a relay that
// takes that long, in µs. The server takes 50 µs, and captures cost 1 µs in each of 6 or 10
// segments. change, unless nil, changes each trace.
func Routes(relay float64, change func(*sample.Trace)) *sample.File {
	const us, rounds = 1e-6, 24
	f := &sample.File{Header: sample.Header{Schema: sample.Schema, Plan: sample.Plan{
		Study: sample.StudyTrace, Trace: &sample.TracePlan{}, Baseline: "direct", Budget: 60,
		Precision: 0.02,
		Loads: []sample.Load{{Kind: workload.Request, Window: 0.2,
			Options: sample.RequestOptions{Asks: "PING"}}}}},
		End: sample.End{Reason: sample.EndedByRounds, Rounds: rounds}}
	names := []string{"direct"}
	if relay > 0 {
		names = append(names, "relayed")
	}
	for _, name := range names {
		c := sample.Cell{Route: name, From: sample.FromHere, Load: workload.Request,
			On: sample.OnEndpoint}
		f.Header.Plan.Cells = append(f.Header.Plan.Cells, c)
		if name == "direct" && relay > 0 {
			c.Control = true
			f.Header.Plan.Cells = append(f.Header.Plan.Cells, c)
		}
		f.Header.Paths = append(f.Header.Paths, sample.Path{Route: name, From: sample.FromHere,
			On: sample.OnEndpoint,
			Dial: map[string]string{"direct": "172.17.0.2:6379",
				"relayed": "127.0.0.1:6379"}[name], Hops: []string{}})
	}
	for round := range rounds {
		state := []sample.Tracing{sample.Untraced, sample.Traced, sample.TracedThrice}[round%3]
		for i, c := range f.Header.Plan.Cells {
			jitter := 1 + 0.002*math.Sin(float64(7*round+3*i))
			f.Visits = append(f.Visits, routeVisit(round, i, c.Route == "relayed", state, us, relay,
				jitter, change))
		}
	}
	return f
}

func routeVisit(round, cell int, relayed bool, state sample.Tracing, us, relay, jitter float64,
	change func(*sample.Trace)) sample.Visit {
	v := sample.Visit{Turn: sample.Turn{Round: round, Cell: cell}}
	copies := map[sample.Tracing]float64{sample.Traced: 1, sample.TracedThrice: 3}[state]
	t := &sample.Trace{State: state, Trips: 1000, Followed: 1000, Slots: []int{0, 1}, Events: 6}
	add := func(reply bool, part sample.Part, hop, where string, took float64) {
		x := jitter*took*us + copies*us
		t.Segments = append(t.Segments, sample.Segment{MidMean: x, MidMeans: sample.Times{x, x},
			SegmentKey: sample.SegmentKey{Reply: reply, Part: part, Hop: hop, Where: where},
			P99:        2 * x,
			Share:      1, Events: 1, Slowest: 9 * x, Steps: [2]string{where + hop, string(part)}})
		t.MidMean += x
	}
	add(false, sample.PartClient, "", "", 5)
	if relayed {
		add(false, sample.PartNetwork, "network", "to proxy", 2)
		add(false, sample.PartRelayed, "proxy", "", relay/2)
	}
	add(false, sample.PartNetwork, "network", "to redis", 2)
	add(false, sample.PartServer, "redis", "", 50)
	add(true, sample.PartServerTCP, "redis", "", 1)
	if relayed {
		add(true, sample.PartNetwork, "network", "to proxy", 2)
		add(true, sample.PartRelayed, "proxy", "", relay/2)
	}
	add(true, sample.PartNetwork, "network", "to the client", 2)
	add(true, sample.PartClient, "", "", 5)
	t.Totals = sample.Times{t.MidMean, t.MidMean}
	if state == sample.Untraced {
		v.Slices = &sample.Slices{Slots: []int{0, 1},
			Rates:   []float64{1 / t.MidMean, 1 / t.MidMean},
			Medians: []float64{t.MidMean, t.MidMean}}
		v.Client.Window, v.Client.Trips = 0.2, int64(0.2/t.MidMean)
		return v
	}
	if change != nil {
		change(t)
	}
	v.Trace = t
	return v
}

// Divided says, for Routes, how the processes of a trace spent their parts: a tenth asleep, and
// relays waiting for a CPU for a time, in s, and for another one around the p99.
func Divided(waits, late float64) func(*sample.Trace) {
	return func(x *sample.Trace) {
		var out []sample.Segment
		for _, g := range x.Segments {
			parts, ok := map[sample.Part][2]sample.Part{
				sample.PartRelayed: {sample.PartRelayedAsleep, sample.PartRelayedWait},
				sample.PartServer:  {sample.PartServerAsleep, sample.PartServerWait}}[g.Part]
			if ok {
				asleep, wait := g, g
				asleep.Part, asleep.Events, wait.Part, wait.Events = parts[0], 0, parts[1], 0
				asleep.MidMean = g.MidMean / 10
				if wait.MidMean = 0; g.Part == sample.PartRelayed {
					wait.MidMean, wait.Tail = waits, late
				}
				g.MidMean -= asleep.MidMean + wait.MidMean
				for _, y := range []*sample.Segment{&asleep, &wait, &g} {
					y.MidMeans = sample.Times{y.MidMean, y.MidMean}
				}
				out = append(out, asleep, wait)
			}
			out = append(out, g)
		}
		x.Segments = out
	}
}

// OnNetwork divides, for Routes, the network of a trace into a device to a relay, and else into a
// quarter in pairs of devices and the rest in a bridge, which takes more, in s, on its way to a
// relayed server, which takes less.
func OnNetwork(more float64) func(*sample.Trace) {
	const quarter = 0.25
	return func(x *sample.Trace) {
		const us = 1e-6
		cost := us
		if x.State == sample.TracedThrice {
			cost *= sample.TraceCopies
		}
		relayed := slices.ContainsFunc(x.Segments, func(g sample.Segment) bool {
			return g.Part == sample.PartRelayed
		})
		before := "request"
		var out []sample.Segment
		add := func(g sample.Segment, leg, device string, took float64) {
			g.Part, g.Device, g.MidMean = g.Part+sample.InPart+sample.Part(leg), device, took+cost
			g.MidMeans = sample.Times{g.MidMean, g.MidMean}
			g.Steps = [2]string{before, leg}
			out, before = append(out, g), leg
		}
		for _, g := range x.Segments {
			took := g.MidMean - cost
			switch {
			case g.Part != sample.PartNetwork:
				if relayed && g.Part == sample.PartServer { // the request takes as long as without captures
					g.MidMean -= 2 * more
					g.MidMeans = sample.Times{g.MidMean, g.MidMean}
				}
				out, before = append(out, g), string(g.Part)
			case relayed && g.Where == "to proxy" && !g.Reply, relayed && g.Where == "to the client":
				add(g, sample.LegLoopback, "", took)
			default:
				by := 0.0
				if relayed {
					by = more
				}
				add(g, sample.LegVeth, "veth1", quarter*took)
				add(g, sample.LegBridge, "docker0", took-quarter*took+by)
				x.MidMean += cost
				for i := range x.Totals {
					x.Totals[i] += cost
				}
			}
		}
		x.Segments = out
	}
}
