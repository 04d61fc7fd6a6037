package meter

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// Pair is a client and its server: processes of this machine, each with its children.
type Pair struct{ Client, Server int }

const (
	sampleStep = 10 * time.Millisecond
	// renewEvery is the number of samples after which the busiest threads are determined again.
	renewEvery   = 10
	leastSamples = 5
)

// Together samples on which CPUs the busiest threads of each pair run. stop returns the share of
// the samples in which client and server were on one CPU, or nil if unknown. A sleeping thread
// counts where it ran last.
func (m *Meter) Together(pairs ...Pair) (stop func() *float64) {
	done, result := make(chan struct{}), make(chan *float64, 1)
	go func() { result <- together(pairs, done) }()
	return func() *float64 {
		close(done)
		return <-result
	}
}

func together(pairs []Pair, done <-chan struct{}) *float64 {
	ends := make([][2]end, len(pairs))
	for i, p := range pairs {
		ends[i] = [2]end{{root: p.Client}, {root: p.Server}}
	}
	same, all := 0, 0
	step := time.NewTicker(sampleStep)
	defer step.Stop()
	for n := 0; ; n++ {
		for i := range ends {
			client, server := &ends[i][0], &ends[i][1]
			if n%renewEvery == 0 || n == 1 {
				client.renew()
				server.renew()
			}
			a, b := client.cpu(), server.cpu()
			if a < 0 || b < 0 {
				continue
			}
			if all++; a == b {
				same++
			}
		}
		select {
		case <-step.C:
			continue
		case <-done:
		}
		if all < leastSamples {
			return nil
		}
		share := float64(same) / float64(all)
		return &share
	}
}

type end struct {
	root    int
	spent   map[string]int // ns, by the thread's directory; nil before the first renewal
	busiest string         // thread; "": unknown
}

// renew determines the thread that has used most since the last renewal, so that what a program's
// parent used before does not count.
func (e *end) renew() {
	now := map[string]int{}
	for _, threads := range Family("/proc", e.root) {
		for _, dir := range threads {
			if used, ok := threadCPU(dir); ok {
				now[dir] = used
			}
		}
	}
	most := 0
	for thread, used := range now {
		if d := used - e.spent[thread]; e.spent != nil && d > most {
			most, e.busiest = d, thread
		}
	}
	if _, alive := now[e.busiest]; !alive {
		e.busiest = ""
	}
	e.spent = now
}

// cpu returns the CPU on which the busiest thread runs or ran last, or -1.
func (e *end) cpu() int {
	if e.busiest != "" {
		if _, cpu, ok := threadStat(e.busiest); ok {
			return cpu
		}
	}
	return -1
}

// threadCPU returns the CPU time of a thread in ns, but to the tick without CONFIG_SCHED_INFO.
func threadCPU(dir string) (ns int, ok bool) {
	b, err := os.ReadFile(dir + "/schedstat")
	if first, _, found := strings.Cut(string(b), " "); err == nil && found {
		ns, err = strconv.Atoi(first)
		return ns, err == nil
	}
	ticks, _, ok := threadStat(dir)
	return ticks * int(tick), ok
}

func threadStat(dir string) (ticks, cpu int, ok bool) {
	b, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return 0, 0, false
	}
	return parseThread(string(b))
}

func parseThread(stat string) (ticks, cpu int, ok bool) {
	const user, system, processor = 11, 12, 36 // after the name, which may contain anything
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) <= processor {
		return 0, 0, false
	}
	var n [3]int
	for i, f := range []string{fields[user], fields[system], fields[processor]} {
		x, err := strconv.Atoi(f)
		if err != nil {
			return 0, 0, false
		}
		n[i] = x
	}
	return n[0] + n[1], n[2], true
}
