package local

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

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
