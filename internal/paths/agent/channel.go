package agent

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

type channel struct {
	mu    sync.Mutex
	conns map[*held]bool
	gone  path.Traffic // of closed connections
}

type held struct {
	net.Conn
	of            *channel
	read, written atomic.Uint64 // bytes
	calls         atomic.Uint64 // that moved bytes
}

func (h *held) Read(b []byte) (int, error) {
	n, err := h.Conn.Read(b)
	h.count(&h.read, n)
	return n, err
}

func (h *held) Write(b []byte) (int, error) {
	n, err := h.Conn.Write(b)
	h.count(&h.written, n)
	return n, err
}

func (h *held) count(way *atomic.Uint64, n int) {
	if n > 0 {
		way.Add(uint64(n))
		h.calls.Add(1)
	}
}

func (c *channel) add(t net.Conn) *held {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conns == nil {
		c.conns = map[*held]bool{}
	}
	h := &held{Conn: t, of: c}
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
	return h.Conn.Close()
}

// carried returns the kernel's counts or, for a carrier's streams, the bytes read and written.
func (h *held) carried() (t path.Traffic) {
	tcp, ok := h.Conn.(*net.TCPConn)
	if !ok {
		return path.Traffic{Bytes: h.read.Load() + h.written.Load(), Packets: h.calls.Load()}
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return t
	}
	_ = raw.Control(func(fd uintptr) { // fails if it was just closed
		i, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return
		}
		t.Bytes = i.Bytes_sent + i.Bytes_received
		// Linux before 4.19 has no Bytes_sent. Bytes_acked includes SYN and FIN, and lags behind.
		if i.Bytes_sent == 0 {
			t.Bytes = i.Bytes_acked + i.Bytes_received
		}
		t.Packets = uint64(i.Segs_out) + uint64(i.Segs_in)
	})
	return t
}

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

func since(a, b path.Traffic) path.Traffic {
	return path.Traffic{Bytes: b.Bytes - a.Bytes, Packets: b.Packets - a.Packets}
}

// Carrier carries all connections between an agent and its hub in one byte stream each way. The
// agent opens the connections, the hub accepts them. Carrier sends no keep-alive messages.
type Carrier = yamux.Session

// AtHub returns the hub's end of a carrier, AtAgent the agent's.
func AtHub(over io.ReadWriteCloser) (*Carrier, error) {
	return yamux.Server(over, carrierConfig())
}
func AtAgent(over io.ReadWriteCloser) (*Carrier, error) {
	return yamux.Client(over, carrierConfig())
}

func carrierConfig() *yamux.Config {
	c := yamux.DefaultConfig()
	c.EnableKeepAlive = false // the hub pings, and can be hushed
	c.LogOutput = io.Discard  // failures are errors of the connections
	c.StreamOpenTimeout = 0   // the handshake has its own limit
	c.StreamCloseTimeout = time.Minute
	return c
}
