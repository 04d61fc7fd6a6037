package ports

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

const (
	longWait = 3 * time.Second // for which a connection is not accepted
	fewPorts = 0.9             // used share of the ports for connections to one address
)

// stuck returns why the program does not seem to accept the socket's connections. The code is "" if
// it does.
func (l Listener) stuck() Reason {
	switch {
	case l.Waiting > l.Backlog:
		return Reason{Code: QueueFull, N: l.Waiting}
	case l.Waited >= longWait:
		return Reason{Code: QueueOld, N: l.Waiting, Since: l.Waited.Round(time.Second)}
	}
	return Reason{}
}

// neverAccepts finds sockets whose connections only the kernel accepts.
func (f *Facts) neverAccepts(rows []Row) []Trap {
	t := about(NeverAccepts)
	t.Remedy = "find out what the program waits for, or restart it; if it only reserves a published " +
		"port, restore the engine's rules: restart the engine, or " +
		untriable("podman network reload --all", withoutDaemons)
	reserved := []Client{OwnAddr, Neighbour, Remote}
	for i, r := range rows {
		c, home := f.homeOf(r.Server)
		switch l, ok := f.socketOf(&rows[i]); {
		case r.Server.State != "":
		case ok && l.stuck().Code != "":
			t.addSight(r, sight{f.serverOf(l).describe() + " has ", l.stuck(), ""})
		case ok && f.keeps(l) && slices.ContainsFunc(reserved, func(c Client) bool {
			return r.Paths[c].Kind == Held
		}):
			t.add(r, fmt.Sprintf("%s has the socket, and no rule leads past it to the container",
				holder(l)))
		case home:
			to := netip.AddrPortFrom(netip.IPv4Unspecified(), r.Server.Port)
			if l, ok := listens(c.Listeners, r.Proto, to); ok && l.stuck().Code != "" {
				t.addSight(r, sight{r.Server.describe() + " has ", l.stuck(),
					fmt.Sprintf(" on its port %d", r.Server.Port)})
			}
		}
	}
	for _, c := range f.Containers {
		for _, l := range c.Listeners {
			if l.stuck().Code != "" && c.state() == "" && !c.Host && c.Shares == "" &&
				!c.publishes(l.Proto, l.Addr.Port()) {
				t.addSight(newRow(l.Proto, l.Addr), sight{"container " + c.Name + " has ", l.stuck(),
					fmt.Sprintf(" on its port %d", l.Addr.Port())})
			}
		}
	}
	return t.found()
}

func (f *Facts) socketOf(r *Row) (Listener, bool) {
	at := netip.AddrPortFrom(r.addr, r.Port)
	for _, l := range f.socketsOn(r.Proto, r.Port) {
		if l.Addr == at {
			return *l, true
		}
	}
	return Listener{}, false
}

// proxyPorts finds docker-proxies whose connections to a container have used up the local ports.
func (f *Facts) proxyPorts(rows []Row) []Trap {
	low, high := f.Switches.ClientPorts[0], f.Switches.ClientPorts[1]
	all := int(high) - int(low) + 1
	t := about(ProxyPorts)
	nat := true
	for _, p := range f.Proxies {
		if high == 0 || float64(p.Used) < fewPorts*float64(all) {
			continue
		}
		t.add(newRow(p.Proto, p.Host), fmt.Sprintf(
			"connections to %s, ended ones in TIME-WAIT included, have %d of %d ports (%d to %d)",
			p.Container, p.Used, all, low, high))
		nat = nat && p.ownAddress(rows) == ByNAT
	}
	t.Remedy = "instead of 127.0.0.1, " + pastProxy(nat) + "; or keep connections open; or allow " +
		"more: " + untriable("sudo sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\" "+
		"net.ipv4.tcp_tw_reuse=1", untracked)
	return t.found()
}

// untracked is why commands about existing connections cannot be tried.
const untracked = "a copy has none of the machine's connections"

// udpStale finds connection tracking entries that send clients elsewhere than the present rules
// would: rules do not apply to packets of a tracked connection.
func (f *Facts) udpStale(rows []Row) []Trap {
	t := about(UDPStale)
	for _, r := range rows {
		if r.Proto != "udp" || r.Server.Kind != "container" {
			continue
		}
		for _, x := range f.Flows {
			want, known := f.fresh(&r, x)
			if !known || want == x.Now {
				continue
			}
			t.add(r, fmt.Sprintf("%s to %s goes to %s, and a new client's packets to %s",
				netip.AddrPortFrom(x.From, x.Port), x.To, f.named(x.Now), f.named(want)))
		}
	}
	var commands []string
	for _, p := range t.Ports {
		commands = once(commands, "sudo conntrack -D -p udp --orig-port-dst "+
			strings.TrimSuffix(p, "/udp"))
	}
	t.Remedy = untriable(strings.Join(commands[:min(len(commands), fewSeen)], "; "), untracked)
	return t.found()
}

func (f *Facts) named(to netip.AddrPort) string {
	if c, ok := f.at(to.Addr()); ok {
		return fmt.Sprintf("%s (%s)", to, c.Name)
	}
	if f.own(to.Addr()) {
		return "this machine itself"
	}
	return to.String() + ", an address that nobody has"
}

// fresh returns the destination of a new flow between the same addresses, or false if it is not
// known.
func (f *Facts) fresh(r *Row, x Flow) (netip.AddrPort, bool) {
	if x.Proto != "udp" || x.To.Port() != r.Port || !r.concerns(x.To.Addr().Is6()) {
		return netip.AddrPort{}, false
	}
	from, bridge := Remote, f.towards(x.From)
	switch {
	case x.From.IsLoopback() && x.From.Is6():
		from = Loopback6
	case x.From.IsLoopback():
		from = Loopback
	case f.own(x.From):
		from = OwnAddr
	case f.hosts(f.device(bridge)):
		from = Neighbour
	}
	for _, p := range r.Dials {
		if p.Client != from || p.Dial != x.To.String() || len(p.Doubt) > 0 || p.Servers != nil ||
			from == Neighbour && !slices.Contains(p.Hops, Hop{"bridge", bridge}) {
			continue
		}
		switch p.Kind {
		case ByNAT, Hairpin:
			return p.target, p.target.IsValid()
		case ByProxy, Direct, Held:
			return x.To, true
		}
	}
	return netip.AddrPort{}, false
}
