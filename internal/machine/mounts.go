package machine

import "strings"

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
