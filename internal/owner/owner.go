// Package owner marks what a toll makes with the process that made it, so that
// another toll can tell what a dead one left behind.
package owner

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The parts of a mark, in their order.
const (
	machine = iota // its ID
	boot
	namespace // of PIDs
	pid
	start
	parts
)

// Mark names this process: its machine and boot, its PID namespace, PID and start
// time, which together nobody else has.
func Mark() string {
	return strings.Join([]string{machineID(), bootID(), pidNamespace(), strconv.Itoa(os.Getpid()), startTime(os.Getpid())}, "/")
}

// Alive reports whether the process of a mark still runs. One of another machine
// or PID namespace is not ours to judge: it counts as alive, as does what is no
// mark.
func Alive(mark string) bool {
	p := strings.Split(mark, "/")
	if len(p) != parts || Elsewhere(mark) {
		return true
	}
	if p[boot] != bootID() {
		return p[machine] == "" // without an ID it may be another machine
	}
	if p[namespace] != pidNamespace() {
		return true
	}
	n, err := strconv.Atoi(p[pid])
	return err == nil && startTime(n) == p[start]
}

// Elsewhere reports whether a mark is that of a process of another machine.
func Elsewhere(mark string) bool {
	p := strings.Split(mark, "/")
	return len(p) == parts && p[machine] != machineID()
}

// machineID is the machine's own, see machine-id(5); "" if it has none.
func machineID() string { return line("/etc/machine-id") }

// bootID is the kernel's, of this boot.
func bootID() string { return line("/proc/sys/kernel/random/boot_id") }

func line(file string) string {
	b, _ := os.ReadFile(file)
	return strings.ReplaceAll(strings.TrimSpace(string(b)), "/", "")
}

// pidNamespace names the PID namespace that PIDs are meant in: a container's
// are not the machine's.
func pidNamespace() string {
	ns, _ := os.Readlink("/proc/self/ns/pid")
	return ns
}

// startTime is when a process started, in the kernel's ticks since boot; ""
// if it is gone.
func startTime(pid int) string {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return ""
	}
	// The name, in parentheses, may contain anything.
	s := string(b)
	fields := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	const start = 19 // field 22 of proc_pid_stat(5), counted from the one after the name
	if len(fields) <= start {
		return ""
	}
	return fields[start]
}
