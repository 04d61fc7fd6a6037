package lab

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
)

const (
	ipForward6 = "net.ipv6.conf.all.forwarding"
	bridgeNF6  = "net.bridge.bridge-nf-call-ip6tables"
)

var linkLocal = netip.MustParsePrefix("fe80::/10")

// family returns the family of the rules that are hops or guards: IPv4 if Docker has no IPv6 rules.
func (s *site) family() nft.Family {
	if s.dual() {
		return nft.IPv6
	}
	return nft.IPv4
}

// dual reports whether Docker's own networks also have IPv6.
func (s *site) dual() bool { return recipe.Dual(s.path.Spec) && !s.beside }

// settle disables duplicate address detection and router solicitation. Otherwise they would happen
// during a window, and a bridge could not resolve neighbours until its own address is checked.
func settle() error {
	for _, key := range []string{"accept_dad", "router_solicitations"} {
		if err := sysctl.Set("net.ipv6.conf.default."+key, "0"); err != nil {
			return err
		}
	}
	return nil
}

// discovery disables IPv6 in a container unless the path uses it, as Docker does on networks
// without IPv6.
func discovery(s path.Spec) error {
	const key = "net.ipv6.conf." + inside + ".disable_ipv6"
	// The kernel has no IPv6, or the path uses it.
	if _, err := sysctl.Get(key); err != nil || recipe.Dual(s) {
		return nil
	}
	return sysctl.Set(key, "1")
}

func (c *container) alsoSix(addr netip.Prefix, gateway netip.Addr) error {
	if !recipe.Dual(c.site.path.Spec) {
		return nil
	}
	c.addr6 = addr
	err := c.ns.Do(func() error {
		if err := link.AddAddr(inside, addr); err != nil || !gateway.IsValid() {
			return err
		}
		return link.AddDefaultRoute(gateway)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	return nil
}

func bridge6(n network) error {
	if err := sysctl.Set("net.ipv6.conf."+n.bridge+".accept_ra", "0"); err != nil {
		return err
	}
	if err := link.AddAddr(n.bridge, n.nth6(machineA)); err != nil {
		return err
	}
	return sysctl.Set(ipForward6, "1")
}

// six returns the daemon whose rules are the IPv6 ones. Docker sets the policy of the IPv6 chain
// FORWARD only if a network has IPv6.
func (d daemon) six() daemon {
	d.family, d.links = nft.IPv6, nil
	of := d.networks
	d.networks = nil
	for _, n := range of {
		if n.ipv6 {
			d.networks = append(d.networks, n.six())
		}
	}
	if len(d.all()) == 0 {
		d.foreign = nil
	}
	return d
}

func (n dockerNet) six() dockerNet {
	n.published, n.containers = slices.Clone(n.published), slices.Clone(n.containers)
	for i, p := range n.published {
		n.published[i].to = netip.AddrPortFrom(n.like6(p.to.Addr()), p.to.Port())
	}
	for i, c := range n.containers {
		n.containers[i] = single(n.like6(c.Addr()))
	}
	n.subnet = n.subnet6
	return n
}
