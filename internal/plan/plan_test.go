package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

var (
	bulk = sample.Load{Kind: "bulk", Streams: 1, Warmup: 0.1, Window: 0.25}
	rr   = sample.Load{Kind: "rr", Options: sample.RROptions{
		Messages: sample.Messages{Request: 1, Reply: 1}}, Warmup: 0.05, Window: 0.25}
)

// request returns what `toll compare` asks for without flags, with one load.
func request(change func(*Request)) Request {
	r := Request{From: []mode.Placement{mode.FromHost},
		Loads: []sample.Load{bulk}, On: []string{"lab"}, Budget: 60, Precision: 0.02,
		Baseline: mode.Host, Pin: "far", Seed: 1}
	if change != nil {
		change(&r)
	}
	return r
}

// show returns "mode from>to load", with "!" for a control.
func show(c sample.Cell) string {
	name := c.Tune.Name(string(c.Mode))
	s := fmt.Sprintf("%s %s>%s %s", name, c.From, c.To, c.Load)
	if c.Control {
		s += "!"
	}
	return s
}

func showAll(cells []sample.Cell) []string {
	var out []string
	for _, c := range cells {
		out = append(out, show(c))
	}
	return out
}

func TestMake(t *testing.T) {
	for _, tt := range []struct {
		name    string
		change  func(*Request)
		cells   []string
		skipped []string // "mode from: reason → remedy"
	}{
		{"defaults", nil, []string{
			"native host>loopback bulk", "host host>loopback bulk", "host host>loopback bulk!",
			"bridge host>container bulk", "publish-nat host>loopback bulk",
			"publish-nat host>address bulk",
			"publish-proxy host>loopback bulk", "publish-proxy host>loopback6 bulk",
		}, nil},

		{"what-is-named-is-missed", func(r *Request) {
			r.Modes = []mode.Name{mode.Shared, mode.Bridge, mode.MacvlanPassthru}
		}, []string{
			"host host>loopback bulk", "host host>loopback bulk!", "bridge host>container bulk",
		}, []string{
			"shared host: there is no such path: it can be reached from container → " +
				"--from container",
			"macvlan-passthru host: the kernel keeps a network card and its macvlan " +
				"sub-interfaces apart, so the machine " +
				"cannot reach its own containers → --from remote; on a real machine, make one " +
				"more sub-interface of the card for the host itself",
		}},

		{"variants", func(r *Request) {
			r.Modes, r.Tunes = []mode.Name{mode.Bridge}, []mode.Tunes{"mtu=9000", "gro=on+rps=on"}
		}, []string{
			"host host>loopback bulk", "host host>loopback bulk!",
			"host+mtu=9000 host>loopback bulk", "host+gro=on+rps=on host>loopback bulk",
			"bridge host>container bulk", "bridge+mtu=9000 host>container bulk",
			"bridge+gro=on+rps=on host>container bulk",
		}, nil},

		{"in-the-order-of-the-catalogue", func(r *Request) {
			r.Modes = []mode.Name{mode.PublishNAT, mode.Host, mode.Native}
		}, []string{
			"native host>loopback bulk", "host host>loopback bulk", "host host>loopback bulk!",
			"publish-nat host>loopback bulk", "publish-nat host>address bulk",
		}, nil},

		{"baseline-is-added", func(r *Request) { r.Modes = []mode.Name{mode.Bridge} }, []string{
			"host host>loopback bulk", "host host>loopback bulk!", "bridge host>container bulk",
		}, nil},

		{"another-baseline", func(r *Request) {
			r.Modes, r.Baseline = []mode.Name{mode.Host}, mode.Native
		}, []string{
			"native host>loopback bulk", "native host>loopback bulk!", "host host>loopback bulk",
		}, nil},

		{"baseline-alone", func(r *Request) { r.Modes = []mode.Name{mode.Host} }, []string{
			"host host>loopback bulk", "host host>loopback bulk!",
		}, nil},

		{"one-control-for-a-baseline-of-two-targets", func(r *Request) {
			r.Modes, r.Baseline = []mode.Name{mode.PublishNAT}, mode.PublishNAT
		}, []string{
			"publish-nat host>loopback bulk", "publish-nat host>loopback bulk!",
			"publish-nat host>address bulk",
		}, nil},

		{"two-loads-are-two-groups", func(r *Request) {
			r.Modes, r.Loads = []mode.Name{mode.Bridge}, []sample.Load{rr, bulk}
		}, []string{
			"host host>loopback rr", "host host>loopback rr!", "bridge host>container rr",
			"host host>loopback bulk", "host host>loopback bulk!", "bridge host>container bulk",
		}, nil},

		{"placements-in-the-order-asked-for", func(r *Request) {
			r.Modes, r.From = []mode.Name{mode.Bridge},
				[]mode.Placement{mode.FromRemote, mode.FromContainer}
		}, []string{
			"host remote>address bulk", "host remote>address bulk!",
			"host container>loopback bulk", "host container>loopback bulk!",
			"bridge container>container bulk",
		},
			[]string{
				"bridge remote: other machines have no route to a container's address, and " +
					"Docker's rules would drop what came" +
					" → publish-nat, publish-proxy or routed"}},

		{"baseline-without-a-route", func(r *Request) {
			r.Modes, r.From, r.Baseline = []mode.Name{mode.Bridge},
				[]mode.Placement{mode.FromContainer}, mode.Native
		}, []string{"bridge container>container bulk"}, nil},

		{"baseline-without-a-route-asked-for", func(r *Request) {
			r.Modes, r.From, r.Baseline = []mode.Name{mode.Native, mode.Bridge},
				[]mode.Placement{mode.FromContainer}, mode.Native
		}, []string{"bridge container>container bulk"},
			[]string{
				"native container: there is no such path: it can be reached from host, remote " +
					"→ --from host"}},

		{"to-picks-among-several", func(r *Request) {
			r.Modes, r.To = []mode.Name{mode.Bridge, mode.PublishNAT, mode.PublishProxy},
				[]mode.Target{mode.ToAddress}
		}, []string{
			"host host>loopback bulk", "host host>loopback bulk!", "bridge host>container bulk",
			"publish-nat host>address bulk",
		}, []string{"publish-proxy host: it has none of the targets of --to there → " +
			"--to loopback"}},

		{"to-leaves-single-targets-alone", func(r *Request) {
			r.Modes, r.To, r.From = []mode.Name{mode.PublishProxy}, []mode.Target{mode.ToLoopback},
				[]mode.Placement{mode.FromRemote}
		}, []string{
			"host remote>address bulk", "host remote>address bulk!",
			"publish-proxy remote>address bulk",
		}, nil},

		{"both-families", func(r *Request) {
			r.Modes, r.To = []mode.Name{mode.Bridge},
				[]mode.Target{mode.ToContainer, mode.ToContainer6}
		}, []string{
			"host host>loopback bulk", "host host>loopback bulk!", "bridge host>container bulk",
			"bridge host>container6 bulk",
		}, nil},

		{"both-families-of-the-baseline", func(r *Request) {
			r.Modes, r.To = []mode.Name{mode.Host, mode.Bridge}, mode.Inward(mode.Targets())
		}, []string{
			"host host>loopback bulk", "host host>loopback bulk!", "host host>loopback6 bulk",
			"bridge host>container bulk", "bridge host>container6 bulk",
		}, nil},

		{"outside", func(r *Request) {
			r.To, r.From = []mode.Target{mode.ToOutside}, []mode.Placement{mode.FromContainer}
		}, []string{
			"host container>outside bulk", "host container>outside bulk!",
			"bridge container>outside bulk", "macvlan-bridge container>outside bulk",
			"overlay container>outside bulk",
		}, nil},

		{"outside-both-families", func(r *Request) {
			r.Modes, r.From = []mode.Name{mode.Bridge}, []mode.Placement{mode.FromContainer}
			r.To = []mode.Target{mode.ToOutside, mode.ToOutside6}
		}, []string{
			"host container>outside bulk", "host container>outside bulk!",
			"bridge container>outside bulk", "bridge container>outside6 bulk",
		}, nil},

		{"in-and-out", func(r *Request) {
			r.Modes = []mode.Name{mode.Bridge, mode.Shared, mode.MacvlanPrivate}
			r.From = []mode.Placement{mode.FromContainer}
			r.To = []mode.Target{mode.ToContainer, mode.ToOutside}
		}, []string{
			"host container>loopback bulk", "host container>loopback bulk!",
			"host container>outside bulk", "shared container>loopback bulk",
			"bridge container>container bulk", "bridge container>outside bulk",
			"macvlan-private container>outside bulk",
		}, nil},

		{"no-way-out", func(r *Request) {
			r.Modes = []mode.Name{mode.Native, mode.Shared, mode.Bridge, mode.Slirp4netns,
				mode.RootlessPublish}
			r.To, r.From = []mode.Target{mode.ToOutside6}, []mode.Placement{mode.FromContainer}
		}, []string{"host container>outside6 bulk", "host container>outside6 bulk!",
			"bridge container>outside6 bulk"},
			[]string{"native container: its way out starts at another placement → --from host",
				"shared container: toll does not measure its way out → bridge",
				"slirp4netns container: toll measures its way out over IPv4 only → --to outside",
				"rootless-publish container: " + mode.NoRootlessOut6 + " → --to outside"}},

		{"in-by-default", func(r *Request) {
			r.Modes = []mode.Name{mode.Bridge, mode.MacvlanPrivate}
			r.From = []mode.Placement{mode.FromContainer}
		}, []string{"host container>loopback bulk", "host container>loopback bulk!",
			"bridge container>container bulk"},
			[]string{"macvlan-private container: private is the macvlan mode in which " +
				"containers on one card cannot reach each other → macvlan-bridge"}},

		{"ipv6-only", func(r *Request) {
			r.Modes, r.To, r.From = []mode.Name{mode.Bridge, mode.Link},
				[]mode.Target{mode.ToContainer6}, []mode.Placement{mode.FromContainer}
		}, []string{
			"host container>loopback6 bulk", "host container>loopback6 bulk!",
			"bridge container>container6 bulk",
		},
			[]string{
				"link container: Docker writes the rules of a link for IPv4 only → " +
					"--to container"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Make(request(tt.change))
			if err != nil {
				t.Fatal(err)
			}
			if got := showAll(p.Cells); !slices.Equal(got, tt.cells) {
				t.Errorf("cells:\n%s\nwant:\n%s", strings.Join(got, "\n"),
					strings.Join(tt.cells, "\n"))
			}
			var skipped []string
			for _, s := range p.Skipped {
				skipped = append(skipped, fmt.Sprintf(
					"%s %s: %s → %s", s.Mode, s.From, s.Reason, s.Remedy))
			}
			if !slices.Equal(skipped, tt.skipped) {
				t.Errorf("skipped:\n%s\nwant:\n%s", strings.Join(skipped, "\n"),
					strings.Join(tt.skipped, "\n"))
			}
		})
	}
}

func TestControlFollowsTheBaseline(t *testing.T) {
	for _, base := range mode.Names() {
		t.Run(string(base), func(t *testing.T) {
			p, err := Make(request(func(r *Request) {
				r.From, r.Baseline = mode.Placements(), base
				r.Loads, r.On = []sample.Load{bulk, rr}, []string{"lab", "docker"}
			}))
			if err != nil {
				t.Fatal(err)
			}
			controls, bases := map[string]int{}, map[string]bool{}
			for i, c := range p.Cells {
				g := fmt.Sprint(c.On, c.From, c.Load)
				bases[g] = bases[g] || c.Mode == base
				if !c.Control {
					continue
				}
				controls[g]++
				before := p.Cells[i-1]
				before.Control = true
				if c.Mode != base || before != c {
					t.Errorf("control %s comes after %s", show(c), show(p.Cells[i-1]))
				}
			}
			for g, has := range bases {
				if want := map[bool]int{true: 1}[has]; controls[g] != want {
					t.Errorf("group %s has %d controls, want %d", g, controls[g], want)
				}
			}
		})
	}
}

func TestMakeKeepsTheRequest(t *testing.T) {
	p, err := Make(request(func(r *Request) { r.Rounds, r.Seed, r.Pin = 7, 42, "0,1" }))
	if err != nil {
		t.Fatal(err)
	}
	want := sample.Plan{Seed: 42, Rounds: 7, Budget: 60, Precision: 0.02, Baseline: "host",
		Pin: "0,1"}
	if p.Seed != want.Seed || p.Rounds != want.Rounds || p.Budget != want.Budget ||
		p.Precision != want.Precision ||
		p.Baseline != want.Baseline || p.Pin != want.Pin || len(p.Loads) != 1 ||
		p.Loads[0] != bulk {
		t.Errorf("plan %+v", p)
	}
	for _, c := range p.Cells {
		if c.On != "lab" {
			t.Errorf("cell %s is built by %q", show(c), c.On)
		}
	}
}

func TestMakeRefuses(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Request)
		want   string
	}{
		{"no-placement", func(r *Request) { r.From = nil }, "nothing to measure: no placement, load or backend was given"},
		{"no-load", func(r *Request) { r.Loads = nil }, "nothing to measure: no placement, load or backend was given"},
		{"no-backend", func(r *Request) { r.On = nil }, "nothing to measure: no placement, load or backend was given"},
		{"negative-rounds", func(r *Request) { r.Rounds = -1 }, "-1 rounds: must not be negative"},
		{"no-budget", func(r *Request) { r.Budget = 0 }, "budget 0s: must be more than 0"},
		{"negative-budget", func(r *Request) { r.Budget = -3 }, "budget -3s: must be more than 0"},
		{"budget-not-a-number", func(r *Request) { r.Budget = math.NaN() }, "budget NaNs: must be more than 0"},
		{"no-precision", func(r *Request) { r.Precision = 0 }, "precision 0: must be between 0 and 1"},
		{"precision-of-all", func(r *Request) { r.Precision = 1 }, "precision 1: must be between 0 and 1"},
		{"precision-not-a-number", func(r *Request) { r.Precision = math.NaN() }, "precision NaN: must be between 0 and 1"},
		{"no-window", func(r *Request) {
			r.Loads = []sample.Load{{Kind: "rr"}}
		}, "load rr: window 0s, warm-up 0s: must be positive"},
		{"negative-warm-up", func(r *Request) {
			r.Loads = []sample.Load{{Kind: "rr", Window: 1, Warmup: -1}}
		}, "load rr: window 1s, warm-up -1s: must be positive"},
		{"second-load-bad", func(r *Request) {
			r.Loads = []sample.Load{bulk, {Kind: "rr"}}
		}, "load rr: window 0s, warm-up 0s: must be positive"},
		{"no-cell", func(r *Request) {
			r.Modes, r.From, r.Baseline = []mode.Name{mode.Shared},
				[]mode.Placement{mode.FromRemote}, mode.Shared
		}, "nothing to measure: shared from another machine: there is no such path: it can be " +
			"reached from container"},
		{"no-cell-and-nothing-skipped", func(r *Request) {
			r.Modes, r.Baseline = []mode.Name{"no-such-mode"}, "none"
		}, "nothing to measure: no usual mode has a path from the machine itself"},
		{"no-way-out", func(r *Request) {
			r.Modes, r.From, r.To = nil, []mode.Placement{mode.FromRemote},
				[]mode.Target{mode.ToOutside}
		}, "nothing to measure: no usual mode has a path from another machine to outside"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Make(request(tt.change))
			if err == nil || err.Error() != tt.want {
				t.Errorf("error %v, want %q; cells %v", err, tt.want, showAll(p.Cells))
			}
		})
	}
	if _, err := Make(request(func(r *Request) { r.Rounds, r.Budget = 3, 0 })); err != nil {
		t.Error(err)
	}
}

func order(p sample.Plan, round int) (out []int) {
	for _, t := range Turns(p, round) {
		out = append(out, t.Cells...)
	}
	return out
}

func TestOrder(t *testing.T) {
	p := sample.Plan{Seed: 7, Cells: make([]sample.Cell, 8)}
	const rounds = 50
	different, firsts := map[string]bool{}, map[int]bool{}
	for round := range rounds {
		got := order(p, round)
		if again := order(p, round); !slices.Equal(got, again) {
			t.Fatalf("round %d: %v, then %v", round, got, again)
		}
		sorted := slices.Sorted(slices.Values(got))
		for i, c := range sorted {
			if i != c {
				t.Fatalf("round %d: %v visits not every cell once", round, got)
			}
		}
		if len(got) != len(p.Cells) {
			t.Fatalf("round %d: %v", round, got)
		}
		different[fmt.Sprint(got)] = true
		firsts[got[0]] = true
	}
	if len(different) < rounds-1 {
		t.Errorf("%d rounds have %d orders", rounds, len(different))
	}
	if len(firsts) != len(p.Cells) {
		t.Errorf("only the cells %v ever come first", firsts)
	}
	other := sample.Plan{Seed: 8, Cells: p.Cells}
	if slices.Equal(order(p, 0), order(other, 0)) && slices.Equal(order(p, 1), order(other, 1)) {
		t.Error("another seed gives the same order")
	}
	if got := order(sample.Plan{}, 0); len(got) != 0 {
		t.Errorf("order of no cells: %v", got)
	}
}

// Any version must reproduce the order of visits from a file's seed.
func TestOrderIsPinned(t *testing.T) {
	p := sample.Plan{Seed: 2445519278, Cells: make([]sample.Cell, 8)}
	want := [][]int{{4, 1, 6, 2, 5, 7, 3, 0}, {6, 3, 0, 4, 7, 2, 1, 5}}
	for round, cells := range want {
		if got := order(p, round); !slices.Equal(got, cells) {
			t.Errorf("round %d: %v, want %v", round, got, cells)
		}
	}
}

func TestDrop(t *testing.T) {
	p, err := Make(request(func(r *Request) {
		r.Modes, r.Loads = []mode.Name{mode.Bridge, mode.PublishNAT, mode.Shared},
			[]sample.Load{bulk, rr}
	}))
	if err != nil {
		t.Fatal(err)
	}
	before, skips := len(p.Cells), len(p.Skipped)
	got := Drop(p, func(c sample.Cell) *sample.Skip {
		if c.Mode != mode.PublishNAT {
			return nil
		}
		return &sample.Skip{Mode: c.Mode, From: c.From, To: c.To, On: c.On, Reason: "no nf_nat",
			Remedy: "modprobe nf_nat"}
	})
	want := []string{
		"host host>loopback bulk", "host host>loopback bulk!", "bridge host>container bulk",
		"host host>loopback rr", "host host>loopback rr!", "bridge host>container rr",
	}
	if !slices.Equal(showAll(got.Cells), want) {
		t.Errorf("cells %v", showAll(got.Cells))
	}
	// Two loads over two targets: two paths, each listed once, behind what
	// had been skipped before.
	if len(got.Skipped) != skips+2 || got.Skipped[0].Mode != mode.Shared ||
		got.Skipped[1].To != mode.ToLoopback || got.Skipped[2].To != mode.ToAddress {
		t.Errorf("skipped %+v", got.Skipped)
	}
	if len(p.Cells) != before || len(p.Skipped) != skips || p.Cells[3].Mode != mode.PublishNAT {
		t.Error("Drop changed the plan that it was given")
	}
	none := Drop(p, func(c sample.Cell) *sample.Skip {
		return &sample.Skip{Mode: c.Mode, Reason: "no"}
	})
	if len(none.Cells) != 0 || len(none.Skipped) != skips+3 {
		t.Errorf("dropping all leaves %v, %v", showAll(none.Cells), none.Skipped)
	}
	all := Drop(p, func(sample.Cell) *sample.Skip { return nil })
	if !slices.Equal(all.Cells, p.Cells) || !slices.Equal(all.Skipped, p.Skipped) {
		t.Error("dropping nothing changes the plan")
	}
}

func TestRoundTime(t *testing.T) {
	cell := func(load string) sample.Cell { return sample.Cell{Load: load} }
	for _, tt := range []struct {
		name  string
		cells []sample.Cell
		want  float64
	}{
		{"none", nil, 0},
		{"bulk", []sample.Cell{cell("bulk")}, 0.1 + 0.25 + visitOverhead},
		{"both-and-a-control", []sample.Cell{cell("bulk"), cell("bulk"), cell("rr")},
			2*(0.1+0.25) + 0.05 + 0.25 + 3*visitOverhead},
		{"unknown-load", []sample.Cell{cell("udp")}, visitOverhead},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := RoundTime(sample.Plan{Loads: []sample.Load{bulk, rr}, Cells: tt.cells})
			if math.Abs(got-tt.want) > 1e-9 {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestUnpaced(t *testing.T) {
	r := request(func(r *Request) {
		r.Modes, r.Loads, r.Unpaced = []mode.Name{mode.Bridge, mode.PublishNAT},
			[]sample.Load{bulk, rr}, "congestion=reno"
	})
	p, err := Make(r)
	if err != nil {
		t.Fatal(err)
	}
	var tuned []string
	for _, c := range p.Cells {
		if c.Tune != "" {
			tuned = append(tuned, c.Name()+" "+c.Load)
		}
	}
	if !slices.Equal(tuned, []string{"host bulk", "bridge bulk"}) ||
		p.Unpaced != "congestion=reno" {
		t.Errorf("tuned %v, %q", tuned, p.Unpaced)
	}
}

func TestRemedies(t *testing.T) {
	r := request(func(r *Request) {
		r.Modes = []mode.Name{mode.Bridge, mode.RootlessPublish}
		r.From, r.To = []mode.Placement{mode.FromContainer},
			[]mode.Target{mode.ToContainer, mode.ToOutside}
		r.Loads = []sample.Load{bulk, rr}
		r.Remedies = []sample.Lever{{Name: "mtu-65520",
			Variant: sample.Variant{Mode: mode.RootlessPublish, Tune: "mtu=65520"}}}
	})
	p, err := Make(r)
	if err != nil {
		t.Fatal(err)
	}
	var tuned []string
	for _, c := range p.Cells {
		if c.Tune != "" {
			tuned = append(tuned, fmt.Sprint(c.Mode, " ", c.To, " ", c.Tune, " ", c.Load))
		}
	}
	if want := []string{"rootless-publish outside mtu=65520 bulk"}; !slices.Equal(tuned, want) ||
		len(p.Remedies) != 1 {
		t.Errorf("tuned %v, want %v; %v", tuned, want, p.Remedies)
	}
}

func TestPins(t *testing.T) {
	r := request(func(r *Request) {
		r.Modes, r.Loads, r.Epoch = []mode.Name{mode.Bridge}, []sample.Load{bulk, rr}, 1
	})
	for i := range r.Loads {
		r.Loads[i].Slice = 0.004
	}
	r.Pins = []sample.Pinning{{Name: sample.PinFar}, {Name: sample.PinNear}}
	p, err := Make(r)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Cells) != 6*len(r.Loads) {
		t.Errorf("%d cells", len(p.Cells))
	}
	turns := Turns(p, 0)
	if len(turns) != 2*len(r.Loads) {
		t.Errorf("%d turns", len(turns))
	}
	for _, turn := range turns {
		first := p.Cells[turn.Cells[0]]
		if !turn.Epoch || len(turn.Cells) != 3 {
			t.Errorf("turn %+v", turn)
		}
		for _, i := range turn.Cells {
			if p.Cells[i].Pin != first.Pin || p.Cells[i].Load != first.Load {
				t.Errorf("%+v beside %+v", p.Cells[i], first)
			}
		}
	}
}

func TestPlacebo(t *testing.T) {
	placebos := func(slice float64, modes ...mode.Name) (n int) {
		l := bulk
		l.Slice = slice
		p, err := Make(request(func(r *Request) {
			r.Modes, r.Loads, r.Epoch = modes, []sample.Load{l}, 1
		}))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range p.Cells {
			if c.Placebo {
				n++
				if !c.Control || c.Name() != p.Baseline {
					t.Errorf("placebo %+v", c)
				}
			}
		}
		return n
	}
	if n := placebos(0.004, mode.Bridge, mode.PublishProxy); n != 1 {
		t.Errorf("%d with docker-proxy", n)
	}
	if n := placebos(0.004, mode.Bridge, mode.Pasta); n != 1 {
		t.Errorf("%d placebos beside pasta", n)
	}
	if n := placebos(0.004, mode.Bridge); n != 0 {
		t.Errorf("%d without docker-proxy", n)
	}
	if n := placebos(0, mode.Bridge, mode.PublishProxy); n != 0 {
		t.Errorf("%d in visits", n)
	}
}
