package lab

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/path"
)

// tryDevices makes a veth pair and a bridge in the calling thread's
// namespace, which the caller throws away.
func tryDevices() error {
	peer, err := netns.New()
	if err != nil {
		return explainNamespace(err)
	}
	defer peer.Close()
	tid, err := peer.TID()
	if err != nil {
		return err
	}
	if err := link.AddVeth("try-veth", "try-peer", tid); err != nil {
		return missingDevice(err, "veth", "CONFIG_VETH")
	}
	if err := link.AddBridge("try-bridge"); err != nil {
		return missingDevice(err, "bridge", "CONFIG_BRIDGE")
	}
	return nil
}

func missingDevice(err error, module, option string) error {
	if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENODEV) {
		return err // could not tell
	}
	return &path.UnsupportedError{
		Missing: "the kernel has no " + module + " devices (" + option + ")",
		Remedy:  "sudo modprobe " + module + ", or use a kernel that has them",
		Err:     err,
	}
}

// trySockets finds out whether a proxy's bytes can be read.
func trySockets() error {
	err := sock.Supported()
	if err == nil {
		return nil
	}
	return &path.UnsupportedError{
		Missing: "the proxy's bytes cannot be read without sock_diag (CONFIG_INET_TCP_DIAG)",
		Remedy:  "sudo modprobe tcp_diag",
		Err:     err,
	}
}
