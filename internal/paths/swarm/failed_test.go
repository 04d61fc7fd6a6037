package swarm

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/swarm"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
)

// A node chooses its own name, which is in no command line if a shell would take it otherwise.
func TestOddNodeName(t *testing.T) {
	for name, want := range map[string]string{"node2": "ssh node2 docker", "-h": "ssh NODE docker",
		"a;true": "ssh NODE docker", "a b": "ssh NODE docker"} {
		r := &run{swarm: &Swarm{}, image: "toll"}
		s := &service{nodes: []Node{{ID: "n2", Name: name}}}
		err := r.failed(s, swarm.Task{NodeID: "n2", Status: swarm.TaskStatus{
			State: swarm.TaskStateRejected, Err: "No such image: toll"}})
		var u *machine.UnsupportedError
		if !errors.As(err, &u) || !strings.Contains(u.Remedy, want) {
			t.Errorf("%s: %+v", name, u)
		}
	}
}

// toll image would write one for this machine.
func TestNodeOfAnotherArchitecture(t *testing.T) {
	for _, tt := range []struct {
		image, arch, says string
		other             bool
	}{
		{"", "s390x", "No such image: toll", true},
		{"", "s390x", "exec /toll: exec format error", true},
		{"", archs[runtime.GOARCH], "No such image: toll", false},
		{"", "", "No such image: toll", false},
		{"example.org/toll", "s390x", "No such image: toll", false},
	} {
		r := &run{swarm: &Swarm{Image: tt.image}, image: "toll"}
		s := &service{nodes: []Node{{ID: "n2", Name: "node2", Arch: tt.arch}}}
		err := r.failed(s, swarm.Task{NodeID: "n2", Status: swarm.TaskStatus{
			State: swarm.TaskStateRejected, Err: tt.says}})
		var u *machine.UnsupportedError
		if !errors.As(err, &u) || strings.Contains(u.Missing, "node2 is s390x") != tt.other ||
			strings.Contains(u.Remedy, "multi-architecture") != tt.other {
			t.Errorf("%+v: %+v", tt, u)
		}
	}
}

func TestManaged(t *testing.T) {
	for _, tt := range []struct {
		is           swarm.Info
		says, remedy string // "": accepted
	}{
		{swarm.Info{LocalNodeState: swarm.LocalNodeStateActive, ControlAvailable: true}, "", ""},
		{swarm.Info{LocalNodeState: swarm.LocalNodeStateActive}, "not a manager", "on a manager"},
		{swarm.Info{LocalNodeState: swarm.LocalNodeStateInactive}, "not in a swarm",
			"docker swarm init"},
		{swarm.Info{LocalNodeState: swarm.LocalNodeStateLocked}, "is locked",
			"docker swarm unlock"},
		{swarm.Info{LocalNodeState: swarm.LocalNodeStatePending}, "still joining", "again"},
		{swarm.Info{LocalNodeState: swarm.LocalNodeStateError, Error: "manager stopped:\x1b[2J"},
			"in its swarm: manager stopped:", "docker info"},
	} {
		err := managed(tt.is)
		var u *machine.UnsupportedError
		if tt.says == "" && err != nil || tt.says != "" && (!errors.As(err, &u) ||
			!strings.Contains(u.Missing, tt.says) || !strings.Contains(u.Remedy, tt.remedy) ||
			strings.Contains(u.Missing, "\x1b")) {
			t.Errorf("%s: %+v", tt.is.LocalNodeState, err)
		}
	}
}

func TestFailedTasks(t *testing.T) {
	const (
		own   = dockerapi.NodeRepository + ":717559831413"
		asked = "registry.example:5000/net/toll:1"
		none  = "does not have toll's image " + own
		never = "cannot get the image "
		taken = "another network of node node2"
	)
	for _, tt := range []struct {
		name, said, image string
		named             bool // by --image
		kind              role
		state             swarm.TaskState
		want              string // "": any other error; "-": none
	}{
		{name: "20.10", said: "No such image: " + own, image: own, want: none},
		{name: "29-containerd", image: own, want: none,
			said: `failed to resolve reference "` + own +
				`": failed to do request: Head ` +
				`"https://127.0.0.1:1/v2/bridgetoll/manifests/717559831413": ` +
				"dial tcp 127.0.0.1:1: connect: connection refused"},
		{name: "29-graphdriver", image: own, want: none,
			said: `Get "http://127.0.0.1:1/v2/": dial tcp 127.0.0.1:1: connect: ` +
				`connection refused`},
		{name: "registry-silent", image: asked, named: true, want: never,
			said: `Get "https://registry.example:5000/v2/": dial tcp 192.0.2.7:5000: i/o timeout`},
		{name: "registry-unknown", image: asked, named: true, want: never,
			said: "manifest for registry.example:5000/net/toll:1 not found: manifest unknown: " +
				"manifest unknown"},
		{name: "hub-refused", image: "net/toll", named: true, want: never,
			said: "pull access denied for net/toll, repository does not exist or may require " +
				"'docker login'"},
		{name: "hub-silent", image: "toll", named: true, want: never,
			said: `Get "https://registry-1.docker.io/v2/": net/http: request canceled while ` +
				`waiting for connection`},
		{name: "overlap-20.10", image: own, kind: onOverlay, want: taken,
			said: "Pool overlaps with other one on this address space"},
		{name: "overlap-28", image: own, kind: encrypted, want: taken,
			said: "invalid pool request: Pool overlaps with other one on this address space"},
		{name: "no-namespaces", image: own, kind: inside, want: "cannot see the namespaces",
			said: "invalid mount config for type \"bind\": bind source path does not exist: " +
				"/run/docker/netns"},
		{name: "remapped", image: own, kind: onHost, want: `has "userns-remap"`,
			said: "cannot share the host's network namespace when user namespaces are enabled"},
		{name: "other", image: "toll", named: true, said: "network toll-af37ee16-net4 not found"},
		{name: "other-port", image: own,
			said: "dial tcp 127.0.0.1:12345: connect: connection refused"},
		{name: "ended", image: own, state: swarm.TaskStateFailed,
			said: `task: non-zero exit (1): open "127.0.0.1:1": no`},
		{name: "on-its-way", image: own, state: swarm.TaskStatePreparing, said: "preparing",
			want: "-"},
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
			if tt.want == "-" || err == nil {
				if tt.want != "-" || err != nil {
					t.Errorf("%v", err)
				}
				return
			}
			var u *machine.UnsupportedError
			if refused := errors.As(err, &u); refused != (tt.want != "") ||
				!strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "node2") {
				t.Errorf("%v", err)
			}
			if u == nil && !strings.Contains(err.Error(), tt.said) {
				t.Errorf("%q does not say why", err)
			}
			s.errs = map[string]error{"n1": errors.New("gone"), "n2": err}
			if s.overlap() != (tt.want == taken) {
				t.Errorf("overlap: %t", s.overlap())
			}
		})
	}
}
