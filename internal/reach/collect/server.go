package collect

import (
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/prometheus/procfs"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
)

// ServerAt returns the PID of the process of this machine that serves a TCP address dialled from a
// place, in whatever network namespace it is. It connects once, and looks for the connection's
// other end. It returns 0 if it finds none, or only a program that serves for another one, such as
// docker-proxy; other namespaces than the caller's need CAP_SYS_ADMIN.
func ServerAt(ctx context.Context, dial netip.AddrPort, from *vantage.Vantage) int {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	c, _, err := from.Dial(ctx, "tcp", dial.String())
	if err != nil {
		return 0
	}
	defer c.Close()
	local, ok := c.LocalAddr().(*net.TCPAddr)
	if !ok {
		return 0
	}
	spaces, err := netns.Find()
	if err != nil {
		return 0
	}
	defer func() {
		for _, s := range spaces {
			_ = s.Close()
		}
	}()
	for _, s := range spaces {
		var inode uint32
		err := s.Visit(func() (err error) {
			inode, err = otherEnd(unmapped(local.AddrPort()))
			return err
		})
		if err == nil && inode != 0 {
			return ownerIn(s.ID, inode)
		}
	}
	return 0
}

// otherEnd returns the inode of the socket in the calling thread's network namespace that is
// connected to the address client or, if no process has accepted the connection yet, of the socket
// that listens for it; 0: none.
func otherEnd(client netip.AddrPort) (inode uint32, err error) {
	all, err := sock.Table()
	if err != nil {
		return 0, err
	}
	for _, s := range all {
		if s.Proto != "tcp" || s.Listening || unmapped(s.Remote) != client {
			continue
		}
		if s.Inode != 0 {
			return s.Inode, nil
		}
		for _, l := range all {
			at := l.Local.Addr().Unmap()
			if l.Proto == "tcp" && l.Listening && l.Local.Port() == s.Local.Port() &&
				(at == s.Local.Addr().Unmap() || at.IsUnspecified()) {
				inode = l.Inode
			}
		}
		return inode, nil
	}
	return 0, nil
}

func unmapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// ownerIn returns the lowest PID of the processes in a network namespace that have a socket open.
func ownerIn(space string, inode uint32) (pid int) {
	all, err := procfs.AllProcs()
	if err != nil {
		return 0
	}
	for _, p := range all {
		if id, err := netns.ID(p.PID); err != nil || id != space {
			continue
		}
		open, err := sock.Inodes(p.PID)
		if err != nil || !open[inode] || pid != 0 && pid < p.PID {
			continue
		}
		if name, err := p.Comm(); err == nil && ports.Passes(name) {
			return 0
		}
		pid = p.PID
	}
	return pid
}
