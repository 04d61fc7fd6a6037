package link

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// bpf(2)
const (
	bpfProgLoad   = 5
	bpfProgAttach = 8
	kindXDP       = 6
	kindSchedCLS  = 3
)

func verdict(t *testing.T, kind uint32, returns int32) int {
	t.Helper()
	code := []struct { // struct bpf_insn: r0 = returns; exit
		op, regs uint8
		off      int16
		imm      int32
	}{{0xb7, 0, 0, returns}, {0x95, 0, 0, 0}}
	license := []byte("GPL\x00")
	var pin runtime.Pinner
	pin.Pin(&code[0])
	pin.Pin(&license[0])
	defer pin.Unpin()
	attr := struct {
		kind, n       uint32
		code, license uint64
		rest          [96]byte
	}{kind: kind, n: uint32(len(code)), code: uint64(uintptr(unsafe.Pointer(&code[0]))),
		license: uint64(uintptr(unsafe.Pointer(&license[0])))}
	fd, _, errno := unix.Syscall(unix.SYS_BPF, bpfProgLoad, uintptr(unsafe.Pointer(&attr)),
		unsafe.Sizeof(attr))
	if errno != 0 {
		skipUnlessCI(t, "BPF programs cannot be loaded here: %v", errno)
	}
	t.Cleanup(func() { _ = unix.Close(int(fd)) })
	return int(fd)
}

func attach(t *testing.T, index, program int, at uint32) {
	t.Helper()
	attr := struct{ index, program, at, flags, replace, relative, revision, revisionHigh uint32 }{
		index: uint32(index), program: uint32(program), at: at}
	_, _, errno := unix.Syscall(unix.SYS_BPF, bpfProgAttach, uintptr(unsafe.Pointer(&attr)),
		unsafe.Sizeof(attr))
	if errno != 0 {
		skipUnlessCI(t, "no program can be attached by tcx (Linux 6.6): %v", errno)
	}
}

func skipUnlessCI(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

func setting(t *testing.T, device, what string) Setting {
	t.Helper()
	all, err := Inspect(device)
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, s := range all[0].Settings {
		if s.What == what {
			return s
		}
	}
	t.Fatalf("%s has no %s", device, what)
	return Setting{}
}

func pair(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	err := unix.Unshare(unix.CLONE_NEWNET)
	if errors.Is(err, unix.EPERM) {
		skipUnlessCI(t, "network namespaces need root here")
	}
	if err == nil {
		err = errors.Join(AddVeth("a", "b", unix.Gettid()), Up("a"), Up("b"))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// tc does not show programs that take frames before the bridge, or instead of it.
func TestInspectSeesPrograms(t *testing.T) {
	const (
		pass = 2  // XDP_PASS
		next = -1 // TCX_NEXT
	)
	for _, c := range []struct {
		name, what, value string
		attach            func(t *testing.T, l netlink.Link)
	}{
		{"xdp", "XDP", "program ", func(t *testing.T, l netlink.Link) {
			if err := netlink.LinkSetXdpFd(l, verdict(t, kindXDP, pass)); err != nil {
				t.Fatal(err)
			}
		}},
		{"xdp-generic", "XDP", "program ", func(t *testing.T, l netlink.Link) {
			const generic = 2 // XDP_FLAGS_SKB_MODE
			err := netlink.LinkSetXdpFdWithFlags(l, verdict(t, kindXDP, pass), generic)
			if err != nil {
				t.Fatal(err)
			}
		}},
		{"tcx-ingress", "BPF program", "tcx ingress program ", func(t *testing.T, l netlink.Link) {
			attach(t, l.Attrs().Index, verdict(t, kindSchedCLS, next), tcxIngress)
		}},
		{"tcx-egress", "BPF program", "tcx egress program ", func(t *testing.T, l netlink.Link) {
			attach(t, l.Attrs().Index, verdict(t, kindSchedCLS, next), tcxEgress)
		}},
		{"clsact-bpf", "tc filter", "ingress bpf cil_from_container",
			func(t *testing.T, l netlink.Link) {
				q := &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
					LinkIndex: l.Attrs().Index, Handle: netlink.MakeHandle(0xffff, 0),
					Parent: netlink.HANDLE_CLSACT}}
				err := netlink.QdiscAdd(q)
				if err == nil {
					err = netlink.FilterAdd(&netlink.BpfFilter{
						FilterAttrs: netlink.FilterAttrs{
							LinkIndex: l.Attrs().Index, Parent: netlink.HANDLE_MIN_INGRESS,
							Protocol: unix.ETH_P_ALL}, Fd: verdict(t, kindSchedCLS, 0),
						Name: "cil_from_container", DirectAction: true})
				}
				if err != nil {
					t.Fatal(err)
				}
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			pair(t)
			if s := setting(t, "a", c.what); s.Value != nothing || s.Diverts {
				t.Fatalf("before: %+v", s)
			}
			l, err := byName("a")
			if err != nil {
				t.Fatal(err)
			}
			c.attach(t, l)
			if s := setting(t, "a", c.what); !strings.HasPrefix(s.Value, c.value) || !s.Diverts {
				t.Errorf("%+v, want %q", s, c.value)
			}
			if s := setting(t, "b", c.what); s.Value != nothing || s.Diverts {
				t.Errorf("the other end: %+v", s)
			}
		})
	}
}

func TestDisciplinesWithoutCounts(t *testing.T) {
	pair(t)
	l, err := byName("a")
	if err != nil {
		t.Fatal(err)
	}
	at := netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Handle: netlink.MakeHandle(1, 0),
		Parent: netlink.HANDLE_ROOT}
	class := func(rate uint64) *netlink.HtbClass {
		return netlink.NewHtbClass(netlink.ClassAttrs{
			LinkIndex: l.Attrs().Index, Parent: at.Handle, Handle: netlink.MakeHandle(1, 1)},
			netlink.HtbClassAttrs{Rate: rate})
	}
	err = errors.Join(netlink.QdiscAdd(netlink.NewHtb(at)), netlink.ClassAdd(class(1e9)))
	if err != nil {
		t.Fatal(err)
	}
	before := setting(t, "a", "queueing discipline").Value
	if err := send("a"); err != nil {
		t.Fatal(err)
	}
	if now := setting(t, "a", "queueing discipline").Value; now != before {
		t.Errorf("%q, was %q", now, before)
	}
	if err := netlink.ClassChange(class(2e8)); err != nil {
		t.Fatal(err)
	}
	now := setting(t, "a", "queueing discipline").Value
	kind, part, _ := strings.Cut(now, ", ") // each with a checksum of its options
	if now == before || !strings.HasPrefix(kind, "htb with options ") ||
		!strings.HasPrefix(part, "class 1:1 with options ") {
		t.Errorf("%q after the rate was changed", now)
	}
}

func send(name string) error {
	l, err := byName(name)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	frame := make([]byte, 60)
	err = unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: l.Attrs().Index})
	return errors.Join(err, unix.Close(fd))
}
