package swarm

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/swarm"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// errOverlap means that a node already uses addresses of the overlay network.
var errOverlap = errors.New("the task was rejected")

// failed returns why a task has no agent, or nil if the agent may still connect.
func (r *run) failed(s *service, t swarm.Task) error {
	if !slices.Contains([]swarm.TaskState{swarm.TaskStateFailed, swarm.TaskStateRejected,
		swarm.TaskStateShutdown,
		swarm.TaskStateOrphaned, swarm.TaskStateComplete, swarm.TaskStateRemove}, t.Status.State) {
		return nil
	}
	name := s.nameOf(s.nodeOf(t))
	said := t.Status.Err
	if said == "" {
		said = t.Status.Message
	}
	switch {
	case dockerapi.Overlaps(said):
		return &machine.UnsupportedError{Missing: fmt.Sprintf(
			"the swarm gave toll's network a subnet that another network of node %s uses", name),
			Remedy: "docker network ls there; or docker swarm init --default-addr-pool, with addresses that no node uses", Err: fmt.Errorf("%w: %s", errOverlap, said)}
	case s.role == inside && strings.Contains(said, dockerNetns):
		return &machine.UnsupportedError{Missing: fmt.Sprintf(
			"toll cannot see the namespaces of overlay networks on node %s: %s", name, said),
			Remedy: "dockerd there with its default --exec-root, /var/run/docker, and /run as a shared mount"}
	case r.swarm.Image == "" && s.otherArch(t) != "":
		return &machine.UnsupportedError{Missing: fmt.Sprintf(
			"node %s is %s, and toll's own image is for %s", name, s.otherArch(t), runtime.GOARCH),
			Remedy: "--image with a multi-architecture image in a registry; or --nodes with nodes of one architecture"}
	case t.Status.State == swarm.TaskStateRejected && dockerapi.LacksImage(said, r.image):
		u := &machine.UnsupportedError{Missing: fmt.Sprintf(
			"node %s does not have toll's image %s, and a swarm does not distribute images", name,
			r.image),
			Remedy: fmt.Sprintf("toll image | ssh %s docker load, or --image with its name in a registry",
				orNode(name))}
		if r.swarm.Image != "" {
			u.Missing, u.Remedy = fmt.Sprintf("node %s cannot get the image %s", name, r.image),
				"docker pull there shows more"
		}
		return u
	case strings.Contains(said, "when user namespaces are enabled"):
		return &machine.UnsupportedError{Missing: fmt.Sprintf(
			"the Docker Engine of node %s has \"userns-remap\", with which a swarm's tasks cannot be in the node's network", name),
			Remedy: "--nodes with others; or an engine there without it"}
	case gaveUp(t.Status):
		return errGaveUp
	}
	return fmt.Errorf("node %s: its task is %s: %s", name, t.Status.State, said)
}

// archs has the words of swarms for Go's architectures.
var archs = map[string]string{"amd64": "x86_64", "arm64": "aarch64", "386": "i686", "arm": "armv7l",
	"riscv64": "riscv64", "ppc64le": "ppc64le", "s390x": "s390x"}

// otherArch returns the architecture of a task's node if it is known to be another than toll's.
func (s *service) otherArch(t swarm.Task) string {
	i := slices.IndexFunc(s.nodes, func(n Node) bool { return n.ID == s.nodeOf(t) })
	own := archs[runtime.GOARCH]
	if i < 0 || own == "" || s.nodes[i].Arch == own || !slices.Contains(slices.Collect(
		maps.Values(archs)), s.nodes[i].Arch) {
		return ""
	}
	return s.nodes[i].Arch
}

// orNode returns a node's name for a command line. The node chose it: another one than a word of a
// shell is left to the user to fill in.
func orNode(name string) string {
	if printable.Bare(name) {
		return name
	}
	return "NODE"
}

func gaveUp(t swarm.TaskStatus) bool {
	const exit = 1
	return t.State == swarm.TaskStateFailed && t.ContainerStatus != nil &&
		t.ContainerStatus.ExitCode == exit
}

func (r *run) absent(node string, task swarm.TaskStatus, err error) error {
	state := string(task.State)
	if state == "" {
		state = "not there"
	}
	if task.Err != "" {
		state += ": " + task.Err
	}
	u := &machine.UnsupportedError{Missing: fmt.Sprintf(
		"the agent on node %s did not connect: its task is %s", node, state),
		Remedy: "docker node ls and docker node ps " + orNode(node) + " show more", Err: err}
	if task.State == swarm.TaskStateRunning || gaveUp(task) {
		u.Remedy = fmt.Sprintf(
			"the nodes must reach %s (TCP): check firewalls, or choose another address by --address", r.hub.Addr())
	}
	return u
}
