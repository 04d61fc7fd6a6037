package jail

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// denied lists system calls that fail with EPERM: those by which a script could get other
// privileges, other files, other processes' memory or descriptors, or change the machine, if the
// kernel did not refuse them anyway.
var denied = append(deniedHere,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_OPEN_TREE,
	unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
	unix.SYS_MOUNT_SETATTR, unix.SYS_STATMOUNT, unix.SYS_LISTMOUNT,
	unix.SYS_UNSHARE, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP,
	unix.SYS_PIDFD_GETFD, unix.SYS_PROCESS_MADVISE,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD,
	unix.SYS_REBOOT, unix.SYS_SYSLOG, unix.SYS_ACCT, unix.SYS_SWAPON, unix.SYS_SWAPOFF,
	unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_VHANGUP, unix.SYS_NFSSERVCTL,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX,
	unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT,
	unix.SYS_LOOKUP_DCOOKIE, unix.SYS_MBIND, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES,
)

// families lists the sockets that a script may open. Unix sockets lead to daemons.
var families = []uint32{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK, unix.AF_PACKET}

// newSpaces has the flags of clone that make namespaces.
const newSpaces = unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
	unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP | unix.CLONE_NEWTIME

// newFilter returns the filter of system calls. Its flags are read from the lower half of an
// argument, as the kernel does. With asks, the kernel asks by a notification when the size of a
// socket's buffer is set regardless of the limit; see Grants.
func newFilter(asks bool) (*unix.SockFprog, error) {
	if auditArch == 0 {
		return nil, errors.New("system calls of this architecture cannot be filtered")
	}
	const number, arch, arg0, arg1, arg2 = 0, 4, 16, 24, 32
	refuse := func(e syscall.Errno) bpf.RetConstant {
		return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(e)}
	}
	load := func(at uint32) bpf.LoadAbsolute { return bpf.LoadAbsolute{Off: at, Size: 4} }
	allow := bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	list := []bpf.Instruction{
		load(arch),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		refuse(unix.ENOSYS), // 32-bit calls have other numbers
		load(number),
		// Calls that are newer than this list; x32's numbers are higher, too.
		bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: unix.SYS_MSEAL, SkipTrue: 1},
		refuse(unix.ENOSYS),
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_CLONE3, SkipTrue: 1},
		refuse(unix.ENOSYS), // libc then uses clone, whose flags can be read
	}
	for _, n := range denied {
		list = append(list, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: n, SkipTrue: 1},
			refuse(unix.EPERM))
	}
	if asks {
		list = append(list,
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_SETSOCKOPT, SkipTrue: 7},
			load(arg1),
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SOL_SOCKET, SkipTrue: 4},
			load(arg2),
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SO_SNDBUFFORCE, SkipTrue: 1},
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SO_RCVBUFFORCE, SkipTrue: 1},
			bpf.RetConstant{Val: unix.SECCOMP_RET_USER_NOTIF},
			allow)
	}
	list = append(list,
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_CLONE, SkipTrue: 4},
		load(arg0),
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: newSpaces, SkipFalse: 1},
		refuse(unix.EPERM),
		allow,
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_SETNS, SkipTrue: 4},
		load(arg1),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.CLONE_NEWNET, SkipTrue: 1},
		refuse(unix.EPERM),
		allow,
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_SOCKET, SkipTrue: 1},
		allow,
		load(arg0),
	)
	for _, f := range families {
		list = append(list, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: f, SkipTrue: 1}, allow)
	}
	raw, err := bpf.Assemble(append(list, refuse(unix.EAFNOSUPPORT)))
	if err != nil {
		return nil, fmt.Errorf("assemble the filter of system calls: %w", err)
	}
	out := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		out[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return &unix.SockFprog{Len: uint16(len(out)), Filter: &out[0]}, nil
}

// install sets the filter for the calling thread.
//
//go:norace
//go:nosplit
func install(filter *unix.SockFprog) syscall.Errno {
	_, _, errno := syscall.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0,
		uintptr(unsafe.Pointer(filter)))
	return errno
}

// installAsking sets a filter that asks for the calling thread, and returns the file of its
// notifications.
func installAsking(filter *unix.SockFprog) (fd int, errno syscall.Errno) {
	r, _, errno := syscall.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(filter)))
	return int(r), errno
}
