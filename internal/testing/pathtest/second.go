package pathtest

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// SecondPort checks that traffic over either port, or over both, proves the path, and that no rule
// or relay counts the traffic of another path of the same kind.
func SecondPort(t *testing.T, b path.Builder, spec path.Spec, o Options) {
	spec.Second = true
	check(t, b, spec, o)
	p := Built(t, b, spec)
	if p.Second == 0 {
		t.Fatal("there is no second port")
	}
	first := func() Traffic { return Exchange(t, p) }
	second := func() Traffic { return Exchange(t, SecondOf(p)) }
	for _, c := range []struct {
		name string
		move []func() Traffic
	}{{"the first", []func() Traffic{first}}, {"the second", []func() Traffic{second}},
		{"both", []func() Traffic{first, second}}} {
		if w := Seen(t, p, c.move...); !w.OK {
			t.Errorf("%s: %s", c.name, w.Evidence)
		}
	}
	own := slices.DeleteFunc(slices.Clone(p.Hops), func(h path.Hop) bool {
		return !counts(h) || o.common(h)
	})
	if len(own) == 0 {
		return
	}
	other := Built(t, b, spec)
	w := Seen(t, p, func() Traffic { return Exchange(t, SecondOf(other)) })
	for _, h := range own {
		if !strings.Contains(w.Evidence, h.Name+" ("+h.Where+"): saw no connection") {
			t.Errorf("traffic on another path's second port: %+v; hop %s", w, h.Name)
		}
	}
}

// Built builds a path, which is closed with the test.
func Built(t *testing.T, b path.Builder, spec path.Spec) *path.Path {
	t.Helper()
	p, err := b.Build(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return p
}

// SecondOf returns a copy of the path that uses its second port.
func SecondOf(p *path.Path) *path.Path {
	s, c := p.Servers[0], p.Clients[0]
	s.Listen = netip.AddrPortFrom(s.Listen.Addr(), p.Second)
	c.Dial = netip.AddrPortFrom(c.Dial.Addr(), p.Second)
	return &path.Path{Spec: p.Spec, Servers: []path.Server{s}, Clients: []path.Client{c}}
}

// Seen moves traffic and returns how the path's hops and guards judge it without the ends' word. It
// starts again if a leg sent more again than that judgement allows for.
func Seen(t *testing.T, p *path.Path, move ...func() Traffic) sample.Witness {
	t.Helper()
	hops := slices.Concat(p.Hops, p.Guards)
	for attempt := 1; ; attempt++ {
		before, err := path.ReadAll(hops)
		if err != nil {
			t.Fatal(err)
		}
		moved := int64(0)
		for _, m := range move {
			traffic := m()
			for _, each := range traffic.Moved {
				moved += max(each.Forward, each.Backward)
			}
			traffic.Stop()
		}
		after, err := path.ReadAll(hops)
		if err != nil {
			t.Fatal(err)
		}
		if attempt == 5 || !sentAgain(hops, before, after, moved) {
			return path.WitnessForeign(hops, before, after, 1)
		}
		t.Logf("measured again: more than a twentieth of %d bytes was sent again", moved)
	}
}

func sentAgain(hops []path.Hop, before, after []sample.Counters, moved int64) bool {
	const maxHeader = 114
	for i, h := range hops {
		c := after[i].Sub(before[i])
		net := max(int64(c.ForwardBytes)-int64(maxHeader*c.ForwardPackets),
			int64(c.BackwardBytes)-int64(maxHeader*c.BackwardPackets))
		if h.Expect == path.Carries && net > moved+moved/20 {
			return true
		}
	}
	return false
}

// Devices and masquerading also count neighbour discovery or multicast.
func counts(h path.Hop) bool {
	return h.Expect == path.Relays || h.Expect == path.Matches && h.Kind != mode.HopSNAT
}
