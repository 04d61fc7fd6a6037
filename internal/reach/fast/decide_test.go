package fast

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
)

func facts() *ports.Facts {
	at := netip.MustParseAddrPort
	web := at("172.17.0.2:80")
	f := &ports.Facts{
		Docker: "28.5.2",
		Known:  ports.Known{Attached: true, Owners: true},
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
	want := "127.0.0.1:8080 > 172.17.0.2:80, [::1]:8080 > 172.17.0.2:80, 127.0.0.1:8081 > " +
		"172.17.0.2:80"
	if strings.Join(got, ", ") != want || len(left) != 0 {
		t.Errorf("%s; left %+v", strings.Join(got, ", "), left)
	}
	routes, left = decideRoutes(facts(), Choice{Ports: []uint16{8081, 9}})
	if len(routes) != 1 || routes[0].Dial.Port() != 8081 || len(left) != 1 ||
		left[0].Host.Port() != 9 || left[0].Why != "no running container publishes it" {
		t.Errorf("%+v; left %+v", routes, left)
	}
}

func TestDecideRefuses(t *testing.T) {
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
		}, "toll fast redirects only TCP"},
		"rootless": {func(f *ports.Facts) {
			f.Containers[0].Rootless = true
		}, "its engine is rootless: its containers are in another network"},
		"paused": {func(f *ports.Facts) {
			f.Containers[0].State = "paused"
		}, "its container is paused"},
		"no-network": {func(f *ports.Facts) {
			f.Containers[0].Shares = "pod"
		}, "its container has no network of its own"},
		"policy-routing": {func(f *ports.Facts) {
			f.Switches.RoutedBySocket = "ip rule 9: prohibit"
		},
			"policy routing may refuse a client's packets, or send them by another route " +
				"than docker-proxy's: ip rule 9: prohibit"},
		"own-address": {func(f *ports.Facts) {
			f.Containers[0].Published[0].Host = netip.MustParseAddrPort("192.0.2.7:8080")
		}, "it is published on 192.0.2.7 only; toll fast redirects only clients that dial " +
			"127.0.0.1 or ::1"},
		"own-address-of-other-family": {func(f *ports.Facts) {
			host := netip.MustParseAddrPort("[2001:db8::10]:8080")
			f.Containers[0].Published[0].Host, f.Proxies[0].Host = host, host
			f.Listeners[0].Addr = host
		}, "it is published on 2001:db8::10 only; toll fast redirects only clients that dial " +
			"127.0.0.1 or ::1"},
		"silent": {func(f *ports.Facts) {
			f.Containers[0].ListenersKnown = true
		}, "nothing listens on 172.17.0.2:80 in its container"},
		"no-proxy": {func(f *ports.Facts) {
			f.Proxies = f.Proxies[1:]
		}, "no docker-proxy listens for it"},
		"other-program": {func(f *ports.Facts) {
			f.Proxies[0].Command[0] = "/tmp/my-docker-proxy"
		}, "no docker-proxy listens for it"},
		"other-owner": {func(f *ports.Facts) {
			f.Listeners[0].Owners[0].PID = 7
		}, "no docker-proxy listens for it"},
		"two-owners": {func(f *ports.Facts) {
			f.Listeners[0].Owners = append(f.Listeners[0].Owners, ports.Process{PID: 7})
		}, "no docker-proxy listens for it"},
		"proxy-elsewhere": {func(f *ports.Facts) {
			f.Proxies[0].Container = netip.MustParseAddrPort("172.17.0.9:80")
		}, "docker-proxy forwards to an address that the engine does not report: " +
			"172.17.0.9:80"},
		"proxy-other-port": {func(f *ports.Facts) {
			f.Proxies[0].Container = netip.MustParseAddrPort("172.17.0.2:81")
		}, "docker-proxy forwards to an address that the engine does not report: " +
			"172.17.0.2:81"},
		"attached-unknown": {func(f *ports.Facts) {
			f.Known.Attached = false
		}, "cannot read which programs and filters are attached to network devices"},
		"attached-to-lo": {func(f *ports.Facts) {
			f.Devices[0].Attached = []string{"XDP: program 7"}
		}, "packets may be dropped or changed at lo: XDP: program 7"},
		"attached-to-bridge": {func(f *ports.Facts) {
			f.Devices[2].Attached = []string{"tc filter: ingress bpf"}
		}, "packets may be dropped or changed at docker0: tc filter: ingress bpf"},
		"attached-to-link": {link(true),
			"packets may be dropped or changed at veth1: queueing discipline: tbf"},
		"bridge-gone": {func(f *ports.Facts) {
			f.Devices = f.Devices[:2]
		}, "no Docker bridge leads to 172.17.0.2"},
		"other-bridge": {func(f *ports.Facts) {
			f.Devices[2].Docker = false
		}, "no Docker bridge leads to 172.17.0.2"},
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
			slices.Sort(why)
			if got := strings.Join(slices.Compact(why), "; "); got != c.why {
				t.Errorf("%q, want %q", got, c.why)
			}
		})
	}
}

func TestDecideLeavesMeasured(t *testing.T) {
	f := facts()
	f.Containers[0].Measuring = true
	if routes, left := decideRoutes(f, Choice{All: true}); len(routes)+len(left) != 0 {
		t.Error(routes, left)
	}
}

func TestRefuse(t *testing.T) {
	at := func(port uint16) netip.AddrPort {
		return netip.AddrPortFrom(netip.IPv4Unspecified(), port)
	}
	left := Left{
		Ports: []Refusal{{Proto: "udp", Host: at(53), Why: "A"},
			{Proto: "tcp", Host: at(53), Why: "B"},
			{Proto: "tcp", Host: at(53), Why: "C"}, {Proto: "udp", Host: at(54), Why: "D"}},
		Links: []LinkRefusal{{What: "web", Why: "E"}, {What: "port 54", Why: "F"}},
	}
	for _, c := range []struct {
		left Left
		want Choice
		says string
	}{
		{left, Choice{Ports: []uint16{53}}, "no shortcut for port 53: B"},
		{left, Choice{Ports: []uint16{53, 54, 55}, Parts: Parts()}, "no shortcut for port 53: " +
			"B; " +
			"port 54: D; port 55: it changed while toll read it"},
		{left, Choice{Ports: []uint16{53, 54}, Parts: []Part{Links}},
			"no link can be raised: web: E; port 54: F"},
		{Left{}, Choice{Ports: []uint16{53}, Parts: []Part{Links}},
			"there is nothing to turn on: the published ports changed meanwhile"},
	} {
		if err := c.left.Refuse(c.want); err.Error() != c.says {
			t.Errorf("%v, want %s", err, c.says)
		}
	}
}

func TestSilent(t *testing.T) {
	at := netip.MustParseAddrPort
	for _, c := range []struct {
		proto, listens string
		v6only         bool
		target         string
		silent         bool
	}{
		{"tcp", "0.0.0.0:80", false, "172.17.0.2:80", false},
		{"tcp", "[::]:80", false, "172.17.0.2:80", false},
		{"tcp", "[::]:80", true, "172.17.0.2:80", true},
		{"tcp", "[::]:80", true, "[fd00::2]:80", false},
		{"tcp", "0.0.0.0:80", false, "[fd00::2]:80", true},
		{"tcp", "172.17.0.2:80", false, "172.17.0.2:80", false},
		{"tcp", "[::ffff:172.17.0.2]:80", false, "172.17.0.2:80", false},
		{"tcp", "127.0.0.1:80", false, "172.17.0.2:80", true},
		{"tcp", "0.0.0.0:81", false, "172.17.0.2:80", true},
		{"udp", "0.0.0.0:80", false, "172.17.0.2:80", true},
	} {
		x := ports.Container{ListenersKnown: true, Listeners: []ports.Listener{
			{Proto: c.proto, Addr: at(c.listens), V6Only: c.v6only}}}
		if silent(x, at(c.target)) != c.silent {
			t.Errorf("%+v", c)
		}
		x.ListenersKnown = false
		if silent(x, at(c.target)) {
			t.Errorf("%+v: its sockets are not known", c)
		}
	}
}
