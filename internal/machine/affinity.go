package machine

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

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
