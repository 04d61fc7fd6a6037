package swarm

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/api/types/swarm"
	"github.com/moby/moby/client"

	"github.com/bridgetoll/bridgetoll/internal/machine/exchange"
	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
)

type service struct {
	role    role
	nodes   []Node
	attempt int    // from 1
	network string // the overlay network's ID
	subnet  netip.Prefix
	ids     []string // services' IDs, in the order of the nodes if each has one
	ready   bool

	agents map[string]*agent.Agent // by the node's ID
	errs   map[string]error        // why a node has no agent
	// ports has the published ports of each node's task, on the node or on the routing mesh.
	ports map[string]map[network.IPProtocol]uint16
}

// joinTimeout includes the time for fetching an image.
const joinTimeout = 90 * time.Second

// attempts limits the number of networks that are tried. The swarm does not know the nodes' own
// networks, so toll learns of a conflict only when a task is rejected.
const attempts = 5

// service makes a role's services once and waits for their agents. The result's errs tell why a
// node has no agent. After an error the next call continues where this one stopped.
func (r *run) service(ctx context.Context, kind role) (*service, error) {
	r.making.Lock()
	defer r.making.Unlock()
	s := r.services[kind]
	if s == nil {
		s = newService(kind, r.nodes, 1)
		r.services[kind] = s
	}
	if s.ready {
		return s, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	err := r.bring(ctx, s)
	for err == nil && s.overlap() && s.attempt < attempts {
		// The old network stays until the run ends. Otherwise the swarm would assign its subnet
		// again.
		if err = r.withdraw(s); err == nil {
			s = newService(kind, r.nodes, s.attempt+1)
			r.services[kind] = s
			err = r.bring(ctx, s)
		}
	}
	if err != nil {
		return nil, err
	}
	if s.network != "" { // only now: the swarm assigns the subnet with the first task
		got, err := r.daemon.API.NetworkInspect(
			ctx, s.network, client.NetworkInspectOptions{Scope: dockerapi.ScopeSwarm})
		if err != nil {
			return nil, fmt.Errorf("read network: %w", err)
		}
		if s.subnet, err = subnetOf(got.Network.Network); err != nil {
			return nil, err
		}
	}
	s.ready = true
	return s, nil
}

func newService(kind role, nodes []Node, attempt int) *service {
	return &service{role: kind, nodes: nodes, attempt: attempt, agents: map[string]*agent.Agent{},
		errs:  map[string]error{},
		ports: map[string]map[network.IPProtocol]uint16{}}
}

func (r *run) bring(ctx context.Context, s *service) error {
	if (s.role == onOverlay || s.role == encrypted) && s.network == "" {
		var err error
		if s.network, err = r.makeNetwork(s.role); err != nil {
			return err
		}
	}
	if err := r.makeServices(ctx, s); err != nil {
		return err
	}
	return r.join(ctx, s)
}

// overlap reports whether a task was rejected because its node already uses the network's
// addresses. One cause: a removed network stays on its nodes for seconds, and from Docker Engine 27
// on the next network gets the same subnet.
func (s *service) overlap() bool {
	for _, err := range s.errs {
		if errors.Is(err, errOverlap) {
			return true
		}
	}
	return false
}

// withdraw releases the agents of services and removes the services, so that no late agent disturbs
// a visit.
func (r *run) withdraw(s *service) error {
	for _, a := range s.agents {
		a.Dismiss()
	}
	ctx, cancel := dockerapi.Uninterrupted()
	defer cancel()
	for _, id := range s.ids {
		if _, err := r.daemon.API.ServiceRemove(ctx, id, client.ServiceRemoveOptions{}); err != nil && !cerrdefs.IsNotFound(err) {
			return fmt.Errorf("remove service: %w", err)
		}
	}
	return nil
}

func (s *service) identity(node string) string {
	return fmt.Sprintf("%s%d.%s", s.role, s.attempt, node)
}

// environment returns the tasks' environment. Swarm expands templates in the environment but not in
// arguments.
func (s *service) environment() []string {
	name := "node {{.Node.Hostname}}"
	if s.role != onHost && s.role != inside {
		name = "container on " + name
	}
	return []string{"BRIDGETOLL_AGENT_ID=" + s.identity("{{.Node.ID}}"),
		"BRIDGETOLL_AGENT_NAME=" + name}
}

func (r *run) join(ctx context.Context, s *service) error {
	limit, cancel := context.WithTimeoutCause(ctx, joinTimeout, errLate)
	defer cancel()
	defer exchange.Waiting("the swarm's nodes to start toll")()
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex // guards s.agents and s.errs
		waits = map[string]context.CancelCauseFunc{}
	)
	// For other nodes, an earlier call has found an agent or an error.
	unknown := those(s.nodes, func(n Node) bool {
		return s.agents[n.ID] == nil && s.errs[n.ID] == nil
	})
	for _, n := range unknown {
		one, give := context.WithCancelCause(limit)
		waits[n.ID] = give
		wg.Go(func() {
			a, err := r.hub.Wait(one, s.identity(n.ID))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				s.agents[n.ID] = a
			case ctx.Err() != nil:
			default:
				if why := context.Cause(one); why != nil && !errors.Is(why, errLate) &&
					!errors.Is(why, errGaveUp) {
					err = why
				}
				s.errs[n.ID] = err
			}
		})
	}
	all := make(chan struct{})
	go func() { wg.Wait(); close(all) }()
	last := map[string]swarm.TaskStatus{}
	for {
		select {
		case <-all:
			for _, give := range waits {
				give(nil)
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			for id := range waits {
				if err := s.errs[id]; errors.Is(err, errLate) || errors.Is(err, errGaveUp) {
					s.errs[id] = r.absent(s.nameOf(id), last[id], err)
				}
			}
			return r.waitForPorts(ctx, s)
		case <-time.After(looks):
			r.lookAtTasks(limit, s, waits, last)
		}
	}
}

func (r *run) lookAtTasks(ctx context.Context, s *service, waits map[string]context.CancelCauseFunc,
	last map[string]swarm.TaskStatus) {
	tasks, err := r.tasks(ctx, s)
	if err != nil {
		return // another manager may become the leader; agents connect anyway
	}
	for _, t := range tasks {
		id := s.nodeOf(t)
		last[id] = t.Status
		if why := r.failed(s, t); why != nil && waits[id] != nil {
			waits[id](why)
		}
	}
}

var (
	errLate   = fmt.Errorf("not within %s", joinTimeout)
	errGaveUp = errors.New("it gave up")
)

const looks = 300 * time.Millisecond

func (r *run) tasks(ctx context.Context, s *service) ([]swarm.Task, error) {
	filters := make(client.Filters)
	for _, id := range s.ids {
		filters.Add("service", id)
	}
	got, err := r.daemon.API.TaskList(ctx, client.TaskListOptions{Filters: filters})
	return got.Items, err
}

func (s *service) nodeOf(t swarm.Task) string {
	if i := slices.Index(s.ids, t.ServiceID); t.NodeID == "" && i >= 0 &&
		len(s.ids) == len(s.nodes) {
		return s.nodes[i].ID
	}
	return t.NodeID
}

func (s *service) nameOf(id string) string {
	for _, n := range s.nodes {
		if n.ID == id {
			return n.Name
		}
	}
	return id
}

// waitForPorts reads the published ports. It waits, because managers learn the ports shortly after
// the agents have connected.
func (r *run) waitForPorts(ctx context.Context, s *service) error {
	read := r.taskPorts
	switch s.role {
	case published:
	case meshed:
		read = r.meshPorts
	default:
		return nil
	}
	const latest = 20 * time.Second
	for began := time.Now(); ; {
		err := read(ctx, s) // fails for a while if another manager becomes the leader
		switch {
		case err == nil && len(s.ports) >= len(s.agents):
			return nil
		case time.Since(began) <= latest:
		case err != nil:
			return fmt.Errorf("read the published ports: %w", err)
		default:
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(looks):
		}
	}
}

func (r *run) taskPorts(ctx context.Context, s *service) error {
	tasks, err := r.tasks(ctx, s)
	for _, t := range tasks {
		s.published(t.NodeID, t.Status.PortStatus.Ports)
	}
	return err
}

func (s *service) published(node string, ports []swarm.PortConfig) {
	for _, p := range ports {
		if s.ports[node] == nil {
			s.ports[node] = map[network.IPProtocol]uint16{}
		}
		s.ports[node][p.Protocol] = uint16(p.PublishedPort)
	}
}
