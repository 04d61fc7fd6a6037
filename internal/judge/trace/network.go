package trace

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// network finds what the kernel adds to requests over the route of cell i, or to their connections.
func (s *study) network(t *Trace, i int) (out []Finding) {
	path, _ := s.File.Header.PathOf(s.Series[i].Cell)
	for _, f := range slices.Concat(s.asleep(t, i), bridged(path.Frames, t.inBridge()),
		moved(path.Steered), full(s.queues(i))) {
		if !tells(out, f) { // devices in several namespaces may have one name
			out = append(out, f)
		}
	}
	return out
}

// asleep finds processes that a request mostly waits for because they sleep when it comes.
func (s *study) asleep(t *Trace, i int) []Finding {
	const (
		least = 20e-6 // s
		most  = 0.5   // of a request
		fair  = 4     // one that has less than this part of all is not named
	)
	each := map[string][]float64{} // by process, in rounds
	for _, x := range s.cells[i].by[sample.Traced] {
		took := map[string]float64{}
		for _, p := range x.Sleepers {
			took[p.Process] += p.Took
		}
		for name, sum := range took {
			each[name] = append(each[name], sum)
		}
	}
	whole, sum, slept := 0.0, 0.0, 0.0
	for _, r := range t.Rows {
		if r.Mine != nil {
			whole += *r.Mine
		}
		for _, p := range r.Parts {
			if p.Name == inSleep && p.Mine != nil {
				slept += *p.Mine
			}
		}
	}
	for _, xs := range each {
		sum += stats.Median(xs)
	}
	maps.DeleteFunc(each, func(_ string, xs []float64) bool { return fair*stats.Median(xs) < sum })
	sum = min(sum, slept) // which is without what tracing costs
	if sum < least || sum < most*whole || whole == 0 {
		return nil
	}
	names := slices.SortedFunc(maps.Keys(each), func(a, b string) int {
		return cmp.Or(cmp.Compare(stats.Median(each[b]), stats.Median(each[a])), cmp.Compare(a, b))
	})
	return []Finding{{Finding: analysis.Finding{Code: Sleep, Names: names,
		Values: map[string]float64{Took: sum, Whole: whole}}}}
}

// inSleep is the name of a part of a process's row.
const inSleep = "asleep"

// inBridge returns the time that a request over a route takes in a bridge, or nil if that is not known.
func (t *Trace) inBridge() *float64 {
	if row := t.Row(rowNetwork); row != nil {
		for _, p := range row.Parts {
			if strings.HasPrefix(p.Name, rowBridge) {
				return p.Mine
			}
		}
	}
	return nil
}

// OfServed returns what the kernel adds to the requests that a server answered, or to their
// connections.
func OfServed(s *sample.Served) []Finding {
	var queues []sample.AcceptQueue
	if s.Queue != nil {
		queues = append(queues, *s.Queue)
	}
	return slices.Concat(bridged(s.Frames, nil), moved(s.Steered), full(queues))
}

// bridged finds frames that iptables sees. took is the time that a request takes in the bridge; nil: it
// is not known.
func bridged(x *sample.Frames, took *float64) []Finding {
	if x == nil || took != nil && *took < leastFrames {
		return nil
	}
	f := Finding{Finding: analysis.Finding{Code: BridgedFrames, What: x.Bridge,
		Names: []string{x.Switch}}}
	if took != nil {
		f.Values = map[string]float64{Took: *took}
	}
	switch {
	case x.Off == "":
	case x.Changed != nil && *x.Changed == 0:
		f.Why, f.Command = Tried, x.Off
	case x.Changed != nil:
		f.Why, f.N, f.Command = Tried, *x.Changed, tryIt(x.Off)
	default:
		f.Why, f.Command = Untried, tryIt(x.Off)
	}
	return []Finding{f}
}

// tryIt returns the command that tries others in a copy of the machine's network.
func tryIt(commands string) string { return "sudo toll ports --try '" + commands + "'" }

// withoutRPS returns the command after which no queue of a device leaves packets to other CPUs.
func withoutRPS(device string) string {
	return "echo 0 | sudo tee /sys/class/net/" + device + "/queues/rx-*/rps_cpus"
}

// moved finds devices whose packets mostly wait long for another CPU.
func moved(all []sample.Steered) (out []Finding) {
	const (
		least = 20 // packets
		most  = 0.5
	)
	for _, x := range all {
		share := float64(x.Moved) / float64(max(1, x.Packets))
		if x.Packets < least || share < most || x.Wait < longWait {
			continue
		}
		f := Finding{Finding: analysis.Finding{Code: Steered, What: x.Device,
			Values: map[string]float64{Share: share, Took: x.Wait}}}
		if x.Moved < x.Packets {
			f.Values[Whole] = x.Stay
		}
		if !x.Apart {
			f.Why = Untried
			f.Command = withoutRPS(x.Device)
		}
		out = append(out, f)
	}
	return out
}

// full finds queues of connections that were full.
func full(all []sample.AcceptQueue) (out []Finding) {
	for _, q := range all {
		f := Finding{Finding: analysis.Finding{Code: QueueFull, Why: ByProgram,
			What: cmp.Or(q.Process, fmt.Sprintf("port %d", q.Port)), N: q.Dropped,
			Values: map[string]float64{Backlog: float64(q.Backlog), Somaxconn: float64(q.Most),
				Port: float64(q.Port)}}}
		switch {
		case q.Backlog < q.Most:
		case q.Apart:
			f.Why = ByKernelApart
		default:
			f.Why = ByKernel
		}
		out = append(out, f)
	}
	return out
}

// queues adds up the queues that were full in the traced epochs of cell i and of its control, whose
// requests go over the same route: what was dropped since an epoch of one is in the next one's.
func (s *study) queues(i int) (out []sample.AcceptQueue) {
	all := s.cells[i].all
	for o, x := range s.Series {
		if b, ok := s.BaselineOf(o); ok && b == i && x.Cell.Control {
			all = slices.Concat(all, s.cells[o].all)
		}
	}
	for _, x := range all {
		for _, q := range x.Queues {
			k := slices.IndexFunc(out, func(o sample.AcceptQueue) bool {
				return o.Process == q.Process && o.Port == q.Port
			})
			if k < 0 {
				out = append(out, q)
				continue
			}
			q.Dropped += out[k].Dropped
			out[k] = q
		}
	}
	return out
}
