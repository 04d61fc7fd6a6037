package ports

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// The container may have the same address as one of the machine's engine.
func TestRootless(t *testing.T) {
	const kit = 700
	machine := func(c ...Container) *Facts {
		f := healthy()
		f.Listeners = append(f.Listeners, Listener{
			Proto: "tcp", Addr: addrPort("0.0.0.0:8090"), Inode: 40,
			Owners: []Process{{PID: kit, Name: Rootlesskit}}})
		f.Proxies = append(f.Proxies, Proxy{PID: kit, Proto: "tcp", Host: addrPort("0.0.0.0:8090"),
			Container: addrPort("172.17.0.2:80"), Rootless: true})
		f.Containers = append(f.Containers, c...)
		return f
	}
	shop := Container{ID: "aa", Name: "shop", PID: 701, State: "running", Rootless: true,
		Addrs:     []netip.Addr{addr("172.17.0.2")},
		Published: []Published{{"tcp", 80, addrPort("0.0.0.0:8090")}},
		Exposed:   []Published{{Proto: "tcp", Port: 81}},
		Listeners: []Listener{{Proto: "tcp", Addr: addrPort("0.0.0.0:80")}}, ListenersKnown: true,
		Devices: []Device{{Name: "eth0", MTU: 9000, Up: true, Peer: 6, Index: 5}}}
	deaf := shop
	deaf.Listeners = nil
	for _, c := range []struct {
		name, server, routes string
		f                    *Facts
		traps                int
	}{
		// ::1 is not published
		{"its engine was asked", "shop", "proxy  proxy proxy proxy", machine(shop), 1},
		{"nothing listens", "shop", "nothing  nothing nothing nothing", machine(deaf), 1},
		{"its engine was not asked", "172.17.0.2:80, rootless", "proxy?  proxy? proxy? proxy?", machine(),
			0},
	} {
		r := try(c.f, 8090, nil)
		row := find(t, r, "0.0.0.0", 8090)
		if row.Server.Name != c.server || row.Holder != (Holder{Kind: Rootlesskit, PID: kit}) ||
			routes(row) != c.routes || len(r.Traps) != c.traps {
			t.Errorf("%s: %+v %+v %q %+v", c.name, row.Server, row.Holder, routes(row), r.Traps)
		}
	}
	f := machine(shop)
	if p := find(t, try(f, 8090, nil), "0.0.0.0", 8090).Paths[OwnAddr]; p.Kind != ByProxy {
		t.Errorf("%+v", p)
	}
	if row := find(t, try(f, 8080, nil), "0.0.0.0", 8080); row.Server.Name != "web" {
		t.Errorf("%+v", row.Server)
	}
}

// An engine in a container has a container with the same address.
func TestTwoEngines(t *testing.T) {
	f := healthy()
	f.Space = "net:[1]"
	inner := f.Containers[0]
	inner.ID, inner.Name, inner.Rootless = "bb", "inner", true
	inner.Devices = []Device{{Name: "eth0", Index: 5, Kind: "veth", Peer: 6, PeerSpace: "net:[2]"}}
	f.Containers[0].Devices[0].PeerSpace = f.Space
	f.Containers = append([]Container{inner}, f.Containers...)
	for space, want := range map[string]string{f.Space: "web", "net:[2]": "inner", "net:[3]": ""} {
		f.Proxies[0].Space = space
		if c, _ := f.behind(f.Proxies[0]); c.Name != want {
			t.Errorf("%s: %q, want %q", space, c.Name, want)
		}
	}
	if c, _ := f.at(addr("172.17.0.2")); c.Name != "web" {
		t.Errorf("%q", c.Name)
	}
	if p, ok := f.peerOf(inner.Devices[0]); ok {
		t.Errorf("the veth of another namespace: %+v", p)
	}
}

// A relay ends in the container's network, or dials a docker-proxy. Only its own namespace counts,
// not an address or a port number.
func TestRelays(t *testing.T) {
	web := []Listener{{Proto: "tcp", Addr: addrPort("0.0.0.0:7000"), Owners: []Process{{PID: 9}}}}
	nb := Container{Name: "nb", PID: 8, Space: "net:[3]", Rootless: true, State: "running",
		Addrs: []netip.Addr{addr("198.18.0.1")}, Listeners: web, ListenersKnown: true}
	loopback, idle, six := nb, nb, nb
	six.Listeners = []Listener{{Proto: "tcp", Addr: addrPort("[::]:7000"), V6Only: true}}
	loopback.Listeners = []Listener{{Proto: "tcp", Addr: addrPort("127.0.0.1:7000")}}
	idle.Listeners = nil
	inner := nb
	inner.Name, inner.Space, inner.Addrs = "inner", "net:[4]", []netip.Addr{addr("172.17.0.2")}
	inner.Devices = []Device{{Name: "eth0", Kind: "veth", Index: 5, Peer: 6, PeerSpace: "net:[3]"}}
	foreign := inner
	foreign.Name, foreign.Space, foreign.Devices = "foreign", "net:[6]", []Device{
		{Name: "eth0", Kind: "veth", Index: 5, Peer: 6, PeerSpace: "net:[7]"}}
	to := addrPort("0.0.0.0:7000")
	for name, c := range map[string]struct {
		proxy  *Proxy // nil: nothing is known of the relay
		in     Container
		server string
		routes string
		hidden string // the clients whose addresses the server does not see
		hop    string // of the relay
	}{
		"pasta": {&Proxy{Program: Pasta, Container: to, Space: "net:[3]", Source: SourceMachines},
			nb, "container nb", "proxy  proxy proxy proxy", "127.0.0.1 own",
			"pasta 7 on 0.0.0.0:8090 relays it to port 7000 in the network of nb"},
		"pasta, of another family": {&Proxy{Program: Pasta, Container: to, Space: "net:[3]",
			Source: SourceMachines}, six, "container nb", "nothing  nothing nothing nothing",
			"127.0.0.1 own", "pasta 7 on 0.0.0.0:8090 relays it to port 7000 in the network of nb"},
		"slirp4netns": {&Proxy{Program: Slirp4netns, Container: to, Space: "net:[3]",
			Source: SourceOthers}, nb, "container nb", "proxy  proxy proxy proxy", "127.0.0.1",
			"slirp4netns 7 on 0.0.0.0:8090 relays it to port 7000 in the network of nb"},
		"rootlessport, target not known": {&Proxy{Program: Rootlessport, Space: "net:[3]",
			Source: SourceHidden}, nb, "container nb", "proxy?  proxy? proxy? proxy?",
			"127.0.0.1 own container machine",
			"rootlessport 7 on 0.0.0.0:8090 relays it into the network of nb"},
		"nothing listens": {&Proxy{Program: Pasta, Container: to, Space: "net:[3]",
			Source: SourceMachines}, idle, "container nb", "nothing  nothing nothing nothing",
			"127.0.0.1 own", "pasta 7 on 0.0.0.0:8090 relays it to port 7000 in the network of nb"},
		"on its loopback": {&Proxy{Program: Pasta, Container: to, Space: "net:[3]",
			Source: SourceMachines}, loopback, "container nb", "proxy?  proxy? proxy? proxy?",
			"127.0.0.1 own", "pasta 7 on 0.0.0.0:8090 relays it to port 7000 in the network of nb"},
		"another namespace": {&Proxy{Program: Pasta, Container: to, Space: "net:[5]",
			Source: SourceMachines}, nb, "unknown ?:7000 behind pasta", "proxy?  proxy? proxy? proxy?",
			"127.0.0.1 own", "pasta 7 on 0.0.0.0:8090 relays it to port 7000 in another network"},
		"docker-proxy behind it": {&Proxy{Program: Rootlesskit, Container: addrPort("172.17.0.2:7000"),
			Space: "net:[3]", Source: SourceIPv4, Next: &Next{17, addrPort("0.0.0.0:8090")}}, inner,
			"container inner", "proxy  proxy proxy proxy", "127.0.0.1 own container machine",
			"rootlesskit 7 on 0.0.0.0:8090 dials port 8090 in the engine's network"},
		"docker-proxy, container elsewhere": {&Proxy{Program: Rootlesskit,
			Container: addrPort("172.17.0.2:7000"), Space: "net:[3]",
			Next: &Next{17, addrPort("0.0.0.0:8090")}}, foreign,
			"unknown 172.17.0.2:7000, rootless", "proxy?  proxy? proxy? proxy?",
			"127.0.0.1 own container machine",
			"rootlesskit 7 on 0.0.0.0:8090 dials port 8090 in the engine's network"},
		"rules behind it": {&Proxy{Program: Rootlesskit, Container: addrPort("172.17.0.2:7000"),
			Space: "net:[3]", Source: SourceIPv4}, inner, "container inner",
			"proxy  proxy proxy proxy", "127.0.0.1",
			"rootlesskit 7 on 0.0.0.0:8090 relays it to 172.17.0.2:7000 in the engine's network"},
		"a virtual machine's": {&Proxy{Program: Gvproxy, Source: SourceHidden}, nb,
			"unknown ? behind gvproxy", "proxy?  proxy? proxy? proxy?",
			"127.0.0.1 own container machine",
			"gvproxy 7 on 0.0.0.0:8090 relays it into another network"},
		"nothing is known": {nil, nb, "unknown ? behind pasta", "proxy?  proxy? proxy? proxy?", "",
			"pasta 7 on 0.0.0.0:8090 relays it into another network"},
	} {
		program := Pasta
		f := healthy()
		f.Containers = append(f.Containers, c.in)
		if c.proxy != nil {
			p := *c.proxy
			program, p.PID, p.Proto, p.Rootless = p.Program, 7, "tcp", true
			p.Host = addrPort("0.0.0.0:8090")
			f.Proxies = append(f.Proxies, p)
		}
		f.Listeners = append(f.Listeners, Listener{Proto: "tcp", Addr: addrPort("0.0.0.0:8090"),
			Inode: 40, Owners: []Process{{PID: 7, Name: program}}})
		row := find(t, try(f, 8090, nil), "0.0.0.0", 8090)
		var hidden []string
		for _, c := range clients {
			if row.Paths[c].Masqueraded {
				hidden = append(hidden, string(c))
			}
		}
		if got := row.Server.Kind + " " + row.Server.Name; got != c.server ||
			routes(row) != c.routes || row.Holder != (Holder{Kind: program, PID: 7}) ||
			strings.Join(hidden, " ") != c.hidden ||
			!slices.Contains(row.Paths[Loopback].Hops, Hop{"proxy", c.hop}) {
			t.Errorf("%s: %s %+v %q, hidden %q, %+v", name, got, row.Holder, routes(row), hidden,
				row.Paths[Loopback].Hops)
		}
		next := Hop{"proxy", "docker-proxy 17 on 0.0.0.0:8090 there dials 172.17.0.2:7000"}
		if has := slices.Contains(row.Paths[Loopback].Hops, next); has != (c.proxy != nil &&
			c.proxy.Next != nil) {
			t.Errorf("%s: %+v", name, row.Paths[Loopback].Hops)
		}
	}
}

func TestMeasureRootless(t *testing.T) {
	ends, engines := addrPort("0.0.0.0:7000"), addrPort("172.17.0.2:7000")
	for want, p := range map[string]Proxy{
		"toll compare pasta publish-proxy publish-nat --from host --to loopback,loopback6,address":      {Program: Pasta, Container: ends},
		"toll compare slirp4netns publish-proxy publish-nat --from host --to loopback,address":          {Program: Slirp4netns, Container: ends},
		"toll compare rootlessport publish-proxy publish-nat --from host --to loopback,address":         {Program: Rootlessport, Container: ends},
		"toll compare rootless-publish-nat publish-proxy publish-nat --from host --to loopback,address": {Program: Rootlesskit, Container: engines},
		"toll compare rootless-publish rootless-publish-nat publish-proxy publish-nat --from host --to loopback,loopback6,address": {
			Program: Rootlesskit, Container: engines, Next: &Next{17, addrPort("0.0.0.0:8090")}},
		"": {Program: Gvproxy, Container: ends},
	} {
		p.PID, p.Proto, p.Rootless, p.Space = 7, "tcp", true, "net:[3]"
		p.Host = addrPort("[::]:8090")
		f := healthy()
		f.Proxies = append(f.Proxies, p)
		f.Listeners = append(f.Listeners, Listener{Proto: "tcp", Addr: p.Host, Inode: 40,
			Owners: []Process{{PID: 7, Name: p.Program}}})
		f.Containers = append(f.Containers, Container{Name: "nb", PID: 8, Space: "net:[3]",
			Rootless: true, State: "running",
			Listeners:      []Listener{{Proto: "tcp", Addr: addrPort("[::]:7000")}},
			ListenersKnown: true})
		got := ""
		for _, m := range try(f, 8090, nil).Measure {
			if m.from == "container" {
				t.Errorf("%s: %s", p.Program, m.Command)
			}
			if m.from == "host" {
				got = m.Command
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", p.Program, got, want)
		}
	}
}

// An ordinary user cannot see which process has a socket.
func TestUnknownOwner(t *testing.T) {
	f := healthy()
	f.Proxies = nil
	for i := range f.Listeners {
		f.Listeners[i].Owners = nil
	}
	f.Containers = nil
	r := Judge(f, 0)
	for _, row := range r.Ports {
		if row.Server != (Server{Kind: "unknown"}) || row.Holder != (Holder{Kind: "unknown"}) {
			t.Errorf("%+v", row)
		}
		for c, p := range row.Paths {
			if p.Kind != Unknown && p.Kind != Nothing {
				t.Errorf("%d %s: %+v", row.Port, c, p)
			}
		}
	}
}

func TestRelayName(t *testing.T) {
	for _, x := range []struct{ comm, args, want string }{
		{"passt.avx2", "/usr/bin/pasta --config-net 17", Pasta},
		{"pasta.avx2", "pasta.avx2", Pasta},
		{"passt", "passt -f", Passt},
		{"passt.avx2", "", "passt.avx2"},
		{"nginx", "pasta", "nginx"},
		{Rootlesskit, Rootlesskit, Rootlesskit},
	} {
		if got := RelayName(x.comm, strings.Fields(x.args)); got != x.want {
			t.Errorf("%+v: %q", x, got)
		}
	}
}
