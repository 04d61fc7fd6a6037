package link

import (
	"errors"
	"net/netip"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
)

func TestSurvey(t *testing.T) {
	a, err := netns.New()
	if errors.Is(err, unix.EPERM) && os.Getenv("CI") != "true" {
		t.Skip("network namespaces need root here")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	tid, err := b.TID()
	if err != nil {
		t.Fatal(err)
	}
	addr := netip.MustParsePrefix("192.0.2.1/24")
	err = a.Do(func() error {
		return errors.Join(AddBridge("br1"), AddVeth("one", "eth0", tid), SetMaster("one", "br1"), AddAddr("br1", addr),
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
	if port.Kind != "veth" || port.Master != "br1" || port.MTU != 1400 || port.Peer != end.Index || end.Peer != port.Index {
		t.Errorf("%+v, %+v", port, end)
	}
}
