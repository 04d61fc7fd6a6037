package machine

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// PinError means that a placement on CPUs is impossible here.
type PinError struct {
	Pin string
	Why string
}

func (e *PinError) Error() string { return fmt.Sprintf("--pin %s: %s", e.Pin, e.Why) }

// Hint returns the possible placements.
func (e *PinError) Hint() string {
	return "--pin " + sample.PinNear + ", or --pin " + sample.PinNone
}

// Place chooses the CPUs of a placement, sample.PinFar or PinNear, for at most threads threads of
// each end. The error is a *PinError if the machine or the cgroup's CPU limit does not allow it.
func (m Machine) Place(pin string, threads int) (sample.CPUs, error) {
	t := m.topology()
	far, err := t.pin(m.allowed(), threads)
	if err != nil {
		return sample.CPUs{}, err
	}
	if pin == sample.PinNear {
		one := far.Client[:1]
		return sample.CPUs{Client: one, Server: one, Relay: one, SameCore: true,
			Distance: sample.SharedCPU}, nil
	}
	if slices.Equal(far.Client, far.Server) {
		return sample.CPUs{}, &PinError{pin, "this process may use one CPU only"}
	}
	if limit := m.cgroupCPUs(); limit > 0 && limit < 2 {
		return sample.CPUs{}, &PinError{pin, fmt.Sprintf(
			"the cgroup's CPU limit is %g CPUs, and client and server need one each", limit)}
	}
	far.Distance = t.distance(far.Client, far.Server)
	return far, nil
}

// Pinned returns the placement of client and server on one CPU each.
func (m Machine) Pinned(client, server int) sample.CPUs {
	t, a, b := m.topology(), []int{client}, []int{server}
	return sample.CPUs{Client: a, Server: b, SameCore: t.sameCore(a, b), Distance: t.distance(a, b)}
}

// distance returns what the closest CPUs of a and b share, in the words of sample.CPUs, or "".
func (t Topology) distance(a, b []int) string {
	far := []string{sample.SharedCPU, sample.SharedCore, sample.SharedCache, sample.SharedSocket,
		sample.SharedMachine}
	least := len(far)
	for _, x := range a {
		for _, y := range b {
			p, known := t.of(x)
			q, also := t.of(y)
			switch {
			case !known || !also:
			case x == y:
				least = 0
			case p.Core == q.Core:
				least = min(least, 1)
			case p.Cache >= 0 && p.Cache == q.Cache:
				least = min(least, 2)
			case p.Package >= 0 && p.Package == q.Package:
				least = min(least, 3)
			case p.Package >= 0:
				least = min(least, 4)
			}
		}
	}
	if least == len(far) {
		return ""
	}
	return far[least]
}

// pin chooses CPUs for client and server from allowed: the same number for each, at most threads.
// The ends share a physical core only if one alone is allowed; with a single CPU both get it. They
// share a package and a last-level cache where possible. CPU 0, where most interrupts arrive, is
// left alone when more than four CPUs are allowed.
func (t Topology) pin(allowed []int, threads int) (sample.CPUs, error) {
	threads = max(threads, 1)
	cores := leaveZero(t.cores(allowed))
	switch len(cores) {
	case 0:
		return sample.CPUs{}, errors.New("pin: none of the allowed CPUs is online")
	case 1:
		client, server := halves(cores[0].cpus, threads)
		return sample.CPUs{Client: client, Server: server, SameCore: true}, nil
	}
	rank(cores, 2*threads)
	var clients, servers []core
	for i, c := range cores {
		if i%2 == 0 {
			clients = append(clients, c)
		} else {
			servers = append(servers, c)
		}
	}
	client, server := spread(clients), spread(servers)
	n := min(threads, len(client), len(server))
	return sample.CPUs{Client: client[:n], Server: server[:n]}, nil
}

type core struct {
	CPU
	cpus []int
}

// cores groups the allowed online CPUs, ordered by their lowest CPU. Without a topology every CPU
// counts as a core.
func (t Topology) cores(allowed []int) []core {
	var cores []core
	for _, id := range slices.Compact(slices.Sorted(slices.Values(allowed))) {
		at, ok := t.of(id)
		if !ok && len(t) > 0 {
			continue
		}
		if !ok {
			at = CPU{ID: id, Core: id, Package: -1, Cache: -1}
		}
		i := slices.IndexFunc(cores, func(c core) bool { return c.Core == at.Core })
		if i < 0 {
			cores = append(cores, core{CPU: at, cpus: []int{id}})
			continue
		}
		cores[i].cpus = append(cores[i].cpus, id)
	}
	return cores
}

func leaveZero(cores []core) []core {
	total := 0
	for _, c := range cores {
		total += len(c.cpus)
	}
	if total <= 4 || len(cores) < 2 || cores[0].cpus[0] != 0 {
		return cores
	}
	if rest := cores[0].cpus[1:]; len(rest) > 0 {
		return append(slices.Clone(cores[1:]), core{cores[0].CPU, rest})
	}
	if len(cores) > 2 {
		return cores[1:]
	}
	return cores
}

// rank sorts the cores by how many of the needed number their package has and, within a package, by
// how many their last-level cache has, the most first.
func rank(cores []core, need int) {
	type cache struct{ pkg, cache int }
	inPackage, inCache := make(map[int]int), make(map[cache]int)
	for _, c := range cores {
		inPackage[c.Package]++
		inCache[cache{c.Package, c.Cache}]++
	}
	best, first := make(map[int]int), make(map[int]int)
	firstInCache := make(map[cache]int)
	for i, c := range slices.Backward(cores) {
		key := cache{c.Package, c.Cache}
		best[c.Package] = max(best[c.Package], min(need, inCache[key]))
		first[c.Package], firstInCache[key] = i, i
	}
	slices.SortStableFunc(cores, func(a, b core) int {
		ka, kb := cache{a.Package, a.Cache}, cache{b.Package, b.Cache}
		return cmp.Or(
			cmp.Compare(min(need, inPackage[b.Package]), min(need, inPackage[a.Package])),
			cmp.Compare(best[b.Package], best[a.Package]),
			cmp.Compare(first[a.Package], first[b.Package]),
			cmp.Compare(min(need, inCache[kb]), min(need, inCache[ka])),
			cmp.Compare(firstInCache[ka], firstInCache[kb]),
		)
	})
}

// spread returns the cores' CPUs: first one of each core, then a second one, and so on.
func spread(cores []core) []int {
	var cpus []int
	for i, more := 0, true; more; i++ {
		more = false
		for _, c := range cores {
			if i < len(c.cpus) {
				cpus, more = append(cpus, c.cpus[i]), true
			}
		}
	}
	return cpus
}

// halves divides one core's CPUs between both ends; a single CPU goes to both.
func halves(cpus []int, threads int) (client, server []int) {
	if len(cpus) == 1 {
		return cpus, slices.Clone(cpus)
	}
	n := min(threads, len(cpus)/2)
	return cpus[:n:n], slices.Clone(cpus[n : 2*n])
}

// AffinityOf returns the CPUs that a process's main thread may run on, in order.
func AffinityOf(pid int) ([]int, error) {
	set := unix.NewCPUSet(maxCPUs)
	if err := unix.SchedGetaffinityDynamic(pid, set); err != nil {
		return nil, fmt.Errorf("get affinity of process %d: %w", pid, err)
	}
	var cpus []int
	for i := range maxCPUs {
		if set.IsSet(i) {
			cpus = append(cpus, i)
		}
	}
	return cpus, nil
}

// SetAffinity moves all threads of a process to the given CPUs. It ignores threads that end
// meanwhile.
func SetAffinity(pid int, cpus []int) error {
	set := unix.NewCPUSet(maxCPUs)
	for _, c := range cpus {
		set.Set(c)
	}
	moved := map[int]bool{}
	for { // a thread that was not yet moved may have started another
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			return fmt.Errorf("list threads of process %d: %w", pid, err)
		}
		found := false
		for _, t := range tasks {
			tid, err := strconv.Atoi(t.Name())
			if err != nil || moved[tid] {
				continue
			}
			moved[tid], found = true, true
			if err := unix.SchedSetaffinityDynamic(tid, set); err != nil &&
				!errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("move thread %d of process %d to the CPUs %v: %w", tid, pid, cpus,
					err)
			}
		}
		if !found {
			return nil
		}
	}
}
