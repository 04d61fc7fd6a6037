package truth

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
)

// relayArg makes this process a relay that takes docker-proxy's arguments, after a time.
const relayArg = "relay"

// relay copies what one connection at a time sends, with blocking calls on threads of their own.
// Before each write it spins.
func relay(spin string, args []string) error {
	wait, err := time.ParseDuration(spin)
	if err != nil {
		return err
	}
	f := flag.NewFlagSet(relayArg, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.String("proto", "tcp", "")
	host, port := f.String("host-ip", "", ""), f.Int("host-port", 0, "")
	to, toPort := f.String("container-ip", "", ""), f.Int("container-port", 0, "")
	if err := f.Parse(args); err != nil {
		return err
	}
	l, err := net.Listen("tcp4", net.JoinHostPort(*host, strconv.Itoa(*port)))
	const readyFD = 3 // as docker-proxy's
	ready := os.NewFile(readyFD, "ready")
	if err != nil {
		_, told := fmt.Fprintf(ready, "1\n%v", err)
		return errors.Join(err, told)
	}
	if _, err := io.WriteString(ready, "0\n"); err != nil {
		return err
	}
	ready.Close()
	for {
		client, err := l.Accept()
		if err != nil {
			return err
		}
		server, err := net.Dial("tcp4", net.JoinHostPort(*to, strconv.Itoa(*toPort)))
		if err != nil {
			client.Close()
			continue
		}
		a, errA := blocking(client)
		b, errB := blocking(server)
		if err := errors.Join(errA, errB); err != nil {
			return err
		}
		go pass(a, b, wait)
		go pass(b, a, wait)
	}
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
