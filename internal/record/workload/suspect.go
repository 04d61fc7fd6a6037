package workload

import "github.com/bridgetoll/bridgetoll/internal/record/sample"

// Suspect is a possible cause of an endpoint's slowness, besides the route and the model, that is
// counted during visits. The suspects are the same for all loads of endpoints.
type Suspect struct {
	Metric string
	Unit   string
	Server bool   // the server's; else the client's or the shared machine's
	Of     string // the metric that its total is a part of; "": none
	// Least is the share of Of, or of the whole if the metric is a share, from which the suspect is
	// reported; 0: any.
	Least float64
	// Often means that fewer than a quarter of the rounds with some are too few to be reported.
	Often bool
	// Says is a clause with %[1]s for the total or the share, and %[2]s for the total of Of; "":
	// another suspect includes it. Alone is for files without Of.
	Says, Alone string
	One         string // for a total of 1 without Of; "": Says or Alone
	None        string // for a known total of 0; "": no clause

	explain string
	count   string                                    // its name in its end's counts
	share   func(v sample.Visit) (x float64, ok bool) // of suspects that visits do not count
}

const (
	LookUpTime      = "name_lookup_time"
	KeptExcess      = "kept_connection_excess" // of chat and batch
	Resent          = "resent_segments"        // by the client
	ClientSent      = "sent_segments"
	ResentConnects  = "resent_connection_requests"
	OutOfOrder      = "out_of_order_segments" // at the client
	Stops           = "cpu_limit_stops"
	Periods         = "cpu_limit_periods"
	MemoryHits      = "memory_limit_hits"
	DelayedACKs     = "delayed_acks"
	RefusedDials    = "refused_connections" // or not answered
	NoPortDials     = "connections_without_port"
	PortUse         = "local_port_use"
	ProxyPortUse    = "proxy_port_use"
	ServerResent    = "server_resent_segments"
	ServerSent      = "server_sent_segments"
	ServerStops     = "server_cpu_limit_stops"
	ServerPeriods   = "server_cpu_limit_periods"
	ServerHits      = "server_memory_limit_hits"
	ServerDelayed   = "server_delayed_acks"
	ServerOverflows = "server_listen_overflows"
	ServerDrops     = "server_listen_drops"
	BusyShare       = "busy_share"    // of all the machine's CPUs
	SoftIRQShare    = "softirq_share" // of the CPU that has most of it
)

// The suspects' names in the counts of their end.
const (
	ValueLookUp      = "lookup"
	ValueKeptExcess  = "kept_excess"
	CountLookUp      = "lookup_ns" // of a foreign client, whose metrics may be called lookup
	CountConnections = "connections"
	CountResent      = "resent"
	CountOutOfOrder  = "out_of_order"
	CountStops       = "stops"
	CountPeriods     = "cpu_periods"
	CountMemoryHits  = "memory_hits"
	CountDelayedACKs = "delayed_acks"
	CountOverflows   = "listen_overflows"
	CountListenDrops = "listen_drops" // for other reasons than an overflow
	CountSynResent   = "syn_resent"
	CountRefused     = "refused"
	CountNoPort      = "no_port"
	CountPortsUsed   = "ports_used"  // local ports of connections to the address
	CountPortRange   = "ports_there" // that a connection may have
	CountSegments    = "segments"    // sent by the end's network namespace
	// countServerStops is ServerStops in files before 0.2.0, among the client's counts.
	countServerStops = "server_stops"
)

const (
	limitReached = "its cgroup reached its memory limit"
	noPortWords  = " failed because no local port was left: let the client keep connections open, or widen net.ipv4.ip_local_port_range"
	queueRemedy  = ": let the server listen with a larger backlog (net.core.somaxconn caps it)"
	dropRemedy   = " before they were accepted: too many half-open ones (net.ipv4.tcp_max_syn_backlog), or no memory"
	served       = "For an endpoint that this machine, or the peer of toll stream, serves: "
	servedApart  = "For an endpoint that this machine serves in a network namespace of its own, or the peer of toll stream: "
	delayedWords = "acknowledgements that were delayed until their timer of 40 ms or more had run out, in the network namespace of the "
)

var suspects = []Suspect{
	{Metric: Resent, Unit: "segments", count: CountResent, Of: ClientSent, Least: 0.001,
		Often: true, Says: "%[1]s of %[2]s segments were sent again",
		Alone: "%[1]s segments were sent again",
		One:   "1 segment was sent again", None: "no segment was lost or out of order",
		explain: "For an endpoint: segments that the client's side sent again, because they were lost or late."},
	{Metric: ClientSent, Unit: "segments", count: CountSegments,
		explain: "For an endpoint: segments that the client's connections sent."},
	{Metric: ResentConnects, Unit: "segments", count: CountSynResent,
		explain: "For an endpoint: requests to connect (SYN) that the client's network namespace sent again, because no answer came: the server's listen queue was full, or they were lost."},
	{Metric: OutOfOrder, Unit: "segments", count: CountOutOfOrder, Often: true,
		Says:    "%[1]s segments came out of order",
		One:     "1 segment came out of order",
		explain: "For an endpoint: segments that came to the client before others that were due: what the server's side sent again, or the path reordered."},
	{Metric: Stops, Unit: "stops", count: CountStops, Of: Periods,
		Says:    "the client's CPU limit stopped it in %[1]s of %[2]s periods",
		Alone:   "the client's CPU limit stopped it %[1]s times",
		One:     "the client's CPU limit stopped it once",
		None:    "no CPU limit stopped the client",
		explain: "For an endpoint: in how many periods the CPU limit of the client's cgroup, or of the container that it is in, stopped it."},
	{Metric: Periods, Unit: "periods", count: CountPeriods,
		explain: "For an endpoint: the periods of the client's CPU limit, of 100 ms if nothing else is set, in which it ran."},
	{Metric: MemoryHits, Unit: "times", count: CountMemoryHits,
		Says: "the client's memory limit was reached %[1]s times",
		One:  "the client's memory limit was reached once",
		None: "the client's memory sufficed",
		explain: "For an endpoint: how often the client's side needed memory when " + limitReached +
			"."},
	{Metric: RefusedDials, Unit: "connections", count: CountRefused,
		Says:    "%[1]s connections to its host were refused or not answered",
		One:     "1 connection to its host was refused or not answered",
		None:    "no connection failed",
		explain: "For an endpoint: connections to its host that were never established, because it refused them or did not answer, those of failed visits among them."},
	{Metric: NoPortDials, Unit: "connections", count: CountNoPort,
		Says: "%[1]s connections" + noPortWords, One: "1 connection" + noPortWords,
		explain: "For an endpoint: connections to its host that failed because all local ports were used up (EADDRNOTAVAIL), those of failed visits among them."},
	{Metric: PortUse, Unit: "1", Least: 0.9,
		Says:    "%[1]s of the local ports are used up, most by ended connections in TIME_WAIT",
		share:   portUse,
		explain: "For toll run HOST:PORT: the share of the client's local ports (net.ipv4.ip_local_port_range) that connections to the route's address had at its end, those in TIME_WAIT among them."},
	{Metric: ProxyPortUse, Unit: "1", Least: 0.9,
		Says:    "%[1]s of the local ports between docker-proxy and its container are used up, most by ended connections in TIME_WAIT: it closes clients' connections that it cannot forward",
		share:   proxyPortUse,
		explain: "For an endpoint behind a docker-proxy of this machine: the share of the local ports (net.ipv4.ip_local_port_range) that connections to the container had at the visit's end, those in TIME_WAIT among them."},
	{Metric: DelayedACKs, Unit: "segments", count: CountDelayedACKs,
		explain: "For an endpoint: " + delayedWords + "client."},

	{Metric: ServerStops, Unit: "stops", Server: true, count: CountStops, Of: ServerPeriods,
		Says:    "its CPU limit stopped it in %[1]s of %[2]s periods",
		Alone:   "its CPU limit stopped it %[1]s times",
		One:     "its CPU limit stopped it once",
		None:    "no CPU limit stopped the server",
		explain: served + "in how many periods the CPU limit of the server's cgroup or container stopped it. Its answers wait meanwhile, over every route alike."},
	{Metric: ServerPeriods, Unit: "periods", Server: true, count: CountPeriods,
		explain: served + "the periods of the server's CPU limit in which it ran."},
	{Metric: ServerHits, Unit: "times", Server: true, count: CountMemoryHits,
		Says:    "its memory limit was reached %[1]s times",
		One:     "its memory limit was reached once",
		None:    "the server's memory sufficed",
		explain: served + "how often the server needed memory when " + limitReached + "."},
	{Metric: ServerOverflows, Unit: "connections", Server: true, count: CountOverflows,
		Says:    "listen queues in its network namespace overflowed %[1]s times" + queueRemedy,
		One:     "a listen queue in its network namespace overflowed once" + queueRemedy,
		None:    "the server's listen queue did not overflow",
		explain: served + "connections that were dropped because a listen queue in the server's network namespace was full (ListenOverflows of nstat). The client tries again after 1 s."},
	{Metric: ServerDrops, Unit: "connections", Server: true, count: CountListenDrops,
		Says:    "%[1]s connections were dropped in its network namespace" + dropRemedy,
		One:     "1 connection was dropped in its network namespace" + dropRemedy,
		explain: served + "connections that listening sockets in the server's network namespace dropped although their queue was not full (ListenDrops of nstat, without ListenOverflows)."},
	{Metric: ServerResent, Unit: "segments", Server: true, count: CountResent, Of: ServerSent,
		Least: 0.001, Says: "its network namespace sent %[1]s of %[2]s segments again",
		explain: servedApart + "segments that this namespace sent again."},
	{Metric: ServerSent, Unit: "segments", Server: true, count: CountSegments,
		explain: servedApart + "segments that this namespace sent."},
	{Metric: ServerDelayed, Unit: "segments", Server: true, count: CountDelayedACKs,
		explain: servedApart + "" +
			delayedWords + "server."},

	{Metric: BusyShare, Unit: "1", Least: 0.95, share: busyShare,
		Says:    "the CPUs of the client's machine were busy for %[1]s of the time",
		None:    "the machine's CPUs were not full",
		explain: "For an endpoint: the share of the time of all CPUs of the client's machine that was not idle."},
	{Metric: SoftIRQShare, Unit: "1", Least: 0.5, share: softIRQShare,
		Says:    "interrupts of the network took %[1]s of a CPU's time",
		explain: "For an endpoint: the share of its time that the CPU of the client's machine with most interrupts spent in them, hard and soft."},
}

// Suspects returns all suspects, the client's first.
func Suspects() []Suspect { return suspects }

func suspectMetrics() (out []Metric) {
	for _, s := range suspects {
		out = append(out, Metric{Name: s.Metric, Unit: s.Unit, Sum: s.share == nil,
			Words: s.explain})
	}
	return out
}

func (f *Figures) suspects(v sample.Visit) {
	if n, ok := v.Client.Counts[countServerStops]; ok {
		f.set(ServerStops, float64(n))
	}
	for _, s := range suspects {
		if s.share != nil {
			if x, ok := s.share(v); ok {
				f.set(s.Metric, x)
			}
			continue
		}
		counts := v.Client.Counts
		if s.Server {
			counts = v.Server.Counts
		}
		if n, ok := counts[s.count]; ok { // absent in older files
			f.set(s.Metric, float64(n))
		}
	}
}

// FailedDials returns a failed visit's failed connections to an endpoint, by metric.
func FailedDials(v sample.Visit) map[string]float64 {
	out := map[string]float64{}
	for metric, count := range map[string]string{RefusedDials: CountRefused,
		NoPortDials: CountNoPort} {
		if n, ok := v.Client.Counts[count]; ok {
			out[metric] = float64(n)
		}
	}
	return out
}

// portUse returns the used share of the local ports for connections to the address.
func portUse(v sample.Visit) (float64, bool) { return usedPorts(v.Client.Counts) }

// proxyPortUse returns the same for a docker-proxy's connections to the server.
func proxyPortUse(v sample.Visit) (float64, bool) { return usedPorts(v.Server.Counts) }

func usedPorts(counts map[string]int64) (float64, bool) {
	all := counts[CountPortRange]
	return float64(counts[CountPortsUsed]) / float64(max(1, all)), all > 0
}

func busyShare(v sample.Visit) (float64, bool) {
	if v.Elapsed < Shortest || len(v.Machine) == 0 {
		return 0, false
	}
	return min(1, Busy(v)/v.Elapsed/float64(len(v.Machine))), true
}

// softIRQShare returns the largest share of one CPU.
func softIRQShare(v sample.Visit) (most float64, ok bool) {
	if v.Elapsed < Shortest || len(v.Machine) == 0 {
		return 0, false
	}
	for _, c := range v.Machine {
		most = max(most, (c.IRQ+c.SoftIRQ)/v.Elapsed)
	}
	return min(1, most), true
}
