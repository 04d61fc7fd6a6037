// Package sock reads the kernel's counters of a process's TCP sockets by sock_diag, as `ss -ti`
// does, without touching the process. Call it inside netns.NS.Do.
package sock

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Conn is a TCP connection of a process.
type Conn struct {
	Inode      uint32 // of the socket; unique while the socket exists
	LocalPort  uint16
	RemotePort uint16
	Received   uint64 // payload bytes
	Sent       uint64 // payload bytes, each counted once
	Resent     uint64 // payload bytes
}

// Of lists the TCP connections of process pid, without its listening sockets.
func Of(pid int) ([]Conn, error) {
	inodes, err := sockets(pid)
	if err != nil || len(inodes) == 0 {
		return nil, err
	}
	return conns(func(inode uint32) bool { return inodes[inode] })
}

// All lists the TCP connections of all processes in the calling thread's network namespace.
func All() ([]Conn, error) { return conns(func(inode uint32) bool { return inode != 0 }) }

func conns(of func(inode uint32) bool) ([]Conn, error) {
	var out []Conn
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		all, err := netlink.SocketDiagTCPInfo(family)
		if err != nil {
			return nil, fmt.Errorf("read sockets: %w", err)
		}
		for _, s := range all {
			if s.InetDiagMsg == nil || s.TCPInfo == nil || !of(s.InetDiagMsg.INode) {
				continue
			}
			id := s.InetDiagMsg.ID
			if id.DestinationPort == 0 {
				continue
			}
			out = append(out, Conn{Inode: s.InetDiagMsg.INode, LocalPort: id.SourcePort,
				RemotePort: id.DestinationPort,
				Received:   s.TCPInfo.Bytes_received, Sent: sent(s.TCPInfo),
				Resent: s.TCPInfo.Bytes_retrans})
		}
	}
	return out, nil
}

func sent(t *netlink.TCPInfo) uint64 {
	if t.Bytes_sent == 0 {
		return t.Bytes_acked
	}
	return t.Bytes_sent - t.Bytes_retrans
}

// Supported returns nil if the kernel has sock_diag for TCP.
func Supported() error {
	if _, err := netlink.SocketDiagTCPInfo(unix.AF_INET); err != nil {
		return fmt.Errorf("read sockets: %w", err)
	}
	return nil
}

// sockets returns the inodes of the sockets that a process has open. Unlike procfs's
// FileDescriptorTargets, it returns an error if it may not read some of them.
func sockets(pid int) (map[uint32]bool, error) {
	failed := func(err error) (map[uint32]bool, error) {
		return nil, fmt.Errorf("read sockets of process %d: %w", pid, err)
	}
	dir, err := os.Open(filepath.Join("/proc", strconv.Itoa(pid), "fd"))
	if err != nil {
		return failed(err)
	}
	defer dir.Close()
	fds, err := dir.Readdirnames(-1)
	if err != nil {
		return failed(err)
	}
	out := map[uint32]bool{}
	var to [64]byte // a socket's name is shorter
	for _, fd := range fds {
		n, err := unix.Readlinkat(int(dir.Fd()), fd, to[:])
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return failed(err)
		}
		if n, ok := strings.CutPrefix(string(to[:n]), "socket:["); ok {
			if inode, err := strconv.ParseUint(strings.TrimSuffix(n, "]"), 10, 32); err == nil {
				out[uint32(inode)] = true
			}
		}
	}
	return out, nil
}

// Peer returns the process and the user at the other end of a Unix connection (SO_PEERCRED). The
// PID is 0 if the process is in another PID namespace.
func Peer(c *net.UnixConn) (peer *unix.Ucred, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	if errRaw := raw.Control(func(fd uintptr) {
		peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); errRaw != nil || err != nil {
		return nil, errors.Join(errRaw, err)
	}
	return peer, nil
}
