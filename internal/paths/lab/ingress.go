package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/ipvs"
	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Swarm's routing mesh was read from a running Docker Engine 28.5.2, its IPVS from
// libnetwork/service_linux.go and libnetwork/osl/namespace_linux.go.
//
// A published port is rewritten to the ingress sandbox, a namespace with a device on
// docker_gwbridge and one on the overlay network ingress. There IPVS chooses the task by the
// packet's mark, and the sandbox's address replaces the client's. In the task, a rule redirects the
// published port to the task's port.
//
// The tasks have no second device here, because the load does not use it.
const (
	ingressChain = "DOCKER-INGRESS"
	ingressBox   = "ingress_sbox"

	ingressPort = "veth0" // outer end of the sandbox's veth pair
	gatewayPort = "veth-gw"
	gatewayLeg  = "eth1"

	firstMark = 256
)

var ingressNet = overlayNet{network{bridge: overlayBridge,
	subnet: netip.MustParsePrefix("10.0.0.0/24"), first: firstTask}, ingressVNI,
	defaultMTU - vxlanOverhead}

var sandboxLeg = gwbridge.nth(firstDocker)

const (
	sandboxHost = 2
	firstVIP    = 3
	firstTask   = 4
	eachService = 2
)

// balanced lists Docker's settings for IPVS: connection tracking, which SNAT needs; the same task
// when a client reuses a port; the end of connections to removed tasks.
var balanced = [][2]string{
	{"net.ipv4.vs.conntrack", "1"},
	{"net.ipv4.vs.conn_reuse_mode", "0"},
	{"net.ipv4.vs.expire_nodest_conn", "1"},
	{"net.ipv4.vs.expire_quiescent_template", "1"},
}

type service struct {
	mark  uint32
	vip   netip.Addr
	task  netip.Addr
	ports []published // each published port of the mesh, with the task's address and port
}

func (s *site) publishIngress() error {
	p := s.path
	d, services := s.mesh()
	b, err := s.sandbox(s.a, d, ingressNet)
	if err != nil {
		return err
	}
	if err := s.a.ns.Do(func() error {
		return sysctl.Set("net.ipv4.conf."+gwbridge.bridge+".route_localnet", "1")
	}); err != nil {
		return err
	}
	box, err := s.ingressSandbox(b, services)
	if err != nil {
		return err
	}
	join := b.attach(s)
	err = s.addServers(func(at seat) (*container, error) {
		v := services[at.number]
		at.number *= eachService
		c, err := join(at)
		if err != nil {
			return nil, err
		}
		return c, c.ns.Do(func() error { return nft.Apply(v.taskRules(p.Spec.UDP)) })
	})
	if err != nil {
		return err
	}
	s.dialPublished()
	s.Give(mode.HopDNAT, s.EachServer(func(i int) path.Hop {
		return s.portRule(mode.HopDNAT, "nat", ingressChain, tagPublish, i, path.Matches)
	})...)
	s.Give(mode.HopIPVS, s.ipvsHop(box))
	s.GiveAt(mode.HopBridge, func(at recipe.At) []path.Hop {
		switch {
		case at.After(mode.HopIPVS):
			return []path.Hop{s.overlaySwitch(b, []string{box.port}, ports(s.Servers))}
		case at.After(mode.HopDNAT):
			return []path.Hop{s.bridgeHop(s.a, gwbridge.bridge, true)}
		}
		return []path.Hop{s.crossed(at)}
	})
	p.Guards = []path.Hop{local.Unused(s.loHop(s.a.ns, s.a.name)),
		local.Unused(s.vxlanHop(b, true))}
	if p.Spec.From != mode.FromContainer {
		p.Guards = append(p.Guards, s.noNAT())
	}
	return s.placeClients(func() error {
		if p.Spec.From == mode.FromRemoteContainer {
			return s.remoteClients(dockerNet{network: remoteNet})
		}
		s.away = tollNet
		s.Give(mode.HopSNAT,
			s.ruleHop(s.a, mode.HopSNAT, "nat", "POSTROUTING", tagMasq, path.Matches))
		return s.dockerClients(daemon{})
	})
}

func (s *site) mesh() (d daemon, services []service) {
	n := dockerNet{network: gwbridge, containers: []netip.Prefix{sandboxLeg}}
	for i := range s.serverSeats() {
		v := service{mark: firstMark + uint32(i),
			vip:  ingressNet.nth(firstVIP + eachService*i).Addr(),
			task: ingressNet.nth(firstTask + eachService*i).Addr()}
		v.ports = s.ports(v.task, uint16(publishedPort+i))
		for _, q := range v.ports {
			d.ingress = append(d.ingress, published{
				port: q.port, to: netip.AddrPortFrom(sandboxLeg.Addr(), q.port)})
		}
		services = append(services, v)
		n.containers = append(n.containers, gwbridge.nth(firstDocker+1+i))
	}
	d.networks = []dockerNet{n}
	if s.path.Spec.From == mode.FromContainer {
		own := dockerNet{network: tollNet}
		for _, at := range s.clientSeats(s.a) {
			own.containers = append(own.containers, tollNet.of(at))
		}
		d.networks = append(d.networks, own)
	}
	return d, services
}

func (s *site) ingressSandbox(b *sandbox, services []service) (*container, error) {
	c, err := b.join(s, ingressBox+" on "+b.on.name, ingressPort, ingressNet.nth(sandboxHost))
	if err != nil {
		return nil, err
	}
	if err := c.leaveByGateway(gatewayPort, sandboxLeg); err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	err = c.ns.Do(func() error {
		// The sandbox routes replies. (Docker's inherits the setting from the machine.)
		if err := sysctl.Set(ipForward, "1"); err != nil {
			return err
		}
		for _, v := range services {
			if err := link.AddAddr(inside, single(v.vip)); err != nil {
				return err
			}
			if err := ipvs.Add(v.mark, v.task); err != nil {
				return err
			}
		}
		if err := balance(); err != nil {
			return err
		}
		return nft.Apply(sandboxRules(services, s.path.Spec.UDP))
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	return c, nil
}

// balance sets Docker's settings for IPVS, which exist only once IPVS is loaded.
func balance() error {
	for _, kv := range balanced {
		if err := sysctl.Set(kv[0], kv[1]); err != nil {
			return err
		}
	}
	return nil
}

func sandboxRules(services []service, udp bool) []nft.Chain {
	d := daemon{udp: udp}
	var prerouting, input []nft.Rule
	for _, v := range services {
		for _, q := range v.ports {
			prerouting = append(prerouting, rule(nft.Mark(v.mark), d.dport(q.port)))
		}
		input = append(input, rule(nft.Mark(v.mark), nft.Dst(single(v.vip))))
	}
	return []nft.Chain{
		{Table: "mangle", Name: "PREROUTING", Hook: nft.Prerouting, Rules: prerouting},
		{Table: "mangle", Name: "INPUT", Hook: nft.Input, Rules: input},
		{Table: "nat", Name: "POSTROUTING", Hook: nft.Postrouting, Rules: []nft.Rule{
			rule(nft.SNAT(ingressNet.nth(sandboxHost).Addr()), nft.Dst(ingressNet.subnet),
				nft.IPVS())}},
	}
}

// taskRules redirects the published port and drops everything else between the task and the mesh's
// network.
func (v service) taskRules(udp bool) []nft.Chain {
	d, self := daemon{udp: udp}, single(v.task)
	var redirect, in, out []nft.Rule
	for _, q := range v.ports {
		redirect = append(redirect, rule(nft.Redirect(q.to.Port()), nft.Dst(self), d.dport(q.port)))
		in = slices.Insert(in, 0, rule(nft.Accept(), nft.Dst(self), d.dport(q.to.Port()),
			nft.NewOrEstablished()))
		out = slices.Insert(out, 0, rule(nft.Accept(), nft.Src(self), d.sport(q.to.Port()),
			nft.OnlyEstablished()))
	}
	for _, proto := range []nft.Match{nft.SCTP(), nft.UDP(), nft.TCP()} {
		in = append(in, rule(nft.Drop(), proto, nft.Dst(self)))
		out = append(out, rule(nft.Drop(), proto, nft.Src(self)))
	}
	return []nft.Chain{
		{Table: "nat", Name: "PREROUTING", Hook: nft.Prerouting, Rules: redirect},
		{Table: "filter", Name: "INPUT", Hook: nft.Input, Rules: in},
		{Table: "filter", Name: "OUTPUT", Hook: nft.Output, Rules: out},
	}
}

func (d daemon) withMesh(chains []nft.Chain) []nft.Chain {
	if len(d.ingress) == 0 {
		return chains
	}
	type id struct{ table, name string }
	top := map[id]nft.Rule{
		{"nat", "PREROUTING"}: rule(nft.Jump(ingressChain), nft.DstLocal()),
		{"nat", "OUTPUT"}:     rule(nft.Jump(ingressChain), nft.DstLocal()),
		{"nat", "POSTROUTING"}: tagged(
			tagLocalMasq, nft.Masquerade(), nft.Out(gwbridge.bridge), nft.SrcLocal()),
		{"filter", "DOCKER-FORWARD"}: rule(nft.Jump(ingressChain)),
	}
	for i, c := range chains {
		if r, ok := top[id{c.Table, c.Name}]; ok {
			chains[i].Rules = slices.Insert(c.Rules, 0, r)
		}
	}
	var dnat, accept []nft.Rule
	for i, p := range slices.Backward(d.ingress) { // each rule was inserted at the top
		dnat = append(dnat, tagged(numbered(tagPublish, i), nft.DNAT(p.to), d.dport(p.port)))
		accept = append(accept, rule(nft.Accept(), d.dport(p.port)),
			rule(nft.Accept(), d.sport(p.port), nft.Established()))
	}
	return append(chains,
		nft.Chain{Table: "nat", Name: ingressChain, Rules: append(dnat, rule(nft.Return()))},
		nft.Chain{Table: "filter", Name: ingressChain, Rules: append(accept, rule(nft.Return()))})
}

// ipvsHop counts all services together, because the kernel updates a single service's counters late
// (see kernel/ipvs).
func (s *site) ipvsHop(c *container) path.Hop {
	h := path.Hop{Kind: mode.HopIPVS, Name: "round robin", Where: c.name,
		Read: func() (out sample.Counters, err error) {
			err = c.ns.Do(func() error {
				n, err := ipvs.Stats()
				out = sample.Counters{ForwardBytes: n.InBytes, ForwardPackets: n.InPackets,
					BackwardBytes: n.OutBytes, BackwardPackets: n.OutPackets}
				return err
			})
			return out, err
		}}
	return s.madeOf(h, device{Space: c.ns, Name: inside}, device{Space: c.portNS, Name: c.port},
		device{Space: c.ns, Name: gatewayLeg}, device{Space: c.on.ns, Name: gatewayPort})
}

func tryIPVS() error {
	v := service{mark: firstMark, vip: ingressNet.nth(firstVIP).Addr(),
		task: ingressNet.nth(firstTask).Addr(),
		ports: []published{{port: publishedPort, to: netip.AddrPortFrom(
			ingressNet.nth(firstTask).Addr(), serverPort)}}}
	err := ipvs.Add(v.mark, v.task)
	if err == nil {
		if err = balance(); errors.Is(err, fs.ErrNotExist) {
			return &machine.UnsupportedError{
				Missing: "IPVS's settings are missing: the kernel lacks CONFIG_IP_VS_NFCT, or hides them in a user namespace",
				Remedy:  "run toll as root, or use a kernel that has it",
				Err:     err,
			}
		}
	}
	if err == nil {
		err = nft.Apply(append(sandboxRules([]service{v}, false), v.taskRules(false)...))
	}
	switch {
	case err == nil:
		return nil
	case ipvs.Unsupported(err), nft.Unsupported(err):
		return &machine.UnsupportedError{
			Missing: "the kernel lacks IPVS or a part of it (CONFIG_IP_VS, CONFIG_IP_VS_PROTO_TCP, CONFIG_IP_VS_PROTO_UDP, CONFIG_IP_VS_RR, CONFIG_IP_VS_NFCT, CONFIG_NETFILTER_XT_MATCH_IPVS, CONFIG_NFT_COMPAT, CONFIG_NFT_REDIR)",
			Remedy:  remedy.ModprobeOr("ip_vs", "ip_vs_rr", "xt_ipvs", "nft_compat", "nft_redir"),
			Err:     err,
		}
	case errors.Is(err, unix.EPERM), errors.Is(err, fs.ErrPermission):
		return &machine.UnsupportedError{
			Missing: "this kernel allows only root, not a user namespace, to set up IPVS",
			Remedy:  "run toll as root",
			Err:     err,
		}
	}
	return fmt.Errorf("try IPVS: %w", err)
}
