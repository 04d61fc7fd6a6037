package replica

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	ebpflink "github.com/cilium/ebpf/link"

	"github.com/bridgetoll/bridgetoll/internal/kernel/bpf"
	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/testing/bpftest"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

// numbers matches the kernel's numbers of links and programs, and checksums of their settings.
var numbers = regexp.MustCompile(`(link|program|checksum) [0-9a-f]+`)

func TestUnknownIsNamedWithItsDevice(t *testing.T) {
	machine, outside := newPlace(t), newPlace(t)
	wire(t, machine, outside)
	if got := readAs(t, machine).Spaces[0].Unknown; len(got) > 0 {
		t.Errorf("a machine without any has %v", got)
	}
	program := bpftest.Program(t, "other", ebpf.SchedCLS, ebpf.AttachTCXIngress, 0)
	machine.do(t, func() error {
		devices, err := link.Survey()
		if err != nil {
			return err
		}
		i := slices.IndexFunc(devices, func(d link.Device) bool { return d.Name == "eth0" })
		l, err := ebpflink.AttachTCX(ebpflink.TCXOptions{Program: program,
			Interface: devices[i].Index, Attach: ebpf.AttachTCXIngress})
		if err == nil {
			t.Cleanup(func() { _ = l.Close() })
		}
		return err
	})
	machine.do(t, exec.Command("tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "1gbit",
		"burst", "100k", "latency", "1ms").Run)
	machine.do(t, exec.Command("ip", "xfrm", "policy", "add", "src", "192.0.2.0/24", "dst",
		"198.51.100.0/24", "dir", "out", "action", "block").Run)
	var got []string
	for _, u := range readAs(t, machine).Spaces[0].Unknown {
		got = append(got, u.Device+": "+u.What)
	}
	// A shaper drops no single packet.
	text := numbers.ReplaceAllString(strings.Join(got, "; "), "$1 N")
	if want := "eth0: BPF program (tcx ingress program N) at eth0; : IPsec policy out from " +
		"192.0.2.0/24 to 198.51.100.0/24 block priority 0 (checksum N)"; text != want {
		t.Errorf("%q, want %q", text, want)
	}
}

func TestProgramsOfPacketFilters(t *testing.T) {
	machine, elsewhere, third := newPlace(t), newPlace(t), newPlace(t)
	program := bpftest.Program(t, "other", ebpf.Netfilter, ebpf.AttachNetfilter, 1)
	attach := func(priority int32) func() error {
		return func() error {
			l, err := ebpflink.AttachNetfilter(ebpflink.NetfilterOptions{Program: program,
				ProtocolFamily: ebpflink.NetfilterProtoIPv6,
				Hook:           ebpflink.NetfilterInetForward, Priority: priority})
			if err != nil {
				pathtest.SkipOrFail(t, "no program can be attached (Linux 6.4): %v", err)
			}
			t.Cleanup(func() { _ = l.Close() })
			return nil
		}
	}
	const (
		here  = ": BPF netfilter link N, program N (family 10 hook 2 priority -4322)"
		there = ": BPF netfilter link N, program N (family 10 hook 2 priority -4323)"
	)
	machine.do(t, attach(-4322))
	elsewhere.do(t, attach(-4323))
	everywhere := false // the kernel does not say where
	third.do(t, func() error {
		var err error
		_, everywhere, err = bpf.Netfilter()
		return err
	})
	var got []string
	for _, u := range readAs(t, machine).Spaces[0].Unknown {
		got = append(got, u.Device+": "+numbers.ReplaceAllString(u.What, "$1 N"))
	}
	if !slices.Contains(got, here) || slices.Contains(got, there) != everywhere {
		t.Errorf("programs of all namespaces: %t; found %q", everywhere, got)
	}
}

func TestDecisive(t *testing.T) {
	for what, want := range map[string]string{
		"XDP: program 12":                           "XDP program 12",
		"tc filter: ingress bpf cil_from_netdev":    "tc filter (ingress bpf cil_from_netdev)",
		"BPF program: netkit peer program 3":        "BPF program (netkit peer program 3)",
		"queueing discipline: netem with options 1": "queueing discipline netem",
		"queueing discipline: blackhole":            "queueing discipline blackhole",
		"queueing discipline: fq_codel":             "",
	} {
		if got, ok := decisive(what); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %q, %t", what, got, ok)
		}
	}
}

// Bridges' old tables are known by their modules, loaded or built in.
func TestOldTables(t *testing.T) {
	dir := t.TempDir()
	s := Space{Links: []link.Saved{{Name: "eth0", Index: 2}, {Name: "br0", Index: 3, Kind: "bridge"},
		{Name: "veth1", Index: 4, Kind: "veth", Master: 3}, {Name: "vrf1", Index: 5, Kind: "vrf"},
		{Name: "eth1", Index: 6, Master: 5}}}
	if got := s.oldTables(modules{any: true}, dir, nil); len(got) > 0 {
		t.Errorf("without any: %+v", got)
	}
	if err := os.Mkdir(filepath.Join(dir, "ebtable_filter"), 0o755); err != nil {
		t.Fatal(err)
	}
	got := s.oldTables(modules{has: map[string]bool{"ebtable_nat": true}}, dir, []byte("filter\n"))
	want := []Unknown{{What: "rules of arptables-legacy filter"},
		{What: "rules of ebtables-legacy filter", Device: "br0"},
		{What: "rules of ebtables-legacy filter", Device: "veth1"},
		{What: "rules of ebtables-legacy nat", Device: "br0"},
		{What: "rules of ebtables-legacy nat", Device: "veth1"}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestProgramsOfControlGroup(t *testing.T) {
	pid, dir := bpftest.Grouped(t)
	for _, x := range []struct {
		kind ebpf.ProgramType
		at   ebpf.AttachType
	}{{ebpf.CGroupSKB, ebpf.AttachCGroupInetEgress}, {ebpf.SockOps, ebpf.AttachCGroupSockOps}} {
		l, err := ebpflink.AttachCgroup(ebpflink.CgroupOptions{Path: dir, Attach: x.at,
			Program: bpftest.Program(t, "other", x.kind, x.at, 1)})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
	got := programs(pid)
	if len(got) != 1 || !strings.HasPrefix(got[0], "egress program ") {
		t.Errorf("%q, want the program that sees packets leave", got)
	}
}
