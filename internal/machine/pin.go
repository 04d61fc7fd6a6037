package machine

import (
	"cmp"
	"errors"
	"slices"
)

// PinAuto chooses CPUs for the two ends of a load from those that the process
// may use; see Topology.Pin.
func (m Machine) PinAuto(threads int) (client, server []int, sameCore bool, err error) {
	return m.Topology().Pin(m.allowed(), threads)
}

// Pin chooses CPUs for client and server from allowed: the same number
// for each, as many as possible, at most threads. The ends never share a physical core
// unless only one is allowed, which sameCore reports; with a single CPU both
// get it. They share a package and a last-level cache where possible, and CPU
// 0, where most interrupts land, is left alone when more than four CPUs are
// allowed.
//
// An end gets a second CPU of a core only when the cores do not suffice.
// Client and server cores alternate, so that the i-th CPU of each are close
// to each other when there are several.
func (t Topology) Pin(allowed []int, threads int) (client, server []int, sameCore bool, err error) {
	threads = max(threads, 1)
	cores := leaveZero(t.cores(allowed))
	switch len(cores) {
	case 0:
		return nil, nil, false, errors.New("pin: none of the allowed CPUs is online")
	case 1:
		client, server = halves(cores[0].cpus, threads)
		return client, server, true, nil
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
	client, server = spread(clients), spread(servers)
	n := min(threads, len(client), len(server))
	return client[:n], server[:n], false, nil
}

// core is a physical core with the CPUs of it that may be used.
type core struct {
	CPU
	cpus []int
}

// cores groups the allowed CPUs that are online, in the order of their lowest
// CPU. Without a topology every CPU passes for a core.
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

// leaveZero takes CPU 0 out if there are more than four CPUs and still two
// cores without it; what is left of its core comes last.
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

// rank sorts cores so that the first ones fit together best: the package that
// has most of the cores that are needed comes first, within it the last-level
// cache that has, and otherwise they stay in the order given.
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

// spread lists the CPUs of cores so that every core's first comes before any
// core's second.
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

// halves shares one core's CPUs out; a single CPU goes to both ends.
func halves(cpus []int, threads int) (client, server []int) {
	if len(cpus) == 1 {
		return cpus, slices.Clone(cpus)
	}
	n := min(threads, len(cpus)/2)
	return cpus[:n:n], slices.Clone(cpus[n : 2*n])
}
