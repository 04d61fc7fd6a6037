package agent

import (
	"net"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/build/path"
)

// channel is all connections of an agent to its hub.
type channel struct {
	mu    sync.Mutex // guards following
	conns map[*held]bool
	gone  path.Traffic // of those that were closed
}

// held is a connection that is counted until it is closed.
type held struct {
	*net.TCPConn
	of   *channel
	read atomic.Uint64 // bytes
}

func (h *held) Read(b []byte) (int, error) {
	n, err := h.TCPConn.Read(b)
	h.read.Add(uint64(max(0, n)))
	return n, err
}

func (c *channel) add(t *net.TCPConn) *held {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conns == nil {
		c.conns = map[*held]bool{}
	}
	h := &held{TCPConn: t, of: c}
	c.conns[h] = true
	return h
}

func (h *held) Close() error {
	h.of.mu.Lock()
	if h.of.conns[h] {
		delete(h.of.conns, h)
		h.of.gone = sum(h.of.gone, h.carried())
	}
	h.of.mu.Unlock()
	return h.TCPConn.Close()
}

// carried is what the kernel says of the connection.
func (h *held) carried() (t path.Traffic) {
	raw, err := h.SyscallConn()
	if err != nil {
		return t
	}
	_ = raw.Control(func(fd uintptr) { // one that was just closed says nothing
		i, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return
		}
		t.Bytes = i.Bytes_sent + i.Bytes_received
		if i.Bytes_sent == 0 { // before Linux 4.19; what is acknowledged has SYN and FIN in it, and comes later
			t.Bytes = i.Bytes_acked + i.Bytes_received
		}
		t.Packets = uint64(i.Segs_out) + uint64(i.Segs_in)
	})
	return t
}

// traffic is what all of them have carried so far.
func (c *channel) traffic() path.Traffic {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.gone
	for h := range c.conns {
		t = sum(t, h.carried())
	}
	return t
}

func sum(a, b path.Traffic) path.Traffic {
	return path.Traffic{Bytes: a.Bytes + b.Bytes, Packets: a.Packets + b.Packets}
}

// since is what was carried between two counts.
func since(a, b path.Traffic) path.Traffic {
	return path.Traffic{Bytes: b.Bytes - a.Bytes, Packets: b.Packets - a.Packets}
}
