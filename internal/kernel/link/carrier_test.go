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
