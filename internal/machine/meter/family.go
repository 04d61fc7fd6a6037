package meter

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
)

// tick is the unit of /proc/PID/stat on every architecture.
const tick = 10 * time.Millisecond

// FamilyCPU returns the CPU time of a process, of its descendants, and of the ended children for
// which any of them has waited. It returns 0 if that is unknown.
func FamilyCPU(pid int) (spent time.Duration) {
	if _, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid)); err != nil {
		return 0 // no CONFIG_PROC_CHILDREN, or it has ended
	}
	for pid := range Family("/proc", pid) {
		spent += ProcessCPU(pid)
		if p, err := procfs.NewProc(pid); err == nil {
			if st, err := p.Stat(); err == nil {
				spent += time.Duration(st.CUTime+st.CSTime) * tick
			}
		}
	}
	return spent
}

// Family returns the directories of the threads of a process and of its descendants, by PID. proc
// is where procfs is mounted.
func Family(proc string, root int) map[int][]string {
	out := map[int][]string{}
	for next := []int{root}; len(next) > 0; next = next[1:] {
		pid := next[0]
		tasks, err := os.ReadDir(fmt.Sprintf("%s/%d/task", proc, pid))
		if _, seen := out[pid]; seen || err != nil {
			continue
		}
		for _, t := range tasks {
			dir := fmt.Sprintf("%s/%d/task/%s", proc, pid, t.Name())
			out[pid] = append(out[pid], dir)
			children, _ := os.ReadFile(dir + "/children") // CONFIG_PROC_CHILDREN
			for _, c := range strings.Fields(string(children)) {
				if child, err := strconv.Atoi(c); err == nil {
					next = append(next, child)
				}
			}
		}
	}
	return out
}
