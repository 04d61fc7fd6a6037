package docker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

const (
	bridgeNF6     = "net.bridge.bridge-nf-call-ip6tables"
	routed6Option = "com.docker.network.bridge.gateway_mode_ipv6"
)

// dual reports whether IPv6 was requested, or the engine added it to a published container's
// network.
func (s *site) dual() bool {
	spec := s.path.Spec
	byItself := (spec.Mode == mode.Publish || spec.Mode == mode.PublishDefault) &&
		spec.To == mode.ToAddress6 &&
		s.network != nil && s.network.subnet6.IsValid()
	return recipe.Dual(spec) || byItself
}

func (s *site) six() bool { return s.dual() }

func (e *engine) checkIPv6(s path.Spec) error {
	if !s.To.Six() {
		return nil
	}
	if r := e.recipe(s.Mode); r.no6 != nil {
		return r.no6
	}
	var on bool
	if err := e.ns.Do(func() (err error) {
		on, err = link.HasAddr("lo", loopback6)
		return err
	}); err != nil || on {
		return err
	}
	return &machine.UnsupportedError{Missing: "IPv6 is off on this machine, which has no ::1",
		Remedy: remedy.AsRoot("sysctl -w net.ipv6.conf.all.disable_ipv6=0 "+
			"net.ipv6.conf.default.disable_ipv6=0") + ", a kernel that was booted without ipv6.disable=1, or -4"}
}

// checkRules6 returns an error if the engine writes no IPv6 rules, the default before Docker Engine
// 27.
func (e *engine) checkRules6(s path.Spec) error {
	if e.Podman != nil || !recipe.Dual(s) {
		return nil
	}
	switch s.Mode {
	case mode.PublishNAT, mode.Routed:
	case mode.Bridge, mode.BridgeDefault:
		if !s.To.Outside() {
			return nil
		}
	default:
		return nil
	}
	const byDefault = 27
	var err error
	if e.native() {
		err = e.nativeRules6()
	} else {
		err = e.ns.Do(savedRules6)
	}
	if !errors.Is(err, errNoRule) {
		return err
	}
	remedy := `"ip6tables": true in /etc/docker/daemon.json and a restart of docker`
	if e.Major() < byDefault {
		remedy = `"experimental": true and "ip6tables": true in /etc/docker/daemon.json and a restart of docker, or Docker Engine 27`
	}
	return &machine.UnsupportedError{Missing: e.Version() +
		` writes no rules for IPv6 here ("ip6tables")`, Remedy: remedy}
}

// savedRules6 returns an error if Docker's chain for IPv6 does not exist. The daemon makes it when
// it starts. (20.10 jumps to it once a network has IPv6.)
func savedRules6() error {
	for _, p := range savers6 {
		if text, err := saved(p, "nat"); err == nil && strings.Contains(text, "\n:DOCKER ") {
			return nil
		}
	}
	return errNoRule
}

func (e *engine) defaultIPv6(ctx context.Context) error {
	n, err := e.network(ctx, defaultNetwork)
	if err != nil || n.subnet6.IsValid() {
		return err
	}
	return &machine.UnsupportedError{Missing: "this Docker's default network has no IPv6",
		Remedy: `"ipv6": true and "fixed-cidr-v6": "fd00:d0c::/64" in /etc/docker/daemon.json and a restart of docker; or bridge, whose network toll makes`}
}

// withIPv6 requests IPv6 with a random unique local subnet (RFC 4193), because engines before 27
// choose none.
func withIPv6(o *client.NetworkCreateOptions) error {
	var b [16]byte
	if _, err := rand.Read(b[:6]); err != nil {
		return err
	}
	b[0] = 0xfd
	on := true
	o.EnableIPv6 = &on
	if o.IPAM == nil {
		o.IPAM = &network.IPAM{Driver: "default"}
	}
	o.IPAM.Config = append(o.IPAM.Config, network.IPAMConfig{
		Subnet: netip.PrefixFrom(netip.AddrFrom16(b), 64)})
	return nil
}

// settled waits until the kernel has checked the devices' IPv6 addresses for duplicates. During the
// check, bridges do not resolve neighbours, and containers drop what pasta sends to the address.
func (s *site) settled() error {
	if !s.path.Spec.To.Six() {
		return nil
	}
	type device struct {
		ns   *netns.NS
		name string
	}
	var all []device
	for _, name := range s.bridges {
		all = append(all, device{s.engine.ns, name})
	}
	for _, boxes := range [][]*box{s.Servers, s.Clients} {
		for _, b := range boxes {
			if !b.shares && b.device != "" {
				all = append(all, device{b.ns, b.device})
			}
		}
	}
	const (
		most  = 10 * time.Second // a device takes 2 s
		again = 20 * time.Millisecond
	)
	for deadline := time.Now().Add(most); len(all) > 0; {
		var asking bool
		if err := all[0].ns.Do(func() (err error) {
			asking, err = link.Tentative(all[0].name)
			return err
		}); err != nil {
			return err
		}
		switch {
		case !asking:
			all = all[1:]
			continue
		case time.Now().After(deadline):
			return fmt.Errorf(
				"wait for the IPv6 address of %s: duplicate address detection has not finished",
				all[0].name)
		}
		select {
		case <-s.ctx.Done():
			return s.ctx.Err()
		case <-time.After(again):
		}
	}
	return nil
}

// ask6 records that a mode will have paths over IPv6. A card has only one network, so the network
// that is made for a path over IPv4 must have IPv6 as well.
func (e *engine) ask6(s path.Spec) {
	if !s.To.Six() {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.asked6 == nil {
		e.asked6 = map[mode.Name]bool{}
	}
	e.asked6[s.Mode] = true
}

func (e *engine) wants6(m mode.Name) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.asked6[m]
}
