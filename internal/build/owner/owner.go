// Package owner marks what a toll makes with the process that made it, so that
// another toll can tell what a dead one left behind.
package owner

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
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
// time, which together are unique.
func Mark() string {
	// As self it is found in a /proc of another PID namespace, too.
	return strings.Join([]string{machineID(), bootID(), pidNamespace(), strconv.Itoa(os.Getpid()), startTime("self")}, "/")
}

// State is what can be known of the process of a mark.
type State int

// Unclear is also what is no mark, and what runs on another machine, see Elsewhere.
const (
	Unclear State = iota // it may run
	Alive
	Gone
)

// Judge tells whether the process of a mark still runs. A process that is not seen
// may be hidden: of another PID namespace, or by a /proc that shows each user only
// the own ones (hidepid, see proc(5)). It is gone only if that is proved.
func Judge(mark string) State {
	p := strings.Split(mark, "/")
	if len(p) != parts || Elsewhere(mark) {
		return Unclear
	}
	if here := bootID(); here == "" || p[boot] == "" {
		return Unclear
	} else if p[boot] != here {
		if p[machine] == "" { // it may be another machine
			return Unclear
		}
		return Gone
	}
	n, err := strconv.Atoi(p[pid])
	if ns := pidNamespace(); ns == "" || p[namespace] != ns || err != nil || n < 1 {
		return Unclear
	}
	if errors.Is(syscall.Kill(n, 0), syscall.ESRCH) { // the kernel hides no process from this
		return Gone
	}
	switch began := seenStart(n); {
	case began == "" || p[start] == "":
		return Unclear
	case began == p[start]:
		return Alive
	}
	return Gone // another one has its PID now
}

// seenStart is when the process with this PID started; "" if that cannot be seen.
func seenStart(pid int) string {
	if self, err := os.Readlink("/proc/self"); err != nil || self != strconv.Itoa(os.Getpid()) {
		return "" // the PIDs there are those of another PID namespace
	}
	return startTime(strconv.Itoa(pid))
}

// Elsewhere reports whether a mark is that of a process of another machine.
func Elsewhere(mark string) bool {
	p := strings.Split(mark, "/")
	return len(p) == parts && p[machine] != machineID()
}

// machineID is the machine's own, see machine-id(5); "" if it has none.
func machineID() string { return line("/etc/machine-id") }

// bootID is the kernel's, of this boot; "" if it does not say.
func bootID() string {
	id, _ := BootID()
	return id
}

// BootID tells this machine's kernel, of this boot, from others.
func BootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
}

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
// if it cannot be seen.
func startTime(pid string) string {
	b, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
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
