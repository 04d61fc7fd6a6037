package cli

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// engineBoot makes a machine of namespaces with dockerd: eth0 has a wire to a namespace "far". All
// of it ends with its first process.
const engineBoot = `set -e
mount -t tmpfs tmpfs /run
mkdir -p /run/lock /run/netns /run/s
mount -t sysfs sysfs /run/s
mount --rbind /sys/fs/cgroup /run/s/fs/cgroup
mount --rbind /run/s /sys
mkdir "$1/data"
mount -t tmpfs tmpfs "$1/data"
ip link set lo up
ip link add eth0 type veth peer name wire
ip addr add 198.18.0.1/24 dev eth0
ip -6 addr add fd18::1/64 dev eth0 nodad
ip link set eth0 up
ip netns add far
ip link set wire netns far
ip -n far link set lo up
ip -n far addr add 198.18.0.2/24 dev wire
ip -n far -6 addr add fd18::2/64 dev wire nodad
ip -n far link set wire up
ip route add default via 198.18.0.2
case "$2" in *nftables*) sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1;; esac # where dockerd leaves that to others
exec dockerd -D --data-root "$1/data" --exec-root /run/docker --pidfile /run/docker.pid -H unix:///var/run/docker.sock $2
`

type dockerHost struct {
	t          *testing.T
	dir        string
	pid        string // of its first process, in this process's namespace
	neighbours map[string][]string
}

func startEngine(t *testing.T, flags string) *dockerHost {
	t.Helper()
	pathtest.NeedsDaemons(t, "nft")
	e := &dockerHost{t: t, dir: t.TempDir()}
	log, err := os.Create(filepath.Join(e.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	m := pathtest.Boot(t, engineBoot, func(cmd *exec.Cmd) {
		cmd.Stdout, cmd.Stderr = log, log
	}, e.dir, flags)
	if testwait.Met(patience, func() bool {
		if e.pid = m.First(); e.pid == "" {
			return false
		}
		_, err := e.try("docker", "version")
		return err == nil
	}) {
		return e
	}
	b, _ := os.ReadFile(log.Name())
	pathtest.SkipOrFail(t, "dockerd does not start here: %s", b[max(0, len(b)-2000):])
	return nil
}

func (e *dockerHost) try(args ...string) (string, error) {
	var out, errOut bytes.Buffer
	cmd := exec.Command("nsenter", append([]string{"-t", e.pid, "-n", "-m", "-p"}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	cmd.Env = append(os.Environ(), "DOCKER_HOST=", "DOCKER_CONFIG=/nowhere")
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("%v: %w: %s", args, err, errOut.String())
	}
	return strings.TrimSpace(out.String()), err
}

func (e *dockerHost) run(args ...string) string {
	e.t.Helper()
	out, err := e.try(args...)
	if err != nil {
		e.t.Fatal(err)
	}
	return out
}

// start starts a program, and returns its first output once it has said that it is ready.
func (e *dockerHost) start(ready string, args ...string) (said string) {
	e.t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		e.t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command("nsenter", append([]string{"-t", e.pid, "-n", "-m", "-p"}, args...)...)
	cmd.Stdout = w
	err = cmd.Start()
	w.Close()
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { // it ends with the machine at the latest
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	b := make([]byte, 100)
	_ = r.SetReadDeadline(time.Now().Add(patience))
	n, err := r.Read(b)
	if said = string(b[:n]); err != nil || !strings.Contains(said, ready) {
		e.t.Fatalf("%v: %q, %v", args, said, err)
	}
	return said
}

func buildEcho(t *testing.T) (echo string) {
	t.Helper()
	dir := t.TempDir()
	echo = filepath.Join(dir, "echo")
	pathtest.BuildStatic(t, "build", "-o", echo, "./testdata/echo")
	if out, err := exec.Command("tar", "-C", dir, "-cf", echo+".tar", "echo").CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
	return echo
}

// neighbours returns commands that run a program in a container on a server's network, by the
// server's name and, for reports made without Docker, by its ID.
func neighbours(e *dockerHost) map[string][]string {
	in := func(name string) []string {
		return []string{"nsenter", "-n", "-t",
			e.run("docker", "inspect", "-f", "{{.State.Pid}}", name)}
	}
	all := map[string][]string{"default": in("quiet"), "other": in("other"), "dual": in("mate")}
	for _, name := range []string{"other", "dual"} {
		all[e.run("docker", "inspect", "-f", "{{.Id}}", name)[:12]] = all[name]
	}
	return all
}

// asking holds the addresses dialled from one place, and what the report says about each.
type asking struct {
	client ports.Client
	in     []string // the command that runs a program there
	said   map[string]ports.Path
}

// askings leaves out places that the test lacks: containers of some networks, and machines behind a
// router.
func askings(e *dockerHost, r *ports.Report) (all []asking) {
	e.t.Helper()
	here, far := asking{said: map[string]ports.Path{}}, asking{client: ports.Remote,
		in: []string{"ip", "netns", "exec", "far"}, said: map[string]ports.Path{}}
	containers := map[string]asking{}
	for network, name := range map[string]string{"bridge": "default", "docker0": "default",
		"small": "other", "dual": "dual"} {
		containers["a container on "+network] = asking{ports.Neighbour, e.neighbours[name],
			map[string]ports.Path{}}
	}
	for _, row := range r.Ports {
		for _, p := range row.Dials {
			routed := slices.ContainsFunc(p.Doubt, func(d ports.Reason) bool {
				return strings.HasPrefix(d.Words, "whether the other machine has a route")
			})
			if row.Proto != "tcp" || routed {
				continue
			}
			if len(p.Doubt) > 0 {
				e.t.Errorf("%s from %s %s: %v", p.Dial, p.Client, p.From, p.Doubt)
			}
			switch {
			case p.Client == ports.Remote && (p.From == "a machine at eth0" || r.Client != ""):
				far.said[p.Dial] = p
			case p.Client == ports.Neighbour && containers[p.From].said != nil:
				containers[p.From].said[p.Dial] = p
			case p.Client != ports.Remote && p.Client != ports.Neighbour:
				here.client = p.Client
				here.said[p.Dial] = p
			}
		}
	}
	return slices.Concat([]asking{here, far}, slices.Collect(maps.Values(containers)),
		insiders(e, r))
}

// insiders dials what container quiet does not publish, by its own address. Another machine has no
// route there.
func insiders(e *dockerHost, r *ports.Report) (all []asking) {
	e.t.Helper()
	for _, x := range r.Inside {
		if x.Server.Name != "quiet" || x.Port != 9000 {
			continue
		}
		for c, in := range map[ports.Client][]string{ports.OwnAddr: nil,
			ports.Neighbour: e.neighbours["default"], ports.Foreign: e.neighbours["other"]} {
			p, ok := x.Paths[c]
			if !ok || len(p.Doubt) > 0 {
				e.t.Errorf("%s from %s: %+v", x.Dial, c, p)
			}
			all = append(all, asking{c, in, map[string]ports.Path{p.Dial: p}})
		}
	}
	return all
}

// dialAll dials all addresses at once, because those that are not answered time out.
func dialAll(e *dockerHost, echo string, r *ports.Report) {
	e.t.Helper()
	var n atomic.Int64
	var wg sync.WaitGroup
	for _, a := range askings(e, r) {
		if len(a.said) == 0 {
			continue
		}
		wg.Go(func() {
			dial := func(addrs ...string) string {
				out, err := e.try(slices.Concat(a.in, []string{echo, "dial"}, addrs)...)
				if err != nil {
					e.t.Error(err)
				}
				return out
			}
			for line := range strings.Lines(dial(slices.Collect(maps.Keys(a.said))...)) {
				f := strings.Fields(line)
				n.Add(1)
				want := a.said[f[0]]
				// The kernel repeats an ARP request without an answer after a second.
				if want.Answers() && f[1] == "silent" {
					if again := strings.Fields(dial(f[0])); len(again) == len(f) {
						f = again
					}
				}
				if want.Answers() != (f[1] == "answered") {
					e.t.Errorf("%s from %s: toll says %s (%s), in reality it is %s", f[0], a.client,
						want.Kind, want.Why.Words, f[1])
				}
			}
		})
	}
	wg.Wait()
	if const20 := int64(20); n.Load() < const20 {
		e.t.Errorf("only %d paths were tried", n.Load())
	}
}

// The servers are reachable only from the place: a container's own loopback, and a name that only a
// network's Docker DNS server knows. None is a database, so a server does not speak first.
func fromContainers(e *dockerHost, t *testing.T, bin string) {
	const reached = "connected, but no answer within"
	for _, tt := range []struct{ from, at, says string }{
		{"host", "127.0.0.1:9000", "connection refused"},
		{"container:quiet", "127.0.0.1:9000", reached},
		{"network:dual", "mate:9000", reached},
		{"container:fight", "127.0.0.1:9000", "container fight is not running"},
		{"network:nowhere", "127.0.0.1:9000", "there is no network nowhere"},
	} {
		_, err := e.try(bin, "sql", "a=mysql://app@"+tt.at+"/shop", "--from", tt.from,
			"--rounds", "1", "--quiet", "--timeout", "1s")
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s from %s: %v, want %q", tt.at, tt.from, err, tt.says)
		}
	}
	if left := e.run("docker", "ps", "-aq", "--filter", "label="+dockerapi.RunLabel); left != "" {
		t.Errorf("left behind: %s", left)
	}
}
