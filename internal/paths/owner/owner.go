// Package owner marks what a toll makes with the process that made it, so that another toll can
// recognize what a dead one left behind. PIDs of two machines are alike, and a swarm's services are
// visible on all of its managers, so a mark names the machine and its boot, too.
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

// Mark returns a unique name of this process: its machine and boot, its PID namespace, PID and
// start time.
func Mark() string {
	// By the name self it is found even in a /proc of another PID namespace.
	return strings.Join([]string{machineID(), bootID(), pidNamespace(), strconv.Itoa(os.Getpid()), startTime("self")}, "/")
}

// State is what is known of the process of a mark.
type State int

// Unclear is also the state of an invalid mark, and of a process of another machine, see Elsewhere.
const (
	Unclear State = iota // it may run
	Alive
	Gone
)

// Judge reports whether the process of a mark still runs. A process that is not seen may be hidden:
// in another PID namespace, or by a /proc that shows each user only the own ones (hidepid, see
// proc(5)). It is Gone only if that is proved.
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

// seenStart returns when the process with this PID started, or "" if that cannot be seen.
func seenStart(pid int) string {
	if self, err := os.Readlink("/proc/self"); err != nil || self != strconv.Itoa(os.Getpid()) {
		return "" // the PIDs there belong to another PID namespace
	}
	return startTime(strconv.Itoa(pid))
}

// Elsewhere reports whether a mark belongs to a process of another machine.
func Elsewhere(mark string) bool {
	p := strings.Split(mark, "/")
	return len(p) == parts && p[machine] != machineID()
}

// machineID returns the machine's ID, see machine-id(5), or "" if it has none.
func machineID() string { return line("/etc/machine-id") }

// bootID returns the kernel's ID of this boot, or "" if unknown.
func bootID() string {
	id, _ := BootID()
	return id
}

// BootID returns an ID of this boot of this machine's kernel.
func BootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
}

func line(file string) string {
	b, _ := os.ReadFile(file)
	return strings.ReplaceAll(strings.TrimSpace(string(b)), "/", "")
}

// pidNamespace returns the name of the PID namespace of PIDs here: a container's are not the
// machine's.
func pidNamespace() string {
	ns, _ := os.Readlink("/proc/self/ns/pid")
	return ns
}

// startTime returns when a process started, in the kernel's ticks since boot, or "" if that cannot
// be seen.
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
