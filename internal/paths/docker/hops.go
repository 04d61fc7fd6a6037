package docker

import (
	"cmp"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

const thisMachine = local.ThisMachine

// Hops returns the hops at a place of a route that every mode has in the same form.
func (s *site) Hops(at recipe.At) []path.Hop {
	switch at.Kind() {
	case mode.HopLoopback:
		return s.loopbacks(at)
	case mode.HopBridge:
		return s.crossed(at)
	}
	return nil
}

func (s *site) loopbacks(at recipe.At) []path.Hop {
	switch {
	case at.Last() && len(s.Servers) > 0 && !s.Servers[0].shares:
		return s.EachServer(func(i int) path.Hop { return s.Servers[i].loopbackHop() })
	case at.First():
		return []path.Hop{local.LoopbackHop(s.at.ns, s.at.name)}
	}
	return []path.Hop{local.LoopbackHop(s.engine.ns, s.engine.name)}
}

func (s *site) crossed(at recipe.At) []path.Hop {
	switch at.Crosses(s.away != nil) {
	case recipe.Switched:
		return []path.Hop{s.switchedHop(s.network)}
	case recipe.FirstLeg:
		return []path.Hop{s.bridgeLeg(s.network, "in")}
	case recipe.SecondLeg:
		return []path.Hop{s.bridgeLeg(s.network, "out")}
	case recipe.Leaving:
		return []path.Hop{s.bridgeHop(cmp.Or(s.away, s.network), false)}
	}
	return []path.Hop{s.bridgeHop(s.network, true)}
}

func (b *box) Hop(toServer bool) path.Hop {
	devices := []local.TunedDevice{{Space: b.ns, Name: b.device, Inside: true}}
	if b.port != "" {
		devices = append(devices, local.TunedDevice{Space: b.portNS, Name: b.port})
	}
	return b.tuned.MadeOf(local.ContainerHop(b.kind, b.ns, b.what, b.device, b.port, toServer),
		devices...)
}

func (b *box) loopbackHop() path.Hop {
	return b.tuned.MadeOf(local.LoopbackHop(b.ns, b.what),
		local.TunedDevice{Space: b.ns, Name: "lo"})
}

func (s *site) bridged(n *bridgeNet, h path.Hop) path.Hop {
	s.spans(n)
	d := local.TunedDevice{Space: s.engine.ns, Name: n.bridge}
	if n.where != "" {
		d.Space = s.Servers[0].portNS
	} else {
		d.SetBridgeNF = func(on bool) error { return s.setBridgeNF(n.bridge, on) }
	}
	return s.tuned.MadeOf(h, d)
}

func (s *site) bridgeHop(n *bridgeNet, toServer bool) path.Hop {
	return s.bridged(n, local.BridgeHop(s.engine.ns, s.engine.name, n.bridge, toServer))
}

func (s *site) switchedHop(n *bridgeNet) path.Hop {
	h := local.SwitchHop(cmp.Or(n.where, s.engine.name), n.bridge, sent(s.Clients), sent(s.Servers))
	h.Shared = s.path // a shared bridge, but the path's own ports
	return s.bridged(n, h)
}

// sent returns a reader of the counters of the outer ends of the containers' veth pairs.
func sent(boxes []*box) local.Reader {
	var all []local.Reader
	for _, b := range boxes {
		all = append(all, local.Device(b.portNS, b.port, false))
	}
	return local.Sum(all...)
}

func (s *site) bridgeLeg(n *bridgeNet, leg string) path.Hop {
	return s.bridged(n, local.BridgeLegHop(s.engine.ns, s.engine.name, n.bridge, leg))
}
