package dockerapi

import (
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/distribution/reference"
)

// Each function recognizes one of Docker's messages.

// NotManager reports whether the node refused a request because it is not a swarm manager. A swarm
// without a leader returns the same status, 503 (moby, daemon/cluster/errors.go).
func NotManager(err error) bool {
	return cerrdefs.IsUnavailable(err) && strings.Contains(err.Error(), "not a swarm manager")
}

// endedFirst reports whether a container ended before the daemon could kill it.
func endedFirst(err error) bool {
	return strings.Contains(err.Error(), "cannot remove") &&
		strings.Contains(err.Error(), "is not running")
}

// removedMeanwhile reports whether Podman could not list the containers because one of them was being
// removed (podman, libpod/define and storage).
func removedMeanwhile(err error) bool {
	return strings.Contains(err.Error(), "container not known") ||
		strings.Contains(err.Error(), "no such container")
}

// usedByTask reports whether a swarm's task is on the network. A container on an attachable network
// has a task, and the manager learns late that it has ended.
func usedByTask(err error) bool { return strings.Contains(err.Error(), "is in use by task") }

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
