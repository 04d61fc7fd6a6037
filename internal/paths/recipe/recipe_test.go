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

func (s *site) Hops(at At) []path.Hop {
	if at.Kind() == mode.HopLoopback {
		return s.ServerHops()
	}
	return nil
}

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
	return s.step("recipe")
}

func TestBuildUndoes(t *testing.T) {
	spec := path.Spec{Mode: mode.Shared, From: mode.FromContainer, To: mode.ToLoopback, Servers: 2,
		Clients: 3}
	wrong := func(s *site) error {
		err := shared(s)
		s.Give(mode.HopVeth, path.Hop{Kind: mode.HopVeth})
		return err
	}
	for _, tt := range []struct {
		name, fail string
		recipe     func(*site) error
		spec       path.Spec
		want, err  string
	}{
		{"all", "", shared, spec, "begin recipe finish", ""},
		// What begins all modes names none.
		{"begin", "begin", shared, spec, "begin, undo begin", "it broke"},
		{"recipe", "recipe", shared, spec, "begin recipe, undo recipe, undo begin",
			"build shared from container to loopback (servers: 2, clients: 3): it broke"},
		{"finish", "finish", shared, spec,
			"begin recipe finish, undo finish, undo recipe, undo begin",
			"build shared from container to loopback (servers: 2, clients: 3): it broke"},
		{"other-hops", "", wrong, spec, "begin recipe, undo recipe, undo begin",
			"build shared from container to loopback (servers: 2, clients: 3): the path has veth, the catalogue says lo"},
		{"no-recipe", "", nil, spec, "",
			"build shared from container to loopback (servers: 2, clients: 3): not supported here"},
		{"no-route", "", shared, path.Spec{Mode: mode.Shared, From: mode.FromHost,
			To: mode.ToLoopback}, "", "build shared from host to loopback: not supported here"},
		{"no-mode", "", shared, path.Spec{Mode: "teleport"}, "",
			"build teleport from  to : not supported here"},
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
				err != nil && err.Error() != tt.err || (p == nil) != (err != nil) {
				t.Errorf("path %v, error %v, want %q", p, err, tt.err)
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

// TestAssemble shows which of the catalogue's ways a path takes.
func TestAssemble(t *testing.T) {
	published := mode.Route{From: mode.FromContainer, To: mode.ToAddress}
	along := func(hops ...mode.HopKind) mode.Route {
		r := published
		r.Hops = hops
		return r
	}
	ways := []mode.Route{
		along(mode.HopVeth, mode.HopBridge, mode.HopProxy, mode.HopBridge, mode.HopVeth),
		along(mode.HopVeth, mode.HopDNAT, mode.HopBridge, mode.HopVeth),
		along(mode.HopVeth, mode.HopBridge, mode.HopDNAT, mode.HopSNAT, mode.HopBridge,
			mode.HopVeth),
	}
	for _, tt := range []struct {
		name     string
		give     []mode.HopKind
		approach []mode.HopKind
		want     string
	}{
		{"proxy", []mode.HopKind{mode.HopProxy}, nil,
			"veth client, bridge first leg, proxy, bridge second leg, veth server"},
		{"rule", []mode.HopKind{mode.HopDNAT}, nil,
			"veth client, DNAT, bridge switched, veth server"},
		{"rules", []mode.HopKind{mode.HopDNAT, mode.HopSNAT}, nil,
			"veth client, bridge first leg, DNAT, MASQ, bridge second leg, veth server"},
		{"nothing", nil, nil,
			"error the path lacks proxy, the catalogue says veth·bridge·proxy·bridge·veth"},
		{"another", []mode.HopKind{mode.HopIPVS}, nil,
			"error the path has IPVS, the catalogue says veth·bridge·proxy·bridge·veth"},
		{"approach", []mode.HopKind{mode.HopDNAT}, []mode.HopKind{mode.HopVeth},
			"veth approach, DNAT, bridge switched, veth server"},
		{"approach-by-wire", []mode.HopKind{mode.HopDNAT}, []mode.HopKind{mode.HopWire},
			"error the path has DNAT, the catalogue says veth·bridge·proxy·bridge·veth"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &path.Path{Spec: path.Spec{From: published.From, To: published.To}}
			e := NewEnds[end](p)
			e.AddServer("server")
			e.AddClient("client")
			for _, k := range tt.give {
				e.Give(k, path.Hop{Kind: k})
			}
			var approach []path.Hop
			for _, k := range tt.approach {
				approach = append(approach, path.Hop{Kind: k, Name: "approach"})
			}
			e.Approach(approach)
			hops, err := e.assemble(ways, func(at At) []path.Hop {
				if at.Kind() != mode.HopBridge {
					return nil
				}
				return []path.Hop{{Kind: mode.HopBridge, Name: map[Crossing]string{
					Arriving: "arriving", Leaving: "leaving", Switched: "switched",
					FirstLeg: "first leg", SecondLeg: "second leg"}[at.Crosses(false)]}}
			})
			var got []string
			for _, h := range hops {
				got = append(got, strings.TrimSpace(string(h.Kind)+" "+h.Name))
			}
			if err != nil {
				got = []string{"error " + err.Error()}
			}
			if all := strings.Join(got, ", "); all != tt.want {
				t.Errorf("got %s, want %s", all, tt.want)
			}
		})
	}
}

// end is a container with a veth pair.
type end string

func (end) Place() path.Place   { return nil }
func (end) Addr() netip.Addr    { return netip.MustParseAddr("192.0.2.1") }
func (e end) Hop(bool) path.Hop { return path.Hop{Kind: mode.HopVeth, Name: string(e)} }

func TestCrosses(t *testing.T) {
	for _, tt := range []struct {
		route string // hops of one bridge in brackets
		from  mode.Placement
		to    mode.Target
		apart bool
		want  Crossing
	}{
		{"[bridge] veth", mode.FromHost, mode.ToContainer, false, Arriving},
		{"wire DNAT [bridge] veth", mode.FromRemote, mode.ToAddress, false, Arriving},
		{"veth [bridge] veth", mode.FromContainer, mode.ToContainer, false, Switched},
		{"veth ACCEPT [bridge] veth", mode.FromContainer, mode.ToContainer, false, Switched},
		{"veth [bridge] bridge veth", mode.FromContainer, mode.ToContainer, true, Leaving},
		{"veth bridge [bridge] veth", mode.FromContainer, mode.ToContainer, true, Arriving},
		{"veth [bridge] MASQ wire", mode.FromContainer, mode.ToOutside, false, Leaving},
		{"veth [bridge] wire bridge veth", mode.FromRemoteContainer, mode.ToContainer, false,
			Leaving},
		{"veth bridge wire [bridge] veth", mode.FromRemoteContainer, mode.ToContainer, false,
			Arriving},
	} {
		at := At{Route: mode.Route{From: tt.from, To: tt.to}}
		for i, k := range strings.Fields(tt.route) {
			if strings.HasPrefix(k, "[") {
				at.index = i
			}
			at.Hops = append(at.Hops, mode.HopKind(strings.Trim(k, "[]")))
		}
		if got := at.Crosses(tt.apart); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.route, got, tt.want)
		}
	}
}
