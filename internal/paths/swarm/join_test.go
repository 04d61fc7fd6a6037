package swarm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/api/types/swarm"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

// manager takes services for one node each, and the test sets their tasks.
type manager struct {
	// may be nil
	fails func(path string) error
	began func(swarm.ServiceSpec)

	mu    sync.Mutex // guards following
	made  []string
	tasks []swarm.Task
}

func (m *manager) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w.Header().Set("Api-Version", "1.51")
	w.Header().Set("Content-Type", "application/json")
	if strings.HasSuffix(r.URL.Path, "/_ping") {
		fmt.Fprint(w, "OK")
		return
	}
	_, what, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if m.fails != nil {
		if err := m.fails(what); err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			_ = json.NewEncoder(w).Encode(map[string]string{"message": err.Error()})
			return
		}
	}
	switch what {
	case "info":
		fmt.Fprint(w, `{"OSType": "linux"}`)
	case "services/create":
		var spec swarm.ServiceSpec
		if err := json.NewDecoder(r.Body).Decode(&spec); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		m.made = append(m.made, spec.Name)
		if m.began != nil {
			m.began(spec)
		}
		fmt.Fprintf(w, `{"ID": "id-of-%s"}`, spec.Name)
	case "tasks":
		_ = json.NewEncoder(w).Encode(m.tasks)
	default:
		http.NotFound(w, r)
	}
}

func newRun(t *testing.T, m *manager) *run {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sock")
	l, err := net.Listen("unix", file)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: m}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close() })
	t.Setenv("DOCKER_HOST", "unix://"+file)
	r := &run{swarm: &Swarm{}, services: map[role]*service{}, image: "toll",
		secret: &swarm.SecretReference{}}
	if r.daemon, err = dockerapi.Connect(context.Background(), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if r.key, err = agent.NewKey(); err != nil {
		t.Fatal(err)
	}
	if r.hub, err = agent.Listen(netip.MustParseAddrPort("127.0.0.1:0"), r.key, testVersion); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.hub.Close() })
	for _, name := range []string{"a", "b", "c"} {
		r.nodes = append(r.nodes, Node{ID: "id-of-" + name, Name: name})
	}
	return r
}

func comes(t *testing.T, r *run, spec swarm.ServiceSpec) {
	c := spec.TaskTemplate
	_, id, _ := strings.Cut(c.ContainerSpec.Env[0], "=")
	_, node, _ := strings.Cut(c.Placement.Constraints[0], "==")
	config := agent.Config{Bundle: r.key.Bundle(), Dial: []netip.AddrPort{r.hub.Addr()},
		Version: testVersion,
		ID:      strings.ReplaceAll(id, "{{.Node.ID}}", node)}
	var ends sync.WaitGroup
	ends.Go(func() {
		if err := agent.Main(context.Background(), config); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { r.hub.Close(); ends.Wait() })
}

func TestServicesGoOnAfterAnError(t *testing.T) {
	var r *run
	m := &manager{began: func(spec swarm.ServiceSpec) { comes(t, r, spec) }}
	for i, node := range []string{"a", "b", "c"} {
		var task swarm.Task
		task.NodeID, task.Status.State = "id-of-"+node, swarm.TaskStateRunning
		task.Status.PortStatus.Ports = []swarm.PortConfig{
			{Protocol: "tcp", PublishedPort: uint32(30000 + i)}}
		m.tasks = append(m.tasks, task)
	}
	asked := map[string]int{}
	m.fails = func(path string) error {
		asked[path]++
		if n := asked[path]; path == "services/create" && n == 2 || path == "tasks" && n == 1 {
			return fmt.Errorf("rpc error: the swarm does not have a leader (%d)", n)
		}
		return nil
	}
	r = newRun(t, m)
	if _, err := r.service(t.Context(), published); err == nil ||
		!strings.HasSuffix(err.Error(), ": rpc error: the swarm does not have a leader (2)") {
		t.Fatalf("the second service was refused: %v", err)
	}
	s, err := r.service(t.Context(), published)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.made) != 3 || len(slices.Compact(slices.Sorted(slices.Values(m.made)))) != 3 {
		t.Errorf("services %q were made, want one for each node", m.made)
	}
	for i, n := range r.nodes {
		if _, err := s.on(n); err != nil || s.ids[i] != "id-of-"+m.made[i] ||
			s.ports[n.ID]["tcp"] != uint16(30000+i) {
			t.Errorf("node %s: %v, service %s, ports %v", n.Name, err, s.ids[i], s.ports[n.ID])
		}
	}
	clear(s.ports)
	asked["tasks"] = 0 // the first one fails
	if err := r.waitForPorts(t.Context(), s); err != nil || len(s.ports) != 3 ||
		asked["tasks"] != 2 {
		t.Errorf("%v after %d questions, ports %v", err, asked["tasks"], s.ports)
	}
	before := asked["tasks"]
	if again, err := r.service(t.Context(), published); err != nil || again != s ||
		asked["tasks"] != before || len(m.made) != 3 {
		t.Errorf("%p and %p, %v: nothing more was to be asked for", again, s, err)
	}
}

func TestInterruptedServices(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	m := &manager{began: func(swarm.ServiceSpec) { cancel() }}
	r := newRun(t, m)
	if _, err := r.service(ctx, published); !errors.Is(err, context.Canceled) || len(m.made) != 1 {
		t.Errorf("%v after %d services, want one", err, len(m.made))
	}
}

func TestAgentsThatDoNotCome(t *testing.T) {
	r := newRun(t, &manager{})
	s := &service{role: published, nodes: r.nodes, ids: []string{"1", "2", "3"}}
	pending := swarm.Task{ServiceID: "2"}
	pending.Status = swarm.TaskStatus{State: swarm.TaskStatePending,
		Err: `no suitable node (host-mode port already in use on 1 node)`}
	running := swarm.Task{ServiceID: "3", NodeID: "id-of-c"}
	running.Status.State = swarm.TaskStateRunning
	var ended swarm.Task
	ended.Status = swarm.TaskStatus{State: swarm.TaskStateFailed, Err: "task: non-zero exit (1)",
		ContainerStatus: &swarm.ContainerStatus{ExitCode: 1}}
	for task, want := range map[*swarm.Task]string{&pending: "id-of-b", &running: "id-of-c",
		{ServiceID: "4"}: ""} {
		if got := s.nodeOf(*task); got != want {
			t.Errorf("the task of service %s is on %q, want %q", task.ServiceID, got, want)
		}
	}
	everywhere := &service{role: onHost, nodes: r.nodes, ids: []string{"1"}}
	if got := everywhere.nodeOf(swarm.Task{ServiceID: "1"}); got != "" {
		t.Errorf("a task of a service for all nodes is on %q", got)
	}

	stranger, err := net.Dial("tcp", r.hub.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = stranger.Write([]byte("hello\n"))
	_, _ = io.Copy(io.Discard, stranger) // until it is refused
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, errLate)
	defer cancel()
	_, late := r.hub.Wait(ctx, s.identity("id-of-c"))
	var u *machine.UnsupportedError
	const (
		why = " (agent publish0.id-of-c did not connect: not within 1m30s (turned away: 1, the " +
			"last: " +
			"127.0.0.1:PORT: tls: first record does not look like a TLS handshake))"
		tasks     = "docker node ls and docker node ps c show more"
		firewalls = "the nodes must reach 127.0.0.1:PORT (TCP): check firewalls, or choose " +
			"another " +
			"address by --address"
	)
	for _, tt := range []struct {
		task         swarm.TaskStatus
		want, remedy string
	}{
		{pending.Status, "pending: no suitable node (host-mode port already in use on 1 node)", tasks},
		{swarm.TaskStatus{}, "not there", tasks},
		{running.Status, "running", firewalls},
		{ended.Status, "failed: task: non-zero exit (1)", firewalls},
	} {
		err := r.absent("c", tt.task, late)
		if got := testgolden.Stable(err.Error()); !errors.As(err, &u) || got !=
			"the agent on node c did not connect: its task is "+tt.want+why {
			t.Errorf("%q, want %q", got, tt.want)
		}
		if got := testgolden.Stable(u.Remedy); got != tt.remedy {
			t.Errorf("hint %q, want %q", got, tt.remedy)
		}
	}
}

func TestTasksThatFail(t *testing.T) {
	var r *run
	m := &manager{began: func(spec swarm.ServiceSpec) {
		if spec.TaskTemplate.Placement.Constraints[0] == "node.id==id-of-a" {
			comes(t, r, spec)
		}
	}}
	failed := func(node string, state swarm.TaskState, why string, exit int) {
		var task swarm.Task
		task.NodeID, task.Status.State, task.Status.Err = "id-of-"+node, state, why
		task.Status.ContainerStatus = &swarm.ContainerStatus{ExitCode: exit}
		m.tasks = append(m.tasks, task)
	}
	failed("b", swarm.TaskStateFailed, "task: non-zero exit (1)", 1)
	failed("c", swarm.TaskStateRejected, "No such image: 127.0.0.1:1/bridgetoll:x", 0)
	r = newRun(t, m)
	s, err := r.service(t.Context(), onHost)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ err, remedy string }{{}, {
		"the agent on node b did not connect: its task is failed: task: non-zero exit (1) " +
			"(agent host1.id-of-b did not connect: it gave up)",
		"the nodes must reach 127.0.0.1:PORT (TCP): check firewalls, or choose another " +
			"address by --address"}, {"node c does not have toll's image toll, and a swarm does not " +
		"distribute " +
		"images", "toll image | ssh c docker load, or --image with its name in a registry"}} {
		_, err := s.on(r.nodes[i])
		if want.err == "" {
			if err != nil {
				t.Errorf("node %s: %v", r.nodes[i].Name, err)
			}
			continue
		}
		var u *machine.UnsupportedError
		if got := testgolden.Stable(fmt.Sprint(err)); !errors.As(err, &u) || got != want.err {
			t.Errorf("node %s: %q, want %q", r.nodes[i].Name, got, want.err)
		}
		if got := testgolden.Stable(u.Remedy); got != want.remedy {
			t.Errorf("node %s: %q, want %q", r.nodes[i].Name, got, want.remedy)
		}
	}
}
