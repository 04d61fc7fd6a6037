package swarm

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/distribution/reference"
	"github.com/moby/moby/api/types/swarm"

	"github.com/bridgetoll/bridgetoll/internal/path"
)

// overlaps is what an engine says if a network of its own has the addresses of one
// that it is to make (libnetwork/ipamapi).
const overlaps = "Pool overlaps with other one on this address space"

// errOverlap is that a node cannot be on a network for this reason.
var errOverlap = errors.New("the task was rejected")

// failed says why a task will not bring its agent; nil: it may.
func (r *run) failed(s *service, t swarm.Task) error {
	if !slices.Contains([]swarm.TaskState{swarm.TaskStateFailed, swarm.TaskStateRejected, swarm.TaskStateShutdown,
		swarm.TaskStateOrphaned, swarm.TaskStateComplete, swarm.TaskStateRemove}, t.Status.State) {
		return nil
	}
	name := s.nameOf(s.nodeOf(t))
	said := t.Status.Err
	if said == "" {
		said = t.Status.Message
	}
	switch {
	case strings.Contains(said, overlaps):
		return &path.UnsupportedError{Missing: fmt.Sprintf("another network of node %s has the addresses that the swarm gave toll's", name),
			Remedy: "docker network ls there; or docker swarm init --default-addr-pool, with addresses that no node uses", Err: fmt.Errorf("%w: %s", errOverlap, said)}
	case s.role == inside && strings.Contains(said, dockerNetns):
		return &path.UnsupportedError{Missing: fmt.Sprintf("node %s does not show the namespaces of its overlay networks: %s", name, said),
			Remedy: "dockerd's --exec-root must be /var/run/docker, and /run a shared mount, as they are by default"}
	case t.Status.State == swarm.TaskStateRejected && lacksImage(said, r.image):
		u := &path.UnsupportedError{Missing: fmt.Sprintf("node %s has not toll's image %s: a swarm carries no images", name, r.image),
			Remedy: fmt.Sprintf("toll image | ssh %s docker load, or --image with its name in a registry", name)}
		if r.swarm.Image != "" {
			u.Missing, u.Remedy = fmt.Sprintf("node %s cannot get the image %s", name, r.image), "docker pull there says more"
		}
		return u
	case gaveUp(t.Status):
		return errGaveUp
	}
	return fmt.Errorf("node %s: its task %s: %s", name, t.Status.State, said)
}

// lacksImage reports whether a node rejected a task for want of its image. Engines
// used to say so; from 29 on (moby pull requests 52698 and 53212) they say why they
// could not fetch it, which names the registry, or is what a registry answers.
func lacksImage(said, image string) bool {
	if strings.Contains(said, "not found") && strings.Contains(said, "image") {
		return true
	}
	signs := []string{"No such image", "manifest unknown", "pull access denied", "unauthorized"}
	if named, err := reference.ParseNormalizedNamed(image); err == nil {
		signs = append(signs, reference.Domain(named)+"/")
	}
	return slices.ContainsFunc(signs, func(sign string) bool { return strings.Contains(said, sign) })
}

// gaveUp reports whether an agent ended by itself: it found no way to toll.
func gaveUp(t swarm.TaskStatus) bool {
	const exit = 1
	return t.State == swarm.TaskStateFailed && t.ContainerStatus != nil && t.ContainerStatus.ExitCode == exit
}

// absent says of a node whose agent did not come what its task did, and what the
// hub saw.
func (r *run) absent(node string, task swarm.TaskStatus, err error) error {
	state := string(task.State)
	if state == "" {
		state = "not there"
	}
	if task.Err != "" {
		state += ": " + task.Err
	}
	u := &path.UnsupportedError{Missing: fmt.Sprintf("no agent came from node %s: its task is %s", node, state),
		Remedy: "docker node ls and docker node ps " + node + " say more", Err: err}
	if task.State == swarm.TaskStateRunning || gaveUp(task) {
		u.Remedy = fmt.Sprintf("the nodes must reach %s (TCP): look at firewalls, or choose another address by --control", r.hub.Addr())
	}
	return u
}
