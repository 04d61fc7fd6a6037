package journal

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	machine = iota // its ID
	boot
	namespace // of PIDs
	pid
	start
	parts
)

// Mark returns a unique name of this process.
func Mark() string {
	// /proc/self works even if /proc is of another PID namespace.
	return strings.Join([]string{machineID(), bootID(), pidNamespace(), strconv.Itoa(os.Getpid()),
		startTime("self")}, "/")
}

// State is what is known about the process of a mark.
type State int

// An invalid mark, and a process of another machine (see Elsewhere), are Unclear.
const (
	Unclear State = iota // it may run
	Alive
	Gone
)

// Judge reports whether the process of a mark still runs. It is Gone only if that is proved: /proc
// may hide a process in another PID namespace, or another user's (hidepid, see proc(5)).
func Judge(mark string) State {
	p := strings.Split(mark, "/")
	if len(p) != parts || Elsewhere(mark) {
		return Unclear
	}
	if here := bootID(); here == "" || p[boot] == "" {
		return Unclear
	} else if p[boot] != here {
		if p[machine] == "" { // the process may be on another machine
			return Unclear
		}
		return Gone
	}
	n, err := strconv.Atoi(p[pid])
	if ns := pidNamespace(); ns == "" || p[namespace] != ns || err != nil || n < 1 {
		return Unclear
	}
	if errors.Is(syscall.Kill(n, 0), syscall.ESRCH) { // kill also sees processes that /proc hides
		return Gone
	}
	switch began := seenStart(n); {
	case began == "" || p[start] == "":
		return Unclear
	case began == p[start]:
		return Alive
	}
	return Gone // another process has the PID now
}

// seenStart returns the start time of a process, or "" if /proc does not show it.
func seenStart(pid int) string {
	if self, err := os.Readlink("/proc/self"); err != nil || self != strconv.Itoa(os.Getpid()) {
		return "" // /proc is of another PID namespace
	}
	return startTime(strconv.Itoa(pid))
}

// Elsewhere reports whether a mark belongs to a process of another machine.
func Elsewhere(mark string) bool {
	p := strings.Split(mark, "/")
	return len(p) == parts && p[machine] != machineID()
}

// OfAnotherBoot reports whether a mark has this machine's ID and another boot's. Judge takes its
// process for Gone, which is true of what no other machine can reach: machines that were copied may
// have the same ID.
func OfAnotherBoot(mark string) bool {
	p := strings.Split(mark, "/")
	here := bootID()
	return len(p) == parts && !Elsewhere(mark) && p[boot] != "" && here != "" && p[boot] != here
}

// Whose returns in words what is known of the toll that made a thing which is left in place,
// because it may still need it.
func Whose(mark string) string {
	switch {
	case Elsewhere(mark):
		return "of a toll on another machine"
	case OfAnotherBoot(mark):
		return "of a toll before a reboot of this machine, or on another one with the same machine ID"
	}
	return "of a toll that may still run: its process cannot be seen from here"
}

func machineID() string { return line("/etc/machine-id") }

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

func pidNamespace() string {
	ns, _ := os.Readlink("/proc/self/ns/pid")
	return ns
}

// startTime returns the start time of a process in ticks since boot, or "" if it cannot be read.
func startTime(pid string) string {
	b, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return ""
	}
	// The name, in parentheses, may contain anything.
	s := string(b)
	fields := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	const start = 19 // field 22 of proc_pid_stat(5), counted after the name
	if len(fields) <= start {
		return ""
	}
	return fields[start]
}
