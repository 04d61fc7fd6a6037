package docker

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/paths/rootless"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/rootlesstest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

const (
	rootlessEnv = "BRIDGETOLL_TEST_ROOTLESS"      // make test-rootless sets it
	withEnv     = "BRIDGETOLL_TEST_WITH_ROOTLESS" // the daemon's flags, after a word; see daemonEnv
)

// enterRootless runs the tests again as toll would run: without root, in the engine's user
// namespace.
func enterRootless() (code int, entered bool) {
	pid := 0
	switch {
	case os.Getenv(withEnv) != "":
		pid = UserNamespace(false)
	case os.Getenv(podmanEnv) == "own":
		pid = UserNamespace(true)
	}
	if pid == 0 {
		return 0, false
	}
	code, err := rootless.Enter(context.Background(), pid, func(error) os.Signal {
		return syscall.SIGTERM
	})
	if err != nil {
		panic(err)
	}
	return code, true
}

func TestRootlessEngines(t *testing.T) {
	if os.Getenv(rootlessEnv) == "" {
		t.Skip("make test-rootless runs it")
	}
	tester, toll := pathtest.StaticSelf(t), pathtest.Toll(t)
	for _, e := range pathtest.Engines(t) {
		for _, b := range []struct {
			name, flags string
			variables   []string
			root        bool
			tests       string
			only        string // engine; "": all
		}{
			{name: "user", tests: "Rootless"},
			{name: "root", root: true, tests: "Rootless"},
			{name: "no-proxy", flags: noProxy, tests: "Rootless"},
			{name: "slirp4netns", tests: "PortDriver",
				variables: []string{"DOCKERD_ROOTLESS_ROOTLESSKIT_PORT_DRIVER=slirp4netns"}},
			{name: "gvisor", tests: "PortDriver", only: "29", // the others have RootlessKit 1
				variables: []string{"DOCKERD_ROOTLESS_ROOTLESSKIT_NET=gvisor-tap-vsock",
					"DOCKERD_ROOTLESS_ROOTLESSKIT_PORT_DRIVER=gvisor-tap-vsock"}},
		} {
			if b.only != "" && b.only != e.Name {
				continue
			}
			t.Run(e.Name+"/"+b.name, func(t *testing.T) {
				m := rootlesstest.New(t)
				d := m.Docker(t, e, b.variables, strings.Fields(b.flags)...)
				run := m.Command
				if b.root {
					run = m.Root
				}
				cmd := run("env", withEnv+"=with "+b.flags, "DOCKER_HOST="+d.Host,
					pathtest.TollEnv+"="+m.Put(t, toll), "CI="+os.Getenv("CI"),
					"XDG_STATE_HOME="+m.Home+"/state", "TOLL_HISTORY=off", "TOLL_BUSY=yes",
					m.Put(t, tester), "-test.run", "^TestWith"+b.tests, "-test.v",
					"-test.timeout", "20m")
				out, err := cmd.CombinedOutput()
				t.Logf("%s", out)
				if err != nil {
					t.Errorf("%v\n%s", err, d.Log())
				}
			})
		}
	}
}

func withRootless(t *testing.T) (noProxies bool) {
	t.Helper()
	with := os.Getenv(withEnv)
	if with == "" {
		t.Skip("TestRootlessEngines runs it with a rootless engine")
	}
	return strings.Contains(with, noProxy)
}

func TestWithRootlessConformance(t *testing.T) {
	off := withRootless(t)
	b := &Docker{}
	spec := path.Spec{Mode: mode.Bridge, From: mode.FromHost, To: mode.ToContainer}
	if err := b.Check(t.Context(), spec); err != nil { // it makes what stays: see TestBesideConformance
		t.Fatal(err)
	}
	modes := []mode.Name{mode.RootlessPublish, mode.RootlessPublishNAT}
	if !off {
		modes = append(modes, mode.Host, mode.Shared, mode.Bridge, mode.BridgeDefault, mode.Routed)
	}
	conform(t, b, modes, func(missing string) bool {
		say := func(s string) bool { return strings.Contains(missing, s) }
		switch {
		case say("which accepts RootlessKit's"):
			return !off
		case say("without docker-proxy"), say("publishes no port on the machine"):
			return off
		case say("routed networks"), say("publishes no port over IPv6"):
			return b.engine.Major() < 28
		}
		return false
	})
}

func conform(t *testing.T, b *Docker, modes []mode.Name, lacks func(missing string) bool) {
	t.Helper()
	o := pathtest.Options{Short: true,
		Modes: slices.DeleteFunc(mode.OfDocker(), func(m mode.Mode) bool {
			return !slices.Contains(modes, m.Name)
		}),
		Lacks: func(u *machine.UnsupportedError) bool {
			return lacks(u.Missing) || slices.ContainsFunc(
				[]string{"IPv6", "the target outside", "no remote client",
					rootless.ErrHostLoopback.Missing},
				func(s string) bool { return strings.Contains(u.Missing, s) })
		},
		Common: func(h path.Hop) bool {
			return h.Name == "lo" || h.Name == rootless.Tap || strings.HasPrefix(h.Name, "docker0")
		}}
	pathtest.Run(t, b, o)
	usual := o.Common
	o.Common = func(h path.Hop) bool {
		return usual(h) || local.OfProcess(h) && h.Kind != mode.HopProxy // the engine's one process
	}
	for _, m := range o.Modes {
		if !m.Rootless {
			continue
		}
		t.Run("datagrams-"+string(m.Name), func(t *testing.T) {
			var specs []path.Spec
			for _, r := range m.Routes {
				if r.From == mode.FromHost && !r.OnRequest() {
					specs = append(specs,
						path.Spec{Mode: m.Name, From: r.From, To: r.To, UDP: true})
				}
			}
			pathtest.Together(t, b, specs, o)
		})
	}
	o.Common = func(h path.Hop) bool { return h.Expect == path.Relays || h.Name == rootless.Tap }
	for _, m := range o.Modes {
		for _, r := range m.Routes {
			if !m.Rootless || r.From != mode.FromHost || r.OnRequest() {
				continue
			}
			t.Run(strings.Join([]string{"second", string(m.Name), string(r.To)}, "-"), func(t *testing.T) {
				pathtest.SecondPort(t, b, path.Spec{Mode: m.Name, From: r.From, To: r.To}, o)
			})
		}
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

func TestWithRootlessDatagrams(t *testing.T) {
	off := withRootless(t)
	b := &Docker{}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	spec := path.Spec{Mode: mode.RootlessPublish, From: mode.FromHost, To: mode.ToLoopback,
		UDP: true}
	if off {
		spec.Mode = mode.RootlessPublishNAT
	}
	if err := b.Check(t.Context(), spec); off && errors.Is(err, machine.ErrUnsupported) { // before 28
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	p := pathtest.Built(t, b, spec)
	pathtest.ForeignDatagrams(t, p)
	pathtest.StandIn(t, p, b.engine.machine.ns, b.engine.ns, p.Clients[0].Dial)
	cmd, out := toll("compare", string(spec.Mode), "native", "--on", "docker", "--from", "host",
		"--load", "udp-rr", "--rounds", "2", "--window", "20ms", "--quiet")
	if err := cmd.Run(); err != nil || strings.Contains(out.String(), "not witnessed") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestWithRootlessRefuses(t *testing.T) {
	off := withRootless(t)
	b := &Docker{}
	defer b.Close()
	published := string(mode.RootlessPublish)
	switch {
	case off && major(t) < 28:
		published = `"userland-proxy": true in ~/.config`
	case off:
		published = string(mode.RootlessPublishNAT)
	}
	refused(t, b, mode.Publish, published)
	refused(t, b, mode.PublishDefault, published)
	refused(t, b, mode.PublishProxy, published)
	refused(t, b, mode.PublishNAT, published)
	refused(t, b, mode.Pipework, "an engine that is not rootless")
	refused(t, b, mode.Fast, "an engine that is not rootless")
}

// The lever of toll advise must leave the machine's and the engine's own devices alone.
func TestWithRootlessMTU(t *testing.T) {
	off := withRootless(t)
	if off {
		t.Skip("of rootless-publish")
	}
	const mtu = 65520
	b := &Docker{}
	spec := path.Spec{Mode: mode.RootlessPublish, From: mode.FromHost, To: mode.ToLoopback,
		Tune: mode.Tunes("mtu=" + strconv.Itoa(mtu))}
	if err := b.Check(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	p, err := b.Build(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	own := 0
	for _, l := range p.Links {
		switch {
		case l.Name == "lo" && l.MTU == mtu:
			t.Errorf("%+v", l)
		case l.Name != "lo" && l.MTU != mtu:
			t.Errorf("%+v", l)
		case l.Name != "lo":
			own++
		}
	}
	if own != 3 { // the bridge, and both ends of the server's pair
		t.Errorf("%d devices: %+v", own, p.Links)
	}
	if w := pathtest.Seen(t, p, func() pathtest.Traffic { return pathtest.Exchange(t, p) }); !w.OK {
		t.Error(w.Evidence)
	}
	if err := errors.Join(p.Close(), b.Close()); err != nil {
		t.Error(err)
	}
}

func refused(t *testing.T, b *Docker, m mode.Name, remedy string) {
	t.Helper()
	known, _ := mode.Find(m)
	err := b.Check(t.Context(), path.Spec{
		Mode: m, From: known.Routes[0].From, To: known.Routes[0].To})
	var u *machine.UnsupportedError
	if !errors.As(err, &u) || !strings.HasPrefix(u.Remedy, remedy) {
		t.Errorf("%s: %v, %+v", m, err, u)
	}
}

func major(t *testing.T) int {
	t.Helper()
	n, _, _ := strings.Cut(sh(t, "docker version -f '{{.Server.Version}}'"), ".")
	major, err := strconv.Atoi(strings.TrimSpace(n))
	if err != nil {
		t.Fatal(err)
	}
	return major
}

func TestWithPortDriver(t *testing.T) {
	withRootless(t)
	b := &Docker{}
	old := major(t) < 28
	if old {
		refused(t, b, mode.PublishProxy, driverVariable+"=builtin")
	} else {
		refused(t, b, mode.PublishProxy, string(mode.RootlessPublishTap))
	}
	conform(t, b, []mode.Name{mode.RootlessPublishTap, mode.Bridge}, func(missing string) bool {
		return old && strings.Contains(missing, "match only the machine's address")
	})
}

func ofToll(t *testing.T) string {
	t.Helper()
	return sh(t, "docker ps -aq; docker network ls -q -f label=io.bridgetoll.run; docker images -q")
}

// Whatever ends toll, and from whichever user namespace, nothing of it stays.
func TestWithRootlessLeavesNothing(t *testing.T) {
	withRootless(t)
	args := []string{"compare", "bridge", "host", "--on", "docker", "--from", "container", "--load",
		"rr", "--rounds", "100", "--quiet"}
	cmd, out := toll(args...)
	cmd.Env = append(os.Environ(), "BRIDGETOLL_ENGINE_USERNS=") // as a user's
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	const patience = time.Minute
	testwait.Until(t, patience, "toll has made containers", func() bool {
		n, err := exec.Command("docker", "ps", "-q").Output()
		return err == nil && len(strings.Fields(string(n))) >= 4
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	testwait.Until(t, patience, "its containers have ended", func() bool {
		n, err := exec.Command("docker", "ps", "-q").Output()
		return err == nil && len(n) == 0
	})
	clean, said := toll("clean")
	if err := clean.Run(); err != nil {
		t.Errorf("toll clean: %v\n%s%s", err, said, out)
	}
	if left := ofToll(t); left != "" {
		t.Errorf("left: %s\n%s", left, said)
	}
}
