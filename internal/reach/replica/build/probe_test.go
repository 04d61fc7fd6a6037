package build

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// probeArg makes the test's program attempt something in the jail.
const probeArg = "probe"

// attempt is what probes try by system calls. Each returns the error that it got.
var attempts = map[string]func(args []string) error{
	"write":   func(a []string) error { return os.WriteFile(a[0], []byte(a[1]), 0o644) },
	"chmod":   func(a []string) error { return os.Chmod(a[0], 0o400) },
	"chown":   func(a []string) error { return os.Chown(a[0], os.Getuid(), os.Getgid()) },
	"touch":   func(a []string) error { return os.Chtimes(a[0], time.Time{}, time.Now()) },
	"connect": func(a []string) error { _, err := net.Dial(a[0], a[1]); return err },
	"socket": func(a []string) error {
		family, _ := strconv.Atoi(a[0])
		_, err := unix.Socket(family, unix.SOCK_STREAM, 0)
		if errors.Is(err, unix.ESOCKTNOSUPPORT) || errors.Is(err, unix.EPROTONOSUPPORT) {
			return fmt.Errorf("the family is known: %w", err)
		}
		return err
	},
	// force sets buffers of new sockets of a family regardless of the limit, until it is refused.
	"force": func(a []string) error {
		family, _ := strconv.Atoi(a[0])
		for range 5000 {
			fd, err := unix.Socket(family, unix.SOCK_RAW, 0)
			if err == nil {
				err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 1<<30)
			}
			if err != nil {
				return err
			}
			if n, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF); n > 64<<20 {
				return fmt.Errorf("%d bytes", n)
			}
			_ = unix.Close(fd)
		}
		return nil
	},
	"fifo": func(a []string) error {
		fd, err := unix.Open(a[0], unix.O_WRONLY|unix.O_NONBLOCK, 0)
		if err == nil {
			_, err = unix.Write(fd, []byte("out"))
		}
		return err
	},
	"kill": func(a []string) error {
		pid, _ := strconv.Atoi(a[0])
		return unix.Kill(pid, unix.SIGKILL)
	},
	"mount":   func([]string) error { return unix.Mount("x", "/tmp", "tmpfs", 0, "") },
	"remount": func([]string) error { return unix.Mount("", "/usr", "", unix.MS_REMOUNT|unix.MS_BIND, "") },
	"umount":  func([]string) error { return unix.Unmount("/usr", unix.MNT_DETACH) },
	"fsopen":  func([]string) error { return call(unix.SYS_FSOPEN, ptr("tmpfs\x00"), 0) },
	"opentree": func([]string) error {
		return call(unix.SYS_OPEN_TREE, ^uintptr(99), ptr("/\x00"), 1)
	},
	"pivot":  func([]string) error { return unix.PivotRoot("/tmp", "/tmp") },
	"chroot": func([]string) error { return unix.Chroot("/usr") },
	"unshare": func(a []string) error {
		flag, _ := strconv.ParseUint(a[0], 0, 64)
		return unix.Unshare(int(flag))
	},
	"clone": func(a []string) error {
		flag, _ := strconv.ParseUint(a[0], 0, 64)
		return call(unix.SYS_CLONE, uintptr(flag)|uintptr(unix.SIGCHLD), 0, 0, 0, 0)
	},
	"clone3": func([]string) error {
		args := [8]uint64{unix.CLONE_NEWUSER, 0, 0, 0, uint64(unix.SIGCHLD)}
		return call(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args))
	},
	"setns": func(a []string) error {
		fd, err := unix.Open(a[0], unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		kind, _ := strconv.ParseUint(a[1], 0, 64)
		return unix.Setns(fd, int(kind))
	},
	"bpf":     func([]string) error { return call(unix.SYS_BPF, 0, 0, 0) },
	"iouring": func([]string) error { return call(unix.SYS_IO_URING_SETUP, 8, 0) },
	"ptrace": func(a []string) error {
		pid, _ := strconv.Atoi(a[0])
		return unix.PtraceAttach(pid)
	},
	"readv": func(a []string) error {
		pid, _ := strconv.Atoi(a[0])
		return call(unix.SYS_PROCESS_VM_READV, uintptr(pid), 0, 0, 0, 0, 0)
	},
	"getfd":  func([]string) error { return call(unix.SYS_PIDFD_GETFD, 0, 0, 0) },
	"handle": func([]string) error { return call(unix.SYS_OPEN_BY_HANDLE_AT, 0, 0, 0) },
	"reboot": func([]string) error { return call(unix.SYS_REBOOT, 0, 0, 0, 0) },
	"clock": func([]string) error {
		return unix.ClockSettime(unix.CLOCK_REALTIME, &unix.Timespec{Sec: time.Now().Unix()})
	},
	"adjtime":  func([]string) error { return call(unix.SYS_ADJTIMEX, 0) },
	"syslog":   func([]string) error { return call(unix.SYS_SYSLOG, 3, 0, 0) },
	"module":   func([]string) error { return unix.FinitModule(0, "", 0) },
	"kexec":    func([]string) error { return call(unix.SYS_KEXEC_LOAD, 0, 0, 0, 0) },
	"keyctl":   func([]string) error { return call(unix.SYS_KEYCTL, 0, 0, 0) },
	"perf":     func([]string) error { return call(unix.SYS_PERF_EVENT_OPEN, 0, 0, 0, 0, 0) },
	"fault":    func([]string) error { return call(unix.SYS_USERFAULTFD, 0) },
	"fanotify": func([]string) error { return call(unix.SYS_FANOTIFY_INIT, 0, 0) },
	"mknod": func([]string) error {
		return unix.Mknod("/tmp/null", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3)))
	},
	"newcall": func([]string) error { return call(1000) },
	"open": func(a []string) error {
		fd, err := unix.Open(a[0], unix.O_RDONLY, 0)
		if err == nil {
			_ = unix.Close(fd)
		}
		return err
	},
	"send": func(a []string) error {
		c, err := net.Dial("udp", a[0])
		if err == nil {
			_, err = c.Write([]byte("out"))
		}
		return err
	},
	// settings writes all parameters of the network that the kernel lets it write.
	"settings": func([]string) error {
		n := 0
		err := filepath.WalkDir("/proc/sys/net", func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return nil
			}
			was, err := os.ReadFile(path)
			if err != nil {
				return nil
			}
			for _, value := range []string{"1", "0", "2", "7", "100", "4096"} {
				if value != strings.TrimSpace(string(was)) &&
					os.WriteFile(path, []byte(value), 0o644) == nil {
					n++
					break
				}
			}
			return nil
		})
		fmt.Println(n, "written")
		return err
	},
}

func ptr(s string) uintptr { return uintptr(unsafe.Pointer(unsafe.StringData(s))) }

func call(number uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	r, _, errno := syscall.RawSyscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno != 0 {
		return errno
	}
	if number == unix.SYS_CLONE && r == 0 {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	return nil
}

// probed runs in the jail: it prints the name of the error that an attempt got.
func probed(args []string) {
	err := attempts[args[0]](args[1:])
	var errno syscall.Errno
	switch {
	case err == nil:
		fmt.Println("done")
	case errors.As(err, &errno):
		fmt.Println(unix.ErrnoName(errno))
	default:
		fmt.Println(err)
	}
}
