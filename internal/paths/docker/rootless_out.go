package docker

import (
	"cmp"
	"fmt"
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/paths/rootless"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// A rootless engine's containers reach other machines through the tap device of the engine's
// network. A process on the machine reads the device and opens the sockets.

// driverHops maps the names of RootlessKit's network drivers to hops.
var driverHops = map[string]mode.HopKind{rootless.Slirp4netns: mode.HopSlirp,
	rootless.Pasta: mode.HopPasta, rootless.Gvisor: mode.HopGvisor}

func (e *engine) checkWayOut(s path.Spec) error {
	switch s.Mode {
	case mode.RootlessPublish, mode.RootlessPublishNAT, mode.RootlessPublishTap, mode.Host:
	default:
		return crossesTap("Docker",
			string(mode.RootlessPublish)+", whose way out is that of a container on a bridge")
	}
	switch {
	case s.Mode == mode.Host && e.hosts == e.machine:
		return nil
	case s.From == mode.FromHost:
		return &machine.UnsupportedError{
			Missing: "the host network of a rootless Docker is not the machine's",
			Remedy:  "native; or --from container"}
	case s.To.Six():
		return &machine.UnsupportedError{
			Missing: mode.NoRootlessOut6, Remedy: "--to outside"}
	}
	return e.checkWayThroughTap(s)
}

// checkWayThroughTap returns an error if toll does not find the process that holds the tap device
// of the engine's network, or cannot count what the process relays.
func (e *engine) checkWayThroughTap(s path.Spec) error {
	pid, _, err := e.driver(e.spot)
	if err == nil && s.UDP {
		err = e.checkIO(pid)
	}
	return err
}

// crossesTap refuses a mode that only engines with root have.
func crossesTap(engine, remedy string) error {
	return &machine.UnsupportedError{Remedy: remedy, Missing: "this " + engine +
		" is rootless: packets that its containers send out also cross a tap device"}
}

// driver returns the PID and name of the process that holds the tap device of a network.
func (e *engine) driver(of spot) (pid int, program string, err error) {
	if e.kit != nil && e.kit.Net == rootless.Gvisor {
		return e.kit.Kit, rootless.Gvisor, nil
	}
	id, err := of.netns()
	if err != nil {
		return 0, "", err
	}
	return rootless.HolderOf(id)
}

func (s *site) outOfEngine() error {
	if err := s.ownNetwork(); err != nil {
		return err
	}
	if err := s.onBridge(); err != nil {
		return err
	}
	return s.throughTap(s.engine.spot, rootless.Tap)
}

// outOfBridges builds the path out of a container on a bridge of a user's Podman. Published ports,
// which bypass the bridge, do not matter there.
func (s *site) outOfBridges() error {
	s.spot = s.engine.spot
	if err := s.ownNetwork(); err != nil {
		return err
	}
	if err := s.onBridge(); err != nil {
		return err
	}
	device, err := s.leavesBy()
	if err != nil {
		return err
	}
	return s.throughTap(s.spot, device)
}

// leavesBy returns the device of the engine's default route, a tap device. Its name depends on the
// driver: pasta uses the name of the machine's card.
func (s *site) leavesBy() (device string, err error) {
	var routes []link.Routed
	err = s.spot.ns.Do(func() (err error) { routes, err = link.Routes(); return err })
	for _, r := range routes {
		if r.To == netip.PrefixFrom(anyAddr, 0) {
			return r.Device, nil
		}
	}
	return "", cmp.Or(err, fmt.Errorf("%s has no default route", s.spot.name))
}

// throughTap gives the path the hops of a network's tap device and of the process that holds it.
func (s *site) throughTap(of spot, device string) error {
	pid, program, err := s.engine.driver(of)
	if err != nil {
		return err
	}
	tap := local.ContainerHop(mode.HopTap, of.ns, of.name, device, "", false)
	name := program
	if s.engine.Podman != nil {
		name = s.program(userRelay{kind: driverHops[program], program: program})
	}
	s.Give(mode.HopTap, tap)
	s.Give(driverHops[program], local.RelayHop(s.path, driverHops[program], local.Proxy{
		Space: s.at.ns, Tap: s.Clients[0].ns, Frames: tap.Read, Outward: true, PID: pid,
		Others: true, Target: s.Dial[0]}, name, s.at.name))
	return nil
}

// outByUser builds the path out of a rootless Podman container that has the tap device itself.
func (s *site) outByUser(network string) error {
	s.ownRules()
	s.path.Facts["network"] = "as by podman run --network " + network
	err := s.serveOutside()
	if err != nil {
		return err
	}
	if err := s.addClients(func(int) wanted { return wanted{network: network} }); err != nil {
		return err
	}
	c := s.Clients[0]
	if c.device, err = onlyDevice(c); err != nil {
		return err
	}
	s.path.Guards = append(s.path.Guards, local.Unused(c.loopbackHop()))
	return s.throughTap(spot{c.ns, c.what}, c.device)
}
