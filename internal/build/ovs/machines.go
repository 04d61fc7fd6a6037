package ovs

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/build/exchange"
)

// Machines is the Open vSwitch that the machine runs anyway, reached by its
// default database. It has bridges of others: commands must name their own.
type Machines struct{}

// reply bounds how long it may take to do what it is asked for.
const reply = 10 * time.Second

// Version asks the running ovs-vswitchd, as "3.1.0". An error says that it is not
// installed (wraps exec.ErrNotFound), does not run, or may not be asked.
func (Machines) Version() (string, error) {
	// The database alone would accept commands that are never executed.
	out, err := ask("ovs-appctl", "--timeout=5", "-vconsole:off", "--target=ovs-vswitchd", "version")
	if err != nil {
		return "", err
	}
	if m := versionLine.FindStringSubmatch(out); m != nil {
		return m[1], nil
	}
	return "", fmt.Errorf("ask Open vSwitch's version: %q", out)
}

// Set runs ovs-vsctl with args, waits until the switch has done it and returns
// what was printed.
func (Machines) Set(args ...string) (string, error) {
	return ask("ovs-vsctl", append([]string{"--timeout=10", "-vconsole:off", "--no-syslog"}, args...)...)
}

// Ports reads the counters of a bridge's ports by number.
func (Machines) Ports(bridge string) (map[string]Port, error) {
	out, err := ask("ovs-ofctl", "--timeout=10", "-vconsole:off", "-vsyslog:off", "--no-names", "dump-ports", bridge)
	if err != nil {
		return nil, err
	}
	return parsePorts(out)
}

// ask runs a program that must not outlive this process: it would go on to change
// the switch. A terminal's Ctrl-C does not reach it, or nothing could be removed
// afterwards.
func ask(program string, args ...string) (string, error) {
	file, err := Find(program)
	if err != nil {
		return "", err
	}
	runtime.LockOSThread() // which the signal is tied to
	defer runtime.UnlockOSThread()
	cmd := exec.Command(file, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	out, err := exchange.Output(context.Background(), cmd, exchange.Limits{Time: reply + time.Second})
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", program, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
