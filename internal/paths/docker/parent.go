package docker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/undo"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

func (s *site) subInterfaces() error {
	driver, kind := driverOf(s.path.Spec.Mode)
	s.path.Facts["parent"] = s.engine.docker.Parent
	s.path.Facts["network"] = "a user-defined " + driver +
		" network of toll's, as by " + s.engine.words().command + " network create"
	if s.dual() {
		s.path.Facts["network"] += " --ipv6"
	}
	n, err := s.onParent(driver, map[string]string{
		"parent": s.engine.docker.Parent, driver + "_mode": kind})
	if err != nil {
		return err
	}
	s.network, s.kind = n, mode.HopKind(driver)
	if s.path.Spec.To.Outside() {
		return s.outOfCard()
	}
	if err := s.addServers(s.plain); err != nil {
		return err
	}
	if r := s.remote(); r != nil {
		return s.placeRemote(r, &Segment{
			Driver: driver, Kind: kind, Subnet: n.subnet,
			Client: opposite(n.subnet, s.Dial[0].Addr())})
	}
	if err := s.addClients(func(int) wanted { return wanted{network: n.name} }); err != nil {
		return err
	}
	if err := s.addressed(slices.Concat(s.Servers, s.Clients)); err != nil {
		return err
	}
	if s.path.Spec.Mode == mode.MacvlanVEPA {
		s.path.Facts["switch"] = "the one behind " + s.engine.docker.Parent + " reflects frames"
		s.Give(mode.HopWire, s.reflectedHop())
	}
	return nil
}

// outOfCard places the ends of a path from sub-interfaces to the other machine. That machine has
// no address in the clients' network, so it gets routes to the clients. The clients get routes to
// it, except in ipvlan's routed modes.
func (s *site) outOfCard() error {
	if err := s.serveOutside(); err != nil {
		return err
	}
	if err := s.addClients(func(int) wanted { return wanted{network: s.network.name} }); err != nil {
		return err
	}
	if err := s.addressed(s.Clients); err != nil {
		return err
	}
	_, direct := ByRoute(s.path.Spec)
	for _, c := range s.Clients {
		err := s.engine.docker.Remote.Route(s.ctx, s.path, single(c.Addr()), direct)
		if err == nil && direct {
			err = c.ns.Do(link.Laid{To: single(s.Dial[0].Addr()), Device: c.device}.Lay)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.what, err)
		}
	}
	return nil
}

// onParent returns the card's network. Docker allows one network for each card, so paths share it
// until the last one is closed.
func (s *site) onParent(driver string, options map[string]string) (*bridgeNet, error) {
	e := s.engine
	e.sharing.Lock()
	defer e.sharing.Unlock()
	name := driver + "-" + options[driver+"_mode"]
	if e.shared == nil {
		e.shared = map[string]*sharedNet{}
	}
	n := e.shared[name]
	if n == nil {
		for other := range e.shared { // nor does the kernel allow macvlan and ipvlan on one card
			return nil, &machine.UnsupportedError{Missing: fmt.Sprintf(
				"%s allows card %s one network at a time, which %s has", e.words().product,
				e.docker.Parent, other),
				Remedy: "compare the modes of one card in separate runs"}
		}
		n = &sharedNet{}
		var subnet netip.Prefix
		// With another machine a subnet is chosen that is free on both; Podman would use DHCP.
		if e.docker.Remote != nil || e.Podman != nil {
			var err error
			if subnet, err = s.freeSubnet(); err != nil {
				return nil, err
			}
		}
		if e.Podman != nil {
			options = map[string]string{"parent": options["parent"],
				"mode": options[driver+"_mode"]}
		}
		made, err := s.makeNetwork(&n.end, driver, options, subnet, e.wants6(s.path.Spec.Mode))
		if err != nil {
			return nil, errors.Join(err, n.end.Undo())
		}
		n.network = made
		e.shared[name] = n
	}
	n.paths++
	s.path.Undo.Push("leave the network of card "+e.docker.Parent, func() error {
		e.sharing.Lock()
		defer e.sharing.Unlock()
		if n.paths--; n.paths > 0 {
			return nil
		}
		delete(e.shared, name)
		return n.end.Undo()
	})
	return n.network, nil
}

// opposite returns the counterpart of a in the upper half of the network, which is free because
// Docker assigns addresses from the lower half.
func opposite(in netip.Prefix, a netip.Addr) netip.Addr {
	b := a.As4()
	half := uint32(1) << (31 - in.Bits())
	binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])|half)
	return netip.AddrFrom4(b)
}

type sharedNet struct {
	network *bridgeNet
	paths   int
	end     undo.Stack
}

func driverOf(m mode.Name) (driver, kind string) {
	driver, kind, _ = strings.Cut(string(m), "-")
	return driver, kind
}
