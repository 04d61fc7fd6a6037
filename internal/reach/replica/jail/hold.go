package jail

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// holdAll starts a process in each place, with the PID of a process of the original, so that
// nsenter -t PID -n enters the copy. The script may read and write these processes, so they have no
// privileges, no open files, and run a program of the jail: /proc/PID/exe leads to it. They have
// stopped themselves.
func holdAll(o order, filter *unix.SockFprog) error {
	var started [2]int
	if err := unix.Pipe2(started[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	h, err := newHolder(filter, started[1])
	if err != nil {
		return err
	}
	var pids []int
	failed := func(pid int, err error) error {
		if mentions(o.Script, pid) {
			return fmt.Errorf("start a process with number %d: %w", pid, err)
		}
		return nil
	}
	err = in(o.Places, func(p Place) error {
		if p.PID <= 1 {
			return nil
		}
		if errno := h.start(p.PID); errno != 0 {
			return failed(p.PID, errno)
		}
		pids = append(pids, p.PID)
		return nil
	})
	err = errors.Join(err, unix.Close(started[1]))
	f := os.NewFile(uintptr(started[0]), "started")
	defer f.Close()
	// Each process has the other end until it runs its program.
	if _, e := io.Copy(io.Discard, f); e != nil {
		err = errors.Join(err, e)
	}
	for _, pid := range pids {
		if ended, e := unix.Wait4(pid, nil, unix.WNOHANG, nil); ended != 0 || e != nil {
			err = errors.Join(err, failed(pid, cmp.Or(e, errEnded)))
		}
	}
	return err
}

var errEnded = errors.New("it ended")

// mentions reports whether the script has the number as a word.
func mentions(script []byte, n int) bool {
	return regexp.MustCompile(`\b` + strconv.Itoa(n) + `\b`).Match(script)
}

type holder struct {
	filter  *unix.SockFprog
	header  *unix.CapUserHeader
	caps    *[2]unix.CapUserData
	started int
	path    *byte
	argv    []*byte
	envp    []*byte

	args cloneArgs
	pid  int32
}

func newHolder(filter *unix.SockFprog, started int) (*holder, error) {
	header, data := capSets(0)
	h := &holder{filter: filter, header: &header, caps: data, started: started, envp: make([]*byte, 1)}
	var err error
	if h.path, err = unix.BytePtrFromString("/bin/sh"); err == nil {
		h.argv, err = syscall.SlicePtrFromStrings([]string{"sh", "-c", "kill -STOP $$"})
	}
	return h, err
}

// cloneArgs is struct clone_args of linux/sched.h.
type cloneArgs struct {
	flags, pidfd, childTID, parentTID, exitSignal, stack, stackSize, tls uint64
	setTID, setTIDSize                                                   uint64
}

// start starts a process with the given PID in the calling thread's network namespace.
func (h *holder) start(pid int) syscall.Errno {
	h.pid = int32(pid)
	h.args = cloneArgs{exitSignal: uint64(unix.SIGCHLD),
		setTID: uint64(uintptr(unsafe.Pointer(&h.pid))), setTIDSize: 1}
	return h.fork()
}

// fork returns in the parent only. The child has one thread of a Go process, so it may only make
// system calls. Signals are blocked in it, because no handler may run.
//
//go:norace
//go:nosplit
func (h *holder) fork() syscall.Errno {
	var old, all uint64
	all = ^uint64(0)
	const size = 8
	_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK,
		uintptr(unsafe.Pointer(&all)), uintptr(unsafe.Pointer(&old)), size, 0, 0)
	r, _, errno := syscall.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&h.args)),
		unsafe.Sizeof(h.args), 0)
	if r != 0 || errno != 0 {
		_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK,
			uintptr(unsafe.Pointer(&old)), 0, size, 0, 0)
		return errno
	}
	h.run()
	return 0
}

// run is the child's.
//
//go:norace
//go:nosplit
func (h *holder) run() {
	const highest = 1<<32 - 1
	_, _, a := syscall.RawSyscall(unix.SYS_CLOSE_RANGE, 0, uintptr(h.started-1), 0)
	_, _, b := syscall.RawSyscall(unix.SYS_CLOSE_RANGE, uintptr(h.started+1), highest, 0)
	_, _, c := syscall.RawSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(h.header)),
		uintptr(unsafe.Pointer(h.caps)), 0)
	_, _, d := syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0)
	if a|b|c|d|install(h.filter) == 0 {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(h.path)),
			uintptr(unsafe.Pointer(&h.argv[0])), uintptr(unsafe.Pointer(&h.envp[0])))
	}
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, 1, 0, 0)
	}
}
