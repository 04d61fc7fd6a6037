package analysis

import "github.com/bridgetoll/bridgetoll/internal/sample"

// traffic is what the judge knows of a load.
type traffic struct {
	primary string // the metric that decides a cell's toll
	noun    string // primary in words: "0.9 of host's throughput", "1.2 times host's median latency"
	rate    string // the metric of how much gets through
	// add adds a visit's metrics; busy is the CPU time that the machine was busy.
	add func(s *series, v sample.Visit, l sample.Load, busy float64)
	// work is what a visit got done, of which CPUSplit says the price: payload bytes
	// or, if trips is true, transactions.
	work    func(v sample.Visit, l sample.Load) float64
	trips   bool
	foreign bool // somebody else's programs: what the load's own processes count is not there
	brief   bool // its connections end with their trips: the kernel keeps nothing of them
}

var traffics = map[string]traffic{
	"query":  {primary: LatencyP50, noun: "median page time", rate: Transactions, add: (*series).addPages, work: pages, trips: true},
	"bulk":   {primary: Throughput, noun: "throughput", rate: Throughput, add: (*series).addTransfer, work: moved},
	"rr":     {primary: LatencyP50, noun: "median latency", rate: Transactions, add: (*series).addRequests, work: answered, trips: true},
	"stream": {primary: LatencyP50, noun: "median token delay", rate: TokenRate, add: (*series).addTokens, work: tokens, trips: true},
	"crr":    {primary: Connections, noun: "connections a second", rate: Connections, add: (*series).addConnections, work: trips, trips: true, brief: true},

	"sql":  {primary: LatencyP50, noun: "median page time", rate: Transactions, add: (*series).addSQL, work: pages, trips: true, foreign: true},
	"chat": {primary: ResponseTime, noun: "median response time", rate: WordRate, add: (*series).addChat, work: tokens, trips: true, foreign: true},
	"exec": {add: (*series).addProgram, work: runs, trips: true, foreign: true},

	"udp":    {primary: Throughput, noun: "throughput", rate: Throughput, add: (*series).addDatagrams, work: received},
	"udp-rr": {primary: LatencyP50, noun: "median latency", rate: Transactions, add: (*series).addUDPTrips, work: trips, trips: true},
}

// trafficOf is what is known of a load; one of a later toll is judged as bulk.
func trafficOf(l sample.Load) traffic {
	t, ok := traffics[l.Kind]
	if g := l.FirstGauge(); g.Name != "" {
		t.primary, t.rate, t.noun = g.Name, g.Name, g.Name
		if g.Name == Elapsed {
			t.noun = "run time"
		}
	}
	if ok {
		return t
	}
	return traffics["bulk"]
}

func received(v sample.Visit, l sample.Load) float64 { return float64(receiver(v, l).Received) }
func trips(v sample.Visit, _ sample.Load) float64    { return float64(v.Client.Trips) }

// addStream adds a visit of bulk.
func (s *series) addStream(v sample.Visit, l sample.Load, busy float64) {
	r := receiver(v, l)
	s.addBulk(v, float64(r.Received)/r.Window, busy)
}

// addRoundTrips adds a visit of rr.
func (s *series) addRoundTrips(v sample.Visit, _ sample.Load, busy float64) {
	s.addLatency(v)
	s.addTrips(v, float64(v.Client.Trips)/v.Client.Window, busy)
}
