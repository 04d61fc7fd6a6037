package ports

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

func TestBlocked(t *testing.T) {
	dropped := func(table, chain string, number int, rule string) Loss {
		return Loss{Code: Dropped, Table: table, Chain: chain, Number: number, Rule: rule}
	}
	inWeb := func(l Loss) Loss { l.Where = "container web"; return l }
	reply := func(l Loss) Loss { l.Reply = true; return l }
	for _, c := range []struct {
		name   string
		lost   replica.Lost
		why    Loss
		remedy string
	}{
		{"DOCKER-USER", replica.Lost{Rule: rule("ip filter", "DOCKER-USER", 2,
			"-A DOCKER-USER -j DROP")},
			dropped("filter", "DOCKER-USER", 2, "-A DOCKER-USER -j DROP"),
			"sudo iptables -I DOCKER-USER 2 -d 172.17.0.2 -p tcp --dport 80 -j RETURN"},
		{"a policy", replica.Lost{Rule: rule("ip filter", "FORWARD", 0, "")},
			dropped("filter", "FORWARD", 0, ""),
			"sudo iptables -I FORWARD -d 172.17.0.2 -p tcp --dport 80 -j ACCEPT"},
		{"ufw", replica.Lost{Rule: rule("ip filter", "ufw-user-forward", 1, "")},
			dropped("filter", "ufw-user-forward", 1, ""),
			"sudo ufw route allow proto tcp from any to 172.17.0.2 port 80"},
		{"fail2ban", replica.Lost{Rule: rule("ip filter", "f2b-web", 1,
			"-A f2b-web -s 203.0.113.1/32 -j REJECT")},
			dropped("filter", "f2b-web", 1, "-A f2b-web -s 203.0.113.1/32 -j REJECT"),
			"sudo fail2ban-client set web unbanip 203.0.113.1"},
		{"nftables", replica.Lost{Rule: rule("inet own", "in", 4, "tcp dport 80 drop")},
			dropped("inet own", "in", 4, "tcp dport 80 drop"),
			"sudo nft insert rule inet own in ip daddr 172.17.0.2 tcp dport 80 accept"},
		{"in the container", replica.Lost{Space: 1, Rule: rule("ip filter", "INPUT", 0, "")},
			inWeb(dropped("filter", "INPUT", 0, "")),
			"sudo nsenter -t 305 -n iptables -I INPUT -d 172.17.0.2 -p tcp --dport 80 -j ACCEPT"},
		{"the answer", replica.Lost{Space: 1, Reply: true, Rule: rule("ip filter", "OUTPUT", 1, "")},
			reply(inWeb(dropped("filter", "OUTPUT", 1, ""))),
			"sudo nsenter -t 305 -n iptables -I OUTPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT"},
		{"rp_filter", replica.Lost{Reply: true, Why: replica.ReversePath, Device: "br-b"},
			Loss{Code: StrictSource, Reply: true, Device: "br-b", At: "172.17.0.2"},
			"sudo sysctl -w net.ipv4.conf.br-b.rp_filter=2"},
		{"policy routing", replica.Lost{Reply: true, Why: replica.ReplyElsewhere, Device: "wg0"},
			Loss{Code: AnswerElsewhere, Reply: true, Device: "wg0", Other: "eth0"},
			"sudo ip rule add pref 1 iif docker0 lookup main"},
		{"no forwarding", replica.Lost{Why: replica.NotForwarded},
			Loss{Code: NotForwarded, Key: "net.ipv4.ip_forward"},
			"sudo sysctl -w net.ipv4.ip_forward=1"},
		{"legacy", replica.Lost{Why: replica.Untraced}, Loss{Code: NoNftReason}, ""},
	} {
		lost := func(q replica.Dial, a *replica.Answer) {
			if q.Card == "" {
				return
			}
			steps := a.Steps
			lose(q, a, c.lost)
			switch {
			case a.Lost == nil:
			case a.Lost.Rule == nil || a.Lost.Reply:
				a.Steps = steps
			default: // it was seen before its translation only
				a.Lost.Dst = netip.MustParseAddrPort("172.17.0.2:80")
			}
			a.Outcomes[0].Source = anybody
		}
		r := try(healthy(), 8080, lost)
		p := find(t, r, "0.0.0.0", 8080).Paths[Remote]
		if p.Kind != Blocked || p.Why.Code != Lost || p.Why.At != "172.17.0.2:80" || p.Why.By != "" ||
			p.Why.Lost != c.why || p.Trial.line() != c.remedy || p.Block == nil ||
			p.Block.Reply != c.lost.Reply {
			t.Errorf("%s: %+v %+v", c.name, p, p.Block)
		}
		said := strings.Join(r.Answer.Text, "\n")
		for _, want := range []string{"From other machines, 8080/tcp is blocked: lost " +
			coded{}.Cause(c.why) + ".", c.remedy} {
			if want != "" && !testgolden.HasLine(said, want) {
				t.Errorf("%s: no line %q in %q", c.name, want, said)
			}
		}
	}
}

// A proxy accepts connections even if its own packets are dropped.
func TestHeldByProxy(t *testing.T) {
	f := healthy()
	r := try(f, 8080, func(q replica.Dial, a *replica.Answer) {
		if q.To == addrPort("127.0.0.1:8080") {
			*a = replica.Answer{Outcomes: []replica.Outcome{{Got: replica.Silent, Socket: -1}}}
			if q.Explain {
				a.Lost = &replica.Lost{Space: 1, Rule: rule("ip filter", "INPUT", 0, "")}
			}
		}
	})
	p := find(t, r, "0.0.0.0", 8080).Paths[Loopback]
	if p.Kind != Held ||
		p.Why.Words != "lost-behind 172.17.0.2:80 dropped container web filter INPUT" {
		t.Errorf("%+v", p)
	}
}

// A socket on one address does not explain the result at another.
func TestOtherAddress(t *testing.T) {
	f := healthy()
	f.Listeners[0].Addr = addrPort("127.0.0.1:22")
	blocked := losing("machine", replica.Lost{Rule: rule("ip filter", "INPUT", 0, "")})
	for port, want := range map[uint16]string{0: "Other machines reach no port.\nContainers and this machine reach 1 port: 8080/tcp " +
		"(web:80).\nOnly this machine reaches 22/tcp (sshd).", 22: "Only this machine reaches 22/tcp (sshd)."} {
		r := try(f, port, blocked)
		if got := strings.Join(r.Answer.Text, "\n"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		row := find(t, r, "127.0.0.1", 22)
		if got := routes(row); got != "direct  nothing nothing blocked" {
			t.Errorf("port %d: %q", port, got)
		}
		if p := row.Paths[Remote]; p.Remedy != "" || p.Why.Code != LostBesides ||
			p.Why.At != "198.18.0.1:22" || p.Why.Lost.Code != Dropped {
			t.Errorf("port %d: %+v", port, p)
		}
	}
	r := try(f, 0, func(q replica.Dial, a *replica.Answer) {
		if q.To == addrPort("198.18.0.1:22") && q.Card+q.Bridge == "" && q.Proto == "tcp" {
			*a = answer(f.Copy.socketOf(f.Containers[0].Listeners[0], "net:[2]"), q,
				"172.17.0.2:80")
		}
	})
	if row := find(t, r, "0.0.0.0", 22); routes(row) != "  DNAT nothing nothing" ||
		row.Server.Name != "web" {
		t.Errorf("%q %+v", routes(row), row.Server)
	}
}

// A packet that is dropped when it is forwarded was seen with its first destination only.
func TestRemedyAfterDNAT(t *testing.T) {
	f := healthy()
	r := try(f, 8080, func(q replica.Dial, a *replica.Answer) {
		if q.Card != "" {
			lose(q, a, replica.Lost{Rule: rule("ip filter", "DOCKER-USER", 1, ""),
				Dst: addrPort("172.17.0.2:80")})
		}
	})
	p := find(t, r, "0.0.0.0", 8080).Paths[Remote]
	if p.Trial.line() != "sudo iptables -I DOCKER-USER 1 -d 172.17.0.2 -p tcp --dport 80 -j RETURN" {
		t.Errorf("%+v", p)
	}
}

func TestStuck(t *testing.T) {
	f := healthy()
	f.Listeners[0].Waiting, f.Containers[0].Listeners[0].Waiting = 1, 1
	r := try(f, 0)
	for port, want := range map[uint16]string{22: "held  held held held",
		8080: "held  held held held"} {
		if got := routes(find(t, r, "0.0.0.0", port)); got != want {
			t.Errorf("%d: %q", port, got)
		}
	}
}

// With a strict rp_filter the other network's gateway does not answer the container.
func TestAnswerByAnotherNetwork(t *testing.T) {
	f := healthy()
	f.Containers[0].Devices = append(f.Containers[0].Devices, Device{Name: "eth1", Index: 7,
		Kind: "veth", Peer: 8})
	f.Devices = append(f.Devices, Device{Name: "br-b", Kind: "bridge", Index: 9, Docker: true},
		Device{Name: "veth2", Index: 8, Kind: "veth", Peer: 7, Master: "br-b"})
	for value, want := range map[string]string{"1": "strict-neighbour reply container web eth1 br-b",
		"0": "no-next-hop reply container web"} {
		try(f, 8080, losing("machine", replica.Lost{Space: 1, Reply: true,
			Why: replica.NoNeighbour}))
		f.Copy.Machine.Spaces[0].Sysctls = map[string]string{"net/ipv4/conf/br-b/rp_filter": value}
		p := find(t, judged(f, 8080), "0.0.0.0", 8080).Paths[Remote]
		if p.Block.Cause != want || (p.Remedy != "") != (value == "1") {
			t.Errorf("%s: %+v %+v", value, p, p.Block)
		}
	}
}

// The hops are those that the packet was seen to take.
func TestFollowed(t *testing.T) {
	seen := func(space int, device, src, dst string) replica.Step {
		return replica.Step{Space: space, Device: device, Src: addrPort(src), Dst: addrPort(dst)}
	}
	const client, own, gate, inner = "172.17.0.9:5", "198.18.0.1:8080", "172.17.0.1:6",
		"172.17.0.2:80"
	f := healthy()
	r := try(f, 8080, func(q replica.Dial, a *replica.Answer) {
		if !q.Explain || q.Bridge == "" {
			return
		}
		a.Steps = []replica.Step{seen(-1, "eth0", client, own), seen(0, "veth9", client, own),
			seen(0, "docker0", client, own), seen(0, "docker0", gate, inner),
			seen(0, "veth1", gate, inner), seen(1, "eth0", gate, inner),
			{Space: 1, Device: "eth0", Out: true, Reply: true, Src: addrPort(inner)}}
	})
	hops := func(p Path) string {
		var out []string
		for _, h := range p.Hops {
			out = append(out, h.Kind+" "+h.Text)
		}
		return strings.Join(out, "; ")
	}
	const server = "server web listens on 172.17.0.2:80"
	p := find(t, r, "0.0.0.0", 8080).Paths[Neighbour]
	if got, want := hops(p), "veth the client container's eth0; bridge docker0; proxy docker-proxy "+
		"264 on 0.0.0.0:8080 dials 172.17.0.2:80; bridge docker0; veth the container's eth0; "+
		server; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	proxyOff(f)
	r = try(f, 8080, func(q replica.Dial, a *replica.Answer) {
		if q.Explain && q.Bridge == "" && q.Card == "" {
			a.Steps = []replica.Step{seen(0, "docker0", own, inner), seen(0, "veth1", gate, inner),
				seen(1, "eth0", gate, inner)}
		}
	})
	p = find(t, r, "0.0.0.0", 8080).Paths[OwnAddr]
	if got, want := hops(p), "DNAT to 172.17.0.2:80; bridge docker0; MASQ the server sees 172.17.0.1; "+
		"veth the container's eth0; "+server; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// An engine in a container has proxies there.
func TestNestedProxy(t *testing.T) {
	f := healthy()
	outer := &f.Containers[0]
	outer.Listeners[0].Owners[0].Name = "docker-proxy"
	outer.Proxies = []Proxy{{PID: webPID, Proto: "tcp", Host: addrPort("[::]:80"),
		Container: addrPort("172.18.0.2:80")}}
	f.Containers = append(f.Containers, Container{ID: "aa", Name: "inner", PID: 9, Rootless: true,
		Space: "net:[3]", Addrs: []netip.Addr{addr("172.18.0.2")}, State: "running",
		Listeners: []Listener{{Proto: "tcp", Addr: addrPort("0.0.0.0:80"), Inode: 70}}})
	r := try(f, 8080, func(q replica.Dial, a *replica.Answer) {
		for i, s := range f.Copy.Sockets {
			if o := &a.Outcomes[0]; s.Relay == addrPort("172.18.0.2:80") && o.Socket == i {
				o.Relays, o.Socket = append(o.Relays, i), len(f.Copy.Sockets)-1
			}
		}
	})
	row := find(t, r, "0.0.0.0", 8080)
	if got := routes(row); got != "proxy  DNAT proxy DNAT" {
		t.Errorf("%q", got)
	}
	if x, ok := f.Copy.container(len(f.Copy.Sockets) - 1); !ok || x.Name != "inner" ||
		fmt.Sprint(row.Paths[Remote].Hops) != "[{proxy docker-proxy 305 in web dials "+
			"172.18.0.2:80, of container inner} {DNAT to 172.17.0.2:80}]" {
		t.Errorf("%+v", row.Paths[Remote])
	}
}

// The text of a rule may be read after the packet was lost.
func TestRuleText(t *testing.T) {
	f := healthy()
	try(f, 8080, losing("machine", replica.Lost{Rule: rule("ip filter", "INPUT", 3, "")}))
	want := []int{0}
	if got := f.Copy.Quoted(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	f.Copy.Machine.Spaces[0].Text = []replica.RuleText{
		{Table: "ip6 filter", Chain: "INPUT", Number: 3, Text: "-A INPUT -j REJECT"},
		{Table: "ip filter", Chain: "INPUT", Number: 3, Text: "-A INPUT -i eth0 -j DROP"}}
	r := Judge(f, 8080)
	if b := find(t, r, "0.0.0.0", 8080).Paths[Remote].Block; b.Rule != "-A INPUT -i eth0 -j DROP" ||
		b.Table != "filter" || b.Number != 3 || b.Policy {
		t.Errorf("%+v", b)
	}
}

// Rules bypass a program's socket, as those of a pod's hostPort on a web server's port.
func TestShadowed(t *testing.T) {
	f := healthy()
	f.Listeners[0].Addr, f.Listeners[0].Owners[0].Name = addrPort("[::]:22"), "nginx"
	r := try(f, 0, func(q replica.Dial, a *replica.Answer) {
		if q.To.Port() == 22 && q.To.Addr().Is4() {
			i := f.Copy.socketOf(f.Containers[0].Listeners[0], "net:[2]")
			*a = answer(i, q, "172.17.0.2:80")
		}
	})
	if row := find(t, r, "*", 22); routes(row) != " direct   " || row.Server.Name != "nginx" {
		t.Errorf("%q %+v", routes(row), row)
	}
	if row := find(t, r, "0.0.0.0", 22); routes(row) != "DNAT  DNAT hairpin DNAT" ||
		row.Server.Name != "web" || row.Holder.Kind != "rules" {
		t.Errorf("%q %+v", routes(row), row)
	}
}

// Packets from 127.0.0.1 may not leave lo for the bridge to which others are redirected.
func TestLocalnetDevice(t *testing.T) {
	f := healthy()
	proxyOff(f)
	r := try(f, 8080, losing("127.0.0.1", replica.Lost{Why: replica.Localnet}))
	if p := find(t, r, "0.0.0.0", 8080).Paths[Loopback]; p.localnet != "docker0" ||
		p.Trial.line() != "sudo sysctl -w net.ipv4.conf.docker0.route_localnet=1" {
		t.Errorf("%+v", p)
	}
}

func TestRandom(t *testing.T) {
	f := healthy()
	other := f.Containers[0]
	other.ID, other.Name, other.Space = strings.Repeat("b", len(webID)), "api", "net:[3]"
	other.Addrs, other.Published = []netip.Addr{addr("172.17.0.3")}, nil
	f.Containers = append(f.Containers, other)
	r := try(f, 0, func(q replica.Dial, a *replica.Answer) {
		if q.To == addrPort("198.18.0.1:9320") && q.Card != "" {
			i := f.Copy.socketOf(other.Listeners[0], other.Space)
			*a = answer(i, q, "172.17.0.3:80")
			a.Outcomes = append(a.Outcomes, answer(f.Copy.socketOf(other.Listeners[0], "net:[2]"),
				q, "").Outcomes...)
		}
	})
	p := find(t, r, "0.0.0.0", 9320).Paths[Remote]
	if !slices.Equal(p.Servers, []string{"container api", "container web"}) || len(p.Doubt) > 0 {
		t.Errorf("%+v", p)
	}
	f.Containers[1].Name = "web"
	p = find(t, Judge(f, 0), "0.0.0.0", 9320).Paths[Remote]
	if !slices.Equal(p.Servers, []string{"container web at 172.17.0.3:80",
		"container web at 172.17.0.2:80"}) {
		t.Errorf("%q", p.Servers)
	}
}

func TestRedirect(t *testing.T) {
	f := healthy()
	r := try(f, 23, func(q replica.Dial, a *replica.Answer) {
		if q.To.Port() == 23 && q.To.Addr().Is4() && q.Bridge+q.Card != "" {
			*a = answer(0, q, "")
		}
	})
	row := find(t, r, "0.0.0.0", 23)
	if got := routes(row); got != "nothing  nothing direct direct" || row.Server.Name != "sshd" {
		t.Errorf("%q %+v", got, row)
	}
}

// Clients of each kind dial each of the machine's addresses in their network.
func TestAddresses(t *testing.T) {
	f := healthy()
	f.Devices = append(f.Devices, Device{Name: "eth1", Index: 9, Kind: "device", Up: true,
		MTU: 1500, Addrs: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")}})
	r := try(f, 22, func(q replica.Dial, a *replica.Answer) {
		if q.To.Addr() == addr("10.0.0.1") && q.Card != "eth0" || q.Card == "eth0" &&
			q.Source.IsValid() {
			lose(q, a, replica.Lost{Rule: rule("ip filter", "INPUT", 1, "")})
		}
	})
	row := find(t, r, "0.0.0.0", 22)
	var got []string
	for _, p := range row.Dials {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", p.From, p.Dial, p.Kind)))
	}
	for _, want := range []string{"10.0.0.1:22 blocked", "198.18.0.1:22 direct",
		"172.17.0.1:22 direct", "a container on bridge 172.17.0.1:22 direct",
		"a machine at eth1 10.0.0.1:22 blocked", "a machine at eth0 198.18.0.1:22 direct",
		"a machine behind eth0's router 198.18.0.1:22 blocked"} {
		if !slices.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, strings.Join(got, "\n"))
		}
	}
	p := row.Paths[Remote]
	if p.Kind != Blocked || !slices.Equal(p.Depends, []string{"a machine at eth0: direct",
		"a machine at eth1: direct"}) ||
		!slices.Equal(row.Paths[OwnAddr].Depends, []string{"10.0.0.1:22: blocked"}) {
		t.Errorf("%+v\n%+v", p, row.Paths[OwnAddr])
	}
	if x := r.Exposure[0]; x.Reach != FromMachines || x.Sure {
		t.Errorf("%+v", x)
	}
}

// A neighbour may reach a published port at the container's own address.
func TestOwnAddressOfPublished(t *testing.T) {
	f := healthy()
	f.Listeners, f.Proxies = f.Listeners[:2], f.Proxies[:1]
	f.Listeners[1].Addr, f.Proxies[0].Host = addrPort("127.0.0.1:8080"), addrPort("127.0.0.1:8080")
	f.Containers[0].Published = []Published{{"tcp", 80, addrPort("127.0.0.1:8080")}}
	r := try(f, 8080, nil)
	x := r.Exposure[0]
	if x.Reach != FromMachines || x.Sure || !slices.Equal(x.Dial, []string{"172.17.0.2:80"}) {
		t.Errorf("%+v", x)
	}
	said := strings.Join(r.Answer.Text, " ")
	if said != "Other machines may reach 8080/tcp (web:80) at 172.17.0.2:80." {
		t.Error(said)
	}
	r = try(f, 8080, losing("machine", replica.Lost{Rule: rule("ip raw", "PREROUTING", 1, "")}))
	if x := r.Exposure[0]; x.Reach != FromHere || !x.Sure {
		t.Errorf("%+v", x)
	}
}

func TestUDPSourceDoubt(t *testing.T) {
	f := healthy()
	f.Listeners = append(f.Listeners, Listener{Proto: "udp", Addr: addrPort("0.0.0.0:53"),
		Inode: 8, Owners: []Process{{PID: 8, Name: "named"}}})
	r := try(f, 53, func(q replica.Dial, a *replica.Answer) {
		if q.Bridge != "" && q.To.Addr() == addr("198.18.0.1") {
			a.Outcomes[0].From = addrPort("172.17.0.1:53")
		}
	})
	if got := routes(find(t, r, "0.0.0.0", 53)); got != "direct  direct direct? direct" {
		t.Errorf("%q", got)
	}
	for docker, want := range map[string]string{"20.10.24": "proxy  DNAT blocked DNAT",
		"28.5.2": "proxy  DNAT proxy DNAT", "": "proxy  DNAT proxy? DNAT"} {
		f := healthy()
		f.Docker = docker
		f.Listeners[1].Proto, f.Proxies[0].Proto = "udp", "udp"
		f.Containers[0].Listeners[0].Proto, f.Containers[0].Published[0].Proto = "udp", "udp"
		r := try(f, 8080, func(q replica.Dial, a *replica.Answer) {
			if q.Bridge != "" {
				a.Outcomes[0].From = addrPort("172.17.0.1:8080")
			}
		})
		if got := routes(find(t, r, "0.0.0.0", 8080)); got != want {
			t.Errorf("%q: %q", docker, got)
		}
	}
}

// Containers on a card of this machine dial each other.
func TestMacvlan(t *testing.T) {
	f := healthy()
	for i, name := range []string{"mv1", "mv2"} {
		a := addr(fmt.Sprintf("198.18.0.%d", 20+i))
		f.Containers = append(f.Containers, Container{ID: name, Name: name, PID: 20 + i,
			State: "running", Space: fmt.Sprintf("net:[%d]", 20+i), Networks: []string{"lan"},
			Addrs: []netip.Addr{a}, ListenersKnown: true,
			Devices: []Device{{Name: "eth0", Index: 30 + i, Kind: "macvlan", Peer: 2, Up: true,
				Addrs: []netip.Prefix{netip.PrefixFrom(a, 24)}}},
			Listeners: []Listener{{Proto: "tcp", Addr: addrPort("0.0.0.0:8030")}}})
	}
	r := try(f, 0, func(q replica.Dial, a *replica.Answer) {
		if q.To.Port() == 8030 && (q.Space == 0 && q.Card == "" || q.Bridge != "") {
			lose(q, a, replica.Lost{Why: replica.NoNeighbour})
		}
	})
	var got []string
	for _, from := range inside {
		p := r.Inside[0].Paths[from]
		got = append(got, fmt.Sprint(p.From, " ", p.Kind, len(p.Doubt)))
	}
	want := []string{" blocked0", "container mv2 direct0", "a container on bridge blocked0",
		"a machine at eth0 direct0"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The copy has no programs of other machines, so it cannot know what answers there.
func TestDNATToAnotherMachine(t *testing.T) {
	const client, target = "172.17.0.9:5", "198.18.0.20:8000"
	for name, lost := range map[string]*replica.Lost{
		"refused":    nil,
		"no machine": {Why: replica.NoNeighbour, Device: "eth0"},
		"left":       {Why: replica.Leaves, Device: "eth0"},
		"returned":   {Space: -1, Why: replica.Untraced},
	} {
		r := try(healthy(), 7104, func(q replica.Dial, a *replica.Answer) {
			if q.Proto != "tcp" || q.Bridge == "" {
				return
			}
			if *a = answer(-1, q, target); lost != nil {
				lose(q, a, *lost)
			}
			if q.Explain {
				step := func(space int, device, to string) replica.Step {
					return replica.Step{Space: space, Device: device, Src: addrPort(client),
						Dst: addrPort(to)}
				}
				a.Steps = []replica.Step{step(-1, "eth0", q.To.String()),
					step(0, "docker0", q.To.String()), step(0, "eth0", target),
					step(-1, "e0.2", target)}
			}
		})
		row := find(t, r, "0.0.0.0", 7104)
		p := row.Paths[Neighbour]
		if p.Kind != ByNAT || len(p.Doubt) != 1 || p.nobody != "" || row.Server.Name != target ||
			len(r.Traps) > 0 {
			t.Errorf("%s: %+v %+v", name, row.Server, p)
		}
		if got, want := fmt.Sprint(p.Hops),
			"[{veth the client container's eth0} {bridge docker0} {DNAT to 198.18.0.20:8000} "+
				"{wire eth0} {server 198.18.0.20:8000, outside this machine and its containers}]"; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A packet that is lost on its way to this machine proves no redirection.
func TestLostBeforeThisMachine(t *testing.T) {
	f := healthy()
	mv := addr("198.18.0.20")
	f.Containers = append(f.Containers, Container{ID: "mv1", Name: "mv1", PID: 20,
		State: "running", Space: "net:[20]", Networks: []string{"lan"}, Addrs: []netip.Addr{mv},
		ListenersKnown: true, Devices: []Device{{Name: "eth0", Index: 30, Kind: "macvlan", Peer: 2,
			Up: true, Addrs: []netip.Prefix{netip.PrefixFrom(mv, 24)}}}})
	for _, client := range []replica.Client{{Space: 2}, {Bridge: "docker0"}, {Card: "eth0"}} {
		lost := 0
		r := try(f, 7200, func(q replica.Dial, a *replica.Answer) {
			if q.Client == client {
				l := replica.Lost{Space: -1, Why: replica.NoNeighbour}
				if q.Space > 0 {
					l.Space = q.Space
				}
				lose(q, a, l)
				lost++
			}
		})
		if lost == 0 || len(r.Ports) > 0 {
			t.Errorf("%+v: %d lost, %+v", client, lost, r.Ports)
		}
	}
}

func TestNotMade(t *testing.T) {
	f := healthy()
	r := try(f, 22, func(q replica.Dial, a *replica.Answer) {
		if q.Card != "" {
			a.Outcomes = []replica.Outcome{{Got: replica.Failed, Err: "no such card"}}
		}
	})
	if got := routes(find(t, r, "0.0.0.0", 22)); got != "direct  direct direct nothing?" ||
		len(r.Missing) != 1 || !strings.HasSuffix(r.Missing[0].Why, "no such card") {
		t.Errorf("%q %+v", got, r.Missing)
	}
	if x := r.Exposure[0]; x.Reach == FromMachines || x.Sure {
		t.Errorf("other machines, whose connections were not made, certainly reach nothing: %+v", x)
	}
	f.Listeners, f.Proxies = f.Listeners[:2], f.Proxies[:1]
	r = try(f, 8080, func(q replica.Dial, a *replica.Answer) {
		if q.To.Addr() == netip.IPv6Loopback() {
			a.Outcomes = []replica.Outcome{{Got: replica.Failed, Err: "no port is free"}}
		}
	})
	if len(r.Traps) > 0 {
		t.Errorf("%+v", r.Traps)
	}
}

func TestBounds(t *testing.T) {
	f := healthy()
	for i := range 300 {
		f.Listeners = append(f.Listeners, Listener{Proto: "tcp", Inode: uint32(100 + i),
			Addr:   netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(3000+i)),
			Owners: []Process{{PID: 9, Name: "many"}}})
	}
	for i := range 60 {
		f.Devices = append(f.Devices, Device{Name: fmt.Sprintf("br-%012x", i), Index: 100 + i,
			Kind: "bridge", Up: true, Docker: true, Addrs: []netip.Prefix{netip.PrefixFrom(
				netip.AddrFrom4([4]byte{10, 1, byte(i), 1}), 24)}})
	}
	r := try(f, 0, nil)
	if n := len(f.Copy.asked); n > maxDials || n < 300 || len(f.Copy.Left) != 2 {
		t.Errorf("%d connections, %+v", n, f.Copy.Left)
	}
	row := find(t, r, "0.0.0.0", 3299)
	if got := routes(row); got != "direct  direct direct direct" {
		t.Errorf("%q", got)
	}
	try(f, 3000, nil)
	if len(f.Copy.Left) != 0 {
		t.Errorf("%+v", f.Copy.Left)
	}
}

func TestServed(t *testing.T) {
	check := func(got string) []Check {
		return []Check{{Client: Loopback, Dial: "127.0.0.1:8080", Got: got}}
	}
	for _, c := range []struct {
		kind   PathKind
		doubt  []Reason
		checks []Check
		want   bool
	}{{Direct, nil, nil, true}, {Nothing, nil, nil, false},
		{Nothing, []Reason{{Code: AtRandom}}, nil, true},
		{Nothing, nil, check("connected"), true}, {Direct, nil, check("refused"), false},
		{Direct, nil, check("timeout"), false}, {ByProxy, nil, check("closed"), true},
		{Nothing, nil, check("closed"), false}, {Held, nil, check("connected"), false},
		{Blocked, nil, nil, false}} {
		r := &Report{Checks: c.checks, Ports: []Row{{Paths: map[Client]Path{
			Loopback: {Kind: c.kind, Dial: "127.0.0.1:8080", Doubt: c.doubt},
			Remote:   {Kind: Direct, Dial: "198.18.0.1:8080"}}}}}
		if r.Served() != c.want {
			t.Errorf("%+v: %v", c, !c.want)
		}
	}
}

func TestClient(t *testing.T) {
	f := healthy()
	banned := func(q replica.Dial, a *replica.Answer) {
		if q.Source == addr("198.51.100.7") {
			lose(q, a, replica.Lost{Rule: rule("ip filter", "FORWARD", 1, "")})
		}
	}
	for client, want := range map[string]PathKind{"198.51.100.7": Blocked, "198.51.101.7": ByNAT} {
		f.Client = addr(client)
		r := try(f, 8080, banned)
		if p := find(t, r, "0.0.0.0", 8080).Paths[Remote]; p.Kind != want || p.Depends != nil ||
			r.Client != client || p.From != client || f.CheckClient(f.Client) != nil {
			t.Errorf("%s: %+v", client, p)
		}
	}
	for _, own := range []string{"198.18.0.1", "127.0.0.9", "172.17.0.9"} {
		if f.CheckClient(addr(own)) == nil {
			t.Errorf("%s is taken for another machine", own)
		}
	}
	f.Devices = append(f.Devices, Device{Name: "eth1", Index: 9, Kind: "device", Up: true,
		MTU: 1500, Addrs: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")}})
	f.Client = addr("10.0.0.9")
	for _, q := range NewCopy(f, &replica.Machine{}, 8080).Dials() {
		if q.Card != "" && (q.Card != "eth1" || q.Source != f.Client) {
			t.Errorf("%+v", q)
		}
	}
}

func TestMeasure(t *testing.T) {
	commands := func(r *Report) string {
		var out []string
		for _, m := range r.Measure {
			out = append(out, fmt.Sprint(m.Command, m.Clients))
		}
		return strings.Join(out, "\n")
	}
	f := healthy()
	want := "toll compare publish-proxy publish-nat --from host --to loopback,loopback6,address[127.0.0.1 ::1 own]\n" +
		"toll compare publish-proxy publish-nat --from container[container]\ntoll compare publish-nat publish-proxy --from remote[machine]"
	if got := commands(try(f, 8080, nil)); got != want {
		t.Errorf("%s", got)
	}
	proxyOff(f)
	f.Listeners[0].Addr = addrPort("198.18.0.1:22")
	want = "toll compare host publish-nat --from host --to address[own]\ntoll compare host publish-proxy publish-nat --from container[container]\n" +
		"toll compare host publish-proxy publish-nat --from remote[machine]"
	if got := commands(try(f, 22, nil)); got != want {
		t.Errorf("%s", got)
	}
	if got := commands(try(f, 0, nil)) + commands(try(f, 4, nil)); got != "" {
		t.Errorf("%s", got)
	}
}

func TestPortsOfSomeClientsOnly(t *testing.T) {
	for name, only := range map[string]replica.Client{
		"neighbours": {Card: "eth0"},
		"containers": {Bridge: "docker0"},
	} {
		f := healthy()
		r := try(f, 0, func(q replica.Dial, a *replica.Answer) {
			if q.Proto == "tcp" && q.To == addrPort("198.18.0.1:7001") && q.Client == only {
				*a = answer(f.Copy.socketOf(f.Containers[0].Listeners[0], "net:[2]"), q,
					"172.17.0.2:80")
			}
		})
		if row := find(t, r, "0.0.0.0", 7001); row.Server.Name != "web" {
			t.Errorf("%s: %+v", name, row)
		}
	}
}
