package swarm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

// boot makes nodes of namespaces, node1 to node$2, on a switch, each with a dockerd, and a swarm
// whose managers are the first $3. All of it ends with its first process. Card wN of the switch
// leads to nodeN.
const boot = `set -e
dir=$1 n=$2 managers=$3
mount --make-rshared /
mount -t tmpfs tmpfs /run
mkdir -p /run/netns
ip link set lo up
ip link add sw type bridge
ip link set sw up
for i in $(seq $n); do
	ip netns add n$i
	ip link add w$i type veth peer name eth0 netns n$i
	ip link set w$i master sw up
	ip -n n$i link set lo up
	ip -n n$i addr add 10.77.0.$i/24 dev eth0
	ip -n n$i addr add fd77::$i/64 dev eth0 nodad
	ip -n n$i link set eth0 up
	ip -n n$i route add default via 10.77.0.254
	mkdir -p $dir/$i/data
	nsenter --net=/run/netns/n$i unshare -m -u --propagation slave bash -c 'set -e
		mount --make-rshared /
		mount -t tmpfs tmpfs /run
		mkdir -p /run/lock /run/netns /run/s
		mount -t sysfs sysfs /run/s
		mount --rbind /sys/fs/cgroup /run/s/fs/cgroup
		mount --rbind /run/s /sys
		mount -t tmpfs tmpfs '$dir/$i'/data
		hostname node'$i'
		echo $$ >'$dir/$i'/pid
		exec dockerd --data-root '$dir/$i'/data --exec-root /run/docker --pidfile /run/docker.pid -H unix:///run/docker.sock -H unix://'$dir/$i'/sock' >$dir/$i/log 2>&1 &
done
for i in $(seq $n); do
	for k in $(seq 200); do docker -H unix://$dir/$i/sock version >/dev/null 2>&1 && break; sleep 0.1; done
done
docker -H unix://$dir/1/sock swarm init --advertise-addr 10.77.0.1 >/dev/null
for i in $(seq 2 $n); do
	role=worker
	[ $i -gt $managers ] || role=manager
	docker -H unix://$dir/$i/sock swarm join --advertise-addr 10.77.0.$i --token $(docker -H unix://$dir/1/sock swarm join-token -q $role) 10.77.0.1:2377 >/dev/null
done
echo ready
exec sleep infinity
`

type testCluster struct {
	dir string
	pid string
}

func newCluster(t *testing.T, e pathtest.Engine, n, managers int) *testCluster {
	t.Helper()
	c := &testCluster{dir: t.TempDir()}
	var (
		said bytes.Buffer
		out  io.Reader
	)
	m := pathtest.Boot(t, boot, func(cmd *exec.Cmd) {
		var err error
		cmd.Stderr, cmd.Env = &said, append(cmd.Env, e.Env()...)
		if out, err = cmd.StdoutPipe(); err != nil {
			t.Fatal(err)
		}
	}, c.dir, fmt.Sprint(n), fmt.Sprint(managers))
	ready := make(chan string, 1)
	go func() {
		b := make([]byte, 100)
		n, _ := out.Read(b)
		ready <- string(b[:n])
	}()
	select {
	case s := <-ready:
		if !strings.Contains(s, "ready") {
			pathtest.SkipOrFail(t, "no swarm starts here: %s\n%s", &said, c.log(1))
		}
	case <-time.After(180 * time.Second): // in an emulated machine
		t.Fatalf("the swarm does not come up:\n%s\n%s", &said, c.log(1))
	}
	c.pid = m.First()
	versions := strings.Fields(c.run(t, 1, "docker", "node", "ls", "--format",
		"{{.EngineVersion}}"))
	if len(versions) != n || slices.ContainsFunc(versions, func(v string) bool {
		return !strings.Contains(e.Says("--version"), " "+v+",")
	}) {
		t.Fatalf("the nodes run Docker Engine %v: %s", versions, e.Says("--version"))
	}
	t.Logf("Docker Engine %s", versions[0])
	return c
}

func (c *testCluster) log(node int) string {
	b, _ := os.ReadFile(fmt.Sprintf("%s/%d/log", c.dir, node))
	return string(b[max(0, len(b)-3000):])
}

// node 0 is the switch
func (c *testCluster) on(node int, args ...string) *exec.Cmd {
	enter := []string{"-t", c.pid, "-n", "-m", "-p"}
	if node > 0 {
		pid, _ := os.ReadFile(fmt.Sprintf("%s/%d/pid", c.dir, node))
		enter = append(enter, "nsenter", "-t", strings.TrimSpace(string(pid)), "-n", "-m", "-u")
	}
	cmd := exec.Command("nsenter", append(enter, args...)...)
	cmd.Env = append(os.Environ(), "DOCKER_HOST=unix:///run/docker.sock", "DOCKER_CONFIG=/nowhere",
		"XDG_STATE_HOME="+filepath.Join(c.dir, fmt.Sprint(node)))
	return cmd
}

func (c *testCluster) run(t *testing.T, node int, args ...string) string {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd := c.on(node, args...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		t.Fatalf("node %d: %v: %v\n%s%s", node, args, err, &out, &errOut)
	}
	return strings.TrimSpace(out.String())
}

func (c *testCluster) toll(t testing.TB, node int, program string, args ...string) (code int,
	out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	cmd := c.on(node, append([]string{program}, args...)...)
	cmd.Stdout, cmd.Stderr = &o, &e
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}
