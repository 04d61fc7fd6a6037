package collect

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/system"
	"github.com/prometheus/procfs"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

// TestInterruptedListIsWhole in kernel/link shows that the lists are whole nevertheless.
func TestChangingNetworkIsSaid(t *testing.T) {
	before := link.Interrupted()
	if got := changed(before); len(got) != 0 {
		t.Errorf("at rest: %+v", got)
	}
	if got := changed(before - 1); len(got) != 1 || got[0].Why !=
		"devices, addresses or routes came and went while they were read, so some may "+
			"be missing" {
		t.Errorf("an interrupted list: %+v", got)
	}
}

func TestProxyArgs(t *testing.T) {
	for line, want := range map[string]string{
		"/usr/bin/docker-proxy -proto tcp -host-ip 0.0.0.0 -host-port 8080 -container-ip 172.17.0.2 -container-port 80":                         "tcp 0.0.0.0:8080 172.17.0.2:80",
		"/usr/bin/docker-proxy -proto udp -host-ip :: -host-port 53 -container-ip 172.17.0.2 -container-port 53 -use-listen-fd":                 "udp [::]:53 172.17.0.2:53",
		"docker-proxy -use-listen-fd -proto=tcp --host-ip=127.0.0.1 --host-port=1 --container-ip=fd00::2 --container-port=65535 -use-listen-fd": "tcp 127.0.0.1:1 [fd00::2]:65535",
		"/usr/bin/docker-proxy -proto tcp -host-ip 0.0.0.0 -host-port 8080 -container-ip 172.17.0.2":                                            "",
		"/usr/bin/docker-proxy --version": "",
		"vi docker-proxy -proto tcp -host-ip 0.0.0.0 -host-port 8080 -container-ip 172.17.0.2 -container-port 80": "",
		"docker-proxy -proto tcp -host-ip 0.0.0.0 -host-port 70000 -container-ip 172.17.0.2 -container-port 80":   "",
	} {
		got := ""
		if p, ok := proxyArgs(strings.Fields(line)); ok {
			got = p.Proto + " " + p.Host.String() + " " + p.Container.String()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

func FuzzProxyArgs(f *testing.F) {
	f.Add(
		"docker-proxy\x00-proto\x00tcp\x00-host-ip\x00::\x00-host-port\x0080\x00-container-ip\x00172.17.0.2\x00-container-port\x0080")
	f.Add("docker-proxy\x00-host-ip=\x00--\x00-")
	f.Fuzz(func(t *testing.T, line string) {
		p, ok := proxyArgs(strings.Split(line, "\x00"))
		if ok && (!p.Host.IsValid() || !p.Container.IsValid() || p.Host.Port() == 0 ||
			p.Container.Port() == 0) {
			t.Errorf("%+v", p)
		}
	})
}

func TestContainerID(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	for text, want := range map[string]string{
		"0::/system.slice/docker-" + id + ".scope\n":       id,
		"12:cpu:/\n3:memory:/docker/" + id + "\n":          id,
		"0::/kubepods.slice/x/cri-containerd-" + id + "\n": id,
		"0::/user.slice/user-1000.slice\n":                 "",
		"":                                                 "",
	} {
		root := t.TempDir()
		if err := errors.Join(os.Mkdir(root+"/1", 0o700), os.WriteFile(root+"/1/cgroup", []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		proc, err := procfs.NewFS(root)
		if err != nil {
			t.Fatal(err)
		}
		p, err := proc.Proc(1)
		if err != nil {
			t.Fatal(err)
		}
		if got := containerID(p); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestNoEngine(t *testing.T) {
	for host, want := range map[string]string{"tcp://192.0.2.1:2376": "the Docker daemon at tcp://192.0.2.1:2376 has no Unix socket, so it may be on " +
		"another machine, and toll measures on this one; run toll on its machine with " +
		"DOCKER_HOST=unix:///var/run/docker.sock", "": `there is no docker context "gone" in DIR: open ` +
		"DIR/contexts/meta/283bb9deef02e6843abfb538efa1eca70801bd8a701c3f98191e123496339247/meta.json: " +
		"no such file or directory; docker context use default, or " +
		"DOCKER_HOST=unix:///var/run/docker.sock"} {
		t.Setenv("DOCKER_HOST", host)
		t.Setenv("DOCKER_CONTEXT", "gone")
		t.Setenv("DOCKER_CONFIG", t.TempDir())
		c := &collector{f: &ports.Facts{}}
		c.docker(t.Context())
		if m := c.f.Missing; len(m) != 1 {
			t.Errorf("%q: %+v", host, m)
		} else if got := testgolden.Stable(m[0].Why + "; " + m[0].Remedy); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestFacts(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix:///nowhere")
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	f, _, err := readFacts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := netip.MustParseAddrPort(ln.Addr().String())
	i := slices.IndexFunc(f.Listeners, func(l ports.Listener) bool { return l.Addr == at })
	if i < 0 {
		t.Fatalf("%s is not in %+v", at, f.Listeners)
	}
	if o := f.Listeners[i].Owners; len(o) != 1 || o[0].PID != os.Getpid() {
		t.Errorf("%+v", o)
	}
	r := ports.Judge(f, at.Port())
	Check(t.Context(), r)
	got := map[ports.Client]string{}
	for _, k := range r.Checks {
		got[k.Client] = k.Got
		if !k.Agrees {
			t.Errorf("%+v", k)
		}
	}
	if got[ports.Loopback] != "connected" {
		t.Errorf("%+v", r)
	}
}

// With socket activation, the process that took the socket into another network namespace serves
// it.
func TestOwnersOf(t *testing.T) {
	c := &collector{owners: map[uint32][]ports.Process{
		7: {{PID: 3, Name: "child"}, {PID: 9, Name: "server"}, {PID: 12, Name: "worker"}}},
		space: map[int]string{3: "net:[2]", 9: "net:[1]", 12: "net:[1]"}}
	for space, want := range map[string]string{"net:[1]": "child", "net:[2]": "server",
		"net:[3]": "child"} {
		if got := c.ownersOf(7, space); len(got) != 3 || got[0].Name != want {
			t.Errorf("%s: %+v", space, got)
		}
	}
}

func TestStarterArgs(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	for line, want := range map[string]string{
		"/usr/bin/conmon --api-version 1 -c " + id + " -u " + id + " -r /usr/bin/crun -n web": "web",
		"conmonrs --runtime crun": "",
		"/usr/bin/containerd-shim-runc-v2 -namespace moby -id " + id + " -address /run/c.sock": "?",
		"containerd-shim-runsc-v1 -namespace default -id " + id:                                "?",
		"containerd-shim-runc-v2 -namespace k8s.io -id " + id:                                  "",
		"containerd-shim-runc-v2 -namespace moby start":                                        "",
		"vi containerd-shim-runc-v2 -id " + id:                                                 "",
	} {
		got, name, ok := starterArgs(strings.Fields(line))
		if ok && name == "" {
			name = "?"
		}
		if name != want || ok != (want != "") || ok && got != id {
			t.Errorf("%s: %q %q %t", line, got, name, ok)
		}
	}
}

// Processes without a control group of their own belong to what started them.
func TestSetContainers(t *testing.T) {
	proc := func(pid, parent int, container string) process {
		return process{Process: ports.Process{PID: pid, Container: container}, parent: parent,
			space: "net:[1]"}
	}
	c := &collector{f: &ports.Facts{Space: "net:[1]", Containers: []ports.Container{{ID: "asked"}}},
		starters: map[int]ports.Container{10: {ID: "web", Name: "web"}, 20: {ID: "asked", Name: "x"},
			30: {ID: "nameless"}, 13: {ID: "inner", Name: "inner"}},
		procs: []process{proc(1, 0, ""), proc(10, 1, ""), proc(11, 10, ""),
			proc(12, 11, ""), proc(13, 12, ""), proc(14, 13, ""), proc(15, 12, "own"),
			proc(21, 20, ""), proc(31, 30, ""), proc(40, 41, ""), proc(41, 40, "")}}
	c.setContainers(c.parents())
	got := map[int]string{}
	for _, p := range c.procs {
		got[p.PID] = p.Container
	}
	want := map[int]string{1: "", 10: "", 11: "web", 12: "web", 13: "web", 14: "inner", 15: "own",
		21: "asked", 31: "nameless", 40: "", 41: ""}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	c.f.Containers = append(c.f.Containers, ports.Container{ID: "web", PID: 11},
		ports.Container{ID: "inner"}, ports.Container{PID: 1})
	c.containersProcesses()
	top := fmt.Sprint(c.f.Containers[1].Processes, len(c.f.Containers[0].Processes),
		len(c.f.Containers[2].Processes), len(c.f.Containers[3].Processes))
	if want := "[{11   } {12   } {13   }] 0 0 0"; top != want {
		t.Errorf("processes %s, want %s", top, want)
	}
	c.f.Containers = c.f.Containers[:1]
	c.addHosted()
	names := map[string]int{}
	for _, x := range c.f.Containers {
		if x.Host {
			names[x.Name] = x.PID
		}
	}
	if want := map[string]int{"web": 11, "inner": 14}; !maps.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
}

func TestAddressPools(t *testing.T) {
	room := func(info system.Info) (n int) {
		for _, p := range addressPools(info) {
			n += 1 << (p.Size - p.Base.Bits())
		}
		return n
	}
	if n := room(system.Info{}); n != 31 { // an engine without configuration makes 31 networks
		t.Errorf("the defaults have room for %d networks", n)
	}
	own := netip.MustParsePrefix("10.200.0.0/16")
	if n := room(system.Info{DefaultAddressPools: []system.NetworkAddressPool{
		{Base: own, Size: 24}}}); n != 256 {
		t.Errorf("%s has room for %d networks", own, n)
	}
}

func TestUnmasqueraded(t *testing.T) {
	for want, options := range map[string]map[string]string{
		"enable_ip_masquerade=false": {"com.docker.network.bridge.enable_ip_masquerade": "false",
			"com.docker.network.bridge.gateway_mode_ipv4": "nat"},
		"enable_ip_masquerade=0":   {"com.docker.network.bridge.enable_ip_masquerade": "0"},
		"gateway_mode_ipv4=routed": {"com.docker.network.bridge.gateway_mode_ipv4": "routed"},
		"":                         {"com.docker.network.bridge.enable_ip_masquerade": "true"},
	} {
		if got := unmasqueraded(options); got != want {
			t.Errorf("%v: %q; want %q", options, got, want)
		}
	}
	// This mode only lets other machines reach ports that are not published.
	if got := unmasqueraded(map[string]string{
		"com.docker.network.bridge.gateway_mode_ipv4": "nat-unprotected"}); got != "" {
		t.Errorf("nat-unprotected: %q", got)
	}
}
