package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// Each container has its options and the address that it listens on.
var containers = []string{
	"web -p 8080:80 -p 8087:81 | :80", // side serves 81
	"local -p 127.0.0.1:8081:80 | :80",
	"six -p [::1]:8082:80 | :80",
	"inner -p 8083:80 | 127.0.0.1:80",        // published, but listens on loopback only
	"udp -p 8084:80/udp -p 8085:81 | :81",    // a UDP port that nothing serves
	"other -p 8086:80 --network small | :80", // on a network with a smaller MTU
	"dual -p 8088:80 --network dual | :80",   // has IPv6
	"mate --network dual | :9000",
	"wide --network host | :7000",
	"quiet | :9000",
	"side --network container:web | :81",
	"fight --network host | :7000",
}

func populate(e *dockerHost, echo string) {
	e.t.Helper()
	e.run("docker", "import", "-c", "EXPOSE 9000", "-c", `ENTRYPOINT ["/echo"]`, echo+".tar",
		"echo")
	e.run("docker", "network", "create", "-o", "com.docker.network.driver.mtu=1400", "small")
	e.run("docker", "network", "create", "--ipv6", "--subnet", "172.30.0.0/24", "--subnet",
		"fd19::/64", "dual")
	for _, c := range containers {
		options, listens, _ := strings.Cut(c, " | ")
		args := append([]string{"docker", "run", "-d", "--name"}, strings.Fields(options)...)
		e.run(append(args, "echo", "listen", listens)...)
	}
	e.start("ready", echo, "listen", "0.0.0.0:6000", "127.0.0.1:6001", "[::1]:6002",
		"198.18.0.1:6003")
	e.run("docker", "wait", "fight")
	e.neighbours = neighbours(e)
}

func listPorts(e *dockerHost, bin string, prefix ...string) *ports.Report {
	e.t.Helper()
	return reportOf(e, append(prefix, bin, "ports", "--format", "json")...)
}

func reportOf(e *dockerHost, args ...string) *ports.Report {
	e.t.Helper()
	var r ports.Report
	out := e.run(args...)
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		e.t.Fatalf("%v: %s", err, out)
	}
	return &r
}

// rowsOf returns a line for each port: port, address, server and holder.
func rowsOf(r *ports.Report) []string {
	var out []string
	for _, row := range r.Ports {
		out = append(out, fmt.Sprintf("%d/%s %s %s %s", row.Port, row.Proto, row.Address,
			row.Server.Name, row.Holder.Kind))
	}
	return out
}

func trapsOf(r *ports.Report) map[string]ports.Trap {
	out := map[string]ports.Trap{}
	for _, t := range r.Traps {
		out[t.Code] = t
	}
	return out
}

func checkRows(t *testing.T, r *ports.Report, want ...string) {
	t.Helper()
	got := rowsOf(r)
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("%q is not in\n%s", w, strings.Join(got, "\n"))
		}
	}
}

func TestPorts(t *testing.T) {
	t.Parallel()
	bin, echo := binary(t), buildEcho(t)
	for _, rules := range []string{iptables, nftables} {
		t.Run(rules, func(t *testing.T) {
			flags := ""
			if rules == nftables {
				if out, _ := exec.Command("dockerd", "--help").CombinedOutput(); !strings.Contains(string(out), firewallFlag) {
					t.Skip("this dockerd writes no nftables: that takes Docker Engine 29")
				}
				flags = firewallFlag + "=" + nftables + " "
			}
			t.Run("proxy", func(t *testing.T) {
				t.Parallel()
				withProxy(t, bin, echo, flags)
			})
			t.Run("no proxy", func(t *testing.T) {
				t.Parallel()
				withoutProxy(t, bin, echo, flags)
			})
		})
	}
}

const (
	firewallFlag = "--firewall-backend"
	iptables     = "iptables"
	nftables     = "nftables"
)

func withProxy(t *testing.T, bin, echo, flags string) {
	e := startEngine(t, flags)
	populate(e, echo)
	r := listPorts(e, bin)
	checkRows(t, r,
		"6000/tcp * echo server", "6001/tcp 127.0.0.1 echo server", "6002/tcp ::1 echo server",
		"6003/tcp 198.18.0.1 echo server",
		"7000/tcp * wide server", "8080/tcp 0.0.0.0 web docker-proxy",
		"8080/tcp :: web docker-proxy", "8081/tcp 127.0.0.1 local docker-proxy",
		"8082/tcp ::1 six docker-proxy", "8083/tcp 0.0.0.0 inner docker-proxy",
		"8084/udp 0.0.0.0 udp docker-proxy", "8086/tcp 0.0.0.0 other docker-proxy",
		"8087/tcp 0.0.0.0 side docker-proxy", "8088/tcp 0.0.0.0 dual docker-proxy",
		"8088/tcp :: dual docker-proxy")
	if !slices.ContainsFunc(r.Inside, func(x ports.Inside) bool {
		return x.Server.Name == "quiet" && x.Port == 9000
	}) {
		t.Errorf("quiet's unpublished port is not in %+v", r.Inside)
	}
	for _, h := range r.Containers {
		if h.Network == "" && (len(h.Devices) != 1 ||
			!strings.HasPrefix(h.Devices[0].Peer, "veth") || len(h.Devices[0].Addresses) == 0) {
			t.Errorf("%+v", h)
		}
	}
	if r.Proxies == nil || r.Proxies.Memory < 1<<20 {
		t.Errorf("docker-proxy: %+v", r.Proxies)
	}
	dialAll(e, echo, r)
	if len(r.Missing) > 0 {
		t.Errorf("%+v", r.Missing)
	}
	traps := trapsOf(r)
	for _, code := range []string{ports.PortConflict, ports.PublishedNobody, ports.Unpublished,
		ports.MTUDiffers, ports.Loopback6Nothing} {
		if traps[code].Code == "" {
			t.Errorf("no trap %s in %+v", code, r.Traps)
		}
	}
	if c := traps[ports.PortConflict]; c.Text != "Container fight (exited) cannot bind its port: "+
		"it is already in use; container wide has 7000/tcp" {
		t.Errorf("%+v", c)
	}
	for _, code := range []string{ports.ProxyLoad, ports.PublicLocalOnly, ports.ReuseportTwins,
		ports.BridgeNFDrop} {
		if traps[code].Code != "" {
			t.Errorf("%+v", traps[code])
		}
	}
	t.Run("states", func(t *testing.T) { containerStates(e, t, bin, echo) })
	if flags == "" { // Docker's nftables backend has no DOCKER-USER
		t.Run("from", func(t *testing.T) {
			fromContainers(e, t, bin)
			ranInContainers(e, t, bin, echo)
		})
		t.Run("rules", func(t *testing.T) { administratorsRules(e, t, bin, echo) })
	}
	t.Run("planted", func(t *testing.T) { plantedTraps(e, t, bin, echo, flags != "") })
	t.Run("one port", func(t *testing.T) { onePort(e, t, bin) })
	t.Run("ordinary user", func(t *testing.T) { ordinaryUser(e, t, bin) })
	t.Run("group docker", func(t *testing.T) { dockerGroup(e, t, bin) })
	t.Run("no Docker", func(t *testing.T) { noDockerSocket(e, t, bin, echo) })
}

func plantedTraps(e *dockerHost, t *testing.T, bin, echo string, native bool) {
	e.start("held", echo, "hold", "127.0.0.1:8080", "80")
	e.start("ready", "env", "REUSEPORT=1", echo, "listen", "127.0.0.1:6100")
	e.run("cp", echo, "/run/twin")
	e.start("ready", "env", "REUSEPORT=1", "/run/twin", "listen", "127.0.0.1:6100")
	e.run("bash", "-ec",
		`ip link add br1 type bridge && ip link set br1 up && sysctl -qw net.bridge.bridge-nf-call-iptables=1
for i in 1 2; do
	ip netns add vm$i && ip link add p$i type veth peer name eth0 netns vm$i && ip link set p$i master br1 up &&
	ip -n vm$i addr add 192.168.122.$i/24 dev eth0 && ip -n vm$i link set eth0 up || exit
done`)
	traps := trapsOf(listPorts(e, bin))
	says := map[string]string{
		ports.ProxyLoad: "docker-proxy PID on 0.0.0.0:8080 has 1 connection open, with 160 MiB so far, " +
			"in N MiB of memory",
		ports.ReuseportTwins: "twin PID and echo PID both listen on 127.0.0.1:6100 (SO_REUSEPORT)",
		ports.BridgeNFDrop: "net.bridge.bridge-nf-call-iptables is 1, and a TCP packet from br1 to br1 " +
			"is dropped by the policy of filter FORWARD",
		ports.PublicLocalOnly: "at this moment 8080 has 1 connection open from this machine and none " +
			"from elsewhere"}
	if native { // it drops only traffic to Docker's own bridges
		delete(says, ports.BridgeNFDrop)
		if x, there := traps[ports.BridgeNFDrop]; there {
			t.Errorf("%+v", x)
		}
	}
	pids := regexp.MustCompile(`(docker-proxy|twin|echo) \d+`)
	memory := regexp.MustCompile(`in [\d.]+ MiB`)
	for code, says := range says {
		got := pids.ReplaceAllString(traps[code].Evidence, "$1 PID")
		if got = memory.ReplaceAllString(got, "in N MiB"); got != says {
			t.Errorf("%s: %q, want %q", code, got, says)
		}
	}
	_, flood, _ := strings.Cut(e.start("flooding ", echo, "flood", "127.0.0.1:8081"), " ")
	burns := func(x ports.Trap) bool {
		return x.Code == ports.ProxyLoad && slices.Contains(x.Ports, "8081/tcp") &&
			strings.Contains(x.Evidence, "of a core now")
	}
	seen := false
	for range 10 { // other programs may leave it little of a core
		seen = seen || slices.ContainsFunc(listPorts(e, bin).Traps, burns)
	}
	if !seen {
		t.Error("a proxy's CPU is not seen")
	}
	e.run("bash", "-c", "kill "+flood) // it would keep a CPU busy until the machine ends
	e.start("held", "ip", "netns", "exec", "far", echo, "hold", "198.18.0.1:8080", "1")
	if x, still := trapsOf(listPorts(e, bin))[ports.PublicLocalOnly]; still {
		t.Errorf("another machine is connected: %+v", x)
	}
}

// administratorsRules dials every route under rules that people write into DOCKER-USER and around
// it, of which those of a group are about different ports. The other machine is 198.18.0.2.
func administratorsRules(e *dockerHost, t *testing.T, bin, echo string) {
	user := func(words ...string) []string { return append([]string{"DOCKER-USER"}, words...) }
	for _, group := range [][][]string{
		{
			user("-p", "tcp", "-m", "conntrack", "--ctorigdstport", "8080", "-j", "DROP"),
			user("-p", "tcp", "-m", "conntrack", "--ctorigdstport", "8086", "--ctdir", "ORIGINAL",
				"-j", "REJECT"),
			user("-p", "udp", "-m", "conntrack", "--ctdir", "REPLY", "-j", "DROP"),
			{"INPUT", "-p", "tcp", "-m", "conntrack", "--ctorigdstport", "6000", "--ctstate", "NEW",
				"-j", "REJECT"},
			{"OUTPUT", "-d", "127.0.0.1", "-p", "tcp", "--dport", "8081", "-j", "REJECT"},
		},
		{user("-i", "eth0", "-m", "conntrack", "--ctstate", "DNAT", "-j", "DROP")},
		{user("-s", "198.18.0.2", "-j", "DROP")},
		{
			user("-i", "eth0", "-m", "conntrack", "!", "--ctorigdst", "198.18.0.1", "-j", "DROP"),
			user("-i", "eth0", "!", "-s", "198.18.0.2", "-j", "DROP"),
		},
	} {
		number := map[string]int{} // of the last rule seen of each chain
		for _, rule := range group {
			e.run(append([]string{"iptables", "-I"}, rule...)...)
		}
		r := reportOf(e, bin, "ports", "--client", "198.18.0.2", "--format", "json")
		for _, rule := range slices.Backward(group) { // the last one is the first of its chain
			number[rule[0]]++
			decides := false
			for _, row := range r.Ports {
				for _, p := range row.Paths {
					b := p.Block
					decides = decides || b != nil && b.Table == "filter" && b.Chain == rule[0] &&
						b.Number == number[rule[0]]
				}
			}
			if want := !slices.Contains(rule, "!") && !slices.Contains(rule, "REPLY"); decides != want {
				t.Errorf("%v: decides something: %v", rule, decides)
			}
		}
		dialAll(e, echo, r)
		for _, rule := range group {
			e.run(append([]string{"iptables", "-D"}, rule...)...)
		}
	}
	opened(e, t, bin, echo)
}

func opened(e *dockerHost, t *testing.T, bin, echo string) {
	about := []string{bin, "ports", "8080", "--client", "198.18.0.2", "--format", "json"}
	e.run("iptables", "-I", "DOCKER-USER", "-s", "198.18.0.2", "-j", "DROP")
	defer e.run("iptables", "-D", "DOCKER-USER", "-s", "198.18.0.2", "-j", "DROP")
	var r *ports.Report
	var shut ports.Path
	testwait.Met(patience, func() bool { // on a busy machine the time for trying remedies may be over
		r = reportOf(e, about...)
		shut = r.Ports[0].Paths[ports.Remote]
		return shut.Trial == nil || shut.Trial.Untried == ""
	})
	if shut.Kind != ports.Blocked || shut.Block == nil ||
		shut.Block.Chain != "DOCKER-USER" || shut.Block.Number != 1 ||
		shut.Trial == nil || shut.Trial.Untried != "" || len(shut.Trial.Commands) != 1 ||
		!strings.Contains(strings.Join(r.Answer.Text, " "), shut.Trial.Commands[0].Text) {
		t.Fatalf("%+v\n%v", shut, r.Answer)
	}
	remedy := strings.Fields(strings.TrimPrefix(shut.Trial.Commands[0].Text, "sudo "))
	e.run(remedy...)
	defer e.run("iptables", "-D", "DOCKER-USER", "1")
	if r = reportOf(e, about...); !r.Ports[0].Paths[ports.Remote].Answers() {
		t.Errorf("behind %v: %+v", remedy, r.Ports[0].Paths[ports.Remote])
	}
	dialAll(e, echo, reportOf(e, bin, "ports", "--client", "198.18.0.2", "--format", "json"))
}

func containerStates(e *dockerHost, t *testing.T, bin, echo string) {
	e.run("docker", "network", "create", "--internal", "shut")
	e.run("docker", "run", "-d", "--name", "inside", "--network", "shut", "-p", "8090:80", "echo",
		"listen", ":80")
	e.run("docker", "run", "-d", "--name", "frozen", "-p", "8091:80", "echo", "listen", ":80")
	e.run("docker", "run", "-d", "--name", "flap", "--restart", "always", "-p", "8092:80", "echo",
		"listen", "nowhere")
	defer e.run("docker", "rm", "-f", "inside", "frozen", "flap")
	e.run("docker", "pause", "frozen")
	defer e.run("docker", "unpause", "frozen")
	var r *ports.Report
	var traps map[string]ports.Trap
	starting := func(row ports.Row) bool { return row.Port == 8092 }
	// Wait for the time between two starts, when it has no proxy.
	testwait.Met(patience, func() bool {
		r = listPorts(e, bin)
		traps = trapsOf(r)
		return traps[ports.Restarting].Code != "" && !slices.ContainsFunc(r.Ports, starting)
	})
	for code, port := range map[string]string{ports.InternalNetwork: "8090/tcp",
		ports.Paused: "8091/tcp", ports.Restarting: "8092/tcp"} {
		if !slices.Equal(traps[code].Ports, []string{port}) {
			t.Errorf("%s: %+v", code, traps[code])
		}
	}
	i := slices.IndexFunc(r.Ports, func(row ports.Row) bool { return row.Port == 8091 })
	if i < 0 || r.Ports[i].Server.State != "paused" ||
		r.Ports[i].Paths[ports.Loopback].Kind != ports.Held ||
		r.Ports[i].Paths[ports.Remote].Kind != ports.Held {
		t.Errorf("%+v", r.Ports)
	}
	dialAll(e, echo, r)
}

func onePort(e *dockerHost, t *testing.T, bin string) {
	r := reportOf(e, bin, "ports", "8080", "--format", "json")
	v4, v6 := "8080/tcp 0.0.0.0 web docker-proxy", "8080/tcp :: web docker-proxy"
	if rows := rowsOf(r); !slices.Equal(rows, []string{v4, v6}) {
		t.Fatalf("%q", rows)
	}
	if p := r.Ports[0].Paths; p[ports.Loopback].Kind != ports.ByProxy ||
		p[ports.Remote].Kind != ports.ByNAT {
		t.Errorf("%+v", p)
	}
	tried := map[string]bool{}
	for _, c := range r.Checks {
		tried[c.Dial] = c.Agrees && c.Got == "connected"
	}
	if !tried["127.0.0.1:8080"] || !tried["[::1]:8080"] {
		t.Errorf("%+v", r.Checks)
	}
	for dial, agrees := range tried {
		if !agrees {
			t.Errorf("%s: %+v", dial, r.Checks)
		}
	}
	dry := func(args ...string) {
		out, err := e.try(args...)
		if err != nil || !strings.Contains(out, " measurements, ") {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
	}
	for _, port := range []string{"8080", "8081", "8082", "6000", "6003"} {
		r := reportOf(e, bin, "ports", port, "--format", "json")
		if len(r.Measure) == 0 {
			t.Errorf("nothing measures port %s", port)
		}
		command, isToll := strings.CutPrefix(r.MeasureServer, "toll ")
		if isToll != (port == "8080" || port == "8081") {
			t.Errorf("port %s is measured by %q", port, r.MeasureServer)
		} else if isToll {
			dry("sh", "-c", bin+" "+command+" --dry-run")
		}
		for _, m := range r.Measure {
			dry(append(append([]string{bin}, strings.Fields(m.Command)[1:]...), "--dry-run")...)
		}
	}
	for _, port := range []string{"4", "8083", "8084"} {
		out, err := e.try(bin, "ports", port)
		if ended := (*exec.ExitError)(nil); !errors.As(err, &ended) || ended.ExitCode() != exitCells {
			t.Errorf("port %s: %v\n%s", port, err, out)
		}
	}
}

func ordinaryUser(e *dockerHost, t *testing.T, bin string) {
	r := listPorts(e, bin, "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
	checkRows(t, r, "8080/tcp 0.0.0.0 172.17.0.2:80 docker-proxy",
		"8082/tcp ::1 172.17.0.4:80 docker-proxy")
	asRoot := "run toll ports as root"
	want := []ports.Missing{
		{What: "owners of some sockets", Remedy: asRoot,
			Why: "the kernel shows other users' open files to root only"},
		{What: "NAT and firewall rules", Remedy: asRoot, Why: "only root may read them"},
		{What: "names of containers", Remedy: asRoot + ", or as a member of the group docker",
			Why: "this user may not open Docker's socket, /var/run/docker.sock"},
		{What: "devices in containers (their MTU)", Remedy: asRoot,
			Why: "only root may enter their namespaces"},
		{What: "what containers and other machines reach", Remedy: asRoot,
			Why: "only root may connect from their places, in a copy of this machine's network"}}
	if d := cmp.Diff(want, r.Missing); d != "" {
		t.Error(d)
	}
	for _, row := range r.Ports {
		for c, p := range row.Paths {
			if row.Holder.Kind == "docker-proxy" && len(p.Doubt) == 0 && p.Tried != "refused" {
				t.Errorf("%s from %s is told for certain: %+v", p.Dial, c, p)
			}
			if c == ports.Loopback && row.Proto == "tcp" && p.Tried == "" {
				t.Errorf("no connection to %s was tried", p.Dial)
			}
		}
	}
}

func dockerGroup(e *dockerHost, t *testing.T, bin string) {
	e.run("chmod", "666", "/var/run/docker.sock")
	r := listPorts(e, bin, "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
	checkRows(t, r, "8080/tcp 0.0.0.0 web docker-proxy", "8087/tcp 0.0.0.0 web docker-proxy")
	if trapsOf(r)[ports.PublishedNobody].Code == "" {
		t.Errorf("%+v", r.Traps)
	}
}

func noDockerSocket(e *dockerHost, t *testing.T, bin, echo string) {
	r := listPorts(e, bin, "env", "DOCKER_HOST=unix:///nowhere")
	id := e.run("docker", "inspect", "-f", "{{.Id}}", "web")
	checkRows(t, r, "8080/tcp 0.0.0.0 "+id[:12]+" docker-proxy")
	want := []ports.Missing{{What: "names of containers", Why: "there is no Docker socket at /nowhere",
		Remedy: "set DOCKER_HOST=unix://… if it is elsewhere"}}
	if d := cmp.Diff(want, r.Missing); d != "" {
		t.Error(d)
	}
	dialAll(e, echo, r)
}

// The engine uses only NAT, and dockerd holds the ports.
func withoutProxy(t *testing.T, bin, echo, flags string) {
	e := startEngine(t, flags+"--userland-proxy=false")
	populate(e, echo)
	r := listPorts(e, bin)
	checkRows(t, r, "8080/tcp 0.0.0.0 web dockerd", "8081/tcp 127.0.0.1 local dockerd",
		"8086/tcp 0.0.0.0 other dockerd", "7000/tcp * wide server")
	dialAll(e, echo, r)
	e.run("sysctl", "-qw", "net.ipv4.conf.docker0.route_localnet=0")
	r = listPorts(e, bin)
	if x := trapsOf(r)[ports.RouteLocalnet]; !slices.Contains(x.Ports, "8080/tcp") {
		t.Errorf("%+v", r.Traps)
	}
	dialAll(e, echo, r)
	table := "nat"
	if flags != "" {
		table = "docker-bridges"
	}
	e.run("nft", "flush", "table", "ip", table) // as a careless firewall script does
	r = listPorts(e, bin)
	if row := r.Ports[slices.IndexFunc(r.Ports, func(r ports.Row) bool {
		return r.Port == 8080
	})]; row.Paths[ports.Loopback].Kind != ports.Held {
		t.Errorf("%+v", row)
	}
	dialAll(e, echo, r)
}

const shopFile = "testdata/manual/shop.json"

// saveShop saves the machine of the manual's examples: a web server, published containers, and a
// rule against port 80 that was meant for the web server.
func saveShop(t *testing.T, bin string) {
	t.Helper()
	echo := buildEcho(t)
	e := startEngine(t, "")
	for _, image := range []string{"shop/web", "shop/api", "shop/db", "shop/media"} {
		e.run("docker", "import", "-c", `ENTRYPOINT ["/echo"]`, echo+".tar", image)
	}
	e.run("docker", "network", "create", "--subnet", "172.20.0.0/24", "shop")
	for _, c := range []string{"web -p 8080:80 shop/web listen :80",
		"api -p 127.0.0.1:8081:80 shop/api listen :80",
		"media -p 3000-3003:3000-3003 shop/media listen :3000 :3001 :3002 :3003",
		"db shop/db listen :5432"} {
		e.run(append([]string{"docker", "run", "-d", "--network", "shop", "--name"},
			strings.Fields(c)...)...)
	}
	e.run("cp", echo, "/run/nginx")
	e.start("ready", "/run/nginx", "listen", ":80")
	for _, chain := range []string{"INPUT", "DOCKER-USER"} {
		e.run("iptables", "-I", chain, "-i", "eth0", "-p", "tcp", "--dport", "80", "-j", "DROP")
	}
	at := filepath.Join(e.dir, "shop.json")
	e.run(bin, "ports", "--save", at, "--output", "/dev/null")
	b, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(shopFile, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// Root's commands have no sudo where there is none, so that they can be pasted.
func TestPortsCommandsWithoutSudo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	const line = "sudo nsenter -t 7 -n iptables -I INPUT -j ACCEPT"
	d := document.Document{Sections: []document.Section{{Blocks: []document.Block{
		document.Paragraph{Level: 1}, document.Command{Line: line, Level: 2}}}}}
	pastedHere(d)
	want := document.Command{Line: line, Level: 2}
	if os.Geteuid() == 0 {
		want.Line = strings.TrimPrefix(line, "sudo ")
	}
	if got := d.Sections[0].Blocks[1]; got != document.Block(want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
