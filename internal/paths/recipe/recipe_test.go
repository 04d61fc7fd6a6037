package recipe

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

var errTest = errors.New("it broke")

type site struct {
	Ends[box]
	path *path.Path
	log  *[]string
	fail string // the step that fails
}

func (s *site) step(name string) error {
	*s.log = append(*s.log, name)
	s.path.Undo.Push(name, func() error { *s.log = append(*s.log, "undo "+name); return nil })
	if s.fail == name {
		return errTest
	}
	return nil
}

func (s *site) Finish() error { s.Connect(); return s.step("finish") }

// box is a container whose device's kind is its name.
type box string

func (b box) Place() path.Place { return nil }
func (b box) Addr() netip.Addr  { return netip.MustParseAddr("192.0.2.1") }
func (b box) Hop(bool) path.Hop { return path.Hop{Kind: mode.HopKind(b)} }

func shared(s *site) error {
	for range 2 {
		s.AddServer("lo")
	}
	s.PlaceClients(nil)
	s.path.Hops = s.ServerHops()
	return s.step("recipe")
}

func TestBuildUndoes(t *testing.T) {
	spec := path.Spec{Mode: mode.Shared, From: mode.FromContainer, To: mode.ToLoopback, Servers: 2,
		Clients: 3}
	wrong := func(s *site) error {
		err := shared(s)
		s.path.Hops = append(s.path.Hops, path.Hop{Kind: mode.HopVeth})
		return err
	}
	for _, tt := range []struct {
		name, fail string
		recipe     func(*site) error
		spec       path.Spec
		want, err  string
	}{
		{"all", "", shared, spec, "begin recipe finish", ""},
		{"begin", "begin", shared, spec, "begin, undo begin", "it broke"},
		{"recipe", "recipe", shared, spec, "begin recipe, undo recipe, undo begin", "it broke"},
		{"finish", "finish", shared, spec,
			"begin recipe finish, undo finish, undo recipe, undo begin", "it broke"},
		{"other-hops", "", wrong, spec, "begin recipe finish, undo finish, undo recipe, undo begin",
			"built lo·veth, the catalogue says lo"},
		{"no-recipe", "", nil, spec, "", "not supported here"},
		{"no-route", "", shared, path.Spec{Mode: mode.Shared, From: mode.FromHost,
			To: mode.ToLoopback}, "", "not supported here"},
		{"no-mode", "", shared, path.Spec{Mode: "teleport"}, "", "not supported here"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log []string
			p, err := Build(t.Context(), tt.spec, tt.recipe, func(p *path.Path) (*site, error) {
				s := &site{Ends: NewEnds[box](p), path: p, log: &log, fail: tt.fail}
				return s, s.step("begin")
			})
			got := strings.ReplaceAll(strings.Join(log, " "), " undo", ", undo")
			if got != tt.want {
				t.Errorf("it did %q, want %q", got, tt.want)
			}
			if (err == nil) != (tt.err == "") ||
				err != nil && !strings.Contains(err.Error(), tt.err) || (p == nil) != (err != nil) {
				t.Errorf("path %v, error %v, want %q", p, err, tt.err)
			}
			if tt.fail == "begin" && strings.Contains(err.Error(), string(tt.spec.Mode)) {
				t.Errorf("%v names a mode, and what begins all modes failed", err)
			}
			if tt.recipe == nil && !errors.Is(err, machine.ErrUnsupported) {
				t.Errorf("%v is not ErrUnsupported", err)
			}
		})
	}
}

func TestBuildIsGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var log []string
	spec := path.Spec{Mode: mode.Shared, From: mode.FromContainer, To: mode.ToLoopback, Servers: 2}
	_, err := Build(ctx, spec, func(s *site) error {
		cancel()
		return shared(s)
	}, func(p *path.Path) (*site, error) {
		return &site{Ends: NewEnds[box](p), path: p, log: &log}, nil
	})
	if !errors.Is(err, context.Canceled) || !slices.Contains(log, "undo recipe") {
		t.Errorf("error %v after %v", err, log)
	}
}

func TestEnds(t *testing.T) {
	p := &path.Path{Spec: path.Spec{Servers: 2, Clients: 3, Second: true}}
	e := NewEnds[box](p)
	e.AddServer("a")
	e.AddServer("b")
	e.Dial[1] = netip.MustParseAddrPort("192.0.2.2:80")
	e.AddClient("x")
	e.AddClient("y")
	e.PlaceClient(nil)
	e.Connect()
	for i, want := range []string{"192.0.2.1:5201", "192.0.2.2:80", "192.0.2.1:5201"} {
		if c := p.Clients[i]; c.Dial.String() != want || c.Server != i%2 {
			t.Errorf("client %d dials %s of server %d, want %s", i, c.Dial, c.Server, want)
		}
	}
	if p.Servers[1].Listen.String() != "0.0.0.0:5201" || p.Second != SecondPort {
		t.Errorf("the second server listens at %s, the second port is %d", p.Servers[1].Listen,
			p.Second)
	}
	var got [][]int
	for _, h := range slices.Concat(e.ServerHops(), e.ClientHops()) {
		got = append(got, h.Clients)
	}
	if want := [][]int{{0, 2}, {1}, {0}, {1}}; !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("the hops are those of the clients %v, want %v", got, want)
	}
}

func TestLabel(t *testing.T) {
	if a, b := Label("server", 0, 1), Label("client", 1, 2); a != "server container" ||
		b != "client container 2" {
		t.Errorf("%q, %q", a, b)
	}
}

func TestNames(t *testing.T) {
	got := Names(map[mode.Name]bool{mode.Overlay: true, mode.Host: false, "teleport": true})
	if !slices.Equal(got, []string{"host", "overlay"}) {
		t.Errorf("got %v, want those of the catalogue, in its order", got)
	}
}
