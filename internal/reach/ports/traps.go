package ports

import (
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// The codes of traps, part of the report's format.
const (
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
	NeverAccepts     = "never-accepts"
	UDPStale         = "udp-stale"
	ProxyPorts       = "proxy-ports"
	PublishedIgnored = "published-ignored"
	PublishedBypass  = "published-bypass"
	NeighboursFull   = "neighbours-full"
	AddressesUsed    = "addresses-used"
	Masqueraded      = "masqueraded"
)

// codes has the codes in the report's order.
var codes = []string{PortConflict, Paused, Restarting, NeverAccepts, ReuseportTwins,
	PublishedNobody, InternalNetwork, PublishedIgnored, IngressNothing, RouteLocalnet, ProxyPorts,
	UDPStale, Loopback6Nothing, UDPSource, PublishedBypass, ProxyLoad, PublicLocalOnly, Unpublished,
	BridgeNFDrop, Masqueraded, MTUDiffers, ConntrackFull, NeighboursFull, AddressesUsed}

func (f *Facts) traps(rows []Row) []Trap {
	var out []Trap
	for _, rule := range []func([]Row) []Trap{f.conflicts, f.stopped, f.neverAccepts, f.twins,
		f.nobody, f.internal, f.ignored, f.unserved, f.localnet, f.proxyPorts, f.udpStale,
		f.loopback6, f.udpSource, f.bypass, f.proxyLoad, f.localOnly, f.unpublished, f.bridgeNF,
		f.masqueraded, f.mtus, f.conntrack, f.neighbours, f.pools} {
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
		`(?i)address (is )?already in use|EADDRINUSE|port is already allocated|` +
			`only one usage of each socket address`)
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
			About:    Reason{Code: PortConflict, Of: c.Name, By: c.State},
			Evidence: `its last output: "` + line + `"`,
			Remedy: "give one of them another port, or its own network: containers with " +
				"--network host share the machine's ports"}
		if c.Restarts > 0 {
			t.Evidence += "; restarted " + units.Plural(c.Restarts, "time")
		}
		for _, m := range hasPort.FindAllStringSubmatch(line, -1) {
			n, _ := strconv.Atoi(m[1])
			for _, r := range rows {
				if int(r.Port) == n && r.Proto == "tcp" && r.Server.ID != c.ID &&
					!slices.Contains(t.Ports, r.name()) {
					t.Ports = append(t.Ports, r.name())
					t.About.Text = joined("; ", t.About.Text, r.Server.describe()+" has "+r.name())
				}
			}
		}
		out = append(out, t)
	}
	return out
}

func (f *Facts) twins([]Row) []Trap {
	t := about(ReuseportTwins)
	t.Remedy = "stop one, or give it another port"
	before := map[service][]*Listener{} // by address
	for i := range f.Listeners {
		a := &f.Listeners[i]
		at := service{a.Proto, a.Addr}
		if a.Proto != "tcp" || len(a.Owners) == 0 {
			continue
		}
		for _, b := range before[at] {
			if a.Inode == b.Inode {
				continue
			}
			x, y := b.Owners[0], a.Owners[0]
			if x.Container == y.Container && x.Name == y.Name {
				continue
			}
			t.add(newRow(a.Proto, a.Addr), fmt.Sprintf(
				"%s and %s both listen on %s (SO_REUSEPORT)", f.serverOf(*b).describe(),
				f.serverOf(*a).describe(), a.Addr))
		}
		before[at] = append(before[at], a)
	}
	return t.found()
}

func (f *Facts) nobody(rows []Row) []Trap {
	traps, four := map[string]*Trap{}, map[string]*Trap{}
	for _, r := range rows {
		i := slices.IndexFunc(clients, func(c Client) bool { return r.Paths[c].nobody != "" })
		if i < 0 {
			continue
		}
		p := r.Paths[clients[i]]
		c, known := f.at(p.target.Addr())
		if p.proxy != nil && p.proxy.PID != 0 {
			c, known = f.behind(*p.proxy)
		}
		said, of := sight{why: p.Why}, traps
		text := Reason{Code: PublishedNobody, Of: p.nobody}
		remedy := "publish the port that the program listens on"
		if p.nobody == here {
			text, remedy = Reason{Code: RedirectsVain}, "start the program, or delete the rule"
		}
		if known {
			switch on := listening(c, r.Proto); {
			case len(on) == 1:
				said.after = "; " + on[0] + " listens in the container"
			case len(on) > 1:
				said.after = "; " + strings.Join(on, ", ") + " listen in the container"
			}
			for _, l := range c.Listeners {
				if l.Proto == r.Proto && l.Addr.Port() == p.target.Port() &&
					l.Addr.Addr().IsLoopback() {
					remedy = "make the program listen on all addresses instead of the container's " +
						l.Addr.Addr().String()
				}
			}
			_, only4 := listens(c.Listeners, r.Proto,
				netip.AddrPortFrom(netip.IPv4Unspecified(), p.target.Port()))
			if only4 && p.target.Addr().Is6() {
				of, text = four, Reason{Code: ListensOn4, Of: p.nobody}
				remedy = "make it listen on [::], or dial an IPv4 address"
			}
		}
		if of[p.nobody] == nil {
			of[p.nobody] = &Trap{Code: PublishedNobody, About: text, Remedy: remedy}
		} else if t := of[p.nobody]; !strings.Contains(t.Remedy, remedy) {
			t.Remedy += "; " + remedy
		}
		of[p.nobody].addSight(r, said)
	}
	return append(sorted(traps), sorted(four)...)
}

func sorted(traps map[string]*Trap) (out []Trap) {
	for _, name := range slices.Sorted(maps.Keys(traps)) {
		out = append(out, *traps[name])
	}
	return out
}

func listening(c Container, proto string) (out []string) {
	for _, l := range c.Listeners {
		if l.Proto == proto {
			out = once(out, l.Addr.String())
		}
	}
	return out
}

func (f *Facts) localnet(rows []Row) []Trap {
	t := about(RouteLocalnet)
	var keys, remedies []string
	for _, r := range rows {
		p := r.Paths[Loopback]
		if p.localnet == "" {
			continue
		}
		t.Ports = append(t.Ports, r.name())
		keys = once(keys, "net.ipv4.conf."+sysctlName(p.localnet)+".route_localnet")
		if p.Remedy != "" {
			remedies = once(remedies, p.Remedy)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	t.Evidence = "rules redirect 127.0.0.1 to a container, but route_localnet is 0: " +
		strings.Join(keys, ", ")
	t.Remedy = "set it to 1, as Docker does for \"userland-proxy\": false"
	if len(keys) > 1 {
		t.Remedy = "set them to 1, as Docker does for \"userland-proxy\": false"
	}
	t.Remedy = joined(": ", t.Remedy, strings.Join(remedies, "; "))
	return []Trap{t}
}

func (f *Facts) loopback6(rows []Row) []Trap {
	if !f.HasLoopback(netip.IPv6Loopback()) { // localhost is 127.0.0.1 alone
		return nil
	}
	nothing := about(Loopback6Nothing)
	nothing.Remedy = "dial 127.0.0.1 instead of localhost"
	proxied := nothing
	proxied.Remedy += ", or also publish on [::1]"
	dropped := nothing
	dropped.About.Code = Loopback6Lost
	rowsOf := byService(rows)
	for _, r := range rows {
		if r.Server.Kind != "container" || r.Holder.Kind == "server" {
			continue
		}
		var paths []Path // from ::1 to the port
		for _, i := range rowsOf[portOfService(service{r.Proto, netip.AddrPortFrom(r.addr, r.Port)})] {
			if p, ok := rows[i].Paths[Loopback6]; ok {
				paths = append(paths, p)
			}
		}
		// If all of the port's paths end there, the trap is PublishedNobody.
		if r.Paths[Loopback].Answers() && !slices.ContainsFunc(paths, func(p Path) bool {
			return p.nobody != "" || p.mayAnswer()
		}) {
			at := "[::1]:" + strconv.Itoa(int(r.Port))
			why, lost := Reason{Code: NoSocket, At: at}, false
			if n := len(paths); n > 0 {
				why, lost = paths[n-1].Why, paths[n-1].Kind == Blocked
			}
			of := &nothing // rules do not redirect what is sent to ::1
			switch {
			case lost:
				of = &dropped
			case r.Holder.Kind == "docker-proxy":
				of = &proxied
			}
			of.addSight(r, sight{why: why})
		}
	}
	return slices.Concat(dropped.found(), proxied.found(), nothing.found())
}

// found returns the trap in a slice, or nil if it concerns no port.
func (t *Trap) found() []Trap {
	if len(t.Ports) == 0 {
		return nil
	}
	return []Trap{*t}
}

// sight is a piece of evidence: the words of a reason, if it has one, between two texts.
type sight struct {
	before string
	why    Reason
	after  string
}

func (t *Trap) add(r Row, evidence string) { t.addSight(r, sight{before: evidence}) }

func (t *Trap) addSight(r Row, seen sight) {
	t.Ports, t.seen = append(t.Ports, r.name()), append(t.seen, seen)
}

const fewSeen = 3

// of returns the trap with what was seen of one port, or of all ports if port is 0.
func (t Trap) of(port uint16) Trap {
	if len(t.seen) == 0 || len(t.Ports) == 0 {
		return t
	}
	ports, seen := t.Ports, t.seen
	t.Ports, t.seen = nil, nil
	for i, p := range ports {
		if port != 0 && !(Trap{Ports: []string{p}}).about(port) {
			continue
		}
		t.seen = once(t.seen, seen[i])
		if !slices.Contains(t.Ports, p) {
			t.Ports = append(t.Ports, p)
		}
	}
	return t
}

// say sets the text and the evidence, which is a few of the pieces.
func (t *Trap) say(w Words) {
	if t.About.Code != "" {
		t.Text = w.Reason(t.About)
	}
	var shown []string
	for _, x := range t.seen[:min(len(t.seen), fewSeen)] {
		if x.why.say(w); x.why.Code != "" {
			x.before += x.why.Words
		}
		shown = append(shown, x.before+x.after)
	}
	if more := len(t.seen) - len(shown); more > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", more))
	}
	if len(shown) > 0 {
		t.Evidence = strings.Join(shown, "; ")
	}
}
