package bpf

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/testing/bpftest"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

func TestOfCgroupSeesPrograms(t *testing.T) {
	for _, c := range []struct {
		name string
		kind ebpf.ProgramType
		at   ebpf.AttachType
	}{
		{"egress", ebpf.CGroupSKB, ebpf.AttachCGroupInetEgress},
		{"ingress", ebpf.CGroupSKB, ebpf.AttachCGroupInetIngress},
		{"sock_ops", ebpf.SockOps, ebpf.AttachCGroupSockOps},
		{"sock_create", ebpf.CGroupSock, ebpf.AttachCGroupInetSockCreate},
		{"connect4", ebpf.CGroupSockAddr, ebpf.AttachCGroupInet4Connect},
		{"setsockopt", ebpf.CGroupSockopt, ebpf.AttachCGroupSetsockopt},
	} {
		t.Run(c.name, func(t *testing.T) {
			pid, dir := bpftest.Grouped(t)
			before, err := OfCgroup(pid)
			if err != nil {
				t.Fatal(err)
			}
			l, err := link.AttachCgroup(link.CgroupOptions{
				Path: dir, Attach: c.at, Program: bpftest.Program(t, "other", c.kind, c.at, 1)})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			now, err := OfCgroup(pid)
			if got, want := numberless(now), c.name+" program N other"; err != nil || got != want {
				t.Errorf("%q, want %q; was %q, %v", got, want, before, err)
			}
			inner := filepath.Join(dir, "inner")
			if err := os.Mkdir(inner, 0o755); err != nil {
				t.Fatal(err)
			}
			defer os.Remove(inner)
			if all, err := attachedTo(inner, ofCgroup, queryEffective); err != nil || all != now {
				t.Errorf("%q in a group below, %v", all, err)
			}
			if own, err := OfCgroup(0); err != nil || own == now {
				t.Errorf("own group: %q, %v", own, err)
			}
		})
	}
}

func TestOfCgroupLeavesOutOwnPrograms(t *testing.T) {
	pid, dir := bpftest.Grouped(t)
	before, err := OfCgroup(pid)
	if err != nil {
		t.Fatal(err)
	}
	l, err := link.AttachCgroup(link.CgroupOptions{Path: dir, Attach: ebpf.AttachCGroupInet4Connect,
		Program: bpftest.Program(t, "toll_connect4", ebpf.CGroupSockAddr,
			ebpf.AttachCGroupInet4Connect, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if now, err := OfCgroup(pid); err != nil || now != before {
		t.Errorf("%q, was %q, %v", now, before, err)
	}
}

func namespace(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); errors.Is(err, unix.EPERM) {
		pathtest.SkipOrFail(t, "network namespaces need root here")
	} else if err != nil {
		t.Fatal(err)
	}
}

func TestNetfilter(t *testing.T) {
	namespace(t)
	l, err := link.AttachNetfilter(link.NetfilterOptions{
		Program:        bpftest.Program(t, "other", ebpf.Netfilter, ebpf.AttachNetfilter, 1),
		ProtocolFamily: link.NetfilterProtoIPv4, Hook: link.NetfilterInetLocalOut, Priority: -4321})
	if err != nil {
		pathtest.SkipOrFail(t, "no program can be attached to netfilter (Linux 6.4): %v", err)
	}
	const text = "netfilter link N, program N (family 2 hook 3 priority -4321)"
	all, everywhere, err := Netfilter()
	if err != nil || !has(all, text) {
		t.Errorf("%q, %v", all, err)
	}
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err == nil && everywhere {
		_, why := inside()
		t.Errorf("the links' namespaces are not known: %v", why)
	}
	machine, err := Links()
	if err != nil || strings.Contains(numberless(machine), text) != everywhere {
		t.Errorf("everywhere: %t; the machine's links: %q, %v", everywhere, machine, err)
	}
	const own = "netfilter link N, program N (family 2 hook 3 priority -4322)"
	ours, err := link.AttachNetfilter(link.NetfilterOptions{
		Program:        bpftest.Program(t, "toll_own", ebpf.Netfilter, ebpf.AttachNetfilter, 1),
		ProtocolFamily: link.NetfilterProtoIPv4, Hook: link.NetfilterInetLocalOut, Priority: -4322})
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	t.Run("elsewhere", func(t *testing.T) {
		namespace(t)
		all, everywhere, err := Netfilter()
		if err != nil || has(all, own) {
			t.Errorf("toll's own %q in another namespace, %v", all, err)
		}
		if found := has(all, text); found != everywhere {
			t.Errorf("%q in another namespace; everywhere: %t", all, everywhere)
		}
	})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	all, _, err = Netfilter()
	if err != nil || has(all, text) {
		t.Errorf("%q after its end, %v", all, err)
	}
}

var numbers = regexp.MustCompile(`(link|program) \d+`)

// numberless replaces the kernel's numbers of links and programs.
func numberless(text string) string { return numbers.ReplaceAllString(text, "$1 N") }

func has(all []string, want string) bool {
	return slices.ContainsFunc(all, func(s string) bool { return numberless(s) == want })
}

// The kernel's own list of links shows their namespaces, whatever else it shows.
func TestSpaces(t *testing.T) {
	namespace(t)
	attach := func(priority int32) link.Link {
		l, err := link.AttachNetfilter(link.NetfilterOptions{
			Program:        bpftest.Program(t, "other", ebpf.Netfilter, ebpf.AttachNetfilter, 1),
			ProtocolFamily: link.NetfilterProtoIPv6, Hook: link.NetfilterInetLocalIn,
			Priority: priority})
		if err != nil {
			pathtest.SkipOrFail(t, "no program can be attached to netfilter (Linux 6.4): %v", err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	first := attach(-4323)
	here, err := own()
	if err != nil {
		t.Fatal(err)
	}
	namespace(t)
	second := attach(-4323)
	there, err := own()
	if err != nil || here == there {
		t.Fatal(here, there, err)
	}
	all, err := spaces()
	if err != nil {
		pathtest.SkipOrFail(t, "no program lists links here: %v", err)
	}
	for l, want := range map[link.Link]uint32{first: here, second: there} {
		info, err := l.Info()
		if err != nil || all[uint32(info.ID)] != want {
			t.Errorf("%v, want %d: %v, %v", info, want, all, err)
		}
	}
}

func TestOfNamespaceSeesLookups(t *testing.T) {
	namespace(t)
	f, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if all, err := OfNamespace(); err != nil || all != None {
		t.Errorf("%q, %v", all, err)
	}
	l, err := link.AttachNetNs(int(f.Fd()),
		bpftest.Program(t, "other", ebpf.SkLookup, ebpf.AttachSkLookup, 1))
	if err != nil {
		pathtest.SkipOrFail(t, "no program can be attached to a namespace: %v", err)
	}
	defer l.Close()
	if all, err := OfNamespace(); err != nil || !strings.HasPrefix(all, "sk_lookup program ") {
		t.Errorf("%q, %v", all, err)
	}
}
