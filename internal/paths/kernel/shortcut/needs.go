package shortcut

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

var standing = regexp.MustCompile(`(?m)^monotonic +0 +0$`)

// check returns the root of cgroup v2, which the caller closes, and the namespace's cookie.
func check() (root *os.File, cookie uint64, err error) {
	if os.Geteuid() != 0 {
		return nil, 0, &path.UnsupportedError{
			Missing: "only root may load BPF programs (CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON)",
			Remedy:  "sudo toll …"}
	}
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil {
		return nil, 0, &path.UnsupportedError{
			Missing: "the kernel does not describe its structures (CONFIG_DEBUG_INFO_BTF)",
			Remedy:  "a kernel with BTF, as distributions build it", Err: err}
	}
	if cookie, err = Namespace(); err != nil {
		return nil, 0, &path.UnsupportedError{
			Missing: "the kernel does not tell a network namespace's cookie (SO_NETNS_COOKIE, Linux 5.14)",
			Remedy:  "Linux 5.15 or later", Err: err}
	}
	if offsets, err := os.ReadFile("/proc/self/timens_offsets"); err == nil &&
		!standing.Match(offsets) {
		return nil, 0, &path.UnsupportedError{
			Missing: "toll is in a time namespace, whose clock is not the programs'",
			Remedy:  "run it outside"}
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
	missing := &path.UnsupportedError{Missing: "cgroup v2 is not mounted",
		Remedy: "sudo mount -t cgroup2 none /sys/fs/cgroup/unified, also beside cgroup v1"}
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
		// nothing is mounted over it
		if unix.Statfs(at[4], &st) == nil && st.Type == unix.CGROUP2_SUPER_MAGIC {
			return os.Open(at[4])
		}
	}
	return nil, missing
}

func explain(err error) error {
	var v *ebpf.VerifierError
	switch {
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) && !errors.As(err, &v):
		return &path.UnsupportedError{
			Missing: "this user may not load BPF programs (CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON)",
			// the library's text is about older kernels
			Remedy: "as root of the machine itself, not of a container", Err: unix.EPERM}
	case errors.As(err, &v), errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, unix.EINVAL):
		return &path.UnsupportedError{Missing: "this kernel does not take the BPF programs",
			Remedy: "Linux 5.15 or later with CONFIG_CGROUP_BPF", Err: err}
	}
	return fmt.Errorf("load BPF programs: %w", err)
}
