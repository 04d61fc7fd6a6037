package ports

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// manyBridges is a machine with a server, and n bridges with a container each.
func manyBridges(n int) *Facts {
	f := &Facts{Space: "net:[1]", Listeners: []Listener{{Proto: "tcp", Addr: addrPort("0.0.0.0:8080"),
		Inode: 1, Owners: []Process{{PID: serverPID, Name: "web"}}}},
		Devices: []Device{{Name: "eth0", Index: 1, Kind: "device", Up: true, Uplink: true,
			Addrs: []netip.Prefix{netip.MustParsePrefix("198.18.0.1/24")}}}}
	for i := range n {
		bridge, outer, inner := 10+i, 10+n+i, 2
		net := netip.AddrFrom4([4]byte{10, byte(i / 250), byte(i % 250), 1})
		in := net.Next()
		f.Devices = append(f.Devices,
			Device{Name: fmt.Sprintf("br%d", i), Index: bridge, Kind: "bridge", Up: true,
				Addrs: []netip.Prefix{netip.PrefixFrom(net, 24)}},
			Device{Name: fmt.Sprintf("v%d", i), Index: outer, Kind: "veth", Up: true, Peer: inner,
				Master: fmt.Sprintf("br%d", i)})
		f.Containers = append(f.Containers, Container{Name: fmt.Sprintf("c%d", i), PID: 1000 + i,
			Space: fmt.Sprintf("net:[%d]", 2+i), Addrs: []netip.Addr{in},
			Devices: []Device{{Name: "eth0", Index: inner, Kind: "veth", Up: true, Peer: outer,
				Addrs: []netip.Prefix{netip.PrefixFrom(in, 24)}}}})
	}
	return f
}

// The plan of a port's connections grows with the number of bridges, as those do, or with its
// square: with its cube, 300 bridges took a minute.
func TestPlanOfManyBridges(t *testing.T) {
	cost := func(n int) (allocations float64, dials int) {
		f := manyBridges(n)
		m := &replica.Machine{Spaces: []replica.Space{{ID: f.Space}}}
		return testing.AllocsPerRun(1, func() {
			dials = len(NewCopy(f, m, 8080).Dials())
		}), dials
	}
	const n = 40
	few, dials := cost(n)
	many, more := cost(2 * n)
	if more < 2*dials-10 || dials < 2*n {
		t.Errorf("%d connections for %d bridges, %d for %d", dials, n, more, 2*n)
	}
	if many > 5*few {
		t.Errorf("%.0f allocations for %d bridges, %.0f for %d", few, n, many, 2*n)
	}
}
