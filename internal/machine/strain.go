package machine

import (
	"cmp"
	"maps"
	"os"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// Strain reads what slows a process down from outside: the limits of its cgroups, which are found
// once, and TCP in its network namespace.
type Strain struct {
	m           Machine
	process     string
	cpu, memory []string
}

// StrainOf returns the reader of a process, whose cgroups must be visible; 0 is this one.
func (m Machine) StrainOf(pid int) *Strain {
	process := self
	if pid != 0 {
		process = strconv.Itoa(pid)
	}
	return &Strain{m, process, m.cpuGroups(process), m.groups(process, "memory")}
}

func (s *Strain) apart() bool {
	its, err := os.Readlink(s.m.path("/proc/" + s.process + "/ns/net"))
	own, errOwn := os.Readlink(s.m.path("/proc/" + self + "/ns/net"))
	return err == nil && errOwn == nil && its != own
}

const ofGroup = " of "

// Read returns the known counters by the names that visits to endpoints use. The stops and periods
// of cgroups above the process's own have names that only Since understands.
func (s *Strain) Read() map[string]int64 {
	out := map[string]int64{}
	for i, dir := range s.cpu {
		of := "" // the process's own group
		if i > 0 {
			of = ofGroup + dir
		}
		stat := s.m.read(dir + "/cpu.stat")
		keys := map[string]string{"nr_throttled": workload.CountStops,
			"nr_periods": workload.CountPeriods}
		for key, count := range keys {
			if n, ok := counted(stat, key); ok {
				out[count+of] = int64(n)
			}
		}
	}
	for _, dir := range s.memory {
		n, ok := counted(s.m.read(dir+"/memory.events.local"), "max")
		// version 1
		if x, err := strconv.ParseUint(s.m.text(dir+"/memory.failcnt"), 10, 31); err == nil {
			n, ok = int(x), true
		}
		if ok {
			out[workload.CountMemoryHits] += int64(n)
		}
	}
	dir := "/proc/" + s.process + "/net/"
	more := kernelCounters(s.m.read(dir + "netstat"))
	tcp := kernelCounters(s.m.read(dir + "snmp"))
	for name, count := range map[string]string{"TcpExt ListenOverflows": workload.CountOverflows,
		"TcpExt DelayedACKs":   workload.CountDelayedACKs,
		"TcpExt TCPSynRetrans": workload.CountSynResent} {
		if n, ok := more[name]; ok {
			out[count] = n
		}
	}
	if drops, ok := more["TcpExt ListenDrops"]; ok { // each overflow is one
		out[workload.CountListenDrops] = drops - more["TcpExt ListenOverflows"]
	}
	for name, count := range map[string]string{"Tcp RetransSegs": workload.CountResent,
		"Tcp OutSegs": workload.CountSegments} {
		if n, ok := tcp[name]; ok {
			out[count] = n
		}
	}
	return out
}

// ofClients count the clients of a network namespace as well as its servers.
var ofClients = []string{workload.CountDelayedACKs, workload.CountResent, workload.CountSegments}

// Own returns a function like Read for a server. It leaves out what clients add to the counters of
// the network namespace if that is this process's.
func (s *Strain) Own() func() map[string]int64 {
	apart := s.apart()
	return func() map[string]int64 {
		out := s.Read()
		delete(out, workload.CountSynResent)
		for _, name := range ofClients {
			if !apart {
				delete(out, name)
			}
		}
		return out
	}
}

// Queues returns a function that reads only what listening sockets dropped in the process's network
// namespace.
func (s *Strain) Queues() func() map[string]int64 {
	return func() map[string]int64 {
		all, out := s.Read(), map[string]int64{}
		for _, name := range []string{workload.CountOverflows, workload.CountListenDrops} {
			if n, ok := all[name]; ok {
				out[name] = n
			}
		}
		return out
	}
}

// kernelCounters reads /proc/net/snmp and /proc/net/netstat: each line of names is followed by one
// of numbers. "Tcp RetransSegs" is one key.
func kernelCounters(text string) map[string]int64 {
	out := map[string]int64{}
	var names []string
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(names) == 0 || len(f) != len(names) || f[0] != names[0] {
			names = f
			continue
		}
		for i, word := range f[1:] {
			if n, err := strconv.ParseInt(word, 10, 64); err == nil {
				out[strings.TrimSuffix(f[0], ":")+" "+names[i+1]] = n
			}
		}
		names = nil
	}
	return out
}

// Since returns by how much the counters in both readings grew, by the names that visits to
// endpoints use. The stops by a CPU limit and its periods are those of the cgroup that was stopped
// most often or, among equals, had the most periods.
func Since(before, after map[string]int64) map[string]int64 {
	out, groups := map[string]int64{}, map[string]map[string]int64{}
	for name, n := range after {
		b, ok := before[name]
		if !ok {
			continue
		}
		n = max(0, n-b)
		count, dir, _ := strings.Cut(name, ofGroup)
		switch {
		case count != workload.CountStops && count != workload.CountPeriods:
			out[name] = n
		case groups[dir] == nil:
			groups[dir] = map[string]int64{count: n}
		default:
			groups[dir][count] = n
		}
	}
	var most map[string]int64
	for _, g := range groups {
		stops, ok := g[workload.CountStops]
		if ok && (most == nil || cmp.Or(cmp.Compare(stops, most[workload.CountStops]),
			cmp.Compare(g[workload.CountPeriods], most[workload.CountPeriods])) > 0) {
			most = g
		}
	}
	maps.Copy(out, most)
	return out
}
