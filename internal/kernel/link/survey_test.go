package link

import (
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
)

func TestSurvey(t *testing.T) {
	a := netnstest.New(t)
	b := netnstest.New(t)
	tid, err := b.TID()
	if err != nil {
		t.Fatal(err)
	}
	addr := netip.MustParsePrefix("192.0.2.1/24")
	err = a.Do(func() error {
		return errors.Join(AddBridge("br1"), AddVeth("one", "eth0", tid), SetMaster("one", "br1"),
			AddAddr("br1", addr),
			SetMTU("one", 1400), AddDefaultRoute(netip.MustParseAddr("192.0.2.2")))
	})
	if err != nil {
		t.Fatal(err)
	}
	var here, there []Device
	err = errors.Join(
		a.Do(func() (err error) { here, err = Survey(); return err }),
		b.Do(func() (err error) { there, err = Survey(); return err }))
	if err != nil {
		t.Fatal(err)
	}
	find := func(all []Device, name string) Device {
		i := slices.IndexFunc(all, func(d Device) bool { return d.Name == name })
		if i < 0 {
			t.Fatalf("no %s in %+v", name, all)
		}
		return all[i]
	}
	bridge, port, end := find(here, "br1"), find(here, "one"), find(there, "eth0")
	if bridge.Kind != "bridge" || !bridge.Uplink || !slices.Contains(bridge.Addrs, addr) {
		t.Errorf("%+v", bridge)
	}
	if port.Kind != "veth" || port.Master != "br1" || port.MTU != 1400 || port.Peer != end.Index ||
		end.Peer != port.Index {
		t.Errorf("%+v, %+v", port, end)
	}
}

// A default route may have several next hops, be in another table than main, or be two halves.
func TestUplinks(t *testing.T) {
	netnstest.Do(t, func() error {
		out, err := exec.Command("sh", "-ec", `for i in 1 2 3 4 5; do
ip link add br$i type bridge; ip addr add 192.0.$i.1/24 dev br$i; ip link set br$i up
done
ip route add default nexthop via 192.0.1.2 dev br1 nexthop via 192.0.2.2 dev br2
ip route add default via 192.0.3.2 table 300
ip route add 0.0.0.0/1 via 192.0.4.2
ip route add 10.0.0.0/8 via 192.0.5.2
ip route add blackhole default table 301`).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		all, err := Survey()
		for _, d := range all {
			main := d.Name == "br1" || d.Name == "br2"
			router := main || d.Name == "br3" || d.Name == "br4"
			if d.Uplink != main || d.Router != router || d.Uplink6 || d.Router6 {
				t.Errorf("%+v", d)
			}
		}
		return err
	})
}

func TestUsedAndRemove(t *testing.T) {
	ns := netnstest.New(t)
	const mark = "somebody's=pid:[1]/2/3"
	err := ns.Do(func() error {
		err := errors.Join(AddBridge("br1"), AddVeth("one", "other", unix.Gettid()), Up("lo"),
			AddAddr("br1", netip.MustParsePrefix("192.0.2.1/24")),
			AddRoute(netip.MustParsePrefix("198.51.100.0/24"), netip.MustParseAddr("192.0.2.2")),
			AddDefaultRoute(netip.MustParseAddr("192.0.2.2")), SetAlias("br1", mark))
		if err != nil {
			return err
		}
		used, err := Used()
		if err != nil {
			return err
		}
		for _, want := range []string{"192.0.2.0/24", "198.51.100.0/24", "127.0.0.0/8"} {
			if !slices.Contains(used, netip.MustParsePrefix(want)) {
				t.Errorf("%s is not in use: %v", want, used)
			}
		}
		if slices.ContainsFunc(used, func(p netip.Prefix) bool { return p.Bits() == 0 }) {
			t.Errorf("the default route is in use: %v", used)
		}
		if got, err := Aliases(); err != nil || len(got) != 1 || got["br1"] != mark {
			t.Errorf("aliases %v, %v", got, err)
		}
		if err := errors.Join(Remove("one"), Remove("one"), Remove("never-there")); err != nil {
			return err
		}
		names, err := Names()
		if slices.Contains(names, "one") || slices.Contains(names, "other") ||
			!slices.Contains(names, "br1") {
			t.Errorf("links %v", names)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
