package lab

import (
	"net/netip"
	"os/exec"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/paths/rootless"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

const engineName = "the rootless engine's network"

// dockersKit has the options of dockerd-rootless.sh of Docker Engine 28.5.2.
var dockersKit = rootless.Kit{Net: rootless.Slirp4netns, Ports: "builtin", MTU: 65520}

func tryKit() error {
	for _, p := range []string{rootless.RootlessKit, rootless.Slirp4netns, "ip", "nsenter"} {
		if _, err := rootless.Find(p); err != nil {
			return err
		}
	}
	return rootless.CheckTun()
}

func tryGvisor() error {
	if err := tryKit(); err != nil {
		return err
	}
	file, err := rootless.Find(rootless.RootlessKit)
	if err != nil {
		return err
	}
	return rootless.CheckDriver(file, rootless.Gvisor)
}

// startKit starts RootlessKit on machine A with the path's published ports and makes RootlessKit's
// network the engine's. to is the address in that network that RootlessKit dials.
func (s *site) startKit(k rootless.Kit, to netip.Addr) (r *rootless.Running, file string,
	err error) {
	if file, err = rootless.Find(rootless.RootlessKit); err != nil {
		return nil, "", err
	}
	k.UDP = s.path.Spec.UDP
	for i := range s.serverSeats() {
		for _, p := range s.ports(none, uint16(publishedPort+i)) {
			k.Published = append(k.Published, rootless.Published{
				At: netip.AddrPortFrom(s.path.Spec.Anywhere(), p.port),
				To: netip.AddrPortFrom(to, p.port)})
		}
	}
	r, ns, err := s.runKit(file, k)
	if err != nil {
		return nil, "", err
	}
	s.engine = &hostMachine{name: engineName, ns: ns}
	s.more = append(s.more, spot{ns, engineName})
	return r, file, nil
}

func (s *site) runKit(file string, k rootless.Kit) (*rootless.Running, *space, error) {
	if err := s.a.ns.step(); err != nil {
		return nil, nil, err
	}
	r, err := k.Start(s.a.ns.NS, func() (*exec.Cmd, *local.Tail) {
		return marked(self, append([]string{kitArg}, k.Args(file)...)...)
	})
	if err != nil {
		return nil, nil, err
	}
	s.path.Undo.Push("stop "+rootless.RootlessKit, r.Close)
	ns, err := r.Network()
	if err != nil {
		return nil, nil, err
	}
	s.path.Undo.Push("close RootlessKit's network", ns.Close)
	out := &space{NS: ns, before: s.lab.test.before}
	return r, out, out.Do(s.lab.setCongestion)
}

// kitHop starts RootlessKit as dockerd-rootless.sh does. transparent means that RootlessKit
// connects to the server from the client's address, unless that is a loopback address. It never
// sends datagrams from the client's address.
func (s *site) kitHop() (hop path.Hop, transparent bool, err error) {
	r, file, err := s.startKit(dockersKit, s.path.Spec.Loopback())
	if err != nil {
		return hop, false, err
	}
	if transparent = rootless.Transparent(file) && !s.path.Spec.UDP; transparent && s.path.Spec.To == mode.ToAddress {
		err = s.firstClient()
	}
	return local.RelayHop(s.path, mode.HopRootlessKit,
		local.Proxy{Space: s.a.ns, Dials: s.engine.ns, PID: r.PID},
		rootless.Named(rootless.RootlessKit, file), s.a.name), transparent, err
}

// firstClient makes a connection so that RootlessKit 3 installs its rules and routes for clients'
// addresses. RootlessKit does so for the first client whose address is not a loopback one.
func (s *site) firstClient() error {
	_, err := local.ConnectOnce(s.a.ns, s.engine.ns,
		netip.AddrPortFrom(s.a.addr.Addr(), publishedPort),
		netip.AddrPortFrom(loopback, publishedPort), relayReadyTimeout)
	return err
}

func (s *site) tapHop() path.Hop {
	return path.Hop{Kind: mode.HopTap, Name: rootless.Tap, Where: s.engine.name,
		Read: local.Device(s.engine.ns, rootless.Tap, !s.path.Spec.To.Outside())}
}

func (s *site) rootlessPublish() error {
	if s.path.Spec.To.Outside() {
		return s.rootlessOut()
	}
	kit, _, err := s.kitHop()
	if err != nil {
		return err
	}
	if err := s.relayed(daemon{rootless: loopback}); err != nil {
		return err
	}
	s.path.Facts["proxy"] = kit.Name + ", then " + s.path.Facts["proxy"]
	s.Give(mode.HopRootlessKit, kit)
	s.path.Guards = append(s.path.Guards, local.Unused(s.tapHop()))
	return nil
}

// rootlessPublishNAT builds the path without docker-proxy. In the engine's network, RootlessKit 3's
// connections come from the client's address, and no rule rewrites it, unless it is a loopback one.
func (s *site) rootlessPublishNAT() error {
	if s.path.Spec.To.Outside() {
		return s.rootlessOut()
	}
	kit, transparent, err := s.kitHop()
	if err != nil {
		return err
	}
	if err := s.dockerServers(daemon{noProxy: true, rootless: loopback}, true); err != nil {
		return err
	}
	s.dialPublished()
	p := s.path
	s.arriving()
	s.Give(mode.HopRootlessKit, kit)
	if transparent && p.Spec.To != mode.ToLoopback {
		s.preserved = true
		p.Guards = append(p.Guards, s.ruleHop(s.engine, mode.HopSNAT, "nat", "POSTROUTING",
			s.homeTag(tagLocalMasq), path.Untouched))
	}
	p.Guards = append(p.Guards, local.Unused(s.tapHop()),
		local.Unused(s.loHop(s.engine.ns, s.engine.name)))
	return nil
}

// rootlessPublishTap publishes ports with RootlessKit's port driver slirp4netns. docker-proxy also
// listens behind the tap, but rules get the packets first.
func (s *site) rootlessPublishTap() error {
	if s.path.Spec.To.Outside() {
		return s.rootlessOut()
	}
	k, child := dockersKit, rootless.SlirpAddr.Addr()
	k.Ports = rootless.Slirp4netns
	r, _, err := s.startKit(k, child)
	if err != nil {
		return err
	}
	if err := s.dockerServers(daemon{rootless: child}, true); err != nil {
		return err
	}
	s.dialPublished()
	p := s.path
	slirp, name, err := s.slirp(r)
	if err != nil {
		return err
	}
	slirp.Others = true
	if p.Spec.Second {
		slirp.Second = secondPort
	}
	slirps := local.PortHops(p, mode.HopSlirp, slirp, name, s.a.name,
		func(r *local.Proxy, i int) { r.Tap, r.Listens = s.Servers[i].ns, s.Dial[i].Port() })
	s.arriving()
	s.Give(mode.HopSlirp, slirps...)
	s.Give(mode.HopTap, s.tapHop())
	p.Guards = append(p.Guards, local.Unused(s.loHop(s.engine.ns, s.engine.name)))
	return s.tellSource()
}

// arriving places the clients of published ports, which are processes.
func (s *site) arriving() {
	if s.path.Spec.From != mode.FromRemote {
		s.PlaceClients(on(s.a))
		return
	}
	s.path.Guards = append(s.path.Guards, local.Unused(s.loHop(s.a.ns, s.a.name)))
	s.PlaceClients(on(s.b))
}

func (s *site) rootlessOut() error {
	r, _, err := s.startKit(dockersKit, s.path.Spec.Loopback())
	if err != nil {
		return err
	}
	if err := s.dockerServers(daemon{rootless: loopback}, false); err != nil {
		return err
	}
	if err := s.dockerClients(daemon{}); err != nil {
		return err
	}
	slirp, name, err := s.slirp(r)
	if err != nil {
		return err
	}
	slirp.Outward = true
	p := s.path
	s.Give(mode.HopTap, s.tapHop())
	s.Give(mode.HopSlirp, local.RelayHop(p, mode.HopSlirp, slirp, name, s.a.name))
	p.Guards = append(p.Guards, local.Unused(s.loHop(s.a.ns, s.a.name)),
		local.Unused(s.loHop(s.engine.ns, s.engine.name)))
	return nil
}

// slirp returns the slirp4netns that RootlessKit started, and its name with the version.
func (s *site) slirp(r *rootless.Running) (p local.Proxy, name string, err error) {
	p = local.Proxy{Space: s.a.ns, Frames: s.tapHop().Read}
	if p.PID, err = r.Driver(rootless.Slirp4netns); err != nil {
		return p, "", err
	}
	file, err := rootless.Find(rootless.Slirp4netns)
	if err != nil {
		return p, "", err
	}
	return p, rootless.Named(rootless.Slirp4netns, file), nil
}

// gvisor starts a RootlessKit with gvisor-tap-vsock for each container. podman machine has one for
// each virtual machine.
func (s *site) gvisor() error {
	return s.behindTap(tapHolder{
		program: rootless.RootlessKit,
		kind:    mode.HopGvisor,
		device:  rootless.Tap,
		start:   (*site).startGvisor,
	})
}

// startGvisor replaces the container's network namespace with RootlessKit's. The MTU is the
// driver's default.
func (s *site) startGvisor(file string, c *container, ports []rootless.Port) (pid int, err error) {
	const mtu = 1500
	k := rootless.Kit{Net: rootless.Gvisor, Ports: rootless.Gvisor, MTU: mtu, UDP: s.path.Spec.UDP}
	c.addr = rootless.SlirpAddr
	for _, p := range ports {
		k.Published = append(k.Published, rootless.Published{
			At: netip.AddrPortFrom(anyAddr, p.Host),
			To: netip.AddrPortFrom(c.addr.Addr(), p.Container)})
	}
	r, ns, err := s.runKit(file, k)
	if err != nil {
		return 0, err
	}
	c.ns = ns
	return r.PID, nil
}
