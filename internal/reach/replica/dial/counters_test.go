package dial

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// A queue of one place takes two connections; more overflow.
func TestOverflowsAreWhatAllCountersHave(t *testing.T) {
	err := netnstest.New(t).Do(func() error {
		if err := link.Up("lo"); err != nil {
			return err
		}
		full, err := newSocket("tcp", ip("127.0.0.1"))
		if err != nil {
			return err
		}
		defer unix.Close(full)
		if err := unix.Bind(full, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
			return err
		}
		if err := unix.Listen(full, 1); err != nil {
			return err
		}
		to, err := unix.Getsockname(full)
		if err != nil {
			return err
		}
		for range 6 {
			fd, err := newSocket("tcp", ip("127.0.0.1"))
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			_ = unix.Connect(fd, to)
		}
		testwait.Until(t, time.Minute, "the queue overflows", func() bool {
			n, err := overflows()
			if err != nil {
				t.Fatal(err)
			}
			c, err := counters(netstat)
			return err == nil && n > 0 && n == c["TcpExt.ListenOverflows"]
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
