package local

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Ends has the client's own address of a connection, and the address that the server sees.
type Ends struct{ Own, Seen netip.Addr }

// Preserved reports whether the server sees the client's own address. Loopback addresses do not
// count.
func (e Ends) Preserved() bool { return e.Own == e.Seen && !e.Own.IsLoopback() }

// String returns the address that the server sees.
func (e Ends) String() string {
	if e.Preserved() {
		return e.Seen.String() + ", the client's"
	}
	return e.Seen.String()
}

// ConnectOnce dials a server that listens for this connection only. If nothing arrives, it dials
// again until limit has passed: a relay may have lost the first packet, and slirp4netns would
// resend it only after 6 s.
func ConnectOnce(from, to Space, dial, listen netip.AddrPort, limit time.Duration) (e Ends,
	err error) {
	var server *net.TCPListener
	err = to.Do(func() (err error) {
		server, err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(listen))
		return err
	})
	if err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	const patience = 2 * time.Second
	for deadline := time.Now().Add(limit); ; {
		e, err = connect(from, dial, server, patience)
		var late net.Error
		if !errors.As(err, &late) || !late.Timeout() || time.Now().After(deadline) {
			return e, err
		}
	}
}

func connect(from Space, dial netip.AddrPort, server *net.TCPListener,
	patience time.Duration) (e Ends, err error) {
	var c net.Conn
	err = from.Do(func() (err error) {
		c, err = net.DialTimeout("tcp", dial.String(), patience)
		return err
	})
	if err != nil {
		return e, err
	}
	defer c.Close()
	// Debian 12's pasta connects to the server only after the client has sent something.
	if _, err := c.Write([]byte{0}); err != nil {
		return e, err
	}
	if err := server.SetDeadline(time.Now().Add(patience)); err != nil {
		return e, err
	}
	arrived, err := server.Accept()
	if err != nil {
		return e, fmt.Errorf("connect to %s: %w", dial, err)
	}
	return Ends{addrOf(c.LocalAddr()), addrOf(arrived.RemoteAddr())}, arrived.Close()
}

func addrOf(a net.Addr) netip.Addr {
	return a.(interface{ AddrPort() netip.AddrPort }).AddrPort().Addr().Unmap()
}

// AskOnce is like ConnectOnce for UDP. It sends datagrams until one is answered.
func AskOnce(from, to Space, dial, listen netip.AddrPort, limit time.Duration) (e Ends, err error) {
	var server *net.UDPConn
	err = to.Do(func() (err error) {
		server, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(listen))
		return err
	})
	if err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	var c net.Conn
	err = from.Do(func() (err error) { c, err = net.Dial("udp", dial.String()); return err })
	if err != nil {
		return e, err
	}
	defer c.Close()
	const patience = 50 * time.Millisecond
	b := make([]byte, 1)
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
		if _, err := c.Write(b); err != nil && !errors.Is(err, unix.ECONNREFUSED) {
			return e, err
		}
		if err := server.SetReadDeadline(time.Now().Add(patience)); err != nil {
			return e, err
		}
		_, peer, err := server.ReadFromUDPAddrPort(b)
		if err != nil {
			continue
		}
		if _, err := server.WriteToUDPAddrPort(b, peer); err != nil {
			return e, err
		}
		if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
			return e, err
		}
		if _, err := c.Read(b); err == nil {
			return Ends{addrOf(c.LocalAddr()), peer.Addr().Unmap()}, nil
		}
	}
	return e, fmt.Errorf("send to %s: no answer within %v", dial, limit)
}

// outsideEnv is the environment variable with the name of ServeIO's abstract socket.
const outsideEnv = "BRIDGETOLL_PROCESS_IO"

const outsideTime = 5 * time.Second

// ServeIO reads /proc/PID/io for another process of this user's, until stop is called. The other
// process is in a user namespace, where the kernel does not let it read these files of processes
// outside. It needs the environment variable, and must be in this process's network namespace.
func ServeIO() (variable string, stop func() error, err error) {
	name := "@bridgetoll-" + rand.Text()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return "", nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			_ = answerIO(c) // after an error, the other end sees that the connection is closed
			c.Close()
		}
	}()
	return outsideEnv + "=" + name, func() error {
		err := l.Close()
		<-ended
		return err
	}, nil
}

func answerIO(c *net.UnixConn) error {
	if err := c.SetDeadline(time.Now().Add(outsideTime)); err != nil {
		return err
	}
	peer, err := sock.Peer(c)
	if err != nil {
		return err
	}
	if int(peer.Uid) != os.Getuid() {
		return unix.EPERM
	}
	var pid int
	if _, err := fmt.Fscanln(c, &pid); err != nil {
		return err
	}
	io, err := readIO(pid)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(c, io.ForwardBytes, io.BackwardBytes)
	return err
}

// askOutside reads /proc/PID/io by ServeIO. It returns errors.ErrUnsupported if ServeIO was not
// started for this process.
func askOutside(pid int) (c sample.Counters, err error) {
	name := os.Getenv(outsideEnv)
	if name == "" {
		return c, errors.ErrUnsupported
	}
	conn, err := net.DialTimeout("unix", name, outsideTime)
	if err != nil {
		return c, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(outsideTime)); err != nil {
		return c, err
	}
	if _, err := fmt.Fprintln(conn, pid); err != nil {
		return c, err
	}
	_, err = fmt.Fscanln(conn, &c.ForwardBytes, &c.BackwardBytes)
	return c, err
}
