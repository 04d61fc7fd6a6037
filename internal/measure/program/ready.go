package program

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/machine/meter"
)

// Values of Request.Ready.
const (
	ReadyTCP = "tcp"
	readyUDP = "udp"
)

// bound reports whether a socket is bound to the port. It does not connect, because some servers
// accept one connection only.
func bound(protocol string, port uint16) (bool, error) {
	ok, err := sock.Bound(protocol, port)
	if err != nil {
		return false, fmt.Errorf("look for port %d: %w", port, err)
	}
	return ok, nil
}

// spent returns the CPU time of all processes started here. Without a /proc of this PID namespace
// only ended ones are known.
func (k *keeper) spent() time.Duration {
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &ru); err != nil {
		return 0
	}
	total := time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
	if !k.ownProc {
		return total
	}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		pid, err := strconv.Atoi(filepath.Base(d))
		if err != nil || pid == os.Getpid() {
			continue
		}
		total += meter.ProcessCPU(pid) + reapedBy(d)
	}
	return total
}

// reapedBy returns the CPU time of a process's ended children, in the kernel's ticks.
func reapedBy(dir string) time.Duration {
	b, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return 0
	}
	// The name, in parentheses, may contain anything.
	s := string(b)
	fields := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	const (
		cutime, cstime = 13, 14 // of proc_pid_stat(5), counted from the field after the name
		tick           = 10 * time.Millisecond
	)
	if len(fields) <= cstime {
		return 0
	}
	user, _ := strconv.ParseInt(fields[cutime], 10, 64)
	system, _ := strconv.ParseInt(fields[cstime], 10, 64)
	return time.Duration(user+system) * tick
}
