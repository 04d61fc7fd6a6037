package bpf

import (
	"errors"
	"fmt"
	"os"
	"regexp"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

var standing = regexp.MustCompile(`(?m)^monotonic +0 +0$`)

// Check returns nil if this process may load programs that read the kernel's structures and clock,
// else a *path.UnsupportedError.
func Check() error {
	if os.Geteuid() != 0 {
		return &path.UnsupportedError{
			Missing: "only root may load BPF programs (CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON)",
			Remedy:  "sudo toll …"}
	}
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil {
		return &path.UnsupportedError{
			Missing: "the kernel does not describe its structures (CONFIG_DEBUG_INFO_BTF)",
			Remedy:  "a kernel with BTF, as distributions build it", Err: err}
	}
	if offsets, err := os.ReadFile("/proc/self/timens_offsets"); err == nil &&
		!standing.Match(offsets) {
		return &path.UnsupportedError{
			Missing: "toll is in a time namespace, whose clock is not the programs'",
			Remedy:  "run it outside"}
	}
	return nil
}

// Explain returns the error of loading or attaching programs: a *path.UnsupportedError if the user
// or the kernel lacks something. Programs need what remedy says of the kernel.
func Explain(err error, remedy string) error {
	var v *ebpf.VerifierError
	switch {
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) && !errors.As(err, &v):
		return &path.UnsupportedError{
			Missing: "this user may not load BPF programs (CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON)",
			// the library's text is about older kernels
			Remedy: "as root of the machine itself, not of a container", Err: unix.EPERM}
	case errors.As(err, &v), errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, unix.EINVAL):
		return &path.UnsupportedError{Missing: "this kernel does not take the BPF programs",
			Remedy: remedy, Err: err}
	}
	return fmt.Errorf("load BPF programs: %w", err)
}
