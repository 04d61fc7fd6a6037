// Package machine reads the facts of the machine that, besides the mode, decide a network
// benchmark's numbers, chooses the CPUs of a run, and explains the settings that forbid what the
// lab needs.
//
// Facts come from /proc, /sys and /etc only, in bytes, CPUs and seconds. An unreadable fact is left
// empty. Inside a container the facts are those that it is shown, and sysctls are the calling
// network namespace's.
//
// github.com/prometheus/procfs is not used, because it chooses parsers by GOARCH and rejects a
// whole file for one unexpected line.
package machine

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// Machine reads a machine's facts. The zero value reads this machine's.
type Machine struct {
	// Root replaces "/".
	Root string
	// Affinity returns the CPUs that this process may run on; nil: sched_getaffinity, which ignores
	// Root.
	Affinity func() ([]int, error)
}

// Read returns the facts of the machine, except Tool. The doubts name unreadable facts that every
// machine has. Root is set if the process has the capabilities that the lab needs outside of a user
// namespace.
func (m Machine) Read() (e sample.Environment, doubts []error) {
	cpuinfo := m.read("/proc/cpuinfo")
	topology := m.topology()
	load, loadOK := m.loadAverage()
	e = sample.Environment{
		Host:           m.text("/proc/sys/kernel/hostname"),
		Kernel:         m.text("/proc/sys/kernel/osrelease"),
		OS:             m.osName(),
		CPUModel:       cpuModel(cpuinfo),
		CPUs:           len(topology),
		CPUsAllowed:    m.allowed(),
		ThreadsPerCore: topology.threadsPerCore(),
		Memory:         m.memory(),
		CgroupCPUs:     m.cgroupCPUs(),
		Governor:       m.governor(topology),
		Virtualization: m.virtualization(cpuinfo),
		Mitigations:    m.mitigations(),
		Docker:         m.docker(),
		Root:           m.privileged(),
		LoadAverage:    load,
		Congestion:     m.sysctl("net.ipv4.tcp_congestion_control"),
		Sysctls:        m.sysctls(),
	}
	for _, f := range []struct {
		name, source string
		missing      bool
	}{
		{"kernel release", "/proc/sys/kernel/osrelease", e.Kernel == ""},
		{"CPU model", "/proc/cpuinfo", e.CPUModel == ""},
		{"online CPUs", "/sys/devices/system/cpu/online", e.CPUs == 0},
		{"allowed CPUs", "sched_getaffinity", len(e.CPUsAllowed) == 0},
		{"memory size", "/proc/meminfo", e.Memory == 0},
		{"load average", "/proc/loadavg", !loadOK},
		{"congestion control", "/proc/sys/net/ipv4/tcp_congestion_control", e.Congestion == ""},
	} {
		if f.missing {
			doubts = append(doubts, fmt.Errorf("read machine: no %s in %s", f.name, f.source))
		}
	}
	return e, doubts
}

func (m Machine) osName() string {
	for _, name := range []string{"/etc/os-release", "/usr/lib/os-release"} {
		for line := range strings.Lines(m.read(name)) {
			if v, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
				return fold(strings.Trim(v, `"'`))
			}
		}
	}
	return ""
}

func (m Machine) memory() uint64 {
	n, _ := kibibytes(m.read("/proc/meminfo"), "MemTotal")
	return n
}

func kibibytes(meminfo, name string) (n uint64, ok bool) {
	return units.ParseKiB(field(meminfo, name))
}

// loadAverage returns false for NaN, too, which ParseFloat accepts and JSON does not.
func (m Machine) loadAverage() (l float64, ok bool) {
	first, _, _ := strings.Cut(m.text("/proc/loadavg"), " ")
	l, err := strconv.ParseFloat(first, 64)
	if err != nil || math.IsNaN(l) || math.IsInf(l, 0) || l < 0 {
		return 0, false
	}
	return l, true
}

// privileged reports whether the process may make and set up network namespaces. User id 0 does not
// prove it: a container's root often lacks both capabilities.
func (m Machine) privileged() bool {
	effective, ok := m.capabilities()
	const need = 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_NET_ADMIN
	uids := m.text("/proc/self/uid_map") // the initial user namespace has the identity map
	return ok && effective&need == need && (uids == "" || uids == "0 0 4294967295")
}

// capabilities returns the process' effective capabilities, unless they cannot be read.
func (m Machine) capabilities() (effective uint64, ok bool) {
	effective, err := strconv.ParseUint(field(m.read("/proc/self/status"), "CapEff"), 16, 64)
	return effective, err == nil
}

func (m Machine) sysctls() map[string]string {
	found := make(map[string]string)
	for _, name := range []string{
		"net.core.busy_poll",
		"net.core.default_qdisc",
		"net.core.netdev_budget",
		"net.core.netdev_max_backlog",
		"net.core.rmem_max",
		"net.core.wmem_max",
		"net.ipv4.tcp_autocorking",
		"net.ipv4.tcp_rmem",
		"net.ipv4.tcp_slow_start_after_idle",
		"net.ipv4.tcp_wmem",
		"net.netfilter.nf_conntrack_max",
	} {
		if v := m.sysctl(name); v != "" {
			found[name] = v
		}
	}
	return found
}

func (m Machine) sysctl(name string) string {
	return m.text("/proc/sys/" + strings.ReplaceAll(name, ".", "/"))
}

func (m Machine) path(name string) string {
	if m.Root == "" {
		return name
	}
	return filepath.Join(m.Root, name)
}

const maxFile = 8 << 20

func (m Machine) read(name string) string {
	f, err := os.Open(m.path(name))
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return ""
	}
	return string(b)
}

func (m Machine) text(name string) string { return fold(m.read(name)) }

func (m Machine) exists(name string) bool {
	_, err := os.Stat(m.path(name))
	return err == nil
}

const maxFact = 400

// fold joins a text's words with single spaces and shortens it to maxFact. Zero bytes, with which
// firmware ends its words, count as spaces.
func fold(s string) string {
	return strings.TrimSpace(printable.Limit(
		printable.Words(strings.ReplaceAll(s, "\x00", " ")), maxFact))
}

func field(text, key string) string {
	for line := range strings.Lines(text) {
		k, v, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
