// Package idle keeps the machine's idle CPUs awake.
//
// A CPU without work sleeps until an interrupt, and on a virtual machine leaves it. Waking it takes
// longer than most container networks. A process that holds /dev/cpu_dma_latency open with the
// value 0 makes the kernel's idle loop poll instead (Documentation/power/pm_qos_interface.rst). The
// request ends with the file, so nothing stays if the process is killed.
package idle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/machine"
)

const (
	requests = "/dev/cpu_dma_latency"
	// polling has the name of the shallowest state in which the first CPU can idle.
	polling = "/sys/devices/system/cpu/cpu0/cpuidle/state0/name"
)

// Poll makes idle CPUs poll until release is called.
func Poll() (release func() error, err error) {
	f, err := os.OpenFile(requests, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	if _, err := f.Write(make([]byte, 4)); err != nil { // an int32, in µs
		return nil, fmt.Errorf("keep idle CPUs awake: %w", errors.Join(err, f.Close()))
	}
	return f.Close, nil
}

// Try returns nil, or a *machine.UnsupportedError if CPUs cannot poll here or this process may not
// ask for it.
func Try() error {
	name, err := os.ReadFile(polling)
	switch {
	case err != nil:
		return &machine.UnsupportedError{
			Missing: "idle=poll has no effect: the kernel has no driver for idle CPUs (cpuidle)",
			Remedy: "the kernel parameter cpuidle_haltpoll.force=1 on a virtual machine, " +
				"or a machine with such a driver", Err: err}
	case strings.TrimSpace(string(name)) != "POLL":
		return &machine.UnsupportedError{
			Missing: "idle=poll has no effect: idle CPUs of this kind cannot poll (" + polling + ")",
			Remedy:  "a machine of x86"}
	}
	release, err := Poll()
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist):
		return &machine.UnsupportedError{
			Missing: "idle=poll: only root may keep idle CPUs awake, and not inside a container (" +
				requests + ")",
			Remedy: "run toll as root on the machine itself", Err: err}
	case err != nil:
		return err
	}
	return release()
}
