// Package pathtest tests what every backend promises for every mode. A backend's test has a
// TestMain that calls Main and a test that calls Run.
package pathtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// Options adapt the suite to a backend.
type Options struct {
	// Only is the only mode to test; "": all.
	Only mode.Name
	// Modes lists the modes to test; nil: the result of Modes.
	Modes []mode.Mode
	// Models adds the modes of clusters that the lab builds.
	Models bool
	// Truth checks a built path against the kernel. May be nil.
	Truth func(t *testing.T, p *path.Path)
	// Around moves traffic between the ends that bypasses the path. It returns false if the
	// machines have no other route. May be nil.
	Around func(t *testing.T, p *path.Path) (Traffic, bool)
	// Lacks reports, by a check of its own, whether the machine lacks what a refusal names. Then
	// the route is skipped even if all routes are required. May be nil.
	Lacks func(err *machine.UnsupportedError) bool
	// Short leaves out tests with several servers and clients, and all but the first route measured
	// on request, and tests a mode's routes while all of them are built, instead of each alone, as
	// on emulated CPUs. Otherwise the last route on request represents a mode that is brief or has
	// no rules of its own.
	Short bool
	// Usual tests only each mode's usual route alone, over UDP and with several servers and
	// clients, and its others while all are built, the outward one also over UDP.
	Usual bool
	// Brief lists modes built like others: their last route represents them over UDP and with
	// several servers and clients.
	Brief []mode.Name
	// Leave reports whether another mode's test covers the route, except in one run with the mode's
	// others. May be nil.
	Leave func(m mode.Name, r mode.Route) bool
	// Common reports whether all paths of the backend cross the hop, which then counts others'
	// traffic. May be nil.
	Common func(h path.Hop) bool
}

// Run checks b's promises on every route of the modes to test.
func Run(t *testing.T, b path.Builder, o Options) {
	if o.Modes == nil {
		o.Modes = Modes(t)
		if o.Models && !Emulated() {
			o.Modes = mode.OfLab()
		}
	}
	for _, m := range o.Modes {
		if o.Only != "" && m.Name != o.Only {
			continue
		}
		routesOf(t, b, m, o)
	}
}

func routesOf(t *testing.T, b path.Builder, m mode.Mode, o Options) {
	requested, usual := false, lastUsual(m)
	var specs, examined []path.Spec // examined while all are built
	for i, r := range m.Routes {
		last, brief := i == lastInward(m), slices.Contains(o.Brief, m.Name)
		out := r.To.Outside()
		if r.OnRequest() && !out && (o.Short && requested ||
			!o.Short && !last && (brief || !m.PerPort)) {
			continue
		}
		requested = requested || r.OnRequest() && !out
		spec := path.Spec{Mode: m.Name, From: r.From, To: r.To}
		if o.Leave != nil && o.Leave(m.Name, r) {
			known := slices.ContainsFunc(specs, func(s path.Spec) bool {
				return s.From == r.From
			})
			if !Emulated() && !known {
				specs = append(specs, spec)
			}
			continue
		}
		specs = append(specs, spec)
		name := fmt.Sprintf("%s/%s/%s", m.Name, r.From, r.To)
		if o.Short || Emulated() || o.Usual && i != usual {
			examined = append(examined, spec)
		} else {
			t.Run(name, func(t *testing.T) { route(t, b, spec, o) })
		}
		represented := i != usual && (Emulated() || brief || o.Usual) ||
			r.OnRequest() && (!last || brief || !m.PerPort)
		if out {
			represented = r.To.Six() || Emulated()
		}
		if represented { // by the longest route, except in make test-kernels
			continue
		}
		if m.PerPort || out {
			udp := spec
			udp.UDP = true
			t.Run(name+"/udp", func(t *testing.T) { route(t, b, udp, o) })
		}
		if o.Short || o.Usual && out { // Docker's suite has a crowd of bridge go out
			continue
		}
		t.Run(name+"/crowd", func(t *testing.T) { crowd(t, b, spec, o) })
	}
	if len(specs) > 0 {
		t.Run(string(m.Name)+"/together", func(t *testing.T) {
			together(t, b, specs, examined, o)
		})
	}
}

// lastUsual returns the index of the mode's last route that is not on request, or of its last one.
func lastUsual(m mode.Mode) int {
	for i, r := range slices.Backward(m.Routes) {
		if !r.OnRequest() && !r.To.Outside() {
			return i
		}
	}
	return len(m.Routes) - 1
}

func lastInward(m mode.Mode) int {
	for i, r := range slices.Backward(m.Routes) {
		if !r.To.Outside() {
			return i
		}
	}
	return len(m.Routes) - 1
}

// Longest returns the mode's last route, if possible one not on request.
func Longest(m mode.Mode) mode.Route { return m.Routes[lastUsual(m)] }

// modesEnv is "rare" for modes that some kernels lack parts of (see test/vm/run), or "" for all.
const (
	modesEnv = "BRIDGETOLL_MODES"
	rare     = "rare"
)

// Emulated reports whether the tests run in a VM, where every instruction is slow.
func Emulated() bool { return os.Getenv(modesEnv) == rare }

// Modes returns the modes to test.
func Modes(t testing.TB) []mode.Mode {
	t.Helper()
	switch which := os.Getenv(modesEnv); which {
	case "":
		return mode.OfDocker()
	case rare:
		return slices.DeleteFunc(mode.OfDocker(), func(m mode.Mode) bool { return !m.Rare })
	default:
		t.Fatalf("%s=%s: it is %s or nothing", modesEnv, which, rare)
		return nil
	}
}

func check(t *testing.T, b path.Builder, spec path.Spec, o Options) {
	t.Helper()
	err := b.Check(context.Background(), spec)
	switch {
	case err == nil:
		return
	case !errors.Is(err, machine.ErrUnsupported):
		t.Fatalf("Check: %v", err)
	case spec.To.Outside() && errors.Is(err, path.ErrOutside):
		t.Skipf("rightly refused: %v", err)
	}
	var u *machine.UnsupportedError
	if m, _ := mode.Find(spec.Mode); m.TCPOnly && spec.UDP && errors.As(err, &u) {
		t.Skipf("rightly refused: %v", err)
	}
	if o.Lacks != nil && errors.As(err, &u) && o.Lacks(u) {
		t.Skipf("rightly refused: %v", err)
	}
	SkipOrFail(t, "%s: %v", spec, err)
}

// crowd tests a path with several servers and clients: each client must reach its server, and the
// witness must tell the clients' bytes apart.
func crowd(t *testing.T, b path.Builder, spec path.Spec, o Options) {
	before := Observe(t)
	check(t, b, spec, o)
	spec.Servers, spec.Clients = 2, 3
	if err := b.Check(context.Background(), spec); err != nil {
		m, _ := mode.Find(spec.Mode)
		var u *machine.UnsupportedError
		if m.WholeCard && errors.As(err, &u) {
			t.Skipf("rightly refused: %v", err)
		}
		t.Fatalf("Check: %v", err)
	}
	p, err := b.Build(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range p.Clients {
		if got := p.Route(i); !known(p.Spec, got) || c.Server != i%len(p.Servers) {
			t.Errorf("client %d: server %d, hops %s, which the catalogue does not say", i, c.Server,
				got)
		}
	}
	if len(p.Clients) != spec.Clients || len(p.Servers) != spec.Servers {
		t.Errorf("%d servers, %d clients", len(p.Servers), len(p.Clients))
	}
	own := slices.ContainsFunc(p.Hops, func(h path.Hop) bool { return h.Clients != nil })
	var v visit
	unchanged(t, p, func() { v = move(t, p, func() Traffic { return Exchange(t, p) }) })
	if w := v.witness(v.moved); !w.OK {
		t.Errorf("witness: %+v\n%s", w, strings.Join(v.readings, "\n"))
	}
	swapped := slices.Clone(v.moved)
	swapped[1], swapped[2] = swapped[2], swapped[1]
	if w := v.witness(swapped); w.OK && own {
		t.Errorf("witnessed with two clients swapped:\n%s", strings.Join(v.readings, "\n"))
	}
	if err := p.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	NothingLeft(t, before)
}

func route(t *testing.T, b path.Builder, spec path.Spec, o Options) {
	ctx := context.Background()
	before := Observe(t)
	check(t, b, spec, o)
	p, err := b.Build(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	closed := false
	defer func() {
		if !closed {
			_ = p.Close()
		}
	}()

	examine(t, p, o)
	closed = true
	if err := p.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	NothingLeft(t, before)
}

func examine(t *testing.T, p *path.Path, o Options) {
	t.Helper()
	if got := p.Route(0); !known(p.Spec, got) {
		t.Errorf("hops %s, which the catalogue does not say", got)
	}
	noteVersions(t, p)
	if o.Truth != nil {
		o.Truth(t, p)
	}
	unchanged(t, p, func() {
		Carries(t, p)
		if o.Around != nil {
			around(t, p, o)
		}
	})
}

func known(s path.Spec, got mode.Route) bool {
	m, _ := mode.Find(s.Mode)
	return m.Fits(s.From, s.To, got.Hops)
}

// SkipOrFail skips the test, or fails it under CI=true, where nothing should be missing.
func SkipOrFail(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// NothingLeft checks that this process and the machine are in an earlier state. It waits up to a
// timeout, because the kernel ends threads and namespaces with a delay.
func NothingLeft(t *testing.T, before State) {
	t.Helper()
	var diff string
	if !testwait.Met(time.Minute, func() bool {
		after := Observe(t)
		after.fill(before)
		diff = cmp.Diff(before, after)
		return diff == ""
	}) {
		t.Errorf("something is left (-before +after):\n%s", diff)
	}
}
