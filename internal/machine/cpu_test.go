package machine

import (
	"slices"
	"strconv"
	"testing"
)

func TestCPUModel(t *testing.T) {
	for _, tt := range []struct{ name, cpuinfo, want string }{
		{"xeon-cloud", "model name\t: Intel(R) Xeon(R) Processor", "Intel Xeon"},
		{"xeon-platinum", "model name\t: Intel(R) Xeon(R) Platinum 8259CL CPU @ 2.50GHz",
			"Intel Xeon Platinum 8259CL"},
		{"xeon-e5", "model name\t: Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz",
			"Intel Xeon E5-2680 v4"},
		{"xeon-gce", "model name\t: Intel(R) Xeon(R) CPU @ 2.20GHz", "Intel Xeon"},
		{"xeon-qemu", "model name\t: Intel Xeon Processor (Skylake, IBRS)",
			"Intel Xeon (Skylake, IBRS)"},
		{"core", "model name\t: 12th Gen Intel(R) Core(TM) i7-12700K", "Intel Core i7-12700K"},
		{"epyc", "model name\t: AMD EPYC 7763 64-Core Processor                ", "AMD EPYC 7763"},
		{"epyc-ec2", "model name\t: AMD EPYC 7R13 Processor", "AMD EPYC 7R13"},
		{"ryzen", "model name\t: AMD Ryzen 7 PRO 5850U with Radeon Graphics",
			"AMD Ryzen 7 PRO 5850U"},
		{"qemu", "model name\t: QEMU Virtual CPU version 2.5+", "QEMU Virtual CPU version 2.5+"},
		{"only-noise", "model name\t: (R)", "(R)"},
		{"graviton2", "CPU implementer\t: 0x41\nCPU part\t: 0xd0c", "ARM Neoverse-N1"},
		{"arm-unknown", "CPU implementer\t: 0x99\nCPU part\t: 0x001",
			"ARM implementer 0x99 part 0x001"},
		{"power", "processor\t: 0\ncpu\t\t: POWER9, altivec supported",
			"POWER9, altivec supported"},
		{"garbage", "\x00:\xff", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := cpuModel(tt.cpuinfo); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestParseList(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     []int
	}{
		{"one", "0\n", []int{0}},
		{"range", "0-3", []int{0, 1, 2, 3}},
		{"mixed", "1,3-4,8", []int{1, 3, 4, 8}},
		{"empty", "", nil},
		{"backwards", "3-1", nil},
		{"descending", "3,1", nil},
		{"overlap", "0-3,2-5", nil},
		{"huge", "0-4294967295", nil},
		{"negative", "-1", nil},
		{"words", "all", nil},
		{"open", "3-", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := parseList(tt.in); !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestTopology(t *testing.T) {
	files := cloud()
	delete(files, "/sys/devices/system/cpu/cpu3/topology/physical_package_id")
	delete(files, "/sys/devices/system/cpu/cpu3/cache/index0/level")
	files["/sys/devices/system/cpu/cpu3/topology/core_cpus_list"] = "3"
	got := tree(t, files).topology()
	want := Topology{
		{ID: 0, Core: 0, Package: 0, Cache: 0},
		{ID: 1, Core: 1, Package: 0, Cache: 0},
		{ID: 2, Core: 0, Package: 0, Cache: 0},
		{ID: 3, Core: 3, Package: -1, Cache: -1},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if c, ok := got.of(2); !ok || c != want[2] {
		t.Errorf("Of(2) = %v, %v", c, ok)
	}
	if _, ok := got.of(9); ok {
		t.Error("CPU 9 is online")
	}
}

func TestTopologyLongList(t *testing.T) {
	list, n := "0", 1
	for id := 2; id < 1000; id += 2 {
		list, n = list+","+strconv.Itoa(id), n+1
	}
	m := tree(t, map[string]string{"/sys/devices/system/cpu/online": list})
	if got := m.topology(); len(got) != n {
		t.Errorf("got %d CPUs, want %d", len(got), n)
	}
}

func TestGovernor(t *testing.T) {
	files := cloud()
	files["/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor"] = "powersave\n"
	m := tree(t, files)
	if got := m.governor(m.topology()); got != "performance,powersave" {
		t.Errorf("got %q", got)
	}
}
