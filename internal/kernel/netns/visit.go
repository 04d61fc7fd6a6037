package netns

import (
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// File returns the file of the network namespace of process pid.
func File(pid int) string { return "/proc/" + strconv.Itoa(pid) + "/ns/net" }

// ID returns the identity of the network namespace of process pid as /proc shows it, such as
// "net:[4026531840]". Only root may read that of other users' processes.
func ID(pid int) (string, error) {
	return os.Readlink(File(pid))
}

// Visit runs f in the network namespace of process pid, on a thread of its own. It needs
// CAP_SYS_ADMIN.
func Visit(pid int, f func() error) error {
	ns, err := os.Open(File(pid))
	if err != nil {
		return fmt.Errorf("enter network namespace: %w", err)
	}
	defer ns.Close()
	return VisitFile(int(ns.Fd()), f)
}

// VisitFile is like Visit for the namespace of an open file.
func VisitFile(fd int, f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("enter network namespace: %w", err)
			return
		}
		done <- f()
	}()
	return <-done
}
