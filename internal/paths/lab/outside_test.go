package lab

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

// Both ends of the wire must count the load, and the NAT rule each connection once.
func TestOutside(t *testing.T) {
	var s *site
	l := started(t, &Lab{test: hooks{built: func(b *site) { s = b }}})
	p := build(t, l, path.Spec{Mode: mode.Bridge, From: mode.FromContainer, To: mode.ToOutside})
	far := s.wireHop()
	far.Where, far.Read = s.b.name, local.Device(s.b.ns, wireName, true)
	p.Hops = append(p.Hops, far)
	pathtest.CarriesTwice(t, p)

	masquerade := p.Hops[2]
	before, err := masquerade.Read()
	if err != nil || masquerade.Kind != mode.HopSNAT {
		t.Fatal(masquerade.Kind, err)
	}
	const connections = 3
	for range connections {
		tr := pathtest.Exchange(t, p)
		tr.Stop()
	}
	after, err := masquerade.Read()
	if got := after.Sub(before).Hits; got != connections || err != nil {
		t.Errorf("%d connections hit the rule %d times, %v", connections, got, err)
	}
}
