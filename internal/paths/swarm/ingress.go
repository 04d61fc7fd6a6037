package swarm

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// ingressBox is the file of the namespace in which IPVS chooses a task (libnetwork; see
// internal/paths/lab).
const ingressBox = inTask + "/ingress_sbox"

// publishIngress dials the routing mesh at the node of the service's only task. The connection
// tracking table in the mesh's namespace shows that IPVS chose this task.
func (s *site) publishIngress() error {
	mesh, err := s.run.ingressNetwork(s.ctx)
	if err != nil {
		return err
	}
	subnet, err := subnetOf(mesh.Network)
	if err != nil {
		return err
	}
	server, err := s.box(meshed, s.server.Node, func(p netip.Prefix) bool {
		return subnet.Contains(p.Addr())
	})
	if err != nil {
		return err
	}
	if err := s.balances(s.server); err != nil {
		return err
	}
	dial, proto, err := s.publishedAt(meshed)
	if err != nil {
		return err
	}
	inner, outer, err := s.legs(s.server, subnet)
	if err != nil {
		return err
	}
	bridge, err := s.bridgeOf(s.server, outer)
	if err != nil {
		return err
	}
	task, err := s.sandbox(s.server, server, mesh.ID)
	if err != nil {
		return err
	}
	way, err := s.sandbox(s.server, inner, mesh.ID)
	if err != nil {
		return err
	}
	s.inspectsOf(task.agent, task.namespace, task.where(), task.bridge, task.port, way.port)
	s.inspectsOf(outer.Agent, ingressBox, outer.Where, inner.Device.Name, outer.Device.Name)
	s.server.To = append(s.server.To, server.Addr)
	port := dial.Port() // the task redirects it to the server's port
	sent := agent.NAT{Proto: string(proto), To: dial, Now: netip.AddrPortFrom(outer.Addr, port)}
	chosen := &agent.NAT{Proto: string(proto), To: sent.Now,
		Now: netip.AddrPortFrom(server.Addr, port), As: inner.Addr}
	s.Give(mode.HopDNAT, s.server.dnatHop(sent))
	// IPVS's statistics would count all services of the swarm.
	s.Give(mode.HopIPVS, path.Hop{Kind: mode.HopIPVS,
		Name:  fmt.Sprintf("%s → %s", chosen.To, chosen.Now),
		Where: outer.Where, Expect: path.Matches,
		Read: outer.Agent.Read(agent.Counter{Namespace: ingressBox, NAT: chosen})})
	return s.dialled(server, dial, s.server.Hop(mode.HopBridge, bridge, false),
		task.switched(way.port, task.port))
}

func (r *run) ingressNetwork(ctx context.Context) (network.Summary, error) {
	got, err := r.daemon.API.NetworkList(ctx, client.NetworkListOptions{})
	if err != nil {
		return network.Summary{}, fmt.Errorf("list networks: %w", err)
	}
	return ingressOf(got.Items)
}

func ingressOf(all []network.Summary) (network.Summary, error) {
	i := slices.IndexFunc(all, func(n network.Summary) bool { return n.Ingress })
	if i < 0 {
		return network.Summary{}, &machine.UnsupportedError{
			Missing: "the swarm has no routing mesh: its network, usually called ingress, was removed",
			Remedy:  "docker network create --driver overlay --ingress ingress"}
	}
	return all[i], nil
}

// legs returns the ingress sandbox's devices: on the mesh's network and on the node's bridge.
func (s *site) legs(e *end, subnet netip.Prefix) (inner, outer *box, err error) {
	a, devices, err := s.within(e, "the namespace of the routing mesh", ingressBox)
	if err != nil {
		return nil, nil, err
	}
	inner, outer = legsOf(devices, subnet)
	if inner == nil || outer == nil {
		return nil, nil,
			fmt.Errorf("node %s: the namespace of the routing mesh has no device in %s, or none on a bridge",
				e.Name, subnet)
	}
	for _, b := range []*box{inner, outer} {
		b.Agent, b.Where = a, "ingress_sbox on node "+e.Name
	}
	return inner, outer, nil
}

// legsOf returns the device on the mesh's network and the one on the node's bridge. The inner one
// also has the services' addresses, as /32.
func legsOf(devices []agent.Interface, subnet netip.Prefix) (inner, outer *box) {
	for _, d := range devices {
		for _, p := range d.Addrs {
			switch {
			case !p.Addr().Is4() || p.Addr().IsLoopback() || p.IsSingleIP():
			case subnet.Contains(p.Addr()):
				inner = &box{&cluster.Box{Device: d, Addr: p.Addr()}}
			default:
				outer = &box{&cluster.Box{Device: d, Addr: p.Addr()}}
			}
		}
	}
	return inner, outer
}

const listing = 5 * time.Second

var errNoIPVS = errors.New("/proc/net/ip_vs does not exist")

// balances returns an error if the node lacks IPVS. The published service must exist before,
// because the engine loads the module for it.
func (s *site) balances(e *end) error {
	s.run.ipvsMu.Lock()
	defer s.run.ipvsMu.Unlock()
	if err := s.run.noIPVS[e.ID]; err != nil {
		return err
	}
	err := s.settles(func() (sample.Counters, error) {
		ctx, cancel := context.WithTimeout(s.ctx, listing)
		defer cancel()
		names, err := e.Agent.Files(ctx, "/proc/net")
		if err == nil && !slices.Contains(names, "ip_vs") {
			err = errNoIPVS
		}
		return sample.Counters{}, err
	})
	if !errors.Is(err, errNoIPVS) {
		return err
	}
	s.run.noIPVS[e.ID] = &machine.UnsupportedError{
		Missing: fmt.Sprintf(
			"node %s has no IPVS, which the routing mesh needs: its kernel lacks CONFIG_IP_VS, or the module is not loaded", e.Name),
		Remedy: "sudo modprobe ip_vs there, and restart docker", Err: err}
	return s.run.noIPVS[e.ID]
}

func (r *run) meshPorts(ctx context.Context, s *service) error {
	for i, id := range s.ids {
		got, err := r.daemon.API.ServiceInspect(ctx, id, client.ServiceInspectOptions{})
		if err != nil {
			return err
		}
		s.published(s.nodes[i].ID, got.Service.Endpoint.Ports)
	}
	return nil
}
