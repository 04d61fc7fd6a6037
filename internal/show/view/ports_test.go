package view

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/show/sentence"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

func somePorts() *ports.Facts {
	at, net := netip.MustParseAddrPort, netip.MustParsePrefix
	const id = "4c357c4cf6ba95a34db253871e120158ca5e105d1a084c3353e392c400fa0975"
	return &ports.Facts{
		Listeners: []ports.Listener{
			{Proto: "tcp", Addr: at("[::]:22"), Inode: 1,
				Owners: []ports.Process{{PID: 300, Name: "sshd"}}},
			{Proto: "tcp", Addr: at("127.0.0.1:631"), Inode: 4},
			{Proto: "tcp", Addr: at("0.0.0.0:8080"), Inode: 2,
				Owners: []ports.Process{{PID: 1264, Name: "docker-proxy"}}},
			{Proto: "tcp", Addr: at("[::]:8080"), Inode: 3, V6Only: true,
				Owners: []ports.Process{{PID: 1271, Name: "docker-proxy"}}},
		},
		Proxies: []ports.Proxy{{PID: 1264, Proto: "tcp", Host: at("0.0.0.0:8080"),
			Container: at("172.17.0.2:80"), Memory: 3 << 20, Used: 27800},
			{PID: 1271, Proto: "tcp", Host: at("[::]:8080"), Container: at("172.17.0.2:80")}},
		Containers: []ports.Container{{ID: id, Name: "shop-frontend-blue-1",
			Image: "registry.example.org/shop/frontend:2026.11", PID: 305, State: "running",
			Addrs: []netip.Addr{at("172.17.0.2:80").Addr()}, Networks: []string{"bridge"},
			Published: []ports.Published{{Proto: "tcp", Port: 80, Host: at("0.0.0.0:8080")}},
			Processes: []ports.Process{{PID: 305, Name: "nginx"}, {PID: 340, Name: "nginx"},
				{PID: 341, Name: "nginx: cache manager"}, {PID: 342, Name: "logrotate"}},
			Devices: []ports.Device{{Name: "eth0", Index: 5, Kind: "veth", Peer: 6, MTU: 1500,
				Up: true, Addrs: []netip.Prefix{net("172.17.0.2/16")}}},
			Listeners: []ports.Listener{{Proto: "tcp", Addr: at("0.0.0.0:80")},
				{Proto: "tcp", Addr: at("0.0.0.0:9090")}}, ListenersKnown: true}},
		Devices: []ports.Device{
			{Name: "eth0", Kind: "device", Up: true, Uplink: true, MTU: 1500,
				Addrs: []netip.Prefix{net("198.18.0.1/24")}},
			{Name: "docker0", Kind: "bridge", Up: true, Docker: true, MTU: 1500,
				Addrs: []netip.Prefix{net("172.17.0.1/16")}},
			{Name: "veth8c1d2e0", Index: 6, Kind: "veth", Peer: 5, Master: "docker0", Up: true,
				MTU: 1500},
		},
		Switches: ports.Switches{Forward4: true, ClientPorts: [2]uint16{32768, 60999}},
		Missing: []ports.Missing{{What: "owners of some sockets",
			Why:    "the kernel shows other users' open files to root only",
			Remedy: "run toll ports as root"}},
	}
}

func judged(f *ports.Facts, port uint16) *ports.Report {
	r := ports.Judge(f, port)
	sentence.FillPorts(r)
	return r
}

// A container to which a route does not apply, because rules single it out, has its own.
func TestPortOfASingledOutContainer(t *testing.T) {
	f := somePorts()
	f.Space, f.Containers[0].Space = "net:[1]", "net:[2]"
	net := netip.MustParsePrefix("172.17.0.3/16")
	f.Containers = append(f.Containers, ports.Container{ID: "app", Name: "app", PID: 400,
		State: "running", Space: "net:[3]", Networks: []string{"bridge"}, Addrs: []netip.Addr{net.Addr()},
		Devices: []ports.Device{{Name: "eth0", Index: 7, Kind: "veth", Peer: 8, Up: true,
			Addrs: []netip.Prefix{net}}}})
	f.Devices = append(f.Devices, ports.Device{Name: "veth2", Index: 8, Kind: "veth", Peer: 7,
		Master: "docker0", Up: true})
	isolated := func(on byte) []byte { return []byte{5, 0, unix.IFLA_BRPORT_ISOLATED, 0, on, 0, 0, 0} }
	inside := func(id string, index, port int) replica.Space {
		return replica.Space{ID: id, Links: []link.Saved{{Name: "eth0", Index: index, Kind: "veth",
			Parent: port}}}
	}
	m := &replica.Machine{Spaces: []replica.Space{{ID: f.Space, Links: []link.Saved{
		{Name: "docker0", Index: 3, Kind: "bridge"},
		{Name: "veth8c1d2e0", Index: 6, Kind: "veth", Master: 3, Parent: 5, ParentSpace: 1,
			Slave: isolated(0)},
		{Name: "veth2", Index: 8, Kind: "veth", Master: 3, Parent: 7, ParentSpace: 2,
			Slave: isolated(1)}}},
		inside("net:[2]", 5, 6), inside("net:[3]", 7, 8)}}
	c := ports.NewCopy(f, m, 9090)
	server := slices.IndexFunc(c.Sockets, func(s replica.Socket) bool {
		return s.Space == 1 && s.Addr.Port() == 9090
	})
	answers := func(all []replica.Dial) (out []replica.Answer) {
		for _, q := range all {
			o := replica.Outcome{Got: replica.Connected, Socket: server}
			a := replica.Answer{Steps: []replica.Step{{Src: q.To, Dst: q.To}}}
			switch {
			case q.To.Addr() != f.Containers[0].Addrs[0]:
				o = replica.Outcome{Got: replica.Refused, Socket: -1}
			case q.Space == 2:
				o = replica.Outcome{Got: replica.Timeout, Socket: -1}
				a.Lost = &replica.Lost{Why: replica.Untraced}
			}
			a.Outcomes = []replica.Outcome{o}
			out = append(out, a)
		}
		return out
	}
	c.Take(answers(c.Dials()))
	c.Take(answers(c.Themselves()))
	text := written(t, "table", Ports(judged(f, 9090), true), format.Options{})
	for _, want := range []string{"    does not apply to container app: blocked",
		"  container app: blocked"} {
		if !testgolden.HasLine(text, want) {
			t.Errorf("no line %q in %q", want, text)
		}
	}
}

func pricedPorts() *ports.Report {
	priced := judged(somePorts(), 0)
	priced.Costs = &ports.Costs{File: "run.jsonl", Baseline: "host",
		Lacks: []string{"publish-nat from remote"}}
	p := priced.Ports[2].Paths[ports.Loopback]
	p.Cost = []ports.Cost{{Mode: "publish-proxy", Load: "rr", Metric: "latency_p50", Ratio: 1.4,
		Text: "140 % (130–150)", Verdict: "worse"}}
	priced.Ports[2].Paths[ports.Loopback] = p
	return priced
}

func TestPorts(t *testing.T) {
	one := judged(somePorts(), 8080)
	one.Checks = []ports.Check{
		{Client: ports.Loopback, Dial: "127.0.0.1:8080", Got: "connected", Elapsed: 0.0003,
			Expected: ports.ByProxy, Agrees: true},
		{Client: ports.OwnAddr, Dial: "198.18.0.1:8080", Got: "timeout", Elapsed: 1,
			Expected: ports.ByNAT},
		{Client: ports.Loopback6, Dial: "[::1]:8080", Got: "closed",
			Detail: "accepted, then closed at once", Elapsed: 0.0005, Expected: ports.Nothing,
			Agrees: true},
	}
	for name, r := range map[string]*ports.Report{"ports.txt": pricedPorts(), "port.txt": one,
		"port-inside.txt": judged(somePorts(), 9090),
		"port-nobody.txt": judged(somePorts(), 4),
		"ports-none.txt":  judged(&ports.Facts{}, 0)} {
		for _, details := range []bool{true, false} {
			if !details && r.Port == 0 {
				continue
			}
			name := name
			if !details {
				name = "brief-" + name
			}
			b := written(t, "table", Ports(r, details), format.Options{})
			whole(t, Ports(r, details), b)
			golden(t, name, b)
			for line := range strings.Lines(b) {
				if w := ansi.StringWidth(strings.TrimRight(line, "\n")); w > format.DefaultWidth {
					t.Errorf("%s: %d columns: %s", name, w, line)
				}
			}
		}
	}
}

// dialled has the dials of a copy: a folded range, one row whose dials differ, a random choice, a
// loss by a rule and an unknown outcome.
func dialled(port uint16) *ports.Report {
	r := &ports.Report{Port: port, Address: []string{"192.0.2.10", "198.51.100.10"},
		Traps: []ports.Trap{{Code: ports.ProxyLoad, Text: "a text", Evidence: "a fact",
			Remedy: "a remedy"}}}
	dial := func(c ports.Client, kind ports.PathKind, to string, server string) ports.Path {
		p := ports.Path{Client: c, Kind: kind, Dial: to, Source: to[:strings.LastIndex(to, ":")],
			Hops: []ports.Hop{}}
		switch c {
		case ports.Neighbour:
			p.From, p.Source = "a container on shop_default", "172.18.0.9"
			p.Hops = append(p.Hops, ports.Hop{Kind: "bridge", Text: "br-shop"})
		case ports.Remote:
			p.From, p.Source = "a machine behind eth0", "192.0.2.99"
			p.Hops = append(p.Hops, ports.Hop{Kind: "wire", Text: "eth0"})
		}
		p.Seen = p.Source
		if kind == ports.ByNAT {
			p.Hops = append(p.Hops, ports.Hop{Kind: "DNAT", Text: "to " + server})
		}
		if p.Answers() {
			p.Hops = append(p.Hops, ports.Hop{Kind: "server", Text: "listens on " + server})
		}
		return p
	}
	add := func(row ports.Row, dials ...ports.Path) {
		row.Paths, row.Dials = map[ports.Client]ports.Path{}, dials
		for _, d := range dials {
			if _, has := row.Paths[d.Client]; !has {
				row.Paths[d.Client] = d
			}
		}
		if port == 0 || row.Port == port {
			r.Ports = append(r.Ports, row)
		}
	}
	sshd := ports.Row{Port: 22, Proto: "tcp", Family: "both", Address: "*",
		Server: ports.Server{Kind: "process", Name: "sshd", PID: 300},
		Holder: ports.Holder{Kind: "server", PID: 300}}
	second := dial(ports.Remote, ports.Blocked, "198.51.100.10:22", "")
	second.From, second.Source = "a machine behind eth1", "198.51.100.99"
	second.Hops[0].Text = "eth1"
	second.Why.Words = "answered, but the answer is lost in this machine: the answer to " +
		"198.51.100.99 leaves by eth0, not as the packet came"
	second.Block = &ports.Block{Where: "this machine", Reply: true}
	second.Remedy = "sudo ip rule add pref 1 to 198.51.100.0/24 lookup main (tried in a copy)"
	first := dial(ports.Remote, ports.Direct, "192.0.2.10:22", "*:22")
	first.Depends = []string{"a machine behind eth1: blocked"}
	add(sshd, dial(ports.Loopback, ports.Direct, "127.0.0.1:22", "*:22"),
		dial(ports.OwnAddr, ports.Direct, "192.0.2.10:22", "*:22"),
		dial(ports.OwnAddr, ports.Direct, "198.51.100.10:22", "*:22"),
		dial(ports.Neighbour, ports.Direct, "192.0.2.10:22", "*:22"),
		first, second)
	for p := uint16(3000); p <= 3350; p++ {
		at := fmt.Sprintf("172.18.0.2:%d", p)
		row := ports.Row{Port: p, Proto: "tcp", Family: "ipv4", Address: "0.0.0.0",
			Server: ports.Server{Kind: "container", Name: "media", Port: p, PID: 900, ID: "m",
				Image: "registry.example.org/media/server:2026.11"},
			Holder: ports.Holder{Kind: "docker-proxy", PID: 1000 + int(p)}}
		local := dial(ports.Loopback, ports.ByProxy, fmt.Sprintf("127.0.0.1:%d", p), at)
		local.Masqueraded, local.Seen = true, "172.18.0.1"
		lost := dial(ports.Remote, ports.Blocked, fmt.Sprintf("192.0.2.10:%d", p), at)
		lost.Block = &ports.Block{Where: "this machine", Chain: "DOCKER-USER"}
		lost.Why.Words = "dropped by filter DOCKER-USER rule 1: " +
			"-A DOCKER-USER -i eth0 -p tcp -m tcp --dport 3000:3350 -j DROP"
		lost.Remedy = "sudo iptables -I DOCKER-USER -i eth0 -p tcp --dport 3000:3350 -j ACCEPT"
		add(row, local, dial(ports.OwnAddr, ports.ByNAT, fmt.Sprintf("192.0.2.10:%d", p), at),
			dial(ports.Neighbour, ports.ByNAT, fmt.Sprintf("192.0.2.10:%d", p), at), lost)
		r.Traps[0].Ports = append(r.Traps[0].Ports, portName(row))
		row.Family, row.Address, row.Holder.PID = "ipv6", "::", 2000+int(p)
		local = dial(ports.Loopback6, ports.ByProxy, fmt.Sprintf("[::1]:%d", p), at)
		local.Masqueraded, local.Seen = true, "172.18.0.1"
		add(row, local)
	}
	node := ports.Row{Port: 30080, Proto: "tcp", Family: "ipv4", Address: "0.0.0.0",
		Server: ports.Server{Kind: "container", Name: "echo-7d9", Port: 8080, PID: 901},
		Holder: ports.Holder{Kind: "rules"}}
	random := dial(ports.Remote, ports.ByNAT, "192.0.2.10:30080", "10.42.0.7:8080")
	random.Servers = []string{"echo-7d9:8080", "echo-x2k:8080", "echo-p0q:8080"}
	odd := dial(ports.OwnAddr, ports.Nothing, "192.0.2.10:30080", "")
	odd.Why.Words = "nothing listens on port 30080"
	odd.Doubt = []ports.Reason{{Words: "the BPF program cil_from_netdev at eth0 may redirect it"}}
	add(node, random, odd)
	inside := ports.Inside{Proto: "tcp", Server: ports.Server{Kind: "container", Name: "db",
		Image: "postgres:17"}, Networks: []string{"shop_default"},
		Paths: map[ports.Client]ports.Path{
			ports.OwnAddr: {Kind: ports.Direct}, ports.Neighbour: {Kind: ports.Direct}}}
	for p := uint16(5432); p < 5436; p++ {
		inside.Port, inside.Server.Port, inside.Dial = p, p, fmt.Sprintf("172.18.0.3:%d", p)
		if port == 0 || port == p {
			r.Inside = append(r.Inside, inside)
		}
	}
	return r
}

func TestPortsDialled(t *testing.T) {
	for _, x := range []struct {
		name  string
		port  uint16
		width int
	}{{"ports-dialled.txt", 0, 100}, {"", 0, 80}, {"", 0, 60},
		{"port-blocked.txt", 3007, 80}, {"port-differs.txt", 22, 80},
		{"port-random.txt", 30080, 80}} {
		r := dialled(x.port)
		if x.port == 22 {
			r.Answer = &analysis.Answer{Question: "What is reached from where?", Text: []string{
				"Other machines reach 1 port: 22/tcp (sshd).",
				"From a machine behind eth1, 22/tcp is blocked: the answer leaves by eth0.\n" +
					"Two commands together admit them (tried in a copy):\n" +
					"sudo iptables -I INPUT -d 198.51.100.10 -i eth1 -p tcp --dport 22 -m " +
					"comment -j ACCEPT\n" +
					"sudo ip rule add pref 1 from 198.51.100.10 lookup main\n" +
					"They also open 22/tcp to containers, of the clients tried.\n" +
					"They also close 80/tcp to this machine, of the clients tried.",
				"Only containers reach 23/tcp."}}
		}
		if r.Port != 0 && x.name != "" {
			brief := Ports(r, false)
			b := written(t, "table", brief, format.Options{Width: x.width})
			whole(t, brief, b)
			golden(t, "brief-"+x.name, b)
		}
		d := Ports(r, true)
		b := written(t, "table", d, format.Options{Width: x.width})
		whole(t, d, b)
		if x.name != "" {
			golden(t, x.name, b)
		}
		for line := range strings.Lines(b) {
			if w := ansi.StringWidth(strings.TrimRight(line, "\n")); w > x.width {
				t.Errorf("port %d, %d columns: %s", x.port, w, line)
			}
		}
	}
}

func TestReasonsKeepPortsAndClientsTogether(t *testing.T) {
	lost := func(c ports.Client) ports.Path {
		return ports.Path{Client: c, Kind: ports.Blocked, Why: ports.Reason{Words: "dropped"},
			Block: &ports.Block{}}
	}
	r := &ports.Report{Ports: []ports.Row{
		{Port: 80, Proto: "tcp", Dials: []ports.Path{lost(ports.Neighbour)}},
		{Port: 81, Proto: "tcp", Dials: []ports.Path{lost(ports.Neighbour), lost(ports.Remote)}},
		{Port: 82, Proto: "tcp", Dials: []ports.Path{lost(ports.Neighbour)}},
	}}
	if got, want := written(t, "table", document.Document{Sections: reasons(r)},
		format.Options{}), "Why\n  80/tcp 82/tcp from a container: blocked, dropped\n  81/tcp "+
		"from a "+
		"container or another machine: blocked, dropped\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A route says once which address the server sees.
func TestBriefRouteOfMasqueraded(t *testing.T) {
	hairpin := ports.Path{Client: ports.Neighbour, Kind: ports.Hairpin, Dial: "192.0.2.10:8080",
		Source: "172.17.0.9", Seen: "172.17.0.1", Masqueraded: true,
		Hops: []ports.Hop{{Kind: "DNAT", Text: "to 172.17.0.2:80"},
			{Kind: "MASQ", Text: "the server sees 172.17.0.1"},
			{Kind: "server", Text: "web listens on 172.17.0.2:80"}}}
	proxied := hairpin
	proxied.Kind, proxied.Hops = ports.ByProxy, proxied.Hops[2:]
	for want, p := range map[string]ports.Path{
		"connects to 192.0.2.10:8080 → DNAT to 172.17.0.2:80 → MASQ the server sees 172.17.0.1 → web " +
			"listens on 172.17.0.2:80": hairpin,
		"connects to 192.0.2.10:8080 → web listens on 172.17.0.2:80; it sees 172.17.0.1, not the " +
			"client's address": proxied,
	} {
		got := (&drawn{}).routes([]dial{{p.Client, p}}, "a container").Blocks
		if len(got) != 2 || got[1].(document.Paragraph).Text.String() != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
}

// The server may see the address of one client of this machine and not that of another.
func TestKindText(t *testing.T) {
	doubt := []ports.Reason{{Code: ports.Untried}}
	for _, x := range []struct {
		path ports.Path
		want string
	}{
		{ports.Path{Kind: ports.Unknown, Doubt: doubt}, "?"},
		{ports.Path{Kind: ports.Unknown, Tried: "connected", Doubt: doubt}, "accepted"},
		{ports.Path{Kind: ports.Unknown, Tried: "closed", Doubt: doubt}, "closed"},
		{ports.Path{Kind: ports.ByProxy, Tried: "connected", Doubt: doubt}, "proxy?"},
		{ports.Path{Kind: ports.Nothing, Tried: "refused"}, "nothing"},
	} {
		if got := kindText(x.path); got != x.want {
			t.Errorf("%+v: %q, want %q", x.path, got, x.want)
		}
	}
}

func TestRoutesKeepSeenAddressesApart(t *testing.T) {
	dial := func(source, seen string) ports.Path {
		return ports.Path{Client: ports.OwnAddr, Kind: ports.ByNAT, Dial: source + ":8080",
			Source: source, Seen: seen, Hops: []ports.Hop{}}
	}
	r := &ports.Report{Port: 8080, Ports: []ports.Row{{Port: 8080, Proto: "tcp",
		Dials: []ports.Path{dial("192.0.2.10", "192.0.2.10"), dial("172.17.0.1", "192.0.2.10"),
			dial("172.18.0.1", "192.0.2.10")}}}}
	if got, want := written(t, "table", document.Document{Sections: explain(r, true)},
		format.Options{}), "8080/tcp on : served by -\n  this machine, dialling 192.0.2.10: "+
		"DNAT\n    "+
		"client  connects to 192.0.2.10:8080\n    The server sees the client's "+
		"address.\n  this machine, dialling 172.17.0.1 or 172.18.0.1: DNAT\n    client  "+
		"connects to 172.17.0.1:8080 or 172.18.0.1:8080\n    The server sees 192.0.2.10 "+
		"instead of the client's address.\n\nTried each route by connecting in a private "+
		"copy of this machine's network.\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestExpectationsAsJUnit(t *testing.T) {
	r := &ports.Report{Expected: []ports.Expectation{{Line: "this machine reaches 22/tcp",
		Holds: ports.Yes}, {Line: "other machines reach no port", Holds: ports.No,
		Because: ports.Reason{Words: "one does"}},
		{Line: "containers reach 53/udp", Holds: ports.Maybe,
			Because: ports.Reason{Words: "it is not known"}}}}
	b := written(t, "junit", Ports(r, true), format.Options{})
	for _, want := range []string{"  <testsuite name=\"toll ports\" tests=\"3\" " +
		"failures=\"1\" errors=\"0\" skipped=\"1\">",
		`      <failure message="one does"></failure>`,
		`      <skipped message="it is not known"></skipped>`} {
		if !testgolden.HasLine(b, want) {
			t.Errorf("no %s in\n%s", want, b)
		}
	}
}

// TestTraceNamed checks that the command that traces is named where this user may run it.
func TestTraceNamed(t *testing.T) {
	r := &ports.Report{TraceServer: "sudo toll trace direct=172.17.0.2:80"}
	if got := measure(r, true); len(got) != 2 || got[1].(document.Command).Line != r.TraceServer {
		t.Errorf("%+v", got)
	}
	r.Ports = []ports.Row{{Dials: []ports.Path{{Doubt: []ports.Reason{{Code: ports.Untried}}}}}}
	if got := measure(r, true); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// Addresses at which no socket listens are one line, whoever dials them.
func TestUnservedAddressesAreOneLine(t *testing.T) {
	nothing := func(client ports.Client, at, place string) ports.Path {
		return ports.Path{Client: client, Kind: ports.Nothing, Dial: at, From: place,
			Why: ports.Reason{Code: ports.NoSocket, At: at, Words: "no socket listens on " + at}}
	}
	blocked := nothing(ports.Remote, "10.0.0.1:80", "a machine at eth0")
	blocked.Why.Code, blocked.Kind = ports.Lost, ports.Blocked
	row := ports.Row{Dials: []ports.Path{nothing(ports.OwnAddr, "192.0.2.1:80", ""),
		nothing(ports.Neighbour, "192.0.2.1:80", "a container on br0"),
		nothing(ports.Neighbour, "10.0.0.1:80", "a container on br0"), blocked}}
	groups := alike(slices.Collect(dialsOf(row)))
	if len(groups) != 2 || len(groups[0]) != 3 {
		t.Fatalf("%v", groups)
	}
	got := (&drawn{}).routes(groups[0], clientsText(groups[0], "")).Blocks
	const want = "this machine, dialling its own address; a container on br0: nothing, no socket " +
		"listens on 192.0.2.1:80 or 10.0.0.1:80"
	if len(got) != 1 || got[0].(document.Paragraph).Text.String() != want {
		t.Errorf("%v", got)
	}
}

// What the answer and earlier routes say is not repeated.
func TestRoutesAreDrawnOnce(t *testing.T) {
	end := []ports.Hop{{Kind: "bridge", Text: "br0"}, {Kind: "veth", Text: "the container's eth0"},
		{Kind: "server", Text: "web listens on 172.20.0.2:80"}}
	path := func(c ports.Client, kind ports.PathKind, hops ...ports.Hop) ports.Path {
		return ports.Path{Client: c, Kind: kind, Dial: "192.0.2.10:8080", Hops: hops}
	}
	const rule, command = "dropped by filter INPUT rule 1: -A INPUT -j DROP", "sudo iptables -D INPUT 1"
	lost := path(ports.Remote, ports.Blocked, ports.Hop{Kind: "DNAT", Text: "to 172.20.0.2:80"})
	lost.Block, lost.Why.Words = &ports.Block{}, "DNAT to 172.20.0.2:80, then "+rule
	lost.Trial = &ports.Trial{Commands: []ports.Command{{Text: command}}}
	lost.Remedy = command + " (tried in a copy)"
	r := &ports.Report{Port: 8080, Ports: []ports.Row{{Port: 8080, Proto: "tcp", Dials: []ports.Path{
		path(ports.Loopback, ports.ByProxy, append([]ports.Hop{{Kind: "proxy", Text: "1"}}, end...)...),
		path(ports.OwnAddr, ports.ByNAT, append([]ports.Hop{{Kind: "DNAT", Text: "to it"}}, end...)...),
		lost}}},
		Answer: &analysis.Answer{Text: []string{"It is " + rule + ". This admits them:\n" + command}}}
	got := fmt.Sprint(explain(r, true))
	for text, n := range map[string]int{"br0, and on as above": 1, "web listens on": 1, rule: 0,
		"dropped by filter INPUT rule 1": 1, command: 0} {
		if strings.Count(got, text) != n {
			t.Errorf("%q is not %d times in %s", text, n, got)
		}
	}
	r.Answer = nil
	for text, n := range map[string]int{rule: 1, command: 1} {
		if got = fmt.Sprint(explain(r, true)); strings.Count(got, text) != n {
			t.Errorf("without an answer: %q is not %d times in %s", text, n, got)
		}
	}
}
