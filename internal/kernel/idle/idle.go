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
	// states has a folder for each state in which the first CPU can idle; the first one polls.
	states  = "/sys/devices/system/cpu/cpu0/cpuidle"
	polling = states + "/state0/name"
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
	if err != nil || strings.TrimSpace(string(name)) != "POLL" {
		return &machine.UnsupportedError{
			Missing: "idle=poll has no effect: the kernel does not choose how its CPUs idle (" + states + ")",
			Remedy: "the kernel parameter cpuidle_haltpoll.force=1 on a virtual machine, " +
				"or a machine with a cpuidle driver", Err: err}
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
