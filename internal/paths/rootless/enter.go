package rootless

import (
	"context"
	"os"
	"os/exec"
	"strconv"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
)

const entered = "BRIDGETOLL_ENGINE_USERNS"

// Entered reports whether Enter started this process.
func Entered() bool { return os.Getenv(entered) != "" }

// Enter runs this program again, with the same arguments and standard files, as root of the user
// namespace of process pid, and returns the exit code; see local.Rerun. The network and the files
// stay the machine's. The user must be the one who made the user namespace.
func Enter(ctx context.Context, pid int, stopped func(cause error) os.Signal) (code int,
	err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	// A process with threads, as those of Go, cannot change its user namespace.
	enter, err := exec.LookPath("nsenter")
	if err != nil {
		return 0, &path.UnsupportedError{
			Missing: "nsenter, which enters the engine's user namespace, is not installed",
			Remedy:  "sudo apt install util-linux, or run toll as root", Err: err}
	}
	args := []string{"--user", "--preserve-credentials", "--target", strconv.Itoa(pid), "--", self}
	cmd := exec.Command(enter, append(args, os.Args[1:]...)...)
	// Root's programs, which read rules, may be in no PATH of a user's.
	cmd.Env = append(os.Environ(), entered+"=1",
		"PATH="+os.Getenv("PATH")+":/usr/local/sbin:/usr/sbin:/sbin")
	return local.Rerun(ctx, cmd, stopped)
}
