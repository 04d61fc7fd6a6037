package truth

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/paths/lab"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/test/measure/peer"
)

func TestMain(m *testing.M) {
	for _, inner := range []func([]string) (bool, error){peer.Inner, lab.Inner, Inner} {
		ours, err := inner(os.Args[1:])
		switch {
		case err != nil:
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		case ours: // the lab started this program
			os.Exit(0)
		}
	}
	code := m.Run()
	pathtest.RemoveToll()
	os.Exit(code)
}

var bridgeSpec = path.Spec{Mode: mode.Bridge, From: mode.FromHost, To: mode.ToContainer}

func needs(t *testing.T, programs ...string) *lab.Lab {
	t.Helper()
	var missing string
	if os.Geteuid() != 0 {
		missing = "root"
	}
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			missing = p
		}
	}
	if missing != "" && os.Getenv("CI") == "true" {
		t.Fatal("needs " + missing)
	} else if missing != "" {
		t.Skip("needs " + missing)
	}
	l := &lab.Lab{}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// A difference must be planted before a path's settings are first read.
func TestPlants(t *testing.T) {
	l := needs(t, "nft", "tc")
	for _, c := range []struct {
		name  string
		plant plant
		where func(*path.Path) path.Place
		look  string
		says  []string
	}{
		{"chain", chain(7), func(p *path.Path) path.Place {
			return p.Servers[0]
		}, "nft list ruleset",
			[]string{"hook input", strings.Repeat(
				"tcp dport 1 counter packets 0 bytes 0 drop\n\t\t", 6) + "tcp dport 1"}},
		{"limit", limit(1_930_000_000), func(p *path.Path) path.Place {
			return p.Clients[0]
		}, "tc qdisc show", []string{"qdisc tbf", "rate 1930Mbit"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := planting{l, plants{inert: c.plant}}
			for _, tune := range []mode.Tunes{"", inert} {
				s := bridgeSpec
				s.Tune = tune
				p, err := b.Build(t.Context(), s)
				if err != nil {
					t.Fatal(err)
				}
				defer p.Close()
				text, err := within(t.Context(), c.where(p), "", strings.Fields(c.look)...)
				if err != nil {
					t.Fatal(err)
				}
				for _, say := range c.says {
					if got := strings.Contains(text, say); got != (tune == inert) {
						t.Errorf("%q: %q is there: %v:\n%s", tune, say, got, text)
					}
				}
			}
		})
	}
}

func TestPlantFails(t *testing.T) {
	l := needs(t)
	var was *path.Path
	want := errors.New("not here")
	b := planting{l, plants{"": func(_ context.Context, p *path.Path) error {
		was = p
		return want
	}}}
	if _, err := b.Build(t.Context(), bridgeSpec); !errors.Is(err, want) {
		t.Fatal(err)
	}
	if _, err := within(t.Context(), was.Servers[0], "", "true"); err == nil {
		t.Error("the path is still there")
	}
}

// One of the tools needs the proxy's second port.
func TestRivals(t *testing.T) {
	l := needs(t, programs([]string{"peers"})...)
	k := &keeping{Builder: l, second: true, paths: map[path.Spec]*path.Path{}}
	defer k.close()
	spec := path.Spec{Mode: mode.PublishProxy, From: mode.FromHost, To: mode.ToLoopback}
	if _, err := k.Build(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	cpus := sample.CPUs{Client: []int{0}, Server: []int{0}, Relay: []int{0}}
	for _, r := range rivals {
		if x, err := r.visit(t.Context(), &cpus, k.of(mode.PublishProxy)); err != nil || !(x > 0) {
			t.Errorf("%s: got %v, %v", r.name, x, err)
		}
	}
}

func TestKeeping(t *testing.T) {
	l := needs(t)
	k := &keeping{Builder: l, paths: map[path.Spec]*path.Path{}}
	for range 2 {
		p, err := k.Build(t.Context(), bridgeSpec)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := within(t.Context(), p.Servers[0], "", "true"); err != nil {
			t.Error(err)
		}
	}
	if len(k.paths) != 1 || k.of(mode.Host) != nil {
		t.Errorf("got %+v", k)
	}
	of := k.of(mode.Bridge)
	if err := k.close(); err != nil {
		t.Error(err)
	}
	if _, err := within(t.Context(), of.Servers[0], "", "true"); err == nil {
		t.Error("the path is still there")
	}
}
