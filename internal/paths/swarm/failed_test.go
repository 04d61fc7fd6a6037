package swarm

import (
	"errors"
	"runtime"
	"testing"

	"github.com/moby/moby/api/types/swarm"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
)

// A node chooses its own name, which is in no command line if a shell would take it otherwise.
func TestOddNodeName(t *testing.T) {
	for name, want := range map[string]string{"node2": "toll image | ssh node2 docker load, or --image with its name in a registry", "-h": "toll image | ssh NODE docker load, or --image with its name in a registry", "a;true": "toll image | ssh NODE docker load, or --image with its name in a registry",
		"a b": "toll image | ssh NODE docker load, or --image with its name in a registry"} {
		r := &run{swarm: &Swarm{}, image: "toll"}
		s := &service{nodes: []Node{{ID: "n2", Name: name}}}
		err := r.failed(s, swarm.Task{NodeID: "n2", Status: swarm.TaskStatus{
			State: swarm.TaskStateRejected, Err: "No such image: toll"}})
		var u *machine.UnsupportedError
		if !errors.As(err, &u) || u.Remedy != want {
			t.Errorf("%s: %q, want %q", name, u.Remedy, want)
		}
	}
}

// toll image would write one for this machine.
func TestNodeOfAnotherArchitecture(t *testing.T) {
	other := "node node2 is s390x, and toll's own image is for " + runtime.GOARCH +
		"; --image with a " +
		"multi-architecture image in a registry; or --nodes with nodes of one architecture"
	const absent = "node node2 does not have toll's image toll, and a swarm does not distribute " +
		"images; " +
		"toll image | ssh node2 docker load, or --image with its name in a registry"
	for _, tt := range []struct {
		image, arch, says, want string
	}{
		{"", "s390x", "No such image: toll", other},
		{"", "s390x", "exec /toll: exec format error", other},
		{"", archs[runtime.GOARCH], "No such image: toll", absent},
		{"", "", "No such image: toll", absent},
		{"example.org/toll", "s390x", "No such image: toll",
			"node node2 cannot get the image toll; docker pull there shows more"},
	} {
		r := &run{swarm: &Swarm{Image: tt.image}, image: "toll"}
		s := &service{nodes: []Node{{ID: "n2", Name: "node2", Arch: tt.arch}}}
		err := r.failed(s, swarm.Task{NodeID: "n2", Status: swarm.TaskStatus{
			State: swarm.TaskStateRejected, Err: tt.says}})
		var u *machine.UnsupportedError
		if !errors.As(err, &u) || u.Missing+"; "+u.Remedy != tt.want {
			t.Errorf("%v: %q, want %q", err, u.Missing+"; "+u.Remedy, tt.want)
		}
	}
}

func TestManaged(t *testing.T) {
	for _, tt := range []struct {
		is   swarm.Info
		want string // "": accepted
	}{
		{swarm.Info{LocalNodeState: swarm.LocalNodeStateActive, ControlAvailable: true}, ""},
		{swarm.Info{LocalNodeState: swarm.LocalNodeStateActive},
			"this node of the swarm is not a manager, and only managers can make services; " +
				"run toll on a manager: docker node ls there; or set DOCKER_HOST to a manager's " +
				"address"},
		{swarm.Info{LocalNodeState: swarm.LocalNodeStateInactive},
			"this Docker Engine is not in a swarm (it is inactive); docker swarm init here " +
				"and docker swarm join on the other machines; --on lab needs none"},
		{swarm.Info{LocalNodeState: swarm.LocalNodeStateLocked},
			"this node's swarm is locked, as after each restart of a Docker Engine with " +
				"autolock; docker swarm unlock"},
		{swarm.Info{LocalNodeState: swarm.LocalNodeStatePending},
			"this node is still joining its swarm; toll again once docker info says: Swarm: " +
				"active"},
		{swarm.Info{LocalNodeState: swarm.LocalNodeStateError, Error: "manager stopped:\x1b[2J"},
			"this node takes no part in its swarm: manager stopped:\\x1b[2J; docker " +
				"info; journalctl -u docker"},
	} {
		err := managed(tt.is)
		got := ""
		if u := new(machine.UnsupportedError); errors.As(err, &u) {
			got = u.Missing + "; " + u.Remedy
		}
		if got != tt.want {
			t.Errorf("%v: %q, want %q", err, got, tt.want)
		}
	}
}

func TestFailedTasks(t *testing.T) {
	const (
		own   = dockerapi.NodeRepository + ":717559831413"
		asked = "registry.example:5000/net/toll:1"
		none  = "node node2 does not have toll's image " + own +
			", and a swarm does not distribute " +
			"images"
		load  = "toll image | ssh node2 docker load, or --image with its name in a registry"
		pull  = "docker pull there shows more"
		pools = "docker network ls there; or docker swarm init --default-addr-pool, with " +
			"addresses " +
			"that no node uses"
	)
	for _, tt := range []struct {
		name, said, image string
		named             bool // by --image
		kind              role
		state             swarm.TaskState
		want              string // "": none
		remedy            string // "": any other error
		overlap           bool
	}{
		{name: "20.10", said: "No such image: " + own, image: own, want: none, remedy: load},
		{name: "29-containerd", image: own, want: none, remedy: load,
			said: `failed to resolve reference "` + own +
				`": failed to do request: Head ` +
				`"https://127.0.0.1:1/v2/bridgetoll/manifests/717559831413": ` +
				"dial tcp 127.0.0.1:1: connect: connection refused"},
		{name: "29-graphdriver", image: own, want: none, remedy: load,
			said: `Get "http://127.0.0.1:1/v2/": dial tcp 127.0.0.1:1: connect: ` +
				`connection refused`},
		{name: "registry-silent", image: asked, named: true, want: "node node2 cannot get the image registry.example:5000/net/toll:1", remedy: pull,
			said: `Get "https://registry.example:5000/v2/": dial tcp 192.0.2.7:5000: i/o timeout`},
		{name: "registry-unknown", image: asked, named: true, want: "node node2 cannot get the image registry.example:5000/net/toll:1", remedy: pull,
			said: "manifest for registry.example:5000/net/toll:1 not found: manifest unknown: " +
				"manifest unknown"},
		{name: "hub-refused", image: "net/toll", named: true, want: "node node2 cannot get the image net/toll", remedy: pull,
			said: "pull access denied for net/toll, repository does not exist or may require " +
				"'docker login'"},
		{name: "hub-silent", image: "toll", named: true, want: "node node2 cannot get the image toll", remedy: pull,
			said: `Get "https://registry-1.docker.io/v2/": net/http: request canceled while ` +
				`waiting for connection`},
		{name: "overlap-20.10", image: own, kind: onOverlay, overlap: true, want: "the swarm gave toll's network a subnet that another network of node node2 uses " +
			"(the task was rejected: Pool overlaps with other one on this address space)",
			remedy: pools,
			said:   "Pool overlaps with other one on this address space"},
		{name: "overlap-28", image: own, kind: encrypted, overlap: true, want: "the swarm gave toll's network a subnet that another network of node node2 uses " +
			"(the task was rejected: invalid pool request: Pool overlaps with other one on " +
			"this address space)",
			remedy: pools,
			said:   "invalid pool request: Pool overlaps with other one on this address space"},
		{name: "no-namespaces", image: own, kind: inside, want: "toll cannot see the namespaces of overlay networks on node node2: invalid mount " +
			`config for type "bind": bind source path does not exist: /run/docker/netns`, remedy: "dockerd there with its default --exec-root, /var/run/docker, and /run as a " +
			"shared mount",
			said: "invalid mount config for type \"bind\": bind source path does not exist: " +
				"/run/docker/netns"},
		{name: "remapped", image: own, kind: onHost, want: `the Docker Engine of node node2 has "userns-remap", with which a swarm's tasks ` +
			"cannot be in the node's network", remedy: "--nodes with others; or an engine there without it",
			said: "cannot share the host's network namespace when user namespaces are enabled"},
		{name: "other", image: "toll", named: true, want: "node node2: its task is rejected: network toll-af37ee16-net4 not found",
			said: "network toll-af37ee16-net4 not found"},
		{name: "other-port", image: own, want: "node node2: its task is rejected: dial tcp 127.0.0.1:12345: connect: connection " +
			"refused",
			said: "dial tcp 127.0.0.1:12345: connect: connection refused"},
		{name: "ended", image: own, state: swarm.TaskStateFailed, want: `node node2: its task is failed: task: non-zero exit (1): open "127.0.0.1:1": no`,
			said: `task: non-zero exit (1): open "127.0.0.1:1": no`},
		{name: "on-its-way", image: own, state: swarm.TaskStatePreparing, said: "preparing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &run{swarm: &Swarm{}, image: tt.image}
			if tt.named {
				r.swarm.Image = tt.image
			}
			task := swarm.Task{NodeID: "n2", Status: swarm.TaskStatus{
				State: swarm.TaskStateRejected, Err: tt.said}}
			if tt.state != "" {
				task.Status.State = tt.state
			}
			s := &service{role: tt.kind, nodes: []Node{{ID: "n2", Name: "node2"}}}
			err := r.failed(s, task)
			if err == nil {
				if tt.want != "" {
					t.Errorf("no error, want %q", tt.want)
				}
				return
			}
			if err.Error() != tt.want {
				t.Errorf("%q, want %q", err, tt.want)
			}
			remedy := ""
			if u := new(machine.UnsupportedError); errors.As(err, &u) {
				remedy = u.Remedy
			}
			if remedy != tt.remedy {
				t.Errorf("remedy %q, want %q", remedy, tt.remedy)
			}
			s.errs = map[string]error{"n1": errors.New("gone"), "n2": err}
			if s.overlap() != tt.overlap {
				t.Errorf("overlap: %t", s.overlap())
			}
		})
	}
}
