package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

const entered = "BRIDGETOLL_USERNS"

// Entered reports whether Enter started this process.
func Entered() bool { return os.Getenv(entered) != "" }

// Enter runs this program again, with the same arguments and standard files, as root of a user
// namespace of its own, and returns the exit code. The new process dies with this one; when ctx
// ends it gets the signal that stopped returns for the cause.
//
// If user namespaces are forbidden, the error wraps the errno of clone(2).
func Enter(ctx context.Context, stopped func(cause error) os.Signal) (code int, err error) {
	if Entered() {
		return 0, errors.New("even inside a user namespace, network namespaces cannot be made")
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), entered+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		// the caller's thread is main's, which lives as long as the process
		Pdeathsig: syscall.SIGKILL,
	}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("enter a user namespace: %w", err)
	}
	forget := context.AfterFunc(ctx, func() {
		_ = cmd.Process.Signal(stopped(context.Cause(ctx)))
	})
	defer forget()
	return exitCode(cmd.Wait())
}

func exitCode(err error) (int, error) {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case !errors.As(err, &exit):
		return 0, err
	}
	if st, ok := exit.Sys().(syscall.WaitStatus); ok && st.Signaled() {
		const signaled = 128
		return signaled + int(st.Signal()), nil
	}
	return exit.ExitCode(), nil
}
