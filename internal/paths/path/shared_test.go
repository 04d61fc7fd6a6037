package path_test

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// One path crosses the bridge once, the other twice, up to a proxy and down again.
func TestPathsOnOneBridge(t *testing.T) {
	const here = "this machine"
	bridge := local.BridgeHop(nil, here, "docker0", true)
	ports := local.SwitchHop(here, "docker0", nil, nil)
	of := func(guard bool, hops ...path.Hop) *path.Path {
		p := &path.Path{Hops: hops}
		for i := range p.Hops {
			if p.Hops[i].Name == ports.Name {
				p.Hops[i].Shared = p
			}
		}
		if guard {
			p.Guards = []path.Hop{local.Unused(bridge)}
		}
		path.Share(p, func(h path.Hop) bool { return h.Where == here })
		return p
	}
	host := of(false, bridge)
	relayed := of(false, local.BridgeLegHop(nil, here, "docker0", "in"),
		local.BridgeLegHop(nil, here, "docker0", "out"))
	switched := of(true, ports)
	again := of(true, path.Hop{Kind: mode.HopBridge, Name: ports.Name, Where: here})
	all := []*path.Path{host, relayed, switched, again}

	moved := []path.Moved{{Forward: 1e9, Backward: 1e6}, {Forward: 2e9, Backward: 3e6},
		{Forward: 5e9, Backward: 5e9}, {Forward: 7e9, Backward: 7e9}}
	for i := range moved {
		moved[i].Connections, moved[i].Segment, moved[i].Seconds = 1, 1448, 1
	}
	packets := func(bytes uint64) uint64 { return bytes/1448 + 2 }
	sent, received := uint64(1e9+2e9+3e6), uint64(1e6+2e9+3e6)
	device := sample.Counters{ForwardBytes: sent, ForwardPackets: packets(sent),
		BackwardBytes: received, BackwardPackets: packets(received)}
	for _, tt := range []struct {
		name    string
		p       *path.Path
		hop     int
		counted sample.Counters
		who     int
	}{
		{"host", host, 0, device, 2},
		{"in", relayed, 0, sample.Counters{ForwardBytes: received,
			ForwardPackets: packets(received)}, 2},
		{"out", relayed, 1, sample.Counters{ForwardBytes: sent, ForwardPackets: packets(sent)}, 2},
		{"guard", switched, 1, device, 2},
		{"ports", switched, 0, sample.Counters{
			ForwardBytes: 5e9, ForwardPackets: packets(5e9), BackwardBytes: 5e9,
			BackwardPackets: packets(5e9)}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := path.Among(tt.p, all)[tt.hop]
			if len(h.Crossing) != tt.who {
				t.Errorf("%d cross it, want %d", len(h.Crossing), tt.who)
			}
			check := func(c sample.Counters, want bool) {
				t.Helper()
				w := path.Witness([]path.Hop{h}, make([]sample.Counters, 1), []sample.Counters{c},
					moved...)
				if w.OK != want {
					t.Errorf("%+v: %+v, want %t", c, w, want)
				}
			}
			check(tt.counted, true)
			foreign := tt.counted
			foreign.ForwardBytes, foreign.ForwardPackets = foreign.ForwardBytes+8e9,
				foreign.ForwardPackets+8e6
			check(foreign, false)
			missing := tt.counted
			missing.ForwardBytes /= 2
			check(missing, false)
		})
	}
}
