package netns

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Held returns the IDs (see ID) of the network namespaces that process pid has open as files, or in
// which it has tap devices. The caller needs permission to trace the process (ptrace).
func Held(pid int) (ids []string, err error) {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	all, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list the files of process %d: %w", pid, err)
	}
	for _, e := range all {
		id, err := os.Readlink(dir + "/" + e.Name())
		if err == nil && strings.HasSuffix(id, "/net/tun") {
			id, err = ofTap(pid, e.Name())
		}
		if err == nil && strings.HasPrefix(id, "net:[") && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func ofTap(pid int, theirs string) (id string, err error) {
	n, err := strconv.Atoi(theirs)
	if err != nil {
		return "", err
	}
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = unix.Close(process) }()
	tap, err := unix.PidfdGetfd(process, n, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = unix.Close(tap) }()
	ns, err := unix.IoctlRetInt(tap, unix.TUNGETDEVNETNS)
	if err != nil {
		return "", err
	}
	defer func() { _ = unix.Close(ns) }()
	return os.Readlink("/proc/self/fd/" + strconv.Itoa(ns))
}

// MountedAt returns the ID of the network namespace that is mounted at a file in the mount
// namespace of process pid, or "" if there is none or the caller may not read it.
func MountedAt(pid int, file string) string {
	for _, m := range mounts("/proc/" + strconv.Itoa(pid) + "/mountinfo") {
		if m.file == file {
			return m.id
		}
	}
	return ""
}
