package ports

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

func addr(s string) netip.Addr         { return netip.MustParseAddr(s) }
func addrPort(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

const (
	proxyPID, serverPID, webPID = 264, 300, 305
	webID                       = "4c357c4cf6ba95a34db253871e120158ca5e105d1a084c3353e392c400fa0975"
)

func healthy() *Facts {
	lan6 := addr("fd00::2")
	return &Facts{
		Listeners: []Listener{
			{Proto: "tcp", Addr: addrPort("0.0.0.0:22"), Inode: 1,
				Owners: []Process{{PID: serverPID, Name: "sshd"}}},
			{Proto: "tcp", Addr: addrPort("0.0.0.0:8080"), Inode: 2,
				Owners: []Process{{PID: proxyPID, Name: "docker-proxy"}}},
			{Proto: "tcp", Addr: addrPort("[::]:8080"), Inode: 3, V6Only: true,
				Owners: []Process{{PID: proxyPID + 1, Name: "docker-proxy"}}},
		},
		Proxies: []Proxy{
			{PID: proxyPID, Proto: "tcp", Host: addrPort("0.0.0.0:8080"),
				Container: addrPort("172.17.0.2:80")},
			{PID: proxyPID + 1, Proto: "tcp", Host: addrPort("[::]:8080"),
				Container: netip.AddrPortFrom(lan6, 80)},
		},
		Containers: []Container{{ID: webID, Name: "web", Image: "nginx", PID: webPID,
			State: "running", Space: "net:[2]", Networks: []string{"bridge"},
			Addrs: []netip.Addr{addr("172.17.0.2"), lan6},
			Published: []Published{{"tcp", 80, addrPort("0.0.0.0:8080")},
				{"tcp", 80, addrPort("[::]:8080")}},
			Listeners: []Listener{{Proto: "tcp", Addr: addrPort("[::]:80"), Inode: 9,
				Owners: []Process{{PID: webPID, Name: "nginx", Container: webID}}}},
			ListenersKnown: true,
			Devices: []Device{{Name: "eth0", Index: 5, Kind: "veth", MTU: 1500, Up: true,
				Peer: 6, Addrs: []netip.Prefix{netip.MustParsePrefix("172.17.0.2/16"),
					netip.MustParsePrefix("fd00::2/64")}}},
		}},
		Devices: []Device{
			{Name: "lo", Index: 1, Kind: "loopback", MTU: 65536, Up: true,
				Addrs: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8"),
					netip.MustParsePrefix("::1/128")}},
			{Name: "eth0", Index: 2, Kind: "device", MTU: 1500, Up: true, Uplink: true,
				Addrs: []netip.Prefix{netip.MustParsePrefix("198.18.0.1/24")}},
			{Name: "docker0", Index: 3, Kind: "bridge", MTU: 1500, Up: true, Docker: true,
				Addrs: []netip.Prefix{netip.MustParsePrefix("172.17.0.1/16")}},
			{Name: "veth1", Index: 6, Kind: "veth", MTU: 1500, Up: true, Master: "docker0",
				Peer: 5},
		},
		Space:    "net:[1]",
		Switches: Switches{Forward4: true},
		Known:    Known{Owners: true, Flows: true},
		Docker:   "28.5.2", Tracked: 100, TrackedMax: 262144,
	}
}

func routes(r Row) string {
	var out []string
	for _, c := range clients {
		w := string(r.Paths[c].Kind)
		if len(r.Paths[c].Doubt) > 0 {
			w += "?"
		}
		out = append(out, w)
	}
	return strings.Join(out, " ")
}

func find(t *testing.T, r *Report, address string, port uint16) Row {
	t.Helper()
	for _, row := range r.Ports {
		if row.Address == address && row.Port == port {
			return row
		}
	}
	t.Fatalf("no %s port %d in %+v", address, port, r.Ports)
	return Row{}
}

func TestHealthy(t *testing.T) {
	r := try(healthy(), 0, nil)
	if len(r.Traps) > 0 {
		t.Errorf("%+v", r.Traps)
	}
	for _, c := range []struct {
		address string
		port    uint16
		server  string
		holder  string
		routes  string
	}{
		{"0.0.0.0", 22, "process sshd", "server", "direct  direct direct direct"},
		{"0.0.0.0", 8080, "container web", "docker-proxy", "proxy  DNAT proxy DNAT"},
		{"::", 8080, "container web", "docker-proxy", " proxy   "},
	} {
		row := find(t, r, c.address, c.port)
		if got := row.Server.Kind + " " + row.Server.Name; got != c.server ||
			row.Holder.Kind != c.holder || routes(row) != c.routes {
			t.Errorf("%s %d: %s, %s, %q", c.address, c.port, got, row.Holder.Kind, routes(row))
		}
	}
}

// docker-proxy gets no answer to a datagram for which nothing listens, so the client gets none.
func TestDatagramsToNobody(t *testing.T) {
	for _, known := range []bool{true, false} {
		f := healthy()
		udpPublished(f)
		f.Containers[0].Listeners, f.Containers[0].ListenersKnown = nil, known
		r := try(f, 8080, func(q replica.Dial, a *replica.Answer) {
			if !q.To.Addr().IsLoopback() {
				return
			}
			a.Outcomes = []replica.Outcome{{Got: replica.Timeout, Socket: -1, Source: q.Source}}
			if q.Explain {
				a.Steps = []replica.Step{{Src: addrPort("127.0.0.1:33003"), Dst: q.To},
					{Src: addrPort("172.17.0.1:40000"), Dst: addrPort("172.17.0.2:80")}}
			}
		})
		kind, why := Nothing, "nobody-behind web proxy 172.17.0.2:80"
		if !known {
			kind, why = Blocked, "no-answer docker-proxy 172.17.0.2:80"
		}
		p := find(t, r, "0.0.0.0", 8080).Paths[Loopback]
		var hops []string
		for _, h := range p.Hops {
			hops = append(hops, h.Kind)
		}
		if p.Kind != kind || p.Why.Words != why || !slices.Contains(hops, "proxy") ||
			slices.Contains(hops, "DNAT") {
			t.Errorf("listeners known: %v: %s, %q, %v", known, p.Kind, p.Why.Words, hops)
		}
	}
}

// Rules may drop a datagram after DNAT, so it never gets to docker-proxy.
func TestDatagramsLostAfterDNAT(t *testing.T) {
	const inner = "172.17.0.2:80"
	dropped := replica.Lost{Rule: rule("ip filter", "FORWARD", 2, "-A FORWARD -j DROP"),
		Dst: addrPort(inner)}
	came := dropped
	came.Device = "docker0"
	arrived := replica.Step{Device: "docker0", Src: addrPort("172.17.0.9:33003"),
		Dst: addrPort("198.18.0.1:8080")}
	for name, c := range map[string]struct {
		steps []replica.Step
		lost  replica.Lost
		proxy bool
	}{
		"forwarded":     {[]replica.Step{arrived}, came, false},
		"its own, here": {nil, dropped, false},
		"masqueraded": {[]replica.Step{arrived, {Space: 1, Device: "eth0",
			Src: addrPort("172.17.0.1:33003"), Dst: addrPort(inner)}},
			replica.Lost{Space: 1, Why: replica.Untraced}, false},
		"the proxy's": {[]replica.Step{arrived}, dropped, true},
		"the proxy's, in the container": {[]replica.Step{arrived, {Space: 1, Device: "eth0",
			Src: addrPort("172.17.0.1:40000"), Dst: addrPort(inner)}},
			replica.Lost{Space: 1, Why: replica.Untraced}, true},
	} {
		f := healthy()
		udpPublished(f)
		r := try(f, 8080, func(q replica.Dial, a *replica.Answer) {
			if q.Bridge != "" && q.Proto == "udp" {
				lose(q, a, c.lost)
				a.Steps = c.steps
			}
		})
		p := find(t, r, "0.0.0.0", 8080).Paths[Neighbour]
		if p.Kind != Blocked || (p.Why.By == "docker-proxy") != c.proxy ||
			slices.ContainsFunc(p.Hops, func(h Hop) bool { return h.Kind == "proxy" }) != c.proxy {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

func TestRoutes(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Facts)
		answer change
		want   string
	}{
		"proxy off": {proxyOff, nil, "DNAT  DNAT hairpin DNAT"},
		"proxy off, no br_netfilter": {proxyOff, losing("container", replica.Lost{
			Reply: true, Why: replica.ReplyUnnatted}), "DNAT  DNAT blocked DNAT"},
		"proxy off, no route_localnet": {proxyOff, losing("127.0.0.1", replica.Lost{
			Why: replica.Localnet, Device: "docker0"}), "blocked  DNAT hairpin DNAT"},
		"nothing listens in it": {func(f *Facts) { f.Containers[0].Listeners = nil }, nil,
			"nothing  nothing nothing nothing"},
		"listens on its loopback": {func(f *Facts) {
			f.Containers[0].Listeners[0].Addr = addrPort("127.0.0.1:80")
		}, nil, "nothing  nothing nothing nothing"},
		"firewall": {nil, losing("machine container", replica.Lost{
			Rule: rule("ip filter", "INPUT", 0, "")}), "proxy  DNAT blocked blocked"},
		"a rule that cannot be copied": {nil, func(q replica.Dial, a *replica.Answer) {
			a.Unsure = []string{"-A INPUT -m owner --uid-owner 7 -j DROP"}
		}, "proxy?  DNAT? proxy? DNAT?"},
		"rules flushed, proxy off": {proxyOff, func(q replica.Dial, a *replica.Answer) {
			a.Outcomes[0].Socket = 1
		}, "held  held held held"},
		"docker-proxy is started when needed": {proxyOff, func(q replica.Dial,
			a *replica.Answer) {
			if q.To.Addr().IsLoopback() || q.Bridge != "" {
				a.Outcomes[0].Socket = 1
			}
		}, "proxy?  DNAT proxy? DNAT"},
		"the container's own filter": {nil, func(q replica.Dial, a *replica.Answer) {
			o := &a.Outcomes[0]
			o.Got = replica.Timeout
			if len(o.Relays) > 0 {
				o.Got = replica.Silent
			}
			if q.Explain {
				a.Lost = &replica.Lost{Space: 1, Rule: rule("ip filter", "INPUT", 3, "")}
			}
		}, "held  blocked held blocked"},
		"no copy": {func(f *Facts) { f.Space = "" }, nil, "proxy?  DNAT? proxy? DNAT?"},
	} {
		f := healthy()
		if c.change != nil {
			c.change(f)
		}
		r := Judge(f, 0)
		if f.Space != "" {
			r = try(f, 0, c.answer)
		}
		if got := routes(find(t, r, "0.0.0.0", 8080)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func proxyOff(f *Facts) {
	f.Proxies = nil
	f.Listeners[1].Owners = []Process{{PID: 1, Name: "dockerd"}}
	f.Listeners = f.Listeners[:2]
	f.Containers[0].Published = f.Containers[0].Published[:1]
	f.Switches.BridgeNF = true
}

// Where IPv6 is turned off, lo has no ::1, which a socket of both families would have.
func TestNoLoopback6(t *testing.T) {
	f := healthy()
	f.Devices[0].Addrs = f.Devices[0].Addrs[:1]
	for name, r := range map[string]*Report{"supposed": Judge(f, 8080), "in a copy": try(f, 8080)} {
		paths := find(t, r, "::", 8080).Paths
		if p, ok := paths[Loopback6]; ok {
			t.Errorf("%s: %+v", name, p)
		}
		if _, ok := find(t, r, "0.0.0.0", 8080).Paths[Loopback]; !ok {
			t.Errorf("%s: 127.0.0.1 is not dialled", name)
		}
	}
	f.Listeners, f.Proxies = f.Listeners[:2], f.Proxies[:1]
	if traps := try(f, 8080).Traps; len(traps) > 0 {
		t.Errorf("%+v", traps)
	}
	f = healthy()
	f.Listeners, f.Proxies = f.Listeners[:2], f.Proxies[:1]
	if traps := try(f, 8080).Traps; len(traps) != 1 || traps[0].Code != Loopback6Nothing {
		t.Errorf("with ::1: %+v", traps)
	}
}

// TestContained has the network of a container, which a machine that is not known is around.
func TestContained(t *testing.T) {
	f := healthy()
	f.Contained = "Docker"
	around := func(r Reason) bool { return r.Code == AroundIt && r.Of == "Docker" }
	doubts := func(paths map[Client]Path, dials []Path) (out []Client) {
		for _, p := range append(slices.Collect(maps.Values(paths)), dials...) {
			if slices.ContainsFunc(p.Doubt, around) {
				out = once(out, p.Client)
			}
		}
		return out
	}
	r := try(f, 8080)
	row := find(t, r, "0.0.0.0", 8080)
	if got := doubts(row.Paths, row.Dials); !slices.Equal(got, []Client{Remote}) {
		t.Errorf("in doubt: %v", got)
	}
	if in := try(f, 80).Inside[0]; !slices.Equal(doubts(in.Paths, in.Dials), []Client{Remote}) {
		t.Errorf("inside: %v", in.Dials)
	}
	lost := try(f, 8080, losing("machine", replica.Lost{Why: replica.Localnet}))
	if row = find(t, lost, "0.0.0.0", 8080); row.Paths[Remote].Kind != Blocked ||
		doubts(row.Paths, row.Dials) != nil {
		t.Errorf("what the container itself drops is in doubt: %+v", row.Paths)
	}
}

// route_localnet has no effect on ::1.
func TestLoopback6ByNAT(t *testing.T) {
	f := healthy()
	f.Proxies = f.Proxies[:1]
	f.Listeners[2].Owners = []Process{{PID: 1, Name: "dockerd"}}
	for reply, want := range map[bool]LossCode{false: Loopback6Out, true: Loopback6In} {
		r := try(f, 8080, losing("::1", replica.Lost{Why: replica.Localnet, Device: "docker0",
			Reply: reply}))
		if got := find(t, r, "::", 8080).Paths[Loopback6]; got.Kind != Blocked {
			t.Errorf("%+v", got)
		}
		if len(r.Traps) != 1 || r.Traps[0].Code != Loopback6Nothing ||
			r.Traps[0].seen[0].why.Lost.Code != want {
			t.Errorf("%+v", r.Traps)
		}
	}
}

// A port that only rules serve is found by a scan, or if it is requested.
func TestRulesOnly(t *testing.T) {
	for _, port := range []uint16{0, 8080} {
		f := healthy()
		f.Listeners, f.Proxies, f.Containers[0].Published = f.Listeners[:1], nil, nil
		redirect := func(q replica.Dial, a *replica.Answer) {
			if q.To == addrPort("198.18.0.1:8080") && q.Card != "" {
				*a = answer(1, q, "172.17.0.2:80")
			}
		}
		r := try(f, port, redirect)
		row := find(t, r, "0.0.0.0", 8080)
		if row.Holder.Kind != "rules" || row.Server.Name != "web" || row.Server.Port != 80 ||
			routes(row) != "nothing  nothing nothing DNAT" || r.Served() != (port == 0) {
			t.Errorf("port %d: %q %+v", port, routes(row), row.Server)
		}
	}
	f := healthy()
	if r := try(f, 8081, nil); len(r.Ports) != 0 || r.Served() {
		t.Errorf("%+v", r)
	}
}

func TestDockerdItself(t *testing.T) {
	f := healthy()
	f.Listeners = append(f.Listeners, Listener{
		Proto: "tcp", Addr: addrPort("0.0.0.0:2375"), Inode: 7,
		Owners: []Process{{PID: 1, Name: "dockerd"}}},
		Listener{Proto: "tcp", Addr: addrPort("0.0.0.0:9323"), Inode: 8,
			Owners: []Process{{PID: 1, Name: "dockerd"}}})
	for docker, want := range map[string]string{"28.5.2": "direct  direct direct direct",
		"": "held?  held? held? held?"} {
		f.Docker = docker
		if got := routes(find(t, try(f, 0, nil), "0.0.0.0", 2375)); got != "direct  direct direct direct" {
			t.Errorf("%q: %q", docker, got)
		}
		if got := routes(find(t, try(f, 0, nil), "0.0.0.0", 9323)); got != want {
			t.Errorf("%q: %q", docker, got)
		}
	}
}

func TestExactAddressWins(t *testing.T) {
	f := healthy()
	f.Listeners = append(f.Listeners, Listener{
		Proto: "tcp", Addr: addrPort("127.0.0.1:22"), Inode: 7,
		Owners: []Process{{PID: 7, Name: "tunnel"}}})
	r := try(f, 22, nil)
	if got := routes(find(t, r, "0.0.0.0", 22)); got != "  direct direct direct" {
		t.Errorf("%q", got)
	}
	if got := routes(find(t, r, "127.0.0.1", 22)); got != "direct    " {
		t.Errorf("%q", got)
	}
}

// Each trap is planted alone, and no other may be found.
func TestTraps(t *testing.T) {
	for _, c := range planted {
		t.Run(c.code, func(t *testing.T) {
			f := healthy()
			c.plant(f)
			r := try(f, 0, plantedAnswers[c.code])
			if len(r.Traps) != 1 || r.Traps[0].Code != c.code {
				t.Fatalf("%+v", r.Traps)
			}
			got := r.Traps[0]
			if all := fmt.Sprint(got.Ports, got.Text, got.Evidence); !strings.Contains(all,
				c.says) || got.Remedy == "" || got.Evidence == "" {
				t.Errorf("%q is not in %+v", c.says, got)
			}
		})
	}
	for _, code := range codes {
		if !slices.ContainsFunc(planted, func(p plant) bool { return p.code == code }) {
			t.Errorf("%s is not planted", code)
		}
	}
}

func TestProxyMemory(t *testing.T) {
	f := healthy()
	f.Proxies[0].Memory, f.Proxies[1].Memory = 4<<20, 3<<20
	f.Connections = []Connection{{Local: addrPort("127.0.0.1:8080"),
		Remote: addrPort("127.0.0.1:50000"), PID: proxyPID},
		{Local: addrPort("172.17.0.1:40000"), Remote: addrPort("172.17.0.2:80"), PID: proxyPID}}
	for port, want := range map[uint16]*Proxies{0: {2, 7 << 20, 1}, 8080: {2, 7 << 20, 1},
		22: nil} {
		r := try(f, port, nil)
		if got := r.Proxies; (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("port %d: %+v, want %+v", port, got, want)
		}
		if port != 22 {
			if h := find(t, r, "0.0.0.0", 8080).Holder; h != (Holder{"docker-proxy", proxyPID,
				4 << 20, 1}) {
				t.Errorf("holder %+v", h)
			}
		}
	}
}

func TestInside(t *testing.T) {
	quiet := func(f *Facts, at string) *Facts {
		f.Containers[0].Listeners = append(f.Containers[0].Listeners,
			Listener{Proto: "tcp", Addr: addrPort(at), Inode: 10,
				Owners: []Process{{PID: webPID, Name: "nginx", Container: webID}}})
		f.Devices = append(f.Devices, Device{
			Name: "br-0123456789ab", Index: 9, Kind: "bridge", Up: true, Docker: true,
			Addrs: []netip.Prefix{netip.MustParsePrefix("172.18.0.1/16")}})
		return f
	}
	for name, c := range map[string]struct {
		at     string
		change func(*Facts)
		answer change
		want   string // for this machine, its network, another network, another machine; "": no row
	}{
		"routed": {"0.0.0.0:9000", nil, nil, "direct direct direct direct?"},
		"isolated": {"0.0.0.0:9000", nil, func(q replica.Dial, a *replica.Answer) {
			if q.Card != "" || q.Bridge == "br-0123456789ab" {
				lose(q, a, replica.Lost{Rule: rule("ip raw", "PREROUTING", 1, "")})
			}
		}, "direct direct blocked blocked"},
		"its own socket": {"127.0.0.11:9000", nil, nil, ""},
		"published":      {"0.0.0.0:80", nil, nil, ""},
		"paused": {"172.17.0.2:9000", func(f *Facts) { f.Containers[0].State = "paused" }, nil,
			"held held held held"},
		"no other network": {"0.0.0.0:9000", func(f *Facts) { f.Devices = f.Devices[:4] }, nil,
			"direct direct  direct?"},
		"another's network": {"0.0.0.0:9000", func(f *Facts) {
			f.Containers[0].Shares = "pod"
		}, nil, ""},
	} {
		f := quiet(healthy(), c.at)
		if c.change != nil {
			c.change(f)
		}
		r := try(f, 0, c.answer)
		got := ""
		if len(r.Inside) > 0 {
			var out []string
			for _, from := range inside {
				w := string(r.Inside[0].Paths[from].Kind)
				if len(r.Inside[0].Paths[from].Doubt) > 0 {
					w += "?"
				}
				out = append(out, w)
			}
			got = strings.Join(out, " ")
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	f := quiet(healthy(), "0.0.0.0:9000")
	if r := try(f, 9000, nil); len(r.Ports) != 0 || len(r.Inside) != 1 || !r.Served() {
		t.Errorf("%+v", r)
	}
}

func TestExposure(t *testing.T) {
	f := healthy()
	f.Listeners = append(f.Listeners, Listener{
		Proto: "tcp", Addr: addrPort("127.0.0.1:631"), Inode: 7,
		Owners: []Process{{PID: 7, Name: "cupsd"}}},
		Listener{Proto: "tcp", Addr: addrPort("[::1]:631"), Inode: 8,
			Owners: []Process{{PID: 7, Name: "cupsd"}}})
	f.Containers[0].Listeners = append(f.Containers[0].Listeners,
		Listener{Proto: "tcp", Addr: addrPort("0.0.0.0:9000"), Inode: 10,
			Owners: []Process{{PID: webPID, Container: webID}}})
	r := try(f, 0, func(q replica.Dial, a *replica.Answer) {
		if q.Card != "" && q.To.Addr() == addr("172.17.0.2") {
			lose(q, a, replica.Lost{Rule: rule("ip filter", "FORWARD", 0, "")})
		}
	})
	var got []string
	for _, x := range r.Exposure {
		got = append(got, fmt.Sprintf("%d %s: %s %v", x.Port, x.Server, x.Reach, x.Dial))
	}
	want := []string{"22 sshd: other machines [198.18.0.1:22]",
		"8080 web:80: other machines [198.18.0.1:8080]",
		"9000 web:9000: containers [172.17.0.2:9000]",
		"631 cupsd: this machine [127.0.0.1:631 [::1]:631]"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	says := []string{"Other machines reach 2 ports: 22/tcp (sshd) and 8080/tcp (web:80).",
		"Containers and this machine reach 1 port more: 9000/tcp (web:9000) at 172.17.0.2:9000.",
		"Only this machine reaches 631/tcp (cupsd)."}
	if !slices.Equal(r.Answer.Text, says) {
		t.Errorf("got  %q\nwant %q", r.Answer.Text, says)
	}
	r = &Report{Ports: []Row{{Port: 7002, Proto: "tcp", Server: Server{Kind: "process", Name: "dns"},
		Dials: []Path{{Client: Neighbour, Kind: ByNAT}, {Client: OwnAddr, Kind: Nothing}}}}}
	r.Exposure = r.exposure()
	if got := r.answer().Text; !slices.Contains(got, "Only containers reach 7002/tcp (dns).") {
		t.Errorf("what this machine does not reach: %q", got)
	}
	if Judge(&Facts{}, 0).Answer != nil {
		t.Error("an answer about nothing")
	}
}

func TestHomes(t *testing.T) {
	f := healthy()
	f.Containers[0].Devices[0].Addrs = []netip.Prefix{netip.MustParsePrefix("172.17.0.2/16")}
	f.Containers = append(f.Containers, Container{Name: "stopped"},
		Container{Name: "app", PID: 9, Host: true, State: "running"},
		Container{Name: "odd", PID: 10, State: "running",
			Devices: []Device{{Name: "eth0", Index: 4, Kind: "veth", Peer: 6},
				{Name: "lo", Kind: "loopback"}}})
	homes := try(f, 0, nil).Containers
	var got []string
	for _, h := range homes {
		line := h.Name + " " + h.Network
		for _, d := range h.Devices {
			line += fmt.Sprint(" ", d.Name, d.Addresses, d.Peer, d.Master)
		}
		got = append(got, line)
	}
	want := []string{"app host", "odd  eth0[]", "web  eth0[172.17.0.2/16]veth1docker0"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
