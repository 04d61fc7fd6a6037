package swarm

import (
	"fmt"
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/machine"
)

// overIPv6 sets both ends' addresses to IPv6 addresses of the nodes' cards in one network. The
// swarm knows only one address of a node, usually an IPv4 one.
func overIPv6(server, client *end) error {
	usable := func(p netip.Prefix) bool {
		return p.Addr().Is6() && p.Addr().IsGlobalUnicast() && !p.IsSingleIP()
	}
	for _, a := range server.Card.Addrs {
		for _, b := range client.Card.Addrs {
			if usable(a) && usable(b) && a.Masked() == b.Masked() {
				server.Addr, client.Addr = a.Addr(), b.Addr()
				return nil
			}
		}
	}
	return &machine.UnsupportedError{Missing: fmt.Sprintf(
		"the cards of nodes %s and %s, %s and %s, have no IPv6 addresses in one network",
		server.Name, client.Name, server.Card.Name, client.Card.Name),
		Remedy: "addresses of one network on both, as by ip -6 address add; or -4"}
}
