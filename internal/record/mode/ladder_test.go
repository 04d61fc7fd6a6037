package mode

import (
	"slices"
	"strings"
	"testing"
)

var hopWords = map[HopKind]string{
	HopVeth:    "veth",
	HopBridge:  "bridge",
	HopDNAT:    "NAT",
	HopSNAT:    "NAT",
	HopProxy:   "docker-proxy",
	HopIPVS:    "IPVS",
	HopAccept:  "rule",
	HopMacvlan: "macvlan",
	HopIPvlan:  "ipvlan",
	HopOVS:     "Open vSwitch",
	HopVXLAN:   "VXLAN",
	HopESP:     "ESP",
	HopNetkit:  "netkit",
	HopTap:     "tap", HopRootlessKit: "rootlesskit", HopRootlessPort: "rootlessport",
	HopPasta: "pasta", HopSlirp: "slirp4netns", HopGvisor: "gvisor-tap-vsock",
	HopWire: "wire", HopLoopback: "proxy",
}

func TestLaddersFollowTheCatalogue(t *testing.T) {
	for at := range ladders() {
		p := at.from
		t.Run(string(p+" "+Placement(at.out)), func(t *testing.T) {
			ladder := Ladder(p, at.out)
			height := map[Name]int{}
			for i, r := range ladder {
				m, _ := Find(r.Mode)
				route, ok := m.Route(p, r.To)
				if !ok {
					t.Fatalf("%s has no route to %s", r.Mode, r.To)
				}
				if _, twice := height[r.Mode]; twice {
					t.Errorf("%s is there twice", r.Mode)
				}
				height[r.Mode] = i
				if i == 0 {
					if r.Below != "" || r.Part != "" {
						t.Errorf("the bottom is above %q by %q", r.Below, r.Part)
					}
					continue
				}
				b, ok := height[r.Below]
				if !ok {
					t.Fatalf("%s comes before %q, which is below it", r.Mode, r.Below)
				}
				checkPart(t, p, r, route, ladder[b])
			}
			for _, m := range catalogue {
				routes := m.RoutesInto(p)
				if at.out != "" {
					routes = m.RoutesTo(p, at.out)
				}
				if _, ok := height[m.Name]; ok != (len(routes) > 0) {
					t.Errorf("%s is on the ladder: %t; it has the routes %v", m.Name, ok, routes)
				}
			}
		})
	}
}

func checkPart(t *testing.T, p Placement, r Rung, route Route, below Rung) {
	t.Helper()
	if r.Part == "" || r.Part != strings.Trim(r.Part, " .,") || strings.ContainsRune(r.Part, ';') {
		t.Errorf("%s: part %q", r.Mode, r.Part)
	}
	m, _ := Find(below.Mode)
	from, _ := m.Route(p, below.To)
	if same := slices.Equal(route.Hops, from.Hops); same != r.Unseen {
		t.Errorf("%s (%s) has the hops of %s (%s): %t; its row says %t", r.Mode, route, below.Mode,
			from, same, r.Unseen)
	}
	if strings.Contains(r.Part, "the cluster's network plug-in") { // each has other hops
		return
	}
	for _, h := range route.Hops {
		if !slices.Contains(from.Hops, h) && !strings.Contains(r.Part, hopWords[h]) {
			t.Errorf("%s has the hop %s and %s has not, but the part is %q", r.Mode, h, below.Mode,
				r.Part)
		}
	}
}

func TestClimb(t *testing.T) {
	for _, tt := range []struct {
		name string
		from Placement
		at   Target
		to   []Name
		want string
	}{
		{"the-bottom", FromHost, "", []Name{Native}, "native"},
		{"a-chain", FromHost, "", []Name{PublishProxy},
			"native host bridge-default bridge publish-nat publish-proxy"},
		{"two-chains", FromHost, "", []Name{OVS, PublishNAT},
			"native host bridge-default bridge publish-nat pipework ovs"},
		{"no-rung", FromHost, "", []Name{Overlay}, ""},
		{"encryption", FromRemoteContainer, "", []Name{OverlayEncrypted},
			"host pipework overlay overlay-encrypted"},
		{"usual-from-host", FromHost, "", Usual(),
			"native host bridge-default bridge publish-nat publish-proxy"},
		{"usual-from-container", FromContainer, "", Usual(),
			"host shared bridge-default bridge publish-nat publish-proxy overlay macvlan-bridge"},
		{"usual-from-remote", FromRemote, "", Usual(),
			"native host routed publish-nat publish-proxy macvlan-bridge"},
		{"outward", FromContainer, ToOutside, []Name{Routed, Overlay, Publish},
			"host pipework bridge-default bridge routed overlay"},
		{"outward-over-IPv6", FromContainer, ToOutside6, []Name{Pasta, IPvlanL2},
			"host pasta macvlan-bridge ipvlan-l2"},
		{"outward-from-the-machine", FromHost, ToOutside, Names(), "native host"},
		{"outward-from-elsewhere", FromRemote, ToOutside, Names(), ""},
		{"usual-from-remote-container", FromRemoteContainer, "", Usual(),
			"host routed publish-nat pipework overlay macvlan-bridge"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, r := range Climb(tt.from, tt.at, tt.to) {
				got = append(got, string(r.Mode))
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("got %v, want %s", got, tt.want)
			}
		})
	}
	if all := Climb(FromContainer, "", Names()); len(all) != len(Ladder(FromContainer, "")) {
		t.Errorf("to every mode, only %d rungs lead", len(all))
	}
}
