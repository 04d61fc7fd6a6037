package dockerapi

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/swarm"
	"github.com/moby/moby/api/types/system"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
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

// HostUsers returns the user namespace of a container on a network. With "userns-remap", a
// container on the host's network must have the host's users, as by docker run --userns host.
func (d *Daemon) HostUsers(network string) container.UsernsMode {
	remaps := slices.ContainsFunc(d.Info.SecurityOptions, func(s string) bool {
		return strings.Contains(s, "name=userns")
	})
	if network == "host" && remaps {
		return "host"
	}
	return ""
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

// Each function recognizes one of Docker's messages.

// NotManager reports whether the node refused a request because it is not a swarm manager. A swarm
// without a leader returns the same status, 503 (moby, daemon/cluster/errors.go).
func NotManager(err error) bool {
	return cerrdefs.IsUnavailable(err) && strings.Contains(err.Error(), "not a swarm manager")
}

// Leaderless reports whether a manager could not answer because too few managers of the swarm are
// up.
func Leaderless(err error) bool {
	if err == nil || NotManager(err) {
		return false
	}
	return strings.Contains(err.Error(), "swarm does not have a leader") ||
		strings.Contains(err.Error(), "code = DeadlineExceeded")
}

// InSwarm returns nil if the node takes part in a swarm, or is in none. Otherwise it returns why it
// takes no part in its own.
func InSwarm(i swarm.Info) *machine.UnsupportedError {
	switch i.LocalNodeState {
	case swarm.LocalNodeStateLocked:
		return &machine.UnsupportedError{
			Missing: "this node's swarm is locked, as after each restart of a Docker Engine with " +
				"autolock",
			Remedy: "docker swarm unlock"}
	case swarm.LocalNodeStatePending:
		return &machine.UnsupportedError{Missing: "this node is still joining its swarm",
			Remedy: "toll again once docker info says: Swarm: active"}
	case swarm.LocalNodeStateError:
		return &machine.UnsupportedError{Missing: "this node takes no part in its swarm: " +
			printable.Words(printable.Limit(i.Error, maxSaid)),
			Remedy: "docker info; journalctl -u docker"}
	}
	return nil
}

const maxSaid = 300 // characters

// endedFirst reports whether a container ended before the daemon could kill it.
func endedFirst(err error) bool {
	return strings.Contains(err.Error(), "cannot remove") &&
		strings.Contains(err.Error(), "is not running")
}

// removedMeanwhile reports whether Podman could not list the containers because one of them was
// being removed (podman, libpod/define and storage).
func removedMeanwhile(err error) bool {
	return strings.Contains(err.Error(), "container not known") ||
		strings.Contains(err.Error(), "no such container")
}

// usedByTask reports whether a swarm's task is on the network. A container on an attachable network
// has a task, and the manager learns late that it has ended.
func usedByTask(err error) bool { return strings.Contains(err.Error(), "is in use by task") }

// PoolsUsed reports whether a network could not be made because its engine's default address pools
// are used up (libnetwork before and since Docker Engine 27; containers/common).
func PoolsUsed(err error) bool {
	return err != nil && slices.ContainsFunc([]string{"non-overlapping IPv4 address pool among the",
		"all predefined address pools have been fully subnetted",
		"could not find free subnet from subnet pools"}, func(said string) bool {
		return strings.Contains(err.Error(), said)
	})
}

// Overlaps reports whether a task was rejected because another network of the node has the same
// addresses. A task's status is only text (moby, libnetwork/ipamapi).
func Overlaps(said string) bool {
	return strings.Contains(said, "Pool overlaps with other one on this address space")
}

// LacksImage reports whether a task was rejected because its image is missing. Engines from 29 on
// (moby pull requests 52698 and 53212) add the registry's name or answer.
func LacksImage(said, image string) bool {
	if strings.Contains(said, "not found") && strings.Contains(said, "image") {
		return true
	}
	signs := []string{"No such image", "manifest unknown", "pull access denied", "unauthorized"}
	if named, err := reference.ParseNormalizedNamed(image); err == nil {
		signs = append(signs, reference.Domain(named)+"/")
	}
	return slices.ContainsFunc(signs, func(sign string) bool {
		return strings.Contains(said, sign)
	})
}

// NoOverlay6 explains why overlay networks lack IPv6. The driver ignores IPv6 subnets, though
// `docker network create -d overlay --ipv6` succeeds (moby at b985e23). With a named subnet tasks
// do not start; without one, the nodes' tunnels lack entries for each other (Docker Engine 28.5.2;
// moby/moby#48116, #43615).
var NoOverlay6 = &machine.UnsupportedError{
	Missing: "Docker's overlay networks carry no IPv6 between nodes, up to Docker Engine 29",
	Remedy:  "--on lab, which builds such a network without Docker; or -4",
	Lack:    machine.LackIPv6}
