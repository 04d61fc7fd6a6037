package agent

import (
	"bytes"
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/machine/meter"
	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

type cluster struct {
	site  *site
	nodes map[mode.Name][]*node // client, server
}

var _ path.Builder = (*cluster)(nil)

func (*cluster) Name() string                            { return sample.Swarm }
func (*cluster) Check(context.Context, path.Spec) error  { return nil }
func (c *cluster) of(s path.Spec) (client, server *node) { n := c.nodes[s.Mode]; return n[0], n[1] }
func (c *cluster) hop(n *node, server bool) path.Hop {
	return path.Hop{Kind: mode.HopVeth, Name: "eth0", Where: n.Name(),
		Read: n.Read(Counter{Device: &Device{Name: "eth0", ForwardRx: server}})}
}

func (c *cluster) Build(_ context.Context, s path.Spec) (*path.Path, error) {
	client, server := c.of(s)
	p := &path.Path{Spec: s, Channel: c.site.hub,
		Machines: []path.Machine{client.Agent, server.Agent},
		Hops:     []path.Hop{c.hop(client, false), c.hop(server, true)}}
	servers, clients := s.Count()
	const port = 5201
	for i := range servers {
		p.Servers = append(p.Servers, path.Server{
			Place: server, Listen: netip.AddrPortFrom(netip.IPv4Unspecified(), port+uint16(i)),
			Machine: server.Agent})
	}
	for i := range clients {
		p.Clients = append(p.Clients, path.Client{
			Place: client, Dial: netip.AddrPortFrom(server.addr, port+uint16(i%servers)),
			Server: i % servers, Machine: client.Agent})
	}
	return p, nil
}

func clustered(t *testing.T, c *cluster, q plan.Request,
	change func(*engine.Config)) (*sample.File, *analysis.Report) {
	t.Helper()
	q.Modes = []mode.Name{mode.Host}
	if c.nodes[mode.Native] != nil {
		q.Modes = append(q.Modes, mode.Native)
	}
	q.From, q.On, q.Baseline = []mode.Placement{mode.FromRemote}, []string{sample.Swarm}, mode.Host
	q.Budget, q.Precision, q.Seed = 600, 0.02, 1
	p, err := plan.Make(q)
	check(t, err)
	builders := []path.Builder{c}
	p, err = engine.Check(t.Context(), p, builders)
	check(t, err)
	m, err := meter.New()
	check(t, err)
	var records bytes.Buffer
	cfg := engine.Config{Plan: p, Builders: builders, Meter: m, Clock: engine.Monotonic{},
		Out: sample.NewWriter(&records)}
	if change != nil {
		change(&cfg)
	}
	if _, err := engine.Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	f, err := sample.Read(&records)
	check(t, err)
	return f, analysis.Judge(f)
}

func hasResult(v sample.Visit) bool { return v.Failure == "" && v.Witness.OK }

// A busy machine may spoil a run's visits, so unhindered repeats it.
func unhindered(t *testing.T, run func() (good bool)) {
	t.Helper()
	testwait.Unhindered(t, testTime, func(u testing.TB) {
		if !run() {
			u.Error("some loads have no result")
		}
	})
}

func TestVisitsBetweenMachines(t *testing.T) {
	t.Parallel()
	s := newSite(t, silence)
	b, c := s.node(setup{id: "b", before: otherClock(t, 1000)}),
		s.node(setup{id: "c", before: otherClock(t, 3)})
	loads := []sample.Load{{Kind: "rr", Options: sample.RROptions{
		Messages: sample.Messages{Request: 1, Reply: 1}}, Warmup: 0.3, Window: 0.5},
		{Kind: "bulk", Warmup: 0.3, Window: 0.5},
		{Kind: "crr", Warmup: 0.3, Window: 0.5},
		{Kind: "udp", Options: sample.UDPOptions{Rate: 1e7, Size: 1000, Batch: 1}, Warmup: 0.3,
			Window: 0.5},
		{Kind: "stream", Warmup: 0.3, Window: 0.5}}
	var f *sample.File
	var report *analysis.Report
	unhindered(t, func() bool {
		f, report = clustered(t, &cluster{s, map[mode.Name][]*node{mode.Host: {b, c}}},
			plan.Request{Loads: loads, Rounds: 2}, nil)
		return !slices.ContainsFunc(loads[:4], func(l sample.Load) bool {
			return !slices.ContainsFunc(f.Visits, func(v sample.Visit) bool {
				return f.Header.Plan.Cells[v.Cell].Load == l.Kind && hasResult(v)
			})
		})
	})
	if sk := f.Header.Plan.Skipped; len(sk) != 1 || sk[0].Load != "stream" ||
		sk[0].Reason != "the delay of each token is between the clocks of both ends, and "+
			"those of two machines are not one" {
		t.Errorf("skipped: %+v", sk)
	}
	good := map[string]int{}
	for _, v := range f.Visits {
		cell := f.Header.Plan.Cells[v.Cell]
		if !hasResult(v) {
			t.Logf("%s: %s %s", cell.Load, v.Failure, v.Witness.Evidence)
			continue
		}
		good[cell.Load]++
		if len(v.Machines) != 2 || v.Machines[0].Name != "node b" ||
			v.Machines[1].Name != "node c" {
			t.Fatalf("machines %+v", v.Machines)
		}
		for i, ahead := range []float64{1000, 3} {
			m := v.Machines[i]
			if m.Unsure <= 0 || m.Ahead < ahead-m.Unsure || m.Ahead > ahead+m.Unsure {
				t.Errorf("%s is %g ± %g s ahead, not %g", m.Name, m.Ahead, m.Unsure, ahead)
			}
		}
		if len(v.Machine) != v.Machines[0].CPUs+v.Machines[1].CPUs ||
			(v.Elapsed > 0) != (len(v.Machine) > 0) {
			t.Errorf("%d CPUs in %g s of %+v", len(v.Machine), v.Elapsed, v.Machines)
		}
		if len(v.Client.CPUs)+len(v.Server.CPUs) > 0 {
			t.Error("an end was pinned to this machine's CPUs")
		}
	}
	for _, l := range []string{"rr", "bulk", "crr", "udp"} {
		if good[l] == 0 {
			t.Errorf("%s has no result", l)
		}
	}
	if len(report.Cells) == 0 || report.Cells[0].Metrics[workload.LatencyP50].Median <= 0 {
		t.Errorf("the report has %d cells", len(report.Cells))
	}
}

func TestTransferBetweenMachines(t *testing.T) {
	s := newSite(t, silence)
	b, c := s.node(setup{id: "b", before: otherClock(t, 1000)}), s.node(setup{id: "c"})
	const n = 512 << 20
	var f *sample.File
	unhindered(t, func() bool {
		f, _ = clustered(t, &cluster{s, map[mode.Name][]*node{mode.Host: {b, c}}},
			plan.Request{Loads: []sample.Load{{Kind: "bulk", Options: sample.BulkOptions{Bytes: n},
				Window: 0.5}}, Rounds: 3}, nil)
		return slices.ContainsFunc(f.Visits, hasResult) // a late request is a message in the window
	})
	good := 0
	for _, v := range f.Visits {
		switch {
		case hasResult(v):
			good++
			if v.Server.Received != n || v.Server.Window <= 0 || v.Server.Window > 100 {
				t.Errorf("%d bytes in %g s", v.Server.Received, v.Server.Window)
			}
		default:
			t.Logf("%s %s", v.Failure, v.Witness.Evidence)
		}
	}
	if good == 0 {
		t.Error("no transfer has a result")
	}
}

func TestCrowdBetweenMachines(t *testing.T) {
	t.Parallel()
	s := newSite(t, silence)
	b, c := s.node(setup{id: "b", before: otherClock(t, 1000)}), s.node(setup{id: "c"})
	unhindered(t, func() bool {
		f, _ := clustered(t, &cluster{s, map[mode.Name][]*node{mode.Host: {b, c}}},
			plan.Request{Loads: []sample.Load{{Kind: "rr",
				Options: sample.RROptions{Messages: sample.Messages{Request: 1, Reply: 1}},
				Warmup:  0.5, Window: 1}}, Rounds: 2,
				Shapes: []sample.Shape{{Servers: 2, Clients: 4, Procs: 2}}}, nil)
		return slices.ContainsFunc(f.Visits, func(v sample.Visit) bool {
			return hasResult(v) && len(v.Rates) == 4
		})
	})
}

func TestRunGoesOnWithoutANode(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		end  func(s *site, n *node) error
	}{
		{"killed", func(_ *site, n *node) error { return n.cmd.Process.Kill() }},
		{"frozen", func(_ *site, n *node) error { return n.cmd.Process.Signal(syscall.SIGSTOP) }},
		{"cut-off", func(s *site, n *node) error {
			return s.ns.Do(func() error { return run("ip", "link", "set", n.dev, "down") })
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			goesOn(t, tt.end)
		})
	}
}

func goesOn(t *testing.T, end func(*site, *node) error) {
	s := newSite(t, quick)
	b, c := s.node(setup{id: "b"}), s.node(setup{id: "c"})
	d, e := s.node(setup{id: "d"}), s.node(setup{id: "e"})
	const dies = 1       // round
	var late atomic.Bool // that visit may have ended before
	f, _ := clustered(t, &cluster{s, map[mode.Name][]*node{mode.Host: {b, c}, mode.Native: {d, e}}},
		plan.Request{Loads: []sample.Load{{Kind: "rr",
			Options: sample.RROptions{Messages: sample.Messages{Request: 1, Reply: 1}}, Warmup: 0.1,
			Window: 0.3}}, Rounds: 4}, func(cfg *engine.Config) {
			cfg.Progress = func(p engine.Progress) {
				if p.Round == dies && p.Cell.Mode == mode.Native {
					began := time.Now()
					time.AfterFunc(100*time.Millisecond, func() {
						if err := end(s, e); err != nil {
							t.Error(err)
						}
						late.Store(time.Since(began) > 300*time.Millisecond)
					})
				}
			}
		})
	good, left := 0, 0
	for i, v := range f.Visits {
		cell := f.Header.Plan.Cells[v.Cell]
		switch {
		case cell.Mode == mode.Host && v.Failure == "":
			good++
		case cell.Mode == mode.Native && v.Round == dies && v.Failure == "" && late.Load():
		case cell.Mode == mode.Native && v.Round >= dies:
			left++
			if !strings.HasPrefix(v.Failure, "node e left: ") {
				t.Errorf("round %d: %s", v.Round, v.Failure)
			}
			if v.Round > dies && i+1 < len(f.Visits) &&
				f.Visits[i+1].At-v.At > quick.Seconds()*3/4 {
				t.Errorf("round %d waited for %g s", v.Round, f.Visits[i+1].At-v.At)
			}
		}
	}
	// a cell that fails often is left out of some rounds
	if good < 3 || left < 1 || left < 2 && !late.Load() {
		t.Errorf("%d good visits, %d of the node that left, of %d", good, left, len(f.Visits))
		for _, v := range f.Visits {
			t.Logf("round %d, cell %d at %g s: %s%s", v.Round, v.Cell, v.At, v.Failure,
				v.Witness.Evidence)
		}
	}
}
