package cases

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/rootlesstest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// relaysOfUser is what the user starts: a container behind each relay, and a rootlesskit around an
// engine's network, with a bridge, a container and docker-proxy.
const relaysOfUser = `set -e
apart() { # NAME: a server in a network namespace of its own, whose process is $!
	unshare -Urn "$1" -plain "$1" tcp/0.0.0.0:7000 udp/0.0.0.0:7000 &
	until [ "$(readlink /proc/$!/ns/net)" != "$(readlink /proc/self/ns/net)" ] &&
		grep -q ':1B58 ' /proc/$!/net/tcp; do sleep 0.01; done
}
cd bin
PATH=$PWD:$PATH
apart behind-pasta
pasta --config-net -t 8080:7000 -u 8080:7000 -T none -U none --no-map-gw -q -P "$HOME/pid" $!
apart behind-slirp
slirp4netns --configure --mtu=65520 --disable-host-loopback --enable-sandbox --enable-seccomp \
	--api-socket "$HOME/slirp" $! tap0 >/dev/null 2>&1 &
kit() { rootlesskit --state-dir="$HOME/$1" --net=slirp4netns --mtu=65520 --disable-host-loopback \
	--port-driver=builtin --copy-up=/etc --copy-up=/run "${@:2}" >/dev/null 2>&1 & }
kit kit -p 0.0.0.0:8082:7000/tcp behind-kit -plain behind-kit tcp/0.0.0.0:7000
kit engine -p 127.0.0.1:8083:8083/tcp bash -c '
	ip link add br0 type bridge
	ip addr add 172.17.0.1/16 dev br0
	ip link set br0 up
	unshare -n behind-engine -plain behind-engine tcp/0.0.0.0:80 &
	until [ "$(readlink /proc/$!/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
	ip link add veth1 type veth peer name eth0 netns $!
	ip link set veth1 master br0 up
	nsenter -n -t $! ip addr add 172.17.0.2/16 dev eth0
	nsenter -n -t $! ip link set eth0 up
	exec docker-proxy -proto tcp -host-ip 127.0.0.1 -host-port 8083 -container-ip 172.17.0.2 -container-port 80 3>/dev/null'
echo started
sleep infinity`

// foreignProxies is what root starts: another engine's docker-proxies with the same ports, in
// another namespace.
const foreignProxies = `for p in 8080 8081 8082 8083; do
	unshare -n docker-proxy -proto tcp -host-ip 0.0.0.0 -host-port $p -container-ip 172.17.0.2 -container-port 6379 3>/dev/null &
done
sleep infinity`

func TestRelays(t *testing.T) {
	for _, program := range []string{ports.Pasta, ports.Slirp4netns, ports.Rootlesskit, "docker-proxy"} {
		if _, err := exec.LookPath(program); err != nil {
			pathtest.SkipOrFail(t, "%v: make deps", err)
		}
	}
	t.Parallel()
	m := rootlesstest.New(t)
	self := m.Put(t, pathtest.StaticSelf(t))
	for _, name := range []string{"behind-pasta", "behind-slirp", "behind-kit", "behind-engine"} {
		if err := exec.Command("ln", self, filepath.Join(m.Home, "bin", name)).Run(); err != nil {
			t.Fatal(err)
		}
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		said, _ := os.ReadFile(log.Name())
		t.Logf("%s", said)
		log.Close()
	})
	begin := func(cmd *exec.Cmd) {
		t.Helper()
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		go func() { _ = cmd.Wait() }() // it ends with the machine
	}
	begin(m.Root("bash", "-c", foreignProxies))
	begin(m.Command("bash", "-c", relaysOfUser))
	toll := m.Put(t, pathtest.Toll(t))
	forward(t, filepath.Join(m.Home, "slirp"),
		`{"execute":"add_hostfwd","arguments":{"proto":"tcp","host_addr":"0.0.0.0","host_port":8081,"guest_port":7000}}`,
		`{"execute":"add_hostfwd","arguments":{"proto":"udp","host_addr":"0.0.0.0","host_port":40081,"guest_port":7000}}`)
	sockets := func() string {
		out, err := m.Root("ss", "-lntuH").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	testwait.Until(t, patience, "all relays listen", func() bool {
		all := sockets()
		return !slices.ContainsFunc([]string{":8080 ", ":8081 ", ":8082 ", ":8083 ", ":40081 "},
			func(port string) bool { return !strings.Contains(all, port) })
	})
	out, err := m.Root("bash", "-c", `pid=$(pgrep -x behind-slirp)
nsenter -t $pid -U -n --preserve-credentials bash -c "exec 3<>/dev/udp/$0/9; echo >&3"
for file in $1/kit $1/engine; do until [ -e $file/child_pid ]; do sleep 0.01; done; done
until nsenter -t $(cat $1/engine/child_pid) -n ss -lntH | grep -q :8083; do sleep 0.01; done`,
		rootlesstest.Beyond.Addr().String(), m.Home).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	testwait.Until(t, patience, "slirp4netns sends a datagram of its container's", func() bool {
		return strings.Count(sockets(), "udp") > 3 // 8080 by IPv4 and IPv6, 40081
	})

	file := filepath.Join(m.Home, "machine.json")
	read := func(cmd *exec.Cmd) *ports.Report {
		t.Helper()
		var said strings.Builder
		cmd.Stderr = &said
		out, err := cmd.Output()
		r := &ports.Report{}
		if err == nil {
			err = json.Unmarshal(out, r)
		}
		if err != nil {
			t.Fatalf("%v\n%s%s", err, out, said.String())
		}
		return r
	}
	t.Run("root", func(t *testing.T) {
		r := read(m.Root(toll, "ports", "--format", "json"))
		want := []string{
			"8080/tcp behind-pasta (own network):7000 pasta proxy",
			"8080/udp behind-pasta (own network):7000 pasta proxy",
			"8080/udp behind-pasta (own network):7000 pasta nothing", // over IPv6
			"8081/tcp behind-slirp (own network):7000 slirp4netns proxy",
			"8082/tcp behind-kit (own network):7000 rootlesskit proxy",
			"8083/tcp behind-engine (own network):80 rootlesskit proxy",
			"40081/udp behind-slirp (own network):7000 slirp4netns proxy",
		}
		if got := relayed(t, r); !slices.Equal(got, want) {
			t.Errorf("%s\nwant %s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		for _, row := range r.Ports {
			inner := slices.ContainsFunc(row.Paths[ports.Loopback].Hops, func(h ports.Hop) bool {
				return h.Kind == "proxy" && strings.HasPrefix(h.Text, "docker-proxy ") &&
					strings.HasSuffix(h.Text, "dials 172.17.0.2:80")
			})
			if inner != (row.Port == 8083) {
				t.Errorf("%d: %+v", row.Port, row.Paths[ports.Loopback].Hops)
			}
		}
		for _, h := range r.Containers {
			for _, d := range h.Devices {
				if d.Peer != "" || d.Master != "" {
					t.Errorf("%s has the machine's veth: %+v", h.Name, d)
				}
			}
		}
		if out, err := m.Root(toll, "ports", "--save", file).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		saved := read(m.Root(toll, "ports", "--from-file", file, "--format", "json"))
		if got := relayed(t, saved); !slices.Equal(got, want) {
			t.Errorf("saved: %s", strings.Join(got, "\n"))
		}
	})
	t.Run("user", func(t *testing.T) {
		want := []string{
			"8080/tcp ? unknown ?",
			"8080/udp ? unknown ?",
			"8081/tcp behind-slirp (own network):7000 slirp4netns proxy?",
			"8082/tcp behind-kit (own network):7000 rootlesskit proxy?",
			"8083/tcp 172.17.0.2:80, rootless rootlesskit proxy?",
		}
		got := relayed(t, read(m.Command(toll, "ports", "--format", "json")))
		got = slices.DeleteFunc(got, func(row string) bool {
			return strings.Contains(row, "udp") &&
				!strings.HasPrefix(row, "8080")
		})
		if !slices.Equal(got, want) {
			t.Errorf("%s\nwant %s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
	t.Run("another user", func(t *testing.T) {
		for _, row := range relayed(t, read(m.Root("setpriv", "--reuid", "21001", "--clear-groups", toll,
			"ports", "--format", "json"))) {
			if !strings.HasSuffix(row, " ? unknown ?") {
				t.Error(row)
			}
		}
	})
}

// relayed returns lines of "PORT SERVER HOLDER ROUTE", once for all addresses of a port.
func relayed(t *testing.T, r *ports.Report) (out []string) {
	t.Helper()
	for _, row := range r.Ports {
		server := row.Server.Name
		if row.Server.Port != 0 {
			server = fmt.Sprintf("%s:%d", server, row.Server.Port)
		}
		if server == "" {
			server = "?"
		}
		for c, p := range row.Paths {
			if p.Kind == ports.Direct {
				t.Errorf("%d from %s: %+v", row.Port, c, p)
			}
		}
		p, ok := row.Paths[ports.Loopback]
		if !ok {
			p = row.Paths[ports.Loopback6]
		}
		route := string(p.Kind)
		if len(p.Doubt) > 0 && p.Kind != ports.Unknown {
			route += "?"
		}
		line := fmt.Sprintf("%d/%s %s %s %s", row.Port, row.Proto, server, row.Holder.Kind, route)
		if !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	return out
}

// forward asks slirp4netns for ports.
func forward(t *testing.T, socket string, requests ...string) {
	t.Helper()
	for _, request := range requests {
		testwait.Until(t, patience, "slirp4netns takes a request", func() bool {
			c, err := net.Dial("unix", socket)
			if err != nil {
				return false
			}
			defer c.Close()
			if _, err := c.Write([]byte(request)); err != nil {
				return false
			}
			if err := c.(*net.UnixConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			b := make([]byte, 1000)
			n, _ := c.Read(b)
			if !strings.Contains(string(b[:n]), `"return"`) {
				t.Fatalf("slirp4netns answers %q", b[:n])
			}
			return true
		})
	}
}

// A rootless Docker Engine is queried, or found by its processes alone.
func TestRelaysOfDocker(t *testing.T) {
	t.Parallel()
	for _, e := range pathtest.Engines(t) {
		t.Run(e.Name, func(t *testing.T) {
			relaysOfDocker(t, e, "--userland-proxy=true", "web:7000 rootlesskit proxy",
				"ID:7000 rootlesskit proxy")
			relaysOfDocker(t, e, "--userland-proxy=false", "web:7000 rootlesskit proxy",
				"?:8090 behind rootlesskit rootlesskit proxy?")
		})
	}
}

// relaysOfDocker expects two texts, in which ID stands for the container's short one.
func relaysOfDocker(t *testing.T, e pathtest.Engine, flag, asked, unasked string) {
	t.Run(flag, func(t *testing.T) {
		t.Parallel()
		m := rootlesstest.New(t)
		d := m.Docker(t, e, nil, flag)
		docker := func(args ...string) string {
			t.Helper()
			out, err := d.Command(args...).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			return strings.TrimSpace(string(out))
		}
		version := docker("version", "-f", "{{.Server.Version}}")
		major, err := strconv.Atoi(strings.SplitN(version, ".", 2)[0])
		if err != nil {
			t.Fatal(err)
		}
		if major < 28 && strings.HasSuffix(flag, "false") {
			t.Skipf("Docker %s publishes no ports of rootless containers by rules", version)
		}
		toll, self := m.Put(t, pathtest.Toll(t)), m.Put(t, pathtest.StaticSelf(t))
		m.Output(t, "tar", "-cf", "image", "-C", filepath.Dir(self), "--transform", "s/.*/web/",
			filepath.Base(self))
		docker("import", filepath.Join(m.Home, "image"), "image")
		docker("run", "-d", "--name", "web", "-p", "8090:7000", "image", "/web", "-plain", "web",
			"tcp/0.0.0.0:7000")
		id := docker("ps", "-q")
		for host, want := range map[string]string{d.Host: asked,
			"": strings.Replace(unasked, "ID", id, 1)} {
			run := func(args ...string) []byte {
				t.Helper()
				out, err := m.Root("env", append([]string{"DOCKER_HOST=" + host, toll, "ports"},
					args...)...).Output()
				if err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				return out
			}
			r := &ports.Report{}
			if err := json.Unmarshal(run("--format", "json"), r); err != nil {
				t.Fatal(err)
			}
			if got := relayed(t, r); !slices.Equal(got, []string{"8090/tcp " + want}) {
				t.Errorf("asked at %q: %q, want %q", host, got, want)
			}
			for _, h := range r.Containers {
				if h.Name != "web" && h.Name != id {
					t.Errorf("asked at %q: %+v is no container", host, h)
				}
			}
		}
	})
}

// Rootless containers of Podman are behind pasta, or behind rootlessport if they are in a named
// network.
func TestRelaysOfPodman(t *testing.T) {
	if !pathtest.AsksFor("podman") {
		t.Skip("BRIDGETOLL_ENGINES=podman runs it: it needs 150 MB")
	}
	for version, suite := range map[string]string{
		"5": rootlesstest.Podman5, "6": rootlesstest.Podman6} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			relaysOfPodman(t, suite)
		})
	}
}

func relaysOfPodman(t *testing.T, suite string) {
	t.Helper()
	m := rootlesstest.New(t)
	p := m.Podman(t, suite, false)
	p.Ran(t, "`toll ports` against clients")
	toll, self := m.Put(t, pathtest.Toll(t)), m.Put(t, pathtest.StaticSelf(t))
	m.Output(t, "tar", "-cf", "image", "-C", filepath.Dir(self), "--transform", "s/.*/web/",
		filepath.Base(self))
	docker := func(args ...string) {
		t.Helper()
		out, err := m.Command("docker", append([]string{"-H", p.Host}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s\n%s", err, out, p.Log())
		}
	}
	docker("import", filepath.Join(m.Home, "image"), "image")
	docker("network", "create", "shop")
	docker("run", "-d", "--name", "alone", "--network", "pasta", "-p", "8400:7000", "image", "/web",
		"-plain", "web", "tcp/0.0.0.0:7000")
	docker("run", "-d", "--name", "shop1", "--network", "shop", "-p", "8401:7000", "image", "/web",
		"-plain", "web", "tcp/0.0.0.0:7000")
	for host, want := range map[string][]string{
		p.Host: {"8400/tcp alone:7000 pasta proxy", "8401/tcp shop1:7000 rootlessport proxy"},
		"":     {"8400/tcp alone:7000 pasta proxy", "8401/tcp shop1 rootlessport proxy?"}} {
		out, err := m.Root("env", "DOCKER_HOST="+host, toll, "ports", "--format", "json").Output()
		r := &ports.Report{}
		if err == nil {
			err = json.Unmarshal(out, r)
		}
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if got := relayed(t, r); !slices.Equal(got, want) {
			t.Errorf("asked at %q: %q, want %q", host, got, want)
		}
		for _, h := range r.Containers {
			if h.Name != "alone" && h.Name != "shop1" {
				t.Errorf("asked at %q: %+v is no container", host, h)
			}
		}
	}
}

// pestoOfUser is what the user starts: a server behind a pasta that gets ports while it runs.
const pestoOfUser = `set -e
cd "$HOME"
program() { "passt/$1" --library-path passt/lib "passt/$1.bin" "${@:2}"; }
unshare -Urn bin/behind -plain behind tcp/0.0.0.0:7000 udp/0.0.0.0:7000 &
until [ "$(readlink /proc/$!/ns/net)" != "$(readlink /proc/self/ns/net)" ] &&
	grep -q ':1B58 ' /proc/$!/net/tcp; do sleep 0.01; done
program pasta --config-net -t 8080:7000 -u none -T none -U none --no-map-gw -q -P "$HOME/pid" -c "$HOME/control" $!
program pesto -A -t 8085-8087:7000-7002,~8086 -u 40085:7000 "$HOME/control"
program pesto -D -t 8080:7000 "$HOME/control"
touch added
sleep infinity`

// The newest pasta gets and loses ports by its control socket.
func TestRelaysOfPesto(t *testing.T) {
	if !pathtest.AsksFor("podman") {
		t.Skip("BRIDGETOLL_ENGINES=podman runs it: it needs Debian sid's pasta")
	}
	t.Parallel()
	tree, err := pathtest.Fetch("rootless", "passt", "sid")
	if err != nil {
		pathtest.SkipOrFail(t, "no pasta: %v", err)
	}
	m := rootlesstest.New(t)
	self, toll := m.Put(t, pathtest.StaticSelf(t)), m.Put(t, pathtest.Toll(t))
	for _, args := range [][]string{{"cp", "-r", tree, filepath.Join(m.Home, "passt")},
		{"ln", self, filepath.Join(m.Home, "bin", "behind")}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	var log strings.Builder
	cmd := m.Command("bash", "-c", pestoOfUser)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = cmd.Wait() }() // it ends with the machine
	testwait.Until(t, patience, "the ports are added", func() bool {
		_, err := os.Stat(filepath.Join(m.Home, "added"))
		return err == nil
	})
	out, err := m.Root(toll, "ports", "--format", "json").Output()
	r := &ports.Report{}
	if err == nil {
		err = json.Unmarshal(out, r)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := []string{"8085/tcp behind (own network):7000 pasta proxy",
		"8087/tcp behind (own network):7002 pasta nothing",
		"40085/udp behind (own network):7000 pasta proxy"}
	if got := relayed(t, r); !slices.Equal(got, want) {
		t.Errorf("%s\nwant %s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
