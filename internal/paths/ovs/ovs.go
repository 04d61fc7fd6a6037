// Package ovs runs a separate Open vSwitch for one machine of the lab: an ovsdb-server and an
// ovs-vswitchd whose database, sockets and logs are on a tmpfs that only they can see. They are
// children of one process, Main, which the kernel kills with the lab. Machines is the Open vSwitch
// that already runs on the machine.
package ovs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine/exchange"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
)

// Arg is the argument with which toll runs Main.
const Arg = "vswitch"

const (
	dir    = "/run/ovs" // as the daemons see it
	socket = dir + "/db.sock"

	readyWord    = "ready"
	maxReady     = 100              // bytes
	startTimeout = 30 * time.Second // on a busy machine
)

// limits allow for a thousand ports, which are 200 kB of output.
var limits = exchange.Limits{Time: 30 * time.Second, Output: 4 << 20}

// Programs returns the names of Open vSwitch's programs that the lab needs.
func Programs() []string {
	return []string{"ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-ofctl"}
}

// Find returns the path of the program's file. It also searches the directories of administrators'
// programs. The error wraps exec.ErrNotFound if the program is missing.
func Find(program string) (string, error) {
	file, err := exec.LookPath(program)
	if err == nil {
		return file, nil
	}
	for _, d := range []string{"/usr/sbin", "/usr/local/sbin", "/sbin"} {
		if file, err := exec.LookPath(filepath.Join(d, program)); err == nil {
			return file, nil
		}
	}
	return "", err
}

// Version returns a version such as "3.1.0", or "" if Open vSwitch does not report one. It asks
// once.
var Version = sync.OnceValue(func() string {
	out, _ := run("ovs-vswitchd", "--version")
	if m := versionLine.FindStringSubmatch(out); m != nil {
		return m[1]
	}
	return ""
})

var versionLine = regexp.MustCompile(`Open vSwitch\) (\S+)`)

// run runs a program and returns its output, trimmed. The program dies with this process, because
// otherwise it would continue to change the switch. A terminal's Ctrl-C does not reach it, so that
// the clean-up can still run programs.
func run(program string, args ...string) (string, error) {
	file, err := Find(program)
	if err != nil {
		return "", err
	}
	runtime.LockOSThread() // the parent-death signal depends on this thread
	defer runtime.UnlockOSThread()
	cmd := exec.Command(file, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	out, err := exchange.Output(context.Background(), cmd, limits)
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", program, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Switch is a running Open vSwitch.
type Switch struct {
	cmd *exec.Cmd
	in  io.Closer
}

// Start starts a switch. cmd must run Main; start is called to start it in the machine's network
// namespace. The caller calls Stop.
func Start(cmd *exec.Cmd, start func(*exec.Cmd) error) (*Switch, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	// Main is the first process of its PID namespace: when it exits, the kernel kills the daemons.
	cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWNS | unix.CLONE_NEWPID
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start Open vSwitch: %w", err)
	}
	out, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start Open vSwitch: %w", err)
	}
	defer out.Close()
	cmd.Stdout = w
	err = start(cmd)
	w.Close()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start Open vSwitch: %w", err), in.Close())
	}
	s := &Switch{cmd, in}
	if err := out.SetReadDeadline(time.Now().Add(startTimeout)); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	line, err := bufio.NewReader(io.LimitReader(out, maxReady)).ReadString('\n')
	if word := strings.TrimSpace(line); word != readyWord {
		return nil, errors.Join(fmt.Errorf("start Open vSwitch: it printed %q (%w)", word, err),
			s.Stop())
	}
	return s, nil
}

// Stop stops the daemons and waits until they have exited.
func (s *Switch) Stop() error {
	_ = s.in.Close()
	err := s.cmd.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	_ = s.cmd.Wait() // the error is that it was killed
	return err
}

// Daemon returns the PID of ovs-vswitchd in this process's PID namespace.
func (s *Switch) Daemon() (int, error) { return local.Child(s.cmd.Process.Pid, "ovs-vswitchd") }

func (s *Switch) file(name string) string {
	return "/proc/" + strconv.Itoa(s.cmd.Process.Pid) + "/root" + dir + "/" + name
}

// Set runs ovs-vsctl with args and waits until the switch has applied the change.
func (s *Switch) Set(args ...string) error {
	_, err := run("ovs-vsctl", append([]string{
		"--db=unix:" + s.file("db.sock"), "--timeout=30", "--no-syslog"}, args...)...)
	return err
}

// Port holds the counters of one of the switch's ports.
type Port struct {
	RxPackets, RxBytes, TxPackets, TxBytes uint64
}

// Local is the port number of the machine itself.
const Local = "LOCAL"

// Ports returns the counters of a bridge's ports by port number.
func (s *Switch) Ports(bridge string) (map[string]Port, error) {
	out, err := run("ovs-ofctl", "-vsyslog:off", "--no-names", "dump-ports",
		"unix:"+s.file(bridge+".mgmt"))
	if err != nil {
		return nil, err
	}
	return parsePorts(out)
}

var (
	portLine = regexp.MustCompile(`port\s+(\S+): rx pkts=(\d+), bytes=(\d+)`)
	sentLine = regexp.MustCompile(`tx pkts=(\d+), bytes=(\d+)`)
)

func parsePorts(text string) (map[string]Port, error) {
	out := map[string]Port{}
	name := ""
	for line := range strings.Lines(text) {
		received, sent := portLine.FindStringSubmatch(line), sentLine.FindStringSubmatch(line)
		switch {
		case received != nil && name == "":
			name = received[1]
			out[name] = Port{RxPackets: number(received[2]), RxBytes: number(received[3])}
		case received != nil:
			return nil, fmt.Errorf("read the ports of Open vSwitch: port %s has no counters: %q",
				name, text)
		case sent != nil && name != "":
			p := out[name]
			p.TxPackets, p.TxBytes = number(sent[1]), number(sent[2])
			out[name], name = p, ""
		}
	}
	if len(out) == 0 || name != "" {
		return nil, fmt.Errorf("read the ports of Open vSwitch: %q", text)
	}
	return out, nil
}

// Sent returns the sum of what the ports with the given numbers sent, in TxPackets and TxBytes.
func Sent(ports map[string]Port, numbers []string) (sum Port, err error) {
	for _, n := range numbers {
		p, ok := ports[n]
		if !ok {
			return sum, fmt.Errorf("the bridge of Open vSwitch has no port %s, but %v", n, ports)
		}
		sum.TxBytes += p.TxBytes
		sum.TxPackets += p.TxPackets
	}
	return sum, nil
}

func number(s string) uint64 {
	n, _ := strconv.ParseUint(s, 10, 64) // digits only; an overflow is not a counter
	return n
}
