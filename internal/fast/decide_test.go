package fast

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/paths/firewall"
	"github.com/bridgetoll/bridgetoll/internal/ports"
)

func facts() *ports.Facts {
	at := netip.MustParseAddrPort
	web := at("172.17.0.2:80")
	f := &ports.Facts{
		Docker:   "28.5.2",
		Known:    ports.Known{Rules: true, OldRules: true, Attached: true, Owners: true},
		Switches: ports.Switches{ClientPorts: [2]uint16{32768, 60999}},
		Containers: []ports.Container{{ID: "1234", Name: "web", PID: 100, State: "running",
			Addrs: []netip.Addr{web.Addr()}, Published: []ports.Published{
				{Proto: "tcp", Port: 80, Host: at("0.0.0.0:8080")},
				{Proto: "tcp", Port: 80, Host: at("[::]:8080")},
				{Proto: "tcp", Port: 80, Host: at("127.0.0.1:8081")}}}},
		Devices: []ports.Device{
			{Name: "lo", Kind: "loopback", Up: true,
				Addrs: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8"),
					netip.MustParsePrefix("::1/128")}},
			{Name: "eth0", Up: true, Uplink: true,
				Addrs: []netip.Prefix{netip.MustParsePrefix("192.0.2.7/24")}},
			{Name: "docker0", Kind: "bridge", Docker: true, Up: true,
				Addrs: []netip.Prefix{netip.MustParsePrefix("172.17.0.1/16")}},
		},
		Rules: firewall.ParseSave(dockers, false),
	}
	for i, p := range f.Containers[0].Published {
		f.Proxies = append(f.Proxies, ports.Proxy{
			PID: 200 + i, Proto: "tcp", Host: p.Host, Container: web,
			Command: []string{"/usr/bin/docker-proxy", "-proto", "tcp"}})
		f.Listeners = append(f.Listeners, ports.Listener{
			Proto: "tcp", Addr: p.Host, Inode: uint32(300 + i),
			Owners: []ports.Process{{PID: 200 + i, Name: "docker-proxy"}}})
	}
	return f
}

const dockers = `*raw
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A PREROUTING -d 172.17.0.2/32 ! -i docker0 -j DROP
-A PREROUTING -d 127.0.0.1/32 ! -i lo -p tcp -m tcp --dport 8081 -j DROP
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:DOCKER - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A OUTPUT ! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j DOCKER
-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE
-A DOCKER ! -i docker0 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 172.17.0.2:80
-A DOCKER -d 127.0.0.1/32 ! -i docker0 -p tcp -m tcp --dport 8081 -j DNAT --to-destination 172.17.0.2:80
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
:DOCKER-USER - [0:0]
-A FORWARD -j DOCKER-USER
COMMIT
`

func TestDecide(t *testing.T) {
	routes, left := decideRoutes(facts(), Choice{All: true})
	var got []string
	for _, r := range routes {
		got = append(got, r.Dial.String()+" > "+r.Target.String())
		if r.ContainerID != "1234" || r.listener.PID < 200 ||
			r.listener.Inode != uint32(r.listener.PID+100) {
			t.Errorf("%+v", r)
		}
	}
	want := "127.0.0.1:8080 > 172.17.0.2:80, [::1]:8080 > 172.17.0.2:80, 127.0.0.1:8081 > 172.17.0.2:80"
	if strings.Join(got, ", ") != want || len(left) != 0 {
		t.Errorf("%s; left %+v", strings.Join(got, ", "), left)
	}
	routes, left = decideRoutes(facts(), Choice{Ports: []uint16{8081, 9}})
	if len(routes) != 1 || routes[0].Dial.Port() != 8081 || len(left) != 1 ||
		left[0].Host.Port() != 9 || !strings.Contains(left[0].Why, "no running container") {
		t.Errorf("%+v; left %+v", routes, left)
	}
}

func TestDecideRefuses(t *testing.T) {
	rule := func(table, text string) func(*ports.Facts) {
		return func(f *ports.Facts) {
			before, after, _ := strings.Cut(dockers, "*"+table+"\n")
			f.Rules = firewall.ParseSave(before+"*"+table+"\n"+strings.Replace(
				after, "COMMIT", text+"\nCOMMIT", 1), false)
		}
	}
	link := func(own bool) func(*ports.Facts) {
		return func(f *ports.Facts) {
			f.Devices = append(f.Devices, ports.Device{
				Name: "veth1", Index: 9, Kind: "veth", Master: "docker0",
				Attached: []string{"queueing discipline: tbf"}})
			f.Containers[0].Devices = []ports.Device{
				{Name: "eth0", Peer: map[bool]int{true: 9, false: 10}[own]}}
		}
	}
	other := facts()
	link(false)(other)
	if routes, left := decideRoutes(other, Choice{All: true}); len(routes) != 3 {
		t.Errorf("what is attached to another container's link: %+v", left)
	}
	for name, c := range map[string]struct {
		change func(*ports.Facts)
		why    string
	}{
		"udp": {func(f *ports.Facts) {
			f.Containers[0].Published[0].Proto = "udp"
		}, "udp is left alone"},
		"rootless": {func(f *ports.Facts) {
			f.Containers[0].Rootless = true
		}, "rootless"},
		"paused": {func(f *ports.Facts) {
			f.Containers[0].State = "paused"
		}, "its container is paused"},
		"no-network": {func(f *ports.Facts) {
			f.Containers[0].Shares = "pod"
		}, "no network of its own"},
		"policy-routing": {func(f *ports.Facts) {
			f.Switches.RoutedBySocket = "ip rule 9: prohibit"
		},
			"policy routing may refuse a client's packets, or have them take another route than docker-proxy's: ip rule 9"},
		"own-address": {func(f *ports.Facts) {
			f.Containers[0].Published[0].Host = netip.MustParseAddrPort("192.0.2.7:8080")
		}, "on 192.0.2.7 only"},
		"no-proxy": {func(f *ports.Facts) {
			f.Proxies = f.Proxies[1:]
		}, "no docker-proxy listens"},
		"other-program": {func(f *ports.Facts) {
			f.Proxies[0].Command[0] = "/tmp/my-docker-proxy"
		}, "no docker-proxy listens"},
		"other-owner": {func(f *ports.Facts) {
			f.Listeners[0].Owners[0].PID = 7
		}, "no docker-proxy listens"},
		"two-owners": {func(f *ports.Facts) {
			f.Listeners[0].Owners = append(f.Listeners[0].Owners, ports.Process{PID: 7})
		}, "no docker-proxy listens"},
		"proxy-elsewhere": {func(f *ports.Facts) {
			f.Proxies[0].Container = netip.MustParseAddrPort("172.17.0.9:80")
		}, "leads elsewhere"},
		"proxy-other-port": {func(f *ports.Facts) {
			f.Proxies[0].Container = netip.MustParseAddrPort("172.17.0.2:81")
		}, "leads elsewhere"},
		"rules-unknown": {func(f *ports.Facts) {
			f.Known.Rules = false
		}, "cannot be read"},
		"old-rules-unknown": {func(f *ports.Facts) {
			f.Known.OldRules = false
		}, "rules in iptables' old tables cannot be read"},
		"attached-unknown": {func(f *ports.Facts) {
			f.Known.Attached = false
		}, "what is attached to network devices cannot be read"},
		"attached-to-lo": {func(f *ports.Facts) {
			f.Devices[0].Attached = []string{"XDP: program 7"}
		}, "at lo: XDP: program 7"},
		"attached-to-bridge": {func(f *ports.Facts) {
			f.Devices[2].Attached = []string{"tc filter: ingress bpf"}
		}, "at docker0: tc filter: ingress bpf"},
		"attached-to-link": {link(true), "at veth1: queueing discipline: tbf"},
		"program": {func(f *ports.Facts) {
			f.Programs = []string{"program 7 (link 3)"}
		}, "a BPF program is attached to a packet filter: program 7 (link 3)"},
		"bridge-gone": {func(f *ports.Facts) {
			f.Devices = f.Devices[:2]
		}, "no bridge of Docker's"},
		"other-bridge": {func(f *ports.Facts) {
			f.Devices[2].Docker = false
		}, "no bridge of Docker's"},
		"output-to-container": {rule("filter", "-A OUTPUT -d 172.17.0.0/16 -p tcp -j DROP"),
			"to 172.17.0.2:80 meets drop in filter OUTPUT"},
		"output-owner": {rule("filter", "-A OUTPUT -m owner --uid-owner 1000 -j REJECT"),
			"a rule that toll cannot read"},
		"output-owner-accept": {rule("filter",
			"-A OUTPUT -d 172.17.0.2/32 -m owner --uid-owner 0 -j ACCEPT\n-A OUTPUT -o docker0 -j DROP"), "a rule that toll cannot read"},
		"output-to-loopback": {rule("filter",
			"-A OUTPUT -o lo -p tcp -m tcp --dport 8080 -j REJECT"),
			"to 127.0.0.1:8080 meets reject in filter OUTPUT"},
		"input-from-loopback": {rule("filter",
			"-A INPUT -i lo -p tcp -m tcp --dport 8080 -j DROP"),
			"to 127.0.0.1:8080 meets drop in filter INPUT"},
		"input-loopback-owner": {rule("filter", "-A INPUT -i lo -m cgroup --cgroup 7 -j DROP"),
			"a rule that toll cannot read"},
		"raw-output": {rule("raw", "-A OUTPUT -o docker0 -j DROP"),
			"to 172.17.0.2:80 meets drop in raw OUTPUT"},
		"raw-prerouting": {rule("raw",
			"-A PREROUTING -i lo -p tcp -m tcp --dport 8080 -j DROP"),
			"to 127.0.0.1:8080 meets drop in raw PREROUTING"},
		"translated-at-loopback": {rule("nat",
			"-A OUTPUT -p tcp -m tcp --dport 8080 -j DNAT --to-destination 10.0.0.1:1"),
			"meets dnat in nat OUTPUT"},
		"translated-behind": {rule("nat",
			"-A OUTPUT -d 172.17.0.2/32 -p tcp -j DNAT --to-destination 10.0.0.1:1"),
			"to 172.17.0.2:80 meets dnat in nat OUTPUT"},
		"source-behind-loopback": {rule("nat", "-A POSTROUTING -o lo -j MASQUERADE"),
			"to 127.0.0.1:8080 meets masquerade"},
		"reply-direction": {rule("filter",
			"-A INPUT -i lo -p tcp -m conntrack --ctdir REPLY -j DROP"),
			"the answer from 127.0.0.1:8080 meets drop in filter INPUT"},
		"reply-output": {rule("filter",
			"-A OUTPUT -o lo -p tcp -m conntrack --ctdir REPLY --ctreplsrcport 8080 -j DROP"),
			"the answer from 127.0.0.1:8080 meets drop in filter OUTPUT"},
		"reply-raw": {rule("raw",
			"-A PREROUTING -i lo -p tcp -m conntrack --ctdir REPLY -j DROP"),
			"the answer from 127.0.0.1:8080 meets drop in raw PREROUTING"},
		"reply-untracked": {rule("raw",
			"-A OUTPUT -s 127.0.0.1/32 -p tcp -m conntrack --ctstate INVALID -j DROP"),
			"127.0.0.1:8080 meets drop in raw OUTPUT"},
		"established": {rule("filter",
			"-A INPUT -i lo -p tcp -m conntrack --ctstate ESTABLISHED -j DROP"),
			"the answer from 127.0.0.1:8080 meets drop"},
		"established-there": {rule("filter",
			"-A OUTPUT -p tcp -m tcp --dport 8080 -m state --state ESTABLISHED -j DROP"),
			"a later packet to 127.0.0.1:8080 meets drop"},
		"status-seen-reply": {rule("filter",
			"-A OUTPUT -p tcp -m tcp --dport 8080 -m conntrack --ctstatus SEEN_REPLY -j DROP"),
			"a later packet to 127.0.0.1:8080 meets drop"},
		"status-assured": {rule("filter",
			"-A INPUT -i lo -p tcp -m conntrack --ctdir REPLY --ctstatus ASSURED -j DROP"),
			"a later answer from 127.0.0.1:8080 meets drop"},
		"only-new": {rule("filter",
			"-A INPUT -i lo -p tcp -m conntrack ! --ctstate NEW -j DROP"),
			"the answer from 127.0.0.1:8080 meets drop"},
		"client-ports": {rule("filter",
			"-A INPUT -i lo -p tcp -m tcp --dport 40000:41000 -j DROP"),
			"the answer from 127.0.0.1:8080 by the client's address or port: filter INPUT for ports 40000:41000"},
		"reply-of-container": {rule("filter",
			"-A INPUT -i docker0 -p tcp -m conntrack --ctstate ESTABLISHED -j DROP"),
			"the answer from 172.17.0.2:80 meets drop"},
		"later-to-container": {rule("filter",
			"-A OUTPUT -o docker0 -p tcp -m conntrack --ctstate ESTABLISHED -j DROP"),
			"a later packet to 172.17.0.2:80 meets drop"},
		"marked": {func(f *ports.Facts) {
			rule(
				"filter",
				"-A OUTPUT -d 172.17.0.0/16 -m owner --uid-owner 1000 -j MARK --set-xmark 0x7/0xffffffff")(f)
			f.Switches.RoutedByMark = "ip rule 9: from all fwmark 0x7 table 99"
		},
			"a rule in filter OUTPUT marks a packet to 172.17.0.2:80, and policy routing asks for marks: ip rule 9: from all fwmark 0x7 table 99"},
		"server-port": {rule("filter", "-A INPUT -i lo -p tcp -m tcp --sport 8080 -j DROP"),
			"a rule that toll cannot read"},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts()
			c.change(f)
			routes, left := decideRoutes(f, Choice{All: true})
			for _, r := range routes {
				if r.Dial.String() == "127.0.0.1:8080" {
					t.Errorf("it has a shortcut: %+v", r)
				}
			}
			var why []string
			for _, l := range left {
				why = append(why, l.Why)
			}
			if !strings.Contains(strings.Join(why, "\n"), c.why) {
				t.Errorf("left: %q, want %q", why, c.why)
			}
		})
	}
}

func TestDecideWithFirewall(t *testing.T) {
	for name, rules := range map[string]string{
		"stateful": "-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n-A INPUT -i lo -j ACCEPT\n-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT\n-A INPUT -j DROP",
		"invalid":  "-A INPUT -i lo -j ACCEPT\n-A INPUT -m conntrack --ctstate INVALID -j DROP\n-A OUTPUT -m conntrack --ctstate INVALID -j DROP",
		"port":     "-A INPUT -p tcp -m tcp --dport 3306 -j DROP\n-A OUTPUT -p tcp -m tcp --dport 25 -j REJECT",
		"ufw":      "-A INPUT -i lo -j ACCEPT\n-A OUTPUT -o lo -j ACCEPT\n-A INPUT -m state --state RELATED,ESTABLISHED -j ACCEPT\n-A OUTPUT -m state --state RELATED,ESTABLISHED,NEW -j ACCEPT\n-A INPUT -j DROP\n-A OUTPUT -j DROP",
	} {
		t.Run(name, func(t *testing.T) {
			f := facts()
			f.Rules = firewall.ParseSave(strings.Replace(
				dockers, ":DOCKER-USER - [0:0]", ":DOCKER-USER - [0:0]\n"+rules, 1), false)
			if routes, left := decideRoutes(f, Choice{All: true}); len(routes) != 3 {
				t.Errorf("%+v", left)
			}
		})
	}
}

func TestDecideWithMarks(t *testing.T) {
	for _, c := range []struct{ rule, routed string }{
		{"-A OUTPUT -j MARK --set-xmark 0x7/0xffffffff", ""},
		{"-A OUTPUT -p udp -j MARK --set-xmark 0x7/0xffffffff",
			"ip rule 9: from all fwmark 0x7 table 99"},
		{"-A INPUT -j MARK --set-xmark 0x7/0xffffffff", "ip rule 9: from all fwmark 0x7 table 99"},
	} {
		f := facts()
		f.Rules = firewall.ParseSave(strings.Replace(
			dockers, ":DOCKER-USER - [0:0]", ":DOCKER-USER - [0:0]\n"+c.rule, 1), false)
		f.Switches.RoutedByMark = c.routed
		if routes, left := decideRoutes(f, Choice{All: true}); len(routes) != 3 {
			t.Errorf("%s: %+v", c.rule, left)
		}
	}
}

func TestDecideLeavesMeasured(t *testing.T) {
	f := facts()
	f.Containers[0].Measuring = true
	if routes, left := decideRoutes(f, Choice{All: true}); len(routes)+len(left) != 0 {
		t.Error(routes, left)
	}
}
