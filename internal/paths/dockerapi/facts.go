package dockerapi

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/moby/api/types/system"
)

// RunLabel is the label of everything that toll makes. Its value is toll's mark.
const RunLabel = "io.bridgetoll.run"

// Labels returns the labels for everything that the run makes.
func (d *Daemon) Labels() map[string]string { return map[string]string{RunLabel: d.Mark} }

// Version returns the engine's name and version.
func (d *Daemon) Version() string {
	if d.Podman != nil {
		return "Podman " + d.Podman.Version.Version
	}
	return "Docker Engine " + d.Info.ServerVersion
}

// Major returns the engine's major version, or 0 if it cannot be parsed.
func (d *Daemon) Major() int {
	first, _, _ := strings.Cut(d.Info.ServerVersion, ".")
	n, _ := strconv.Atoi(first)
	return n
}

// UserlandProxy returns the engine's "userland-proxy": "true", "false", or "" if unknown. Engines
// report it from 29.5 on, and omit it if it is off (moby at b985e23,
// libnetwork/controller_linux.go).
func UserlandProxy(info system.Info) string {
	if info.FirewallBackend == nil {
		return ""
	}
	for _, x := range info.FirewallBackend.Info {
		if x[0] == "EnableUserlandProxy" {
			return x[1]
		}
	}
	var major, minor int
	if n, _ := fmt.Sscanf(info.ServerVersion, "%d.%d", &major, &minor); n == 2 &&
		(major > 29 || major == 29 && minor >= 5) {
		return "false"
	}
	return ""
}

// Rootless reports whether the daemon runs without root, in a user namespace of its own.
func Rootless(info system.Info) bool {
	return slices.ContainsFunc(info.SecurityOptions, func(s string) bool {
		return strings.Contains(s, "name=rootless")
	})
}

// BridgeName returns the device of a bridge network, given the network's ID and the driver's
// options.
func BridgeName(id string, options map[string]string) string {
	const short = 12
	if given := options["com.docker.network.bridge.name"]; given != "" {
		return given
	}
	return "br-" + id[:min(short, len(id))]
}
