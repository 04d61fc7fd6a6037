// Package jail runs shell commands in a network namespace of a machine's copy, so that they change
// only the copy. A command gets mount, PID, IPC, UTS and cgroup namespaces of its own, which end
// with it, three capabilities over the copy, and a filter of system calls.
//
// Root in the copy's user namespace may be the machine's root. Without any capability that user may
// write root's files, kernel parameters and control groups, signal root's processes and use
// daemons' sockets. So the command sees only read-only or private files, no process of the machine,
// and cannot open Unix sockets.
//
// The first process, see Main, prepares all of it. Nothing but the result leaves it, by pipes.
package jail

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
)

// Arg is the second argument of the process that Main runs; the first is replica.Arg.
const Arg = "jail"

// The limits for a command.
const (
	MaxTime = 10 * time.Second
	MaxText = 64 << 10 // bytes
)

// Place is a network namespace that a command may enter.
type Place struct {
	PID   int      `json:"pid,omitempty"`   // for nsenter -t PID -n; 0: none
	Names []string `json:"names,omitempty"` // for ip -n NAME
	FD    int      `json:"-"`               // the namespace's file
}

// Result is the result of a command.
type Result struct {
	Code     int    // 128 plus a signal's number, as in a shell; 124 after MaxTime
	Text     string // standard output and error, at most MaxText bytes
	Cut      bool   // there was more text
	TimedOut bool
}

// timedOut is the exit code of timeout(1).
const timedOut = 124

// order is what the jail's process reads from its standard input.
type order struct {
	Script []byte  `json:"script"` // JSON has no text that is not UTF-8
	Dir    []byte  `json:"directory"`
	Places []Place `json:"places"` // their files are the descriptors from firstPlace
	Grants bool    `json:"grants"` // the descriptor behind those is an end of Grants
}

// report is what the process writes to descriptor reportFD.
type report struct {
	Err  string `json:"error,omitempty"` // the jail could not be made
	Code int    `json:"code"`
}

const (
	reportFD   = 3
	textFD     = 4
	firstPlace = 5
)

// errRefused means that the jail could not be made, so the command did not run.
var errRefused = errors.New("cannot confine the command")

// IsRefused reports whether err means that the jail could not be made.
func IsRefused(err error) bool { return errors.Is(err, errRefused) }

// Run runs a script with /bin/sh in a namespace. The calling process must be in a user namespace of
// its own that owns ns and all places. Files below dir are visible to the script; what it writes
// there is lost. If the script does not end within MaxTime, it is killed. grants is an inherited
// end of Grants; -1: none.
func Run(ctx context.Context, ns *netns.NS, script, dir string, places []Place, grants int) (Result,
	error) {
	ctx, cancel := context.WithTimeout(ctx, MaxTime)
	defer cancel()
	p, err := start(ns, order{[]byte(script), []byte(dir), places, grants >= 0}, grants)
	if err != nil {
		return Result{}, fmt.Errorf("%w: %w", errRefused, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = p.cmd.Process.Kill() })
	defer stop()
	var r Result
	var got report
	var said error
	var all sync.WaitGroup
	all.Go(func() { r.Text, r.Cut = head(p.text, MaxText) })
	all.Go(func() { said = json.NewDecoder(p.report).Decode(&got) })
	all.Wait()
	err = errors.Join(p.report.Close(), p.text.Close())
	_ = p.cmd.Wait() // the report has the script's exit code
	switch {
	case ctx.Err() != nil && said != nil:
		r.Code, r.TimedOut = timedOut, true
	case said != nil: // the script killed the jail's first process
		r.Code = 128 + int(unix.SIGKILL)
	case got.Err != "":
		return r, fmt.Errorf("%w: %s", errRefused, got.Err)
	default:
		r.Code = got.Code
	}
	return r, err
}

type process struct {
	cmd          *exec.Cmd
	report, text *os.File
}

func start(ns *netns.NS, o order, grants int) (*process, error) {
	b, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	report, reportEnd, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	text, textEnd, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, report.Close(), reportEnd.Close())
	}
	ends := []*os.File{reportEnd, textEnd}
	cmd := exec.Command(local.Self, os.Args[1], Arg)
	cmd.Env = []string{} // a command may read it
	cmd.Stdin = bytes.NewReader(b)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID |
		unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP}
	var inherited []int
	for _, p := range o.Places {
		inherited = append(inherited, p.FD)
	}
	if o.Grants {
		inherited = append(inherited, grants)
	}
	for i := 0; err == nil && i < len(inherited); i++ {
		var fd int
		if fd, err = unix.FcntlInt(uintptr(inherited[i]), unix.F_DUPFD_CLOEXEC, 0); err == nil {
			ends = append(ends, os.NewFile(uintptr(fd), "inherited"))
		}
	}
	cmd.ExtraFiles = ends
	if err == nil {
		err = ns.Start(cmd)
	}
	for _, f := range ends {
		_ = f.Close()
	}
	if err != nil {
		return nil, errors.Join(err, report.Close(), text.Close())
	}
	return &process{cmd, report, text}, nil
}

// head returns the first n bytes of r, and reports whether there were more. It reads r to its end.
func head(r io.Reader, n int64) (string, bool) {
	var b bytes.Buffer
	_, _ = io.Copy(&b, io.LimitReader(r, n))
	more, _ := io.Copy(io.Discard, r)
	return b.String(), more > 0
}
