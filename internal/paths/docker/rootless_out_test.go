package docker

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/paths/rootless"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/rootlesstest"
)

// wayOutEnv has the modes to test on a machine whose other end of the wire is descriptor 3.
const wayOutEnv = "BRIDGETOLL_TEST_WAY_OUT"

func TestRootlessWaysOut(t *testing.T) {
	if os.Getenv(rootlessEnv) == "" {
		t.Skip("make test-rootless runs it")
	}
	tester := pathtest.StaticSelf(t)
	for _, e := range pathtest.Engines(t) {
		for _, driver := range []string{rootless.Slirp4netns, rootless.Pasta, rootless.Gvisor} {
			t.Run(e.Name+"/"+driver, func(t *testing.T) {
				kit := filepath.Join(e.Root(), "/usr/bin", rootless.RootlessKit)
				if _, err := os.Stat(kit); err != nil {
					kit = rootless.RootlessKit
				}
				kit, err := exec.LookPath(kit)
				if err == nil && driver != rootless.Slirp4netns {
					err = rootless.CheckDriver(kit, driver)
				}
				if err != nil { // Debian 12 has a RootlessKit with the first one
					t.Skip(err)
				}
				m := rootlesstest.New(t)
				m.Put(t, kit)
				d := m.Docker(t, e, []string{"DOCKERD_ROOTLESS_ROOTLESSKIT_NET=" + driver})
				wayOut(t, m, tester, d.Log, "DOCKER_HOST="+d.Host,
					"rootless-publish,rootless-publish-nat,host")
			})
		}
	}
	if !pathtest.AsksFor("podman") {
		return
	}
	t.Run("podman", func(t *testing.T) {
		m := rootlesstest.New(t)
		p := m.Podman(t, rootlesstest.Podman5, false)
		wayOut(t, m, tester, p.Log, "CONTAINER_HOST="+p.Host, "pasta,slirp4netns,rootlessport,host")
	})
}

func wayOut(t *testing.T, m *rootlesstest.Machine, tester string, log func() string, host,
	modes string) {
	t.Helper()
	var beyond *os.File
	err := m.Beyond.Do(func() (err error) {
		beyond, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer beyond.Close()
	cmd := m.Root("env", host, wayOutEnv+"="+modes, "CI="+os.Getenv("CI"), "TOLL_HISTORY=off",
		"XDG_STATE_HOME="+m.Home+"/state", tester, "-test.run", "^TestOnWayOut$", "-test.v",
		"-test.timeout", "20m")
	cmd.ExtraFiles = []*os.File{beyond}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Errorf("%v\n%s", err, log())
	}
}

// beyond returns the machine at the other end of the wire, and a function that returns a path from
// this machine to it.
func beyond(t *testing.T) (r *Remote, own func(udp bool) *path.Path) {
	t.Helper()
	there, err := netns.Join("/proc/self/fd/3")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { there.Close() })
	here, err := netns.Here()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { here.Close() })
	place := local.Place{Space: there, Named: "beyond"}
	wire := path.Hop{Kind: mode.HopWire, Name: "wire⇄eth0", Where: "beyond and " + thisMachine,
		Shared: "wire",
		Read:   cluster.Both(local.Device(there, "wire", true), local.Device(here, "eth0", false))}
	at := func() netip.AddrPort {
		return netip.AddrPortFrom(rootlesstest.Beyond.Addr(), cluster.DrawPort())
	}
	r = &Remote{Addr: rootlesstest.Address.Addr(),
		Server: func(context.Context, *path.Path) (path.Place, netip.AddrPort, path.Hop, error) {
			return place, at(), wire, nil
		}}
	return r, func(udp bool) *path.Path {
		dial := at()
		return &path.Path{
			Spec: path.Spec{Mode: mode.Native, From: mode.FromHost, To: mode.ToOutside,
				UDP: udp},
			Servers: []path.Server{{Place: place, Listen: dial}},
			Clients: []path.Client{{Place: local.Place{Space: here, Named: thisMachine},
				Dial: dial}}}
	}
}

func TestOnWayOut(t *testing.T) {
	modes := os.Getenv(wayOutEnv)
	if modes == "" {
		t.Skip("TestRootlessWaysOut runs it with a rootless engine")
	}
	// pasta loses frames of an upload: 1 MiB took it half a minute, in which TCP waited up to 13 s
	// before it sent them again.
	const less = 16
	pathtest.ExchangeLess(less)
	r, own := beyond(t)
	b := &Docker{Podman: os.Getenv("CONTAINER_HOST") != "", Remote: r}
	o := pathtest.Options{Short: true,
		Common: func(h path.Hop) bool { return h.Kind == mode.HopWire || h.Kind == mode.HopTap },
		Around: func(t *testing.T, built *path.Path) (pathtest.Traffic, bool) {
			if len(built.Hops) == 1 { // only the wire
				return pathtest.Traffic{}, false
			}
			return pathtest.Exchange(t, own(built.Spec.UDP)), true
		}}
	for _, name := range strings.Split(modes, ",") {
		m, _ := mode.Find(mode.Name(name))
		m.Routes = slices.DeleteFunc(slices.Clone(m.Routes), func(r mode.Route) bool {
			return r.From != mode.FromContainer || r.To != mode.ToOutside
		})
		o.Modes = append(o.Modes, m)
	}
	for _, m := range o.Modes { // the image and a user's bridges stay for the whole run
		first(t, b, path.Spec{Mode: m.Name, From: mode.FromContainer, To: mode.ToOutside})
	}
	pathtest.Run(t, b, o)
	not := []path.Spec{{Mode: mode.Bridge, From: mode.FromContainer, To: mode.ToOutside}}
	if b.engine.hosts != b.engine.machine {
		not = append(not, path.Spec{Mode: mode.Host, From: mode.FromHost, To: mode.ToOutside})
	}
	for _, spec := range not {
		if err := b.Check(t.Context(), spec); !errors.Is(err, machine.ErrUnsupported) {
			t.Errorf("%s: %v", spec, err)
		}
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}
