package docker

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/moby/moby/api/types/swarm"
	"github.com/prometheus/procfs"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// Names in an overlay network's namespace (libnetwork/drivers/overlay, Docker Engine 20.10 to
// 28.5).
const (
	overlayBridge = "br0"
	overlayWhere  = "overlay on " + thisMachine

	gatewayNetwork = "docker_gwbridge" // the way out of containers on overlay networks
)

// overlay uses an overlay network. Its bridge and the outer ends of veth pairs are in a namespace
// of dockerd's that no API names.
func (s *site) overlay() error {
	s.ownRules()
	s.path.Facts["network"] = "an attachable overlay network of the swarm"
	n, err := s.addNetwork("overlay", nil)
	if err != nil {
		return err
	}
	if s.path.Spec.To.Outside() {
		return s.outOfOverlay(n)
	}
	n.bridge, n.where = overlayBridge, overlayWhere
	s.network = n
	var ns *netns.NS
	s.attach = func(b *box) error {
		if ns == nil { // the namespace is made with the first container
			if ns, err = s.enterOverlay(n.id); err != nil {
				return err
			}
		}
		b.portNS = ns
		// The container also has a device on docker_gwbridge.
		if b.device, _, err = deviceIn(b, single(b.addr)); err != nil {
			return err
		}
		return s.findPort(b)
	}
	if err := s.addServers(s.plain); err != nil {
		return err
	}
	if err := s.addClients(func(int) wanted { return wanted{network: n.name} }); err != nil {
		return err
	}
	return s.guardTunnel(ns)
}

// outOfOverlay places the ends of a path to the outside, which begins at the containers' second
// device.
func (s *site) outOfOverlay(n *bridgeNet) error {
	err := s.serveOutside()
	if err != nil {
		return err
	}
	if s.network, err = s.engine.network(s.ctx, gatewayNetwork); err != nil {
		return err
	}
	if err := s.rewritten(); err != nil {
		return err
	}
	s.attach = func(b *box) error {
		own, _, err := deviceIn(b, single(b.addr))
		if err != nil {
			return err
		}
		s.path.Guards = append(s.path.Guards,
			local.Unused(local.ContainerHop(mode.HopVeth, b.ns, b.what, own, "", false)))
		if b.device, b.addr, err = deviceIn(b, s.network.subnet); err != nil {
			return err
		}
		return s.findPort(b)
	}
	if err := s.addClients(func(int) wanted { return wanted{network: n.name} }); err != nil {
		return err
	}
	ns, err := s.enterOverlay(n.id)
	if err != nil {
		return err
	}
	return s.guardTunnel(ns)
}

func (s *site) enterOverlay(id string) (*netns.NS, error) {
	file, err := overlayFile(id)
	if err != nil {
		return nil, err
	}
	ns, err := netns.Join(file)
	if err != nil {
		return nil, err
	}
	s.path.Undo.Push("leave the overlay network", ns.Close)
	return ns, nil
}

// overlayFile returns the path of an overlay network's namespace among the mounts of the dockerd in
// this network namespace.
func overlayFile(id string) (string, error) {
	const length = 12 // the number of starts here, and the network's id
	name := ("1-" + id)[:min(length, len(id)+2)]
	own, err := netns.ID(os.Getpid())
	if err != nil {
		return "", err
	}
	all, err := procfs.AllProcs()
	if err != nil {
		return "", fmt.Errorf("look for dockerd: %w", err)
	}
	for _, p := range all {
		if comm, err := p.Comm(); err != nil || comm != "dockerd" {
			continue
		}
		if its, err := netns.ID(p.PID); err != nil || its != own { // in tests, another machine's dockerd
			continue
		}
		mounts, err := procfs.GetProcMounts(p.PID)
		if err != nil {
			continue
		}
		for _, m := range mounts {
			if m.FSType == "nsfs" && strings.HasSuffix(m.MountPoint, "/netns/"+name) {
				return filepath.Join("/proc", strconv.Itoa(p.PID), "root", m.MountPoint), nil
			}
		}
	}
	return "", &machine.UnsupportedError{Missing: "the overlay network's namespace (" + name +
		") is not mounted by a dockerd that toll sees",
		Remedy: "run toll outside containers; --on lab needs none"}
}

// deviceIn returns the container's device with an address in the network, and the address.
func deviceIn(b *box, network netip.Prefix) (name string, addr netip.Addr, err error) {
	err = b.ns.Do(func() error {
		all, err := link.Survey()
		for _, d := range all {
			for _, p := range d.Addrs {
				if network.Contains(p.Addr()) {
					name, addr = d.Name, p.Addr()
				}
			}
		}
		return err
	})
	if err == nil && name == "" {
		err = fmt.Errorf("%s has no device in %s", b.what, network)
	}
	return name, addr, err
}

func (s *site) guardTunnel(ns *netns.NS) error {
	return ns.Do(func() error {
		names, err := link.Names()
		if err != nil {
			return err
		}
		for _, n := range names {
			info, err := link.Describe(n)
			if err != nil {
				return err
			}
			if info.Kind == "vxlan" {
				s.path.Guards = append(s.path.Guards,
					local.Unused(path.Hop{Kind: mode.HopVXLAN, Name: n, Where: overlayWhere,
						Read: local.Device(ns, n, true)}))
				return nil
			}
		}
		return fmt.Errorf("the overlay network has no VXLAN device, but %v", names)
	})
}

func (e *engine) checkSwarm() error {
	switch u := dockerapi.InSwarm(e.Info.Swarm); {
	case u != nil:
		return u
	case e.Info.Swarm.LocalNodeState != swarm.LocalNodeStateActive:
		return &machine.UnsupportedError{
			Missing: "overlay networks need a swarm, and this Docker is not in one",
			Remedy:  "docker swarm init, or --on lab"}
	case !e.Info.Swarm.ControlAvailable:
		return &machine.UnsupportedError{
			Missing: "this Docker is a worker of its swarm, and only managers make networks",
			Remedy:  "docker node promote, on a manager; or --on lab"}
	}
	return nil
}
