package machine

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Crowd has what a load needs at one time.
type Crowd struct {
	Threads int    // of all processes together
	Files   int    // open in this process
	Memory  uint64 // bytes
}

// HeadroomError reports what the machine lacks.
type HeadroomError struct {
	What       string // "open files"
	Need, Have uint64
	Limit      string // with its number: "ulimit -u is 20"; "" if unknown
	Remedy     string
}

func (e *HeadroomError) Error() string {
	limit := ""
	if e.Limit != "" {
		limit = " (" + e.Limit + ")"
	}
	return fmt.Sprintf("not enough %s: need about %d, have %d%s", e.What, e.Need, e.Have,
		limit)
}

func (e *HeadroomError) Hint() string { return e.Remedy }

// Headroom returns a *HeadroomError if known limits of this process, its cgroups or the machine's
// memory leave too little for c.
func (m Machine) Headroom(c Crowd) error {
	const fewer = "measure less at a time, or "
	limits := m.read("/proc/self/limits")
	checks := []struct {
		what   string
		need   uint64
		have   uint64
		known  bool
		limit  string
		remedy string
	}{
		{what: "open files", need: uint64(c.Files),
			remedy: fewer + "ulimit -n " + strconv.Itoa(c.Files)},
		{what: "threads of this user", need: uint64(c.Threads)},
		{what: "threads in this cgroup", need: uint64(c.Threads),
			remedy: fewer + "raise pids.max (docker run --pids-limit)"},
		{what: "bytes of memory in this cgroup", need: c.Memory,
			remedy: fewer + "raise memory.max"},
		{what: "bytes of memory", need: c.Memory,
			remedy: "measure less at a time, or close other programs"},
	}
	if most, known := softLimit(limits, "Max open files"); known {
		checks[0].have, checks[0].known, checks[0].limit = most, true,
			fmt.Sprintf("ulimit -n is %d", most)
	}
	if !m.privileged() {
		if most, known := softLimit(limits, "Max processes"); known {
			used := m.usedThreads()
			checks[1].have, checks[1].known = most-min(most, used), true
			checks[1].limit = fmt.Sprintf(
				"ulimit -u is %d, and this user's other processes have %d", most, used)
			checks[1].remedy = fmt.Sprintf("%sulimit -u %d", fewer, used+uint64(c.Threads))
		}
	}
	checks[2].have, checks[2].known = m.left("pids", "pids.max", "pids.current")
	// Used memory is not subtracted: most of it may be cache.
	checks[3].have, checks[3].known = m.left("memory", "memory.max", "")
	if most, known := m.left("memory", "memory.limit_in_bytes", ""); known { // version 1
		checks[3].have, checks[3].known = most, true
		checks[3].remedy = fewer + "raise memory.limit_in_bytes"
	}
	checks[4].have, checks[4].known = kibibytes(m.read("/proc/meminfo"), "MemAvailable")
	for _, k := range checks {
		if k.known && k.have < k.need {
			return &HeadroomError{What: k.what, Need: k.need, Have: k.have, Limit: k.limit,
				Remedy: k.remedy}
		}
	}
	return nil
}

// usedThreads counts the threads of this user's other processes, except those hidden in /proc.
func (m Machine) usedThreads() (n uint64) {
	self := m.read("/proc/self/status")
	id := func(status, key string) string { // the first: the real user
		first, _, _ := strings.Cut(field(status, key), "\t")
		return first
	}
	entries, _ := os.ReadDir(m.path("/proc"))
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		status := m.read("/proc/" + e.Name() + "/status")
		if id(status, "Uid") != id(self, "Uid") || id(status, "Tgid") == id(self, "Tgid") {
			continue
		}
		threads, _ := strconv.ParseUint(field(status, "Threads"), 10, 32)
		n += threads
	}
	return n
}

// softLimit returns false if the limit is unlimited or missing.
func softLimit(limits, name string) (n uint64, ok bool) {
	for line := range strings.Lines(limits) {
		rest, is := strings.CutPrefix(line, name)
		if !is {
			continue
		}
		f := strings.Fields(rest)
		if len(f) == 0 {
			return 0, false
		}
		n, err := strconv.ParseUint(f[0], 10, 64)
		return n, err == nil
	}
	return 0, false
}

// left returns the least that this process's cgroups of a controller leave of a resource. current
// is the file with the use; "": the use is ignored.
func (m Machine) left(controller, most, current string) (least uint64, ok bool) {
	for _, dir := range m.groups(self, controller) {
		limit, err := strconv.ParseUint(m.text(dir+"/"+most), 10, 64)
		if err != nil {
			continue
		}
		used, err := uint64(0), error(nil)
		if current != "" {
			used, err = strconv.ParseUint(m.text(dir+"/"+current), 10, 64)
		}
		if err != nil {
			continue
		}
		if free := limit - min(limit, used); !ok || free < least {
			least, ok = free, true
		}
	}
	return least, ok
}
