package local

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/idle"
	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// TryTune returns an error if the kernel lacks a kind of tune, or if this user may not set it. It
// is called once for each kind, in a namespace for trials, and leaves devices there.
func TryTune(k mode.Key) error {
	switch k {
	case mode.RPS:
		return tryRPS()
	case mode.XPS:
		return tryXPS()
	case mode.Queues:
		_, err := MostQueues()
		return err
	case mode.Threaded:
		return tryThreaded()
	case mode.BigTCP, mode.BigTCPContainer, mode.BigTCPLoopback:
		return tryBigTCP()
	case mode.Idle:
		return idle.Try()
	case mode.MTU, mode.Rmem, mode.Wmem, mode.RmemMax, mode.WmemMax, mode.GRO, mode.TSO,
		mode.Nodelay, mode.Congestion, mode.BridgeNF, mode.Engine, mode.Ports:
	}
	return nil
}

// TryCongestion returns an error if a congestion control cannot be set. It sets it in a namespace
// for trials, and restores the previous one.
func TryCongestion(name string) error {
	before, err := sysctl.Get(TCPCongestion)
	if err != nil {
		return err
	}
	if err := SetCongestion(name); err != nil {
		return err
	}
	return sysctl.Set(TCPCongestion, before)
}

// MostQueues returns the maximum number of queues that a veth pair can have in each direction.
func MostQueues() (most int, err error) {
	const name = "try-queues"
	if err := tryPair(name); err != nil {
		return 0, err
	}
	q, err := link.QueuesOf(name)
	if err == nil {
		most = min(q.MostSend, q.MostReceive)
		err = link.SetQueues(name, most)
	}
	if err != nil {
		return 0,
			&machine.UnsupportedError{
				Missing: "the number of a veth pair's queues cannot be set (Linux 5.13)",
				Remedy:  "use a kernel that can", Err: err}
	}
	return most, nil
}

// tryRPS returns nil only for root of the machine itself.
func tryRPS() error {
	return trySteering(link.RPS, "lo", "receive packet steering", "CONFIG_RPS")
}

func tryXPS() error {
	if err := tryPair("try-xps"); err != nil {
		return err
	}
	q, err := link.QueuesOf("try-xps")
	if err == nil && q.MostSend < 2 {
		return &machine.UnsupportedError{
			Missing: "transmit packet steering has no effect: a veth pair has one queue on a machine with one CPU",
			Remedy:  "a machine with more CPUs"}
	}
	return trySteering(link.XPS, "try-xps", "transmit packet steering", "CONFIG_XPS")
}

func trySteering(s link.Steering, name, what, option string) error {
	err := s.Steer(name, true)
	if err == nil {
		return s.Steer(name, false)
	}
	missing := what + " cannot be set (" + option + ")"
	remedy := "use a kernel that has it"
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		missing, remedy = what+" can only be set by root, not in a user namespace",
			"run toll as root"
	}
	return &machine.UnsupportedError{Missing: missing, Remedy: remedy, Err: err}
}

func tryThreaded() error {
	const name = "try-napi"
	if err := tryPair(name); err != nil {
		return err
	}
	for _, f := range []func() error{
		func() error { return link.SetOffload(name, link.GRO, true) },
		func() error { return link.Up(name) },
		func() error { return link.Up(name + "-p") },
		func() error { return link.SetThreaded(name, true) },
	} {
		if err := f(); err != nil {
			return &machine.UnsupportedError{
				Missing: "a veth pair's NAPI cannot run in threads (Linux 5.13)",
				Remedy:  "use a kernel that can", Err: err}
		}
	}
	return nil
}

func tryBigTCP() error {
	const name = "try-bigtcp"
	if err := tryPair(name); err != nil {
		return err
	}
	err := link.SetMaxSize(name, mode.MaxBigTCP)
	if err == nil {
		return nil
	}
	return &machine.UnsupportedError{
		Missing: "the kernel has no BIG TCP over IPv4 (gso_ipv4_max_size, Linux 6.3)",
		Remedy:  "use a kernel that has it", Err: err}
}

func tryPair(name string) error {
	return MissingDevice(link.AddVeth(name, name+"-p", unix.Gettid()), "veth", "CONFIG_VETH")
}

// MissingDevice explains err, the error of making a device. It returns nil for nil.
func MissingDevice(err error, module, option string) error {
	if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENODEV) {
		return err
	}
	return &machine.UnsupportedError{
		Missing: "the kernel has no " + module + " devices (" + option + ")",
		Remedy:  remedy.ModprobeOr(module),
		Err:     err,
	}
}
