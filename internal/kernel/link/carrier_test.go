package link

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

func TestCarries(t *testing.T) {
	const (
		unknown, down, below, up = 0, 2, 3, 6 // IF_OPER_UNKNOWN, _DOWN, _LOWERLAYERDOWN, _UP
		running, carrier         = unix.IFF_RUNNING, unix.IFF_LOWER_UP
	)
	for _, c := range []struct {
		what, kind string
		flags      uint32
		state      byte
		want       bool
	}{
		{"a bridge without ports", "bridge", running | carrier, unknown, true},
		{"a bridge that lost its carrier just now", "bridge", running, unknown, false},
		{"a bridge that got its carrier just now", "bridge", carrier, down, false},
		{"a pair", "veth", running | carrier, up, true},
		{"a pair that was made just now", "veth", running | carrier, unknown, false},
		{"a pair whose other end is down", "veth", 0, below, false},
		{"a dummy", "dummy", running | carrier, unknown, true},
		{"hardware", "", running | carrier, up, true},
	} {
		b := linkMessage(Saved{Name: "x", Index: 7}, -1,
			netlink.Attribute{Type: unix.IFLA_OPERSTATE, Data: []byte{c.state}},
			nested(unix.IFLA_LINKINFO, netlink.Attribute{Type: unix.IFLA_INFO_KIND,
				Data: []byte(c.kind)}))
		binary.NativeEndian.PutUint32(b[8:], unix.IFF_UP|c.flags)
		if got, err := carries(b); err != nil || got != c.want {
			t.Errorf("%s: %v, %v, want %v", c.what, got, err, c.want)
		}
	}
}

// The kernel calls a bridge running for a second after it lost its carrier to its first port.
func TestCarrying(t *testing.T) {
	n := netnstest.New(t)
	const index = 50
	ipBatch(t, n, `
link add br0 index 50 type bridge
link set br0 up
link add port type veth peer name guest
link set port master br0
link set port up
`)
	testwait.Until(t, time.Minute, "the bridge has no carrier", func() bool {
		return !carrying(t, n)[index]
	})
	ipBatch(t, n, "link set guest up\n")
	testwait.Until(t, time.Minute, "the bridge and the pair carry", func() bool {
		return len(carrying(t, n)) == 3
	})
	ipBatch(t, n, "nexthop add id 1 dev br0\n") // refused without a carrier
}

func carrying(t *testing.T, n *netns.NS) (out map[int]bool) {
	t.Helper()
	if err := n.Do(func() (err error) { out, err = Carrying(); return err }); err != nil {
		t.Fatal(err)
	}
	return out
}

// A port whose carrier the kernel has not noticed yet looks as one that root has disabled.
func TestSettled(t *testing.T) {
	port := func(state byte, up bool) []Saved {
		return []Saved{{Index: 2, Kind: "bridge", Up: up}, {Index: 3, Kind: "veth", Master: 2, Up: true,
			Lower: true, Slave: marshal(netlink.Attribute{Type: unix.IFLA_BRPORT_STATE,
				Data: []byte{state}})}}
	}
	for name, c := range map[string]struct {
		lists   [][]Saved // the last one repeats
		blocked bool
		again   bool // until a time has passed
	}{
		"noticed late": {[][]Saved{port(portDisabled, true), port(portDisabled, true),
			port(portForwards, true)}, false, false},
		"disabled":            {[][]Saved{port(portDisabled, true)}, true, true},
		"of a bridge is down": {[][]Saved{port(portDisabled, false)}, true, false},
		"of a spanning tree":  {[][]Saved{port(portBlocking, true)}, true, false},
	} {
		reads := 0
		got, err := settled(func() ([]Saved, error) {
			reads++
			return c.lists[min(reads, len(c.lists))-1], nil
		})
		if err != nil || got[1].Blocked() != c.blocked || !c.again && reads != len(c.lists) ||
			c.again && reads == 1 {
			t.Errorf("%s: %d times, %+v, %v", name, reads, got, err)
		}
	}
}
