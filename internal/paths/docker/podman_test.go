package docker

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/rootless"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/rootlesstest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// podmanEnv is "root", "user" or "own" in the tests that run on a machine with Podman: by root with
// root's service, by root with a user's, by that user.
const podmanEnv = "BRIDGETOLL_TEST_PODMAN"

// podmanVersionEnv is "5" or "6".
const podmanVersionEnv = "BRIDGETOLL_TEST_PODMAN_VERSION"

func TestPodman(t *testing.T) {
	switch {
	case os.Getenv(podmanEnv) != "" || os.Getenv(daemonEnv) != "":
		t.Skip("it is what runs this")
	case !pathtest.AsksFor("podman"):
		t.Skip("no Podman was asked for: make test-rootless")
	}
	tester, toll := pathtest.StaticSelf(t), pathtest.Toll(t)
	for _, of := range []string{"5/root", "5/user", "5/own", "6/root", "6/user", "6/own"} {
		t.Run(of, func(t *testing.T) {
			t.Parallel()
			suite := rootlesstest.Podman5
			version, who, _ := strings.Cut(of, "/")
			if version == "6" {
				suite = rootlesstest.Podman6
			}
			m := rootlesstest.New(t)
			p := m.Podman(t, suite, who == "root")
			p.Ran(t, "modes")
			run, tester, toll := m.Root, tester, toll
			if who == "own" {
				run, tester, toll = m.Command, m.Put(t, tester), m.Put(t, toll)
			}
			args := []string{"CONTAINER_HOST=" + p.Host, "XDG_STATE_HOME=" + m.Home + "/state",
				podmanEnv + "=" + who, podmanVersionEnv + "=" + version, pathtest.TollEnv + "=" +
					toll, "CI=" + os.Getenv("CI"),
				"TOLL_HISTORY=off", "TOLL_BUSY=yes",
				tester, "-test.run", "^TestOnPodman", "-test.timeout", "20m"}
			if testing.Verbose() {
				args = append(args, "-test.v")
			}
			out, err := run("env", args...).CombinedOutput()
			t.Logf("%s", out)
			if err != nil {
				t.Error(err)
				t.Logf("Podman's service:\n%s", p.Log())
			}
		})
	}
}

func podman(t *testing.T) {
	t.Helper()
	if os.Getenv(podmanEnv) == "" {
		t.Skip("TestPodman runs it on a machine with Podman")
	}
}

// podmanLacksHere begins refusals by what the machine has, and what Podman cannot have.
var podmanLacksHere = []string{
	"Open vSwitch does not run", "(CONFIG_IPVLAN)", "does not send frames back", "no remote client",
	"does not answer on ::1", "over IPv6 only for networks with IPv6",
	"default network has no IPv6", "this Podman is rootless", "this Podman runs as root",
	"only over IPv4", rootless.ErrHostLoopback.Missing,
}

func TestOnPodmanConformance(t *testing.T) {
	podman(t)
	b := &Docker{Podman: true, Parent: "eth0"}
	// The first paths make what stays, as in TestBesideConformance.
	first(t, b, path.Spec{Mode: mode.Host, From: mode.FromHost, To: mode.ToLoopback})
	first(t, b, path.Spec{Mode: mode.Bridge, From: mode.FromHost, To: mode.ToContainer})
	o := pathtest.Options{
		Leave: func(m mode.Name, r mode.Route) bool { // publish-nat has the same rules
			return m == mode.Publish && r.To.Six()
		},
		Lacks: func(u *machine.UnsupportedError) bool {
			if u == errNoSlirp {
				return os.Getenv(podmanVersionEnv) == "6"
			}
			for _, m := range podmanRecipes {
				if m.lacks == u || m.no6 == u {
					return true
				}
			}
			return slices.ContainsFunc(podmanLacksHere, func(what string) bool {
				return strings.Contains(u.Missing, what)
			})
		},
		Common: func(h path.Hop) bool {
			return h.Where == thisMachine && (h.Name == "lo" || h.Kind == mode.HopWire ||
				strings.HasPrefix(h.Name, "podman0"))
		},
	}
	for _, m := range mode.OfDocker() {
		o.Only, o.Short = m.Name, m.Name != mode.Bridge
		pathtest.Run(t, b, o)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

func TestOnPodmanDatagrams(t *testing.T) {
	podman(t)
	if os.Getenv(podmanEnv) == "root" {
		t.Skip("rules rewrite what they are sent to")
	}
	b := &Docker{Podman: true}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, m := range []mode.Name{mode.Pasta, mode.Slirp4netns, mode.RootlessPort} {
		spec := path.Spec{Mode: m, From: mode.FromHost, To: mode.ToAddress, UDP: true}
		if m == mode.Pasta {
			spec.To = mode.ToLoopback // where it has sockets in the container
		}
		t.Run(string(m), func(t *testing.T) {
			if m == mode.Slirp4netns && os.Getenv(podmanVersionEnv) == "6" {
				if err := b.Check(t.Context(), spec); !errors.Is(err, errNoSlirp) {
					t.Error(err)
				}
				return
			}
			p := pathtest.Built(t, b, spec)
			pathtest.ForeignDatagrams(t, p)
			if to, ok := p.Servers[0].Place.(contained); ok && m != mode.Slirp4netns {
				pathtest.StandIn(t, p, b.engine.machine.ns, to.ns,
					netip.AddrPortFrom(loopback, serverPort))
			}
			pathtest.RelayEnds(t, p)
		})
	}
}

func TestPodmanNamesEveryMode(t *testing.T) {
	for _, m := range mode.OfDocker() {
		if r := podmanRecipes[m.Name]; r.build == nil && r.lacks == nil {
			t.Errorf("%s: a recipe %t, a reason %v", m.Name, r.build != nil, r.lacks)
		}
	}
}

// Each command of modes builds them on Podman, and each of addresses finds its containers.
func TestOnPodmanCommands(t *testing.T) {
	podman(t)
	modes, instead := []string{"bridge", "publish"}, "host"
	if os.Getenv(podmanEnv) != "root" {
		modes, instead = []string{"pasta", "rootlessport"}, "rootlessport"
	}
	const from = "container:"
	id, network, at := podmanContainer(t)
	places := from + id + ",network:" + network
	for name, c := range map[string]struct{ command, says []string }{
		"compare": {append([]string{"compare", "--load", "rr,udp-rr", "--window", "20ms",
			"--details"},
			modes...),
			[]string{modes[0], modes[1], "Podman " + os.Getenv(podmanVersionEnv)}},
		"ladder": {[]string{"ladder", modes[1], "--load", "rr", "--window", "20ms"}, modes[1:]},
		"advise": {[]string{"advise", modes[0], "--load", "rr", "--window", "20ms", "--lever",
			instead}, []string{instead}},
		"run": {append([]string{"run", "--recipe", "redis"}, modes...), modes},
		"run-from": {[]string{"run", "there=" + at, "--from", places, "--client",
			"bash -c 'exec 3<>/dev/tcp/{host}/{port}'"},
			[]string{"@" + from + id, "@network:" + network}},
		"sql": {[]string{"sql", "there=mysql://app@" + at + "/shop", "--from", places,
			"--timeout", "1s"}, []string{"connected, but no answer within"}},
		"stream": {[]string{"stream", "there=http://" + at, "--from", places, "--timeout", "1s"},
			[]string{"no response within"}},
	} {
		t.Run(name, func(t *testing.T) {
			args := append(c.command, "--rounds", "2", "--quiet")
			if name == "compare" || name == "ladder" || name == "advise" || name == "run" {
				args = append(args, "--on", "podman")
			}
			cmd, out := toll(args...)
			err := cmd.Run()
			for _, want := range c.says {
				if !strings.Contains(out.String(), want) {
					t.Errorf("it does not say %q", want)
				}
			}
			for _, fault := range []string{"not witnessed", "Docker daemon", "docker run"} {
				if strings.Contains(out.String(), fault) {
					t.Errorf("it says %q", fault)
				}
			}
			if t.Failed() {
				t.Logf("%q: %v\n%s", args, err, out)
			}
		})
	}
}

// podmanContainer returns the id of a container, its network, and an address where it accepts
// connections and says nothing.
func podmanContainer(t *testing.T) (id, network, address string) {
	t.Helper()
	b := &Docker{Podman: true, StateDir: t.TempDir()}
	e, err := b.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := &path.Path{Facts: map[string]string{}, Sysctls: map[string]string{}}
	t.Cleanup(func() {
		if err := errors.Join(p.Close(), b.Close()); err != nil {
			t.Error(err)
		}
	})
	if err := e.makeImage(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, err := e.newSite(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.ownNetwork(); err != nil {
		t.Fatal(err)
	}
	c, err := s.addBox(wanted{what: "server", role: "server", network: s.network.name})
	if err != nil {
		t.Fatal(err)
	}
	var l net.Listener
	err = c.ns.Do(func() (err error) { l, err = net.Listen("tcp4", ":7000"); return err })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go testnet.Accept(l, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	return c.id[:12], s.network.name, netip.AddrPortFrom(c.addr, 7000).String()
}

// A toll that is killed leaves containers that end by themselves, and what toll clean removes.
func TestOnPodmanLeavesNothing(t *testing.T) {
	podman(t)
	b := &Docker{Podman: true, StateDir: t.TempDir()}
	e, err := b.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	containers := func() int {
		all, err := e.API.ContainerList(t.Context(), client.ContainerListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return len(all.Items)
	}
	cmd, out := toll("compare", "bridge", "shared", "--on", "podman", "--from", "container",
		"--load", "rr", "--rounds", "100", "--quiet")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	const patience = time.Minute
	testwait.Until(t, patience, "toll has made containers", func() bool { return containers() >= 4 })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	testwait.Until(t, patience, "its containers have ended", func() bool { return containers() == 0 })
	clean, said := toll("clean")
	if err := clean.Run(); err != nil {
		t.Errorf("toll clean: %v\n%s%s", err, said, out)
	}
	networks, err := e.API.NetworkList(t.Context(), client.NetworkListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range networks.Items {
		if strings.HasPrefix(n.Name, "toll-") {
			t.Errorf("left: network %s\n%s", n.Name, said)
		}
	}
	images, err := e.API.ImageList(t.Context(), client.ImageListOptions{Filters: dockerapi.Labelled()})
	if err != nil || len(images.Items) > 0 {
		t.Errorf("left: images %+v, %v\n%s", images.Items, err, said)
	}
}
