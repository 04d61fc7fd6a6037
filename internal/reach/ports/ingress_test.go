package ports

import (
	"net/netip"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// Whether a task answers is not known on this machine.
func TestIngress(t *testing.T) {
	swarm := func(services ...Service) *Facts {
		f := healthy()
		f.Ingress = Ingress{Addr: addr("172.18.0.2"), Services: services}
		f.Devices = append(f.Devices, Device{
			Name: "docker_gwbridge", Index: 20, Kind: "bridge", MTU: 1500, Up: true, Docker: true,
			Addrs: []netip.Prefix{netip.MustParsePrefix("172.18.0.1/16")}})
		f.Listeners = append(f.Listeners, Listener{
			Proto: "tcp", Addr: addrPort("[::]:8091"), Inode: 30,
			Owners: []Process{{PID: 1, Name: "dockerd"}}})
		return f
	}
	// the ingress's namespace is copied without IPVS
	redirected := func(q replica.Dial, a *replica.Answer) {
		if q.To.Port() == 8091 && q.To.Addr().Is4() {
			*a = answer(-1, q, "172.18.0.2:8091")
		}
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
		r := try(c.f, 8091, redirected)
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
	if row := find(t, try(f, 8091, redirected), "*", 8091); row.Server.Name != "shop" ||
		row.Holder.Kind != "docker-proxy" {
		t.Errorf("%+v", row)
	}
}
