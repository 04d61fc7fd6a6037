package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/kernel/journal"
	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// site is a path that is being built. ctx is the build's context; the path's counters do not use
// it.
type site struct {
	ctx  context.Context
	run  *run
	path *path.Path

	server, client *end // if the client is outside the cluster, client is the dialled node
	spots          []cluster.Spot
	used           []used   // pods
	unseen         []string // parts of the path that no counter witnesses, and why
	entered        *reached // nil if the client is in the cluster
}

type used struct {
	body *body
	node Node
}

type end struct {
	Node
	cluster.End
}

func (s *site) begin() error {
	server, client, err := s.pair()
	if err != nil {
		return err
	}
	// The client's node has no serving pod: services would forward to it as well.
	other := calling
	if s.path.Spec.Client != "" {
		other = serving
	}
	if s.server, err = s.end(server, serving); err != nil {
		return err
	}
	if s.client = s.server; client.Name != server.Name {
		if s.client, err = s.end(client, other); err != nil {
			return err
		}
	}
	s.path.Machines = cluster.Machines(s.server.Machine, s.client.Machine)
	if s.run.here != nil { // this machine has meters of its own, without an agent
		boot, _ := journal.BootID()
		s.path.Machines = slices.DeleteFunc(s.path.Machines, func(m path.Machine) bool {
			return m.(*agent.Agent).Hello().Boot == boot
		})
	}
	return nil
}

func (s *site) pair() (server, client Node, err error) {
	all, spec := s.run.nodes, s.path.Spec
	if s.run.here != nil {
		return all[0], all[s.run.backend.dialled(spec)], nil
	}
	if spec.Client == "" {
		if (spec.From == mode.FromHost || spec.From == mode.FromContainer) && !spec.To.Outside() {
			return all[0], all[0], nil
		}
		if len(all) < 2 {
			return server, client, s.run.alone()
		}
		return all[0], all[1], nil
	}
	return cluster.Two(all, spec, func(n Node) string { return n.Name })
}

// end returns a node of the path. In an unprivileged run, a pod of role standIn measures the node's
// CPU time instead of an onNode pod.
func (s *site) end(n Node, standIn role) (*end, error) {
	kind := onNode
	if s.run.backend.Unprivileged {
		kind = standIn
	}
	b, err := s.run.bodyOf(s.ctx, kind, n)
	if err != nil {
		return nil, err
	}
	s.used = append(s.used, used{b, n})
	if s.run.backend.Unprivileged {
		return &end{Node: n, End: cluster.End{Where: "node " + n.Name, Machine: b.agent}}, nil
	}
	e, err := s.run.devices.End(s.ctx, b.agent, n.Name, n.Addr, "--nodes with others")
	return &end{Node: n, End: e}, err
}

// deviceHop returns the hop of a node's device, which other packets also cross.
func (e *end) deviceHop(kind mode.HopKind, name string, forwardRx bool) path.Hop {
	h := e.Hop(kind, name, forwardRx)
	h.Others = true
	return h
}

// tunnels maps kinds of devices that carry packets to other nodes to kinds of hops.
var tunnels = map[string]mode.HopKind{"vxlan": mode.HopVXLAN, "geneve": mode.HopTunnel,
	"ipip": mode.HopTunnel, "wireguard": mode.HopTunnel}

// ofCilium lists Cilium's tunnel devices. Cilium's routes name another device, and its BPF programs
// redirect the packets from there to the tunnel.
var ofCilium = []string{"cilium_wg0", "cilium_vxlan", "cilium_geneve"}

// between returns the hops between the nodes, for packets to the address there and replies to the
// address back.
func (s *site) between(there, back netip.Addr) ([]path.Hop, error) {
	if s.server.Agent == nil || s.client.Agent == nil {
		return nil, nil
	}
	out, err := s.leaves(s.client, there)
	if err != nil {
		return nil, err
	}
	in, err := s.leaves(s.server, back)
	if err != nil {
		return nil, err
	}
	var hops []path.Hop
	through, answers := tunnels[out.Kind], tunnels[in.Kind]
	both := through != "" && answers != ""
	if !both && (through != "" || answers != "") {
		s.unseen = append(
			s.unseen, "the tunnel between the nodes: requests and answers take different routes")
	}
	if both {
		hops = append(hops, s.client.deviceHop(through, out.Name, false))
		s.client.Own, s.client.To = append(s.client.Own, out.Name), append(s.client.To, there)
	}
	wire := in.Name
	if answers != "" {
		wire = s.server.Card.Name
	}
	s.server.Wire, s.client.Wire = wire, out.Name
	if through != "" {
		s.client.Wire = s.client.Card.Name
	}
	hops = append(hops, s.server.deviceHop(mode.HopWire, wire, true))
	if both {
		hops = append(hops, s.server.deviceHop(answers, in.Name, true))
		s.server.Own, s.server.To = append(s.server.Own, in.Name), append(s.server.To, back)
	}
	return hops, nil
}

// leaves returns the device of a node's route to the address.
func (s *site) leaves(e *end, to netip.Addr) (agent.Interface, error) {
	way, err := e.Agent.Route(s.ctx, to)
	if err != nil {
		return agent.Interface{}, fmt.Errorf("%s has no route to %s: %w", e.Where, to, err)
	}
	find := func(name string) (agent.Interface, bool) {
		i := slices.IndexFunc(e.Devices, func(d agent.Interface) bool { return d.Name == name })
		if i < 0 {
			return agent.Interface{}, false
		}
		return e.Devices[i], true
	}
	if way.Device == "cilium_host" {
		for _, name := range ofCilium {
			if d, ok := find(name); ok {
				return d, nil
			}
		}
		return e.Card, nil
	}
	d, ok := find(way.Device)
	if !ok || d.Kind == "veth" && d.Name != e.Card.Name && e.Card.Kind != "veth" || d.Name == "lo" {
		return e.Card, nil
	}
	return d, nil
}

func (s *site) ends() []*cluster.End {
	if s.client == s.server {
		return []*cluster.End{&s.server.End}
	}
	return []*cluster.End{&s.client.End, &s.server.End}
}

// cards adds the facts of network cards to the path. It ignores errors.
func (s *site) cards() {
	for _, e := range s.ends() {
		if e.Agent != nil {
			_ = e.AddCards(s.ctx, s.path)
		}
	}
	if r := s.entered; r != nil {
		_ = local.Cards(s.path, s.run.here, thisMachine, r.way.Device, true)
	}
}

func (s *site) serve(server path.Place, listen netip.AddrPort, client path.Place,
	dial netip.AddrPort) {
	s.path.Servers = []path.Server{{Place: server, Listen: listen, Machine: s.server.Machine}}
	s.path.Clients = []path.Client{{Place: client, Dial: dial}}
	if s.run.here == nil {
		s.path.Clients[0].Machine = s.client.Machine
	}
}

// Finish completes the path after its recipe.
func (s *site) Finish() error {
	s.describe()
	if s.path.Spec.Client == "" { // not for the many paths of a mesh
		s.cards()
	}
	s.inspectable()
	path.Share(s.path, func(h path.Hop) bool {
		return h.Where == s.client.Where || h.Where == s.server.Where || h.Where == s.entrance()
	})
	return nil
}

// inspectable sets the path's Inspect. Programs that may let packets bypass a device do not fail
// the path, because packets still cross the pods' own devices and the nodes' cards, which count.
func (s *site) inspectable() {
	if s.server.Agent == nil || s.path.Spec.Client != "" { // a mesh has too many paths for that
		return
	}
	to := []netip.Addr{s.server.Addr, s.client.Addr}
	if s.entered != nil {
		to = append(to, s.entered.addr, s.entered.way.Source)
	}
	s.spots = cluster.Watched(s.ends(), s.spots, to...)
	to = s.spots[len(s.spots)-1].At.To
	spots, own, pods, r, most := s.spots, s.inspectsOwn(to), s.used, s.run, 0
	s.path.Inspect = func() ([]path.Setting, error) {
		all, err := cluster.Inspect(spots)
		if err != nil || len(all) < most { // a pod's devices vanish before its exec stream ends
			if left := r.lost(pods); left != nil {
				return nil, left
			}
		}
		most = max(most, len(all))
		mine, failed := own()
		return append(all, mine...), errors.Join(err, failed)
	}
}

// lost returns a *path.LeftError for the first pod that no longer runs, a *path.CutError if only an
// exec stream broke, or nil.
func (r *run) lost(all []used) error {
	var cut error
	for _, u := range all {
		was := u.body.agent.Err()
		why, gone := r.whyLeft(u.body, cmp.Or(was, errors.New("it no longer runs")))
		switch {
		case gone, was != nil && !errors.As(was, new(*path.CutError)):
			return &path.LeftError{Node: u.node.Name, Err: why}
		case was != nil:
			cut = cmp.Or(cut, why)
		}
	}
	return cut
}

func (s *site) describe() {
	f := s.path.Facts
	f["server node"], f["client node"] = s.server.fact(), s.client.fact()
	s.describeOwn()
	f["cluster"] = fmt.Sprintf("Kubernetes %s, namespace %s", said(s.run.version),
		s.run.client.Namespace)
	if s.run.backend.Image != "" {
		f["image"] = s.run.image
	}
	if s.run.backend.Unprivileged {
		ends := "the pods"
		if s.entered != nil {
			ends = thisMachine + "'s card and the pod"
		}
		s.unseen = append(s.unseen, "all between "+ends+" (--unprivileged)")
	}
	if len(s.unseen) > 0 {
		f[sample.FactNotWitnessed] = strings.Join(s.unseen, "; ")
	}
	if s.path.Spec.Client == "" {
		maps.Copy(f, s.network())
	}
	for _, e := range slices.Backward(s.ends()) {
		e.AddLinks(s.path)
	}
}

func (e *end) fact() string {
	return said(fmt.Sprintf("%s (%s), kubelet %s, %s, Linux %s", e.Name, e.Addr, e.Kubelet,
		e.Runtime, e.Machine.Hello().Kernel))
}
