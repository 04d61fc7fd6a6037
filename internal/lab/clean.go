package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// runMark is in the environment of every process that the lab starts: the
// process that started it, as PID namespace, PID and start time, which
// together are unique until the next boot.
const runMark = "BRIDGETOLL_RUN="

// mark returns this process's own mark.
func mark() string {
	pid := os.Getpid()
	return fmt.Sprintf("%s%s/%d/%s", runMark, pidNamespace(), pid, startTime(pid))
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

// Leftover is a process that outlived the toll that started it.
type Leftover struct {
	PID     int
	Command string
}

// Clean kills the processes of labs whose toll is gone and returns them. It
// sees those that this user may look at. None are expected: the kernel kills
// them with their parent.
func Clean() ([]Leftover, error) {
	procs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil, err
	}
	var (
		out  []Leftover
		errs []error
	)
	for _, f := range procs {
		owner, ok := ownerOf(f)
		if !ok || alive(owner) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if err != nil {
			continue
		}
		cmd, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			errs = append(errs, fmt.Errorf("end process %d: %w", pid, err))
			continue
		}
		out = append(out, Leftover{pid, strings.TrimSpace(strings.ReplaceAll(string(cmd), "\x00", " "))})
	}
	return out, errors.Join(errs...)
}

// ownerOf reads the mark from an environment; ok is false if it has none or
// may not be read.
func ownerOf(environ string) (owner string, ok bool) {
	b, err := os.ReadFile(environ)
	if err != nil {
		return "", false
	}
	for _, v := range strings.Split(string(b), "\x00") {
		if owner, ok := strings.CutPrefix(v, runMark); ok {
			return owner, true
		}
	}
	return "", false
}

// alive reports whether the process of a mark still runs.
func alive(owner string) bool {
	parts := strings.Split(owner, "/")
	const fields = 3
	if len(parts) != fields || parts[0] != pidNamespace() {
		return true // not ours to judge
	}
	n, err := strconv.Atoi(parts[1])
	return err == nil && startTime(n) == parts[2]
}
