package machine

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// A group that was stopped long ago must not hide the one that is stopped now.
func TestStopsOfOneGroup(t *testing.T) {
	read := func(outer, inner string) map[string]int64 {
		return tree(t, map[string]string{
			"/proc/self/mountinfo":        "29 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
			"/proc/7/cgroup":              "0::/a/b\n",
			"/sys/fs/cgroup/a/cpu.stat":   outer,
			"/sys/fs/cgroup/a/b/cpu.stat": inner,
		}).StrainOf(7).Read()
	}
	before := read("nr_periods 900\nnr_throttled 800\n", "nr_periods 0\nnr_throttled 0\n")
	for _, tt := range []struct {
		outer, inner   string
		stops, periods int64
	}{
		{"nr_periods 910\nnr_throttled 800\n", "nr_periods 8\nnr_throttled 7\n", 7, 8},
		{"nr_periods 910\nnr_throttled 808\n", "nr_periods 9\nnr_throttled 7\n", 8, 10},
		{"nr_periods 910\nnr_throttled 800\n", "nr_periods 9\nnr_throttled 0\n", 0, 10},
	} {
		got := Since(before, read(tt.outer, tt.inner))
		if got[workload.CountStops] != tt.stops || got[workload.CountPeriods] != tt.periods {
			t.Errorf("%q, %q: %v, want %d of %d", tt.outer, tt.inner, got, tt.stops, tt.periods)
		}
	}
}

func TestStrain(t *testing.T) {
	const netstat = "TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPSynRetrans " +
		"DelayedACKs\nTcpExt: 0 3 7 2 41\nIpExt: InOctets\nIpExt: 7\n"
	const snmp = "Ip: Forwarding\nIp: 1\nTcp: RtoMin MaxConn RetransSegs OutSegs\nTcp: " +
		"200 -1 5 6000\n"
	for name, tt := range map[string]struct {
		files map[string]string
		want  map[string]int64
	}{
		"nothing": {nil, map[string]int64{}},
		"v2": {map[string]string{
			"/proc/self/mountinfo": "29 23 0:26 / /sys/fs/cgroup rw - " +
				"cgroup2 cgroup2 rw\n",
			"/proc/7/cgroup":                         "0::/a/b\n",
			"/sys/fs/cgroup/a/cpu.stat":              "nr_periods 254\nnr_throttled 130\n",
			"/sys/fs/cgroup/a/b/cpu.stat":            "nr_periods 20\nnr_throttled 7\n",
			"/sys/fs/cgroup/a/b/memory.events.local": "low 0\nhigh 2\nmax 9\noom 0\n",
			"/proc/7/net/netstat":                    netstat,
			"/proc/7/net/snmp":                       snmp,
		}, map[string]int64{workload.CountStops: 130, workload.CountPeriods: 254,
			workload.CountMemoryHits: 9,
			workload.CountOverflows:  3, workload.CountDelayedACKs: 41, workload.CountResent: 5,
			workload.CountSegments: 6000, workload.CountListenDrops: 4,
			workload.CountSynResent: 2}},
		"v1": {map[string]string{
			"/proc/self/mountinfo": "31 29 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n" +
				"32 29 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
			"/proc/7/cgroup":                         "4:memory:/x\n3:cpu:/x\n",
			"/sys/fs/cgroup/cpu/x/cpu.stat":          "nr_periods 9\nnr_throttled 8\n",
			"/sys/fs/cgroup/memory/x/memory.failcnt": "12\n",
		}, map[string]int64{workload.CountStops: 8, workload.CountPeriods: 9,
			workload.CountMemoryHits: 12}},
		"garbage": {map[string]string{"/proc/7/net/netstat": "TcpExt: A B\nTcpExt: 1\nTcpExt:\n\n",
			"/proc/7/net/snmp": "Tcp: OutSegs\nTcp: x\n"}, map[string]int64{}},
	} {
		after := tree(t, tt.files).StrainOf(7).Read()
		before := map[string]int64{}
		for name := range after {
			before[name] = 0
		}
		if got := Since(before, after); !maps.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
	got := Since(map[string]int64{"a": 3, "b": 9}, map[string]int64{"a": 10, "b": 1, "c": 5})
	if !maps.Equal(got, map[string]int64{"a": 7, "b": 0}) {
		t.Errorf("%v", got)
	}
}

func TestOwnStrain(t *testing.T) {
	files := map[string]string{
		"/proc/self/mountinfo":      "29 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		"/proc/7/cgroup":            "0::/a\n",
		"/sys/fs/cgroup/a/cpu.stat": "nr_periods 20\nnr_throttled 7\n",
		"/proc/7/net/netstat": "TcpExt: DelayedACKs ListenOverflows ListenDrops " +
			"TCPSynRetrans\nTcpExt: 41 3 5 9\n",
		"/proc/7/net/snmp": "Tcp: RetransSegs OutSegs\nTcp: 5 6000\n",
	}
	queues := map[string]int64{workload.CountOverflows: 3, workload.CountListenDrops: 2}
	for its, n := range map[string]int{"net:[1]": 4, "net:[2]": 7} {
		m := tree(t, files)
		for process, to := range map[string]string{self: "net:[1]", "7": its} {
			link := m.path("/proc/" + process + "/ns/net")
			err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o700), os.Symlink(to, link))
			if err != nil {
				t.Fatal(err)
			}
		}
		got := m.StrainOf(7).Own()()
		if len(got) != n || got[workload.CountStops] != 7 || got[workload.CountOverflows] != 3 {
			t.Errorf("%s: %v", its, got)
		}
		if got := m.StrainOf(7).Queues()(); !maps.Equal(got, queues) {
			t.Errorf("%s: %v, want %v", its, got, queues)
		}
	}
}

func TestStopped(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		want  map[string]float64
	}{
		"version 2": {map[string]string{
			"/proc/self/mountinfo":        "29 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
			"/proc/7/cgroup":              "0::/a/b\n",
			"/sys/fs/cgroup/a/cpu.stat":   "nr_periods 9\nthrottled_usec 5000000000\n",
			"/sys/fs/cgroup/a/b/cpu.stat": "throttled_usec 250000\nnr_bursts 0\n",
		}, map[string]float64{"/sys/fs/cgroup/a": 5000, "/sys/fs/cgroup/a/b": 0.25}},
		"version 1": {map[string]string{
			"/proc/self/mountinfo": "31 29 0:28 / /sys/fs/cgroup/cpu rw - cgroup " +
				"cgroup rw,cpu\n",
			"/proc/7/cgroup":                "3:cpu:/x\n",
			"/sys/fs/cgroup/cpu/x/cpu.stat": "nr_throttled 8\nthrottled_time 1500000000\n",
		}, map[string]float64{"/sys/fs/cgroup/cpu/x": 1.5}},
		"garbage": {map[string]string{
			"/proc/self/mountinfo":      "29 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
			"/proc/7/cgroup":            "0::/a\n",
			"/sys/fs/cgroup/a/cpu.stat": "throttled_usec\nthrottled_usec -1\nthrottled_time x\n",
		}, map[string]float64{}},
	} {
		if got := tree(t, tt.files).StrainOf(7).Stopped(); !maps.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
