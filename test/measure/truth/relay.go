package truth

import (
	"context"
	"errors"
	"net"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	proxy "github.com/bridgetoll/bridgetoll/internal/paths/lab/relay"
)

// relayArg makes this process a relay that takes docker-proxy's arguments, after a time.
const relayArg = "relay"

// relay copies what connections send, with blocking calls on threads of their own. Before each
// write it spins.
func relay(spin string, args []string) error {
	wait, err := time.ParseDuration(spin)
	if err != nil {
		return err
	}
	const readyFD = 3 // as docker-proxy's
	return proxy.Serve(context.Background(), args, os.NewFile(readyFD, "ready"),
		func(client *net.TCPConn, target *net.TCPAddr) {
			server, err := net.DialTCP("tcp", nil, target)
			if err != nil {
				client.Close()
				return
			}
			a, errA := blocking(client)
			b, errB := blocking(server)
			if errA != nil || errB != nil {
				return
			}
			go pass(a, b, wait)
			pass(b, a, wait)
		})
}

// blocking returns a descriptor of the connection, which it closes.
func blocking(c net.Conn) (fd int, err error) {
	defer c.Close()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	err = errors.Join(raw.Control(func(own uintptr) { fd, err = unix.Dup(int(own)) }), err)
	if err != nil {
		return 0, err
	}
	return fd, unix.SetNonblock(fd, false)
}

// Each end of a connection shuts the other's; the descriptors live as long as the process.
func pass(from, to int, wait time.Duration) {
	runtime.LockOSThread()
	defer func() { _ = unix.Shutdown(to, unix.SHUT_WR) }() // the other end may have closed it
	buffer := make([]byte, 1<<16)
	for {
		n, err := unix.Read(from, buffer)
		if err != nil || n <= 0 {
			return
		}
		for until := clock.Now() + wait.Nanoseconds(); clock.Now() < until; {
		}
		for sent := 0; sent < n; {
			m, err := unix.Write(to, buffer[sent:n])
			if err != nil {
				return
			}
			sent += m
		}
	}
}
