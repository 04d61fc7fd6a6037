package docker

import (
	"cmp"

	"github.com/bridgetoll/bridgetoll/internal/build/path"
	"github.com/bridgetoll/bridgetoll/internal/build/path/local"
)

// thisMachine is where Docker's own devices and rules are.
const thisMachine = "this machine"

// Hop is the container's own device.
func (b *box) Hop(toServer bool) path.Hop {
	return local.ContainerHop(b.kind, b.ns, b.what, b.device, b.port, toServer)
}

// bridgeHop is a bridge as the machine's own device.
func (s *site) bridgeHop(n *bridgeNet, toServer bool) path.Hop {
	s.spans(n)
	return local.BridgeHop(s.engine.ns, thisMachine, n.bridge, toServer)
}

// switchedHop is a network's bridge as a switch between its containers.
func (s *site) switchedHop(n *bridgeNet) path.Hop {
	s.spans(n)
	return local.SwitchHop(cmp.Or(n.where, thisMachine), n.bridge, sent(s.Clients), sent(s.Servers))
}

// sent adds up what went out of the outer ends of containers' pairs.
func sent(boxes []*box) local.Reader {
	var all []local.Reader
	for _, b := range boxes {
		all = append(all, local.Device(b.portNS, b.port, false))
	}
	return local.Sum(all...)
}

// bridgeLeg is a network's bridge up to a proxy or down from it.
func (s *site) bridgeLeg(n *bridgeNet, leg string) path.Hop {
	s.spans(n)
	return local.BridgeLegHop(s.engine.ns, thisMachine, n.bridge, leg)
}
