package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/conntrack"
	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

const thisMachine = local.ThisMachine

func stepOut(nodes []Node) (*netns.NS, error) {
	here, err := netns.Here()
	if err != nil {
		return nil, err
	}
	err = here.Do(func() error {
		all, err := link.Survey()
		if err != nil {
			return err
		}
		return isOutside(all, nodes)
	})
	if err != nil {
		return nil, errors.Join(err, here.Close())
	}
	return here, nil
}

func (r *run) outside() path.Place { return local.Place{Space: r.here, Named: thisMachine} }

func isOutside(devices []link.Device, nodes []Node) error {
	has := func(is func(netip.Addr) bool) bool {
		return slices.ContainsFunc(devices, func(d link.Device) bool {
			return slices.ContainsFunc(d.Addrs, func(p netip.Prefix) bool { return is(p.Addr()) })
		})
	}
	for _, n := range nodes {
		pods, err := netip.ParsePrefix(n.PodCIDR)
		what := ""
		switch {
		case has(func(a netip.Addr) bool { return a == n.Addr || slices.Contains(n.External, a) }):
			what = "node " + n.Name
		case err == nil && has(pods.Contains):
			what = "in a pod on node " + n.Name
		default:
			continue
		}
		return &machine.UnsupportedError{Missing: fmt.Sprintf(
			"this machine is %s: a client here is not outside the cluster", what),
			Remedy: "--outside on a machine that is not a node; without it, --from remote is another node"}
	}
	return nil
}

var fromOutside = []mode.Name{mode.Host, mode.HostPort, mode.NodePort, mode.NodePortLocal}

func (k *Kubernetes) refuseOutside(s path.Spec) error {
	switch {
	case s.From != mode.FromRemote:
		return &machine.UnsupportedError{
			Missing: "with --outside the client is this machine, not a pod",
			Remedy:  "--from remote"}
	case !slices.Contains(fromOutside, s.Mode):
		return &machine.UnsupportedError{Missing: fmt.Sprintf(
			"the address of %s exists only in the cluster and cannot be reached from outside", s.Mode),
			Remedy: "nodeport, nodeport-local, hostport or host"}
	case len(k.Nodes) <= 1: // the server's node is dialled
		return nil
	case s.Mode == mode.NodePortLocal:
		return &machine.UnsupportedError{Missing: fmt.Sprintf(
			"with externalTrafficPolicy: Local, node %s has no endpoint: the service's pod is on node %s", k.Nodes[1], k.Nodes[0]),
			Remedy: "--nodes " + k.Nodes[0] + "; or nodeport, which every node answers"}
	case s.Mode == mode.HostPort:
		return &machine.UnsupportedError{Missing: fmt.Sprintf(
			"node %s has no such host port: the pod is on node %s", k.Nodes[1], k.Nodes[0]),
			Remedy: "--nodes " + k.Nodes[0] + "; or nodeport, which every node answers"}
	}
	return nil
}

// dialled returns the index of the dialled node. For a server in a node's network it is always that
// node.
func (k *Kubernetes) dialled(s path.Spec) int {
	if len(k.Nodes) > 1 && s.Mode != mode.Host {
		return 1
	}
	return 0
}

type reached struct {
	addr netip.Addr
	own  netip.Addr // the node's own address, which differs from addr behind NAT
	way  link.Route
	err  error // why the node is unreachable
}

// reach finds out at which of its internal and external addresses this machine reaches the node. A
// closed port answers as well, but a port behind a firewall does not.
func (s *site) reach(port uint16, what string) (*reached, error) {
	key := fmt.Sprintf("%s %d", s.client.Name, port)
	if known, ok := s.run.reached.Load(key); ok {
		r := known.(*reached)
		s.entered = r
		return r, r.err
	}
	const latest = 8 * time.Second // it takes time until kube-proxy learns of the pod
	r := &reached{}
	var why error
	for began := time.Now(); ; {
		why = nil
		hopeless := true
		for _, addr := range append([]netip.Addr{s.client.Addr}, s.client.External...) {
			err := responds(s.ctx, netip.AddrPortFrom(addr, port))
			if err == nil {
				r.addr = addr
				break
			}
			why, hopeless = errors.Join(why, err), hopeless && errors.Is(err, syscall.ENETUNREACH)
		}
		if r.addr.IsValid() {
			break
		}
		if err := context.Cause(s.ctx); err != nil {
			return nil, err
		}
		if hopeless || time.Since(began) > latest {
			r.err = &machine.UnsupportedError{Missing: fmt.Sprintf(
				"this machine does not reach %s %d of node %s: %s", what, port, s.client.Name,
				said(why.Error())),
				Remedy: "a route to the nodes, and firewalls or security groups that let this port through; or without --outside, from another node"}
			s.run.reached.Store(key, r)
			return nil, r.err
		}
		time.Sleep(again)
	}
	r.own = s.client.Addr
	if _, has := cluster.Card(s.client.Devices, r.addr); has {
		r.own = r.addr
	}
	err := s.run.here.Do(func() (err error) { r.way, err = link.RouteTo(r.addr); return err })
	if err != nil {
		return nil, err
	}
	s.run.reached.Store(key, r)
	s.entered = r
	return r, nil
}

func responds(ctx context.Context, to netip.AddrPort) error {
	d := net.Dialer{Timeout: time.Second}
	c, err := d.DialContext(ctx, tcp, to.String())
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil
	}
	if err != nil {
		return err
	}
	return c.Close()
}

func (s *site) entrance() string { return thisMachine + " and " + s.client.Where }

// entry returns the hop between this machine's card and the node's. If back is false, the replies
// do not cross the node, and only this machine's card counts.
func (s *site) entry(r *reached, back bool) (path.Hop, error) {
	h := path.Hop{Kind: mode.HopWire, Name: r.way.Device, Where: s.entrance(), Others: true,
		Read: local.Device(s.run.here, r.way.Device, false)}
	if s.client.Agent == nil || !back {
		return h, nil
	}
	in, err := s.leaves(s.client, r.way.Source)
	if err != nil {
		return h, err
	}
	if in.Kind == "bridge" { // the node sees this machine at another address, because of NAT
		in = s.client.Card
	}
	s.client.Wire = in.Name
	if tunnels[in.Kind] != "" {
		s.client.Wire = s.client.Card.Name
	}
	h.Name += "⇄" + in.Name
	h.Read = cluster.Both(h.Read, s.client.Agent.Read(
		agent.Counter{Device: &agent.Device{Name: in.Name, ForwardRx: true}}))
	return h, nil
}

func (s *site) hostFromOutside(server path.Place, port uint16) error {
	r, err := s.reach(port, "port")
	if err != nil {
		return err
	}
	wire, err := s.entry(r, true)
	if err != nil {
		return err
	}
	s.serve(server, netip.AddrPortFrom(r.own, port), s.run.outside(),
		netip.AddrPortFrom(r.addr, port))
	s.path.Hops = []path.Hop{wire}
	return nil
}

// onNodeFromOutside dials a node's port from outside. If the pod is on another node, the dialled
// one forwards the packets. Replies cross it only if it rewrites the client's address.
func (s *site) onNodeFromOutside(server *box, port, knock uint16, what string,
	source conntrack.Source) error {
	r, err := s.reach(port, what)
	if err != nil {
		return err
	}
	c := caller{addr: r.way.Source, dials: r.addr}
	at := netip.AddrPortFrom(r.own, port)
	nat, err := s.natHops(s.client, c, at, netip.AddrPortFrom(r.own, knock),
		netip.AddrPortFrom(server.Addr, serverPort), fmt.Sprintf("%s %s", what, at), source)
	if err != nil {
		return err
	}
	relayed := s.client != s.server
	masked := slices.ContainsFunc(nat, func(h path.Hop) bool { return h.Kind == mode.HopSNAT })
	wire, err := s.entry(r, masked || !relayed)
	if err != nil {
		return err
	}
	var between []path.Hop
	switch {
	case relayed && masked:
		way, err := s.client.Agent.Route(s.ctx, server.Addr)
		if err != nil {
			return err
		}
		if between, err = s.between(server.Addr, way.Source); err != nil {
			return err
		}
	case relayed:
		s.unseen = append(s.unseen, fmt.Sprintf(
			"the route from %s to %s: replies may take another route", s.client.Where,
			s.server.Where))
	}
	s.serve(server.Agent, anywhere, s.run.outside(), netip.AddrPortFrom(r.addr, port))
	s.path.Hops = slices.Concat([]path.Hop{wire}, nat, between, s.last(c, server))
	return nil
}

func (s *site) describeOwn() {
	r := s.entered
	if r == nil {
		return
	}
	f := s.path.Facts
	relay := ""
	if k := s.run.backend; len(k.Nodes) > 1 {
		relay = ", which dials services at node " + k.Nodes[1]
	}
	f["client node"] = said(fmt.Sprintf("%s, outside the cluster (%s by %s)%s", thisMachine,
		r.way.Source, r.way.Device, relay))
	f["dialled"] = r.addr.String()
	if s.client != s.server {
		f["dialled"] += fmt.Sprintf(" of node %s, which forwards it", s.client.fact())
	}
	links, err := local.Links(s.run.here, thisMachine, r.way.Device)
	if err != nil {
		return // reading the device's counters will report the error
	}
	s.path.Links = append(s.path.Links, links...)
}

// inspectsOwn returns a function that reads this machine's settings. The function reads none if
// clients are in the cluster, or if only root may read the settings; the path's facts record the
// latter.
func (s *site) inspectsOwn(to []netip.Addr) func() ([]path.Setting, error) {
	none := func() ([]path.Setting, error) { return nil, nil }
	if s.entered == nil {
		return none
	}
	spots := []local.Inspected{{Space: s.run.here, Where: thisMachine,
		Devices: []string{s.entered.way.Device}, To: to}}
	read := func() ([]path.Setting, error) { return local.Inspect(spots) }
	var u *machine.UnsupportedError
	if _, err := read(); errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) ||
		errors.As(err, &u) {
		s.path.Facts["settings not watched on"] = thisMachine + ": needs root"
		return none
	}
	return read
}
