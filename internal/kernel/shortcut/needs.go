package shortcut

import (
	"bufio"
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/bpf"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
)

const needsKernel = "Linux 5.15 or later with CONFIG_CGROUP_BPF"

// check returns the root of cgroup v2, which the caller closes, and the namespace's cookie.
func check() (root *os.File, cookie uint64, err error) {
	if err := bpf.Check(); err != nil {
		return nil, 0, err
	}
	if cookie, err = Namespace(); err != nil {
		return nil, 0, &machine.UnsupportedError{
			Missing: "the kernel does not report a network namespace's cookie (SO_NETNS_COOKIE, Linux 5.14)",
			Remedy:  "Linux 5.15 or later", Err: err}
	}
	if root, err = cgroupRoot(); err != nil {
		return nil, 0, err
	}
	return root, cookie, nil
}

// Namespace returns the cookie of the calling thread's network namespace.
func Namespace() (uint64, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	return cookie, errors.Join(err, unix.Close(fd))
}

func cgroupRoot() (*os.File, error) {
	missing := &machine.UnsupportedError{Missing: "cgroup v2 is not mounted",
		Remedy: remedy.AsRoot("mount -t cgroup2 none /sys/fs/cgroup/unified") +
			", also with cgroup v1"}
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		missing.Err = err
		return nil, missing
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		before, after, _ := strings.Cut(lines.Text(), " - ")
		at, kind := strings.Fields(before), strings.Fields(after)
		if len(at) < 5 || len(kind) == 0 || kind[0] != "cgroup2" || at[3] != "/" {
			continue
		}
		var st unix.Statfs_t
		// A file system that is mounted over this one would have another type.
		if unix.Statfs(at[4], &st) == nil && st.Type == unix.CGROUP2_SUPER_MAGIC {
			return os.Open(at[4])
		}
	}
	return nil, missing
}
