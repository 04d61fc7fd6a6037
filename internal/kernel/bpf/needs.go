package bpf

import (
	"errors"
	"fmt"
	"os"
	"regexp"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
)

var standing = regexp.MustCompile(`(?m)^monotonic +0 +0$`)

// Check returns nil if this process may load programs that read the kernel's structures and clock,
// else a *machine.UnsupportedError.
func Check() error {
	if os.Geteuid() != 0 {
		return &machine.UnsupportedError{
			Missing: "only root may load BPF programs (CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON)",
			Remedy:  remedy.AsRoot("toll …")}
	}
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil {
		return &machine.UnsupportedError{
			Missing: "the kernel has no BTF (CONFIG_DEBUG_INFO_BTF)",
			Remedy:  "a kernel with BTF, as distributions build it", Err: err}
	}
	return CheckClock()
}

// Tracepoints returns a function that reports whether this kernel has a tracepoint. Its errors are
// those of Check, and of reading the kernel's BTF.
func Tracepoints() (has func(tracepoint string) bool, err error) {
	named, err := Functions()
	return func(tracepoint string) bool { return named("btf_trace_" + tracepoint) }, err
}

// Functions is Tracepoints for the kernel's functions. The kernel may still refuse programs at
// them.
func Functions() (has func(function string) bool, err error) {
	if err := Check(); err != nil {
		return nil, err
	}
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		return nil, fmt.Errorf("look for tracepoints: %w", err)
	}
	return func(name string) bool {
		_, err := kernel.AnyTypeByName(name)
		return !errors.Is(err, btf.ErrNotFound)
	}, nil
}

// CheckClock returns nil if this process's monotonic clock is that of BPF programs, else a
// *machine.UnsupportedError.
func CheckClock() error {
	if offsets, err := os.ReadFile("/proc/self/timens_offsets"); err == nil &&
		!standing.Match(offsets) {
		return &machine.UnsupportedError{
			Missing: "toll is in a time namespace, and BPF programs use the clock outside of it",
			Remedy:  "run toll outside the time namespace"}
	}
	return nil
}

// notSupported is the kernel's ENOTSUPP, its answer to programs at functions that it cannot patch.
const notSupported = unix.Errno(524)

// Explain explains an error of loading or attaching programs. It returns a
// *machine.UnsupportedError if the user lacks permission, or if the kernel refuses the programs.
// remedy tells which kernel they need.
func Explain(err error, remedy string) error {
	var v *ebpf.VerifierError
	switch {
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) && !errors.As(err, &v):
		return &machine.UnsupportedError{
			Missing: "this user may not load BPF programs (CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON)",
			// The library's error suggests causes in older kernels.
			Remedy: "run toll as root of the machine itself, not of a container", Err: unix.EPERM}
	case errors.As(err, &v), errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, unix.EINVAL),
		errors.Is(err, notSupported):
		return &machine.UnsupportedError{Missing: "this kernel refuses the BPF programs",
			Remedy: remedy, Err: err}
	}
	return fmt.Errorf("load BPF programs: %w", err)
}
