package build

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// A copy of nonsense ends with an error or lacks things; its process does not crash.
func TestHostile(t *testing.T) {
	s := newSite(t)
	s.in(s.spaces[0], "iptables -t nat -A PREROUTING -p tcp --dport 8080 -j DNAT --to-destination 172.17.0.2:80")
	good, err := json.Marshal(s.machine())
	if err != nil {
		t.Fatal(err)
	}
	all := func(f func(m *replica.Machine, l *link.Saved)) func(*replica.Machine) {
		return func(m *replica.Machine) {
			for i := range m.Spaces {
				for j := range m.Spaces[i].Links {
					f(m, &m.Spaces[i].Links[j])
				}
			}
		}
	}
	cases := map[string]func(*replica.Machine){
		"its own master": all(func(_ *replica.Machine, l *link.Saved) { l.Master = l.Index }),
		"its own parent": all(func(_ *replica.Machine, l *link.Saved) { l.Parent, l.ParentSpace = l.Index, link.Here }),
		"a macvlan of itself": all(func(_ *replica.Machine, l *link.Saved) {
			l.Kind, l.Parent, l.ParentSpace = "macvlan", l.Index, link.Here
		}),
		"VLANs in a circle": all(func(_ *replica.Machine, l *link.Saved) {
			l.Kind, l.Parent, l.ParentSpace = "vlan", l.Index%5+1, link.Here
		}),
		"bridges in a circle": all(func(_ *replica.Machine, l *link.Saved) { l.Kind, l.Master = "bridge", l.Index%5+1 }),
		"one index":           all(func(_ *replica.Machine, l *link.Saved) { l.Index = 2 }),
		"no index":            all(func(_ *replica.Machine, l *link.Saved) { l.Index = -l.Index }),
		"the last index":      all(func(_ *replica.Machine, l *link.Saved) { l.Index += 1<<31 - 10 }),
		"no name":             all(func(_ *replica.Machine, l *link.Saved) { l.Name = "" }),
		"one name":            all(func(_ *replica.Machine, l *link.Saved) { l.Name = "docker0" }),
		"a path":              all(func(_ *replica.Machine, l *link.Saved) { l.Name = "../../x" }),
		"other namespaces":    all(func(_ *replica.Machine, l *link.Saved) { l.ParentSpace = 1 << 20 }),
		"no cards":            all(func(_ *replica.Machine, l *link.Saved) { l.Kind = "" }),
	}
	for seed := range uint64(6) {
		cases["random "+string(rune('a'+seed))] = func(m *replica.Machine) { corrupt(m, seed) }
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			var m replica.Machine
			if err := json.Unmarshal(good, &m); err != nil {
				t.Fatal(err)
			}
			change(&m)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			r, err := replica.Start(ctx, &m, []replica.Socket{socket(0, "0.0.0.0:80")})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			var dials []replica.Dial
			for _, c := range []replica.Client{{}, {Space: 1}, {Card: "eth0"}, {Bridge: "docker0"}} {
				dials = append(dials, replica.Dial{Client: c, Proto: "tcp", Explain: c.Space == 1,
					To: netip.MustParseAddrPort("192.0.2.10:80")})
			}
			if _, err := r.Dial(ctx, dials); err != nil {
				t.Error(err)
			}
		})
	}
}

func corrupt(m *replica.Machine, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 38))
	const share = 20
	for i := range m.Spaces {
		s := &m.Spaces[i]
		for _, list := range [][]raw.Message{s.Addresses, s.Routes, s.Policy, s.Neighbours,
			s.Nft.Messages} {
			for _, msg := range list {
				for k := range msg.Data {
					if r.IntN(share) == 0 {
						msg.Data[k] = byte(r.Uint32())
					}
				}
			}
		}
	}
}
