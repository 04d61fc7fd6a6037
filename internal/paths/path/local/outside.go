package local

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// outsideEnv has the abstract socket of ServeIO.
const outsideEnv = "BRIDGETOLL_PROCESS_IO"

const outsideTime = 5 * time.Second

// ServeIO answers processIO of a process of this user's in another user namespace, which the kernel
// lets read no /proc/PID/io of the machine's own, until stop is called. That process needs the
// environment variable, and this one's network namespace.
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
			_ = answerIO(c) // the other end sees that it closed
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

// askOutside asks ServeIO, if it was started for this process.
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
