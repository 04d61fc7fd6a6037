package replica

import (
	"errors"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
)

// place is a namespace with a process in it, without which nobody finds it.
type place struct {
	*netns.NS
	pid int
	tid int
}

func newPlace(t testing.TB) place {
	t.Helper()
	n := netnstest.New(t)
	cmd := exec.Command("sleep", "1000")
	if err := n.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	tid, err := n.TID()
	if err != nil {
		t.Fatal(err)
	}
	return place{n, cmd.Process.Pid, tid}
}

func (p place) do(t testing.TB, f func() error) {
	t.Helper()
	if err := p.Do(f); err != nil {
		t.Fatal(err)
	}
}

func (p place) id(t testing.TB) string {
	t.Helper()
	id, err := netns.ID(p.pid)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// readAs reads the machine that the place is.
func readAs(t testing.TB, p place) *Machine {
	t.Helper()
	found, err := netns.Find()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		defer f.Close()
	}
	i := slices.IndexFunc(found, func(f netns.Found) bool { return f.PID == p.pid })
	if i < 0 {
		t.Fatalf("the machine's namespace is not in %+v", found)
	}
	found[0], found[i] = found[i], found[0]
	m, err := read(t.Context(), found)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var (
	gateway   = netip.MustParsePrefix("172.17.0.1/16")
	container = []netip.Prefix{netip.MustParsePrefix("172.17.0.2/16"),
		netip.MustParsePrefix("172.17.0.3/16")}
)

// engine makes a bridge with containers on p, which end with the test.
func engine(t testing.TB, p place, bridge string, containers ...place) {
	t.Helper()
	p.do(t, func() error { return link.AddBridge(bridge) })
	p.do(t, func() error { return link.AddAddr(bridge, gateway) })
	for i, c := range containers {
		port := bridge + string(rune('a'+i))
		p.do(t, func() error {
			return errors.Join(link.AddVeth(port, "eth0", c.tid), link.SetMaster(port, bridge),
				link.Up(port))
		})
		c.do(t, func() error {
			return errors.Join(link.AddAddr("eth0", container[i]), link.Up("eth0"),
				link.AddDefaultRoute(gateway.Addr()))
		})
	}
}

// wire makes eth0 on p, whose other end is another machine.
func wire(t testing.TB, p, other place) {
	t.Helper()
	p.do(t, func() error { return link.AddVeth("eth0", "eth0", other.tid) })
	for i, x := range []place{p, other} {
		x.do(t, func() error {
			a := netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(10 + i)}), 24)
			return errors.Join(link.AddAddr("eth0", a), link.Up("eth0"))
		})
	}
	p.do(t, func() error {
		return link.AddDefaultRoute(netip.AddrFrom4([4]byte{192, 0, 2, 11}))
	})
}

func TestReadFindsContainersAndNoOthers(t *testing.T) {
	machine, other, first, second := newPlace(t), newPlace(t), newPlace(t), newPlace(t)
	nested, stranger, child := newPlace(t), newPlace(t), newPlace(t)
	overlay, neighbour, pod := newPlace(t), newPlace(t), newPlace(t)
	wire(t, machine, other)
	engine(t, machine, "docker0", first, second)
	engine(t, second, "docker0", nested) // docker in docker
	engine(t, stranger, "docker0")
	machine.do(t, func() error {
		return link.AddMacvlan(link.SubInterface{Name: "eth0", Parent: "eth0", TID: child.tid},
			"bridge")
	})
	machine.do(t, func() error { return sysctl.Set("net.ipv4.ip_forward", "1") })
	// a second card, without a gateway, and a pod that has the machine as one
	machine.do(t, func() error {
		return errors.Join(link.AddVeth("eth1", "eth0", neighbour.tid),
			link.AddAddr("eth1", netip.MustParsePrefix("198.51.100.1/24")), link.Up("eth1"),
			link.AddVeth("pod", "eth0", pod.tid),
			link.AddAddr("pod", netip.MustParsePrefix("10.5.0.1/24")), link.Up("pod"))
	})
	neighbour.do(t, func() error {
		return errors.Join(link.AddAddr("eth0", netip.MustParsePrefix("198.51.100.2/24")),
			link.Up("eth0"))
	})
	pod.do(t, func() error {
		return errors.Join(link.AddAddr("eth0", netip.MustParsePrefix("10.5.0.2/24")),
			link.Up("eth0"), link.AddDefaultRoute(netip.MustParseAddr("10.5.0.1")))
	})
	overlay.do(t, func() error {
		return errors.Join(link.AddBridge("br0"), link.AddVeth("veth0", "eth1", first.tid),
			link.SetMaster("veth0", "br0"))
	})
	first.do(t, func() error {
		return errors.Join(link.AddAddr("eth1", netip.MustParsePrefix("10.0.1.2/24")),
			link.Up("eth1"))
	})

	m := readAs(t, machine)
	var got []string
	for _, s := range m.Spaces {
		got = append(got, s.ID)
	}
	want := []string{machine.id(t), first.id(t), second.id(t), nested.id(t), child.id(t),
		overlay.id(t), pod.id(t)}
	slices.Sort(got[1:])
	slices.Sort(want[1:])
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("namespaces (-want +got):\n%s", diff)
	}
	at := func(p place) int {
		return slices.IndexFunc(m.Spaces, func(s Space) bool { return s.PID == p.pid })
	}
	for _, x := range []struct {
		in     place
		device string
		leads  int
	}{
		{machine, "docker0", link.Here}, {machine, "docker0a", at(first)},
		{machine, "docker0b", at(second)}, {machine, "eth0", link.Elsewhere},
		{first, "eth0", 0}, {second, "docker0a", at(nested)}, {nested, "eth0", at(second)},
		{child, "eth0", 0}, {first, "eth1", at(overlay)}, {machine, "eth1", link.Elsewhere},
		{machine, "pod", at(pod)},
	} {
		s := m.Spaces[at(x.in)]
		i := slices.IndexFunc(s.Links, func(l link.Saved) bool { return l.Name == x.device })
		if i < 0 {
			t.Errorf("no %s in %+v", x.device, s.Links)
		} else if s.Links[i].ParentSpace != x.leads {
			t.Errorf("%s leads to namespace %d, want %d", x.device, s.Links[i].ParentSpace, x.leads)
		}
	}
	own := m.Spaces[0]
	if own.Sysctls["net/ipv4/ip_forward"] != "1" || len(own.Addresses) < 2 ||
		len(own.Routes) == 0 || len(own.Policy) == 0 || m.Kernel == "" {
		t.Errorf("the machine is incomplete: %+v", own)
	}
	for _, s := range m.Spaces {
		for _, u := range s.Unknown {
			if strings.Contains(u.What, "unread") || strings.Contains(u.What, "could not") {
				t.Errorf("%s: %s", s.ID, u.What)
			}
		}
	}
}

func BenchmarkRead(b *testing.B) {
	machine := newPlace(b)
	var all []place
	for range 30 {
		all = append(all, newPlace(b))
	}
	container = nil
	for i := range all {
		container = append(container, netip.PrefixFrom(
			netip.AddrFrom4([4]byte{172, 17, 0, byte(2 + i)}), 16))
	}
	engine(b, machine, "docker0", all...)
	for b.Loop() {
		if m := readAs(b, machine); len(m.Spaces) != len(all)+1 {
			b.Fatalf("%d namespaces", len(m.Spaces))
		}
	}
}
