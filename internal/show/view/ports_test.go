package view

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/bridgetoll/bridgetoll/internal/paths/firewall"
	"github.com/bridgetoll/bridgetoll/internal/ports"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
)

const publishRules = `*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
-A FORWARD -o docker0 -p tcp -m tcp --dport 80 -j ACCEPT
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:DOCKER - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A OUTPUT ! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j DOCKER
-A DOCKER -i docker0 -j RETURN
-A DOCKER ! -i docker0 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 172.17.0.2:80
COMMIT
`

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
			Container: at("172.17.0.2:80"), Memory: 3 << 20},
			{PID: 1271, Proto: "tcp", Host: at("[::]:8080"), Container: at("172.17.0.2:80")}},
		Containers: []ports.Container{{ID: id, Name: "shop-frontend-blue-1",
			Image: "registry.example.org/shop/frontend:2026.11", PID: 305, State: "running",
			Addrs: []netip.Addr{at("172.17.0.2:80").Addr()}, Networks: []string{"bridge"},
			Published: []ports.Published{{Proto: "tcp", Port: 80, Host: at("0.0.0.0:8080")}},
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
		Rules:    firewall.ParseSave(publishRules, false),
		Switches: ports.Switches{Forward4: true},
		Known:    ports.Known{Rules: true},
		Missing: []ports.Missing{{What: "owners of some sockets",
			Why:    "the kernel shows other users' open files to root only",
			Remedy: "run toll ports as root"}},
	}
}

func pricedPorts() *ports.Report {
	priced := ports.Judge(somePorts(), 0)
	priced.Costs = &ports.Costs{File: "run.jsonl", Baseline: "host",
		Lacks: []string{"publish-nat from remote"}}
	p := priced.Ports[2].Paths[ports.Loopback]
	p.Cost = []ports.Cost{{Mode: "publish-proxy", Load: "rr", Metric: "latency_p50", Ratio: 1.4,
		Text: "140 % (130–150)", Verdict: "worse"}}
	priced.Ports[2].Paths[ports.Loopback] = p
	return priced
}

func TestPorts(t *testing.T) {
	one := ports.Judge(somePorts(), 8080)
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
		"port-inside.txt": ports.Judge(somePorts(), 9090),
		"port-nobody.txt": ports.Judge(somePorts(), 4),
		"ports-none.txt":  ports.Judge(&ports.Facts{}, 0)} {
		b := written(t, "table", Ports(r), format.Options{})
		whole(t, Ports(r), b)
		golden(t, name, b)
		for line := range strings.Lines(b) {
			if w := ansi.StringWidth(strings.TrimRight(line, "\n")); w > format.DefaultWidth {
				t.Errorf("%s: %d columns: %s", name, w, line)
			}
		}
	}
}
