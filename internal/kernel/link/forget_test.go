package link

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// A client's packets cross a bridge to a router, beyond which the MTU is smaller.
func TestForget(t *testing.T) {
	client, router := netnstest.New(t), netnstest.New(t)
	tid, err := client.TID()
	if err != nil {
		t.Fatal(err)
	}
	for _, ns := range []*netns.NS{client, router} {
		if err := ns.Do(func() error {
			return errors.Join(sysctl.Set("net.ipv6.conf.default.accept_dad", "0"),
				sysctl.Set("net.ipv4.ip_forward", "1"),
				sysctl.Set("net.ipv6.conf.all.forwarding", "1"))
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []string{"link add br0 type bridge", "addr add 192.0.2.1/24 dev br0",
		"addr add 2001:db8::1/64 dev br0", "link set br0 up",
		fmt.Sprint("link add port type veth peer name eth0 netns ", tid),
		"link set port master br0 up", "link add far mtu 1280 type veth peer name end",
		"link set far up", "link set end up",
		"route add 198.51.100.0/24 dev far", "route add 2001:db8:1::/64 dev far"} {
		run(t, router, "ip "+c)
	}
	for _, c := range []string{"link set eth0 up", "addr add 192.0.2.2/24 dev eth0",
		"addr add 2001:db8::2/64 dev eth0", "route add default via 192.0.2.1",
		"route add default via 2001:db8::1"} {
		run(t, client, "ip "+c)
	}
	const v4, v6, learned = "198.51.100.7", "2001:db8:1::7", "02:00:00:00:00:99"
	known := func() []string {
		return strings.Fields(run(t, client, "ip route show cache") + "\n" +
			run(t, client, "ip -6 route show cache") + "\n" + run(t, router,
			"bridge fdb show dynamic"))
	}
	testwait.Until(t, time.Minute, "the client knows the MTU", func() bool {
		_ = client.Do(func() error {
			for _, to := range []string{v4, v6} {
				c, err := net.Dial("udp", net.JoinHostPort(to, "9"))
				if err != nil { // it has no address yet
					return nil
				}
				_, _ = c.Write(make([]byte, 1400)) // fails once the MTU is known
				_ = c.Close()
			}
			return nil
		})
		k := known()
		return slices.Contains(k, v4) && slices.Contains(k, v6)
	})
	run(t, router, "bridge fdb add "+learned+" dev port master dynamic")
	for range 2 { // the second time, nothing is left
		if err := errors.Join(client.Do(Forget), router.Do(Forget)); err != nil {
			t.Fatal(err)
		}
	}
	k := known()
	for _, what := range []string{v4, v6, learned} {
		if slices.Contains(k, what) {
			t.Errorf("%s is not forgotten: %q", what, k)
		}
	}
}
