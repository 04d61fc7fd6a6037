package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
)

const entered = "BRIDGETOLL_USERNS"

// Entered reports whether Enter started this process.
func Entered() bool { return os.Getenv(entered) != "" }

// Enter runs this program again, with the same arguments and standard files, as root of a new user
// namespace, and returns the exit code. The new process dies with this one. When ctx ends, the new
// process receives the signal that stopped returns for the cause of ctx.
//
// If user namespaces are forbidden, Enter returns an error that wraps the errno of clone(2).
func Enter(ctx context.Context, stopped func(cause error) os.Signal) (code int, err error) {
	if Entered() {
		return 0, errors.New("network namespaces cannot be made even inside a user namespace")
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), entered+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	if code, err = local.Rerun(ctx, cmd, stopped); err != nil {
		return 0, fmt.Errorf("enter a user namespace: %w", err)
	}
	return code, nil
}
