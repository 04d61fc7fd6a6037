package ports

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/paths/firewall"
)

func addr(s string) netip.Addr         { return netip.MustParseAddr(s) }
func addrPort(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

const (
	withProxy = `*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
:DOCKER - [0:0]
-A FORWARD -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -o docker0 -j DOCKER
-A FORWARD -i docker0 -j ACCEPT
-A DOCKER -d 172.17.0.2/32 ! -i docker0 -o docker0 -p tcp -m tcp --dport 80 -j ACCEPT
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:DOCKER - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A OUTPUT ! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j DOCKER
-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE
-A DOCKER -i docker0 -j RETURN
-A DOCKER ! -i docker0 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 172.17.0.2:80
COMMIT
`
	withoutProxy = `*filter
:FORWARD DROP [0:0]
-A FORWARD -o docker0 -p tcp -m tcp --dport 80 -j ACCEPT
-A FORWARD -i docker0 -j ACCEPT
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:DOCKER - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A OUTPUT -m addrtype --dst-type LOCAL -j DOCKER
-A POSTROUTING -o docker0 -m addrtype --src-type LOCAL -j MASQUERADE
-A DOCKER -p tcp -m tcp --dport 8080 -j DNAT --to-destination 172.17.0.2:80
COMMIT
`
)

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
			State: "running", Networks: []string{"bridge"},
			Addrs: []netip.Addr{addr("172.17.0.2"), lan6},
			Published: []Published{{"tcp", 80, addrPort("0.0.0.0:8080")},
				{"tcp", 80, addrPort("[::]:8080")}},
			Listeners: []Listener{{Proto: "tcp", Addr: addrPort("[::]:80"), Inode: 9,
				Owners: []Process{{PID: webPID, Name: "nginx", Container: webID}}}},
			ListenersKnown: true,
			Devices: []Device{{Name: "eth0", Index: 5, Kind: "veth", MTU: 1500, Up: true,
				Peer: 6}},
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
		Rules:    firewall.ParseSave(withProxy, false),
		Switches: Switches{Forward4: true, RouteLocalnet: map[string]bool{}},
		Known:    Known{Rules: true, Owners: true, Flows: true},
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
	r := Judge(healthy(), 0)
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

func TestRoutes(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Facts)
		want   string
	}{
		"proxy off": {proxyOff, "DNAT  DNAT hairpin DNAT"},
		"proxy off, no br_netfilter": {func(f *Facts) { proxyOff(f); f.Switches.BridgeNF = false },
			"DNAT  DNAT blocked DNAT"},
		"proxy off, no route_localnet": {func(f *Facts) {
			proxyOff(f)
			f.Switches.RouteLocalnet["docker0"] = false
		},
			"blocked  DNAT hairpin DNAT"},
		"no forwarding": {func(f *Facts) {
			f.Switches.Forward4 = false
		}, "proxy  DNAT proxy blocked"},
		"nothing listens in it": {func(f *Facts) { f.Containers[0].Listeners = nil },
			"nothing  nothing nothing nothing"},
		"listens on its loopback": {func(f *Facts) {
			f.Containers[0].Listeners[0].Addr = addrPort("127.0.0.1:80")
		},
			"nothing  nothing nothing nothing"},
		"iptables off": {func(f *Facts) {
			f.Rules = firewall.Rules{}
		}, "proxy  proxy proxy proxy"},
		"rules not readable": {func(f *Facts) {
			f.Rules, f.Known.Rules = firewall.Rules{}, false
		}, "proxy?  DNAT? proxy? DNAT?"},
		"firewall": {func(f *Facts) {
			f.Rules = firewall.ParseSave(
				"*filter\n:INPUT DROP [0:0]\n-A INPUT -i lo -j ACCEPT\nCOMMIT\n", false)
		}, "proxy  proxy blocked blocked"},
		"a rule that cannot be read": {func(f *Facts) {
			f.Rules = firewall.ParseSave(
				"*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -m set --match-set bad src -j DROP\nCOMMIT\n", false)
		}, "proxy?  proxy? proxy? proxy?"},
		"rules flushed, proxy off": {func(f *Facts) {
			proxyOff(f)
			f.Rules = firewall.Rules{}
		}, "held  held held held"},
		"docker-proxy is started when needed": {func(f *Facts) {
			proxyOff(f)
			f.Rules, f.Switches.RouteLocalnet["docker0"] = firewall.ParseSave(withProxy, false),
				false
		}, "proxy?  DNAT proxy? DNAT"},
		"DOCKER-USER drops": {func(f *Facts) {
			f.Rules = firewall.ParseSave(strings.Replace(
				withProxy, "-A FORWARD -o docker0 -m",
				"-A FORWARD -i eth0 -j DROP\n-A FORWARD -o docker0 -m", 1), false)
		}, "proxy  DNAT proxy blocked"},
	} {
		f := healthy()
		c.change(f)
		if got := routes(find(t, Judge(f, 0), "0.0.0.0", 8080)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func proxyOff(f *Facts) {
	f.Proxies = nil
	f.Listeners[1].Owners = []Process{{PID: 1, Name: "dockerd"}}
	f.Listeners = f.Listeners[:2]
	f.Containers[0].Published = f.Containers[0].Published[:1]
	f.Rules = firewall.ParseSave(withoutProxy, false)
	f.Switches.RouteLocalnet["docker0"] = true
	f.Switches.BridgeNF = true
}

// route_localnet has no effect on ::1.
func TestLoopback6ByNAT(t *testing.T) {
	f := healthy()
	f.Proxies = f.Proxies[:1]
	f.Listeners[2].Owners = []Process{{PID: 1, Name: "dockerd"}}
	f.Devices[2].Addrs = append(f.Devices[2].Addrs, netip.MustParsePrefix("fd00::1/64"))
	f.Rules.Chains = append(f.Rules.Chains,
		firewall.ParseSave(
			"*nat\n:OUTPUT ACCEPT [0:0]\n-A OUTPUT -p tcp -m addrtype --dst-type LOCAL -m tcp --dport 8080 -j DNAT --to-destination [fd00::2]:80\nCOMMIT\n", true).Chains...)
	r := Judge(f, 8080)
	if got := find(t, r, "::", 8080).Paths[Loopback6]; got.Kind != Blocked {
		t.Errorf("%+v", got)
	}
	if len(r.Traps) != 1 || r.Traps[0].Code != Loopback6Nothing ||
		!strings.Contains(r.Traps[0].Evidence, "never leave lo") {
		t.Errorf("%+v", r.Traps)
	}
}

func TestRulesOnly(t *testing.T) {
	f := healthy()
	proxyOff(f)
	f.Listeners, f.Containers = f.Listeners[:1], nil
	row := find(t, Judge(f, 0), "0.0.0.0", 8080)
	if row.Holder.Kind != "rules" || row.Server.Name != "172.17.0.2:80" ||
		row.Paths[Remote].Kind != ByNAT || len(row.Paths[Remote].Doubt) == 0 {
		t.Errorf("%+v", row)
	}
	if r := Judge(f, 8080); len(r.Ports) != 1 || !r.Served() {
		t.Errorf("%+v", r)
	}
	if r := Judge(f, 8081); len(r.Ports) != 0 || r.Served() {
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
		if got := routes(find(t, Judge(f, 0), "0.0.0.0", 2375)); got != "direct  direct direct direct" {
			t.Errorf("%q: %q", docker, got)
		}
		if got := routes(find(t, Judge(f, 0), "0.0.0.0", 9323)); got != want {
			t.Errorf("%q: %q", docker, got)
		}
	}
}

func TestExactAddressWins(t *testing.T) {
	f := healthy()
	f.Listeners = append(f.Listeners, Listener{
		Proto: "tcp", Addr: addrPort("127.0.0.1:22"), Inode: 7,
		Owners: []Process{{PID: 7, Name: "tunnel"}}})
	r := Judge(f, 22)
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
			r := Judge(f, 0)
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
		r := Judge(f, port)
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

// isolation is what Docker Engine 28 adds to protect containers' own addresses.
const isolation = `*raw
:PREROUTING ACCEPT [0:0]
-A PREROUTING -d 172.17.0.2/32 ! -i docker0 -j DROP
COMMIT
*filter
:FORWARD ACCEPT [0:0]
-A FORWARD -i br-0123456789ab -o docker0 -j DROP
COMMIT
`

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
		want   string // for this machine, its network, another network, another machine; "": no row
	}{
		"routed": {"0.0.0.0:9000", func(f *Facts) {
			f.Rules = firewall.Rules{}
		}, "direct direct direct direct?"},
		"isolated": {"0.0.0.0:9000", func(f *Facts) {
			f.Rules = firewall.ParseSave(isolation, false)
		}, "direct direct blocked blocked"},
		"no forwarding": {"0.0.0.0:9000", func(f *Facts) {
			f.Rules, f.Switches.Forward4 = firewall.Rules{}, false
		}, "direct direct blocked blocked"},
		"its own socket": {"127.0.0.11:9000", func(*Facts) {}, ""},
		"published":      {"0.0.0.0:80", func(*Facts) {}, ""},
		"paused": {"172.17.0.2:9000", func(f *Facts) {
			f.Rules, f.Containers[0].State = firewall.Rules{}, "paused"
		}, "held held held held"},
		"icc is off": {"0.0.0.0:9000", func(f *Facts) {
			f.Switches.BridgeNF = true
			f.Rules = firewall.ParseSave(
				"*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -i docker0 -o docker0 -j DROP\nCOMMIT\n", false)
		}, "direct blocked direct direct?"},
		"rules not readable": {"0.0.0.0:9000", func(f *Facts) {
			f.Rules, f.Known.Rules = firewall.Rules{}, false
		}, "direct? direct? direct? direct?"},
		"no other network": {"0.0.0.0:9000", func(f *Facts) {
			f.Rules, f.Devices = firewall.Rules{}, f.Devices[:4]
		}, "direct direct  direct?"},
		"another's network": {"0.0.0.0:9000", func(f *Facts) {
			f.Containers[0].Shares = "pod"
		}, ""},
	} {
		f := quiet(healthy(), c.at)
		c.change(f)
		r := Judge(f, 0)
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
	if r := Judge(f, 9000); len(r.Ports) != 0 || len(r.Inside) != 1 || !r.Served() {
		t.Errorf("%+v", r)
	}
}

func TestExposure(t *testing.T) {
	f := healthy()
	f.Rules = firewall.ParseSave(withProxy, false)
	f.Listeners = append(f.Listeners, Listener{
		Proto: "tcp", Addr: addrPort("127.0.0.1:631"), Inode: 7,
		Owners: []Process{{PID: 7, Name: "cupsd"}}},
		Listener{Proto: "tcp", Addr: addrPort("[::1]:631"), Inode: 8,
			Owners: []Process{{PID: 7, Name: "cupsd"}}})
	f.Containers[0].Listeners = append(f.Containers[0].Listeners,
		Listener{Proto: "tcp", Addr: addrPort("0.0.0.0:9000"), Inode: 10,
			Owners: []Process{{PID: webPID, Container: webID}}})
	r := Judge(f, 0)
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
		"Containers and this machine reach 1 port more: 9000/tcp (web:9000).",
		"Only this machine reaches 631/tcp (cupsd)."}
	if !slices.Equal(r.Answer.Text, says) {
		t.Errorf("got  %q\nwant %q", r.Answer.Text, says)
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
	homes := Judge(f, 0).Containers
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
