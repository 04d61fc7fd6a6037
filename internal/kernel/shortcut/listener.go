package shortcut

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/machine"
)

// Listener is a process's listening socket.
type Listener struct {
	PID   int
	Inode uint32
	// the command line of the process when ListenerOf was called
	Command []string
}

// ErrUDP means that shortcuts are for TCP only.
var ErrUDP error = &machine.UnsupportedError{
	Missing: "toll fast does not redirect UDP", Remedy: "publish-proxy or publish-nat"}

// ListenerOf finds the socket with which a process listens on a TCP port, in the calling thread's
// namespace.
func ListenerOf(pid int, port uint16) (Listener, error) {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return Listener{}, fmt.Errorf("find listener: %w", err)
	}
	theirs, err := sock.Inodes(pid)
	if err != nil {
		return Listener{}, fmt.Errorf("find listener: %w", err)
	}
	all, err := sock.Listeners()
	if err != nil {
		return Listener{}, fmt.Errorf("find listener: %w", err)
	}
	for _, s := range all {
		if s.Local.Port() == port && theirs[s.Inode] {
			return Listener{PID: pid, Inode: s.Inode,
				Command: strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")}, nil
		}
	}
	return Listener{}, fmt.Errorf("process %d does not listen on port %d", pid, port)
}

// ErrChanged means that the listener is not the one that ListenerOf found.
var ErrChanged = errors.New("the listener has changed meanwhile")

// Add adds a shortcut: clients that dial e.Dial, and would otherwise reach the listener, reach
// e.Target instead. The listener's process must be root's and in this network namespace. The error
// wraps ErrChanged if the listener or its process has changed.
func (t *Table) Add(e Entry, l Listener) error {
	if !e.Dial.Addr().IsLoopback() {
		return fmt.Errorf("%s is not a loopback address", e.Dial)
	}
	if err := t.mark(e.Target, l); err != nil {
		return err
	}
	key := toEndpoint(e.Dial)
	now := objectShortcut{Target: toEndpoint(e.Target)}
	if e.Server != 0 {
		id, err := link.NamespaceID(e.Server)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrChanged, err)
		}
		now.Netns = uint32(id + 1)
	}
	var old objectShortcut
	if err := t.maps.Shortcuts.Lookup(key, &old); err == nil && old.Target == now.Target &&
		old.Netns == now.Netns {
		return nil
	}
	if err := t.maps.Shortcuts.Put(key, now); err != nil {
		return fmt.Errorf("write BPF map: %w", err)
	}
	return nil
}

func (t *Table) mark(target netip.AddrPort, l Listener) (err error) {
	pidfd, err := unix.PidfdOpen(l.PID, 0)
	if err != nil {
		return fmt.Errorf("open process %d: %w: %w", l.PID, ErrChanged, err)
	}
	defer func() { err = errors.Join(err, unix.Close(pidfd)) }()
	if err := l.same(); err != nil {
		return err
	}
	theirs, err := l.descriptor()
	if err != nil {
		return err
	}
	fd, err := unix.PidfdGetfd(pidfd, theirs, 0)
	if err != nil {
		return fmt.Errorf("take socket of process %d: %w: %w", l.PID, ErrChanged, err)
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Ino != uint64(l.Inode) {
		return fmt.Errorf("socket %d of process %d: %w", l.Inode, l.PID, ErrChanged)
	}
	if p, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL); err != nil ||
		p != unix.IPPROTO_TCP {
		// A socket of MPTCP also appears as one of TCP.
		return fmt.Errorf("process %d does not listen by TCP: %w", l.PID, ErrChanged)
	}
	if shared, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT); err != nil ||
		shared != 0 {
		return fmt.Errorf("other processes may share the port of process %d: %w", l.PID, ErrChanged)
	}
	var now objectEndpoint
	want := toEndpoint(target)
	if err := t.maps.Listeners.Lookup(int32(fd), &now); err == nil && now == want {
		return nil
	}
	if err := t.maps.Listeners.Update(int32(fd), want, ebpf.UpdateAny); err != nil {
		return fmt.Errorf("mark socket of process %d: %w", l.PID, err)
	}
	if gone(pidfd) {
		return errors.Join(fmt.Errorf("process %d: %w", l.PID, ErrChanged),
			t.maps.Listeners.Delete(int32(fd)))
	}
	return nil
}

func (l Listener) same() error {
	dir := "/proc/" + strconv.Itoa(l.PID)
	line, err := os.ReadFile(dir + "/cmdline")
	if err != nil || strings.TrimRight(string(line), "\x00") != strings.Join(l.Command, "\x00") {
		return fmt.Errorf("process %d: %w", l.PID, ErrChanged)
	}
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil || st.Uid != 0 {
		return fmt.Errorf("process %d does not run as root: %w", l.PID, ErrChanged)
	}
	here, err := netns.ID(unix.Gettid())
	if err != nil {
		return err
	}
	if there, err := netns.ID(l.PID); err != nil || there != here {
		return fmt.Errorf("process %d is in another network namespace: %w", l.PID, ErrChanged)
	}
	return nil
}

func (l Listener) descriptor() (int, error) {
	dir := "/proc/" + strconv.Itoa(l.PID) + "/fd"
	all, err := os.ReadDir(dir)
	if err != nil {
		return 0, fmt.Errorf("process %d: %w", l.PID, ErrChanged)
	}
	want := fmt.Sprintf("socket:[%d]", l.Inode)
	for _, e := range all {
		if to, err := os.Readlink(dir + "/" + e.Name()); err == nil && to == want {
			return strconv.Atoi(e.Name())
		}
	}
	return 0, fmt.Errorf("socket %d of process %d: %w", l.Inode, l.PID, ErrChanged)
}

func gone(pidfd int) bool {
	p := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	n, err := unix.Poll(p, 0)
	return err == nil && n > 0
}
