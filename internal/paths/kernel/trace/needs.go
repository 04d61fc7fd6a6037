package trace

import (
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf/btf"

	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/bpf"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

const (
	instead  = "toll ladder, which prices whole modes without tracing"
	allPIDs  = "pid:[4026531836]" // PROC_PID_INIT_INO: the namespace by which programs number
	packetIn = "netif_receive_skb"
	queued   = "net_dev_queue"
)

func check(has func(tracepoint string) (bool, error)) error {
	if err := bpf.Check(); err != nil {
		return withLadder(err)
	}
	if ns, err := os.Readlink("/proc/self/ns/pid"); err == nil && ns != allPIDs {
		return &path.UnsupportedError{
			Missing: "toll is in a PID namespace, whose numbers are not the programs'",
			Remedy:  "run it outside; or " + instead}
	}
	for _, tracepoint := range []string{queued, packetIn} {
		ok, err := has(tracepoint)
		if err != nil {
			return err
		}
		if !ok {
			return &path.UnsupportedError{
				Missing: "the kernel lacks tracepoint " + tracepoint, Remedy: instead}
		}
	}
	return nil
}

// has reports whether this kernel has a tracepoint.
func has(tracepoint string) (bool, error) {
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		return false, fmt.Errorf("look for tracepoints: %w", err)
	}
	_, err = kernel.AnyTypeByName("btf_trace_" + tracepoint)
	if errors.Is(err, btf.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

func explain(err error) error { return withLadder(bpf.Explain(err, "Linux 6.1 or later")) }

func withLadder(err error) error {
	var u *path.UnsupportedError
	if errors.As(err, &u) {
		u.Remedy += "; or " + instead
	}
	return err
}

func noHooks(err error) error {
	return &path.UnsupportedError{
		Missing: "the kernel takes no BPF programs at netfilter's hooks (CONFIG_NETFILTER_BPF_LINK)",
		Remedy:  "Linux 6.4 or later, or trace without --hooks", Err: err}
}
