package link

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		at := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if to, ok := strings.CutPrefix(text, "->"); ok {
			err = os.Symlink(to, at)
		} else {
			err = os.WriteFile(at, []byte(text+"\n"), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestCardsBelow(t *testing.T) {
	root := tree(t, map[string]string{
		"pci/a/numa_node": "0", "pci/b/numa_node": "1",
		"net/eth0/device":      "->../../pci/a",
		"net/eth1/device":      "->../../pci/b",
		"net/eth0/x":           "",
		"net/eth1/x":           "",
		"net/bond0/lower_eth0": "->../eth0", "net/bond0/lower_eth1": "->../eth1",
		"net/bond0.5/lower_bond0": "->../bond0",
		"net/eth0.7/lower_eth0":   "->../eth0",
		"net/br0/lower_eth0":      "->../eth0",
		"net/br0/lower_veth1":     "->../veth1",
		"net/veth1/x":             "",
		"net/br1/lower_eth0":      "->../eth0", "net/br1/lower_eth1": "->../eth1",
		"net/loop1/lower_loop2": "->../loop2", "net/loop2/lower_loop1": "->../loop1",
	})
	k := kernelFiles{net: filepath.Join(root, "net")}
	for name, want := range map[string][]foundCard{
		"eth0":    {{"eth0", "", true}},
		"eth0.7":  {{"eth0", "eth0.7", true}},
		"bond0":   {{"bond0", "", false}, {"eth0", "bond0", true}, {"eth1", "bond0", true}},
		"bond0.5": {{"bond0", "bond0.5", false}, {"eth0", "bond0", true}, {"eth1", "bond0", true}},
		"br0":     {{"eth0", "br0", true}},
		"br1":     {{"eth0", "br1", true}, {"eth1", "br1", true}},
		"veth1":   nil,
		"loop1":   nil,
		"none":    nil,
	} {
		got := k.below(name, func(name string) bool { return name == "bond0" })
		if !slices.Equal(got, want) {
			t.Errorf("below %s: %+v, want %+v", name, got, want)
		}
	}
	for _, tt := range []struct {
		cards []sample.Card
		want  []string
	}{
		{[]sample.Card{{Name: "eth0", Device: true}}, []string{"eth0"}},
		{[]sample.Card{{Name: "bond0"}, {Name: "eth0", Device: true}, {Name: "eth1", Device: true}},
			[]string{"bond0"}},
		{[]sample.Card{{Name: "eth0", Device: true}, {Name: "eth1", Device: true}}, nil},
		{nil, nil},
	} {
		if got := decisive(tt.cards); !slices.Equal(got, tt.want) {
			t.Errorf("of %+v all packets cross %v, want %v", tt.cards, got, tt.want)
		}
	}
}

const interrupts = `           CPU0       CPU1
 24:          1          0  IO-APIC   5-edge      ACPI:Ged
 38:          0       6790 PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0
 39:       5606          0 PCI-MSIX-0000:00:03.0   2-edge      virtio2-output.0
 50:       5606          0 PCI-MSI 1-edge      mlx4-eth0-1
 51:       5606          0 PCI-MSI 2-edge      mlx4-eth1-1
 52:          7          7 IO-APIC  16-fasteoi   ehci_hcd:usb1, eth3
 60:          7          7
NMI:          0          0   Non-maskable interrupts
`

func TestInterrupts(t *testing.T) {
	root := tree(t, map[string]string{
		"proc/interrupts":                     strings.TrimSuffix(interrupts, "\n"),
		"proc/irq/38/smp_affinity_list":       "0-1",
		"proc/irq/38/effective_affinity_list": "1",
		"proc/irq/39/smp_affinity_list":       "0-1",
		"pci/v/msi_irqs/39":                   "msix",
		"pci/v/msi_irqs/38":                   "msix",
		"pci/v/msi_irqs/40":                   "msix",
		"pci/v/virtio2/x":                     "",
		"pci/v/numa_node":                     "1",
		"net/eth0/device":                     "->../../pci/v/virtio2",
		"pci/m/msi_irqs/50":                   "",
		"pci/m/msi_irqs/51":                   "",
		"net/eth1/device":                     "->../../pci/m",
		"pci/m/numa_node":                     "-1",
		"pci/o/irq":                           "52", "net/eth3/device": "->../../pci/o",
		"net/eth3/queues/rx-0/rps_cpus": "00000000,00000003",
		"net/eth3/queues/rx-1/rps_cpus": "0",
		"net/eth3/queues/tx-0/xps_cpus": "2",
	})
	k := kernelFiles{filepath.Join(root, "net"), filepath.Join(root, "proc")}
	for name, want := range map[string][]sample.Interrupt{
		"eth0": {{Number: 38, Name: "virtio2-input.0", CPUs: "1"},
			{Number: 39, Name: "virtio2-output.0", CPUs: "0-1"}},
		"eth1": {{Number: 51, Name: "mlx4-eth1-1"}},
		"eth3": {{Number: 52, Name: "ehci_hcd:usb1, eth3"}},
		"none": nil,
	} {
		if got := k.interrupts(name); !slices.Equal(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if n := k.numa("eth0"); n == nil || *n != 1 {
		t.Errorf("NUMA node %v", n)
	}
	if n := k.numa("eth1"); n != nil {
		t.Errorf("NUMA node %d of a card without", *n)
	}
	if rps, xps := k.steered("eth3", RPS), k.steered("eth3", XPS); !reflect.DeepEqual(rps,
		map[string]string{"rx-0": "00000000,00000003"}) || xps["tx-0"] != "2" {
		t.Errorf("steered %v, %v", rps, xps)
	}
	hidden := kernelFiles{k.net, filepath.Join(root, "nothing")}
	if got := hidden.interrupts("eth0"); len(got) != 3 || got[0] != (sample.Interrupt{Number: 38}) {
		t.Errorf("without /proc/interrupts: %+v", got)
	}
}

func TestModes(t *testing.T) {
	set := func(names ...string) *nl.RtAttr {
		bits := nl.NewRtAttr(unix.ETHTOOL_A_BITSET_BITS|unix.NLA_F_NESTED, nil)
		for i, n := range names {
			bit := bits.AddRtAttr(unix.ETHTOOL_A_BITSET_BITS_BIT|unix.NLA_F_NESTED, nil)
			bit.AddRtAttr(unix.ETHTOOL_A_BITSET_BIT_INDEX, nl.Uint32Attr(uint32(i)))
			bit.AddRtAttr(unix.ETHTOOL_A_BITSET_BIT_NAME, nl.ZeroTerminated(n))
		}
		return bits
	}
	message := func(speed uint32, duplex byte, ours, peer []string) []byte {
		var b []byte
		b = append(b, nl.NewRtAttr(unix.ETHTOOL_A_LINKMODES_AUTONEG, []byte{1}).Serialize()...)
		for kind, names := range map[int][]string{unix.ETHTOOL_A_LINKMODES_OURS: ours,
			unix.ETHTOOL_A_LINKMODES_PEER: peer} {
			a := nl.NewRtAttr(kind|unix.NLA_F_NESTED, nil)
			a.AddChild(set(names...))
			b = append(b, a.Serialize()...)
		}
		b = append(b, nl.NewRtAttr(unix.ETHTOOL_A_LINKMODES_SPEED,
			nl.Uint32Attr(speed)).Serialize()...)
		return append(b, nl.NewRtAttr(unix.ETHTOOL_A_LINKMODES_DUPLEX,
			[]byte{duplex}).Serialize()...)
	}
	for _, tt := range []struct {
		name string
		b    []byte
		want modes
	}{
		{"gigabit", message(1000, 1, []string{
			"Autoneg", "TP", "100baseT/Half", "1000baseT/Full", "10baseT/Full"},
			[]string{"1000baseT/Full"}), modes{1e9, 1e9, 1e9, "full", true}},
		{"slow", message(100, 0, []string{"100baseT/Half", "10000baseT/Full"},
			[]string{"100baseT/Half", "Autoneg"}), modes{100e6, 10e9, 100e6, "half", true}},
		{"of-a-later-kernel", message(1600000, 1, []string{"1600000baseKR8/Full"}, nil),
			modes{1600e9, 1600e9, 0, "full", true}},
		{"virtio", message(1<<32-1, 255, nil, nil), modes{autoneg: true}},
	} {
		if got, err := parseModes(tt.b); err != nil || got != tt.want {
			t.Errorf("%s: %+v, %v, want %+v", tt.name, got, err, tt.want)
		}
	}
	k := kernelFiles{net: tree(t, map[string]string{
		"eth0/speed": "2500", "eth0/duplex": "half", "eth1/speed": "-1", "eth1/duplex": "unknown"})}
	for name, want := range map[string]modes{"eth0": {speed: 2500e6, duplex: "half"}, "eth1": {},
		"eth2": {}} {
		if got := k.modes(name); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

func FuzzParseModes(f *testing.F) {
	f.Add([]byte{})
	f.Add(nl.NewRtAttr(unix.ETHTOOL_A_LINKMODES_SPEED, nl.Uint32Attr(1000)).Serialize())
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = parseModes(b) })
}

func TestCardsOfAVeth(t *testing.T) {
	pair(t)
	all, crossed, err := Cards("a")
	if err != nil || len(all) > 0 || len(crossed) > 0 {
		t.Errorf("%+v, %v, %v", all, crossed, err)
	}
	if m, err := linkModes("a"); err != nil || m.speed != 10e9 || m.duplex != sample.FullDuplex {
		t.Errorf("the veth's link modes: %+v, %v", m, err)
	}
	if _, _, err := Cards("none"); err == nil {
		t.Error("a device that is not there has cards")
	}
}

func TestRate(t *testing.T) {
	pair(t)
	l, err := netlink.LinkByName("a")
	if err != nil {
		t.Fatal(err)
	}
	index := l.Attrs().Index
	at := func(parent, major uint16) netlink.QdiscAttrs {
		return netlink.QdiscAttrs{LinkIndex: index, Parent: uint32(parent),
			Handle: netlink.MakeHandle(major, 0)}
	}
	root := func(major uint16) netlink.QdiscAttrs {
		a := at(0, major)
		a.Parent = netlink.HANDLE_ROOT
		return a
	}
	class := func(parent uint32, minor uint16, ceil uint64) *netlink.HtbClass {
		return netlink.NewHtbClass(netlink.ClassAttrs{
			LinkIndex: index, Parent: parent, Handle: netlink.MakeHandle(1, minor)},
			netlink.HtbClassAttrs{Rate: 8e6, Ceil: ceil})
	}
	htb := func(def uint32) *netlink.Htb {
		q := netlink.NewHtb(root(1))
		q.Defcls = def
		return q
	}
	for _, tt := range []struct {
		name string
		add  func() error
		want uint64
	}{
		{"none", func() error { return nil }, 0},
		{"tbf", func() error { return SetShape("a", Shape{Rate: 200e6}) }, 200e6},
		{"tbf-of-64-bits", func() error { return SetShape("a", Shape{Rate: 100e9}) }, 100e9},
		{"htb-to-its-default", func() error {
			for _, err := range []error{netlink.QdiscAdd(htb(0x30)),
				netlink.ClassAdd(class(netlink.MakeHandle(1, 0), 1, 300e6)),
				netlink.ClassAdd(class(netlink.MakeHandle(1, 1), 0x10, 900e6)),
				netlink.ClassAdd(class(netlink.MakeHandle(1, 1), 0x30, 500e6))} {
				if err != nil {
					return err
				}
			}
			return nil
		}, 300e6},
		{"htb-past-its-classes", func() error {
			if err := netlink.QdiscAdd(htb(0)); err != nil {
				return err
			}
			return netlink.ClassAdd(class(netlink.MakeHandle(1, 0), 1, 300e6))
		}, 0},
		{"pfifo", func() error {
			return netlink.QdiscAdd(&netlink.GenericQdisc{QdiscAttrs: root(1), QdiscType: "pfifo"})
		}, 0},
	} {
		// No subtests: their threads are in the machine's namespace.
		if err := tt.add(); err != nil {
			t.Fatal(tt.name, err)
		}
		info, err := Describe("a")
		if err != nil || info.Rate != tt.want {
			t.Errorf("%s: %d bit/s, %v, want %d", tt.name, info.Rate, err, tt.want)
		}
		if tt.name != "none" {
			if err := ClearShape("a"); err != nil {
				t.Error(tt.name, err)
			}
		}
	}
}

func TestShaped(t *testing.T) {
	wide := binary.NativeEndian.AppendUint64(nil, 10e9/8)
	for _, tt := range []struct {
		kind    string
		options []*nl.RtAttr
		want    uint64
	}{
		{"netem", []*nl.RtAttr{nl.NewRtAttr(6, append(nl.Uint32Attr(125e6), make([]byte, 12)...))},
			125e6},
		{"netem", []*nl.RtAttr{nl.NewRtAttr(6, append(nl.Uint32Attr(1<<32-1), make([]byte, 12)...)),
			nl.NewRtAttr(8, wide)}, 10e9 / 8},
		{"netem", nil, 0},
		{"cake", []*nl.RtAttr{nl.NewRtAttr(2, wide)}, 10e9 / 8},
		{"tbf", []*nl.RtAttr{nl.NewRtAttr(1, append(make([]byte, 8), nl.Uint32Attr(1<<32-1)...))},
			0},
		{"fq", []*nl.RtAttr{nl.NewRtAttr(2, wide)}, 0},
	} {
		var b []byte
		for _, a := range tt.options {
			b = append(b, a.Serialize()...)
		}
		if got := shaped(tt.kind, b); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.kind, got, tt.want)
		}
	}
}
