package ports

import (
	"net/netip"
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
