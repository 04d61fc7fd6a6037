package dockerapi

import (
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/distribution/reference"
)

// What Docker says in words only. Each function reads one such message.

// NotManager reports whether a request was refused because the node manages no swarm,
// or no longer does. The answer's status, 503, is also that of a swarm that has no
// leader at the moment (moby, daemon/cluster/errors.go).
func NotManager(err error) bool {
	return cerrdefs.IsUnavailable(err) && strings.Contains(err.Error(), "not a swarm manager")
}

// Overlaps reports whether a task was rejected because a network of its node's has the
// addresses of one that the node was to make. A task's status is nothing but words
// (moby, libnetwork/ipamapi).
func Overlaps(said string) bool {
	return strings.Contains(said, "Pool overlaps with other one on this address space")
}

// LacksImage reports whether a task was rejected because its image is missing.
// Engines used to say so; from 29 on (moby pull requests 52698 and 53212) they say
// why they could not fetch it, which names the registry, or is what a registry
// answers.
func LacksImage(said, image string) bool {
	if strings.Contains(said, "not found") && strings.Contains(said, "image") {
		return true
	}
	signs := []string{"No such image", "manifest unknown", "pull access denied", "unauthorized"}
	if named, err := reference.ParseNormalizedNamed(image); err == nil {
		signs = append(signs, reference.Domain(named)+"/")
	}
	return slices.ContainsFunc(signs, func(sign string) bool { return strings.Contains(said, sign) })
}
