package ports

import (
	"fmt"
	"net/netip"
	"testing"
)

// Facts may change between two reports, and each is about the facts as they are.
func TestJudgeAgain(t *testing.T) {
	f := &Facts{Listeners: []Listener{{Proto: "tcp", Addr: addrPort("0.0.0.0:80"), Inode: 1,
		Owners: []Process{{PID: 7, Name: "docker-proxy"}}}},
		Proxies: []Proxy{{PID: 7, Proto: "tcp", Host: addrPort("0.0.0.0:80"),
			Container: addrPort("172.17.0.2:8000")}},
		Containers: []Container{{ID: "c", Name: "web", PID: 9, Addrs: []netip.Addr{addr("172.17.0.2")}}}}
	judged := func() (out []string) {
		for _, r := range Judge(f, 0).Ports {
			out = append(out, fmt.Sprintf("%s %s by %s", r.name(), r.Server.describe(), r.Holder.Kind))
		}
		return out
	}
	for _, c := range []struct {
		change func()
		want   string
	}{
		{func() {}, "[80/tcp container web by docker-proxy]"},
		{func() { f.Listeners[0].Addr, f.Proxies[0].Host = addrPort("[::]:81"), addrPort("[::]:81") },
			"[81/tcp container web by docker-proxy]"},
		{func() { f.Proxies, f.Listeners[0].Owners[0].Name = nil, "nginx" },
			"[81/tcp nginx 7 by server]"},
		{func() { f.Containers[0].Published = []Published{{"tcp", 8000, addrPort("0.0.0.0:82")}} },
			"[81/tcp nginx 7 by server 82/tcp container web by rules]"},
	} {
		c.change()
		if got := fmt.Sprint(judged()); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// The arguments of processes may say that proxies dial each other, or themselves.
func TestProxiesInCircle(t *testing.T) {
	f := &Facts{Devices: []Device{{Name: "eth0", Kind: "device", Up: true,
		Addrs: []netip.Prefix{netip.MustParsePrefix("192.0.2.10/24")}}}}
	for i, to := range []string{"192.0.2.10:80", "192.0.2.10:82", "192.0.2.10:81", "192.0.2.10:82"} {
		at := addrPort(fmt.Sprintf("0.0.0.0:%d", 80+i))
		f.Listeners = append(f.Listeners, Listener{Proto: "tcp", Addr: at, Inode: uint32(i + 1),
			Owners: []Process{{PID: 10 + i, Name: "docker-proxy"}}})
		f.Proxies = append(f.Proxies, Proxy{PID: 10 + i, Proto: "tcp", Host: at,
			Container: addrPort(to)})
	}
	for _, r := range Judge(f, 0).Ports {
		if r.Server.Kind != "unknown" {
			t.Errorf("%d: %+v", r.Port, r.Server)
		}
	}
}
