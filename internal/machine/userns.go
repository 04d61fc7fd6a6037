package machine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
)

// ExplainUserNamespace wraps the error of making a user namespace, with a network namespace in it,
// without privileges. The result names the setting that forbids it and has a Hint. It is nil if
// cause is nil. Some security modules and container runtimes have no readable setting.
func (m Machine) ExplainUserNamespace(cause error) error {
	if cause == nil {
		return nil
	}
	errno, known := errors.AsType[syscall.Errno](cause)
	for _, o := range m.obstacles() {
		// A setting that causes another errno is not the reason.
		if (!known || slices.Contains(o.errnos, errno)) && o.stands() {
			return &namespaceError{reason: o.reason, hint: o.hint, cause: cause}
		}
	}
	if errno == syscall.ENOSPC || errno == syscall.EUSERS {
		return &namespaceError{
			reason: "the limits in /proc/sys/user are used up, or namespaces are nested too deeply",
			hint: remedy.AsRoot("sysctl -w user.max_user_namespaces=15000 " +
				"user.max_net_namespaces=15000"),
			cause: cause,
		}
	}
	return &namespaceError{reason: "no known setting forbids it",
		hint: m.asRoot("run toll outside the chroot or container that it is in"), cause: cause}
}

// asRoot returns the hint to run toll as root, which needs no user namespace for the lab, or for
// root, which needs one for a copy, what else to do.
func (m Machine) asRoot(otherwise string) string {
	if m.root() {
		return otherwise
	}
	return "run toll as root"
}

type obstacle struct {
	errnos       []syscall.Errno
	stands       func() bool
	reason, hint string
}

func (m Machine) obstacles() []obstacle {
	is := func(file, value string) func() bool {
		return func() bool { return m.text(file) == value }
	}
	absent := func(file string) func() bool {
		// Without /proc nothing is known.
		return func() bool { return m.exists("/proc/self/ns") && !m.exists(file) }
	}
	missing := []syscall.Errno{syscall.EINVAL, syscall.ENOSYS}
	denied := []syscall.Errno{syscall.EPERM, syscall.EACCES}
	// Older kernels returned EUSERS.
	full := []syscall.Errno{syscall.ENOSPC, syscall.EUSERS}
	return []obstacle{
		{missing, absent("/proc/self/ns/user"),
			"the kernel was built without CONFIG_USER_NS (no /proc/self/ns/user)",
			m.asRoot("use a kernel with CONFIG_USER_NS=y")},
		{missing, absent("/proc/self/ns/net"),
			"the kernel was built without CONFIG_NET_NS (no /proc/self/ns/net)",
			"use a kernel with CONFIG_NET_NS=y"},
		{full, is("/proc/sys/user/max_user_namespaces", "0"),
			"/proc/sys/user/max_user_namespaces is 0",
			remedy.AsRoot("sysctl -w user.max_user_namespaces=15000")},
		{full, is("/proc/sys/user/max_net_namespaces", "0"),
			"/proc/sys/user/max_net_namespaces is 0",
			remedy.AsRoot("sysctl -w user.max_net_namespaces=15000")},
		{[]syscall.Errno{syscall.EPERM, syscall.EACCES, syscall.ENOSYS}, m.filtered,
			"the container's seccomp profile forbids it", m.Uncontained(true)},
		{denied, m.bareRoot,
			"root has no CAP_SETFCAP here, and may therefore map no root into one",
			"run toll with root's capabilities, or as another user, who needs none"},
		{denied, m.chrooted,
			"toll runs in a chroot, in which the kernel makes none",
			"run toll outside the chroot, or enter it by pivot_root, as container engines do"},
		{denied, is("/proc/sys/kernel/unprivileged_userns_clone", "0"),
			"/proc/sys/kernel/unprivileged_userns_clone is 0",
			remedy.AsRoot("sysctl -w kernel.unprivileged_userns_clone=1")},
		{denied, is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"),
			"/proc/sys/kernel/apparmor_restrict_unprivileged_userns is 1",
			"run toll as root, or: " +
				remedy.AsRoot("sysctl -w kernel.apparmor_restrict_unprivileged_userns=0")},
	}
}

// chrooted reports whether the root directory is none of the mount points: it has no line in the
// list of mounts that this process reaches.
func (m Machine) chrooted() bool {
	mounts := m.Mounts()
	return len(mounts) > 0 &&
		!slices.ContainsFunc(mounts, func(x Mount) bool { return x.Point == "/" })
}

// bareRoot reports whether the process is root without the capability that a user namespace with
// root in it takes of root, since Linux 5.12.
func (m Machine) bareRoot() bool {
	effective, ok := m.capabilities()
	return m.root() && ok && effective&(1<<unix.CAP_SETFCAP) == 0
}

func (m Machine) root() bool {
	uids := strings.Fields(field(m.read("/proc/self/status"), "Uid")) // real, effective, …
	return len(uids) > 1 && uids[1] == "0"
}

func (m Machine) filtered() bool {
	return m.container() != "" && field(m.read("/proc/self/status"), "Seccomp") == "2"
}

type namespaceError struct {
	reason, hint string
	cause        error
}

func (e *namespaceError) Error() string {
	return fmt.Sprintf("make a user namespace: %s: %v", e.reason, e.cause)
}

func (e *namespaceError) Is(target error) bool { return target == ErrUnsupported }

func (e *namespaceError) Unwrap() error { return e.cause }

func (e *namespaceError) Hint() string { return e.hint }
