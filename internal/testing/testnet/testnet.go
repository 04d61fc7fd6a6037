// Package testnet gives tests ports that no other process gets meanwhile, as it may get one that
// was found by listening and closing.
package testnet

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// TCP returns an address of 127.0.0.1 that belongs to the test until its end. It refuses
// connections until a server of the test listens there, which needs SO_REUSEADDR.
func TCP(t testing.TB) netip.AddrPort {
	t.Helper()
	fd := open(t, unix.SOCK_STREAM)
	at := bind(t, fd)
	reuse(t, fd)
	return at
}

// UDP returns an address of 127.0.0.1 that belongs to the test until its end. Datagrams to it are
// refused.
func UDP(t testing.TB) netip.AddrPort {
	t.Helper()
	fd := open(t, unix.SOCK_DGRAM)
	at := bind(t, fd)
	// A socket connected with itself receives no others' datagrams.
	if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: at.Addr().As4(), Port: int(at.Port())}); err != nil {
		t.Fatal(err)
	}
	return at
}

// Port returns a port that belongs to the test until its end, by TCP and UDP at all addresses of
// the calling thread's network namespace. A TCP server of the test that listens there needs
// SO_REUSEADDR.
func Port(t testing.TB) uint16 {
	t.Helper()
	const first, last = 10000, 32767 // the kernel assigns those from 32768 on
	for range 1000 {
		port := first + rand.IntN(last-first+1)
		tcp := claim(t, unix.SOCK_STREAM, port) // claims the UDP port as well
		if tcp < 0 {
			continue
		}
		udp := claim(t, unix.SOCK_DGRAM, port)
		if udp < 0 {
			_ = unix.Close(tcp)
			continue
		}
		_ = unix.Close(udp)
		t.Cleanup(func() { _ = unix.Close(tcp) })
		return uint16(port)
	}
	t.Fatal("no port is free")
	return 0
}

// claim returns a socket that has a port at all addresses, or -1.
func claim(t testing.TB, kind, port int) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET6, kind|unix.SOCK_CLOEXEC, 0)
	var sa unix.Sockaddr = &unix.SockaddrInet6{Port: port} // and IPv4's
	if errors.Is(err, unix.EAFNOSUPPORT) {
		fd, err = unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0)
		sa = &unix.SockaddrInet4{Port: port}
	} else if err == nil {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	// without SO_REUSEADDR, so only one of two callers gets it
	if err := unix.Bind(fd, sa); err != nil {
		_ = unix.Close(fd)
		return -1
	}
	reuse(t, fd)
	return fd
}

func open(t testing.TB, kind int) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

func bind(t testing.TB, fd int) netip.AddrPort {
	t.Helper()
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: loopback.As4()}); err != nil {
		t.Fatal(err)
	}
	sa, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return netip.AddrPortFrom(loopback, uint16(sa.(*unix.SockaddrInet4).Port))
}

// A later socket with SO_REUSEADDR may listen on the port.
func reuse(t testing.TB, fd int) {
	t.Helper()
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		t.Fatal(err)
	}
}
