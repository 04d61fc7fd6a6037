package rootless

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

// FindPodman returns the PID of a process in the user namespace of the rootless Podman whose service
// has a Unix socket: the service, or the process that keeps Podman's namespaces where systemd has
// the socket. The error is an *path.UnsupportedError if there is none.
func FindPodman(socket string) (pid int, err error) {
	if pid, err = listener(socket); err == nil && InUserNamespace(strconv.Itoa(pid)) {
		return pid, nil
	}
	owner := ownerOf(socket)
	for _, dir := range []string{filepath.Dir(filepath.Dir(socket)), os.Getenv("XDG_RUNTIME_DIR"),
		"/run/user/" + strconv.Itoa(owner)} {
		text, err := os.ReadFile(filepath.Join(dir, "libpod/tmp/pause.pid"))
		if err != nil {
			continue
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err == nil && ownerOf("/proc/"+strconv.Itoa(pid)) == owner &&
			InUserNamespace(strconv.Itoa(pid)) {
			return pid, nil
		}
	}
	return 0, &path.UnsupportedError{
		Missing: "no process of the rootless Podman behind " + socket + " is found, by which its namespaces are entered",
		Remedy:  "podman unshare true as Podman's user, which starts one; toll outside containers", Err: err}
}

// The result is -1 if the file is not there.
func ownerOf(file string) int {
	info, err := os.Stat(file)
	if err != nil {
		return -1
	}
	return int(info.Sys().(*syscall.Stat_t).Uid) //nolint:forcetypeassert // of Linux
}

// InUserNamespace reports whether a process, a PID or "self", is in a user namespace other than the
// machine's.
func InUserNamespace(process string) bool {
	text, err := os.ReadFile("/proc/" + process + "/uid_map")
	f := strings.Fields(string(text))
	return err == nil && len(f) >= 3 && f[2] != "4294967295"
}

// BridgesOf returns the file of the network namespace with the bridges of a rootless Podman (4.0 and
// later), by a process in its namespaces and its runRoot. It is there while a container is on one.
func BridgesOf(pid int, runRoot string) string {
	return filepath.Join(fmt.Sprintf("/proc/%d/root", pid), runRoot,
		"networks/rootless-netns/rootless-netns")
}
