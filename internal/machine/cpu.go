package machine

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxCPUs is the largest number of CPUs for which Linux can be built.
const maxCPUs = 8192

// CPU locates one CPU. Cores and caches are named by their lowest-numbered CPU, because the
// kernel's core ids repeat from package to package.
type CPU struct {
	ID      int
	Core    int // physical core
	Package int // socket; -1: unknown
	Cache   int // last-level cache; -1: unknown
}

// Topology lists the online CPUs by ID.
type Topology []CPU

// topology returns nil if the online CPUs cannot be read.
func (m Machine) topology() Topology {
	var t Topology
	for _, id := range parseList(m.read("/sys/devices/system/cpu/online")) {
		dir := fmt.Sprintf("/sys/devices/system/cpu/cpu%d/", id)
		c := CPU{ID: id, Core: id, Package: -1, Cache: m.lastCache(dir)}
		// The former is the newer name.
		for _, name := range []string{"core_cpus_list", "thread_siblings_list"} {
			if on := parseList(m.read(dir + "topology/" + name)); slices.Contains(on, id) {
				c.Core = on[0]
				break
			}
		}
		if p, err := strconv.Atoi(m.text(dir + "topology/physical_package_id")); err == nil {
			c.Package = p
		}
		t = append(t, c)
	}
	return t
}

func (m Machine) lastCache(dir string) int {
	cache, highest := -1, 0
	for i := range 16 {
		index := fmt.Sprintf("%scache/index%d/", dir, i)
		level, err := strconv.Atoi(m.text(index + "level"))
		if err != nil {
			break
		}
		if on := parseList(m.read(index + "shared_cpu_list")); level > highest && len(on) > 0 {
			cache, highest = on[0], level
		}
	}
	return cache
}

func (t Topology) of(id int) (c CPU, ok bool) {
	i := slices.IndexFunc(t, func(c CPU) bool { return c.ID == id })
	if i < 0 {
		return CPU{}, false
	}
	return t[i], true
}

// sameCore reports whether a CPU of a is on the same physical core as one of b.
func (t Topology) sameCore(a, b []int) bool {
	core := func(id int) int {
		if c, ok := t.of(id); ok {
			return c.Core
		}
		return id
	}
	return slices.ContainsFunc(a, func(x int) bool {
		return slices.ContainsFunc(b, func(y int) bool { return core(x) == core(y) })
	})
}

// threadsPerCore returns the largest number of online CPUs on one core, or 0 if unknown.
func (t Topology) threadsPerCore() int {
	most, on := 0, make(map[int]int)
	for _, c := range t {
		on[c.Core]++
		most = max(most, on[c.Core])
	}
	return most
}

func (m Machine) allowed() []int {
	affinity := m.Affinity
	if affinity == nil {
		affinity = getAffinity
	}
	if cpus, err := affinity(); err == nil && len(cpus) > 0 {
		return slices.Compact(slices.Sorted(slices.Values(cpus)))
	}
	return parseList(field(m.read("/proc/self/status"), "Cpus_allowed_list"))
}

// getAffinity returns the CPUs of the main thread, because the calling one may have been pinned.
func getAffinity() ([]int, error) { return AffinityOf(os.Getpid()) }

func (m Machine) governor(t Topology) string {
	var found []string
	for _, c := range t {
		g := m.text(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", c.ID))
		if g != "" && !slices.Contains(found, g) {
			found = append(found, g)
		}
	}
	slices.Sort(found)
	return strings.Join(found, ",")
}

func (m Machine) mitigations() map[string]string {
	const dir = "/sys/devices/system/cpu/vulnerabilities"
	entries, err := os.ReadDir(m.path(dir))
	if err != nil {
		return nil
	}
	found := make(map[string]string)
	for _, e := range entries {
		v := m.text(dir + "/" + e.Name())
		if strings.HasPrefix(v, "Mitigation: ") || strings.HasPrefix(v, "Vulnerable") {
			found[e.Name()] = v
		}
	}
	return found
}

// cpuModel returns the CPU's name without trademarks and speed, or "".
func cpuModel(cpuinfo string) string {
	if name := fold(field(cpuinfo, "model name")); name != "" {
		return shortModel(name)
	}
	if name := armModel(cpuinfo); name != "" {
		return name
	}
	return cmp.Or(fold(field(cpuinfo, "cpu")), fold(field(cpuinfo, "uarch")))
}

func shortModel(name string) string {
	noise := regexp.MustCompile(
		`(?i:\((?:r|tm)\))|^\d+(?:st|nd|rd|th) Gen | @ .*$| with .*$| \d+-Core\b| Processor\b`)
	short := fold(noise.ReplaceAllString(name, ""))
	if !strings.Contains(short, "Virtual CPU") { // QEMU's name for its own
		short = strings.Replace(short, " CPU", "", 1)
	}
	return cmp.Or(short, name)
}

func armModel(cpuinfo string) string {
	maker, part := fold(field(cpuinfo, "CPU implementer")), fold(field(cpuinfo, "CPU part"))
	if maker == "" || part == "" {
		return ""
	}
	names := map[string]string{
		"0x41 0xd08": "ARM Cortex-A72",
		"0x41 0xd0b": "ARM Cortex-A76",
		"0x41 0xd0c": "ARM Neoverse-N1",
		"0x41 0xd40": "ARM Neoverse-V1",
		"0x41 0xd49": "ARM Neoverse-N2",
		"0x41 0xd4f": "ARM Neoverse-V2",
		"0xc0 0xac3": "Ampere-1",
	}
	return cmp.Or(names[maker+" "+part], "ARM implementer "+maker+" part "+part)
}

// parseList parses a CPU list such as "0-3,8". It returns nil for anything else.
func parseList(s string) []int {
	var cpus []int
	next := 0 // the kernel's lists ascend; a malformed one must not become huge
	for part := range strings.SplitSeq(strings.TrimSpace(s), ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		lo, err := strconv.Atoi(from)
		if err != nil || lo < next {
			return nil
		}
		hi, err := strconv.Atoi(to)
		if err != nil || hi < lo || hi >= maxCPUs {
			return nil
		}
		for id := lo; id <= hi; id++ {
			cpus = append(cpus, id)
		}
		next = hi + 1
	}
	return cpus
}
