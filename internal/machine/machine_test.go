package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func tree(t testing.TB, files map[string]string) Machine {
	t.Helper()
	root := t.TempDir()
	for name, contents := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(contents), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Machine{Root: root, Affinity: func() ([]int, error) {
		return nil, errors.ErrUnsupported
	}}
}

func cloud() map[string]string {
	files := map[string]string{
		"/proc/sys/kernel/osrelease": "6.1.0-18-cloud-amd64\n",
		"/proc/sys/kernel/hostname":  "web1\n",
		"/etc/os-release": "NAME=\"Debian GNU/Linux\"\nPRETTY_NAME=\"Debian " +
			"GNU/Linux 12 (bookworm)\"\n",
		"/proc/cpuinfo": "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Processor\n" +
			"flags\t\t: fpu vme " + strings.Repeat("flag ", 200) +
			"hypervisor lahf_lm\n\nprocessor\t: 1\n",
		"/proc/meminfo":     "MemTotal:        4028440 kB\nMemFree:          123 kB\n",
		"/proc/loadavg":     "0.42 0.30 0.10 2/345 678\n",
		"/proc/self/status": "Name:\ttoll\nCapEff:\t000001ffffffffff\nCpus_allowed_list:\t0-3\n",
		"/proc/self/cgroup": "0::/run\n",
		"/proc/1/cgroup":    "0::/\n",
		"/.dockerenv":       "",

		"/sys/fs/cgroup/run/cpu.max":                  "150000 100000\n",
		"/sys/class/dmi/id/sys_vendor":                "Amazon EC2\n",
		"/sys/class/dmi/id/product_name":              "m5.xlarge\n",
		"/sys/devices/system/cpu/online":              "0-3\n",
		"/proc/sys/net/ipv4/tcp_congestion_control":   "bbr\n",
		"/proc/sys/net/ipv4/tcp_rmem":                 "4096\t131072\t6291456\n",
		"/proc/sys/net/core/default_qdisc":            "fq_codel\n",
		"/proc/sys/net/netfilter/nf_conntrack_max":    "65536\n",
		"/proc/sys/net/ipv4/tcp_window_scaling":       "1\n",
		"/sys/devices/system/cpu/vulnerabilities/mds": "Not affected\n",
		"/sys/devices/system/cpu/vulnerabilities/spectre_v2": "Mitigation: Retpolines; " +
			"STIBP: disabled\n",
		"/sys/devices/system/cpu/vulnerabilities/retbleed": "Vulnerable\n",
	}
	for i := range 4 {
		dir := fmt.Sprintf("/sys/devices/system/cpu/cpu%d/", i)
		files[dir+"topology/thread_siblings_list"] = fmt.Sprintf("%d,%d\n", i%2, i%2+2)
		files[dir+"topology/physical_package_id"] = "0\n"
		files[dir+"cache/index0/level"] = "1\n"
		files[dir+"cache/index0/shared_cpu_list"] = fmt.Sprintf("%d,%d\n", i%2, i%2+2)
		files[dir+"cache/index1/level"] = "3\n"
		files[dir+"cache/index1/shared_cpu_list"] = "0-3\n"
		files[dir+"cpufreq/scaling_governor"] = "performance\n"
	}
	return files
}

func TestRead(t *testing.T) {
	t.Setenv("PATH", "")
	m := tree(t, cloud())
	got, doubts := m.Read()
	want := sample.Environment{
		Host:           "web1",
		Kernel:         "6.1.0-18-cloud-amd64",
		OS:             "Debian GNU/Linux 12 (bookworm)",
		CPUModel:       "Intel Xeon",
		CPUs:           4,
		CPUsAllowed:    []int{0, 1, 2, 3},
		ThreadsPerCore: 2,
		Memory:         4028440 * 1024,
		CgroupCPUs:     1.5,
		Governor:       "performance",
		Virtualization: "Amazon EC2, Docker container",
		Mitigations: map[string]string{
			"retbleed":   "Vulnerable",
			"spectre_v2": "Mitigation: Retpolines; STIBP: disabled",
		},
		Root:        true,
		LoadAverage: 0.42,
		Congestion:  "bbr",
		Sysctls: map[string]string{
			"net.core.default_qdisc":         "fq_codel",
			"net.ipv4.tcp_rmem":              "4096 131072 6291456",
			"net.netfilter.nf_conntrack_max": "65536",
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if len(doubts) != 0 {
		t.Errorf("doubts: %v", doubts)
	}
}

func TestReadNothing(t *testing.T) {
	t.Setenv("PATH", "")
	got, doubts := tree(t, nil).Read()
	got.Mitigations, got.Sysctls = nil, nil
	if !reflect.DeepEqual(got, sample.Environment{}) {
		t.Errorf("got %+v", got)
	}
	if len(doubts) != 7 {
		t.Errorf("doubts: %v", doubts)
	}
}

func TestReadHere(t *testing.T) {
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		t.Fatal(err)
	}
	e, doubts := Machine{}.Read()
	if want := unix.ByteSliceToString(uts.Release[:]); e.Kernel != want {
		t.Errorf("kernel %q, want %q", e.Kernel, want)
	}
	if len(e.CPUsAllowed) == 0 {
		t.Error("no CPU allowed, but the test runs")
	}
	near, err := Machine{}.Place(sample.PinNear, 1)
	if err != nil || len(near.Client) != 1 || !slices.Equal(near.Client, near.Server) ||
		!slices.Equal(near.Client, near.Relay) {
		t.Errorf("near: %+v %v", near, err)
	}
	t.Logf("%+v, doubts %v", e, doubts)
}

func TestAffinity(t *testing.T) {
	m := tree(t, cloud())
	m.Affinity = func() ([]int, error) { return []int{3, 1, 3}, nil }
	if e, _ := m.Read(); !reflect.DeepEqual(e.CPUsAllowed, []int{1, 3}) {
		t.Errorf("allowed %v", e.CPUsAllowed)
	}
}

func TestPrivileged(t *testing.T) {
	for _, tt := range []struct {
		name, caps, uids string
		want             bool
	}{
		{"root", "000001ffffffffff", "         0          0 4294967295\n", true},
		{"no-user-namespaces", "000001ffffffffff", "", true},
		{"container-root", "00000000a80425fb", "0 0 4294967295", false},
		{"user", "0000000000000000", "0 0 4294967295", false},
		{"root-of-a-user-namespace", "000001ffffffffff", "0 1000 1", false},
		{"garbage", "all of them", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := tree(t, map[string]string{"/proc/self/status": "CapEff:\t" + tt.caps,
				"/proc/self/uid_map": tt.uids})
			if got := m.privileged(); got != tt.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestOneFact(t *testing.T) {
	for _, tt := range []struct {
		name, file, contents string
		get                  func(Machine) any
		want                 any
	}{
		{"os-unquoted", "/etc/os-release", "PRETTY_NAME=Arch\n", func(m Machine) any {
			return m.osName()
		}, "Arch"},
		{"os-usr-lib", "/usr/lib/os-release", "PRETTY_NAME='Alpine v3'", func(m Machine) any {
			return m.osName()
		}, "Alpine v3"},
		{"memory-no-unit", "/proc/meminfo", "MemTotal: 12", func(m Machine) any {
			return m.memory()
		}, uint64(12288)},
		{"memory-overflow", "/proc/meminfo", "MemTotal: 18446744073709551615 kB",
			func(m Machine) any {
				return m.memory()
			}, uint64(0)},
		{"memory-negative", "/proc/meminfo", "MemTotal: -5 kB", func(m Machine) any {
			return m.memory()
		}, uint64(0)},
		{"load-nan", "/proc/loadavg", "NaN 1 1", func(m Machine) any {
			l, _ := m.loadAverage()
			return l
		}, 0.0},
		{"load-inf", "/proc/loadavg", "Inf", func(m Machine) any {
			l, _ := m.loadAverage()
			return l
		}, 0.0},
		{"escape-codes", "/proc/sys/kernel/osrelease", "6.1\x1b[31m\x00\xff x\n",
			func(m Machine) any {
				e, _ := m.Read()
				return e.Kernel
			}, `6.1\x1b[31m \xff x`},
		{"long", "/proc/sys/kernel/osrelease", strings.Repeat("é", 5000), func(m Machine) any {
			e, _ := m.Read()
			return e.Kernel
		}, strings.Repeat("é", maxFact)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.get(tree(t, map[string]string{tt.file: tt.contents})); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{
		"", "\n", "0", "-1", "0-3", "0-99999999", "3-1", ",,,", "max 0", "1 0", "-1 100000", "NaN",
		"9223372036854775808 1", "0::/", "1:cpu:/../../x\n0::/a/b",
		"0::" + strings.Repeat("/a", 5000),
		"a:b", ":", "model name : \n", "nr_throttled -1\nnr_throttled 99999999999999999999",
		"1 1 0:1 / / - cgroup2 x y\n1 1 0:1 - cgroup", "\x00\xff\xfe", "CapEff: zz",
	} {
		f.Add(s)
	}
	names := cloud()
	names["/proc/self/mountinfo"], names["/proc/self/uid_map"] = "", ""
	names["/sys/fs/cgroup/cpu.stat"], names["/sys/fs/cgroup/cpu.max"] = "", ""
	names["/sys/fs/cgroup/cpu/cpu.stat"], names["/sys/hypervisor/type"] = "", ""
	f.Fuzz(func(t *testing.T, garbage string) {
		files := maps.Clone(names)
		for name := range files {
			files[name] = garbage
		}
		m := tree(t, files)
		e, _ := m.Read()
		if _, err := json.Marshal(e); err != nil {
			t.Errorf("environment cannot be written: %v", err)
		}
		if e.CgroupCPUs < 0 {
			t.Errorf("limit %v", e.CgroupCPUs)
		}
		if read := m.Throttler(); read != nil && read() < 0 {
			t.Errorf("throttled %d", read())
		}
		p, err := m.Place(sample.PinFar, 2)
		if err == nil && (len(p.Client) == 0 || len(p.Client) != len(p.Server) ||
			p.SameCore != m.topology().sameCore(p.Client, p.Server)) {
			t.Errorf("placed %+v", p)
		}
		for _, errno := range []error{unix.EPERM, unix.ENOSPC, unix.EINVAL, os.ErrClosed} {
			if err := m.ExplainUserNamespace(errno); !errors.Is(err, errno) {
				t.Errorf("%v does not wrap %v", err, errno)
			}
		}
	})
}
