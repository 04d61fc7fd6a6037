package collect

import (
	"bufio"
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
)

var at = netip.MustParseAddrPort

// Facts of Docker Engine 20.10: rootlesskit listens, and in its namespaces two programs run for
// each port and family.
func TestNext(t *testing.T) {
	c := &collector{f: &ports.Facts{Space: "net:[1]"}}
	proxies := []ports.Proxy{
		// of other engines
		{PID: 18, Proto: "tcp", Host: at("0.0.0.0:8080"), Container: at("172.17.0.8:80")},
		{PID: 19, Proto: "udp", Host: at("0.0.0.0:8080"), Container: at("172.17.0.8:80")},
		{PID: 23, Proto: "tcp", Host: at("0.0.0.0:8080"), Container: at("172.17.0.3:22"),
			Space: "net:[1]"},
		{PID: 24, Proto: "tcp", Host: at("0.0.0.0:9000"), Container: at("172.17.0.3:22"),
			Space: "net:[3]"},
		// its own
		{PID: 21, Proto: "tcp", Host: at("[::1]:8080"), Container: at("[fd00::2]:80"),
			Space: "net:[2]"},
		{PID: 20, Proto: "tcp", Host: at("0.0.0.0:8080"), Container: at("172.17.0.2:80")},
		{PID: 22, Proto: "tcp", Host: at("127.0.0.1:8080"), Container: at("172.17.0.4:80")},
	}
	c.ancestors = map[int][]int{18: {17, 1}, 19: {1}, 20: {9, 7, 1}, 22: {7, 1}}
	for _, x := range []struct {
		proto, host, space, want string
	}{
		{"tcp", "0.0.0.0:8080", "net:[2]", "172.17.0.2:80"},
		{"tcp", "[::]:8080", "net:[2]", "[fd00::2]:80"},
		{"tcp", "127.0.0.1:8080", "", "172.17.0.4:80"},
		{"udp", "0.0.0.0:8080", "net:[2]", ""},
		{"tcp", "0.0.0.0:9000", "net:[2]", ""},
		{"tcp", "0.0.0.0:9000", "", ""},
	} {
		got := c.next(ports.Proxy{PID: 7, Proto: x.proto, Host: at(x.host), Space: x.space}, proxies)
		if to := containerOf(got); to != x.want {
			t.Errorf("%+v leads to %q", x, to)
		}
	}
}

func containerOf(p *ports.Proxy) string {
	if p == nil {
		return ""
	}
	return p.Container.String()
}

// Engines publish the same port in other networks.
func TestPublishedByEngine(t *testing.T) {
	published := func(host string) []ports.Published {
		return []ports.Published{{Proto: "tcp", Port: 90, Host: at(host)}}
	}
	veth := func(space string) []ports.Device {
		return []ports.Device{{Name: "eth0", Kind: "veth", Peer: 6, PeerSpace: space}}
	}
	addrs := []netip.Addr{netip.MustParseAddr("172.17.0.5")}
	c := &collector{f: &ports.Facts{Space: "net:[1]", Containers: []ports.Container{
		{ID: "machine's", PID: 1, Space: "net:[9]", Addrs: addrs, Published: published("0.0.0.0:9000"),
			Devices: veth("net:[1]")},
		{ID: "other's", PID: 1, Space: "net:[8]", Addrs: addrs, Published: published("0.0.0.0:9000"),
			Devices: veth("net:[5]"), Rootless: true},
		{ID: "kit", PID: 1, Space: "net:[7]", Addrs: addrs, Published: published("0.0.0.0:9000"),
			Devices: veth("net:[2]"), Rootless: true},
		{ID: "pasta", PID: 1, Space: "net:[3]", Published: published("0.0.0.0:9001"), Rootless: true},
	}}}
	for _, x := range []struct{ program, host, space, id, to string }{
		{ports.Rootlesskit, "[::]:9000", "net:[2]", "kit", "172.17.0.5:90"},
		{ports.Rootlesskit, "0.0.0.0:9000", "net:[4]", "", "invalid AddrPort"},
		{ports.Rootlesskit, "127.0.0.1:9000", "net:[2]", "", "invalid AddrPort"},
		{ports.Pasta, "0.0.0.0:9001", "net:[3]", "pasta", "0.0.0.0:90"},
		{ports.Pasta, "0.0.0.0:9001", "net:[4]", "", "invalid AddrPort"},
	} {
		c.f.Proxies = []ports.Proxy{{PID: 7, Proto: "tcp", Program: x.program, Rootless: true,
			Host: at(x.host), Space: x.space}}
		c.published()
		if p := c.f.Proxies[0]; p.ID != x.id || p.Container.String() != x.to {
			t.Errorf("%+v: %+v", x, p)
		}
	}
}

func TestElsewhere(t *testing.T) {
	const user, root = 1000, 0
	for name, x := range map[string]struct {
		space           string
		uid             uint32
		contained, kits bool
		want            bool
	}{
		"the engine's":                 {want: false},
		"of another user":              {uid: user, want: true},
		"in a container":               {contained: true, want: true},
		"a relay's":                    {kits: true, want: true},
		"in another network namespace": {space: "net:[2]", want: true},
	} {
		c := &collector{f: &ports.Facts{Space: "net:[1]", Listeners: []ports.Listener{
			{Proto: "tcp", Addr: at("0.0.0.0:8080"), Inode: 5}}},
			procs:     []process{{Process: ports.Process{PID: 7, Name: ports.Rootlesskit}}},
			ancestors: map[int][]int{9: {8}}, uid: map[int]uint32{9: x.uid},
			contained: map[int]bool{9: x.contained}}
		if x.kits {
			c.ancestors[9] = []int{8, 7}
		}
		p := ports.Proxy{PID: 9, Proto: "tcp", Host: at("0.0.0.0:8080"), Space: x.space}
		if got := c.elsewhere(p, map[uint32]uint32{5: root}); got != x.want {
			t.Errorf("%s: elsewhere %t", name, got)
		}
	}
}

func TestPastaForwards(t *testing.T) {
	for _, x := range []struct {
		args, want string
		all        bool
	}{
		{"--config-net -t 8080:7000 -u 8080 -T none", "tcp invalid IP:8080 7000, udp invalid IP:8080 8080",
			true},
		{"-t 127.0.0.1/80-81:90-91,95 --udp-ports=none", "tcp 127.0.0.1:80 90, tcp 127.0.0.1:81 91, tcp 127.0.0.1:95 95",
			true},
		{"--tcp-ports [::1]%lo/80", "tcp ::1:80 80", true},
		{"-t80", "tcp invalid IP:80 80", true},
		{"-t auto", "tcp invalid IP:0 0", false},
		{"-t ~81", "tcp invalid IP:0 0", false},
		{"-t 80,~81", "tcp invalid IP:80 80", true},
		{"-t 8221-8223,~8222,9100:7000", "tcp invalid IP:8221 8221, tcp invalid IP:8223 8223, " +
			"tcp invalid IP:9100 7000", true},
		{"-t ~8222,8221-8223:21-23", "tcp invalid IP:8221 21, tcp invalid IP:8223 23", true},
		{"-t 80:x", "", false},
		{"-t 9-8", "tcp invalid IP:0 0", false},
		{"-q 17", "", true},
	} {
		all, known := pastaForwards(append([]string{"pasta"}, strings.Fields(x.args)...), false)
		var got []string
		for _, f := range all {
			got = append(got, f.proto+" "+f.host.Addr().String()+":"+
				netip.AddrPortFrom(netip.IPv4Unspecified(), f.host.Port()).String()[len("0.0.0.0:"):]+
				" "+netip.AddrPortFrom(netip.IPv4Unspecified(), f.to).String()[len("0.0.0.0:"):])
		}
		if text := strings.Join(got, ", "); text != x.want || known != x.all {
			t.Errorf("%s: %s, %t", x.args, text, known)
		}
	}
	many := strings.Repeat("1-65535,", 100) + "1-65535"
	all, known := pastaForwards([]string{"pasta", "-t", many, "-u", many}, true)
	if len(all) != maxForwards || known {
		t.Errorf("%d of too many ports, %t", len(all), known)
	}
	all, known = pastaForwards([]string{"pasta", "-t", "1-65535", "-u", "1-65535"}, true)
	if len(all) != 2*65535 || !known {
		t.Errorf("%d of all ports, %t", len(all), known)
	}
	all, known = pastaForwards([]string{"pasta", "-t", "none"}, true)
	if known || !slices.Equal(all, []forward{{proto: "udp"}}) {
		t.Errorf("by default: %+v, %t", all, known)
	}
	l := ports.Listener{Proto: "udp", Addr: at("0.0.0.0:53")}
	r := &relay{forwards: []forward{{proto: "tcp"}, {"udp", at("0.0.0.0:52"), 1}}}
	if _, ok := r.forward(l); ok {
		t.Error("a socket without a forward has one")
	}
	r.forwards = slices.Insert(r.forwards, 0, forward{proto: "udp"})
	if to, ok := r.forward(l); !ok || to != 53 {
		t.Errorf("%d %t", to, ok)
	}
}

func FuzzPastaForwards(f *testing.F) {
	f.Add("-t\x00[::1]%lo/80-81:90,~3,auto\x00--udp-ports=5")
	f.Fuzz(func(t *testing.T, line string) {
		all, _ := pastaForwards(strings.Split(line, "\x00"), len(line)%2 == 0)
		for _, x := range all {
			if x.proto != "tcp" && x.proto != "udp" {
				t.Errorf("%q: %+v", line, x)
			}
		}
	})
}

// pestoSays is what pasta 2026_10_02 wrote to a client of its control socket. It was started with
// -t 8080:7000 -u 8081:7001 and got 192.0.2.10%eth0/8091:71, [::1]/8092 and 9500-9502,auto of TCP
// and 9000-9003 of UDP, and 99:9 of the namespace.
func pestoSays() []byte {
	name := func(s string) string { return s + strings.Repeat("\x00", 128-len(s)) }
	rule := func(addr, device, ports string) string {
		return addr + strings.Repeat("\x00", 16) + device + strings.Repeat("\x00", 16-len(device)) +
			ports
	}
	any, lo := strings.Repeat("\x00", 16), strings.Repeat("\x00", 15)+"\x01"
	return []byte("basil:s\x00" + "\x00\x00\x00\x02\x00\x00\x00\x80\x00\x00\x00\x10" +
		"\x01" + name("HOST") + "\x00\x00\x00\x3f\x00\x00\x00\x06" +
		rule(any, "", "\x1f\x90\x1f\x90\x1b\x58\x06\x01") +
		rule(any, "", "\x1f\x91\x1f\x91\x1b\x59\x11\x01") +
		rule("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xc0\x00\x02\x0a", "eth0",
			"\x1f\x9b\x1f\x9b\x00\x47\x06\x00") +
		rule(lo, "", "\x1f\x9c\x1f\x9c\x1f\x9c\x06\x00") +
		rule(any, "", "\x25\x1c\x25\x1e\x25\x1c\x06\x05") +
		rule(any, "", "\x23\x28\x23\x2b\x23\x28\x11\x01") +
		"\x03" + name("SPLICE") + "\x00\x00\x00\x3f\x00\x00\x00\x01" +
		rule(any, "", "\x00\x63\x00\x63\x00\x09\x06\x01") + "\x00")
}

func TestPestoForwards(t *testing.T) {
	all, err := pestoForwards(bufio.NewReader(bytes.NewReader(pestoSays())))
	var got []string
	for _, f := range all {
		got = append(got, fmt.Sprintf("%s %s %d %d", f.proto, f.host.Addr(), f.host.Port(), f.to))
	}
	want := []string{"tcp invalid IP 8080 7000", "udp invalid IP 8081 7001",
		"tcp 192.0.2.10 8091 71", "tcp ::1 8092 8092", "tcp invalid IP 9500 9500",
		"tcp invalid IP 9501 9501", "tcp invalid IP 9502 9502", "udp invalid IP 9000 9000",
		"udp invalid IP 9001 9001", "udp invalid IP 9002 9002", "udp invalid IP 9003 9003"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, want %q: %v", got, want, err)
	}
	for name, spoil := range map[string]func([]byte) []byte{
		"another version": func(b []byte) []byte { b[11] = 3; return b },
		"cut":             func(b []byte) []byte { return b[:len(b)-1] },
		"backwards":       func(b []byte) []byte { b[20+1+136+48+2] = 0; return b },
		"many rules":      func(b []byte) []byte { b[20+1+128+4] = 0xff; return b },
		"long names":      func(b []byte) []byte { b[12] = 0xff; return b },
	} {
		if _, err := pestoForwards(bufio.NewReader(bytes.NewReader(spoil(pestoSays())))); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for line, want := range map[string]string{"-c /run/c -t 80": "/run/c", "--conf-path=/c": "/c",
		"-q --conf-path /c": "/c", "-c/c": "/c", "-t 80 -s /vm": "", "--config-net -q": "", "-c": ""} {
		if got := controlSocket(strings.Fields(line)); got != want {
			t.Errorf("%s: %q", line, got)
		}
	}
}

func FuzzPestoForwards(f *testing.F) {
	f.Add(pestoSays())
	f.Fuzz(func(t *testing.T, b []byte) {
		all, err := pestoForwards(bufio.NewReader(bytes.NewReader(b)))
		if len(all) > maxForwards || err == nil && !bytes.HasPrefix(b, []byte(pestoMagic)) {
			t.Errorf("%d ports: %v", len(all), err)
		}
		for _, x := range all {
			if x.proto != "tcp" && x.proto != "udp" || x.host.Port() == 0 {
				t.Errorf("%+v", x)
			}
		}
	})
}
