package cases

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

const patience = time.Minute

// machine is the machine of a situation. It has namespaces of its own and the networks of its
// cards.
type machine struct {
	t     testing.TB
	boot  *pathtest.Machine
	self  string // this program, in the machine
	env   []string
	cards map[string]*netns.NS
}

//go:embed testdata/prelude.sh
var prelude string

const boot = `set -e
mount -t tmpfs tmpfs /run
mkdir -p /run/bin /run/lock /run/netns /run/places /run/s
mount -t sysfs sysfs /run/s
mount --rbind /sys/fs/cgroup /run/s/fs/cgroup
mount --rbind /run/s /sys
ip link set lo up
sysctl -qw net.ipv4.icmp_ratemask=0 # many refusals at once
touch /run/bin/self
mount --bind "$1" /run/bin/self
echo 1 >/run/places/machine
trap '' CHLD # so that it leaves no zombies, which keep namespaces
exec sleep infinity`

func start(t testing.TB, s *situation) *machine {
	t.Helper()
	m := &machine{t: t, self: "/run/bin/self", env: s.env,
		cards: map[string]*netns.NS{}}
	m.boot = pathtest.Boot(t, boot, func(*exec.Cmd) {}, pathtest.StaticSelf(t))
	testwait.Until(t, patience, "the machine runs", func() bool {
		_, err := os.Stat(m.file("/run/places/machine"))
		return err == nil && m.boot.First() != ""
	})
	if s.quiet {
		m.env = append(m.env, "QUIET=1")
		m.sh("hush")
	}
	for _, c := range s.cards {
		if c.wire == "" {
			m.plug(c, s.quiet)
		} else {
			m.cards[c.name] = m.cards[c.wire]
		}
	}
	for _, b := range s.beyond {
		if err := m.in(b[0], func() error { return listenAt(b[1], b[2:]) }); err != nil {
			t.Fatal(err)
		}
	}
	m.sh(s.setup)
	for _, line := range s.wires {
		at, command, _ := strings.Cut(line, " ")
		if err := m.in(at, func() error { return run(command) }); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	return m
}

// file returns a file of the machine as this process sees it.
func (m *machine) file(name string) string {
	return fmt.Sprintf("/proc/%s/root%s", m.boot.First(), name)
}

// plug adds a network card, with another machine at the other end of its wire. That machine has a
// namespace, but no process.
func (m *machine) plug(c card, quiet bool) {
	m.t.Helper()
	ns, err := netns.New()
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { ns.Close() })
	m.cards[c.name] = ns
	there, here := []string{"link set lo up", fmt.Sprintf(
		"link add wire type veth peer name %s netns /proc/%s/ns/net", c.name, m.boot.First()),
		"link set wire up"}, []string{"link set " + c.name + " up"}
	for i, a := range c.other {
		device := "wire"
		if i > 0 && a.IsSingleIP() {
			device = "lo"
		}
		there = append(there, fmt.Sprintf("addr add %s dev %s %s", a, device, nodad(a)))
	}
	for _, a := range c.own {
		here = append(here, fmt.Sprintf("addr add %s dev %s %s", a, c.name, nodad(a)))
	}
	if len(m.cards) == 1 {
		for i, a := range c.other {
			if i == 0 || a.Addr().Is4() != c.other[0].Addr().Is4() {
				here = append(here, fmt.Sprintf("route add default via %s", a.Addr()))
			}
		}
	}
	var routes []string
	for _, a := range c.own {
		if a.IsSingleIP() {
			routes = append(routes, fmt.Sprintf("route add %s dev wire", a))
		}
	}
	for _, r := range c.routes {
		i := slices.IndexFunc(c.own, func(p netip.Prefix) bool { return p.Addr().Is4() == r.Addr().Is4() })
		routes = append(routes, fmt.Sprintf("route add %s via %s", r, c.own[i].Addr()))
	}
	script := batch("", there) + batch("nsenter --net=/proc/"+m.boot.First()+"/ns/net ", here)
	if len(routes) > 0 {
		script += batch("", routes)
	}
	if quiet {
		script = prelude + "\nQUIET=1 hush\n" + script
	}
	if err := ns.Do(func() error { return run(script) }); err != nil {
		m.t.Fatal(err)
	}
}

// batch returns a line of a script that runs commands of ip. in is a command that runs another one.
func batch(in string, commands []string) string {
	return in + "ip -batch - <<'END'\n" + strings.Join(commands, "\n") + "\nEND\n"
}

func nodad(p netip.Prefix) string {
	if p.Addr().Is4() {
		return ""
	}
	return "nodad"
}

func run(script string) error {
	out, err := exec.Command("bash", "-ec", script).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// command returns a command to be started in the machine.
func (m *machine) command(args ...string) *exec.Cmd {
	cmd := exec.Command("nsenter", append([]string{
		"-t", m.boot.First(), "-n", "-m", "-p"}, args...)...)
	cmd.Env = append(append(os.Environ(), "SELF="+m.self, "DOCKER_HOST=unix:///run/d/sock"),
		m.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

func (m *machine) sh(script string) {
	m.t.Helper()
	if out, err := m.try(script); err != nil {
		m.t.Fatalf("%v: %s", err, out)
	}
}

func (m *machine) try(script string) (string, error) {
	const file = "/run/script"
	if err := os.WriteFile(m.file(file), []byte(prelude+script), 0o644); err != nil {
		return "", err
	}
	cmd := m.command("bash", "-e", file)
	var out bytes.Buffer
	// daemons keep the files open: a pipe would not end
	log, err := os.CreateTemp(m.t.TempDir(), "log")
	if err != nil {
		return "", err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	err = cmd.Run()
	_, rerr := log.Seek(0, 0)
	_, cerr := out.ReadFrom(log)
	return out.String(), errors.Join(err, rerr, cerr)
}

// server is a listening socket, as serve and proxy of the prelude make them.
type server struct {
	Space string         `json:"namespace"`
	Name  string         `json:"name"`
	Proto string         `json:"protocol"`
	Addr  netip.AddrPort `json:"address"`
	Relay netip.AddrPort `json:"relay"`
	// Device is the one to which the socket is bound; "": none.
	Device string `json:"device,omitempty"`
}

func (m *machine) servers() (all []server) {
	m.t.Helper()
	b, err := os.ReadFile(m.file("/run/servers"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		m.t.Fatal(err)
	}
	for line := range bytes.Lines(b) {
		var s server
		if err := json.Unmarshal(line, &s); err != nil {
			m.t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

// places returns the PIDs of a process in each place of the machine, as the machine sees them.
func (m *machine) places() map[string]string {
	m.t.Helper()
	out := map[string]string{}
	files, err := filepath.Glob(m.file("/run/places/*"))
	if err != nil {
		m.t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			m.t.Fatal(err)
		}
		out[filepath.Base(f)] = strings.TrimSpace(string(b))
	}
	return out
}

// space returns /proc's name of the network namespace of a place.
func (m *machine) space(pid string) string {
	m.t.Helper()
	id, err := os.Readlink(m.file("/proc/" + pid + "/ns/net"))
	if err != nil {
		m.t.Fatal(err)
	}
	return id
}

// in runs f in the network namespace of a place.
func (m *machine) in(place string, f func() error) error {
	file := ""
	if ns := m.cards[place]; ns != nil {
		tid, err := ns.TID()
		if err != nil {
			return err
		}
		file = fmt.Sprintf("/proc/self/task/%d/ns/net", tid)
	} else if pid := m.places()[place]; pid != "" {
		file = m.file("/proc/" + pid + "/ns/net")
	}
	ns, err := netns.Join(file)
	if err != nil {
		return err
	}
	defer ns.Close()
	return ns.Do(f)
}

// sample makes a connection as a client would, and returns what the client sees.
func (m *machine) sample(d dial) (got answer, err error) {
	var c net.Conn
	var u net.PacketConn
	dialer := net.Dialer{Timeout: timeout}
	dialer.SetMultipathTCP(false)
	switch {
	case !d.source.IsValid():
	case d.proto == "tcp":
		dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(d.source, 0))
	default:
		dialer.LocalAddr = net.UDPAddrFromAddrPort(netip.AddrPortFrom(d.source, 0))
	}
	var dialErr error
	if err := m.in(d.from, func() error {
		c, dialErr = dialer.Dial(d.proto, d.to.String())
		if d.proto != "udp" {
			return nil
		}
		local := ":0"
		if d.source.IsValid() {
			local = netip.AddrPortFrom(d.source, 0).String()
		}
		var err error
		u, err = net.ListenPacket("udp", local)
		return err
	}); err != nil {
		return got, err
	}
	if u != nil {
		defer func() { _ = u.Close() }()
	}
	if dialErr != nil {
		return failed(dialErr), nil
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(timeout))
	if d.proto == "udp" {
		if _, err := c.Write([]byte("hello")); err != nil {
			return failed(err), nil
		}
	}
	b := make([]byte, 200)
	n, err := c.Read(b)
	if err == nil && n > 0 {
		return answered(b[:n])
	}
	if d.proto == "tcp" {
		if isTimeout(err) {
			return answer{got: "silent"}, nil
		}
		return answer{got: "closed"}, nil
	}
	if !isTimeout(err) {
		return failed(err), nil
	}
	// An answer from another address comes only to a socket without a peer.
	_ = u.SetDeadline(time.Now().Add(timeout))
	if _, err := u.WriteTo([]byte("hello"), net.UDPAddrFromAddrPort(d.to)); err != nil {
		return failed(err), nil
	}
	n, from, err := u.ReadFrom(b)
	if err != nil {
		return answer{got: "timeout"}, nil
	}
	got, err = answered(b[:n])
	if at := netip.MustParseAddrPort(from.String()); at != d.to {
		got.from = netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
	}
	return got, err
}

// answered parses "NAME sees ADDRESS", the answer of a situation's servers.
func answered(b []byte) (got answer, err error) {
	name, seen, ok := strings.Cut(strings.TrimSpace(string(b)), " sees ")
	if !ok {
		return got, fmt.Errorf("a server answers %q", b)
	}
	a, err := netip.ParseAddr(seen)
	return answer{got: "connected", server: name, seen: a}, err
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

func failed(err error) answer {
	switch {
	case errors.Is(err, unix.ECONNREFUSED):
		return answer{got: "refused"}
	case isTimeout(err):
		return answer{got: "timeout"}
	}
	return answer{got: "unreachable"}
}
