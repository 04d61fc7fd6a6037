// Package ovs runs an Open vSwitch of its own for one machine of the lab: a
// private ovsdb-server and ovs-vswitchd, whose database, sockets and logs are in
// memory that only they can see. They are children of one process, Main, which
// the kernel kills with the lab; they leave nothing on disk. Machines is the
// other kind: the Open vSwitch that already runs on the machine.
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

	"github.com/bridgetoll/bridgetoll/internal/build/exchange"
)

// Arg is the argument that makes toll Main.
const Arg = "vswitch"

const (
	dir    = "/run/ovs" // as the daemons see it
	socket = dir + "/db.sock"

	readyWord    = "ready"
	maxReady     = 100              // bytes
	startTimeout = 30 * time.Second // of a busy machine
)

// limits bound what a program of Open vSwitch may take and print: a thousand ports are 200 kB.
var limits = exchange.Limits{Time: 30 * time.Second, Output: 4 << 20}

// Programs are those of Open vSwitch that the lab needs.
func Programs() []string {
	return []string{"ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-ofctl"}
}

// Find returns the program's file; the folders for administrators' programs
// are searched too. If there is none, the error wraps exec.ErrNotFound.
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

// Version is "3.1.0", or "" if Open vSwitch does not tell. It is asked once.
var Version = sync.OnceValue(func() string {
	out, _ := run("ovs-vswitchd", "--version")
	if m := versionLine.FindStringSubmatch(out); m != nil {
		return m[1]
	}
	return ""
})

var versionLine = regexp.MustCompile(`Open vSwitch\) (\S+)`)

// run runs a program of Open vSwitch and returns what it printed, without the spaces around it.
// The program does not outlive this process: it would go on to change the switch. A terminal's
// Ctrl-C does not reach it, or nothing could be removed afterwards.
func run(program string, args ...string) (string, error) {
	file, err := Find(program)
	if err != nil {
		return "", err
	}
	runtime.LockOSThread() // which the signal is tied to
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

// Start starts one with cmd, which runs Main, by calling start: in the
// machine's network namespace. The caller stops it.
func Start(cmd *exec.Cmd, start func(*exec.Cmd) error) (*Switch, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	// As the first process of a namespace it takes the daemons with it.
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
		return nil, errors.Join(fmt.Errorf("start Open vSwitch: it said %q (%w)", word, err), s.Stop())
	}
	return s, nil
}

// Stop stops the daemons and waits for their end.
func (s *Switch) Stop() error {
	_ = s.in.Close()
	err := s.cmd.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	_ = s.cmd.Wait() // it was killed: how it ended says nothing
	return err
}

// file is a file of the daemons, as this process sees it.
func (s *Switch) file(name string) string {
	return "/proc/" + strconv.Itoa(s.cmd.Process.Pid) + "/root" + dir + "/" + name
}

// Set runs ovs-vsctl with args and waits until the switch has done it.
func (s *Switch) Set(args ...string) error {
	_, err := run("ovs-vsctl", append([]string{"--db=unix:" + s.file("db.sock"), "--timeout=30", "--no-syslog"}, args...)...)
	return err
}

// Port is what the switch counted on one of its ports.
type Port struct {
	RxPackets, RxBytes, TxPackets, TxBytes uint64
}

// Local is the number of the port that is the machine itself.
const Local = "LOCAL"

// Ports reads the counters of a bridge's ports by number.
func (s *Switch) Ports(bridge string) (map[string]Port, error) {
	out, err := run("ovs-ofctl", "-vsyslog:off", "--no-names", "dump-ports", "unix:"+s.file(bridge+".mgmt"))
	if err != nil {
		return nil, err
	}
	return parsePorts(out)
}

var (
	portLine = regexp.MustCompile(`port\s+(\S+): rx pkts=(\d+), bytes=(\d+)`)
	sentLine = regexp.MustCompile(`tx pkts=(\d+), bytes=(\d+)`)
)

// parsePorts reads what `ovs-ofctl dump-ports` prints. A port whose counters
// are unknown is an error.
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
			return nil, fmt.Errorf("read the ports of Open vSwitch: port %s has no counters: %q", name, text)
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

// Sent is what some of a bridge's ports, by number, sent together, in the fields
// of that name.
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
	n, _ := strconv.ParseUint(s, 10, 64) // digits only; too many are no counter
	return n
}
