package ports

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/paths/firewall"
)

type plant struct {
	code  string
	plant func(*Facts)
	says  string
}

var planted = []plant{
	{Loopback6Proxy4, func(f *Facts) {
		f.Proxies[1].Container = addrPort("172.17.0.2:80")
	}, "docker-proxy 265 listens on [::]:8080 and dials 172.17.0.2:80"},
	{ProxyLoad, func(f *Facts) { f.Proxies[0].CPU, f.Proxies[0].Memory = 0.93, 5<<20 },
		"docker-proxy 264 has 0 connections open, with 0 MiB so far, and uses 0.93 of a core now, in 5.0 MiB of memory"},
	{Loopback6Nothing, func(f *Facts) {
		f.Listeners, f.Containers[0].Published = f.Listeners[:2], f.Containers[0].Published[:1]
	}, "no socket listens on [::1]:8080"},
	{PublicLocalOnly, func(f *Facts) {
		f.Connections = []Connection{
			{Local: addrPort("127.0.0.1:50000"), Remote: addrPort("127.0.0.1:8080")},
			{Local: addrPort("127.0.0.1:8080"), Remote: addrPort("127.0.0.1:50000"), PID: proxyPID},
			{Local: addrPort("198.18.0.1:50001"), Remote: addrPort("198.18.0.1:8080")},
		}
	}, "2 connections open from loopback or own addresses"},
	{PublishedNobody, func(f *Facts) {
		f.Containers[0].Listeners[0].Addr = addrPort("127.0.0.1:80")
	}, "; 127.0.0.1:80 listens in the container"},
	{IngressNothing, func(f *Facts) {
		f.Ingress = Ingress{Addr: addr("172.18.0.2"), NoIPVS: true,
			Services: []Service{{"shop", "tcp", 8091, 80}}}
	}, "CONFIG_IP_VS"},
	{Unpublished, func(f *Facts) {
		// nothing listens on 9
		f.Containers[0].Exposed = []Published{{Proto: "tcp", Port: 81}, {Proto: "tcp", Port: 9}}
		f.Containers[0].Listeners = append(f.Containers[0].Listeners,
			Listener{Proto: "tcp", Addr: addrPort("0.0.0.0:81")})
	}, "[81/tcp]"},
	{PortConflict, func(f *Facts) {
		f.Containers = append(f.Containers, Container{
			ID: "ff", Name: "other", Host: true, State: "restarting", Restarts: 7,
			LastLog: "starting\nlisten tcp :22: bind: address already in use\n"})
	}, "sshd 300 has 22/tcp"},
	{ReuseportTwins, func(f *Facts) {
		twin := f.Listeners[0]
		twin.Inode, twin.Owners = 8, []Process{{PID: 400, Name: "dropbear"}}
		f.Listeners = append(f.Listeners, twin)
	}, "sshd 300 and dropbear 400 both listen on 0.0.0.0:22"},
	{MTUDiffers, func(f *Facts) {
		f.Devices[1].MTU = 1400
	}, "the container's eth0 1500, its veth 1500, docker0 1500, eth0 1400"},
	{ConntrackFull, func(f *Facts) {
		f.Tracked = 250000
	}, "250000 of nf_conntrack_max 262144 (95 %)"},
	{BridgeNFDrop, func(f *Facts) {
		f.Switches.BridgeNF = true
		f.Rules = firewall.ParseSave("*filter\n:FORWARD DROP [0:0]\nCOMMIT\n", false)
		f.Devices = append(f.Devices, Device{
			Name: "br1", Index: 10, Kind: "bridge", Up: true, MTU: 1500},
			Device{Name: "tap0", Index: 11, Kind: "tun", Master: "br1"})
	}, "from br1 to br1 is dropped by policy of filter FORWARD"},
	{ProxyLoad, func(f *Facts) {
		f.Connections = []Connection{
			{Local: addrPort("198.18.0.1:8080"), Remote: addrPort("198.18.0.9:50000"),
				PID: proxyPID, Bytes: 200 << 20},
			{Local: addrPort("172.17.0.1:40000"), Remote: addrPort("172.17.0.2:80"), PID: proxyPID,
				Bytes: 200 << 20},
		}
	}, "docker-proxy 264 has 1 connection open, with 200 MiB so far"},
	{Paused, func(f *Facts) {
		f.Containers[0].State = "paused"
		f.Containers[0].Asked = f.Containers[0].Published
	}, "[8080/tcp]"},
	{Restarting, func(f *Facts) {
		f.Containers = append(f.Containers, Container{
			ID:       "ff",
			Name:     "other",
			State:    "restarting",
			Restarts: 7,
			LastLog:  "starting\nno database\n",
			Asked:    []Published{{"tcp", 80, netip.AddrPortFrom(netip.Addr{}, 8099)}}})
	}, `restarted 7 times; its last output: "no database"`},
	{InternalNetwork, func(f *Facts) {
		f.Containers = append(f.Containers, Container{
			ID:       "ff",
			Name:     "other",
			PID:      9,
			State:    "running",
			Internal: true,
			Networks: []string{"inner"},
			Asked:    []Published{{"tcp", 80, netip.AddrPortFrom(netip.Addr{}, 8099)}}})
	}, "[8099/tcp]Container other should have 8099/tcp published"},
	{UDPSource, func(f *Facts) {
		f.Listeners = append(f.Listeners, Listener{
			Proto: "udp", Addr: addrPort("0.0.0.0:53"), Inode: 8,
			Owners: []Process{{PID: 8, Name: "named"}}})
	},
		"named 8 listens on all addresses; asked at 198.18.0.1 by a client behind docker0, it answers from 172.17.0.1"},
	{RouteLocalnet, func(f *Facts) {
		proxyOff(f)
		f.Switches.RouteLocalnet["docker0"] = false
	}, "it is 0: net.ipv4.conf.docker0.route_localnet"},
}

func TestNoTraps(t *testing.T) {
	for name, change := range map[string]func(*Facts){
		"another machine is connected by the proxy": func(f *Facts) {
			f.Connections = []Connection{{Local: addrPort("127.0.0.1:50000"),
				Remote: addrPort("127.0.0.1:8080")},
				{Local: addrPort("198.18.0.1:8080"), Remote: addrPort("198.18.0.9:50000"),
					PID: proxyPID}}
		},
		"another machine is connected by NAT": func(f *Facts) {
			f.Connections = []Connection{{Local: addrPort("127.0.0.1:50000"),
				Remote: addrPort("127.0.0.1:8080")}}
			f.Flows = []Flow{{Proto: "tcp", From: addr("198.18.0.9"),
				To: addrPort("198.18.0.1:8080"), Now: addrPort("172.17.0.2:80")}}
		},
		"NAT's connections are not known": func(f *Facts) {
			f.Connections = []Connection{{Local: addrPort("127.0.0.1:50000"),
				Remote: addrPort("127.0.0.1:8080")}}
			f.Known.Flows = false
		},
		"workers share a port": func(f *Facts) {
			f.Listeners = append(f.Listeners, Listener{
				Proto: "tcp", Addr: addrPort("0.0.0.0:22"), Inode: 8,
				Owners: []Process{{PID: 301, Name: "sshd"}}})
		},
		"a container failed for another reason": func(f *Facts) {
			f.Containers = append(f.Containers, Container{
				Name: "other", State: "exited", LastLog: "no configuration at /etc/x:80\n"})
		},
		"the MTU of another machine's veth": func(f *Facts) {
			f.Devices[3].Peer, f.Devices[1].MTU = 77, 1400
		},
		"a foreign bridge without ports": func(f *Facts) {
			f.Switches.BridgeNF = true
			f.Devices = append(f.Devices, Device{
				Name: "br1", Kind: "bridge", Addrs: []netip.Prefix{
					netip.MustParsePrefix("10.0.0.1/24")}})
		},
		"a little by the proxy": func(f *Facts) {
			f.Connections = []Connection{{Local: addrPort("198.18.0.1:8080"),
				Remote: addrPort("198.18.0.9:50000"), PID: proxyPID, Bytes: 1 << 20}}
		},
		"a UDP service on one address": func(f *Facts) {
			f.Listeners = append(f.Listeners, Listener{
				Proto: "udp", Addr: addrPort("198.18.0.1:53"), Inode: 8,
				Owners: []Process{{PID: 8, Name: "named"}}})
		},
		"a UDP service of a machine with one network": func(f *Facts) {
			f.Devices = f.Devices[:2]
			f.Proxies, f.Containers, f.Listeners = nil, nil, nil
			f.Listeners = append(f.Listeners, Listener{
				Proto: "udp", Addr: addrPort("0.0.0.0:53"), Inode: 8,
				Owners: []Process{{PID: 8, Name: "named"}}})
		},
		"a container that was restarted long ago": func(f *Facts) {
			f.Containers[0].Restarts, f.Containers[0].Up, f.Containers[0].Asked = 9, time.Hour,
				f.Containers[0].Published
		},
		"an internal network without ports": func(f *Facts) { f.Containers[0].Internal = true },
		"a program for the machine alone": func(f *Facts) {
			f.Listeners = append(f.Listeners, Listener{
				Proto: "tcp", Addr: addrPort("127.0.0.1:631"), Inode: 8,
				Owners: []Process{{PID: 8, Name: "cupsd"}}})
		},
	} {
		f := healthy()
		change(f)
		if r := try(f, 0, nil); len(r.Traps) > 0 {
			t.Errorf("%s: %+v", name, r.Traps)
		}
	}
}

func TestUDPSourceOfProxy(t *testing.T) {
	for docker, want := range map[string]int{"20.10.24": 1, "26.1.5+dfsg1": 1, "28.5.2": 0, "": 1} {
		f := healthy()
		f.Docker = docker
		f.Listeners[1].Proto, f.Proxies[0].Proto, f.Containers[0].Listeners[0].Proto = "udp", "udp",
			"udp"
		f.Listeners, f.Proxies = f.Listeners[:2], f.Proxies[:1]
		f.Containers[0].Published = nil
		var got []Trap
		for _, x := range try(f, 8080, nil).Traps {
			if x.Code == UDPSource {
				got = append(got, x)
			}
		}
		if len(got) != want {
			t.Errorf("%q: %+v", docker, got)
		}
	}
}

func TestTrapOfMany(t *testing.T) {
	f := healthy()
	for i := range 9 {
		host, pid := netip.AddrPortFrom(netip.IPv6Unspecified(), uint16(9000+i)), 900+i
		f.Listeners = append(f.Listeners, Listener{
			Proto: "tcp", Addr: host, V6Only: true,
			Owners: []Process{{PID: pid, Name: "docker-proxy"}}})
		f.Proxies = append(f.Proxies, Proxy{PID: pid, Proto: "tcp", Host: host,
			Container: addrPort("172.17.0.2:80")})
	}
	all, one := try(f, 0, nil).Traps, try(f, 9004, nil).Traps
	if len(all) != 1 || len(all[0].Ports) != 9 ||
		strings.Count(all[0].Evidence, "docker-proxy") != fewSeen ||
		!strings.HasSuffix(all[0].Evidence, "and so 6 more") {
		t.Errorf("%+v", all)
	}
	if len(one) != 1 || !slices.Equal(one[0].Ports, []string{"9004/tcp"}) ||
		one[0].Evidence != "docker-proxy 904 listens on [::]:9004 and dials 172.17.0.2:80" {
		t.Errorf("%+v", one)
	}
}

func TestPaused(t *testing.T) {
	f := healthy()
	f.Containers[0].State = "paused"
	row := find(t, try(f, 8080, nil), "0.0.0.0", 8080)
	if got := routes(row); got != "held  held held held" || row.Server.State != "paused" ||
		!strings.Contains(row.Paths[Remote].Why, "web is paused") {
		t.Errorf("%q %+v", got, row)
	}
	f = healthy()
	f.Containers[0].Host, f.Containers[0].State = true, "paused"
	f.Listeners[0].Owners[0].Container = webID
	if got := routes(find(t, try(f, 22, nil), "0.0.0.0", 22)); got != "held  held held held" {
		t.Errorf("%q", got)
	}
}

// A process of a container holds a socket of this machine.
func TestStray(t *testing.T) {
	f := healthy()
	f.Listeners[0].Owners[0].Container = webID
	if s := find(t, try(f, 22, nil), "0.0.0.0", 22).Server; s.Kind != "process" || s.Name != "sshd" {
		t.Errorf("%+v", s)
	}
}
