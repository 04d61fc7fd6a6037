package testnet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

func TestTCP(t *testing.T) {
	at := TCP(t)
	if c, err := net.Dial("tcp", at.String()); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("dial: %v, %v", c, err)
	}
	if err := take(t, unix.SOCK_STREAM, at); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("another takes the port: %v", err)
	}
	serves(t, "tcp4", at.Addr(), at.Port())
}

func TestUDP(t *testing.T) {
	at := UDP(t)
	c, err := net.Dial("udp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("anybody?")); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 10)); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("read: %d, %v", n, err)
	}
	if err := take(t, unix.SOCK_DGRAM, at); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("another takes the port: %v", err)
	}
}

func TestPort(t *testing.T) {
	had := map[uint16]bool{}
	for range 200 {
		p := Port(t)
		if had[p] || p < 10000 || p > 32767 {
			t.Errorf("port %d, of %d", p, len(had))
		}
		had[p] = true
	}
	p := Port(t)
	for _, network := range []string{"tcp4", "tcp6"} {
		addr := netip.MustParseAddr(map[string]string{"tcp4": "127.0.0.1", "tcp6": "::1"}[network])
		if c, err := net.Dial(network, netip.AddrPortFrom(addr, p).String()); err == nil {
			t.Errorf("dial: %v", c)
		}
		if network == "tcp6" {
			if l, err := net.Listen("tcp6", "[::1]:0"); err != nil {
				t.Skipf("no IPv6 here: %v", err)
			} else {
				l.Close()
			}
		}
		serves(t, network, addr, p)
	}
	u, err := net.ListenPacket("udp4", fmt.Sprintf("127.0.0.1:%d", p))
	if err != nil {
		t.Fatal(err)
	}
	u.Close()
}

// take does not set SO_REUSEADDR.
func take(t *testing.T, kind int, at netip.AddrPort) error {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	return unix.Bind(fd, &unix.SockaddrInet4{Addr: at.Addr().As4(), Port: int(at.Port())})
}

func serves(t *testing.T, network string, addr netip.Addr, port uint16) {
	t.Helper()
	for range 2 {
		l, err := net.Listen(network, netip.AddrPortFrom(addr, port).String())
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial(network, l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		l.Close()
	}
}
