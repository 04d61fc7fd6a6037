package lab

import (
	"fmt"
	"io"
	"net/netip"
	"os"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/paths/rootless"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// podman1 is the network that the first `podman network create` makes.
var podman1 = dockerNetwork("podman1", "10.89.0.0/24", "fd54:6f6c:6c:89::/64")

const netavark = "NETAVARK"

func tryRootlessPort() error {
	if _, err := rootless.Find(rootless.RootlessPort); err != nil {
		return err
	}
	return tryTap(rootless.Pasta)
}

// rootlessPort puts the networks of rootless Podman in a namespace that pasta connects to the
// machine. Published ports bypass pasta.
func (s *site) rootlessPort() error {
	tap, pasta, err := s.podman()
	if err != nil {
		return err
	}
	p := s.path
	var relays []path.Hop
	err = s.addServers(func(at seat) (*container, error) {
		c, err := s.bridged(s.engine, podman1, at)
		if err != nil {
			return nil, err
		}
		relay, err := s.startRootlessPort(c, s.published(at.number))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", at.name, err)
		}
		relay.Clients = p.Spec.TalkTo(at.number)
		relays = append(relays, relay)
		p.Guards = append(p.Guards, local.Unused(c.Hop(true)))
		return c, nil
	})
	if err != nil {
		return err
	}
	s.Give(mode.HopRootlessPort, relays...)
	err = s.placeClients(func() error {
		return s.addClients(s.a, func(at seat) (*container, error) {
			return s.bridged(s.engine, podman1, at)
		})
	})
	if err != nil {
		return err
	}
	if p.Spec.From != mode.FromHost {
		p.Guards = append(p.Guards, local.Unused(s.loHop(s.a.ns, s.a.name)))
	}
	hidden := s.ruleHop(s.engine, mode.HopSNAT, "nat", netavark, tagMasq, path.Matches)
	if p.Spec.To.Outside() {
		s.Give(mode.HopSNAT, hidden)
		s.Give(mode.HopTap, tap)
		s.Give(mode.HopPasta,
			local.RelayHop(p, mode.HopPasta, pasta.proxy, pasta.name, s.a.name))
		p.Facts["source address"] = "the machine's own"
		return nil
	}
	s.dialPublished()
	p.Facts["source address"] = "the container's own, not the client's"
	p.Guards = append(p.Guards, local.Unused(hidden), local.Unused(tap))
	return nil
}

type holder struct {
	proxy local.Proxy
	name  string
}

// podman makes a network namespace for Podman's networks, in which the bridges and rules are then
// made. It returns the hop of the namespace's tap device, and the pasta that holds the device.
func (s *site) podman() (tap path.Hop, pasta holder, err error) {
	if err := s.leaveMachine(); err != nil {
		return tap, pasta, err
	}
	file, err := rootless.Find(rootless.Pasta)
	if err != nil {
		return tap, pasta, err
	}
	ns, err := s.namespace(engineName)
	if err != nil {
		return tap, pasta, err
	}
	s.engine, s.home = &hostMachine{name: engineName, ns: ns}, podman1
	s.more = append(s.more, spot{ns, engineName})
	pid, err := s.startPasta(file, &container{site: s, name: engineName, ns: ns, on: s.a}, nil)
	if err != nil {
		return tap, pasta, fmt.Errorf("start %s: %w", file, err)
	}
	tap = path.Hop{Kind: mode.HopTap, Name: wireName, Where: engineName,
		Read: local.Device(ns, wireName, !s.path.Spec.To.Outside())}
	pasta = holder{local.Proxy{Space: s.a.ns, PID: pid, Outward: true, Frames: tap.Read},
		rootless.Named(rootless.Pasta, file)}
	return tap, pasta, ns.Do(func() error {
		if err := link.AddBridge(podman1.bridge); err != nil {
			return err
		}
		if err := link.AddAddr(podman1.bridge, podman1.gateway()); err != nil {
			return err
		}
		for _, key := range []string{ipForward,
			"net.ipv4.conf." + podman1.bridge + ".route_localnet"} {
			if err := sysctl.Set(key, "1"); err != nil {
				return err
			}
		}
		return nft.Apply(netavarkRules(podman1.subnet))
	})
}

// netavarkRules returns the rules of netavark 1.14.0 (nftables) that packets through its network
// traverse, with counters added. The table's family is inet.
func netavarkRules(subnet netip.Prefix) []nft.Chain {
	return []nft.Chain{
		{Table: "filter", Name: "NETAVARK-ISOLATION-1"},
		{Table: "filter", Name: "FORWARD", Hook: nft.Forward, Rules: []nft.Rule{
			rule(nft.Drop(), nft.Invalid()),
			rule(nft.Jump("NETAVARK-ISOLATION-1")),
			rule(nft.Accept(), nft.Dst(subnet), nft.Established()),
			rule(nft.Accept(), nft.Src(subnet))}},
		{Table: "nat", Name: netavark, Rules: []nft.Rule{
			rule(nft.Accept(), nft.Dst(subnet)),
			tagged(tagMasq, nft.Masquerade(),
				nft.NotDst(netip.MustParsePrefix("224.0.0.0/4")))}},
		{Table: "nat", Name: "POSTROUTING", Hook: nft.Postrouting, Rules: []nft.Rule{
			rule(nft.Jump(netavark), nft.Src(subnet))}},
	}
}

// startRootlessPort starts one rootlessport for each container, as Podman does.
func (s *site) startRootlessPort(c *container, port uint16) (hop path.Hop, err error) {
	file, err := rootless.Find(rootless.RootlessPort)
	if err != nil {
		return hop, err
	}
	var ports []rootless.Port
	for _, p := range s.ports(c.addr.Addr(), port) {
		ports = append(ports, rootless.Port{Host: p.port, Container: p.to.Port(),
			UDP: s.path.Spec.UDP})
	}
	var target *os.File
	err = c.ns.Do(func() (err error) { target, err = os.Open("/proc/thread-self/ns/net"); return err })
	if err != nil {
		return hop, err
	}
	defer target.Close()
	exit, open, err := os.Pipe()
	if err != nil {
		return hop, err
	}
	defer exit.Close()
	s.path.Undo.Push("close a pipe", open.Close)
	r, ready, err := os.Pipe()
	if err != nil {
		return hop, err
	}
	defer r.Close()
	defer ready.Close()
	cmd, stderr := marked(self, kitArg, file)
	cmd.Stdin, err = rootless.PortConfig(ports, s.path.Spec.Anywhere(), c.addr.Addr())
	if err != nil {
		return hop, err
	}
	cmd.Stdout, cmd.ExtraFiles = stderr, []*os.File{exit, ready, target}
	cmd.SysProcAttr = rootless.Apart()
	if err := s.run(s.a.ns, cmd); err != nil {
		return hop, err
	}
	ready.Close()
	if err := r.SetReadDeadline(time.Now().Add(relayReadyTimeout)); err != nil {
		return hop, err
	}
	if _, err := io.ReadFull(r, make([]byte, 1)); err != nil {
		return hop, stderr.Explain(fmt.Errorf("start %s: %w", file, err))
	}
	return local.RelayHop(s.path, mode.HopRootlessPort, local.Proxy{Space: s.a.ns, Dials: c.ns,
		PID: cmd.Process.Pid, Listens: port, Target: netip.AddrPortFrom(c.addr.Addr(), serverPort)},
		rootless.Named(rootless.RootlessPort, file), s.a.name), nil
}
