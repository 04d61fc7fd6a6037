package ports

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

type plant struct {
	code  string
	plant func(*Facts)
	says  string
}

var plantedAnswers = map[string]change{
	UDPSource: func(q replica.Dial, a *replica.Answer) {
		if q.Bridge == "docker0" && q.Proto == "udp" && q.To.Addr() == addr("198.18.0.1") {
			a.Outcomes[0].From = addrPort("172.17.0.1:53")
		}
	},
	RouteLocalnet: losing("127.0.0.1", replica.Lost{Why: replica.Localnet, Device: "docker0"}),
	Masqueraded:   leaving("198.18.0.1"),
	BridgeNFDrop: func(q replica.Dial, a *replica.Answer) {
		if q.Bridge == "br1" {
			lose(q, a, replica.Lost{Rule: rule("ip filter", "FORWARD", 0, "")})
		}
	},
}

var planted = []plant{
	{BridgeNFDrop, tapped, "from br1 to br1 is lost dropped filter FORWARD"},
	{PublishedBypass, func(f *Facts) {
		for i, at := range []string{"127.0.0.1:8080", "[::1]:8080"} {
			f.Listeners[1+i].Addr, f.Proxies[i].Host = addrPort(at), addrPort(at)
			f.Containers[0].Published[i].Host = addrPort(at)
		}
	}, "container web answers a machine at eth0 at 172.17.0.2:80"},
	{UDPStale, func(f *Facts) {
		udpPublished(f)
		f.Flows = []Flow{{"udp", addr("198.18.0.9"), 4000, addrPort("198.18.0.1:8080"),
			addrPort("198.18.0.1:8080")}}
	}, "198.18.0.9:4000 to 198.18.0.1:8080 goes to this machine itself, and a new client's packets to 172.17.0.2:80 (web)"},
	{NeverAccepts, func(f *Facts) {
		f.Listeners[0].Waiting, f.Listeners[0].Backlog = 129, 128
	}, "[22/tcp]never-acceptssshd 300 has queue-full 129"},
	{NeverAccepts, func(f *Facts) {
		l := &f.Containers[0].Listeners[0]
		l.Waiting, l.Backlog, l.Waited = 2, 128, 12*time.Second
	}, "container web has queue-old 2 on its port 80"},
	{NeverAccepts, func(f *Facts) {
		l := f.Containers[0].Listeners[0]
		l.Addr, l.Waiting, l.Waited = addrPort("0.0.0.0:9000"), 1, time.Minute
		l.Backlog = 5
		f.Containers[0].Listeners = append(f.Containers[0].Listeners, l)
	}, "[9000/tcp]"},
	{NeverAccepts, func(f *Facts) {
		f.Listeners = append(f.Listeners, Listener{Proto: "tcp", Addr: addrPort("0.0.0.0:9514"),
			Inode: 8, Owners: []Process{{PID: 7, Name: "conmon"}}})
	}, "conmon has the socket, and no rule leads past it to the container"},
	{ProxyPorts, func(f *Facts) {
		f.Switches.ClientPorts = [2]uint16{32768, 36767}
		f.Proxies[0].Used = 3700
	}, "connections to 172.17.0.2:80, ended ones in TIME-WAIT included, have 3700 of 4000 ports (32768 to 36767)"},
	{PublishedIgnored, func(f *Facts) {
		f.Containers = append(f.Containers, Container{ID: "ff", Name: "mv1", PID: 9,
			State: "running", Networks: []string{"mv"}, Drivers: []string{"macvlan"},
			Addrs: []netip.Addr{addr("198.18.0.149")},
			Asked: []Published{{"tcp", 8030, netip.AddrPortFrom(netip.Addr{}, 8030)}}})
	}, "[8030/tcp]published-ignored mv1-p asks for 8030/tcp, and its networks are of driver macvlan: mv"},
	{ProxyLoad, func(f *Facts) { f.Proxies[0].CPU, f.Proxies[0].Memory = 0.93, 5<<20 },
		"docker-proxy 264 on 0.0.0.0:8080 has 0 connections open, with 0 MiB so far, and uses 0.93 of a core now, in 5.0 MiB of memory"},
	{Loopback6Nothing, func(f *Facts) {
		f.Listeners, f.Containers[0].Published = f.Listeners[:2], f.Containers[0].Published[:1]
	}, "no-socket [::1]:8080"},
	{PublicLocalOnly, func(f *Facts) {
		f.Connections = []Connection{
			{Local: addrPort("127.0.0.1:50000"), Remote: addrPort("127.0.0.1:8080")},
			{Local: addrPort("127.0.0.1:8080"), Remote: addrPort("127.0.0.1:50000"), PID: proxyPID},
			{Local: addrPort("198.18.0.1:50001"), Remote: addrPort("198.18.0.1:8080")},
		}
	}, "8080 has 2 connections open from this machine and none"},
	{PublishedNobody, func(f *Facts) {
		f.Containers[0].Listeners[0].Addr = addrPort("127.0.0.1:80")
	}, "; 127.0.0.1:80 listens in the container"},
	{IngressNothing, func(f *Facts) {
		f.Ingress = Ingress{Addr: addr("172.18.0.2"), NoIPVS: true,
			Services: []Service{{"shop", "tcp", 8091, 80}}}
	}, "CONFIG_IP_VS"},
	{Unpublished, func(f *Facts) {
		// nothing listens on 9
		f.Containers[0].Exposed = []Published{{Proto: "tcp", Port: 81}, {Proto: "tcp", Port: 9}}
		f.Containers[0].Listeners = append(f.Containers[0].Listeners,
			Listener{Proto: "tcp", Addr: addrPort("0.0.0.0:81")})
	}, "[81/tcp]"},
	{PortConflict, func(f *Facts) {
		f.Containers = append(f.Containers, Container{
			ID: "ff", Name: "other", Host: true, State: "restarting", Restarts: 7,
			LastLog: "starting\nlisten tcp :22: bind: address already in use\n"})
	}, "sshd 300 has 22/tcp"},
	{ReuseportTwins, func(f *Facts) {
		twin := f.Listeners[0]
		twin.Inode, twin.Owners = 8, []Process{{PID: 400, Name: "dropbear"}}
		f.Listeners = append(f.Listeners, twin)
	}, "sshd 300 and dropbear 400 both listen on 0.0.0.0:22"},
	{MTUDiffers, func(f *Facts) {
		f.Devices[1].MTU = 1400
	}, "the container's eth0 1500, its veth 1500, docker0 1500, eth0 1400"},
	{ConntrackFull, func(f *Facts) {
		f.Tracked = 250000
	}, "250000 of nf_conntrack_max 262144 (95 %)"},
	{NeighboursFull, func(f *Facts) {
		f.Neighbours = []NeighbourTable{{"ipv4", 990, 1024}, {"ipv6", 9, 1024}}
	}, "990 entries of net.ipv4.neigh.default.gc_thresh3 1024"},
	{AddressesUsed, func(f *Facts) {
		f.Containers[0].Networks = []string{"small"}
		f.Networks = []Network{
			bridged("small", "10.1.1.0/30"), bridged("wide", "10.1.2.0/24")}
	}, "1 of the 1 addresses for containers in small is in use"},
	{AddressesUsed, func(f *Facts) {
		f.AddressPools = []AddressPool{{netip.MustParsePrefix("10.2.0.0/16"), 17}}
		f.Networks = []Network{
			bridged("a", "10.2.0.0/17"), bridged("b", "10.2.128.0/17"), bridged("other", "10.9.0.0/17")}
	}, "2 of 2 networks of the default pools exist"},
	{ProxyLoad, func(f *Facts) {
		f.Connections = []Connection{
			{Local: addrPort("198.18.0.1:8080"), Remote: addrPort("198.18.0.9:50000"),
				PID: proxyPID, Bytes: 200 << 20},
			{Local: addrPort("172.17.0.1:40000"), Remote: addrPort("172.17.0.2:80"), PID: proxyPID,
				Bytes: 200 << 20},
		}
	}, "docker-proxy 264 on 0.0.0.0:8080 has 1 connection open, with 200 MiB so far"},
	{Paused, func(f *Facts) {
		f.Containers[0].State = "paused"
		f.Containers[0].Asked = f.Containers[0].Published
	}, "[8080/tcp]"},
	{Restarting, func(f *Facts) {
		f.Containers = append(f.Containers, Container{
			ID:       "ff",
			Name:     "other",
			State:    "restarting",
			Restarts: 7,
			LastLog:  "starting\nno database\n",
			Asked:    []Published{{"tcp", 80, netip.AddrPortFrom(netip.Addr{}, 8099)}}})
	}, `restarted 7 times; its last output: "no database"`},
	{InternalNetwork, func(f *Facts) {
		f.Containers = append(f.Containers, Container{
			ID:       "ff",
			Name:     "other",
			PID:      9,
			State:    "running",
			Internal: true,
			Networks: []string{"inner"},
			Asked:    []Published{{"tcp", 80, netip.AddrPortFrom(netip.Addr{}, 8099)}}})
	}, "[8099/tcp]published-internal other 8099/tcp"},
	{UDPSource, func(f *Facts) {
		f.Listeners = append(f.Listeners, Listener{
			Proto: "udp", Addr: addrPort("0.0.0.0:53"), Inode: 8,
			Owners: []Process{{PID: 8, Name: "named"}}})
	},
		"named 8 listens on all addresses; asked at 198.18.0.1:53 by a container on bridge, it answers from 172.17.0.1"},
	{RouteLocalnet, proxyOff, "route_localnet is 0: net.ipv4.conf.docker0.route_localnet"},
	{Masqueraded, plain, "a TCP packet from 172.17.0.3 to the internet leaves eth0 from 198.18.0.1"},
}

func bridged(name, pool string) Network {
	return Network{Name: name, Driver: "bridge", Scope: "local",
		Pools: []netip.Prefix{netip.MustParsePrefix(pool)}}
}

// plain makes the default network one without NAT.
func plain(f *Facts) {
	n := bridged("bridge", "172.17.0.0/16")
	n.Bridge, n.Unmasqueraded = "docker0", "enable_ip_masquerade=false"
	f.Networks = []Network{n}
}

// leaving lets packets from docker0 leave for the internet from an address.
func leaving(from string) change {
	return func(q replica.Dial, a *replica.Answer) {
		if q.Bridge != "docker0" || q.To.Addr() != anybody {
			return
		}
		lose(q, a, replica.Lost{Why: replica.Leaves, Device: "eth0"})
		a.Outcomes[0].Source = addr("172.17.0.3")
		if q.Explain {
			a.Steps = []replica.Step{
				{Device: "docker0", Src: addrPort("172.17.0.3:4000"), Dst: q.To},
				{Device: "eth0", Out: true, Src: addrPort(from + ":4000"), Dst: q.To}}
		}
	}
}

func TestMasqueraded(t *testing.T) {
	rules := func(texts ...string) (out []replica.RuleText) {
		for _, text := range texts {
			out = append(out, replica.RuleText{Table: "ip nat", Text: text})
		}
		return out
	}
	const remedy = "sudo iptables -t nat -I POSTROUTING -s 172.17.0.0/16 -o eth0 -j ACCEPT (not " +
		"tried: toll did not try it in this report); other machines then need a route to 172.17.0.0/16"
	for name, c := range map[string]struct {
		from  string
		rules []replica.RuleText
		says  string // what follows "leaves eth0 from "
	}{
		"kept":     {"172.17.0.3", rules("-A POSTROUTING -o eth0 -j MASQUERADE"), ""},
		"no texts": {"198.18.0.1", nil, "198.18.0.1"},
		"an administrator's": {"198.18.0.1", rules("-A POSTROUTING -o eth0 -j MASQUERADE"),
			"198.18.0.1: -A POSTROUTING -o eth0 -j MASQUERADE"},
		"rules for others": {"198.18.0.7", rules(
			"-A POSTROUTING -s 10.0.0.0/8 -j MASQUERADE",
			"-A POSTROUTING -s 172.17.0.2/32 -d 172.17.0.2/32 -p tcp -j MASQUERADE",
			"-A POSTROUTING -o docker0 -j MASQUERADE",
			"-A POSTROUTING ! -o eth+ -j MASQUERADE",
			"-A POSTROUTING ! -s 172.16.0.0/12 -j MASQUERADE",
			"-A POSTROUTING -m addrtype --src-type LOCAL -j MASQUERADE",
			"oifname != \"eth0\" ip saddr 172.17.0.0/16 masquerade",
			"ip saddr 172.17.0.0/16 oifname \"eth*\" snat to 198.18.0.7"),
			"198.18.0.7: ip saddr 172.17.0.0/16 oifname \"eth*\" snat to 198.18.0.7"},
	} {
		f := healthy()
		plain(f)
		r := try(f, 0, leaving(c.from), func(replica.Dial, *replica.Answer) {
			f.Copy.Machine.Spaces[0].Text = c.rules
		})
		i := slices.IndexFunc(r.Traps, func(t Trap) bool { return t.Code == Masqueraded })
		if (i < 0) != (c.says == "") || i >= 0 && (r.Traps[i].Remedy != remedy ||
			!strings.HasSuffix(r.Traps[i].Evidence, "leaves eth0 from "+c.says)) {
			t.Errorf("%s: %+v", name, r.Traps)
		}
	}
}

func udpPublished(f *Facts) {
	f.Containers[0].Listeners[0].Proto = "udp"
	for i := range 2 {
		f.Listeners[1+i].Proto, f.Proxies[i].Proto = "udp", "udp"
		f.Containers[0].Published[i].Proto = "udp"
	}
}

// tapped adds a bridge of virtual machines.
func tapped(f *Facts) {
	f.Switches.BridgeNF = true
	f.Devices = append(f.Devices, Device{Name: "br1", Index: 10, Kind: "bridge", Up: true, MTU: 1500,
		Addrs: []netip.Prefix{netip.MustParsePrefix("192.168.77.1/24")}},
		Device{Name: "tap0", Index: 11, Kind: "tun", Up: true, MTU: 1500, Master: "br1"})
}

func TestBridgeNF(t *testing.T) {
	for name, c := range map[string]struct {
		lost  string // addresses
		rules []replica.RuleText
		says  string
		fix   string
	}{
		"nothing is lost": {},
		"frames": {"192.168.77.2", nil,
			"net.bridge.bridge-nf-call-iptables is 1, and a TCP packet from br1 to br1 is lost dropped filter FORWARD",
			"sudo iptables -I FORWARD -i br1 -o br1 -j ACCEPT (not tried: toll did not try it in this report); or, if no container network needs it, sudo sysctl -w net.bridge.bridge-nf-call-iptables=0 (not tried: toll did not try it in this report)"},
		"frames, Docker": {"192.168.77.2", []replica.RuleText{{Chain: "DOCKER-USER"}},
			"net.bridge.bridge-nf-call-iptables is 1, and a TCP packet from br1 to br1 is lost dropped filter FORWARD", "sudo iptables -I DOCKER-USER -i br1 -o br1 -j ACCEPT (not tried: toll did not try it in this report); or, if no container network needs it, sudo sysctl -w net.bridge.bridge-nf-call-iptables=0 (not tried: toll did not try it in this report)"},
		// A remedy for frames alone would not help.
		"translated": {"192.168.77.2 203.0.113.1",
			[]replica.RuleText{{Text: "-A POSTROUTING -s 192.168.77.0/24 -j MASQUERADE"}},
			"a TCP packet from there to the internet is lost dropped filter FORWARD; so is one to another machine there, because net.bridge.bridge-nf-call-iptables is 1",
			"sudo iptables -I FORWARD -i br1 -j ACCEPT; sudo iptables -I FORWARD -o br1 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT (not tried: toll did not try it in this report)"},
		"another network is translated": {"203.0.113.1",
			[]replica.RuleText{{Text: "-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE"}},
			"", ""},
		"by the bridge itself": {"192.168.77.2 203.0.113.1", nil, "net.bridge.bridge-nf-call-iptables is 1, and a TCP packet from br1 to br1 is lost dropped filter FORWARD", "sudo iptables -I FORWARD -i br1 -o br1 -j ACCEPT (not tried: toll did not try it in this report); or, if no container network needs it, sudo sysctl -w net.bridge.bridge-nf-call-iptables=0 (not tried: toll did not try it in this report)"},
	} {
		f := healthy()
		tapped(f)
		r := try(f, 0, func(q replica.Dial, a *replica.Answer) {
			f.Copy.Machine.Spaces[0].Text = c.rules
			if q.Bridge == "br1" && slices.Contains(strings.Fields(c.lost), q.To.Addr().String()) {
				lose(q, a, replica.Lost{Rule: rule("ip filter", "FORWARD", 0, "")})
			}
		})
		switch {
		case c.says == "" && len(r.Traps) == 0:
		case len(r.Traps) != 1 || c.says == "" || r.Traps[0].Code != BridgeNFDrop ||
			r.Traps[0].Evidence != c.says ||
			r.Traps[0].Remedy != c.fix:
			t.Errorf("%s: %+v", name, r.Traps)
		}
	}
}

// Engines before 28 let other machines' packets for containers pass.
func TestBypass(t *testing.T) {
	for name, c := range map[string]struct {
		host string
		drop bool
		want bool
	}{
		"reached":          {"127.0.0.1:8080", false, true},
		"dropped":          {"127.0.0.1:8080", true, false},
		"published to all": {"0.0.0.0:8080", false, false},
	} {
		f := healthy()
		f.Listeners, f.Proxies = f.Listeners[:2], f.Proxies[:1]
		f.Listeners[1].Addr, f.Proxies[0].Host = addrPort(c.host), addrPort(c.host)
		f.Containers[0].Published = []Published{{"tcp", 80, addrPort(c.host)}}
		r := try(f, 0, func(q replica.Dial, a *replica.Answer) {
			if c.drop && q.Card != "" && q.To.Addr() == addr("172.17.0.2") {
				lose(q, a, replica.Lost{Rule: rule("ip raw", "PREROUTING", 1, "")})
			}
		})
		i := slices.IndexFunc(r.Traps, func(t Trap) bool { return t.Code == PublishedBypass })
		if (i >= 0) != c.want || c.want && (r.Traps[i].Evidence !=
			"container web answers a machine at eth0 at 172.17.0.2:80" ||
			r.Traps[i].Remedy != "upgrade to Docker Engine 28, which drops such packets, "+
				"or: sudo iptables -t raw -A PREROUTING -d 172.17.0.2 ! -i docker0 -p tcp "+
				"--dport 80 -j DROP (not tried: toll did not try it in this report)") {
			t.Errorf("%s: %+v", name, r.Traps)
		}
	}
}

func TestBypassOfMany(t *testing.T) {
	f := healthy()
	f.Listeners, f.Proxies = f.Listeners[:1], nil
	web := &f.Containers[0]
	web.Published, web.Listeners = nil, nil
	for i, port := range []uint16{80, 3000, 3001, 3002} {
		web.Listeners = append(web.Listeners, Listener{Proto: "tcp", Inode: uint32(20 + i),
			Addr: netip.AddrPortFrom(netip.IPv4Unspecified(), port)})
		for _, host := range []uint16{port + 8000, port + 9000} {
			web.Published = append(web.Published, Published{"tcp", port,
				netip.AddrPortFrom(addr("127.0.0.1"), host)})
		}
	}
	got := slices.DeleteFunc(try(f, 0).Traps, func(t Trap) bool { return t.Code != PublishedBypass })
	const drop = "sudo iptables -t raw -A PREROUTING -d 172.17.0.2 ! -i docker0 -p tcp --dport "
	if len(got) != 1 || !strings.HasSuffix(got[0].Remedy, " or: "+drop+"80 -j DROP; "+drop+
		"3000:3002 -j DROP (not tried: toll did not try it in this report)") {
		t.Errorf("%+v", got)
	}
}

func TestUDPStale(t *testing.T) {
	for name, c := range map[string]struct {
		from, now string
		says      string
	}{
		"as new": {"198.18.0.9", "172.17.0.2:80", ""},
		"untranslated": {"198.18.0.9", "198.18.0.1:8080", "198.18.0.9:4000 to " +
			"198.18.0.1:8080 goes to this machine itself, and a new client's packets to " +
			"172.17.0.2:80 (web)"},
		"another's": {"198.18.0.9", "172.17.0.7:80",
			"198.18.0.9:4000 to 198.18.0.1:8080 goes to 172.17.0.7:80, an address that nobody has, and a new client's packets to 172.17.0.2:80 (web)"},
		"its own, by the proxy": {"172.17.0.3", "198.18.0.1:8080", ""},
		"its own, redirected": {"172.17.0.3", "172.17.0.2:80",
			"172.17.0.3:4000 to 198.18.0.1:8080 goes to 172.17.0.2:80 (web), and a new " +
				"client's packets to this machine itself"},
	} {
		f := healthy()
		udpPublished(f)
		f.Flows = []Flow{{"udp", addr(c.from), 4000, addrPort("198.18.0.1:8080"), addrPort(c.now)}}
		got := slices.DeleteFunc(try(f, 8080).Traps, func(t Trap) bool { return t.Code != UDPStale })
		if (len(got) == 1) != (c.says != "") || len(got) == 1 &&
			(got[0].Evidence != c.says ||
				got[0].Remedy != "sudo conntrack -D -p udp --orig-port-dst 8080 "+
					"(not tried: a copy has none of the machine's connections)") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// The program listens on 0.0.0.0, and the network has IPv6.
func TestNobodyOnIPv6(t *testing.T) {
	f := healthy()
	f.Containers[0].Listeners[0].Addr = addrPort("0.0.0.0:80")
	got := try(f, 0).Traps
	if len(got) != 1 || got[0].Code != PublishedNobody ||
		got[0].About != (Reason{Code: ListensOn4, Of: "web"}) ||
		got[0].Remedy != "make it listen on [::], or dial an IPv4 address" {
		t.Errorf("%+v", got)
	}
}

func TestNobodyRemedy(t *testing.T) {
	for on, want := range map[string][2]string{
		"127.0.0.1:80": {"nobody-behind web proxy 172.17.0.2:80; 127.0.0.1:80 listens in " +
			"the container; nobody-behind web proxy [fd00::2]:80; 127.0.0.1:80 listens in " +
			"the container",
			"make the program listen on all addresses instead of the container's 127.0.0.1"},
		"[::]:9000 127.0.0.1:9001 [::]:9000": {"nobody-behind web proxy 172.17.0.2:80; " +
			"[::]:9000, 127.0.0.1:9001 listen in the container; nobody-behind web proxy " +
			"[fd00::2]:80; [::]:9000, 127.0.0.1:9001 listen in the container",
			"publish the port that the program listens on"},
		"": {"nobody-behind web proxy 172.17.0.2:80; nobody-behind web proxy [fd00::2]:80",
			"publish the port that the program listens on"},
	} {
		f := healthy()
		f.Containers[0].Listeners = nil
		for i, at := range strings.Fields(on) {
			f.Containers[0].Listeners = append(f.Containers[0].Listeners,
				Listener{Proto: "tcp", Addr: addrPort(at), Inode: uint32(20 + i)})
		}
		got := try(f, 0).Traps
		if len(got) != 1 || got[0].Remedy != want[1] || got[0].Evidence != want[0] {
			t.Errorf("%q: %+v", on, got)
		}
	}
}

func TestLoopback6Remedy(t *testing.T) {
	for remedy, change := range map[string]func(*Facts){
		"dial 127.0.0.1 instead of localhost, or also publish on [::1]": func(f *Facts) {
			f.Listeners, f.Containers[0].Published = f.Listeners[:2], f.Containers[0].Published[:1]
		},
		"dial 127.0.0.1 instead of localhost": proxyOff,
	} {
		f := healthy()
		change(f)
		got := try(f, 0).Traps
		if len(got) != 1 || got[0].Code != Loopback6Nothing || got[0].Remedy != remedy {
			t.Errorf("%q: %+v", remedy, got)
		}
	}
}

// What a program does depends on whether ::1 refuses or its packets are lost.
func TestLoopback6Lost(t *testing.T) {
	f := healthy()
	f.Containers[0].Published = f.Containers[0].Published[:1]
	got := try(f, 0, losing("::1", replica.Lost{Rule: rule("ip6 filter", "INPUT", 1, "")})).Traps
	if len(got) != 1 || got[0].Code != Loopback6Nothing || got[0].About.Code != Loopback6Lost ||
		got[0].Remedy != "dial 127.0.0.1 instead of localhost" {
		t.Errorf("%+v", got)
	}
}

// Policy rules may send containers' packets by another device than the main table.
func TestMTUOfPolicy(t *testing.T) {
	f := healthy()
	f.Devices[2].Out, f.Devices[2].OutMTU = "wg0", 1420
	got := try(f, 0).Traps
	if len(got) != 1 || got[0].Code != MTUDiffers ||
		!strings.HasSuffix(got[0].Evidence, "docker0 1500, wg0 1420") {
		t.Errorf("%+v", got)
	}
}

// The kernel chose another source for the answers to clients of two networks.
func TestUDPSourceSeen(t *testing.T) {
	f := healthy()
	f.Listeners = append(f.Listeners, Listener{Proto: "udp", Addr: addrPort("0.0.0.0:53"), Inode: 8,
		Owners: []Process{{PID: 8, Name: "named"}}})
	f.Devices = append(f.Devices, Device{Name: "br-0123456789ab", Index: 9, Kind: "bridge", Up: true,
		Docker: true, Addrs: []netip.Prefix{netip.MustParsePrefix("172.18.0.1/16")}})
	got := try(f, 53, func(q replica.Dial, a *replica.Answer) {
		if q.Bridge == "br-0123456789ab" && q.To.Addr() == addr("198.18.0.1") {
			a.Outcomes[0].From = addrPort("172.18.0.1:53")
		}
	}).Traps
	if len(got) != 1 || got[0].Code != UDPSource || got[0].Evidence !=
		"named 8 listens on all addresses; asked at 198.18.0.1:53 by a container on "+
			"br-0123456789ab, it answers from 172.18.0.1, unless it sets the source "+
			"address itself, which toll cannot see" {
		t.Errorf("%+v", got)
	}
}

// The other end of a tunnel awaits no answer from the address that it sends to.
func TestUDPSourceOfTunnel(t *testing.T) {
	for _, c := range []struct {
		kind string
		held bool // by a process
		port uint16
		want int
	}{{"vxlan", false, 4789, 0}, {"vxlan", true, 4789, 1}, {"vxlan", false, 53, 1},
		{"vlan", false, 4789, 1}} {
		f := healthy()
		l := Listener{Proto: "udp", Inode: 8,
			Addr: netip.AddrPortFrom(addr("0.0.0.0"), c.port)}
		if c.held {
			l.Owners = []Process{{PID: 8, Name: "named"}}
		}
		f.Listeners = append(f.Listeners, l)
		m := machineOf(f)
		m.Spaces[0].Links = []link.Saved{{Name: "x", Kind: c.kind}}
		r := tryOn(m, f, c.port, nil, func(q replica.Dial, a *replica.Answer) {
			if q.Bridge == "docker0" && q.To.Addr() == addr("198.18.0.1") {
				a.Outcomes[0].From = netip.AddrPortFrom(addr("172.17.0.1"), c.port)
			}
		})
		if len(r.Traps) != c.want {
			t.Errorf("%+v: %+v", c, r.Traps)
		}
	}
}

func TestNoTraps(t *testing.T) {
	for name, change := range map[string]func(*Facts){
		"another machine is connected by the proxy": func(f *Facts) {
			f.Connections = []Connection{{Local: addrPort("127.0.0.1:50000"),
				Remote: addrPort("127.0.0.1:8080")},
				{Local: addrPort("198.18.0.1:8080"), Remote: addrPort("198.18.0.9:50000"),
					PID: proxyPID}}
		},
		"another machine is connected by NAT": func(f *Facts) {
			f.Connections = []Connection{{Local: addrPort("127.0.0.1:50000"),
				Remote: addrPort("127.0.0.1:8080")}}
			f.Flows = []Flow{{Proto: "tcp", From: addr("198.18.0.9"),
				To: addrPort("198.18.0.1:8080"), Now: addrPort("172.17.0.2:80")}}
		},
		"NAT's connections are not known": func(f *Facts) {
			f.Connections = []Connection{{Local: addrPort("127.0.0.1:50000"),
				Remote: addrPort("127.0.0.1:8080")}}
			f.Known.Flows = false
		},
		"workers share a port": func(f *Facts) {
			f.Listeners = append(f.Listeners, Listener{
				Proto: "tcp", Addr: addrPort("0.0.0.0:22"), Inode: 8,
				Owners: []Process{{PID: 301, Name: "sshd"}}})
		},
		"a container failed for another reason": func(f *Facts) {
			f.Containers = append(f.Containers, Container{
				Name: "other", State: "exited", LastLog: "no configuration at /etc/x:80\n"})
		},
		"the MTU of another machine's veth": func(f *Facts) {
			f.Devices[3].Peer, f.Devices[1].MTU = 77, 1400
		},
		"a foreign bridge without ports": func(f *Facts) {
			f.Switches.BridgeNF = true
			f.Devices = append(f.Devices, Device{
				Name: "br1", Kind: "bridge", Addrs: []netip.Prefix{
					netip.MustParsePrefix("10.0.0.1/24")}})
		},
		"a little by the proxy": func(f *Facts) {
			f.Connections = []Connection{{Local: addrPort("198.18.0.1:8080"),
				Remote: addrPort("198.18.0.9:50000"), PID: proxyPID, Bytes: 1 << 20}}
		},
		"a UDP service on one address": func(f *Facts) {
			f.Listeners = append(f.Listeners, Listener{
				Proto: "udp", Addr: addrPort("198.18.0.1:53"), Inode: 8,
				Owners: []Process{{PID: 8, Name: "named"}}})
		},
		"a UDP service of a machine with one network": func(f *Facts) {
			f.Devices = f.Devices[:2]
			f.Proxies, f.Containers, f.Listeners = nil, nil, nil
			f.Listeners = append(f.Listeners, Listener{
				Proto: "udp", Addr: addrPort("0.0.0.0:53"), Inode: 8,
				Owners: []Process{{PID: 8, Name: "named"}}})
		},
		"a container that was restarted long ago": func(f *Facts) {
			f.Containers[0].Restarts, f.Containers[0].Up, f.Containers[0].Asked = 9, time.Hour,
				f.Containers[0].Published
		},
		"an internal network without ports": func(f *Facts) { f.Containers[0].Internal = true },
		"a program for the machine alone": func(f *Facts) {
			f.Listeners = append(f.Listeners, Listener{
				Proto: "tcp", Addr: addrPort("127.0.0.1:631"), Inode: 8,
				Owners: []Process{{PID: 8, Name: "cupsd"}}})
		},
	} {
		f := healthy()
		change(f)
		if r := try(f, 0, nil); len(r.Traps) > 0 {
			t.Errorf("%s: %+v", name, r.Traps)
		}
	}
}

func TestUDPSourceOfProxy(t *testing.T) {
	for docker, want := range map[string]int{"20.10.24": 1, "26.1.5+dfsg1": 1, "28.5.2": 0, "": 1} {
		f := healthy()
		f.Docker = docker
		udpPublished(f)
		seen := try(f, 8080, func(q replica.Dial, a *replica.Answer) {
			if q.Bridge == "docker0" && q.To == addrPort("198.18.0.1:8080") {
				a.Outcomes[0].From = addrPort("172.17.0.1:8080")
			}
		}).Traps
		f.Copy = nil
		for _, got := range [][]Trap{seen, Judge(f, 8080).Traps} {
			if len(got) != want || want == 1 && got[0].Code != UDPSource {
				t.Errorf("%q: %+v", docker, got)
			}
		}
	}
}

func TestTrapOfMany(t *testing.T) {
	f := healthy()
	f.Switches.ClientPorts = [2]uint16{32768, 36767}
	for i := range 9 {
		host, pid := netip.AddrPortFrom(netip.IPv6Unspecified(), uint16(9000+i)), 900+i
		f.Listeners = append(f.Listeners, Listener{
			Proto: "tcp", Addr: host, V6Only: true,
			Owners: []Process{{PID: pid, Name: "docker-proxy"}}})
		f.Proxies = append(f.Proxies, Proxy{PID: pid, Proto: "tcp", Host: host, Used: 3990 + i,
			Container: addrPort("172.17.0.2:80")})
	}
	all, one := try(f, 0, nil).Traps, try(f, 9004, nil).Traps
	if len(all) != 1 || len(all[0].Ports) != 9 ||
		strings.Count(all[0].Evidence, "172.17.0.2:80") != fewSeen ||
		!strings.HasSuffix(all[0].Evidence, "and 6 more") {
		t.Errorf("%+v", all)
	}
	if len(one) != 1 || !slices.Equal(one[0].Ports, []string{"9004/tcp"}) ||
		one[0].Evidence != "connections to 172.17.0.2:80, ended ones in TIME-WAIT "+
			"included, have 3994 of 4000 ports (32768 to 36767)" {
		t.Errorf("%+v", one)
	}
}

func TestPaused(t *testing.T) {
	f := healthy()
	f.Containers[0].State = "paused"
	row := find(t, try(f, 8080, nil), "0.0.0.0", 8080)
	if got := routes(row); got != "held  held held held" || row.Server.State != "paused" ||
		row.Paths[Remote].Why.Words != "paused container web" {
		t.Errorf("%q %+v", got, row)
	}
	f = healthy()
	f.Containers[0].Host, f.Containers[0].State = true, "paused"
	f.Listeners[0].Owners[0].Container = webID
	if got := routes(find(t, try(f, 22, nil), "0.0.0.0", 22)); got != "held  held held held" {
		t.Errorf("%q", got)
	}
}

// A process of a container holds a socket of this machine.
func TestStray(t *testing.T) {
	f := healthy()
	f.Listeners[0].Owners[0].Container = webID
	if s := find(t, try(f, 22, nil), "0.0.0.0", 22).Server; s.Kind != "process" || s.Name != "sshd" {
		t.Errorf("%+v", s)
	}
}

// Docker's rules do not serve the machine's own address if the engine writes none.
func TestRemedyPastProxy(t *testing.T) {
	for name, c := range map[string]struct {
		host        string // where the port is published
		proxied     bool   // also at the machine's own address
		load, ports string // the traps' remedies
	}{
		"rules": {"0.0.0.0:8080", false,
			"instead of 127.0.0.1 or ::1, dial the machine's own address, which NAT serves, " +
				`or the container's; or set "userland-proxy": false in daemon.json; to measure ` +
				"what that saves: sudo toll compare bridge publish --on docker",
			"instead of 127.0.0.1, dial the machine's own address, which NAT serves, or " +
				"the container's; or keep connections open; or allow more: sudo sysctl -w " +
				`net.ipv4.ip_local_port_range="1024 65535" net.ipv4.tcp_tw_reuse=1 (not ` +
				"tried: a copy has none of the machine's connections)"},
		"no rules": {"0.0.0.0:8080", true,
			"instead of 127.0.0.1 or ::1, dial the container's own address; to measure what " +
				"that saves: sudo toll compare bridge publish --on docker",
			"instead of 127.0.0.1, dial the container's own address; or keep connections " +
				`open; or allow more: sudo sysctl -w net.ipv4.ip_local_port_range="1024 ` +
				`65535" net.ipv4.tcp_tw_reuse=1 (not tried: a copy has none of the machine's ` +
				"connections)"},
		"loopback": {"127.0.0.1:8080", false,
			"instead of 127.0.0.1 or ::1, dial the container's own address; or set " +
				`"userland-proxy": false in daemon.json; to measure what that saves: sudo toll ` +
				"compare bridge publish --on docker",
			"instead of 127.0.0.1, dial the container's own address; or keep connections " +
				`open; or allow more: sudo sysctl -w net.ipv4.ip_local_port_range="1024 ` +
				`65535" net.ipv4.tcp_tw_reuse=1 (not tried: a copy has none of the machine's ` +
				"connections)"},
	} {
		f := healthy()
		f.Switches.ClientPorts = [2]uint16{32768, 36767}
		f.Proxies = f.Proxies[:1]
		f.Proxies[0].CPU, f.Proxies[0].Used = 0.93, 3700
		f.Listeners = f.Listeners[:2]
		f.Containers[0].Published = f.Containers[0].Published[:1]
		at := addrPort(c.host)
		f.Listeners[1].Addr, f.Proxies[0].Host, f.Containers[0].Published[0].Host = at, at, at
		r := try(f, 8080, func(q replica.Dial, a *replica.Answer) {
			if c.proxied && q.To == addrPort("198.18.0.1:8080") {
				a.Outcomes[0].Relays = []int{f.Copy.socketOf(f.Listeners[1], "")}
				a.Steps = nil
			}
		})
		remedies := map[string]string{}
		for _, trap := range r.Traps {
			remedies[trap.Code] = trap.Remedy
		}
		for code, want := range map[string]string{ProxyLoad: c.load, ProxyPorts: c.ports} {
			if got := remedies[code]; got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	}
}

// A trap's remedy names no device in a command if a shell would take the name otherwise.
func TestTrapsOfOddDevices(t *testing.T) {
	f := healthy()
	plain(f)
	f.Devices = append(f.Devices, Device{Name: "br;1", Index: 70, Kind: "bridge", Up: true},
		Device{Name: "tap;1", Index: 71, Kind: "tun", Master: "br;1", Up: true})
	r := try(f, 0, leaving("198.18.0.1"), func(q replica.Dial, a *replica.Answer) {
		if q.Bridge == "br;1" {
			lose(q, a, replica.Lost{Rule: rule("ip filter", "FORWARD", 0, "")})
		}
		for i := range a.Steps {
			if a.Steps[i].Device == "eth0" {
				a.Steps[i].Device = "eth;0"
			}
		}
	})
	got := map[string]string{}
	for _, x := range r.Traps {
		got[x.Code] = x.Remedy
	}
	if got[Masqueraded] != "exempt 172.17.0.0/16 from that rule" ||
		!strings.HasPrefix(got[BridgeNFDrop], "a rule before filter FORWARD; or, ") {
		t.Errorf("%+v", r.Traps)
	}
}
