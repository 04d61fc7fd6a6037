package link

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// ipBatch runs lines of ip-batch in the namespace.
func ipBatch(t *testing.T, n *netns.NS, batch string) {
	t.Helper()
	err := n.Do(func() error {
		cmd := exec.Command("ip", "-batch", "-")
		cmd.Stdin = strings.NewReader(batch)
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	if errors.Is(err, exec.ErrNotFound) && os.Getenv("CI") != "true" {
		t.Skip("there is no ip command")
	}
	if err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, n *netns.NS, command string) string {
	t.Helper()
	var out []byte
	args := strings.Fields(command)
	err := n.Do(func() (err error) {
		out, err = exec.Command(args[0], args[1:]...).CombinedOutput()
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
	return string(out)
}

type savedNetwork struct {
	Links                                           []Saved
	Addresses, Nexthops, Routes, Policy, Neighbours []raw.Message
}

func readNetwork(t *testing.T, n *netns.NS) (out savedNetwork) {
	t.Helper()
	err := n.Do(func() (err error) {
		if out.Links, err = ReadLinks(); err != nil {
			return err
		}
		for _, part := range []struct {
			to   *[]raw.Message
			read func() ([]raw.Message, error)
		}{{&out.Addresses, ReadAddresses}, {&out.Nexthops, ReadNexthops},
			{&out.Routes, ReadRoutes}, {&out.Policy, ReadPolicy},
			{&out.Neighbours, ReadNeighbours}} {
			if *part.to, err = part.read(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (n savedNetwork) named(t *testing.T, name string) Saved {
	t.Helper()
	i := slices.IndexFunc(n.Links, func(l Saved) bool { return l.Name == name })
	if i < 0 {
		t.Fatalf("no %s in %+v", name, n.Links)
	}
	return n.Links[i]
}

func settings(s Saved) string { return fmt.Sprint(s.data(), s.port()) }

func fileOf(t *testing.T, n *netns.NS) int {
	t.Helper()
	tid, err := n.TID()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", tid))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return int(f.Fd())
}

// awaitCarriers waits until each device that is up carries packets, and the kernel's own routes say
// so: a route through a device without a carrier is shown as linkdown.
func awaitCarriers(t *testing.T, n *netns.NS) {
	t.Helper()
	testwait.Until(t, time.Minute, "all devices that are up carry packets", func() bool {
		now := carrying(t, n)
		for _, l := range readNetwork(t, n).Links {
			if l.Up && !now[l.Index] {
				return false
			}
		}
		return !slices.Contains(strings.Fields(run(t, n, "ip -6 route show table all")), "linkdown")
	})
}

func TestCopyEqualsOriginal(t *testing.T) {
	machine, outside := netnstest.New(t), netnstest.New(t)
	tid, err := outside.TID()
	if err != nil {
		t.Fatal(err)
	}
	if err := machine.Do(func() error {
		return sysctl.Set("net.ipv6.conf.default.accept_dad", "0")
	}); err != nil {
		t.Fatal(err)
	}
	const index = 40
	ipBatch(t, machine, fmt.Sprintf(`
link set lo up
link add eth0 index %[2]d address 02:00:00:00:00:01 mtu 1400 group 7 type veth peer name far netns %[1]d
link add br0 index 50 address 02:00:00:00:00:02 type bridge group_fwd_mask 8
link add port index 51 type veth peer name guest index 52
link set port master br0
link set port type bridge_slave hairpin on isolated on learning off
link add mac0 index 53 link eth0 address 02:00:00:00:00:03 type macvlan mode private
link set eth0 up
link set br0 up
link set port up
link set guest up
link set mac0 up arp off
`, tid, index))
	for _, device := range []string{"dum0 index 60 type dummy",
		"eth0.30 index 61 link eth0 type vlan id 30", "vrf0 index 62 type vrf table 90",
		"ip0 index 63 link guest type ipvlan mode l3",
		"tap0 index 64 link br0 type macvtap mode bridge"} { // a kernel may lack them
		name, _, _ := strings.Cut(device, " ")
		if machine.Do(exec.Command("ip", strings.Fields("link add "+device)...).Run) == nil {
			ipBatch(t, machine, "link set "+name+" up\n")
		}
	}
	ipBatch(t, outside, "link set far up\n")
	awaitCarriers(t, machine)
	ipBatch(t, machine, `
addr add 192.0.2.10/24 brd + dev eth0
addr add 192.0.2.11/24 dev eth0
addr add 198.51.100.1/32 dev lo
addr add 10.9.0.1 peer 10.9.0.2 dev mac0
addr add 172.17.0.1/16 dev br0
addr add 2001:db8::10/64 dev eth0 nodad
addr add 2001:db8::11/64 dev eth0 nodad preferred_lft 0
route add default via 192.0.2.1 metric 100 mtu 1300 src 192.0.2.11
route add 203.0.113.0/24 nexthop via 192.0.2.2 weight 2 nexthop via 172.17.0.9
route add blackhole 203.0.114.0/24
route add prohibit 203.0.115.0/24 table 77
route add 203.0.116.0/24 via 10.0.0.1 dev eth0 onlink table 77
route add default via 192.0.2.3 table 77
route add local 203.0.117.0/24 dev lo table 78
route add local 203.0.118.0/24 dev lo
route add default via 2001:db8::1 metric 5
route add unreachable 2001:db8:1::/48
nexthop add id 5 via 192.0.2.7 dev eth0
nexthop add id 6 dev br0
nexthop add id 4 group 5/6,3
route add 203.0.119.0/24 nhid 5
route add 203.0.120.0/24 nhid 4
rule add pref 100 from 192.0.2.0/24 iif eth0 lookup 77
rule add pref 101 not fwmark 0x1/0xff lookup 78
rule add pref 102 ipproto 6 dport 80-90 prohibit
rule add pref 103 lookup main suppress_prefixlength 0
rule del pref 32767
neigh add 192.0.2.1 lladdr 02:00:00:00:00:99 dev eth0 nud permanent
neigh add proxy 192.0.2.77 dev eth0
`)
	commands := []string{"ip -6 rule add pref 50 to 2001:db8:5::/48 lookup 77"}
	if machine.Do(exec.Command("ip", "link", "set", "br0", "type", "bridge",
		"vlan_filtering", "1").Run) == nil { // not every kernel can
		commands = append(commands, "bridge vlan add vid 30 dev port pvid untagged",
			"bridge vlan del vid 1 dev port", "bridge vlan add vid 30 dev br0 self",
			"ip link add bare index 71 type dummy", "ip link set bare master br0 up",
			"bridge vlan del vid 1 dev bare")
	}
	commands = append(commands, "bridge fdb add 02:00:00:00:00:98 dev port master static")
	for _, command := range commands {
		run(t, machine, command)
	}

	saved := readNetwork(t, machine)
	twin, world := netnstest.New(t), netnstest.New(t)
	place := fileOf(t, world)
	var refused []raw.Refused
	err = twin.Do(func() error {
		there, err := Names() // lo, and tunnels if their modules are loaded
		errs := []error{err}
		for _, l := range saved.Links {
			switch {
			case slices.Contains(there, l.Name) || l.Name == "guest":
			case l.Name == "port":
				errs = append(errs, MakePair(l, saved.named(t, "guest"), -1))
			case l.Name == "eth0":
				errs = append(errs, MakePair(l, Saved{Name: "far", MTU: l.MTU, Index: l.Parent},
					place))
			default:
				errs = append(errs, MakeLink(l, -1))
			}
		}
		for _, l := range saved.Links {
			errs = append(errs, SetLink(l))
		}
		return errors.Join(errs...)
	})
	if err != nil {
		t.Error(err)
	}
	ipBatch(t, world, "link set far up\n")
	awaitCarriers(t, twin) // which MakeRoutes asks for
	err = twin.Do(func() error {
		refused = append(refused, MakeAddresses(saved.Addresses)...)
		refused = append(refused, MakeRoutes(saved.Nexthops, saved.Routes)...)
		refused = append(refused, MakePolicy(saved.Policy)...)
		refused = append(refused, MakeNeighbours(saved.Neighbours,
			func(int, string) bool { return false })...)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for _, n := range []*netns.NS{machine, twin} {
		testwait.Until(t, time.Minute, "the kernel has routed all addresses", func() bool {
			return len(unrouted(t, n)) == 0
		})
	}
	for _, r := range refused {
		t.Errorf("%s (%s): %v", r.What, r.Device, r.Err)
	}
	for _, command := range []string{"-4 route show table all", "-6 route show table all",
		"-4 rule", "-6 rule", "nexthop", "neigh show nud permanent", "neigh show proxy"} {
		want := strings.Split(run(t, machine, "ip "+command), "\n")
		got := strings.Split(run(t, twin, "ip "+command), "\n")
		if command == "-6 route show table all" { // multicast routes come in any order
			slices.Sort(want)
			slices.Sort(got)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("ip %s (-original +copy):\n%s", command, diff)
		}
	}
	again := readNetwork(t, twin)
	tap := slices.IndexFunc(again.Links, func(l Saved) bool { return l.Name == "tap0" })
	if tap >= 0 && again.Links[tap].Kind == "macvlan" { // it needs no file in /dev
		again.Links[tap].Kind = "macvtap"
	}
	opts := cmp.Options{cmpopts.IgnoreFields(Saved{}, "Data", "ParentSpace", "Slave")}
	if diff := cmp.Diff(saved.Links, again.Links, opts); diff != "" {
		t.Errorf("links (-original +copy):\n%s", diff)
	}
	for i, l := range again.Links {
		if want := settings(saved.Links[i]); settings(l) != want {
			t.Errorf("settings of %s: %s, want %s", l.Name, settings(l), want)
		}
	}
	var want, got []SavedAddress
	for _, x := range []struct {
		from []raw.Message
		to   *[]SavedAddress
	}{{saved.Addresses, &want}, {again.Addresses, &got}} {
		for _, m := range x.from {
			a, ok := ParseAddress(m)
			if !ok {
				t.Errorf("no address: %v", m)
			}
			*x.to = append(*x.to, a)
		}
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b SavedAddress) bool { return a == b }),
		cmpopts.SortSlices(func(a, b SavedAddress) bool {
			return fmt.Sprint(a) < fmt.Sprint(b)
		})); diff != "" {
		t.Errorf("addresses (-original +copy):\n%s", diff)
	}
}

func FuzzSaved(f *testing.F) {
	f.Add([]byte{2, 24, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0, 8, 0, 1, 0, 10, 0, 0, 0,
		20, 0, 9, 0, 16, 0, 0, 0, 2, 0, 0, 0, 8, 0, 5, 0, 10, 0, 0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, kind := range []uint16{unix.RTM_NEWADDR, unix.RTM_NEWROUTE, unix.RTM_NEWNEXTHOP} {
			m := raw.Message{Type: kind, Data: b}
			_, _ = ParseAddress(m)
			_, _, _ = ParseHops(m), IsDefault(m), isGroup(m)
		}
		if len(b) >= unix.SizeofRtMsg { // the longest header
			_, _, _ = routeText(b, nil), addressText(b, nil), neighbourText(b, nil)
			_ = distance(raw.Message{Type: unix.RTM_NEWROUTE, Data: b})
		}
		for _, kind := range []string{"bridge", "vlan"} {
			s := Saved{Name: "x", Kind: kind, Data: b, Slave: b, VLANs: b, MAC: b}
			_, _ = s.data(), s.port()
			if got := len(linkMessage(s, -1, nested(1, s.data()...))); got > 1<<17 {
				t.Errorf("%d bytes", got)
			}
		}
		if got := cleanHops(b, 0); len(got) != len(b) {
			t.Errorf("%d bytes became %d", len(b), len(got))
		}
	})
}

func TestChildInAnotherNamespace(t *testing.T) {
	parent, child := netnstest.New(t), netnstest.New(t)
	place := fileOf(t, child)
	const index = 77 // the parent's, too
	ipBatch(t, parent, fmt.Sprintf("link add eth0 index %d type veth peer name far\n", index))
	want := Saved{Name: "eth0", Index: index, Kind: "macvlan", MTU: 1400, Parent: index,
		MAC: net.HardwareAddr{2, 0, 0, 0, 0, 9}}
	if err := parent.Do(func() error { return MakeLink(want, place) }); err != nil {
		t.Fatal(err)
	}
	got := readNetwork(t, child).named(t, "eth0")
	if got.Index != index || got.Kind != want.Kind || got.MTU != want.MTU ||
		got.Parent != index || !bytes.Equal(got.MAC, want.MAC) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestRefusedByName(t *testing.T) {
	n := netnstest.New(t)
	err := n.Do(func() error {
		header := func(family, bits byte) []byte {
			b := make([]byte, unix.SizeofRtMsg)
			b[0], b[1], b[4], b[7] = family, bits, unix.RT_TABLE_MAIN, unix.RTN_UNICAST
			return b
		}
		route := append(header(unix.AF_INET, 24), marshal(
			netlink.Attribute{Type: unix.RTA_DST, Data: []byte{10, 1, 2, 0}},
			netlink.Attribute{Type: unix.RTA_OIF, Data: word(1)},
			netlink.Attribute{Type: unix.RTA_GATEWAY, Data: []byte{10, 9, 9, 9}})...)
		refused := MakeRoutes(nil, []raw.Message{{Type: unix.RTM_NEWROUTE, Data: route},
			{Type: unix.RTM_DELROUTE, Data: route}, {Type: unix.RTM_NEWROUTE, Data: []byte{1}},
			{Type: unix.RTM_NEWLINK, Data: linkMessage(Saved{Name: "x"}, -1,
				nested(unix.IFLA_LINKINFO, netlink.Attribute{Type: unix.IFLA_INFO_KIND,
					Data: []byte("bridge")}))}})
		var got []string
		for _, r := range refused {
			got = append(got, r.What+", "+r.Device)
		}
		slices.Sort(got)
		want := []string{"a message of another kind, ", "a message of another kind, ",
			"a message of another kind, ", "route to 10.1.2.0/24 via 10.9.9.9 dev lo, "}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		names, err := Names()
		if slices.Contains(names, "x") {
			t.Error("a device was made")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
