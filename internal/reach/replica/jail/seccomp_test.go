package jail

import (
	"encoding/binary"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// none is the number of a call that an architecture does not have.
const none = ^uint32(0)

// forbidden lists system calls that no command may make, with Linux's numbers. They are written
// here once more, because the filter takes them from the architecture for which it is compiled.
var forbidden = []struct {
	name         string
	amd64, arm64 uint32
}{
	{"mount", 165, 40}, {"umount2", 166, 39}, {"pivot_root", 155, 41}, {"chroot", 161, 51},
	{"open_tree", 428, 428}, {"move_mount", 429, 429}, {"fsopen", 430, 430},
	{"fsconfig", 431, 431}, {"fsmount", 432, 432}, {"fspick", 433, 433},
	{"mount_setattr", 442, 442}, {"statmount", 457, 457}, {"listmount", 458, 458},
	{"unshare", 272, 97}, {"bpf", 321, 280}, {"perf_event_open", 298, 241},
	{"userfaultfd", 323, 282}, {"io_uring_setup", 425, 425}, {"io_uring_enter", 426, 426},
	{"io_uring_register", 427, 427}, {"ptrace", 101, 117}, {"process_vm_readv", 310, 270},
	{"process_vm_writev", 311, 271}, {"kcmp", 312, 272}, {"pidfd_getfd", 438, 438},
	{"process_madvise", 440, 440}, {"keyctl", 250, 219}, {"add_key", 248, 217},
	{"request_key", 249, 218}, {"init_module", 175, 105}, {"finit_module", 313, 273},
	{"delete_module", 176, 106}, {"kexec_load", 246, 104}, {"kexec_file_load", 320, 294},
	{"reboot", 169, 142}, {"syslog", 103, 116}, {"acct", 163, 89}, {"swapon", 167, 224},
	{"swapoff", 168, 225}, {"quotactl", 179, 60}, {"quotactl_fd", 443, 443},
	{"vhangup", 153, 58}, {"nfsservctl", 180, 42}, {"settimeofday", 164, 170},
	{"clock_settime", 227, 112}, {"clock_adjtime", 305, 266}, {"adjtimex", 159, 171},
	{"name_to_handle_at", 303, 264}, {"open_by_handle_at", 304, 265},
	{"fanotify_init", 300, 262}, {"lookup_dcookie", 212, 18}, {"mbind", 237, 235},
	{"migrate_pages", 256, 238}, {"move_pages", 279, 239},
	{"iopl", 172, none}, {"ioperm", 173, none}, {"modify_ldt", 154, none},
	{"create_module", 174, none}, {"uselib", 134, none}, {"ustat", 136, none},
	{"_sysctl", 156, none},
}

// call is a system call as a filter sees it.
type call struct {
	name   string
	number uint32
	arch   uint32
	args   [3]uint32
}

// verdict returns the filter's answer to a call.
func (c call) verdict(t *testing.T, filter *bpf.VM) uint32 {
	t.Helper()
	const size = 64 // struct seccomp_data: number, architecture, 8 bytes, 6 arguments of 8 bytes
	b := make([]byte, size)
	binary.BigEndian.PutUint32(b, c.number) // which the simulation reads, unlike the kernel
	binary.BigEndian.PutUint32(b[4:], c.arch)
	for i, a := range c.args {
		binary.BigEndian.PutUint32(b[16+8*i:], a)
	}
	got, err := filter.Run(b)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(got)
}

// simulated returns the filter of this architecture.
func simulated(t *testing.T, asks bool) *bpf.VM {
	t.Helper()
	f, err := newFilter(asks)
	if err != nil {
		t.Fatal(err)
	}
	var list []bpf.Instruction
	for _, x := range unsafe.Slice(f.Filter, f.Len) {
		list = append(list, bpf.RawInstruction{Op: x.Code, Jt: x.Jt, Jf: x.Jf, K: x.K}.Disassemble())
	}
	vm, err := bpf.NewVM(list)
	if err != nil {
		t.Fatal(err)
	}
	return vm
}

func TestFilter(t *testing.T) {
	const allow, notify = unix.SECCOMP_RET_ALLOW, unix.SECCOMP_RET_USER_NOTIF
	refuse := func(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }
	// the numbers of calls that are judged by their arguments
	n := map[string]map[string]uint32{
		"amd64": {"arch": 0xc000003e, "compat": 0x40000003, "clone": 56, "clone3": 435, "setns": 308,
			"socket": 41, "setsockopt": 54, "read": 0, "execve": 59, "openat": 257, "newer": 463},
		"arm64": {"arch": 0xc00000b7, "compat": 0x40000028, "clone": 220, "clone3": 435, "setns": 268,
			"socket": 198, "setsockopt": 208, "read": 63, "execve": 221, "openat": 56, "newer": 463},
	}[runtime.GOARCH]
	if n == nil {
		t.Skip("system calls of this architecture are not filtered")
	}
	for _, asks := range []bool{false, true} {
		vm := simulated(t, asks)
		check := func(want uint32, c call) {
			t.Helper()
			if c.arch == 0 {
				c.arch = n["arch"]
			}
			if got := c.verdict(t, vm); got != want {
				t.Errorf("%s, number %d, of architecture %#x, arguments %#x: %#x, want %#x", c.name,
					c.number, c.arch, c.args, got, want)
			}
		}
		by := func(name string, args ...uint32) (c call) {
			c = call{name: name, number: n[name]}
			copy(c.args[:], args)
			return c
		}
		for _, f := range forbidden {
			number := f.amd64
			if runtime.GOARCH == "arm64" {
				number = f.arm64
			}
			if number != none {
				check(refuse(unix.EPERM), call{name: f.name, number: number})
				check(refuse(unix.ENOSYS), call{name: f.name, number: number, arch: n["compat"]})
			}
		}
		for _, name := range []string{"read", "execve", "openat"} {
			check(allow, by(name))
		}
		check(refuse(unix.ENOSYS), by("newer"))
		check(refuse(unix.ENOSYS), by("clone3"))
		check(refuse(unix.ENOSYS), call{name: "read of x32", number: 1<<30 | n["read"]})
		check(allow, by("clone", uint32(unix.SIGCHLD)))
		for _, flag := range []uint32{0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000,
			0x40000000, 0x80} {
			check(refuse(unix.EPERM), by("clone", flag|uint32(unix.SIGCHLD)))
			check(refuse(unix.EPERM), by("setns", 3, flag&^0x40000000))
		}
		check(allow, by("setns", 3, 0x40000000)) // CLONE_NEWNET
		for family := range uint32(unix.AF_MAX) {
			want := refuse(unix.EAFNOSUPPORT)
			if slices.Contains([]uint32{2, 10, 16, 17}, family) { // IP, netlink, packets
				want = allow
			}
			check(want, by("socket", family, 1))
		}
		const level, sendForce, receiveForce, buffer = 1, 32, 33, 7
		want := uint32(allow)
		if asks {
			want = notify
		}
		check(want, by("setsockopt", 3, level, sendForce))
		check(want, by("setsockopt", 3, level, receiveForce))
		check(allow, by("setsockopt", 3, level, buffer))
		check(allow, by("setsockopt", 3, 6, sendForce))
	}
}
