package machine

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// Throttler returns a function that returns how often CPU limits have stopped this process's cgroup
// and those above it, but not those of containers that the run started. Only the difference of two
// results is meaningful. Throttler returns nil if the kernel does not count the stops. The cgroups
// are found once, because the function is called while a load runs.
func (m Machine) Throttler() func() int {
	groups := m.cpuGroups(self)
	if _, ok := m.throttled(groups); !ok {
		return nil
	}
	return func() int { n, _ := m.throttled(groups); return n }
}

const self = "self"

func (m Machine) throttled(groups []string) (throttled int, ok bool) {
	for _, dir := range groups {
		if n, is := counted(m.read(dir+"/cpu.stat"), "nr_throttled"); is {
			throttled, ok = throttled+n, true
		}
	}
	return throttled, ok
}

// Stopped returns for how long CPU limits have stopped the process so far, in s, by cgroup: its own
// and those above it. In a cgroup of several CPUs it is the sum of theirs. Only differences are
// meaningful.
func (s *Strain) Stopped() map[string]float64 {
	out := map[string]float64{}
	for _, dir := range s.cpu {
		for line := range strings.Lines(s.m.read(dir + "/cpu.stat")) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			by := map[string]float64{"throttled_usec": 1e6, "throttled_time": 1e9}[key]
			if n, err := strconv.ParseUint(value, 10, 63); err == nil && by > 0 {
				out[dir] = float64(n) / by
			}
		}
	}
	return out
}

func counted(text, key string) (n int, ok bool) {
	for line := range strings.Lines(text) {
		v, is := strings.CutPrefix(strings.TrimSpace(line), key+" ")
		if !is {
			continue
		}
		// 31 bits, so that no garbage overflows a sum.
		if x, err := strconv.ParseUint(strings.TrimSpace(v), 10, 31); err == nil {
			return int(x), true
		}
	}
	return 0, false
}

// cgroupCPUs returns the smallest CPU limit of this process's cgroup and those above it, or 0 if
// there is none.
func (m Machine) cgroupCPUs() float64 {
	smallest := 0.0
	for _, dir := range m.cpuGroups(self) {
		quota, period, _ := strings.Cut(m.text(dir+"/cpu.max"), " ")
		if quota == "" {
			quota, period = m.text(dir+"/cpu.cfs_quota_us"), m.text(dir+"/cpu.cfs_period_us")
		}
		q, err := strconv.ParseInt(quota, 10, 64)
		if err != nil || q <= 0 { // "max" and -1: no limit
			continue
		}
		p, err := strconv.ParseInt(period, 10, 64)
		if err != nil || p <= 0 {
			continue
		}
		if limit := float64(q) / float64(p); smallest == 0 || limit < smallest {
			smallest = limit
		}
	}
	return smallest
}

func (m Machine) cpuGroups(process string) []string { return m.groups(process, "cpu") }

// groups returns the directories of a process's cgroups that a controller may limit, each followed
// by its visible ancestors. The files are missing in a version without the controller.
func (m Machine) groups(process, controller string) []string {
	mounts := m.cgroupMounts(controller)
	var dirs []string
	for line := range strings.Lines(m.read("/proc/" + process + "/cgroup")) {
		// hierarchy:controllers:path, with no controllers for version 2
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 || len(parts[2]) > maxPath {
			continue
		}
		v2 := parts[1] == ""
		if !v2 && !slices.Contains(strings.Split(parts[1], ","), controller) {
			continue
		}
		at := pickMount(mounts, v2, parts[2], controller)
		// A path outside of the mount starts with "/.."; cleaned, it stays below the mount.
		rel := path.Clean("/" + strings.TrimPrefix(parts[2], at.root))
		for {
			dirs = append(dirs, path.Join(at.point, rel))
			if rel == "/" {
				break
			}
			rel = path.Dir(rel)
		}
	}
	return dirs
}

const maxPath = 4096 // the kernel's PATH_MAX

type cgroupMount struct {
	v2          bool
	root, point string
}

func pickMount(mounts []cgroupMount, v2 bool, group, controller string) cgroupMount {
	for _, c := range mounts {
		if c.v2 == v2 && (c.root == "" || group == c.root || strings.HasPrefix(group, c.root+"/")) {
			return c
		}
	}
	for _, c := range mounts {
		if c.v2 == v2 {
			return c
		}
	}
	if v2 {
		return cgroupMount{v2: true, point: "/sys/fs/cgroup"}
	}
	return cgroupMount{point: "/sys/fs/cgroup/" + controller}
}

func (m Machine) cgroupMounts(controller string) (out []cgroupMount) {
	for _, x := range m.Mounts() {
		c := cgroupMount{x.Type == "cgroup2", strings.TrimSuffix(x.Root, "/"), x.Point}
		if c.v2 || x.Type == "cgroup" && slices.Contains(strings.Split(x.options, ","), controller) {
			out = append(out, c)
		}
	}
	return out
}

// Mount is a file system that this process reaches.
type Mount struct {
	Root  string // its directory that is shown
	Point string // where
	Type  string // "ext4", "tmpfs", …

	options string // of the file system
}

// Mounts returns the mounts of this process's namespace, in the kernel's order: one that covers
// another comes later. It returns none if /proc does not list them.
func (m Machine) Mounts() (out []Mount) {
	// 36 35 0:29 /root /point rw,relatime … - cgroup source rw,cpu,cpuacct
	const root, point = 3, 4
	for line := range strings.Lines(m.read("/proc/self/mountinfo")) {
		before, after, ok := strings.Cut(line, " - ")
		where, what := strings.Fields(before), strings.Fields(after)
		if !ok || len(where) <= point || len(what) == 0 {
			continue
		}
		out = append(out, Mount{unescape(where[root]), unescape(where[point]), what[0],
			what[len(what)-1]}) // the source may be empty
	}
	return out
}

func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
