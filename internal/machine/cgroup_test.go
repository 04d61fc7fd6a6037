package machine

import "testing"

func TestCgroup(t *testing.T) {
	const v2 = "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	v1 := func(root string) string {
		return "29 23 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n" +
			"30 29 0:27 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n" +
			"31 29 0:28 " + root +
			" /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" +
			"32 29 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	}
	for _, tt := range []struct {
		name      string
		files     map[string]string
		limit     float64
		throttled int
		ok        bool
	}{
		{"none", nil, 0, 0, false},
		{"v2-no-limit", map[string]string{
			"/proc/self/mountinfo":               v2,
			"/proc/self/cgroup":                  "0::/user.slice\n",
			"/sys/fs/cgroup/cpu.stat":            "usage_usec 5\n",
			"/sys/fs/cgroup/user.slice/cpu.max":  "max 100000\n",
			"/sys/fs/cgroup/user.slice/cpu.stat": "usage_usec 5\nnr_periods 0\nnr_throttled 0\n",
		}, 0, 0, true},
		{"v2-smallest-is-above", map[string]string{
			"/proc/self/mountinfo":         v2,
			"/proc/self/cgroup":            "0::/a/b/c\n",
			"/sys/fs/cgroup/a/cpu.max":     "50000 100000\n",
			"/sys/fs/cgroup/a/cpu.stat":    "nr_periods 10\nnr_throttled 4\nthrottled_usec 9\n",
			"/sys/fs/cgroup/a/b/cpu.max":   "400000 100000\n",
			"/sys/fs/cgroup/a/b/cpu.stat":  "nr_periods 10\nnr_throttled 3\n",
			"/sys/fs/cgroup/a/b/c/cpu.max": "max 100000\n",
		}, 0.5, 7, true},
		{"v2-container-namespace", map[string]string{
			"/proc/self/mountinfo":    "29 23 0:26 /../.. /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
			"/proc/self/cgroup":       "0::/\n",
			"/sys/fs/cgroup/cpu.max":  "200000 100000\n",
			"/sys/fs/cgroup/cpu.stat": "nr_throttled 2\n",
		}, 2, 2, true},
		{"v2-outside-of-the-namespace", map[string]string{
			"/proc/self/mountinfo":   v2,
			"/proc/self/cgroup":      "0::/../other\n",
			"/sys/fs/cgroup/cpu.max": "200000 100000\n",
		}, 2, 0, false},
		{"v2-no-mountinfo", map[string]string{
			"/proc/self/cgroup":        "0::/x\n",
			"/sys/fs/cgroup/x/cpu.max": "150000 100000\n",
		}, 1.5, 0, false},
		{"v2-mounted-with-a-space", map[string]string{
			"/proc/self/mountinfo": `29 23 0:26 / /my\040groups rw - cgroup2 cgroup2 rw`,
			"/proc/self/cgroup":    "0::/x\n",
			"/my groups/x/cpu.max": "100000 100000\n",
		}, 1, 0, false},
		{"v1", map[string]string{
			"/proc/self/mountinfo":                                   v1("/"),
			"/proc/self/cgroup":                                      "4:cpuset:/x\n3:cpu,cpuacct:/docker/1f\n0::/\n",
			"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us":            "-1\n",
			"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us":           "100000\n",
			"/sys/fs/cgroup/cpu,cpuacct/docker/1f/cpu.cfs_quota_us":  "25000\n",
			"/sys/fs/cgroup/cpu,cpuacct/docker/1f/cpu.cfs_period_us": "50000\n",
			"/sys/fs/cgroup/cpu,cpuacct/docker/1f/cpu.stat":          "nr_periods 9\nnr_throttled 8\nthrottled_time 7\n",
		}, 0.5, 8, true},
		{"v1-in-the-container", map[string]string{
			"/proc/self/mountinfo":                         v1("/docker/1f"),
			"/proc/self/cgroup":                            "3:cpu,cpuacct:/docker/1f\n",
			"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us":  "300000\n",
			"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
		}, 3, 0, false},
		{"v1-no-mountinfo", map[string]string{
			"/proc/self/cgroup":                    "1:cpu:/\n",
			"/sys/fs/cgroup/cpu/cpu.cfs_quota_us":  "100000\n",
			"/sys/fs/cgroup/cpu/cpu.cfs_period_us": "200000\n",
			"/sys/fs/cgroup/cpu/cpu.stat":          "nr_throttled 1",
		}, 0.5, 1, true},
		{"garbage", map[string]string{
			"/proc/self/cgroup":        "0::/x\nnonsense\n:::\n",
			"/sys/fs/cgroup/x/cpu.max": "1000 0\n",
			"/sys/fs/cgroup/cpu.max":   "-5 100000\n",
			"/sys/fs/cgroup/x/cpu.stat": "nr_throttled\nnr_throttled -1\nnr_throttled " +
				"99999999999\n",
		}, 0, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := tree(t, tt.files)
			if got := m.cgroupCPUs(); got != tt.limit {
				t.Errorf("limit %v, want %v", got, tt.limit)
			}
			if got, ok := m.throttled(m.cpuGroups(self)); got != tt.throttled || ok != tt.ok {
				t.Errorf("throttled %v %v, want %v %v", got, ok, tt.throttled, tt.ok)
			}
		})
	}
}
