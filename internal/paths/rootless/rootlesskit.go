package rootless

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/exchange"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
)

// Kit has the options of a RootlessKit to start.
type Kit struct {
	// Net and Ports name the network and port drivers as `rootlesskit --help` does.
	Net, Ports string
	// MTU is the MTU of the tap device in bytes.
	MTU       int
	Published []Published
	UDP       bool // the published ports are UDP
}

// Published has the address on which RootlessKit listens, and the address in its network that it
// dials.
type Published struct{ At, To netip.AddrPort }

// Tap is the device in the network that RootlessKit makes.
const Tap = "tap0"

const (
	scratch = "/tmp"
	state   = scratch + "/state"
	tools   = scratch + "/bin"

	readyTimeout = 30 * time.Second
	readyStep    = 5 * time.Millisecond
)

// Args returns the arguments for Main that start the RootlessKit in file as dockerd-rootless.sh of
// Docker Engine 28.5.2 does. RootlessKit runs cat once its network is made. cat echoes the first
// line of standard input and exits when standard input is closed.
func (k Kit) Args(file string) []string {
	out := []string{file, "--state-dir=" + state, "--net=" + k.Net,
		"--mtu=" + strconv.Itoa(k.MTU), "--slirp4netns-sandbox=auto",
		"--slirp4netns-seccomp=auto", "--disable-host-loopback", "--port-driver=" + k.Ports,
		"--copy-up=/etc"}
	for _, p := range k.Published {
		family := "4"
		if p.At.Addr().Is6() {
			family = "6"
		}
		out = append(out, "--publish="+p.At.String()+":"+p.To.String()+"/"+
			Port{UDP: k.UDP}.Protocol()+family)
	}
	return append(out, "cat")
}

// Apart returns the attributes with which a process that calls Main must be started.
func Apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS}
}

// Main replaces this process with args[0], which is RootlessKit or rootlessport. It returns only if
// that fails. The process must be the first one in mount and PID namespaces of its own, which hide
// the files that the program leaves in /tmp and end its children with it. RootlessKit asks for a
// range of user IDs and gets one, root's, which needs no setuid program.
func Main(args []string) error {
	file, err := visible(args[0])
	if err != nil {
		return err
	}
	if err := hide(); err != nil {
		return err
	}
	for name, script := range map[string]string{
		"getsubids": "echo 0: root 0 1",
		"newuidmap": "echo $2 $3 1 >/proc/$1/uid_map",
		"newgidmap": "echo $2 $3 1 >/proc/$1/gid_map",
	} {
		err = os.WriteFile(filepath.Join(tools, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755)
		if err != nil {
			return err
		}
	}
	if err := os.Setenv("PATH", tools+":"+os.Getenv("PATH")); err != nil {
		return err
	}
	return fmt.Errorf("start %s: %w", args[0], syscall.Exec(file, args, os.Environ()))
}

// visible returns the program's file or, if it is in the scratch directory, a name that stays valid
// when a tmpfs hides that directory.
func visible(file string) (string, error) {
	real, err := filepath.EvalSymlinks(file)
	if err != nil || !strings.HasPrefix(real, scratch+"/") {
		return file, nil //nolint:nilerr // starting it returns the error
	}
	fd, err := unix.Open(real, unix.O_RDONLY, 0) // a script's interpreter needs it open
	return "/proc/self/fd/" + strconv.Itoa(fd), err
}

func hide() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC,
		""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := unix.Mount("toll", scratch, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
		return fmt.Errorf("mount a tmpfs: %w", err)
	}
	return errors.Join(os.Mkdir(tools, 0o755), os.Mkdir(state, 0o700))
}

// Gvisor is RootlessKit's driver with gvisor-tap-vsock.
const Gvisor = "gvisor-tap-vsock"

// CheckDriver returns a *machine.UnsupportedError if the RootlessKit in file lacks the driver.
func CheckDriver(file, driver string) error {
	if strings.Contains(output(file, "--help"), driver) {
		return nil
	}
	return &machine.UnsupportedError{
		Missing: Named(RootlessKit, file) + " has no driver " + driver,
		Remedy:  "RootlessKit 3 (github.com/rootless-containers/rootlesskit), first in PATH"}
}

// Transparent reports whether the RootlessKit in file preserves clients' addresses by default.
// Versions from 3 on do.
func Transparent(file string) bool {
	return strings.Contains(output(file, "--help"), "source-ip-transparent")
}

// Running is a RootlessKit that has made its network and listens on its ports.
type Running struct {
	// PID is the process that relays published ports.
	PID     int
	child   string // PID in RootlessKit's PID namespace
	process *path.Process
	ended   chan struct{}
}

// RootlessKit's child calls exec on itself while RootlessKit's nsenter opens the child's
// namespaces. During an exec they cannot be opened, and RootlessKit fails.
const (
	raced     = "nsenter: cannot open /proc/"
	mostTries = 3
)

// Start starts RootlessKit in a machine's network namespace and returns when it listens on all
// ports. command returns a command of this program with arguments from Args, and the end of its
// standard error. Start calls command again if RootlessKit fails by the race above. How often Start
// enters the namespace varies. The caller closes the result.
func (k Kit) Start(machine local.Space, command func() (*exec.Cmd, *local.Tail)) (r *Running,
	err error) {
	for range mostTries {
		cmd, said := command()
		if r, err = k.start(machine, cmd, said); err == nil || !strings.Contains(err.Error(), raced) {
			break
		}
	}
	return r, err
}

func (k Kit) start(machine local.Space, cmd *exec.Cmd, said *local.Tail) (*Running, error) {
	cmd.SysProcAttr = Apart()
	p, err := local.Start(machine, RootlessKit, cmd, said)
	if err != nil {
		return nil, err
	}
	r := &Running{PID: p.PID, process: p, ended: make(chan struct{})}
	ready := make(chan struct{})
	go func() {
		defer close(r.ended)
		if n, _ := p.Out.Read(make([]byte, 1)); n == 1 {
			close(ready)
		}
		_, _ = io.Copy(io.Discard, p.Out)
		_ = p.Out.Close()
	}()
	_, err = io.WriteString(p.In, "\n")
	if err == nil {
		err = k.await(machine, r, ready)
	}
	if err != nil {
		closed := r.Close() // after this, said is complete
		return nil, fmt.Errorf("start %s: %w", RootlessKit, errors.Join(err, said.Err(), closed))
	}
	return r, nil
}

// await waits until RootlessKit is ready. The file child_pid alone does not show that: RootlessKit
// 1 writes it last, but RootlessKit 3 first.
func (k Kit) await(machine local.Space, r *Running, ready <-chan struct{}) error {
	deadline := time.After(readyTimeout)
	for {
		b, err := exchange.ReadFile(filepath.Join(r.root(), state, "child_pid"), maxPID)
		if err == nil && len(b) > 0 {
			r.child = strings.TrimSpace(string(b))
		}
		missing, err := k.missing(machine)
		if err != nil {
			return err
		}
		var done <-chan struct{}
		if r.child != "" && len(missing) == 0 {
			done = ready
		}
		select {
		case <-done:
			return nil
		case <-r.ended:
			return errors.New("it ended")
		case <-deadline:
			return fmt.Errorf("not ready after %s (ports without a listener: %v)", readyTimeout, missing)
		case <-time.After(readyStep):
		}
	}
}

func (k Kit) missing(machine local.Space) (ports []uint16, err error) {
	if len(k.Published) == 0 {
		return nil, nil
	}
	err = machine.Do(func() error {
		for _, p := range k.Published {
			bound, err := sock.Bound(Port{UDP: k.UDP}.Protocol(), p.At.Port())
			if err != nil {
				return err
			}
			if !bound {
				ports = append(ports, p.At.Port())
			}
		}
		return nil
	})
	return ports, err
}

func (r *Running) root() string { return "/proc/" + strconv.Itoa(r.PID) + "/root" }

// Network returns the network namespace that RootlessKit made. The caller closes it.
func (r *Running) Network() (*netns.NS, error) {
	return netns.Join(filepath.Join(r.root(), "proc", r.child, "ns/net"))
}

// Driver returns the PID of the named program if RootlessKit started it, such as slirp4netns.
func (r *Running) Driver(program string) (int, error) { return local.Child(r.PID, program) }

// Close kills RootlessKit and the processes that it started, and removes its network.
func (r *Running) Close() error {
	err := r.process.Kill()
	_ = r.process.In.Close()
	_ = r.process.Wait()
	<-r.ended
	return err
}
