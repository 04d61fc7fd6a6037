package observe

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestBetween(t *testing.T) {
	docker0 := link.Tie{Name: "docker0", Kind: "bridge"}
	bond0, vrf := link.Tie{Name: "bond0", Kind: "bond"}, link.Tie{Name: "red", Kind: "vrf"}
	ovs := link.Tie{Name: "ovs-system", Kind: "openvswitch"}
	at := func(space, device int, tie link.Tie, master ...link.Tie) (in, out port) {
		in = port{Point: tokens.Point{Space: space, Device: device}, Tie: tie}
		if len(master) > 0 {
			in.master = master[0]
		}
		out = in
		out.Out = true
		return in, out
	}
	lo, loOut := at(0, 1, link.Tie{Name: "lo", Kind: "loopback"})
	_, otherLoOut := at(1, 1, link.Tie{Name: "lo", Kind: "loopback"})
	veth := func(name string, under, master int) link.Tie {
		return link.Tie{Name: name, Kind: "veth", Under: under, Master: master}
	}
	host, hostOut := at(0, 7, veth("veth1", 2, 5), docker0)
	_, otherOut := at(0, 8, veth("veth2", 2, 5), docker0)
	_, strangerOut := at(0, 9, veth("veth3", 2, 6), link.Tie{Name: "br-1", Kind: "bridge"})
	eth0, eth0Out := at(1, 2, veth("eth0", 7, 0))
	br, brOut := at(0, 5, docker0)
	wire, wireOut := at(0, 3, link.Tie{Name: "ens3"})
	slave, slaveOut := at(0, 4, link.Tie{Name: "ens4", Master: 10}, bond0)
	bond, bondOut := at(0, 10, bond0)
	enslaved, _ := at(0, 4, link.Tie{Name: "ens4", Master: 11}, vrf)
	red, _ := at(0, 11, vrf)
	vlan, vlanOut := at(1, 4, link.Tie{Name: "ens3.5", Kind: "vlan", Under: 3})
	mac, macOut := at(1, 4, link.Tie{Name: "mac0", Kind: "macvlan", Under: 3})
	mac2, _ := at(2, 4, link.Tie{Name: "mac0", Kind: "macvlan", Under: 3})
	mac3, _ := at(2, 4, link.Tie{Name: "mac1", Kind: "macvlan", Under: 4})
	vx, vxOut := at(2, 4, link.Tie{Name: "vxlan0", Kind: "vxlan"})
	switched, _ := at(0, 12, veth("v1", 2, 14), ovs)
	_, switchedOut := at(0, 13, veth("v2", 2, 14), ovs)
	_, plugged := at(0, 14, link.Tie{Name: "tap0", Kind: "tun"})
	bridge := tokens.Leg{Kind: sample.LegBridge, Device: "docker0"}
	pair := tokens.Leg{Kind: sample.LegVeth, Device: "veth1"}
	routing := tokens.Leg{Kind: sample.LegRouting}
	unknown := tokens.Leg{}
	for name, tt := range map[string]struct {
		from, to port
		routed   bool
		want     tokens.Leg
	}{
		"loopback":                {loOut, lo, false, tokens.Leg{Kind: sample.LegLoopback}},
		"two loopbacks":           {otherLoOut, lo, false, unknown},
		"to a container":          {hostOut, eth0, false, pair},
		"from a container":        {eth0Out, host, false, pair},
		"no pair":                 {otherOut, eth0, false, unknown},
		"to a bridge's port":      {brOut, hostOut, false, bridge},
		"to a bridge":             {host, br, false, bridge},
		"over a bridge":           {host, otherOut, false, bridge},
		"from a port, redirected": {host, brOut, false, bridge},
		"over no bridge":          {host, strangerOut, false, unknown},
		"to another's port":       {brOut, strangerOut, false, unknown},
		"from a bridge to a port": {br, hostOut, false, unknown},
		"routed":                  {wire, brOut, true, routing},
		"routed back":             {br, wireOut, true, routing},
		"routed to itself":        {br, brOut, true, routing},
		"routed out of a port":    {wire, hostOut, true, unknown},
		"routed, by a pair":       {hostOut, eth0, true, unknown},
		"not routed":              {wire, brOut, false, unknown},
		"to a bond":               {slave, bond, false, tokens.Leg{Kind: "bond", Device: "bond0"}},
		"from a bond":             {bondOut, slaveOut, false, tokens.Leg{Kind: "bond", Device: "bond0"}},
		"of another bond":         {enslaved, bond, false, unknown},
		"to a VRF":                {enslaved, red, false, tokens.Leg{Kind: "vrf", Device: "red"}},
		"to a VLAN":               {wire, vlan, false, tokens.Leg{Kind: "vlan", Device: "ens3.5"}},
		"from a VLAN":             {vlanOut, wireOut, false, tokens.Leg{Kind: "vlan", Device: "ens3.5"}},
		"to a macvlan":            {wire, mac, false, tokens.Leg{Kind: "macvlan", Device: "mac0"}},
		"from a macvlan":          {macOut, wireOut, false, tokens.Leg{Kind: "macvlan", Device: "mac0"}},
		"between macvlans":        {macOut, mac2, false, tokens.Leg{Kind: "macvlan"}},
		"over another device":     {macOut, mac3, false, unknown},
		"a tunnel":                {vxOut, vx, false, tokens.Leg{Kind: "vxlan"}},
		"Open vSwitch":            {switched, switchedOut, false, tokens.Leg{Kind: "Open vSwitch"}},
		"a program":               {plugged, eth0, false, unknown},
		"a wire":                  {wireOut, eth0, false, unknown},
		"of another machine":      {eth0, wireOut, true, unknown},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := between(tt.from, tt.to, tt.routed)
			if !ok {
				got = tokens.Leg{}
			}
			if got != tt.want || ok != (tt.want != unknown) {
				t.Errorf("%+v, %t, want %+v", got, ok, tt.want)
			}
		})
	}
}
