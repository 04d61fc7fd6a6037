package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/paths/path/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testwait"
)

// engineBoot makes a machine of its own namespaces: eth0 with a wire to a namespace "far", and
// dockerd. All of it ends with its first process.
const engineBoot = `set -e
mount -t tmpfs tmpfs /run
mkdir -p /run/lock /run/netns /run/s
mount -t sysfs sysfs /run/s
mount --rbind /sys/fs/cgroup /run/s/fs/cgroup
mount --rbind /run/s /sys
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

// dockerHost is a machine that engineBoot made.
type dockerHost struct {
	t   *testing.T
	dir string
	pid string // its first process, as this process sees it
	// neighbours returns, by the server's name, the command that runs a program beside it.
	neighbours map[string][]string
}

// startEngine boots a machine and passes the additional flags to its dockerd.
func startEngine(t *testing.T, flags string) *dockerHost {
	t.Helper()
	pathtest.NeedsDaemons(t, "nft")
	e := &dockerHost{t: t, dir: t.TempDir()}
	log, err := os.Create(filepath.Join(e.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	m := pathtest.Boot(t, engineBoot, func(cmd *exec.Cmd) { cmd.Stdout, cmd.Stderr = log, log }, e.dir, flags)
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

// start runs a program in the background and waits until it has printed ready.
func (e *dockerHost) start(ready string, args ...string) {
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
	if n, err := r.Read(b); err != nil || !strings.Contains(string(b[:n]), ready) {
		e.t.Fatalf("%v: %q, %v", args, b[:n], err)
	}
}

// buildEcho builds the echo program, in a directory that becomes a container's root.
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
