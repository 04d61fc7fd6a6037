package published

import (
	"errors"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

var (
	errMode = errors.New("the study has no such mode there")
	tenGbit = sample.Wire{Rate: 10e9}
)

// The authors' setups as modes of the catalogue. Four of the five published ports of containers on
// the default bridge; one gave containers routable addresses by 1:1 NAT.
const (
	port      = mode.PublishDefault // a published port with an engine's defaults
	proxyOff  = mode.PublishNAT     // the same with "userland-proxy": false
	ownBridge = mode.BridgeDefault  // the container's address on the default bridge
	aliasNAT  = mode.NATAlias       // a macvlan alias of the machine for each container
)

// Studies returns the published comparisons, in the order of the data.
func Studies() []Study { return slices.Clone(studies) }

var studies = []Study{
	{
		Name:  "docker-networking-on-linux",
		Title: "Docker networking on Linux",
		URL:   "https://rabexc.org/posts/docker-networking",
		Setup: "iperf3 with 10 streams for 60 s from the machine to a published port of a container on the default bridge, CPU by mpstat; " +
			"a laptop with 4 cores",
		Baseline: string(port),
		Findings: []string{
			"through docker-proxy a published port carries less than through NAT or than host networking",
			"counting CPU, docker-proxy is further behind, and NAT is behind host networking",
		},
		Commands: []Command{
			{
				Args: "compare publish-default publish-nat --from host --to loopback --load bulk --streams 10", Save: "proxy.jsonl"}},
		Doubts: []string{
			"one thread of iperf3 served all ten streams (until 3.16 it had no more), here each stream has a thread. With host networking " +
				"half of its 4 cores stayed idle: two full threads were the limit, and hid what the paths could carry",
		},
		Streams: 10,
		ours:    proxyOurs, compare: proxyRatios,
	},
	{
		Name:  "llm-token-streaming-bridge-vs-host",
		Title: "Debugging Docker bridge network performance when running local LLM inference workloads with high token throughput",
		URL: "https://vipinpg.com/blog/debugging-docker-bridge-network-performance-when-running-local-llm-inference-workloads-" +
			"with-high-token-throughput",
		Setup: "a model's server behind a published port of the default bridge (publish-default here, which is docker-proxy at 127.0.0.1), its client on the same machine, 45-50 tokens/s; " +
			"approximate figures",
		Baseline: string(mode.Host),
		Findings: []string{
			"behind a published port a response takes over twice as long as with host networking",
			"behind a published port tokens pause for 200 ms and more in mid-stream, with host networking they do not",
			"the default network and a user-defined one do not differ",
			"dialling the host's address instead of localhost, past docker-proxy, makes responses faster",
			"larger packets, larger buffers, no NAT, macvlan or tokens in batches do not help",
		},
		Commands: streamCommands,
		Claims:   streamClaims(),
		Doubts: []string{
			"it does not say what was timed: its 280 and 120 ms are taken for responses of 6 tokens at 50 a second",
			"it gives no figures for networks, addresses and failed attempts: each is measured as a pair of modes, by response time, and " +
				"an attempt that did not help counts as no difference",
		},
		Response: 0.12, Pace: 50,
		ours: streamOurs, compare: streamRatios,
	},
	{
		Name:  "docker-network-performance-2014",
		Title: "Docker network performance",
		URL:   "http://digitarium.cc/docker-network-performance",
		Setup: "iperf for 5 s between containers of one machine, by number of clients; Docker 0.11, Linux 3.8, Open vSwitch 2.1 in the kernel. " +
			"Its iptables (routable addresses) gave each container on the default bridge a macvlan alias of the machine, with DNAT and SNAT 1:1",
		Baseline: "the first column at the same shape, and to the smallest shape of each column",
		Findings: []string{
			"Open vSwitch carries more than every other mode, whatever the number of clients",
			"pipework and link carry as much as aliases by NAT or more",
			"what a client gets falls as clients are added",
			"link mostly carries less than pipework (third table)",
			"four client containers with one process each carry more than one with four, but with Open vSwitch as much (third table)",
		},
		Mostly:   []int{3},
		Commands: crowdCommands,
		Takes:    "Each takes one to five minutes: many processes share the CPUs, so the windows are long.",
		Streams:  1,
		ours:     crowdOurs, compare: crowdRatios,
	},
	{
		Name:     "sql-server-docker-network-drivers-2019",
		Title:    "SQL Server containers and docker network driver performance considerations",
		URL:      "https://www.dbi-services.com/blog/sql-server-containers-and-docker-network-driver-performance-considerations/",
		Setup:    "iperf3 over a link of 10 Gbit/s, Docker 18.09. Its bridge is a published port of the default bridge: publish-default here",
		Baseline: string(mode.Native),
		Findings: []string{
			"host networking costs no throughput",
			"a published port costs throughput",
			"docker-proxy costs throughput, and more than NAT",
			"an overlay costs throughput, and more than a published port",
		},
		Doubts: []string{
			"its figures are iperf3's, not a database's, and no real SQL Server was measured here either",
			"10.3 cannot be: 10 Gbit/s carry at most 9.4 of TCP's payload with an MTU of 1500, 9.9 with one of 9000. " +
				"So ratios to native are lower bounds: 8.93 of 9.4 would be 0.95",
			"it says that its overlay is encrypted by default; only an overlay created with --opt encrypted is, so it is compared with overlay",
			"docker-proxy answers on the machine itself, so its row is compared with native and NAT there, over loopback. " +
				"The study's native and NAT ran over its link: the direction can be compared, the size cannot",
		},
		Commands: []Command{
			{
				Args: "compare native publish-default overlay --from remote,remote-container --load bulk --wire rate=10gbit", Save: "drivers.jsonl",
				Elsewhere: []Elsewhere{
					{"two machines, without the overlay",
						"compare native publish-default --from remote --load bulk --peer HOST"},
					{"a swarm's nodes, without the published port; host stands for native",
						"compare host overlay --load bulk --on swarm"},
				}},
			{Args: "compare native publish-default --from host --load bulk", Save: "local.jsonl"},
		},
		Streams: 1, Wire: tenGbit,
		ours: driverOurs, compare: driverRatios,
	},
	{
		Name:  "docker-host-vs-bridge-qperf",
		Title: "Docker network tests under host/bridge mode",
		URL:   "https://yangwwei.github.io/2017/11/22/docker-network-tests.html",
		Setup: "qperf tcp_bw and tcp_lat, means of 5. Client and server ran in the same mode, so a container dials a container; " +
			"between machines it dials a published port (publish-default), on one machine the other's address on the default bridge",
		Baseline: string(mode.Native),
		Findings: []string{
			"on one machine a bridge costs throughput and latency",
			"on one machine host networking costs latency, and hardly any throughput",
			"on one machine host networking's throughput is 15 % bigger than a bridge's, its latency 13 % less",
			"between machines neither costs throughput",
			"between machines a bridge costs latency, and host networking does not",
			"between machines host networking has less latency than a bridge, and the same throughput",
		},
		Commands: []Command{
			{Args: "compare native bridge-default --from host,container", Save: "one-machine.jsonl"},
			{Args: "compare native publish-default --from remote,remote-container --wire rate=10gbit",
				Save: "two-machines.jsonl", Elsewhere: []Elsewhere{{"two machines",
					"compare native publish-default --from remote,remote-container --peer HOST"}}},
		},
		Streams: 1, Wire: tenGbit,
		ours: qperfOurs, compare: qperfRatios,
	},
}

func proxyOurs(r Row) (Ours, error) {
	metric := workload.Throughput
	if r.Metric != throughput {
		metric = workload.PerBusyCore
	}
	switch mode.Name(r.Mode) {
	case mode.PublishProxy:
		return at(port, mode.FromHost, mode.ToLoopback, r.Load, metric), nil
	case mode.PublishNAT:
		return at(proxyOff, mode.FromHost, mode.ToLoopback, r.Load, metric), nil
	case mode.Host:
		return at(mode.Host, mode.FromHost, mode.ToLoopback, r.Load, metric), nil
	}
	return Ours{}, errMode
}

// The article compares throughput and the work of a busy core. The latter follows from its printed
// idle CPU time, unless it states the ratio itself.
func proxyRatios(es []Entry) []Comparison {
	row := func(m mode.Name, metric string) int {
		return find(es, func(e Entry) bool { return e.Mode == string(m) && e.Metric == metric })
	}
	var out []Comparison
	for _, m := range []mode.Name{mode.PublishNAT, mode.Host} {
		if c, ok := quotient(es, row(m, throughput), row(mode.PublishProxy, throughput), 0); ok {
			out = append(out, c)
		}
	}
	perCore := func(m mode.Name) float64 { // the number of cores cancels out in the ratio
		t, idle := row(m, throughput), row(m, cpuIdle)
		return workload.OnBusyCore(es[t].Value, es[idle].Value/100, 1)
	}
	out = append(out, Comparison{Of: row(mode.PublishNAT, cpuIdle),
		To:    row(mode.PublishProxy, cpuIdle),
		Ratio: perCore(mode.PublishNAT) / perCore(mode.PublishProxy), Finding: 1})
	for i, e := range es {
		if to, ok := strings.CutPrefix(e.Metric, adjusted); ok {
			out = append(out, Comparison{Of: i, To: row(mode.Name(to), cpuIdle), Ratio: e.Value,
				Stated: true, Finding: 1})
		}
	}
	return out
}

// streamOurs takes the study's bridge for a published port of the default bridge that is dialled at
// localhost, where docker-proxy answers.
func streamOurs(r Row) (Ours, error) {
	metric := workload.ResponseTime
	if r.Metric == spike {
		metric = workload.GapMax
	}
	switch mode.Name(r.Mode) {
	case mode.Host:
		return at(mode.Host, mode.FromHost, mode.ToLoopback, r.Load, metric), nil
	case mode.Bridge:
		return at(port, mode.FromHost, mode.ToLoopback, r.Load, metric), nil
	}
	return Ours{}, errMode
}

func streamRatios(es []Entry) []Comparison {
	row := func(m mode.Name) int {
		return find(es, func(e Entry) bool { return e.Mode == string(m) && e.Metric == response })
	}
	if c, ok := quotient(es, row(mode.Bridge), row(mode.Host), 0); ok {
		return []Comparison{c}
	}
	return nil
}

func driverOurs(r Row) (Ours, error) {
	switch m := mode.Name(r.Mode); m {
	case mode.Native, mode.Host:
		return at(m, mode.FromRemote, mode.ToAddress, r.Load, workload.Throughput), nil
	case mode.Bridge:
		return at(port, mode.FromRemote, mode.ToAddress, r.Load, workload.Throughput), nil
	case mode.PublishProxy:
		o := at(port, mode.FromHost, mode.ToLoopback, r.Load, workload.Throughput)
		o.Command = 1
		return o, nil
	case mode.Overlay:
		return at(m, mode.FromRemoteContainer, mode.ToContainer, r.Load, workload.Throughput), nil
	}
	return Ours{}, errMode
}

// driverRatios compares docker-proxy with modes on the machine itself, where docker-proxy answers.
func driverRatios(es []Entry) []Comparison {
	row := func(m mode.Name) int {
		return find(es, func(e Entry) bool { return e.Mode == string(m) && e.Metric == throughput })
	}
	local := map[mode.Name]Ours{
		mode.Native: at(mode.Native, mode.FromHost, mode.ToLoopback, workload.Bulk,
			workload.Throughput),
		mode.Bridge: at(port, mode.FromHost, mode.ToAddress, workload.Bulk, workload.Throughput),
	}
	var out []Comparison
	for _, x := range []struct {
		of, to  mode.Name
		finding int
	}{
		{mode.Host, mode.Native, 0},
		{mode.Bridge, mode.Native, 1},
		{mode.PublishProxy, mode.Native, 2},
		{mode.PublishProxy, mode.Bridge, 2},
		{mode.Overlay, mode.Native, 3},
		{mode.Overlay, mode.Bridge, 3},
	} {
		c, ok := quotient(es, row(x.of), row(x.to), x.finding)
		if !ok {
			continue
		}
		if x.of == mode.PublishProxy {
			f := local[x.to].Figure
			c.Against = &f
		}
		out = append(out, c)
	}
	return out
}

const (
	sameMachine = "same machine"
	twoMachines = "two machines"
)

func qperfOurs(r Row) (Ours, error) {
	metric, share := workload.Throughput, 0
	if r.Metric == oneWay {
		metric, share = workload.LatencyP50, 2 // half a round trip
	}
	near := map[mode.Name]Ours{
		mode.Native: at(mode.Native, mode.FromHost, mode.ToLoopback, r.Load, metric),
		mode.Host:   at(mode.Host, mode.FromContainer, mode.ToLoopback, r.Load, metric),
		mode.Bridge: at(ownBridge, mode.FromContainer, mode.ToContainer, r.Load, metric),
	}
	far := map[mode.Name]Ours{
		mode.Native: at(mode.Native, mode.FromRemote, mode.ToAddress, r.Load, metric),
		mode.Host:   at(mode.Host, mode.FromRemoteContainer, mode.ToAddress, r.Load, metric),
		mode.Bridge: at(port, mode.FromRemoteContainer, mode.ToAddress, r.Load, metric),
	}
	cells, command := near, 0
	if r.Placement != sameMachine {
		cells, command = far, 1
	}
	o, ok := cells[mode.Name(r.Mode)]
	if !ok {
		return o, errMode
	}
	o.Command, o.Share = command, share
	return o, nil
}

func qperfRatios(es []Entry) []Comparison {
	var out []Comparison
	for i, e := range es {
		for _, base := range []mode.Name{mode.Native, mode.Bridge} {
			if base == mode.Bridge && e.Mode != string(mode.Host) {
				continue
			}
			to := find(es, func(b Entry) bool {
				return b.Mode == string(base) && b.Placement == e.Placement && b.Metric == e.Metric
			})
			if c, ok := quotient(es, i, to, qperfFinding(e.Row, base)); ok {
				out = append(out, c)
			}
		}
	}
	return out
}

func qperfFinding(r Row, base mode.Name) int {
	near := r.Placement == sameMachine
	switch {
	case near && base == mode.Bridge:
		return 2
	case near && r.Mode == string(mode.Bridge):
		return 0
	case near:
		return 1
	case base == mode.Bridge:
		return 5
	case r.Metric == throughput:
		return 3
	}
	return 4
}
