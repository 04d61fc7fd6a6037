package ports

import (
	"net/netip"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/paths/firewall"
)

// ingressRules are Docker's before 29, after moby/libnetwork#2395 and moby/moby#26930.
const ingressRules = `*nat
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:DOCKER-INGRESS - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER-INGRESS
-A OUTPUT -m addrtype --dst-type LOCAL -j DOCKER-INGRESS
-A POSTROUTING -o docker_gwbridge -m addrtype --src-type LOCAL -j MASQUERADE
-A DOCKER-INGRESS -p tcp -m tcp --dport 8091 -j DNAT --to-destination 172.18.0.2:8091
-A DOCKER-INGRESS -j RETURN
COMMIT
`

// Whether a task answers is not known on this machine.
func TestIngress(t *testing.T) {
	swarm := func(services ...Service) *Facts {
		f := healthy()
		f.Rules = firewall.ParseSave(ingressRules, false)
		f.Ingress = Ingress{Addr: addr("172.18.0.2"), Services: services}
		f.Devices = append(f.Devices, Device{
			Name: "docker_gwbridge", Index: 20, Kind: "bridge", MTU: 1500, Up: true, Docker: true,
			Addrs: []netip.Prefix{netip.MustParsePrefix("172.18.0.1/16")}})
		f.Switches.RouteLocalnet["docker_gwbridge"] = true
		f.Listeners = append(f.Listeners, Listener{
			Proto: "tcp", Addr: addrPort("[::]:8091"), Inode: 30,
			Owners: []Process{{PID: 1, Name: "dockerd"}}})
		return f
	}
	shop := Service{Name: "shop", Proto: "tcp", Port: 8091, Target: 80}
	for _, c := range []struct {
		name   string
		f      *Facts
		server Server
		holder string
		routes string
	}{
		{"manager", swarm(shop), Server{Kind: "service", Name: "shop", Port: 80}, "dockerd",
			"DNAT? held DNAT? DNAT? DNAT?"},
		{"worker", swarm(), Server{Kind: "service", Name: "a swarm's service", Port: 8091},
			"dockerd", "DNAT? held DNAT? DNAT? DNAT?"},
	} {
		r := Judge(c.f, 8091)
		row := find(t, r, "*", 8091)
		if row.Server != c.server || row.Holder.Kind != c.holder || routes(row) != c.routes ||
			len(r.Traps) > 0 {
			t.Errorf("%s: %+v %+v %s %+v", c.name, row.Server, row.Holder, routes(row), r.Traps)
		}
	}
	f := swarm(shop) // Docker 29: published like other ports, also by docker-proxy
	f.Listeners[len(f.Listeners)-1].Owners = []Process{{PID: 900, Name: "docker-proxy"}}
	f.Proxies = append(f.Proxies, Proxy{PID: 900, Proto: "tcp", Host: addrPort("[::]:8091"),
		Container: addrPort("172.18.0.2:8091")})
	if row := find(t, Judge(f, 8091), "*", 8091); row.Server.Name != "shop" ||
		row.Holder.Kind != "docker-proxy" {
		t.Errorf("%+v", row)
	}
}
