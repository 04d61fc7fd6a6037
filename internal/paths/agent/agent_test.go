package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/measure/worker"
	_ "github.com/bridgetoll/bridgetoll/internal/measure/worker/start" // a worker ends there
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// Arguments that turn the test binary into another program.
const (
	echoArg  = "echo"
	sleepArg = "sleep"
	relayArg = "relay"
	hubArg   = "hub"
	sitArg   = "sit"
	stdioArg = "stdio"
)

func TestMain(m *testing.M) {
	args := os.Args[1:]
	if len(args) == 0 {
		os.Exit(m.Run())
	}
	switch args[0] {
	case Arg:
		exit(agentMain(args[1:]))
	case hubArg:
		exit(hubMain())
	case sitArg:
		exit(Sit(context.Background(), time.Second))
	case stdioArg:
		exit(Stdio(context.Background(), Config{ID: "b", Version: testVersion, Engine: &leaving{}}))
	case echoArg:
		_, err := io.Copy(os.Stdout, os.Stdin)
		if len(args) > 1 && err == nil {
			err = errors.New("echo ends as it was told: " + args[1])
		}
		exit(err)
	case relayArg:
		exit(relay(args[1], args[2]))
	case sleepArg:
		fmt.Println("awake")
		for { // select {} alone may be a deadlock
			time.Sleep(time.Hour)
		}
	}
	os.Exit(m.Run())
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func agentMain(args []string) error {
	bundle, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	patience, err := time.ParseDuration(args[5])
	if err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	return Main(ctx, Config{Bundle: bundle,
		Dial:    []netip.AddrPort{netip.MustParseAddrPort(args[1])},
		ID:      args[2],
		Name:    args[3],
		Version: args[4],
		Starts:  []string{worker.Arg, echoArg, sleepArg}, Patience: patience})
}

func relay(from, to string) error {
	l, err := net.Listen("tcp", from)
	if err != nil {
		return err
	}
	fmt.Println("awake")
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		d, err := net.Dial("tcp", to)
		if err != nil {
			return err
		}
		go func() { _, _ = io.Copy(d, c) }()
		go func() { _, _ = io.Copy(c, d) }()
	}
}

const testVersion = "1.2.3"

const testTime = 60 * time.Second

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	t.Cleanup(cancel)
	return ctx
}

type site struct {
	t      *testing.T
	key    *Key
	hub    *Hub
	ns     *netns.NS
	bundle string
	nodes  int
}

const hubAddr = "10.9.0.1"

func newSite(t *testing.T, silence time.Duration) *site {
	t.Helper()
	s := &site{t: t}
	var err error
	if s.ns, err = netns.New(); errors.Is(err, unix.EPERM) {
		pathtest.SkipOrFail(t, "network namespaces need root here")
	}
	check(t, err)
	t.Cleanup(func() { s.ns.Close() })
	check(t, s.ns.Do(func() error {
		return errors.Join(link.Up("lo"), link.AddBridge("br0"),
			link.AddAddr("br0", netip.MustParsePrefix(hubAddr+"/24")))
	}))
	if s.key, err = NewKey(); err != nil {
		t.Fatal(err)
	}
	s.bundle = s.keep(s.key)
	check(t, s.ns.Do(func() (err error) {
		s.hub, err = listen(netip.MustParseAddrPort(hubAddr+":0"), s.key, testVersion, silence)
		return err
	}))
	t.Cleanup(func() { check(t, s.hub.Close()) })
	return s
}

func (s *site) keep(k *Key) string {
	f := filepath.Join(s.t.TempDir(), "bundle")
	check(s.t, os.WriteFile(f, k.Bundle(), 0o600))
	return f
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

type node struct {
	*Agent
	ns   *netns.NS
	dev  string
	addr netip.Addr
	cmd  *exec.Cmd
	done chan struct{}
	err  error
	said *safeBuffer
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

type setup struct {
	id, version string
	bundle      string
	before      []string
	patience    string
}

func (s *site) machine() *node {
	s.t.Helper()
	s.nodes++
	n := &node{dev: "n" + strconv.Itoa(s.nodes),
		addr: netip.MustParseAddr("10.9.0." + strconv.Itoa(s.nodes+1))}
	var err error
	n.ns, err = netns.New()
	check(s.t, err)
	s.t.Cleanup(func() { n.ns.Close() })
	tid, err := n.ns.TID()
	check(s.t, err)
	check(s.t, s.ns.Do(func() error {
		return errors.Join(link.AddVeth(n.dev, "eth0", tid), link.SetMaster(n.dev, "br0"),
			link.Up(n.dev))
	}))
	check(s.t, n.ns.Do(func() error {
		return errors.Join(link.Up("lo"), link.AddAddr("eth0", netip.PrefixFrom(n.addr, 24)),
			link.Up("eth0"))
	}))
	return n
}

func (s *site) start(n *node, u setup) {
	s.t.Helper()
	if u.version == "" {
		u.version = testVersion
	}
	if u.bundle == "" {
		u.bundle = s.bundle
	}
	if u.patience == "" {
		u.patience = "30s"
	}
	self, err := os.Executable()
	check(s.t, err)
	args := append(append([]string{}, u.before...), self, Arg, u.bundle, s.hub.Addr().String(),
		u.id, "node "+u.id, u.version, u.patience)
	n.cmd = exec.Command(args[0], args[1:]...)
	n.said = &safeBuffer{}
	n.cmd.Stderr = n.said
	n.cmd.WaitDelay = time.Second // for children left by a program before it
	check(s.t, n.ns.Start(n.cmd))
	n.done = make(chan struct{})
	go func() { n.err = n.cmd.Wait(); close(n.done) }()
	s.t.Cleanup(func() { _ = n.cmd.Process.Kill(); <-n.done })
}

func (s *site) node(u setup) *node {
	s.t.Helper()
	n := s.machine()
	s.start(n, u)
	a, err := s.hub.Wait(bounded(s.t), u.id)
	if err != nil {
		s.t.Fatalf("%v; the agent: %s", err, n.said)
	}
	n.Agent = a
	return n
}

func (n *node) ends(t *testing.T) error {
	t.Helper()
	select {
	case <-n.done:
	case <-time.After(testTime):
		t.Fatal("the agent goes on")
	}
	return n.err
}

func echo(args ...string) path.Command {
	return path.Command{Args: append([]string{echoArg}, args...)}
}

func sleeper(t *testing.T, p path.Place) *path.Process {
	t.Helper()
	x, err := p.Start(path.Command{Args: []string{sleepArg}})
	check(t, err)
	if _, err := io.ReadFull(x.Out, make([]byte, len("awake\n"))); err != nil {
		t.Fatal(err)
	}
	return x
}

func gone(t *testing.T, pid int) {
	t.Helper()
	if !testwait.Met(testTime, func() bool {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err != nil || strings.Contains(string(b), ") Z ")
	}) {
		t.Errorf("process %d is still there", pid)
	}
}

func TestProcessesAreStartedElsewhere(t *testing.T) {
	s := newSite(t, silence)
	b := s.node(setup{id: "b"})
	if h := b.Hello(); h.Name != "node b" || h.Version != testVersion || h.Kernel == "" ||
		h.Boot == "" || h.CPUs < 1 || h.Host == "" {
		t.Errorf("hello %+v", h)
	} else if e, _ := (machine.Machine{}).Read(); h.OS != e.OS || h.CPUModel != e.CPUModel {
		t.Errorf("hello %+v from %+v", h, e)
	}
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // 1 MiB
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			p, err := b.Start(echo())
			if err != nil {
				t.Error(err)
				return
			}
			go func() {
				_, _ = p.In.Write(large)
				_ = p.In.Close()
			}()
			got, err := io.ReadAll(p.Out)
			if err != nil || !bytes.Equal(got, large) {
				t.Errorf("%d: %d bytes came back, %v", i, len(got), err)
			}
			if err := p.Wait(); err != nil {
				t.Errorf("%d: it ended so: %v", i, err)
			}
			_ = p.Out.Close()
		})
	}
	wg.Wait()
	if _, err := b.Start(path.Command{Args: []string{"compare"}}); err == nil ||
		err.Error() != `node b: an agent may not start "compare"` {
		t.Errorf("what no agent starts was started: %v", err)
	}
	if b.As("container x").Name() != "container x" {
		t.Error("it goes by its own name")
	}
}

func TestHowProcessesEnd(t *testing.T) {
	s := newSite(t, silence)
	b := s.node(setup{id: "b"})
	p, err := b.Start(echo("badly"))
	check(t, err)
	check(t, p.In.Close())
	if err := p.Wait(); err == nil || err.Error() !=
		"exit status 1: echo ends as it was told: badly" {
		t.Errorf("it ended so: %v", err)
	}
	check(t, p.Kill())
	p = sleeper(t, b)
	check(t, p.In.Close())
	check(t, p.Kill())
	if err := p.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("it ended so: %v", err)
	}
	gone(t, p.PID)
	if _, err := p.Out.Read(make([]byte, 1)); err == nil {
		t.Error("a process that is dead speaks")
	}
	if err := b.Err(); err != nil {
		t.Error(err)
	}
}

func TestAgentIsKilled(t *testing.T) {
	s := newSite(t, silence)
	b := s.node(setup{id: "b"})
	p := sleeper(t, b)
	check(t, b.cmd.Process.Kill())
	gone(t, p.PID)
	<-b.Lost()
	if err := p.Wait(); !left(err, b) {
		t.Errorf("it ended so: %v", err)
	}
	for what, err := range map[string]error{
		"kill": p.Kill(),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	s.refuses(b)
	again := s.node(setup{id: "b"})
	if again.Agent == b.Agent {
		t.Error("the agent that was lost is back")
	}
	sleeper(t, again)
}

func (s *site) refuses(n *node) {
	s.t.Helper()
	began := time.Now()
	ctx := context.Background()
	_, start := n.Start(echo())
	_, clock := n.Clock(ctx)
	_, meter := n.Meter(ctx, 0, 1)
	_, counters := n.Counters(ctx, []Counter{{Device: &Device{Name: "lo"}}})
	_, read := n.Read(Counter{Device: &Device{Name: "lo"}})()
	_, list := n.Interfaces(ctx, "")
	for what, err := range map[string]error{"start": start, "clock": clock, "meter": meter,
		"counters": counters, "read": read, "list": list, "err": n.Err()} {
		if !left(err, n) {
			s.t.Errorf("%s of a lost agent: %v", what, err)
		}
	}
	if took := time.Since(began); took > silence/2 {
		s.t.Errorf("that took %s", took)
	}
}

// left reports whether an error says that the agent was lost.
func left(err error, n *node) bool {
	l, is := errors.AsType[*leftError](err)
	return is && l.name == "node "+n.Hello().ID
}

func TestHubCloses(t *testing.T) {
	s := newSite(t, silence)
	b, c := s.node(setup{id: "b"}), s.node(setup{id: "c"})
	p, q := sleeper(t, b), sleeper(t, c)
	// A pending request fails, too.
	use, err := b.Meter(bounded(t), now(), now()+int64(time.Hour))
	check(t, err)
	asked := make(chan error, 1)
	go func() {
		_, err := use(context.Background())
		asked <- err
	}()
	check(t, s.hub.Close())
	if err := <-asked; !left(err, b) || !errors.Is(err, errClosed) {
		t.Errorf("the request says %v", err)
	}
	for _, n := range []*node{b, c} {
		if err := n.ends(t); err != nil || n.said.String() != "" {
			t.Errorf("the agent says %v, %q", err, n.said)
		}
	}
	gone(t, p.PID)
	gone(t, q.PID)
	s.refuses(b)
	if _, err := s.hub.Wait(bounded(t), "d"); err == nil {
		t.Error("an agent came to a hub that is closed")
	}
	check(t, s.hub.Close())
}

func TestDismissed(t *testing.T) {
	s := newSite(t, silence)
	b, c := s.node(setup{id: "b"}), s.node(setup{id: "c"})
	p := sleeper(t, b)
	resume, err := s.hub.Hush(bounded(t), silence/bearable)
	check(t, err)
	b.Dismiss()
	before := s.hub.Moved()
	if err := b.ends(t); err != nil || b.said.String() != "" {
		t.Errorf("the agent says %v, %q", err, b.said)
	}
	if moved := s.hub.Moved() - before; moved != 0 {
		t.Errorf("its end was %d bytes on the channel", moved)
	}
	resume()
	gone(t, p.PID)
	s.refuses(b)
	sleeper(t, c)
}

func hubMain() error {
	key, err := NewKey()
	if err != nil {
		return err
	}
	h, err := Listen(netip.MustParseAddrPort("127.0.0.1:0"), key, testVersion)
	if err != nil {
		return err
	}
	if err := os.WriteFile(os.Args[2], key.Bundle(), 0o600); err != nil {
		return err
	}
	fmt.Println(h.Addr())
	a, err := h.Wait(context.Background(), "b")
	if err != nil {
		return err
	}
	p, err := a.Start(path.Command{Args: []string{sleepArg}})
	if err != nil {
		return err
	}
	fmt.Println(p.PID)
	select {}
}

func TestHubIsKilled(t *testing.T) {
	self, err := os.Executable()
	check(t, err)
	bundle := filepath.Join(t.TempDir(), "bundle")
	hub := exec.Command(self, hubArg, bundle)
	out, err := hub.StdoutPipe()
	check(t, err)
	check(t, hub.Start())
	defer func() { _ = hub.Process.Kill(); _ = hub.Wait() }()
	var addr string
	_, err = fmt.Fscanln(out, &addr)
	check(t, err)
	agent := exec.Command(self, Arg, bundle, addr, "b", "node b", testVersion, "30s")
	check(t, agent.Start())
	defer func() { _ = agent.Process.Kill() }()
	var pid int
	_, err = fmt.Fscanln(out, &pid)
	check(t, err)
	check(t, hub.Process.Kill())
	check(t, agent.Wait())
	gone(t, pid)
}

func TestAgentIsStopped(t *testing.T) {
	t.Parallel()
	s := newSite(t, silence)
	b := s.node(setup{id: "b"})
	p := sleeper(t, b)
	check(t, b.cmd.Process.Signal(syscall.SIGTERM))
	if err := b.ends(t); err == nil {
		t.Error("it calls that well")
	}
	gone(t, p.PID)
	<-b.Lost()
}

// tests can wait for this silence, and a busy machine meets it
const quick = 6 * time.Second

func TestMachineIsGone(t *testing.T) {
	t.Parallel()
	s := newSite(t, quick)
	b := s.node(setup{id: "b"})
	p := sleeper(t, b)
	check(t, s.ns.Do(func() error {
		return exec.Command("ip", "link", "set", b.dev, "down").Run()
	}))
	began := time.Now()
	<-b.Lost()
	if err := b.Err(); err.Error() != "node b left: it gave no answer for 6s" {
		t.Error(err)
	}
	if took := time.Since(began); took > 5*quick {
		t.Errorf("it was lost after %s", took)
	}
	if err := p.Wait(); err == nil {
		t.Error("the process goes on")
	}
	if err := b.ends(t); err == nil || b.said.String() != "the hub was silent for 6s\n" {
		t.Errorf("the agent ended so: %v, %q", err, b.said)
	}
	gone(t, p.PID)
}

func TestAgentIsFrozen(t *testing.T) {
	t.Parallel()
	s := newSite(t, quick)
	b := s.node(setup{id: "b"})
	p := sleeper(t, b)
	check(t, b.cmd.Process.Signal(syscall.SIGSTOP))
	_, err := b.Start(echo())
	if !left(err, b) {
		t.Errorf("a frozen agent started something: %v", err)
	}
	s.refuses(b)
	check(t, b.cmd.Process.Signal(syscall.SIGCONT))
	_ = b.ends(t)
	gone(t, p.PID)
}

func TestOnlyTheRunsKeyOpens(t *testing.T) {
	t.Parallel()
	s := newSite(t, silence)
	other, err := NewKey()
	check(t, err)
	n := s.machine()
	s.start(n, setup{id: "other", bundle: s.keep(other), patience: "5s"})
	turnedAway := func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		_, err := s.hub.Wait(ctx, "other")
		return err != nil && strings.Contains(err.Error(), "turned away")
	}
	testwait.Until(t, testTime, "the hub has turned it away", turnedAway)
	if err := n.ends(t); err == nil || !strings.Contains(n.said.String(), "reach the hub") {
		t.Errorf("%v, %q", err, n.said)
	}
	if !turnedAway() {
		t.Error("a machine with another run's key is let in")
	}
	s.node(setup{id: "b"})
}

func TestVersionsMustBeTheSame(t *testing.T) {
	s := newSite(t, silence)
	n := s.machine()
	s.start(n, setup{id: "b", version: "0.9"})
	_, err := s.hub.Wait(bounded(t), "b")
	var u *machine.UnsupportedError
	if !errors.As(err, &u) || !strings.HasPrefix(u.Missing, "the agent b on ") ||
		!strings.HasSuffix(u.Missing, " is toll 0.9, this is toll 1.2.3") || u.Remedy == "" {
		t.Errorf("it says %v", err)
	}
	if err := n.ends(t); err == nil || n.said.String() !=
		"refused by the hub: the agent b on "+hostname(t)+" is toll 0.9, this is toll 1.2.3\n" {
		t.Errorf("the agent says %v, %q", err, n.said)
	}
}

func hostname(t *testing.T) string {
	t.Helper()
	name, err := os.Hostname()
	check(t, err)
	return name
}

func TestOneAgentOfAnIdentity(t *testing.T) {
	s := newSite(t, silence)
	b := s.node(setup{id: "b"})
	n := s.machine()
	s.start(n, setup{id: "b"})
	if err := n.ends(t); err == nil || n.said.String() !=
		"refused by the hub: another agent b is connected already, from "+hostname(t)+"\n" {
		t.Errorf("the second says %v, %q", err, n.said)
	}
	if p := sleeper(t, b); p.PID == 0 {
		t.Error("the first was disturbed")
	}
}

func TestStrangersDisturbNobody(t *testing.T) {
	t.Parallel()
	s := newSite(t, silence)
	b := s.node(setup{id: "b"})
	p := sleeper(t, b)
	before := s.hub.Moved()
	var conns []net.Conn
	for i := range 3 * strangers {
		check(t, s.ns.Do(func() error {
			c, err := net.Dial("tcp", s.hub.Addr().String())
			if err == nil {
				conns = append(conns, c)
				if i%3 == 0 {
					_, _ = c.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
				}
			}
			return err
		}))
	}
	moved := s.hub.Moved() - before
	c := s.node(setup{id: "c"})
	sleeper(t, c)
	check(t, b.Err())
	check(t, p.Kill())
	for _, c := range conns {
		_ = c.SetReadDeadline(time.Now().Add(testTime))
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("a stranger is still there")
		}
		c.Close()
	}
	if max := uint64(4096); moved > max { // a ping at most
		t.Errorf("strangers count as %d bytes of the channel", moved)
	}
}

// Agents must get in at once, also from the same address.
func TestSilentDialsDoNotStarveAgents(t *testing.T) {
	for _, attack := range []struct {
		name, from string
		says       []byte
	}{
		{"silent", "127.0.0.9:0", nil},
		{"beginning", "127.0.0.9:0", []byte("\x16\x03\x01\x02\x00\x01")},
		{"silent-beside", "127.0.0.1:0", nil},
	} {
		t.Run(attack.name, func(t *testing.T) {
			s := newSite(t, silence)
			three := func(kind string) time.Duration {
				began := time.Now()
				for i := range 3 {
					b := s.node(setup{id: fmt.Sprint(kind, i)})
					sleeper(t, b)
				}
				return time.Since(began)
			}
			calm := three("a")
			from, err := net.ResolveTCPAddr("tcp", attack.from)
			check(t, err)
			over := make(chan struct{})
			var dialled atomic.Int64
			var all sync.WaitGroup
			all.Go(func() {
				var conns []net.Conn
				defer func() {
					for _, c := range conns {
						c.Close()
					}
				}()
				for {
					select {
					case <-over:
						return
					case <-time.After(4 * time.Millisecond):
					}
					_ = s.ns.Do(func() error {
						d := net.Dialer{LocalAddr: from}
						c, err := d.Dial("tcp", s.hub.Addr().String())
						if err == nil {
							conns = append(conns, c)
							_, _ = c.Write(attack.says)
							dialled.Add(1)
						}
						return err
					})
				}
			})
			defer all.Wait()
			defer close(over)
			testwait.Until(t, testTime, "400 others dialled", func() bool {
				return dialled.Load() >= 400
			})
			if took, most := three("b"), 10*time.Second+5*calm; took > most {
				t.Errorf("three agents took %s, while %d others had dialled, and before that %s",
					took, dialled.Load(), calm)
			}
		})
	}
}

func TestCrowdedOut(t *testing.T) {
	d := newDoor()
	addr := 0
	come := func(from string, spoke bool) (*guest, *closing) {
		addr++
		c := &closing{at: net.TCPAddrFromAddrPort(
			netip.AddrPortFrom(netip.MustParseAddr(from), uint16(addr)))}
		g := d.enter(c)
		g.spoke.Store(spoke)
		return g, c
	}
	agent, agentConn := come("10.0.0.2", true)
	_, spoke := come("10.0.0.9", true)
	_, first := come("10.0.0.9", false)
	for range 2 * strangers {
		come("10.0.0.9", false)
	}
	if agentConn.closed || spoke.closed || !first.closed || len(d.inside) != neighbours+1 {
		t.Errorf(
			"after a crowd from one address: the agent is out: %t, who spoke: %t, the first: "+
				"%t; inside: %d",
			agentConn.closed, spoke.closed, first.closed, len(d.inside))
	}
	for i := range strangers { // each from its own address in one network
		come(fmt.Sprintf("2001:db8::%x", i+1), false)
	}
	for i := range 2 * strangers {
		come(fmt.Sprintf("10.%d.%d.1", 1+i/200, i%200), false)
	}
	if agentConn.closed || len(d.inside) != strangers {
		t.Errorf("after a crowd from many addresses: the agent is out: %t; inside: %d",
			agentConn.closed, len(d.inside))
	}
	for g := range d.inside {
		d.leave(g)
		d.leave(g)
	}
	if d.leave(agent); len(d.from) > 0 {
		t.Errorf("left: %v", d.from)
	}
}

type closing struct {
	net.Conn
	at     net.Addr
	closed bool
}

func (c *closing) RemoteAddr() net.Addr { return c.at }
func (c *closing) Close() error         { c.closed = true; return nil }

var loopback = netip.MustParseAddrPort("127.0.0.1:0")
