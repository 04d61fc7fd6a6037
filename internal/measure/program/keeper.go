package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
)

const (
	poll       = 2 * time.Millisecond   // between readiness checks
	grace      = 2 * time.Second        // between SIGTERM and SIGKILL
	drain      = 100 * time.Millisecond // for output in a pipe when a program has ended
	shell      = "/bin/sh"
	ordinaryID = 1000 // user and group ID of a program without root
)

type keeper struct {
	orders   <-chan Request // closed at the end of input
	children chan os.Signal
	first    bool  // it is the first process of its PID namespace
	ownProc  bool  // it sees the /proc of that namespace
	unable   error // why it starts no program

	pid            int // of the program; 0: none
	began          time.Time
	before         time.Duration
	stdout, stderr *output
	follower       *sock.Follower // nil: none
	state          State
	stopping       bool // it is told to end
}

var errInput = errors.New("end of input")

// Main runs a keeper on in and out. When the input ends, it kills the programs and returns.
func Main(in io.Reader, out io.Writer) error {
	k := &keeper{children: make(chan os.Signal, 1)}
	if k.first = os.Getpid() == 1; k.first {
		k.ownProc, k.unable = hide()
	}
	// The programs must not inherit the capabilities with which a keeper without root mounts. With
	// cgo they cannot be dropped for all threads; programs may then mount in their user namespace.
	_, _, _ = syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT,
		unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0, 0)
	signal.Notify(k.children, unix.SIGCHLD)
	orders := make(chan Request)
	go func() {
		defer close(orders)
		for dec := json.NewDecoder(in); ; {
			var o Request
			if dec.Decode(&o) != nil {
				return
			}
			orders <- o
		}
	}()
	k.orders = orders
	enc := json.NewEncoder(out)
	for {
		select {
		case <-k.children:
			k.reap()
		case o, ok := <-orders:
			if !ok {
				k.kill(unix.SIGKILL)
				return nil
			}
			s, err := k.do(o)
			if errors.Is(err, errInput) {
				k.kill(unix.SIGKILL)
				return nil
			}
			if err != nil {
				s.Error = err.Error()
			}
			if err := enc.Encode(s); err != nil {
				return err
			}
		}
	}
}

// hide gives the keeper its own memory and, if permitted, the /proc of its PID namespace.
func hide() (ownProc bool, err error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return false, fmt.Errorf("make mounts private: %w", err)
	}
	err = unix.Mount("toll", memoryDir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777")
	switch {
	case errors.Is(err, unix.ENOENT):
		return false, fmt.Errorf("this machine has no %s, where {dir} would be: mkdir -m 1777 %[1]s",
			memoryDir)
	case err != nil:
		return false, fmt.Errorf("mount memory on %s: %w", memoryDir, err)
	}
	// The kernel refuses it if another /proc is partly hidden, as in most containers.
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	return unix.Mount("proc", "/proc", "proc", flags, "") == nil, nil
}

func (k *keeper) do(o Request) (State, error) {
	switch o.Op {
	case Start:
		if k.unable != nil {
			return State{}, k.unable
		}
		return k.start(o)
	case Read:
		return k.read(), nil
	case Wait:
		return k.wait(o.Limit)
	case Stop:
		return k.stop(), nil
	}
	return State{}, fmt.Errorf("unknown request %q", o.Op)
}

func (k *keeper) start(o Request) (State, error) {
	k.stop()
	ready, err := readiness(o, k)
	if err != nil {
		return State{}, err
	}
	if o.Follow.IsValid() {
		k.follower, _ = sock.Follow(o.Follow) // without CONFIG_INET_DIAG, follower is nil
	}
	if err := k.launch(o); err != nil {
		_ = k.tally()
		return State{}, err
	}
	deadline := time.After(o.Limit)
	for tick := time.NewTicker(poll); ; {
		ok, err := ready()
		switch {
		case err != nil:
			return k.report(true), err
		case ok:
			return k.report(false), nil
		case k.state.Ended && (k.state.Exit != "" || !k.first || !k.left()): // it has left no daemon
			k.settle()
			if ok, err := ready(); ok && err == nil { // its output came after its end was seen
				return k.report(false), nil
			}
			return k.report(true), errors.New("it ended before it was ready")
		}
		select {
		case <-tick.C:
		case <-k.children:
			k.reap()
		case <-deadline:
			return k.report(true), fmt.Errorf("it was not ready (%s) within %s", readyWords(o),
				o.Limit)
		case <-k.orders:
			return State{}, errInput
		}
	}
}

func (k *keeper) launch(o Request) error {
	outR, outW, err := os.Pipe()
	if err != nil {
		return err
	}
	errR, errW, err := os.Pipe()
	if err != nil {
		return errors.Join(err, outR.Close(), outW.Close())
	}
	cmd := exec.Command(shell, "-c", o.Command)
	cmd.Stdout, cmd.Stderr = outW, errW
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if o.NoRoot {
		cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{
			{ContainerID: ordinaryID, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{
			{ContainerID: ordinaryID, HostID: os.Getgid(), Size: 1}}
	}
	k.state, k.before, k.stopping = State{}, k.spent(), false
	k.began = time.Now()
	err = cmd.Start()
	_ = errors.Join(outW.Close(), errW.Close())
	if err != nil {
		return errors.Join(fmt.Errorf("start %s: %w", shell, err), outR.Close(), errR.Close())
	}
	k.pid = cmd.Process.Pid
	k.stdout, k.stderr = collect(outR), collect(errR)
	return cmd.Process.Release() // reap waits for it
}

func readiness(o Request, k *keeper) (func() (bool, error), error) {
	switch o.Ready {
	case "":
		return func() (bool, error) { return true, nil }, nil
	case ReadyTCP, readyUDP:
		return func() (bool, error) { return bound(o.Ready, o.Port) }, nil
	}
	re, err := regexp.Compile("(?m)" + o.Ready) // as for metrics
	if err != nil {
		return nil, err
	}
	seen := int64(-1)
	return func() (bool, error) {
		out, n := k.stdout.text()
		errOut, m := k.stderr.text()
		if n+m == seen {
			return false, nil
		}
		seen = n + m
		return re.MatchString(out) || re.MatchString(errOut), nil
	}, nil
}

func readyWords(o Request) string {
	switch o.Ready {
	case ReadyTCP:
		return "listening on TCP port " + strconv.Itoa(int(o.Port))
	case readyUDP:
		return "bound to UDP port " + strconv.Itoa(int(o.Port))
	}
	return "its output matches " + o.Ready
}

func (k *keeper) reap() {
	for {
		var st unix.WaitStatus
		pid, err := unix.Wait4(-1, &st, unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		switch {
		case pid == k.pid && !k.state.Ended:
			k.state = State{Ended: true, Exit: exitWords(st), Elapsed: time.Since(k.began),
				EndedAt: clock.Now()}
		case k.state.Ended && !k.stopping && st.Signaled():
			k.state.Orphan = exitWords(st)
		}
	}
}

func exitWords(st unix.WaitStatus) string {
	switch {
	case st.Signaled():
		return "signal: " + st.Signal().String()
	case st.ExitStatus() != 0:
		return "exit status " + strconv.Itoa(st.ExitStatus())
	}
	return ""
}

func (k *keeper) wait(limit time.Duration) (State, error) {
	if k.pid == 0 {
		return State{}, errors.New("nothing was started")
	}
	for deadline := time.After(limit); !k.state.Ended; {
		select {
		case <-k.children:
			k.reap()
		case <-deadline:
			return k.report(true), fmt.Errorf("it did not end within %s", limit)
		case <-k.orders:
			return State{}, errInput
		}
	}
	k.settle()
	return k.report(true), nil
}

// read returns the state so far, with the output of a program that failed.
func (k *keeper) read() State {
	k.reap()
	failed := k.state.Exit != "" || k.state.Orphan != ""
	if failed {
		k.settle()
	}
	return k.report(failed)
}

// settle waits for the rest of the output, at most for drain, because a process that the program
// left behind may hold the pipes open.
func (k *keeper) settle() {
	late := time.After(drain)
	for _, o := range []*output{k.stdout, k.stderr} {
		select {
		case <-o.ended:
		case <-late:
			return
		}
	}
}

// stop ends the program and everything that it started, with SIGTERM and, after grace, SIGKILL.
func (k *keeper) stop() State {
	if k.pid == 0 {
		return State{}
	}
	k.reap()
	k.stopping = true
	if !k.state.Ended {
		k.kill(unix.SIGTERM)
		for late := time.After(grace); !k.state.Ended; {
			select {
			case <-k.children:
				k.reap()
				continue
			case <-late:
			}
			break
		}
	}
	k.kill(unix.SIGKILL)
	for k.left() {
		<-k.children
		k.reap()
	}
	k.settle()
	s := k.report(true)
	s.Tally = k.tally()
	k.pid = 0
	return s
}

// tally stops following connections and returns the counts, or nil if they are unknown.
func (k *keeper) tally() *sock.Tally {
	if k.follower == nil {
		return nil
	}
	t, err := k.follower.Stop()
	k.follower = nil
	if err != nil || t.Lost {
		return nil
	}
	return &t
}

// left reports whether the program still runs or, in an own PID namespace, any process.
func (k *keeper) left() bool {
	k.reap()
	if !k.first {
		return !k.state.Ended
	}
	var info unix.Siginfo
	return unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil) == nil
}

// kill signals the program's group. In an own PID namespace, SIGKILL goes to all other processes.
func (k *keeper) kill(s syscall.Signal) {
	switch {
	case k.pid == 0:
	case s == unix.SIGKILL && k.first:
		_ = unix.Kill(-1, s) // all but this one; there may be none
	default:
		_ = unix.Kill(-k.pid, s)
	}
}

func (k *keeper) report(output bool) State {
	s := k.state
	s.CPU, s.Known = k.spent()-k.before, k.ownProc || s.Ended
	if output && k.stdout != nil {
		s.Stdout, _ = k.stdout.text()
		s.Stderr, _ = k.stderr.text()
	}
	return s
}
