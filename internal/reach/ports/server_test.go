package ports

import (
	"net/netip"
	"strings"
	"testing"
)

// If two containers could answer, none is returned.
func TestServerOf(t *testing.T) {
	at := netip.MustParseAddrPort
	published := func(host string, port uint16) []Published {
		return []Published{{"tcp", port, at(host)}}
	}
	f := &Facts{
		Containers: []Container{
			{ID: "1", Name: "web", PID: 11, Addrs: []netip.Addr{netip.MustParseAddr("172.17.0.2")},
				Published: published("0.0.0.0:8080", 80)},
			{ID: "2", Name: "local", PID: 12, Addrs: []netip.Addr{
				netip.MustParseAddr("172.17.0.3")}, Published: published("127.0.0.1:8081", 80)},
			{ID: "3", Name: "hosted", PID: 13, Host: true},
			{ID: "4", Name: "gone", Published: published("0.0.0.0:8082", 80)},
			{ID: "5", Name: "rootless", PID: 15, Rootless: true,
				Published: published("0.0.0.0:8083", 80)},
			{ID: "6", Name: "pod", PID: 16, Addrs: []netip.Addr{netip.MustParseAddr("172.17.0.6")}},
			{ID: "7", Name: "sidecar", PID: 17, Addrs: []netip.Addr{
				netip.MustParseAddr("172.17.0.6")}},
			{ID: "8", Name: "six", PID: 18, Published: published("[::]:8084", 80)},
			{ID: "9", Name: "datagrams", PID: 19,
				Published: []Published{{"udp", 80, at("0.0.0.0:8085")}}},
		},
		Listeners: []Listener{{Proto: "tcp", Addr: at("0.0.0.0:9000"),
			Owners: []Process{{PID: 13, Container: "3"}}},
			{Proto: "tcp", Addr: at("0.0.0.0:9001"), Owners: []Process{{PID: 99}}},
			{Proto: "tcp", Addr: at("0.0.0.0:9002")},
			{Proto: "tcp", Addr: at("[::]:9004"), V6Only: true,
				Owners: []Process{{PID: 13, Container: "3"}}}},
		Devices: []Device{{Name: "eth0", Addrs: []netip.Prefix{
			netip.MustParsePrefix("10.0.0.4/24")}}},
	}
	for _, tt := range []struct {
		dial   string
		inside int
		want   string
	}{
		{"127.0.0.1:8080", 0, "web"}, {"10.0.0.4:8080", 0, "web"},
		{"[::ffff:127.0.0.1]:8080", 0, "web"}, {"172.17.0.2:1234", 0, "web"},
		{"10.0.0.9:8080", 0, ""}, {"[::1]:8080", 0, ""}, {"127.0.0.1:8081", 0, "local"},
		{"10.0.0.4:8081", 0, ""},
		{"127.0.0.1:9000", 0, "hosted"}, {"127.0.0.1:9001", 0, ""}, {"127.0.0.1:9002", 0, ""},
		{"127.0.0.1:9003", 0, ""}, {"127.0.0.1:9004", 0, ""}, {"[::1]:9004", 0, "hosted"},
		{"127.0.0.1:8082", 0, ""}, {"127.0.0.1:8083", 0, ""}, {"172.17.0.6:80", 0, ""},
		{"[::1]:8084", 0, "six"}, {"127.0.0.1:8085", 0, ""},
		{"127.0.0.1:8080", 12, "local"}, {"127.0.0.1:8080", 77, ""}, {"172.17.0.2:80", 12, "web"},
		{"10.0.0.4:8080", 12, "web"},
	} {
		if c, ok := ServerOf(f, at(tt.dial), tt.inside); ok != (tt.want != "") ||
			ok && c.Name != tt.want {
			t.Errorf("%s from %d: %q, %t; want %q", tt.dial, tt.inside, c.Name, ok, tt.want)
		}
	}
}

// A process that listens for a container's server does not count.
func TestProcessAt(t *testing.T) {
	at := netip.MustParseAddrPort
	f := &Facts{
		Listeners: []Listener{{Proto: "tcp", Addr: at("0.0.0.0:5432"),
			Owners: []Process{{PID: 12, Name: "postgres"}, {PID: 11, Name: "postgres"}}},
			{Proto: "tcp", Addr: at("0.0.0.0:8080"),
				Owners: []Process{{PID: 13, Name: "docker-proxy"}}},
			{Proto: "tcp", Addr: at("0.0.0.0:9000"),
				Owners: []Process{{PID: 14, Name: "web", Container: "1"}}},
			{Proto: "udp", Addr: at("0.0.0.0:53"), Owners: []Process{{PID: 15, Name: "dns"}}},
			{Proto: "tcp", Addr: at("0.0.0.0:9002")},
			{Proto: "tcp", Addr: at("[::]:9004"), V6Only: true,
				Owners: []Process{{PID: 13, Container: "3"}}}},
		Devices: []Device{{Name: "eth0", Addrs: []netip.Prefix{
			netip.MustParsePrefix("10.0.0.4/24")}}},
	}
	for dial, want := range map[string]int{"127.0.0.1:5432": 11, "10.0.0.4:5432": 11,
		"10.0.0.5:5432": 0, "127.0.0.1:8080": 0, "127.0.0.1:9000": 0,
		"127.0.0.1:53": 0, "127.0.0.1:9002": 0, "127.0.0.1:1": 0} {
		if got := ProcessAt(f, at(dial)); got != want {
			t.Errorf("%s: process %d, want %d", dial, got, want)
		}
	}
}

func TestThrough(t *testing.T) {
	for dial, want := range map[string]string{"127.0.0.1:8080": "172.17.0.2:80",
		"[::ffff:127.0.0.1]:8080": "172.17.0.2:80", "[::1]:8080": "[fd00::2]:80",
		"198.18.0.1:8080": "", "172.17.0.2:80": "", "127.0.0.1:22": "", "127.0.0.1:9": ""} {
		got, ok := Through(healthy(), addrPort(dial))
		if ok != (want != "") || ok && got.String() != want {
			t.Errorf("%s: %s, %t, want %q", dial, got, ok, want)
		}
	}
}

func TestMeasureServer(t *testing.T) {
	const routes = " direct=172.17.0.2:80 proxy=127.0.0.1:8080 nat=198.18.0.1:8080"
	for image, want := range map[string]string{
		"nginx":           "toll run --recipe wrk" + routes,
		"bitnami/redis:7": "toll run --recipe redis" + routes,
		"vllm/vllm":       "toll stream direct=http://172.17.0.2:80 proxy=http://127.0.0.1:8080 nat=http://198.18.0.1:8080",
		"postgres:17":     "toll sql direct=postgres://postgres@172.17.0.2:80/postgres proxy=postgres://postgres@127.0.0.1:8080/postgres nat=postgres://postgres@198.18.0.1:8080/postgres",
		"shop":            "toll run --client 'curl -sSo /dev/null http://{addr}/'" + routes,
	} {
		f := healthy()
		f.Containers[0].Image = image
		f.Containers[0].Listeners[0].Owners = nil
		got := try(f, 8080, nil)
		if got.MeasureServer != want {
			t.Errorf("%s: %q, want %q", image, got.MeasureServer, want)
		}
		at := want[strings.Index(want, " direct="):]
		if got.TraceServer != "sudo toll trace"+at {
			t.Errorf("%s: %q, want what goes to%s", image, got.TraceServer, at)
		}
	}
	if got := try(healthy(), 22, nil).MeasureServer; got != "" {
		t.Errorf("a process with one route: %q", got)
	}
}

// A server of UDP is traced by queries over its routes if it is one of DNS, or by watching.
func TestTraceDatagrams(t *testing.T) {
	for port, want := range map[uint16]string{
		53: "sudo toll trace direct=dns://172.17.0.2:53/example.org " +
			"proxy=dns://127.0.0.1:8080/example.org nat=dns://198.18.0.1:8080/example.org",
		80: "sudo toll trace --attach 172.17.0.2:80/udp",
	} {
		f := healthy()
		f.Listeners[1].Proto, f.Proxies[0].Proto = "udp", "udp"
		to := netip.AddrPortFrom(f.Proxies[0].Container.Addr(), port)
		f.Proxies[0].Container = to
		listener, published := &f.Containers[0].Listeners[0], &f.Containers[0].Published[0]
		listener.Proto, listener.Addr = "udp", netip.AddrPortFrom(listener.Addr.Addr(), port)
		published.Proto, published.Port = "udp", port
		r := try(f, 8080, nil)
		if r.TraceServer != want || r.MeasureServer != "" {
			t.Errorf("%d: %q and %q, want %q", port, r.TraceServer, r.MeasureServer, want)
		}
	}
	f := healthy()
	f.Listeners = append(f.Listeners, Listener{Proto: "udp", Addr: addrPort("0.0.0.0:514"),
		Inode: 8, Owners: []Process{{PID: 8, Name: "syslog"}}})
	if got := try(f, 514, nil).TraceServer; got != "sudo toll trace --attach 127.0.0.1:514/udp" {
		t.Errorf("%q", got)
	}
}

func TestMeasureServerOfTwo(t *testing.T) {
	f := twoServers()
	got := try(f, 8080, nil).MeasureServer
	if !strings.HasSuffix(got, " direct=172.17.0.2:80 proxy=127.0.0.1:8080") {
		t.Errorf("%q", got)
	}
}

func twoServers() *Facts {
	f := healthy()
	f.Listeners[1].Addr, f.Proxies[0].Host = addrPort("127.0.0.1:8080"), addrPort("127.0.0.1:8080")
	f.Containers[0].Published = []Published{{"tcp", 80, addrPort("127.0.0.1:8080")}}
	const api = "172.17.0.3:80"
	f.Listeners = append(f.Listeners[:2], Listener{Proto: "tcp", Addr: addrPort("198.18.0.1:8080"),
		Inode: 4, Owners: []Process{{PID: proxyPID + 1, Name: "docker-proxy"}}})
	f.Proxies[1] = Proxy{PID: proxyPID + 1, Proto: "tcp", Host: addrPort("198.18.0.1:8080"),
		Container: addrPort(api)}
	other := f.Containers[0]
	other.ID, other.Name, other.Space = strings.Repeat("b", len(webID)), "api", "net:[3]"
	other.Addrs = []netip.Addr{addrPort(api).Addr()}
	other.Published = []Published{{"tcp", 80, addrPort("198.18.0.1:8080")}}
	f.Containers = append(f.Containers, other)
	return f
}
