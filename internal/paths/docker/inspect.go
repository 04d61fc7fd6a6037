package docker

import (
	"errors"
	"net/netip"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/kernel/firewall"
	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// inspected returns the namespaces, devices and rules that Inspect covers. On this machine it
// covers only the path's devices and the rules about them, because other containers start and stop.
func (s *site) inspected() ([]local.Inspected, error) {
	own := []string{}
	if slices.ContainsFunc(s.path.Hops, func(h path.Hop) bool {
		return h.Kind == mode.HopLoopback && h.Where == s.spot.name
	}) {
		own = append(own, "lo")
	}
	if s.engine.lost == nil {
		own = append(own, s.bridges...)
	}
	boxes := s.Servers
	if s.path.Spec.Mode != mode.Shared { // in mode shared, clients are in the servers' namespaces
		boxes = slices.Concat(boxes, s.Clients)
	}
	var spots []local.Inspected
	for _, b := range boxes {
		if b.shares { // its network is inspected with its owner
			spots = append(spots, local.Inspected{
				Space: b.ns, Where: b.what, Devices: []string{}, PID: b.pid})
			continue
		}
		if b.port != "" && b.portNS == s.spot.ns {
			own = append(own, b.port)
		}
		spots = append(spots, local.Inspected{Space: b.ns, Where: b.what, PID: b.pid})
	}
	if s.network != nil && s.network.where != "" {
		spots = append(spots, local.Inspected{
			Space: s.Servers[0].portNS, Where: s.network.where})
	}
	switch {
	case s.at == s.engine.machine && mayRead(s.engine.words().product) != nil:
		s.path.Facts["settings not watched on"] = thisMachine + ": needs root"
		if s.spot == s.at {
			own = []string{}
		}
	case s.at != s.spot:
		spots = append(spots, local.Inspected{Space: s.at.ns, Where: s.at.name,
			Devices: []string{"lo"}})
	}
	here := local.Inspected{Space: s.spot.ns, Where: s.spot.name, Devices: own}
	if len(s.bridges) > 0 && s.engine.lost == nil {
		saver, err := s.engine.legacySaver()
		if err != nil {
			return nil, err
		}
		rules := s.rulesOf(boxes)
		here.Rules = func() ([]path.Setting, error) { return rules.settings(saver) }
	}
	for _, p := range s.path.Proxies {
		if p.Machine == nil {
			spots = append(spots, local.Inspected{
				Space: s.spot.ns, Where: p.Name, Devices: []string{}, PID: p.PID})
		}
	}
	return append([]local.Inspected{here}, spots...), nil
}

func (s *site) rulesOf(boxes []*box) ownRules {
	rules := ownRules{where: s.spot.name, devices: s.bridges}
	for _, b := range boxes {
		if b.shares {
			continue
		}
		rules.addrs = append(rules.addrs, b.addr)
		if b.addr6.IsValid() {
			rules.addrs, rules.six = append(rules.addrs, b.addr6), true
		}
	}
	if s.network != nil {
		rules.subnet, rules.subnet6 = s.network.subnet, s.network.subnet6
	}
	return rules
}

func (s *site) spans(n *bridgeNet) {
	if n.bridge != "" && n.where == "" && !slices.Contains(s.bridges, n.bridge) {
		s.bridges = append(s.bridges, n.bridge)
	}
}

// legacySaver returns the iptables-save of the legacy kernel interface, or "" if Docker has no
// rules there.
func (e *engine) legacySaver() (string, error) {
	if e.native() || e.Podman != nil {
		return "", nil
	}
	_, saver, err := e.findRule(false, "filter", "FORWARD", "-j "+userChain)
	if errors.Is(err, errNoRule) { // "iptables": false
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var text string
	err = e.ns.Do(func() (err error) { text, err = saved(saver, "filter"); return err })
	if err != nil || strings.Contains(text, "(nf_tables)") {
		return "", err
	}
	return saver, nil
}

type ownRules struct {
	where   string
	devices []string
	addrs   []netip.Addr
	subnet  netip.Prefix
	subnet6 netip.Prefix
	six     bool
}

// settings returns the rules about the path, and the chains with the policy DROP. Docker rewrites
// chains for each container, so order, counters and handles are omitted.
func (o ownRules) settings(saver string) ([]path.Setting, error) {
	all, err := nft.Read()
	if err != nil && !nft.Unsupported(err) {
		return nil, err
	}
	if saver != "" {
		text, err := saved(saver, "")
		if err != nil {
			return nil, err
		}
		all = append(all, firewall.ParseSave(text, false)...)
		if o.six {
			if text, err = saved("ip6"+strings.TrimPrefix(saver, "ip"), ""); err != nil {
				return nil, err
			}
			all = append(all, firewall.ParseSave(text, true)...)
		}
	}
	return o.of(all), nil
}

func (o ownRules) of(all []firewall.Chain) (out []path.Setting) {
	seen := map[string]bool{}
	add := func(of, value string) {
		if !seen[of] {
			seen[of] = true
			out = append(out, path.Setting{Where: o.where, Of: of, Value: value})
		}
	}
	for _, c := range all {
		name := c.Table + " " + c.Name
		switch {
		case c.V4:
		case !o.six:
			continue
		default:
			name = "ip6 " + name
		}
		if c.Drop {
			add("policy of chain "+name, "drop")
		}
		for _, r := range c.Rules {
			if o.about(c, r) {
				add("rule "+name+" "+r.String(), "there")
			}
		}
	}
	slices.SortFunc(out, func(a, b path.Setting) int { return strings.Compare(a.Of, b.Of) })
	return out
}

// about reports whether the rule names one of the path's devices, networks or containers, and no
// other container.
func (o ownRules) about(c firewall.Chain, r firewall.Rule) bool {
	if r.Set { // the set's elements change with others' networks
		return false
	}
	_, bridge, _ := strings.Cut(c.Name, "__") // a network's own chain in Docker's nf_tables
	ours := slices.Contains(o.devices, bridge) || slices.Contains(o.devices, r.In.Name) ||
		slices.Contains(o.devices, r.Out.Name)
	for _, p := range []netip.Prefix{r.Src.Prefix, r.Dst.Prefix} {
		switch {
		case !p.IsValid():
		case p.IsSingleIP() && slices.Contains(o.addrs, p.Addr()), p == o.subnet, p == o.subnet6:
			ours = true
		// another container of the network
		case p.IsSingleIP() && (o.subnet.Contains(p.Addr()) || o.subnet6.Contains(p.Addr())):
			return false
		}
	}
	if to := r.To.Addr(); to.IsValid() {
		return slices.Contains(o.addrs, to)
	}
	return ours
}

// drain removes the path's connection tracking entries. In the containers these are all entries, on
// the machine only those of the path's connections.
func (s *site) drain() (sample.Headroom, error) {
	spots := []local.Swept{{Space: s.engine.ns, Where: s.engine.name, Ours: s.ours()}}
	if s.at != s.engine.spot {
		spots = append(spots, local.Swept{Space: s.at.ns, Where: s.at.name, Ours: s.ours()})
	}
	for _, boxes := range [][]*box{s.Servers, s.Clients} {
		for _, b := range boxes {
			if !b.shares {
				spots = append(spots, local.Swept{Space: b.ns, Where: b.what})
			}
		}
	}
	return local.Drain(spots, len(s.path.Proxies) > 0)
}

// ours returns a function that reports whether an address is a container's, or one that clients
// dial.
func (s *site) ours() func(netip.AddrPort) bool {
	addrs, ports := map[netip.Addr]bool{}, map[netip.AddrPort]bool{}
	for _, boxes := range [][]*box{s.Servers, s.Clients} {
		for _, b := range boxes {
			for _, a := range []netip.Addr{b.addr, b.addr6} {
				if a.IsValid() {
					addrs[a] = true
				}
			}
		}
	}
	for _, c := range s.path.Clients {
		if s.path.Spec.Mode == mode.Shared {
			break // a container's loopback addresses are not the machine's
		}
		ports[c.Dial] = true
		if s.path.Second != 0 {
			ports[netip.AddrPortFrom(c.Dial.Addr(), s.path.Second)] = true
		}
	}
	return func(end netip.AddrPort) bool { return addrs[end.Addr()] || ports[end] }
}
