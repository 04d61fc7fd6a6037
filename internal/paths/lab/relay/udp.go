package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// As in docker-proxy 28.5.2 (cmd/docker-proxy/udp_proxy_linux.go), one loop receives all clients'
// datagrams, and a goroutine for each client returns answers from the address that the client
// dialled.
const (
	forgetAfter = 90 * time.Second
	largest     = 65507 // bytes of a datagram
)

type udpProxy struct {
	listener *net.UDPConn
	target   *net.UDPAddr

	mu      sync.Mutex
	clients map[netip.AddrPort]*udpClient
}

type udpClient struct {
	server *net.UDPConn
	mu     sync.Mutex // held while writing to or closing server
}

func runUDP(ctx context.Context, f flags, ready io.WriteCloser) error {
	p := &udpProxy{clients: map[netip.AddrPort]*udpClient{}}
	err := p.listen(ctx, f)
	if err := say(ready, err); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { p.listener.Close() })
	defer stop()
	if err := p.serve(); ctx.Err() == nil {
		return fmt.Errorf("receive: %w", err)
	}
	return nil
}

func (p *udpProxy) listen(ctx context.Context, f flags) (err error) {
	if p.target, err = net.ResolveUDPAddr("udp", f.target()); err != nil {
		return err
	}
	c := net.ListenConfig{Control: func(network, _ string, raw syscall.RawConn) error {
		var set error
		err := raw.Control(func(fd uintptr) {
			if network == "udp6" {
				set = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
			} else {
				set = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
			}
		})
		return errors.Join(err, set)
	}}
	ln, err := c.ListenPacket(ctx, f.network(), f.host())
	if err != nil {
		return err
	}
	p.listener = ln.(*net.UDPConn)
	return nil
}

func (p *udpProxy) serve() error {
	const room = 64
	buf, oob := make([]byte, largest), make([]byte, room)
	for {
		n, extra, _, from, err := p.listener.ReadMsgUDPAddrPort(buf, oob)
		if err != nil {
			return err
		}
		c, err := p.client(from, oob[:extra])
		if err != nil {
			continue // the datagram is lost, as with docker-proxy
		}
		_ = c.server.SetWriteDeadline(time.Now().Add(forgetAfter))
		_, _ = c.server.Write(buf[:n])
		c.mu.Unlock()
	}
}

func (p *udpProxy) client(from netip.AddrPort, oob []byte) (*udpClient, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.clients[from]
	if c == nil {
		server, err := net.DialUDP("udp", nil, p.target)
		if err != nil {
			return nil, err
		}
		c = &udpClient{server: server}
		p.clients[from] = c
		go p.answer(c, from, source(oob))
	}
	c.mu.Lock()
	return c, nil
}

func (p *udpProxy) answer(c *udpClient, to netip.AddrPort, oob []byte) {
	defer func() {
		p.mu.Lock()
		delete(p.clients, to)
		c.mu.Lock()
		p.mu.Unlock()
		c.server.Close()
		c.mu.Unlock()
	}()
	buf := make([]byte, largest)
	for {
		_ = c.server.SetReadDeadline(time.Now().Add(forgetAfter))
		n, err := c.server.Read(buf)
		for errors.Is(err, syscall.ECONNREFUSED) { // no socket listens in the container
			n, err = c.server.Read(buf)
		}
		if err != nil {
			return
		}
		if _, _, err := p.listener.WriteMsgUDPAddrPort(buf[:n], oob, to); err != nil {
			return
		}
	}
}

// source converts a datagram's control message into its answer's, or returns nil without one.
func source(oob []byte) []byte {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for _, m := range messages {
		switch {
		case m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_PKTINFO &&
			len(m.Data) >= unix.SizeofInet4Pktinfo:
			var info unix.Inet4Pktinfo
			copy(info.Spec_dst[:], m.Data[8:12]) // its address in the header
			return unix.PktInfo4(&info)
		case m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_PKTINFO &&
			len(m.Data) >= unix.SizeofInet6Pktinfo:
			var info unix.Inet6Pktinfo
			copy(info.Addr[:], m.Data[:16])
			return unix.PktInfo6(&info)
		}
	}
	return nil
}
