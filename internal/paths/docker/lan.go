package docker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/moby/moby/client"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/undo"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// pipework puts veth pairs on a bridge that is not Docker's, as jpetazzo/pipework (at 9ba97f1)
// does. The card is not added: without its address the machine would lose its network.
func (s *site) pipework() error {
	l, err := s.addLAN(func(name string, end *undo.Stack) error {
		return s.addLink(name, end, func() error { return link.AddBridge(name) })
	})
	if err != nil {
		return err
	}
	s.attach = func(b *box) error {
		return s.plug(b, l, func() error {
			return s.engine.ns.Do(func() error { return link.SetMaster(b.port, l.bridge) })
		})
	}
	s.ownRules()
	if s.path.Spec.From == mode.FromContainer {
		if err := s.letThrough(l.bridge); err != nil {
			return err
		}
	}
	return s.onLAN()
}

// lan is a switch to which the machine is connected.
type lan struct {
	bridge string
	subnet netip.Prefix
	used   int // addresses given out; the first is the machine's
}

func (l *lan) take() (netip.Prefix, error) {
	l.used++
	a := l.subnet.Masked().Addr().As4()
	n := binary.BigEndian.Uint32(a[:]) + uint32(l.used)
	binary.BigEndian.PutUint32(a[:], n)
	next := netip.AddrFrom4(a)
	if last := 1<<(32-l.subnet.Bits()) - 1; l.used >= last { // the last is the broadcast address
		return netip.Prefix{}, fmt.Errorf("%s has no more addresses", l.subnet)
	}
	return netip.PrefixFrom(next, l.subnet.Bits()), nil
}

func (s *site) addLAN(bridge func(name string, end *undo.Stack) error) (*lan, error) {
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	e := s.engine
	e.laying.Lock() // concurrent builds would choose the same network
	defer e.laying.Unlock()
	subnet, err := s.freeSubnet()
	if err != nil {
		return nil, err
	}
	l := &lan{bridge: deviceName + dockerapi.NewID(), subnet: subnet}
	if err := bridge(l.bridge, &s.path.Undo); err != nil {
		return nil, err
	}
	addr, err := l.take()
	if err != nil {
		return nil, err
	}
	s.network = &bridgeNet{bridge: l.bridge, subnet: subnet}
	s.path.Facts["network"] = "a switch of toll's own next to " +
		s.engine.words().product + "'s networks, without a network card"
	return l, e.ns.Do(func() error {
		return errors.Join(link.AddAddr(l.bridge, addr), link.Up(l.bridge))
	})
}

// onLAN places the ends on a switch of toll's.
func (s *site) onLAN() error {
	alone := func(int) (wanted, error) { return wanted{network: "none"}, nil }
	if err := s.addServers(alone); err != nil {
		return err
	}
	return s.placeClients(func() error {
		s.path.Guards = append(s.path.Guards, local.Unused(s.bridgeHop(s.network, true)))
		return s.addClients(func(int) wanted { return wanted{network: "none"} })
	})
}

// plug gives the container a veth pair. join adds the outer end to the switch.
func (s *site) plug(b *box, l *lan, join func() error) error {
	addr, err := l.take()
	if err != nil {
		return err
	}
	tid, err := b.ns.TID()
	if err != nil {
		return err
	}
	b.port = deviceName + dockerapi.NewID()
	if err := s.addLink(b.port, &s.path.Undo, func() error {
		return link.AddVeth(b.port, b.device, tid)
	}); err != nil {
		return err
	}
	if err := join(); err != nil {
		return err
	}
	if err := s.engine.ns.Do(func() error { return link.Up(b.port) }); err != nil {
		return err
	}
	b.addr = addr.Addr()
	return b.ns.Do(func() error {
		return errors.Join(link.AddAddr(b.device, addr), link.Up(b.device))
	})
}

const deviceName = "toll"

// addLink adds a device and writes its name to the journal first, because the device is made in one
// call and marked in another.
func (s *site) addLink(name string, end *undo.Stack, add func() error) error {
	e := s.engine
	if err := e.Journal.Add(dockerapi.Link, name); err != nil {
		return err
	}
	end.Push("remove link "+name, func() error {
		err := e.ns.Do(func() error { return link.Remove(name) })
		if err == nil {
			e.Journal.Gone(dockerapi.Link, name)
		}
		return err
	})
	return e.ns.Do(func() error {
		if err := add(); err != nil {
			return err
		}
		return link.SetAlias(name, tagOf(e.Mark))
	})
}

const lanBits = 22

// lanRanges lists the range for benchmarks (RFC 2544) and a private one.
var lanRanges = []netip.Prefix{netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("10.0.0.0/8")}

// freeSubnet returns a network that neither the machine's routes nor Docker's networks use.
func (s *site) freeSubnet() (netip.Prefix, error) {
	var used []netip.Prefix
	err := s.engine.ns.Do(func() (err error) { used, err = link.Used(); return err })
	if err != nil {
		return netip.Prefix{}, err
	}
	networks, err := s.engine.API.NetworkList(s.ctx, client.NetworkListOptions{})
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("list networks: %w", err)
	}
	for _, n := range networks.Items {
		for _, c := range n.IPAM.Config {
			used = append(used, c.Subnet)
		}
	}
	for _, in := range lanRanges {
		if p, ok := freeIn(in, used, rand.IntN); ok {
			return p, nil
		}
	}
	return netip.Prefix{}, &machine.UnsupportedError{
		Missing: "no network is free: this machine has routes to all of 198.18.0.0/15 and 10.0.0.0/8",
		Remedy:  "--on lab"}
}

func freeIn(in netip.Prefix, used []netip.Prefix, intN func(int) int) (netip.Prefix, bool) {
	n := 1 << (lanBits - in.Bits())
	base := in.Masked().Addr().As4()
	for i, first := 0, intN(n); i < n; i++ {
		var a [4]byte
		binary.BigEndian.PutUint32(a[:], binary.BigEndian.Uint32(base[:])+uint32((first+i)%n)<<(32-lanBits))
		p := netip.PrefixFrom(netip.AddrFrom4(a), lanBits)
		if !slices.ContainsFunc(used, p.Overlaps) {
			return p, true
		}
	}
	return netip.Prefix{}, false
}
