package workload

import (
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// Exec is a pair of foreign programs.
const Exec = "exec"

// ExecOf returns the load's options, or the zero value for other kinds.
func ExecOf(l sample.Load) sample.ExecOptions { return options[sample.ExecOptions](l) }

func gauges(l sample.Load) []sample.Gauge {
	p := ExecOf(l).Program
	switch {
	case p == nil:
		return nil
	case len(p.Gauges) == 0:
		return []sample.Gauge{{Name: Elapsed, Unit: "s", Lower: true}}
	}
	return p.Gauges
}

func gauge(l sample.Load, name string) (g sample.Gauge, ok bool) {
	for _, g := range gauges(l) {
		if g.Name == name {
			return g, true
		}
	}
	return g, false
}

func firstGauge(l sample.Load) sample.Gauge {
	if g := gauges(l); len(g) > 0 {
		return g[0]
	}
	return sample.Gauge{}
}

// Metrics of exec that its program does not print.
const (
	Elapsed  = sample.Elapsed
	BusyCPUs = "busy_cpus" // of the whole machine, programs and kernel
)

var exec = Workload{
	About: "A server and a client of yours, or of a recipe: toll run. What the client prints is compared.",
	Name:  Exec, Trips: true, trip: "run of the client", Foreign: true,
	// the primary is its program's first metric
	Apart:   "toll run starts programs on this machine only",
	words:   programWords,
	outline: programOutline,
	figures: (*Figures).program, work: runs,
	doubts: programDoubts,
}

// Alone reports whether a load is only a client, whose server was running already.
func Alone(l sample.Load) bool {
	p := ExecOf(l).Program
	return p != nil && p.Server == ""
}

func programWords(l sample.Load) string {
	p := ExecOf(l).Program
	switch {
	case p == nil:
		return l.Kind
	case p.Recipe != "":
		return fmt.Sprintf("%s, %d s", p.Recipe, p.Seconds)
	}
	return p.Client
}

func programOutline(l sample.Load) string {
	if ExecOf(l).Program == nil {
		return ""
	}
	client := "client: " + printable.Line(ExecOf(l).Program.Client)
	if Alone(l) {
		return client
	}
	return "server: " + printable.Line(ExecOf(l).Program.Server) + "\n" + client
}

func (f *Figures) program(v sample.Visit, l sample.Load) {
	if Alone(l) {
		f.client(v)
	}
	for name, x := range v.Values { // last: a program may use any name
		if _, ok := gauge(l, name); ok || name == Elapsed {
			f.set(name, x)
		}
	}
	if v.Elapsed >= Shortest && len(v.Machine) > 0 {
		f.set(BusyCPUs, f.busy/v.Elapsed)
	}
}

func (f *Figures) client(v sample.Visit) {
	f.suspects(v)
	if n, ok := v.Client.Counts[CountConnections]; ok {
		f.set(Dialled, float64(n))
	}
	if n, ok := v.Client.Counts[CountLookUp]; ok {
		f.set(LookUpTime, float64(n)/nsPerSecond)
	}
	if x := v.Client.TCP.RTT; x > 0 {
		f.set(RTT, x)
	}
}

func programDoubts(s Seen) []Doubt {
	told := 0
	for _, v := range s.Visits {
		n, ok := v.Client.Counts[CountConnections]
		if n > 0 {
			return nil
		}
		if ok {
			told++
		}
	}
	if told == 0 || !Alone(s.Load) {
		return nil
	}
	return []Doubt{{Code: Elsewhere}}
}

func runs(sample.Visit, sample.Load) float64 { return 1 }
