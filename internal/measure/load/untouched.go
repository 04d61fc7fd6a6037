package load

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Another process can get a load's socket (pidfd_getfd, BPF) and set its options. No counter shows
// that, so the load compares the options when it opens and when it is over.

// watchedOptions are the socket options that change what a socket carries, and that neither the
// kernel nor a loop changes. The kernel moves TCP_WINDOW_CLAMP.
var watchedOptions = []struct {
	name          string
	level, option int
}{
	{"SO_MAX_PACING_RATE", unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE},
	{"SO_BUF_LOCK", unix.SOL_SOCKET, unix.SO_BUF_LOCK}, // SO_SNDBUF or SO_RCVBUF was set
	{"SO_GET_FILTER", unix.SOL_SOCKET, unix.SO_GET_FILTER},
	{"SO_PRIORITY", unix.SOL_SOCKET, unix.SO_PRIORITY},
	{"SO_MARK", unix.SOL_SOCKET, unix.SO_MARK},
	{"SO_BUSY_POLL", unix.SOL_SOCKET, unix.SO_BUSY_POLL},
	{"SO_RCVLOWAT", unix.SOL_SOCKET, unix.SO_RCVLOWAT},
	{"TCP_CONGESTION", unix.IPPROTO_TCP, unix.TCP_CONGESTION},
	{"TCP_NODELAY", unix.IPPROTO_TCP, unix.TCP_NODELAY},
	{"TCP_CORK", unix.IPPROTO_TCP, unix.TCP_CORK},
	{"TCP_NOTSENT_LOWAT", unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT},
	{"TCP_TX_DELAY", unix.IPPROTO_TCP, unix.TCP_TX_DELAY},
	{"TCP_ULP", unix.IPPROTO_TCP, unix.TCP_ULP},
}

func (t *thread) sockets() []int {
	switch {
	case t.twin != nil, t.brief != nil:
		return nil
	case len(t.fds) > 0:
		return t.fds
	}
	return []int{t.fd}
}

func (t *thread) noteOptions() {
	for _, fd := range t.sockets() {
		t.noted = append(t.noted, optionsOf(fd))
	}
}

func (t *thread) untouched() error {
	for i, fd := range t.sockets() {
		if i >= len(t.noted) {
			break
		}
		now := optionsOf(fd)
		for j, o := range watchedOptions {
			if was := t.noted[i][j]; now[j] != was {
				return fmt.Errorf(
					"another program changed a socket of the load: %s was %s and is %s", o.name,
					was, now[j])
			}
		}
	}
	return nil
}

func optionsOf(fd int) []string {
	out := make([]string, len(watchedOptions))
	for i, o := range watchedOptions {
		var value [16]byte
		size := uint32(len(value))
		if o.level == unix.SOL_SOCKET {
			size = 8 // the kernel fills 4 of them or, for a rate, 8
		}
		if o.option == unix.SO_GET_FILTER && o.level == unix.SOL_SOCKET {
			size = 0 // request only the number of instructions
		}
		_, _, e := syscall.RawSyscall6(syscall.SYS_GETSOCKOPT, uintptr(fd), uintptr(o.level),
			uintptr(o.option),
			uintptr(unsafe.Pointer(&value)), uintptr(unsafe.Pointer(&size)), 0)
		switch {
		case e != 0: // the kernel lacks it, or does not return a BPF filter
			out[i] = e.Error()
		case o.option == unix.TCP_CONGESTION && o.level == unix.IPPROTO_TCP,
			o.option == unix.TCP_ULP && o.level == unix.IPPROTO_TCP:
			name, _, _ := strings.Cut(string(value[:size]), "\x00")
			out[i] = strconv.Quote(name)
		case o.option == unix.SO_GET_FILTER && o.level == unix.SOL_SOCKET:
			out[i] = strconv.Itoa(int(size)) + " instructions"
		default:
			out[i] = strconv.FormatUint(binary.NativeEndian.Uint64(value[:]), 10)
		}
		if n := strconv.FormatUint(1<<64-1, 10); out[i] == n {
			out[i] = "unlimited"
		}
	}
	return out
}
