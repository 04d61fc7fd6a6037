package trace

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	kernel "github.com/bridgetoll/bridgetoll/internal/kernel/trace"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/measure/load"
	"github.com/bridgetoll/bridgetoll/internal/measure/worker"
	"github.com/bridgetoll/bridgetoll/internal/paths/lab"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

var again = flag.Bool("record", false, "record the logs in testdata anew, as root")

const tripsOfLog = 30

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == worker.Arg {
		if err := worker.Main(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if ours, err := lab.Inner(os.Args[1:]); ours {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// recordings are the logs in testdata, by name.
var recordings = map[string]struct {
	mode  mode.Name
	from  mode.Placement
	to    mode.Target
	tune  mode.Tunes
	udp   bool
	hooks bool
	here  bool // client and server on one CPU
}{
	"lo":         {mode: mode.Host, from: mode.FromHost, to: mode.ToLoopback},
	"lo-one-cpu": {mode: mode.Host, from: mode.FromHost, to: mode.ToLoopback, here: true},
	"lo-udp":     {mode: mode.Host, from: mode.FromHost, to: mode.ToLoopback, udp: true},
	"bridge":     {mode: mode.Bridge, from: mode.FromHost, to: mode.ToContainer},
	"containers": {mode: mode.Bridge, from: mode.FromContainer, to: mode.ToContainer},
	"hooks":      {mode: mode.Bridge, from: mode.FromContainer, to: mode.ToContainer, hooks: true},
	"udp":        {mode: mode.Bridge, from: mode.FromContainer, to: mode.ToContainer, udp: true},
	"rps": {mode: mode.Bridge, from: mode.FromContainer, to: mode.ToContainer,
		tune: "rps=on"},
	"bridge-6": {mode: mode.Bridge, from: mode.FromHost, to: mode.ToContainer6},
	"nat":      {mode: mode.PublishNAT, from: mode.FromHost, to: mode.ToAddress},
	"nat-two":  {mode: mode.PublishNAT, from: mode.FromContainer, to: mode.ToAddress},
	"nat-wire": {mode: mode.PublishNAT, from: mode.FromRemote,
		to: mode.ToAddress},
	"proxy":     {mode: mode.PublishProxy, from: mode.FromHost, to: mode.ToLoopback},
	"proxy-udp": {mode: mode.PublishProxy, from: mode.FromHost, to: mode.ToLoopback, udp: true},
	"overlay":   {mode: mode.Overlay, from: mode.FromRemoteContainer, to: mode.ToContainer},
	"macvlan":   {mode: mode.MacvlanBridge, from: mode.FromContainer, to: mode.ToContainer},
	"macvlan-udp": {mode: mode.MacvlanBridge, from: mode.FromContainer, to: mode.ToContainer,
		udp: true},
	"macvlan-wire": {mode: mode.MacvlanBridge, from: mode.FromRemote,
		to: mode.ToContainer},
	"routed": {mode: mode.Routed, from: mode.FromContainer, to: mode.ToContainer},
	"ovs":    {mode: mode.OVS, from: mode.FromContainer, to: mode.ToContainer},
	"pasta":  {mode: mode.Pasta, from: mode.FromRemote, to: mode.ToAddress},
}

// TestRecord records the logs. It needs root, and two CPUs.
func TestRecord(t *testing.T) {
	if !*again {
		t.Skip("-record records logs anew")
	}
	for _, name := range slices.Sorted(maps.Keys(recordings)) {
		t.Run(name, func(t *testing.T) {
			var r *record
			for range 5 {
				if r = recordPath(t, name); r != nil {
					break
				}
			}
			if r == nil {
				t.Fatal("the machine is too busy")
			}
			if x := r.follow(); x.Followed < x.Trips {
				t.Error(textOf(x))
			}
			if err := os.MkdirAll("testdata", 0o755); err != nil {
				t.Fatal(err)
			}
			r.write(t, filepath.Join("testdata", name+".log.gz"))
		})
	}
}

// recordPath returns nil if the client did not run in time.
func recordPath(t *testing.T, name string) *record {
	t.Helper()
	x := recordings[name]
	p := buildPath(t, path.Spec{Mode: x.mode, From: x.from, To: x.to, Tune: x.tune, UDP: x.udp})
	cpus := [2]int{0, 1}
	if x.here {
		cpus[1] = 0
	}
	c := Cell{UDP: x.udp, Hops: p.Kinds(), Devices: map[Device]sample.Link{}}
	for _, proxy := range p.Proxies {
		c.Relays = append(c.Relays, proxy.PID)
		if err := machine.SetAffinity(proxy.PID, cpus[1:]); err != nil {
			t.Fatal(err)
		}
	}
	spaces, err := p.Namespaces()
	if err != nil {
		t.Fatal(err)
	}
	config := kernel.Config{CPUs: []int{0, 1}, Events: 1 << 20, Ports: []uint16{
		p.Clients[0].Dial.Port(), p.Servers[0].Listen.Port()}}
	if x.mode == mode.Overlay {
		config.Ports = append(config.Ports, 4789)
	}
	for _, n := range spaces {
		t.Cleanup(func() { n.Close() })
		if x.hooks {
			config.Hooks = append(config.Hooks, int(n.Fd()))
		}
		for _, link := range n.Links {
			c.Devices[Device{link.NetNS, link.Index}] = link
		}
	}
	c.Copiers = p.Copiers
	for _, copier := range p.Copiers {
		if err := machine.SetAffinity(copier, cpus[1:]); err != nil {
			t.Fatal(err)
		}
	}
	ends, pids := startEnds(t, p, x.udp, cpus)
	config.PIDs = slices.Concat(pids, c.Relays, c.Copiers)
	c.Server, c.Client = pids[0], pids[1]
	tracer, err := kernel.Open()
	if err != nil {
		pathtest.SkipOrFail(t, "%v", err)
	}
	defer tracer.Close()
	recording, err := tracer.Attach(config)
	if err != nil {
		t.Fatal(err)
	}
	bounds := exchange(t, ends, recording)
	if len(bounds) <= tripsOfLog {
		return nil
	}
	out := &record{Cell: c, Slices: []Slice{{Bounds: bounds[:tripsOfLog+1]}}}
	out.Log = Log{Missing: tracer.Missing()}
	var all [][]kernel.Event
	all, out.Log.Lost = recording.Log()
	for _, l := range all {
		out.Log.CPUs = append(out.Log.CPUs, slices.Clone(l))
	}
	out.cut()
	return out
}

func buildPath(t *testing.T, spec path.Spec) *path.Path {
	t.Helper()
	ctx := context.Background()
	l := &lab.Lab{Congestion: "reno"}
	t.Cleanup(func() { _ = l.Close() })
	if err := l.Check(ctx, spec); err != nil {
		pathtest.SkipOrFail(t, "%v", err)
	}
	p, err := l.Build(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// startEnds returns the server and the client, connected, and their processes.
func startEnds(t *testing.T, p *path.Path, udp bool, cpus [2]int) (ends [2]*worker.Control,
	pids []int) {
	t.Helper()
	what := sample.Load{Kind: "rr", Warmup: 0.01, Window: 0.01, Slice: 1,
		Options: sample.RROptions{Messages: sample.Messages{Request: 1, Reply: 1}}}
	if udp {
		what.Kind, what.Options = "udp-rr", sample.Messages{Request: 1, Reply: 1}
	}
	for i, role := range []worker.Role{worker.Server, worker.Client} {
		place, addr := path.Place(p.Servers[0]), p.Servers[0].Listen
		if role == worker.Client {
			place, addr = p.Clients[0], p.Clients[0].Dial
		}
		proc, err := place.Start(path.Command{Args: []string{worker.Arg}, Env: worker.Env()})
		if err != nil {
			t.Fatal(err)
		}
		ends[i] = worker.NewControl(proc.In, proc.Out)
		t.Cleanup(func() { _ = ends[i].Close(); _ = proc.Wait() })
		pids = append(pids, proc.PID)
		err = ends[i].Open(context.Background(), worker.Request{Role: role, Load: what, Addr: addr,
			CPUs: cpus[1-i:][:1], Bounds: role == worker.Client})
		if err != nil {
			t.Fatal(err)
		}
	}
	return ends, pids
}

// exchange stops the recording after a slice of trips, and returns their bounds.
func exchange(t *testing.T, ends [2]*worker.Control, recording *kernel.Recording) (bounds []int64) {
	t.Helper()
	const slice = int64(500 * time.Millisecond)
	start := clock.Now() + 2*slice
	when := load.Schedule{Slices: []load.Slice{{Start: start, From: start + slice/4,
		To: start + slice, End: start + slice}}, Start: start + 2*slice, From: start + 2*slice + 1,
		To: start + 3*slice}
	recording.Between(start+slice/4, start+slice)
	for _, e := range ends {
		if err := e.Go(when); err != nil {
			t.Fatal(err)
		}
	}
	clock.SleepUntil(start + slice)
	if err := recording.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, e := range ends {
		reply, err := e.Done(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if b := reply.Slices[0].Bounds; len(b) > 0 {
			bounds = b
		}
	}
	for i := 1; i < len(bounds); i++ {
		bounds[i] += bounds[i-1]
	}
	return bounds
}

// cut removes what is outside the trips, and gives pointers, namespaces and times small numbers.
func (r *record) cut() {
	bounds := r.Slices[0].Bounds
	ptrs, spaces := map[uint64]uint64{0: 0}, map[uint32]uint32{0: 0}
	number := func(ns uint32) uint32 {
		if _, ok := spaces[ns]; !ok {
			spaces[ns] = uint32(len(spaces))
		}
		return spaces[ns]
	}
	origin := bounds[0]
	for i, l := range r.Log.CPUs {
		l = slices.DeleteFunc(l, func(e kernel.Event) bool {
			return e.TS < origin || e.TS >= bounds[len(bounds)-1]
		})
		for j := range l {
			e := &l[j]
			if _, ok := ptrs[e.Ptr]; !ok {
				ptrs[e.Ptr] = uint64(len(ptrs))
			}
			e.TS, e.Ptr, e.NetNS = e.TS-origin, ptrs[e.Ptr], number(e.NetNS)
		}
		r.Log.CPUs[i] = l
	}
	devices := map[Device]sample.Link{}
	for _, d := range slices.SortedFunc(maps.Keys(r.Cell.Devices), func(a, b Device) int {
		return cmp.Or(cmp.Compare(a.NetNS, b.NetNS), cmp.Compare(a.Index, b.Index))
	}) {
		devices[Device{number(d.NetNS), d.Index}] = r.Cell.Devices[d]
	}
	r.Cell.Devices = devices
	for i := range bounds {
		bounds[i] -= origin
	}
}
