package agent

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Sit is the first process of a container in which agents are started from outside. It reaps ended
// processes. After patience without another process in the container it returns, so the container
// ends some time after the toll that uses it.
func Sit(ctx context.Context, patience time.Duration) error {
	const looks = 300 * time.Millisecond
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	defer signal.Stop(children)
	go func() {
		for range children {
			reap()
		}
	}()
	for last := time.Now(); time.Since(last) < patience; {
		pid, err := other()
		if err != nil {
			return err
		}
		if pid != 0 {
			if err := ended(ctx, pid); err != nil {
				return err
			}
			last = time.Now()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(looks):
		}
	}
	return nil
}

func reap() {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if pid <= 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// other returns the PID of another process in this container, or 0. A container may see the
// processes of others, too, but has a mount namespace of its own.
func other() (int, error) {
	own, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return 0, err
	}
	d, err := os.Open("/proc")
	if err != nil {
		return 0, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return 0, err
	}
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil || pid == os.Getpid() || !runs(n) {
			continue
		}
		mounts, err := os.Readlink("/proc/" + n + "/ns/mnt")
		if mounts == own || errors.Is(err, unix.EACCES) {
			return pid, nil
		}
	}
	return 0, nil
}

// runs reports whether the process has not ended. The directory in /proc does not show that,
// because it stays until the process is reaped.
func runs(pid string) bool {
	exe, err := os.Readlink("/proc/" + pid + "/exe")
	return exe != "" || err != nil && errors.Is(err, unix.EACCES)
}

func ended(ctx context.Context, pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	switch {
	case errors.Is(err, unix.ESRCH):
		return nil
	case err != nil: // a kernel without pidfds: it polls
		const now = time.Second
		select {
		case <-ctx.Done():
		case <-time.After(now):
		}
		return nil
	}
	defer func() { _ = unix.Close(fd) }()
	// The descriptor becomes readable when the process ends.
	const most = 5000 // ms
	for ctx.Err() == nil {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, most)
		if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return nil
		}
	}
	return nil
}
