package jail

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// holdAll starts a waiting process in each place, with the PID of a process of the original, so
// that nsenter -t PID -n enters the copy. The script may read and write these processes, so they
// have no privileges and no open files.
func holdAll(o order, filter *unix.SockFprog) error {
	ready := make([]int, 2)
	if err := unix.Pipe2(ready, unix.O_CLOEXEC); err != nil {
		return err
	}
	header, data := capSets(0)
	h := &holder{filter: filter, header: &header, caps: data, ready: ready[1]}
	n := 0
	err := in(o.Places, func(p Place) error {
		if p.PID <= 1 {
			return nil
		}
		errno := h.start(p.PID)
		switch {
		case errno == 0:
			n++
		case mentions(o.Script, p.PID):
			return fmt.Errorf("start a process with number %d: %w", p.PID, errno)
		}
		return nil
	})
	err = errors.Join(err, unix.Close(ready[1]))
	f := os.NewFile(uintptr(ready[0]), "ready")
	defer f.Close()
	b := make([]byte, 1)
	for range n {
		if _, e := f.Read(b); e != nil && err == nil {
			err = fmt.Errorf("prepare a namespace's process: %w", e)
		}
	}
	return err
}

// mentions reports whether the script has the number as a word.
func mentions(script string, n int) bool {
	return regexp.MustCompile(`\b` + strconv.Itoa(n) + `\b`).MatchString(script)
}

type holder struct {
	filter *unix.SockFprog
	header *unix.CapUserHeader
	caps   *[2]unix.CapUserData
	ready  int

	args cloneArgs
	pid  int32
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
	syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&all)),
		uintptr(unsafe.Pointer(&old)), size, 0, 0)
	r, _, errno := syscall.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&h.args)),
		unsafe.Sizeof(h.args), 0)
	if r != 0 || errno != 0 {
		syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK,
			uintptr(unsafe.Pointer(&old)), 0, size, 0, 0)
		return errno
	}
	h.wait()
	return 0
}

// wait is the child's.
//
//go:norace
//go:nosplit
func (h *holder) wait() {
	const highest = 1<<32 - 1
	_, _, a := syscall.RawSyscall(unix.SYS_CLOSE_RANGE, 0, uintptr(h.ready-1), 0)
	_, _, b := syscall.RawSyscall(unix.SYS_CLOSE_RANGE, uintptr(h.ready+1), highest, 0)
	_, _, c := syscall.RawSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(h.header)),
		uintptr(unsafe.Pointer(h.caps)), 0)
	_, _, d := syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0)
	if a|b|c|d|install(h.filter) == 0 {
		syscall.RawSyscall(unix.SYS_WRITE, uintptr(h.ready), uintptr(unsafe.Pointer(&h.pid)), 1)
		syscall.RawSyscall(unix.SYS_CLOSE, uintptr(h.ready), 0, 0)
		for {
			syscall.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
		}
	}
	for {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, 1, 0, 0)
	}
}
