package link

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// An address whose local route was removed is as one whose route is not there yet.
func TestUnrouted(t *testing.T) {
	n := netnstest.New(t)
	ipBatch(t, n, `
link set lo up
link add eth0 type veth peer name far
link set eth0 up
link set far up
addr add 2001:db8::1/64 dev eth0 nodad
addr add 2001:db8::2/64 dev eth0 nodad
addr add 2001:db8:1::1/128 dev lo
addr add 192.0.2.1/24 dev eth0
`)
	testwait.Until(t, time.Minute, "all addresses are routed", func() bool {
		return len(carrying(t, n)) == 3 && len(unrouted(t, n)) == 0
	})
	run(t, n, "ip -6 route del local 2001:db8::2 dev eth0 table local")
	want := []netip.Addr{netip.MustParseAddr("2001:db8::2")}
	if got := unrouted(t, n); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	ipBatch(t, n, "link set far down\n") // whose packets nobody could send
	testwait.Until(t, time.Minute, "only addresses that can be reached are told", func() bool {
		return len(unrouted(t, n)) == 0
	})
}

func unrouted(t *testing.T, n *netns.NS) (out []netip.Addr) {
	t.Helper()
	if err := n.Do(func() (err error) { out, err = Unrouted(); return err }); err != nil {
		t.Fatal(err)
	}
	return out
}
