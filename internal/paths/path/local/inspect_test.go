package local

import (
	"os"
	"regexp"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/testing/bpftest"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

type here struct{ Space }

func (here) Do(f func() error) error { return f() }

// numbers matches the kernel's numbers of links and programs.
var numbers = regexp.MustCompile(`(link|program) \d+`)

func TestInspectNoticesProgramsOfControlGroups(t *testing.T) {
	pid, dir := bpftest.Grouped(t)
	p := bpftest.Program(t, "other", ebpf.SockOps, ebpf.AttachCGroupSockOps, 1)
	spots := []Inspected{{Space: here{}, Where: "server container", Devices: []string{}, PID: pid}}
	before, err := Inspect(spots)
	if err != nil {
		t.Fatal(err)
	}
	l, err := link.AttachCgroup(link.CgroupOptions{
		Path: dir, Attach: ebpf.AttachCGroupSockOps, Program: p})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	now, err := Inspect(spots)
	if err != nil {
		t.Fatal(err)
	}
	found := path.Differences(before, now)
	if len(found) != 1 || found[0].Where != "server container" ||
		found[0].What != "BPF programs of its control group" ||
		numbers.ReplaceAllString(found[0].Is, "$1 N") != "sock_ops program N other" {
		t.Errorf("%+v", found)
	}
}

type inside struct {
	Space
	ns *netns.NS
}

func (in inside) Do(f func() error) error { return in.ns.Do(f) }

// A program in the packet filters of a namespace concerns the paths through it, and no others.
func TestInspectNoticesPacketFilters(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil {
		t.Skip("the kernel does not tell the namespaces of programs: ", err)
	}
	p := bpftest.Program(t, "other", ebpf.Netfilter, ebpf.AttachNetfilter, 1)
	own, other := netnstest.New(t), netnstest.New(t)
	spots := []Inspected{{Space: inside{ns: own}, Where: "server container",
		Devices: []string{"lo"}}}
	inspect := func() []path.Setting {
		t.Helper()
		all, err := Inspect(spots)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := inspect()
	for _, at := range []*netns.NS{other, own} {
		if err := at.Do(func() error {
			l, err := link.AttachNetfilter(link.NetfilterOptions{Program: p,
				ProtocolFamily: link.NetfilterProtoIPv4, Hook: link.NetfilterInetPreRouting,
				Priority: -4321})
			if err == nil {
				t.Cleanup(func() { _ = l.Close() })
			}
			return err
		}); err != nil {
			pathtest.SkipOrFail(t, "no program can be attached to netfilter (Linux 6.4): %v", err)
		}
		found := path.Differences(before, inspect())
		switch {
		case at == other && len(found) > 0:
			t.Errorf("a program in another namespace: %+v", found)
		case at == own && (len(found) != 1 || found[0].Where != "server container" ||
			found[0].What != "BPF programs of packet filters" ||
			numbers.ReplaceAllString(found[0].Is, "$1 N") !=
				"netfilter link N, program N (family 2 hook 0 priority -4321)"):
			t.Errorf("a program in its own namespace: %+v", found)
		}
	}
}
