package machine

import (
	"errors"
	"testing"
)

func TestHeadroom(t *testing.T) {
	const (
		user = "Name:\ttoll\nCapEff:\t0000000000000000\n"
		root = "Name:\ttoll\nCapEff:\t000001ffffffffff\n"
	)
	limits := func(files, processes string) string {
		return "Limit                     Soft Limit           Hard Limit           Units     \n" +
			"Max processes             " + processes +
			"                96197                processes \n" +
			"Max open files            " + files +
			"                 1048576              files     \n"
	}
	need := Crowd{Threads: 3000, Files: 1500, Memory: 1 << 30}
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  string
		hint  string
	}{
		{"nothing-known", nil, "", ""},
		{"enough", map[string]string{"/proc/self/status": user,
			"/proc/self/limits": limits("4096", "96197"),
			"/proc/meminfo":     "MemTotal: 4028440 kB\nMemAvailable: 2000000 kB\n"}, "", ""},
		{"files", map[string]string{"/proc/self/limits": limits("1024", "96197")},
			"not enough open files: need about 1500, have 1024 (ulimit -n is 1024)",
			"measure less at a time, or ulimit " +
				"-n 1500"},
		{"files-unlimited", map[string]string{"/proc/self/limits": limits("unlimited", "96197")},
			"", ""},
		{"threads-of-user", map[string]string{
			"/proc/self/status": user, "/proc/self/limits": limits("4096", "2048")},
			"not enough threads of this user: need about 3000, have 2048 (ulimit -u is " +
				"2048, and this user's other processes have 0)",
			"measure less at a time, or ulimit -u 3000"},
		{"threads-that-others-have", map[string]string{
			"/proc/self/status": user + "Tgid:\t7\nUid:\t1000\t0\t0\t0\nThreads:\t5\n",
			"/proc/self/limits": limits("4096", "3100"),
			"/proc/7/status":    "Tgid:\t7\nUid:\t1000\t0\t0\t0\nThreads:\t5\n",
			"/proc/8/status":    "Tgid:\t8\nUid:\t1000\t1\t1\t1\nThreads:\t200\n",
			"/proc/9/status":    "Tgid:\t9\nUid:\t0\t1000\t1000\t1000\nThreads:\t900\n"},
			"not enough threads of this user: need about 3000, have 2900 (ulimit -u is " +
				"3100, and this user's other processes have 200)",
			"measure less at a time, or ulimit -u 3200"},
		{"threads-of-root", map[string]string{
			"/proc/self/status": root, "/proc/self/limits": limits("4096", "2048")}, "", ""},
		{"pids-of-the-parent", map[string]string{
			"/proc/self/cgroup": "0::/a/b\n", "/sys/fs/cgroup/a/pids.max": "4000\n",
			"/sys/fs/cgroup/a/pids.current": "1500\n", "/sys/fs/cgroup/a/b/pids.max": "max\n"},
			"not enough threads in this cgroup: need about 3000, have 2500",
			"measure less at a time, or raise pids.max (docker run --pids-limit)"},
		{"memory-of-cgroup", map[string]string{
			"/proc/self/cgroup": "0::/a\n", "/sys/fs/cgroup/a/memory.max": "536870912\n",
			"/sys/fs/cgroup/a/memory.current": "10\n"}, "not enough bytes of memory in " +
			"this cgroup: need about 1073741824, have 536870912",
			"measure less at a time, or raise memory.max"},
		{"version-1", map[string]string{
			"/proc/self/cgroup": "8:pids:/a\n6:memory:/b\n3:cpu,cpuacct:/c\n",
			"/proc/self/mountinfo": "35 30 0:30 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n" +
				"36 30 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
			"/sys/fs/cgroup/pids/a/pids.max": "4000\n", "/sys/fs/cgroup/pids/a/pids.current": "10\n",
			"/sys/fs/cgroup/memory/memory.limit_in_bytes":   "9223372036854771712\n",
			"/sys/fs/cgroup/memory/b/memory.limit_in_bytes": "536870912\n"}, "not enough bytes of " +
			"memory in this cgroup: need about 1073741824, have 536870912",
			"measure less at a time, or raise memory.limit_in_bytes"},
		{"pids-of-version-1", map[string]string{"/proc/self/cgroup": "8:pids:/a\n",
			"/sys/fs/cgroup/pids/a/pids.max":     "4000\n",
			"/sys/fs/cgroup/pids/a/pids.current": "1500\n"},
			"not enough threads in this cgroup: need about 3000, have 2500",
			"measure less at a time, or raise pids.max (docker run --pids-limit)"},
		{"memory",
			map[string]string{"/proc/meminfo": "MemTotal: 4028440 kB\nMemAvailable: 500000 kB\n"},
			"not enough bytes of memory: need about 1073741824, have 512000000",
			"measure less at a time, or close other programs"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tree(t, tt.files).Headroom(need)
			if tt.want == "" {
				if err != nil {
					t.Errorf("Headroom = %v", err)
				}
				return
			}
			var r *HeadroomError
			if !errors.As(err, &r) || err.Error() != tt.want ||
				r.Hint() != tt.hint {
				t.Errorf("Headroom = %v (%+v), want %q", err, r, tt.want)
			}
		})
	}
}
