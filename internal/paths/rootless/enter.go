package rootless

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
)

const entered = "BRIDGETOLL_ENGINE_USERNS"

// Entered reports whether Enter started this process.
func Entered() bool { return os.Getenv(entered) != "" }

// Enter runs this program again, with the same arguments and standard files, as root of the user
// namespace of process pid, and returns the exit code; see local.Rerun. Network and mount
// namespaces stay the same. The user must own that user namespace. While the new process runs, this
// one reads /proc files for it that the new one may not read; see local.ServeIO.
func Enter(ctx context.Context, pid int, stopped func(cause error) os.Signal) (code int,
	err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	// A process with several threads, such as a Go program, cannot change its user namespace.
	enter, err := exec.LookPath("nsenter")
	if err != nil {
		return 0, &machine.UnsupportedError{
			Missing: "nsenter, which enters the engine's user namespace, is not installed",
			Remedy:  remedy.Install("util-linux") + ", or run toll as root", Err: err}
	}
	variable, stop, err := local.ServeIO()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	args := []string{"--user", "--preserve-credentials", "--target", strconv.Itoa(pid), "--", self}
	cmd := exec.Command(enter, append(args, os.Args[1:]...)...)
	// The programs that read rules may be missing from an ordinary user's PATH.
	cmd.Env = append(os.Environ(), entered+"=1", variable,
		"PATH="+os.Getenv("PATH")+":/usr/local/sbin:/usr/sbin:/sbin")
	return local.Rerun(ctx, cmd, stopped)
}
