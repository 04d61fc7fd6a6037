package docker

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/rootlesstest"
)

// podmanEnv is "root" or "user" in the tests that run on a machine with that Podman service.
const podmanEnv = "BRIDGETOLL_TEST_PODMAN"

func TestPodman(t *testing.T) {
	switch {
	case os.Getenv(podmanEnv) != "" || os.Getenv(daemonEnv) != "":
		t.Skip("it is what runs this")
	case !pathtest.AsksFor("podman"):
		t.Skip("no Podman was asked for: make test-rootless")
	}
	tester, toll := pathtest.StaticSelf(t), pathtest.Toll(t)
	for _, who := range []string{"root", "user"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			m := rootlesstest.New(t)
			p := m.Podman(t, who == "root")
			args := []string{"CONTAINER_HOST=" + p.Host, "XDG_STATE_HOME=" + m.Home + "/state",
				podmanEnv + "=" + who, pathtest.TollEnv + "=" + toll,
				tester, "-test.run", "^TestOnPodman", "-test.timeout", "20m"}
			if testing.Verbose() {
				args = append(args, "-test.v")
			}
			out, err := m.Root("env", args...).CombinedOutput()
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
	"publishes on ::1 does not answer", "over IPv6 only of networks that have it",
	"default network has no IPv6", "this Podman is rootless", "this Podman is root's",
	"counts the datagrams", "over IPv4 only",
}

func TestOnPodmanConformance(t *testing.T) {
	podman(t)
	b := &Docker{Podman: true, Parent: "eth0"}
	// The first path makes what stays, as in TestBesideConformance.
	first(t, b, path.Spec{Mode: mode.Host, From: mode.FromHost, To: mode.ToLoopback})
	o := pathtest.Options{
		Leave: func(m mode.Name, r mode.Route) bool { // publish-nat has the same rules
			return m == mode.Publish && r.To.Six()
		},
		Lacks: func(u *path.UnsupportedError) bool {
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

func TestPodmanNamesEveryMode(t *testing.T) {
	for _, m := range mode.OfDocker() {
		if r := podmanRecipes[m.Name]; r.build == nil && r.lacks == nil {
			t.Errorf("%s: a recipe %t, a reason %v", m.Name, r.build != nil, r.lacks)
		}
	}
}
