package collect

import (
	"net/netip"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/ports"
)

// Facts of Docker Engine 20.10: rootlesskit listens, and in its namespaces two programs run for
// each port and family.
func TestRootless(t *testing.T) {
	at := netip.MustParseAddrPort
	kit := []ports.Process{{PID: 7, Name: ports.Rootlesskit}}
	c := &collector{f: &ports.Facts{
		Listeners: []ports.Listener{
			{Proto: "tcp", Addr: at("0.0.0.0:8080"), Owners: kit},
			{Proto: "tcp", Addr: at("[::]:8080"), Owners: kit},
			{Proto: "udp", Addr: at("0.0.0.0:8080"), Owners: kit},
			{Proto: "tcp", Addr: at("0.0.0.0:9000"), Owners: kit},
			{Proto: "tcp", Addr: at("0.0.0.0:22"), Owners: []ports.Process{{PID: 8, Name: "sshd"}}},
		},
		Containers: []ports.Container{
			{Rootless: true, Addrs: []netip.Addr{netip.MustParseAddr("172.17.0.5")},
				Published: []ports.Published{{Proto: "tcp", Port: 90, Host: at("0.0.0.0:9000")}}},
			{Addrs: []netip.Addr{netip.MustParseAddr("172.17.0.6")},
				Published: []ports.Published{{Proto: "udp", Port: 90, Host: at("0.0.0.0:8080")}}},
		},
	}}
	// of other engines
	c.ancestors = map[int][]int{18: {17, 1}, 19: {1}, 20: {9, 7, 1}}
	c.rootless([]ports.Proxy{
		{PID: 18, Proto: "tcp", Host: at("0.0.0.0:8080"), Container: at("172.17.0.8:80")},
		{PID: 19, Proto: "udp", Host: at("0.0.0.0:8080"), Container: at("172.17.0.8:80")},
		{PID: 21, Proto: "tcp", Host: at("[::1]:8080"), Container: at("[fd00::2]:80")},
		{PID: 20, Proto: "tcp", Host: at("0.0.0.0:8080"), Container: at("172.17.0.2:80")},
		{PID: 22, Proto: "tcp", Host: at("127.0.0.1:8080"), Container: at("172.17.0.2:80")},
		{PID: 23, Proto: "tcp", Host: at("0.0.0.0:22"), Container: at("172.17.0.3:22")},
	})
	c.rootlessPublished()
	want := map[string]string{"tcp 0.0.0.0:8080": "172.17.0.2:80", "tcp [::]:8080": "[fd00::2]:80",
		"tcp 0.0.0.0:9000": "172.17.0.5:90"}
	for _, p := range c.f.Proxies {
		from := p.Proto + " " + p.Host.String()
		if p.Container.String() != want[from] || p.PID != 7 || !p.Rootless {
			t.Errorf("%+v, want %s", p, want[from])
		}
		delete(want, from)
	}
	if len(want) > 0 {
		t.Errorf("not found: %v", want)
	}
}
