package ports

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/paths/firewall"
)

// The codes of traps, part of the report's format.
const (
	Loopback6Proxy4  = "loopback6-proxy4"
	Loopback6Nothing = "loopback6-nothing"
	PublicLocalOnly  = "public-local-only"
	PublishedNobody  = "published-nobody"
	IngressNothing   = "ingress-nothing"
	Unpublished      = "exposed-unpublished"
	PortConflict     = "port-conflict"
	ReuseportTwins   = "reuseport-twins"
	MTUDiffers       = "mtu-differs"
	ConntrackFull    = "conntrack-full"
	BridgeNFDrop     = "bridge-nf-drop"
	ProxyLoad        = "proxy-load"
	RouteLocalnet    = "route-localnet"
	Paused           = "container-paused"
	Restarting       = "container-restarting"
	InternalNetwork  = "published-internal"
	UDPSource        = "udp-source"
)

// codes are in the order of the report.
var codes = []string{PortConflict, Paused, Restarting, ReuseportTwins, PublishedNobody,
	InternalNetwork, IngressNothing, RouteLocalnet, Loopback6Nothing,
	Loopback6Proxy4, UDPSource, ProxyLoad, PublicLocalOnly, Unpublished, BridgeNFDrop, MTUDiffers,
	ConntrackFull}

func (f *Facts) traps(rows []Row) []Trap {
	var out []Trap
	for _, rule := range []func([]Row) []Trap{f.conflicts, f.stopped, f.twins, f.nobody, f.internal,
		f.unserved, f.localnet, f.loopback6, f.udpSource, f.proxyLoad,
		f.localOnly, f.unpublished, f.bridgeNF, f.mtus, f.conntrack} {
		out = append(out, rule(rows)...)
	}
	slices.SortStableFunc(out, func(a, b Trap) int {
		return slices.Index(codes, a.Code) - slices.Index(codes, b.Code)
	})
	return out
}

func (r Row) name() string { return fmt.Sprintf("%d/%s", r.Port, r.Proto) }

var (
	taken = regexp.MustCompile(
		`(?i)address (is )?already in use|EADDRINUSE|port is already allocated|only one usage of each socket address`)
	hasPort = regexp.MustCompile(`[:\s]([0-9]{2,5})\b`)
)

func (f *Facts) conflicts(rows []Row) []Trap {
	var out []Trap
	for _, c := range f.Containers {
		line := ""
		for l := range strings.Lines(c.LastLog) {
			if taken.MatchString(l) {
				line = strings.TrimSpace(l)
			}
		}
		if line == "" || c.PID != 0 && c.Restarts == 0 {
			continue
		}
		t := Trap{Code: PortConflict, container: c.ID,
			Text: fmt.Sprintf("Container %s (%s) cannot bind its port: it is already in use",
				c.Name, c.State),
			Evidence: `its last output: "` + line + `"`,
			Remedy:   "give one of them another port, or its own network: containers with --network host share the machine's ports"}
		if c.Restarts > 0 {
			t.Evidence += fmt.Sprintf("; restarted %d times", c.Restarts)
		}
		for _, m := range hasPort.FindAllStringSubmatch(line, -1) {
			n, _ := strconv.Atoi(m[1])
			for _, r := range rows {
				if int(r.Port) == n && r.Proto == "tcp" && r.Server.ID != c.ID &&
					!slices.Contains(t.Ports, r.name()) {
					t.Ports = append(t.Ports, r.name())
					t.Text += "; " + r.Server.describe() + " has " + r.name()
				}
			}
		}
		out = append(out, t)
	}
	return out
}

func (f *Facts) twins([]Row) []Trap {
	var out []Trap
	for i, a := range f.Listeners {
		for _, b := range f.Listeners[:i] {
			if a.Proto != "tcp" || b.Proto != a.Proto || a.Addr != b.Addr || a.Inode == b.Inode ||
				len(a.Owners) == 0 || len(b.Owners) == 0 {
				continue
			}
			x, y := b.Owners[0], a.Owners[0]
			if x.Container == y.Container && x.Name == y.Name {
				continue
			}
			r := newRow(a.Proto, a.Addr)
			out = append(out, Trap{Code: ReuseportTwins, Ports: []string{r.name()},
				Text: fmt.Sprintf(
					"Two programs share %s, and the kernel distributes connections between them",
					r.name()),
				Evidence: fmt.Sprintf("%s and %s both listen on %s (SO_REUSEPORT)",
					f.serverOf(b).describe(), f.serverOf(a).describe(), a.Addr),
				Remedy: "stop one, or give it another port"})
		}
	}
	return out
}

func (f *Facts) nobody(rows []Row) []Trap {
	var out []Trap
	seen := map[string]bool{}
	for _, r := range rows {
		for _, c := range clients {
			p := r.Paths[c]
			if p.nobody == "" || seen[r.name()] {
				continue
			}
			seen[r.name()] = true
			t := Trap{Code: PublishedNobody, Ports: []string{r.name()}, Evidence: p.Why,
				Text: fmt.Sprintf(
					"%s is published, but nothing listens on port %d of container %s", r.name(),
					r.Server.Port, p.nobody),
				Remedy: "publish the port that the program listens on, and let it listen on 0.0.0.0 rather than on its own 127.0.0.1"}
			if cont, ok := f.byID(r.Server.ID); ok {
				if on := listening(cont, r.Proto); on != "" {
					t.Evidence += "; " + on + " listens in the container"
				}
			}
			out = append(out, t)
		}
	}
	return out
}

func listening(c Container, proto string) string {
	var out []string
	for _, l := range c.Listeners {
		if l.Proto == proto {
			out = append(out, l.Addr.String())
		}
	}
	return strings.Join(out, ", ")
}

func (f *Facts) localnet(rows []Row) []Trap {
	t := Trap{
		Code: RouteLocalnet,
		Text: "127.0.0.1 is published by NAT without a proxy, and connections to it hang"}
	var devices []string
	for _, r := range rows {
		p := r.Paths[Loopback]
		if p.localnet == "" {
			continue
		}
		t.Ports = append(t.Ports, r.name())
		if !slices.Contains(devices, p.localnet) {
			devices = append(devices, p.localnet)
		}
	}
	if len(devices) == 0 {
		return nil
	}
	keys := "net.ipv4.conf." + strings.Join(devices, ".route_localnet, net.ipv4.conf.") +
		".route_localnet"
	t.Evidence = "rules lead from 127.0.0.1 to a container, but it is 0: " + keys
	t.Remedy = "set it to 1, as Docker does for \"userland-proxy\": false: sysctl -w " + keys + "=1"
	if len(devices) > 1 {
		t.Remedy = "set them to 1, as Docker does for \"userland-proxy\": false"
	}
	return []Trap{t}
}

func (f *Facts) loopback6(rows []Row) []Trap {
	proxied := Trap{
		Code: Loopback6Proxy4, Text: "::1 goes through a proxy that dials the container by IPv4",
		Remedy: "where localhost may resolve to ::1, dial 127.0.0.1 or, by NAT, the machine's own address; or give the container's network IPv6"}
	nothing := Trap{Code: Loopback6Nothing,
		Text:   "127.0.0.1 answers and ::1 does not: programs that resolve localhost to ::1 fail, or try ::1 in vain first",
		Remedy: "dial 127.0.0.1 rather than localhost, or publish on [::1] too"}
	for _, r := range rows {
		if r.Server.Kind != "container" || r.Holder.Kind == "server" {
			continue
		}
		if p := r.Paths[Loopback6]; p.Kind == ByProxy && p.proxy.Container.Addr().Is4() &&
			!p.proxy.Rootless {
			proxied.add(r, fmt.Sprintf("docker-proxy %d listens on %s and dials %s", p.proxy.PID,
				p.proxy.Host, p.proxy.Container))
		}
		if r.Paths[Loopback].Answers() && !slices.ContainsFunc(rows, func(o Row) bool {
			return o.Port == r.Port && o.Proto == r.Proto && o.Paths[Loopback6].Answers()
		}) {
			why := "no socket listens on [::1]:" + strconv.Itoa(int(r.Port))
			for _, o := range rows {
				if p, ok := o.Paths[Loopback6]; ok && o.Port == r.Port && o.Proto == r.Proto {
					why = p.Why
				}
			}
			nothing.add(r, why)
		}
	}
	return slices.DeleteFunc([]Trap{nothing, proxied}, func(t Trap) bool {
		return len(t.Ports) == 0
	})
}

func (t *Trap) add(r Row, evidence string) {
	t.Ports = append(t.Ports, r.name())
	t.seen = append(t.seen, evidence)
}

const fewSeen = 3

// Port 0 selects all ports, with the evidence of a few.
func (t Trap) of(port uint16) Trap {
	if len(t.seen) == 0 {
		return t
	}
	ports, seen := t.Ports, t.seen
	t.Ports, t.seen = nil, nil
	for i, p := range ports {
		if port != 0 && !(Trap{Ports: []string{p}}).about(port) {
			continue
		}
		t.seen = append(t.seen, seen[i])
		if !slices.Contains(t.Ports, p) {
			t.Ports = append(t.Ports, p)
		}
	}
	shown := t.seen[:min(len(t.seen), fewSeen)]
	t.Evidence = strings.Join(shown, "; ")
	if more := len(t.seen) - len(shown); more > 0 {
		t.Evidence += fmt.Sprintf("; and so %d more", more)
	}
	return t
}

// Where Docker writes iptables, DOCKER-USER is for such rules.
func (f *Facts) letThrough(bridge, chain string) string {
	if slices.ContainsFunc(f.Rules.Chains, func(c firewall.Chain) bool {
		return c.Name == "DOCKER-USER"
	}) {
		return fmt.Sprintf("iptables -I DOCKER-USER -i %s -o %s -j ACCEPT", bridge, bridge)
	}
	return fmt.Sprintf("a rule before %s that accepts what comes from %s and goes to %s", chain,
		bridge, bridge)
}

// Policies of FORWARD are meant for routed packets.
func (f *Facts) bridgeNF([]Row) []Trap {
	if !f.Switches.BridgeNF || !f.Known.Rules {
		return nil
	}
	var out []Trap
	for _, d := range f.Devices {
		if d.Kind != "bridge" || d.Docker || !slices.ContainsFunc(f.Devices, func(p Device) bool {
			return p.Master == d.Name
		}) {
			continue
		}
		p := firewall.Packet{Proto: "tcp", Port: 80, In: d.Name, Out: d.Name, Src: anybody,
			Dst: anybody.Next()}
		o := f.Rules.Walk(firewall.Filter, firewall.Forward, p)
		if o.Verdict != firewall.Drop && o.Verdict != firewall.Reject {
			continue
		}
		out = append(out, Trap{Code: BridgeNFDrop,
			Text: fmt.Sprintf(
				"What crosses bridge %s is dropped by rules that are meant for routed traffic",
				d.Name),
			Evidence: fmt.Sprintf(
				"net.bridge.bridge-nf-call-iptables is 1, and a TCP packet from %s to %s is dropped by %s", d.Name, d.Name, o.Where),
			Remedy: fmt.Sprintf(
				"%s, or net.bridge.bridge-nf-call-iptables=0 if no container network needs it",
				f.letThrough(d.Name, o.Where))})
	}
	return out
}
