package local

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// Rerun runs cmd, which is this program in other namespaces, with this process's standard files,
// and returns its exit code. cmd dies with this process. When ctx ends, cmd receives the signal
// that stopped returns for the cause of ctx. Rerun returns an error if cmd does not start.
func Rerun(ctx context.Context, cmd *exec.Cmd, stopped func(cause error) os.Signal) (code int,
	err error) {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL // of main's thread, which lives as long as the process
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	forget := context.AfterFunc(ctx, func() {
		_ = cmd.Process.Signal(stopped(context.Cause(ctx)))
	})
	defer forget()
	err = cmd.Wait()
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
