package truth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"gonum.org/v1/gonum/stat"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
)

const (
	routePort  = 7101
	routedFrom = "10.60.0.1" // the client's address
	routedBy   = "10.60.0.254"
)

// routeWorld is a client's namespace and a router's, behind which each route's server has one.
type routeWorld struct {
	spaces
	client, router *netns.NS
	dir            string // for relays
	routes         int
	servers        map[string]*netns.NS // by the addresses that clients dial
	beside         bool                 // servers, relays and toll run on the first CPU
}

// newRouteWorld makes the client's and the router's namespace. The caller closes it.
func newRouteWorld(dir string) (w *routeWorld, err error) {
	w = &routeWorld{dir: dir, servers: map[string]*netns.NS{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.client, err = w.namespace(); err != nil {
		return nil, err
	}
	if w.router, err = w.namespace(); err != nil {
		return nil, err
	}
	if err := w.link(w.client, "c0", routedBy, routedFrom); err != nil {
		return nil, err
	}
	return w, inside(w.router, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
}

// link connects a namespace with the router by a pair of devices. The namespace's is eth0. Without
// an address of the router's, its device has none.
func (w *routeWorld) link(ns *netns.NS, port, router, addr string) error {
	tid, err := ns.TID()
	if err != nil {
		return err
	}
	script := fmt.Sprintf("ip link add %s type veth peer name eth0 netns %d && ip "+
		"link set %[1]s up",
		port, tid)
	if router != "" {
		script += fmt.Sprintf(" && ip addr add %s/24 dev %s", router, port)
	}
	if err := inside(w.router, "sh", "-c", script); err != nil {
		return err
	}
	network := addr[:strings.LastIndexByte(addr, '.')]
	return inside(ns, "sh", "-c",
		fmt.Sprintf("ip addr add %s/24 dev eth0 && ip link set eth0 up && "+
			"ip route add default via %s.254", addr, network))
}

// add adds a route and returns the address that clients dial.
func (w *routeWorld) add(k routeKind) (at string, err error) {
	w.routes++
	ns, err := w.namespace()
	if err != nil {
		return "", err
	}
	network := fmt.Sprintf("10.61.%d", w.routes)
	port := fmt.Sprintf("s%d", w.routes)
	if err := w.link(ns, port, "", network+".2"); err != nil {
		return "", err
	}
	if err := inside(w.router, "sh", "-c", w.bridges(k, port, network)); err != nil {
		return "", err
	}
	at = net.JoinHostPort(network+".2", strconv.Itoa(routePort))
	w.servers[at] = ns
	if err := w.serve(ns, k, at); err != nil || !k.relay {
		return at, err
	}
	return w.relay(k.spin, network+".2")
}

// bridges returns the commands that put the server's port behind bridges, and its rules.
func (w *routeWorld) bridges(k routeKind, port, network string) string {
	var b strings.Builder
	fmt.Fprintln(&b, "set -e")
	for i := range max(1, k.bridges) {
		name := fmt.Sprintf("b%d-%d", w.routes, i)
		fmt.Fprintf(&b, "ip link add %s type bridge\nip link set %[1]s up\n", name)
		if i == 0 {
			fmt.Fprintf(&b, "ip addr add %s.254/24 dev %s\n", network, name)
		} else {
			before := fmt.Sprintf("b%d-%d", w.routes, i-1)
			fmt.Fprintf(&b, "ip link add %s-x type veth peer name %[1]s-y\n"+
				"ip link set %[1]s-x master %s\nip link set %[1]s-y master %[1]s\n"+
				"ip link set %[1]s-x up\nip link set %[1]s-y up\n", name,
				before)
		}
		if i == max(1, k.bridges)-1 {
			fmt.Fprintf(&b, "ip link set %s master %s\n", port, name)
		}
	}
	if k.rules > 0 {
		walk := strings.Repeat("tcp dport 1 counter drop\n", k.rules)
		fmt.Fprintf(&b, "nft -f - <<'END'\ntable ip r%d {\nchain walk {\n%s}\nchain f {\n"+
			"type filter hook forward priority 0;\nip daddr %[3]s.2 jump walk\n"+
			"ip saddr %[3]s.2 jump walk\n}\n}\nEND\n", w.routes, walk, network)
	}
	return b.String()
}

// serve starts a server, and returns once it listens.
func (w *routeWorld) serve(ns *netns.NS, k routeKind, at string) error {
	how, err := json.Marshal(k.answer)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	enter := ""
	if k.period > 0 {
		group, err := w.limited(k.period)
		if err != nil {
			return err
		}
		enter = "echo $$ > " + group + "/cgroup.procs && "
	}
	cmd := exec.Command("sh", append([]string{"-c", enter + `exec "$@"`, "sh"},
		w.args(self, self, answerArg, string(how), at)...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := w.start(ns, cmd); err != nil {
		return err
	}
	_, err = io.ReadFull(out, make([]byte, 1))
	return err
}

// limited makes a control group that may use limitedTo of CPU time in each period.
func (w *routeWorld) limited(period time.Duration) (dir string, err error) {
	quota, of := strconv.FormatInt(limitedTo.Microseconds(), 10),
		strconv.FormatInt(period.Microseconds(), 10)
	parent := "/sys/fs/cgroup/cpu"
	files := map[string]string{"cpu.cfs_period_us": of, "cpu.cfs_quota_us": quota}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil { // version 2
		parent, files = "/sys/fs/cgroup", map[string]string{"cpu.max": quota + " " + of}
	}
	if dir, err = os.MkdirTemp(parent, "toll-truth-"); err != nil {
		return "", err
	}
	w.closers = append(w.closers, func() error { return removeGroup(dir) })
	for name, text := range files {
		const readable = 0o644
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(text), readable))
	}
	return dir, err
}

// removeGroup removes a control group, whose processes may not yet have left it.
func removeGroup(dir string) (err error) {
	for until := time.Now().Add(exitTimeout); time.Now().Before(until); time.Sleep(time.Millisecond) {
		if err = os.Remove(dir); err == nil {
			return nil
		}
	}
	return err
}

// relay starts a relay at the router, and returns its address once it listens.
func (w *routeWorld) relay(spin time.Duration, server string) (at string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	port := strconv.Itoa(routePort + w.routes)
	all := w.args(self, self, relayArg, spin.String(), "-proto", "tcp", "-host-ip", routedBy,
		"-host-port", port, "-container-ip", server, "-container-port", strconv.Itoa(routePort))
	cmd := exec.Command(all[0], all[1:]...)
	ready, child, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer ready.Close()
	defer child.Close()
	cmd.ExtraFiles = []*os.File{child}
	if err := w.start(w.router, cmd); err != nil {
		return "", err
	}
	_, err = io.ReadFull(ready, make([]byte, 1))
	return net.JoinHostPort(routedBy, port), err
}

// toll runs toll at the client.
func (w *routeWorld) toll(ctx context.Context, t *trial, args ...string) ([]byte, error) {
	cmd := t.command(ctx, args...)
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if cmd.Args = w.args(self, append([]string{cmd.Path}, args...)...); w.beside {
		cmd.Path = self
	}
	err = cmd.in(w.client)
	return cmd.stdout.Bytes(), err
}

// args returns the arguments that run a program, on the first CPU if the world's do. self is this
// program.
func (w *routeWorld) args(self string, program ...string) []string {
	if !w.beside {
		return program
	}
	return append([]string{self, besideArg}, program...)
}

// dial connects to a route's server with blocking calls.
func (w *routeWorld) dial(at string) (fd int, err error) {
	err = w.client.Do(func() error {
		c, err := net.Dial("tcp4", at)
		if err == nil {
			fd, err = blocking(c)
		}
		return err
	})
	return fd, err
}

// ask makes a request and returns how long it took, in ns.
func ask(fd int, buffer []byte) (took int64, err error) {
	began := clock.Now()
	if err := writeAll(fd, []byte("GET / HTTP/1.1\r\nHost: a"+requestEnd)); err != nil {
		return 0, err
	}
	for n, size := 0, math.MaxInt; n < size; {
		got, err := unix.Read(fd, buffer[n:])
		if err != nil || got <= 0 {
			return 0, errors.Join(io.ErrUnexpectedEOF, err)
		}
		n += got
		if size == math.MaxInt {
			if size, err = sizeOf(buffer[:n]); err != nil {
				return 0, err
			}
		}
	}
	return clock.Now() - began, nil
}

// sizeOf returns the size of a reply, which begins with its whole header.
func sizeOf(b []byte) (int, error) {
	head, _, ok := bytes.Cut(b, []byte(requestEnd))
	_, length, found := bytes.Cut(head, []byte("Content-Length: "))
	if !ok || !found {
		return 0, fmt.Errorf("%.80q is no reply", b)
	}
	body, err := strconv.Atoi(string(length))
	return len(head) + len(requestEnd) + body, err
}

// compare returns what requests to b take longer than those to a, which take turns for a time. Each
// turn has a connection of its own, as each of toll's visits has: a long reply takes longer on one
// whose windows are still small.
func (w *routeWorld) compare(a, b string, during time.Duration) (amount, error) {
	buffer := make([]byte, 2*large+1<<10)
	var by []float64
	for until := time.Now().Add(during); time.Now().Before(until) || len(by) < 2; {
		var middle [2]float64
		for i, at := range []string{a, b} {
			var err error
			if middle[i], err = w.turn(at, buffer); err != nil {
				return amount{}, err
			}
		}
		by = append(by, middle[1]-middle[0])
	}
	return ofDifferences(by), nil
}

// ofDifferences returns the mean of at least two differences.
func ofDifferences(by []float64) amount {
	const sure = 2 // standard errors
	at, sd := stat.MeanStdDev(by, nil)
	return amount{at, sure * stat.StdErr(sd, float64(len(by)))}
}

// turn makes requests for as long as a visit of toll does, and returns what middleTime does.
func (w *routeWorld) turn(at string, buffer []byte) (float64, error) {
	const warm, each = 30 * time.Millisecond, 200 * time.Millisecond
	fd, err := w.dial(at)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(fd) }()
	if _, err := middleTime(fd, buffer, warm); err != nil {
		return 0, err
	}
	return middleTime(fd, buffer, each)
}

// middleTime makes requests for a time and returns the mean of the middle fifth of how long they
// took, in s.
func middleTime(fd int, buffer []byte, during time.Duration) (float64, error) {
	var all []int64
	for until := time.Now().Add(during); time.Now().Before(until); {
		took, err := ask(fd, buffer)
		if err != nil {
			return 0, err
		}
		all = append(all, took)
	}
	return middleFifth(all), nil
}

// middleFifth returns the mean of the middle fifth of durations in ns, which it sorts, in s.
func middleFifth(all []int64) float64 {
	slices.Sort(all)
	some := all[len(all)*2/5 : len(all)*3/5+1]
	sum := 0.0
	for _, x := range some {
		sum += float64(x) / float64(time.Second) / float64(len(some))
	}
	return sum
}

// crowd is clients that make one request after another, whose replies are small.
type crowd struct {
	stop     atomic.Bool
	over     sync.WaitGroup
	mu       sync.Mutex
	n        int
	sum      int64
	failures []error
}

// crowd starts clients of a server.
func (w *routeWorld) crowd(at string, n int) (*crowd, error) {
	c := &crowd{}
	for range n {
		fd, err := w.dial(at)
		if err != nil {
			_, errEnd := c.end()
			return nil, errors.Join(err, errEnd)
		}
		c.over.Go(func() { c.run(fd) })
	}
	return c, nil
}

func (c *crowd) run(fd int) {
	defer func() { _ = unix.Close(fd) }()
	n, sum := 0, int64(0)
	var err error
	for b := make([]byte, 1<<10); !c.stop.Load() && err == nil; n++ {
		var took int64
		took, err = ask(fd, b)
		sum += took
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n, c.sum = c.n+n, c.sum+sum
	if err != nil {
		c.failures = append(c.failures, err)
	}
}

// end stops the clients and returns the mean time of their requests, in s.
func (c *crowd) end() (mean float64, err error) {
	c.stop.Store(true)
	c.over.Wait()
	return float64(c.sum) / float64(max(1, c.n)) / float64(time.Second), errors.Join(c.failures...)
}
