// Package owner marks what a toll makes with the process that made it, so that
// another toll can tell what a dead one left behind.
package owner

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Mark names this process: its PID namespace, PID and start time, which together
// are unique until the next boot.
func Mark() string {
	pid := os.Getpid()
	return fmt.Sprintf("%s/%d/%s", pidNamespace(), pid, startTime(pid))
}

// Alive reports whether the process of a mark still runs. One of another PID
// namespace is not ours to judge: it counts as alive, as does what is no mark.
func Alive(mark string) bool {
	parts := strings.Split(mark, "/")
	const fields = 3
	if len(parts) != fields || parts[0] != pidNamespace() {
		return true
	}
	n, err := strconv.Atoi(parts[1])
	return err == nil && startTime(n) == parts[2]
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
