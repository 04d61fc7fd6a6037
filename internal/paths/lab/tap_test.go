package lab

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

func TestTapFacts(t *testing.T) {
	l := started(t, &Lab{})
	for _, c := range []struct {
		spec              path.Spec
		dataPath, program string
		sources           []string // by version
	}{
		{path.Spec{Mode: mode.Pasta, From: mode.FromHost, To: mode.ToLoopback}, "spliced sockets",
			"pasta", []string{"127.0.0.1", "198.18.0.1"}},
		{path.Spec{Mode: mode.Pasta, From: mode.FromHost, To: mode.ToAddress}, "tap device",
			"pasta", []string{"198.18.0.2", "169.254.1.2"}},
		{path.Spec{Mode: mode.Pasta, From: mode.FromRemote, To: mode.ToAddress6}, "tap device",
			"pasta", []string{"2001:2:0:18::2, the client's"}},
		{path.Spec{Mode: mode.Pasta, From: mode.FromContainer, To: mode.ToOutside}, "tap device",
			"pasta", []string{"198.18.0.1, the client's"}},
		{path.Spec{Mode: mode.Slirp4netns, From: mode.FromHost, To: mode.ToLoopback}, "tap device",
			"slirp4netns ", []string{"10.0.2.2"}},
		{path.Spec{Mode: mode.Slirp4netns, From: mode.FromRemote, To: mode.ToAddress},
			"tap device", "slirp4netns ", []string{"198.18.0.2, the client's"}},
		{path.Spec{Mode: mode.Slirp4netns, From: mode.FromContainer, To: mode.ToOutside},
			"tap device", "slirp4netns ", []string{"198.18.0.1"}},
	} {
		t.Run(c.spec.String(), func(t *testing.T) {
			t.Parallel()
			skipMissing(t, l, c.spec)
			p := build(t, l, c.spec)
			source := p.Facts["source address"]
			if p.Facts["data path"] != c.dataPath ||
				!strings.HasPrefix(p.Facts["proxy"], c.program) ||
				!slices.Contains(c.sources, source) {
				t.Errorf("facts %q", p.Facts)
			}
			if len(p.Proxies) != 1 || !strings.HasPrefix(p.Proxies[0].Name, c.program) ||
				p.Proxies[0].PID == 0 {
				t.Errorf("relays %+v", p.Proxies)
			}
		})
	}
}

// The child of a relay that is a wrapper ends with it.
func TestRelayInAWrapper(t *testing.T) {
	dir := t.TempDir()
	held, err := os.Create(filepath.Join(dir, "held"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	script := "#!/bin/sh\nflock " + held.Name() + " sleep 3600 3>&- &\n" +
		"while flock -n " + held.Name() + " true; do sleep 0.01; done\n"
	if err := os.WriteFile(filepath.Join(dir, "slirp4netns"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	l := started(t, &Lab{})
	spec := path.Spec{Mode: mode.Slirp4netns, From: mode.FromContainer, To: mode.ToOutside}
	skipMissing(t, l, spec)
	p, err := l.Build(t.Context(), spec)
	if err == nil {
		t.Errorf("slirp4netns ended, but there is a path: %v", p.Close())
	}
	if err := unix.Flock(int(held.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Errorf("the child has not ended: %v", err)
	}
}

func TestTapMTU(t *testing.T) {
	var s *site
	l := started(t, &Lab{test: hooks{built: func(b *site) { s = b }}})
	spec := path.Spec{Mode: mode.Slirp4netns, From: mode.FromContainer, To: mode.ToOutside,
		Tune: "mtu=1500"}
	skipMissing(t, l, spec)
	p := build(t, l, spec)
	claim{where: "client", command: "ip -o link show dev tap0",
		says: []string{"mtu 1500"}}.check(t, s)
	pathtest.Carries(t, p)
}
