package lab

import (
	"fmt"
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
)

var resolver = netip.AddrFrom4([4]byte{127, 0, 0, 11})

// Docker's DNS server listens on random ports. These are examples.
const (
	resolverTCP = 35407
	resolverUDP = 34009
)

// resolves adds Docker's NAT rules for DNS queries to the container. Docker has them in containers
// on all networks but the default one (Docker Engine 20.10.24 to 29.8). Because of them the kernel
// tracks each connection in the container.
func (c *container) resolves() error {
	self := single(resolver)
	err := c.ns.Do(func() error {
		return nft.Apply([]nft.Chain{
			{Table: "nat", Name: "DOCKER_OUTPUT", Rules: []nft.Rule{
				rule(nft.DNAT(netip.AddrPortFrom(resolver, resolverTCP)), nft.Dst(self),
					nft.TCPDport(53)),
				rule(nft.DNAT(netip.AddrPortFrom(resolver, resolverUDP)), nft.Dst(self),
					nft.UDPDport(53))}},
			{Table: "nat", Name: "OUTPUT", Hook: nft.Output, Rules: []nft.Rule{
				rule(nft.Jump("DOCKER_OUTPUT"), nft.Dst(self))}},
			{Table: "nat", Name: "DOCKER_POSTROUTING", Rules: []nft.Rule{
				rule(nft.SNATPort(53), nft.Src(self), nft.TCPSport(resolverTCP)),
				rule(nft.SNATPort(53), nft.Src(self), nft.UDPSport(resolverUDP))}},
			{Table: "nat", Name: "POSTROUTING", Hook: nft.Postrouting, Rules: []nft.Rule{
				rule(nft.Jump("DOCKER_POSTROUTING"), nft.Dst(self))}},
		})
	})
	if err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	return nil
}
