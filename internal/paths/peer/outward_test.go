package peer_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/docker"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/peer"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

// outwardEnv makes this binary test the way out on machine a, as toll.
const outwardEnv = "PEER_TEST_OUTWARD"

func TestOutward(t *testing.T) {
	if os.Getenv(outwardEnv) == "" {
		t.Skip("TestPeerOfContainers runs it on a machine")
	}
	ctx := context.Background()
	p := &peer.Peer{Host: peer.Host{Name: there}, Version: testVersion}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	var modes []mode.Mode
	for _, name := range append(peer.Modes(), docker.Outward()...) {
		m, _ := mode.Find(mode.Name(name))
		m.Routes = slices.DeleteFunc(slices.Clone(m.Routes), func(r mode.Route) bool {
			return !r.To.Outside()
		})
		modes = append(modes, m)
		for _, r := range m.Routes { // the agent and the image stay for the whole run
			spec := path.Spec{Mode: m.Name, From: r.From, To: r.To}
			if err := p.Check(ctx, spec); err != nil && !lacking(err) {
				t.Fatalf("%s: %v", spec, err)
			}
		}
	}
	// dockerd mounts its machine's network namespace for the first container with it
	first, err := p.Build(ctx, path.Spec{Mode: mode.Host, From: mode.FromContainer,
		To: mode.ToOutside})
	if err == nil {
		err = first.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	pathtest.Run(t, p, pathtest.Options{Modes: modes, Short: true,
		Lacks: func(u *machine.UnsupportedError) bool { return lacking(u) },
		Common: func(h path.Hop) bool {
			return h.Kind == mode.HopWire || strings.Contains(h.Name, "docker0") ||
				strings.Contains(h.Name, "docker_gwbridge")
		},
		Leave: func(m mode.Name, r mode.Route) bool { // made as macvlan-bridge
			return (m == mode.MacvlanPrivate || m == mode.MacvlanVEPA) && r.To.Six()
		},
		Around: func(t *testing.T, built *path.Path) (pathtest.Traffic, bool) {
			if len(built.Hops) == 1 { // only the wire
				return pathtest.Traffic{}, false
			}
			other, err := p.Build(ctx, path.Spec{Mode: mode.Native, From: mode.FromHost,
				To: built.Spec.To})
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			return pathtest.Exchange(t, other), true
		}})
}

// lacking reports whether the engine lacks IPv6 or routed networks, as Debian 12's 20.10 does, or
// is in no swarm, or the kernel lacks ipvlan; and whether a mode is of engines of another kind.
func lacking(err error) bool {
	return slices.ContainsFunc([]string{"writes no rules for IPv6", "default network has no IPv6",
		"has no routed networks", "CONFIG_IPVLAN", "overlay networks need a swarm",
		"this Docker is not rootless", "docker has no recipe for"}, func(s string) bool {
		return strings.Contains(err.Error(), s)
	})
}
