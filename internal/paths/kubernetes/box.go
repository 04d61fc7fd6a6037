package kubernetes

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

type box struct {
	*cluster.Box
	kind mode.HopKind
	port hostPort
	pair agent.Interface
	node *agent.Agent
}

// pairs identifies the counters at the node's ends of pods' veth or netkit pairs.
type pairs struct{ node *agent.Agent }

var kinds = map[string]mode.HopKind{"veth": mode.HopVeth, "netkit": mode.HopNetkit}

func (s *site) box(kind role, e *end) (*box, error) {
	body, err := s.run.bodyOf(s.ctx, kind, e.Node)
	if err != nil {
		return nil, err
	}
	s.used = append(s.used, used{body, e.Node})
	devices, err := s.run.devices.Of(s.ctx, body.agent, "")
	if err != nil {
		return nil, err
	}
	ip := ipv4Of(body.pod)
	if !ip.IsValid() {
		return nil, &machine.UnsupportedError{Missing: fmt.Sprintf(
			"the pod on node %s has no IPv4 address", e.Name),
			Remedy: "a cluster with IPv4, alone or together with IPv6"}
	}
	found := cluster.Find(body.agent, devices, func(p netip.Prefix) bool { return p.Addr() == ip })
	if found == nil {
		return nil, fmt.Errorf("%s: no device has the pod's address %s", body.agent.Name(),
			ip)
	}
	b := &box{Box: found, kind: kinds[found.Device.Kind], port: body.port}
	if b.kind == "" {
		return nil, &machine.UnsupportedError{Missing: fmt.Sprintf(
			"the pod's device on node %s is %q, which toll does not support", e.Name,
			found.Device.Kind), Remedy: "a network plug-in with veth or netkit pairs"}
	}
	if e.Agent == nil {
		return b, nil
	}
	b.node = e.Agent
	b.pair, err = e.Pair(s.ctx, &s.run.devices, b.Box)
	return b, err
}

// ipv4Of returns the pod's IPv4 address, or the zero Addr. In a cluster with both families the
// other one may be the pod's first.
func ipv4Of(p *corev1.Pod) netip.Addr {
	for _, at := range append([]corev1.PodIP{{IP: p.Status.PodIP}}, p.Status.PodIPs...) {
		if a, err := netip.ParseAddr(at.IP); err == nil && a.Is4() {
			return a
		}
	}
	return netip.Addr{}
}

// hop returns the hop of the pod's pair, which reads the counters of the pod's end. It also names
// the node's end, whose counters a bridge's hop reads.
func (b *box) hop(toServer bool) path.Hop {
	h := b.Hop(b.kind, toServer)
	if b.pair.Name != "" {
		h.Shared = pairs{b.node}
		h.Counts = [2]path.Counter{{Device: b.pair.Name, Sent: toServer},
			{Device: b.pair.Name, Sent: !toServer}}
	}
	return h
}

// bridged returns the hop of the pod's bridge, or nil if the pod is not on one.
func (b *box) bridged(e *end, toServer bool) []path.Hop {
	if e.Agent == nil || b.pair.Master == "" || e.kindOf(b.pair.Master) != "bridge" {
		return nil
	}
	return []path.Hop{e.deviceHop(mode.HopBridge, b.pair.Master, !toServer)}
}

func (e *end) switched(client, server *box) []path.Hop {
	if e.Agent == nil || client.pair.Master == "" || client.pair.Master != server.pair.Master ||
		e.kindOf(server.pair.Master) != "bridge" {
		return nil
	}
	sent := func(b *box) agent.Counter {
		return agent.Counter{Device: &agent.Device{Name: b.pair.Name}}
	}
	h := cluster.SwitchHop(e.Agent, e.Where, server.pair.Master, sent(client), sent(server))
	h.Shared = pairs{e.Agent}
	h.Counts = [2]path.Counter{{Device: server.pair.Name, Sent: true},
		{Device: client.pair.Name, Sent: true}}
	return []path.Hop{h}
}

func (e *end) kindOf(name string) string {
	for _, d := range e.Devices {
		if d.Name == name {
			return d.Kind
		}
	}
	return ""
}
