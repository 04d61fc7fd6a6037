package trace

import (
	"errors"
	"os"

	"github.com/bridgetoll/bridgetoll/internal/kernel/bpf"
	"github.com/bridgetoll/bridgetoll/internal/machine"
)

const (
	instead = "toll ladder, which prices whole modes without tracing"
	allPIDs = "pid:[4026531836]" // PROC_PID_INIT_INO
)

// needs returns a function that reports whether this kernel has a tracepoint, or an error with what
// is missing to trace anything.
func needs() (has func(tracepoint string) bool, err error) {
	if has, err = bpf.Tracepoints(); err != nil {
		return nil, withLadder(err)
	}
	if ns, err := os.Readlink("/proc/self/ns/pid"); err == nil && ns != allPIDs {
		return nil, &machine.UnsupportedError{
			Missing: "toll is in a PID namespace, and BPF programs use the PIDs outside of it",
			Remedy:  "run toll outside containers; or " + instead}
	}
	return has, nil
}

func checkLeast(has func(tracepoint string) bool) error {
	for _, tracepoint := range []string{"net_dev_queue", "netif_receive_skb"} {
		if !has(tracepoint) {
			return &machine.UnsupportedError{
				Missing: "the kernel lacks tracepoint " + tracepoint, Remedy: instead}
		}
	}
	return nil
}

func explain(err error) error { return withLadder(bpf.Explain(err, "Linux 6.1 or later")) }

func withLadder(err error) error {
	var u *machine.UnsupportedError
	if errors.As(err, &u) {
		u.Remedy += "; or " + instead
	}
	return err
}

func noHooks(err error) error {
	return &machine.UnsupportedError{
		Missing: "the kernel cannot attach BPF programs to netfilter's hooks (CONFIG_NETFILTER_BPF_LINK)",
		Remedy:  "Linux 6.4 or later, or trace without --hooks", Err: err}
}
