package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
)

// entered marks the environment of a process that Enter started.
const entered = "BRIDGETOLL_USERNS"

// MayBuild reports whether this process may make network namespaces: true as
// root and inside Enter's user namespace.
func MayBuild() bool {
	ns, err := netns.New()
	if err != nil {
		return false
	}
	return ns.Close() == nil
}

// Enter runs this program again, with the same arguments and standard files,
// in a user namespace of its own, where it is root over nothing but its own
// network namespaces. It returns the exit code. The program there dies with
// this process; signals that end this process are passed on instead.
//
// A kernel or a policy that forbids user namespaces is an error, with the
// errno of clone(2) in its chain.
func Enter() (code int, err error) {
	if os.Getenv(entered) != "" {
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
		Pdeathsig:   syscall.SIGKILL, // the caller's thread is main's, which lives as long as the process
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("enter a user namespace: %w", err)
	}
	ended, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		for {
			select {
			case s := <-signals:
				_ = cmd.Process.Signal(s) // it may have ended just now
			case <-ended.Done():
				return
			}
		}
	}()
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
