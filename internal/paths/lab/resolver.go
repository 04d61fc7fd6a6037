package lab

import (
	"fmt"
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
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
	rules := dnsRules()
	if c.site.rules() == mode.NFTables {
		rules = nftDNSRules()
	}
	if err := c.ns.Do(func() error { return nft.Apply(rules) }); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	return nil
}

func dnsRules() []nft.Chain {
	self := single(resolver)
	return []nft.Chain{
		{Table: "nat", Name: "DOCKER_OUTPUT", Rules: []nft.Rule{
			rule(dnsTo(resolverTCP), nft.Dst(self), nft.TCPDport(53)),
			rule(dnsTo(resolverUDP), nft.Dst(self), nft.UDPDport(53))}},
		{Table: "nat", Name: "OUTPUT", Hook: nft.Output, Rules: []nft.Rule{
			rule(nft.Jump("DOCKER_OUTPUT"), nft.Dst(self))}},
		{Table: "nat", Name: "DOCKER_POSTROUTING", Rules: []nft.Rule{
			rule(nft.SNATPort(53), nft.Src(self), nft.TCPSport(resolverTCP)),
			rule(nft.SNATPort(53), nft.Src(self), nft.UDPSport(resolverUDP))}},
		{Table: "nat", Name: "POSTROUTING", Hook: nft.Postrouting, Rules: []nft.Rule{
			rule(nft.Jump("DOCKER_POSTROUTING"), nft.Dst(self))}},
	}
}

func nftDNSRules() []nft.Chain {
	const table = "docker-dns"
	self := single(resolver)
	return []nft.Chain{
		{Table: table, Like: "nat", Name: "dns-dnat", Hook: nft.Output, Rules: []nft.Rule{
			rule(dnsTo(resolverUDP), nft.Dst(self), nft.UDPDport(53)),
			rule(dnsTo(resolverTCP), nft.Dst(self), nft.TCPDport(53))}},
		{Table: table, Like: "nat", Name: "dns-snat", Hook: nft.Postrouting, Rules: []nft.Rule{
			rule(nft.SNATPort(53), nft.Src(self), nft.UDPSport(resolverUDP)),
			rule(nft.SNATPort(53), nft.Src(self), nft.TCPSport(resolverTCP))}},
	}
}

func dnsTo(port uint16) nft.Verdict { return nft.DNAT(netip.AddrPortFrom(resolver, port)) }
