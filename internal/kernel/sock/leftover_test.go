package sock

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

const patience = 30 * time.Second

func space(t *testing.T) *netns.NS {
	t.Helper()
	ns := netnstest.New(t)
	if err := ns.Do(func() error { return link.Up("lo") }); err != nil {
		t.Fatal(err)
	}
	return ns
}

func leave(addr string, n int) (net.Listener, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	for range n {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			return ln, err
		}
		s, err := ln.Accept()
		if err != nil {
			return ln, err
		}
		err = errors.Join(c.Close(), ended(s), s.Close())
		if err != nil {
			return ln, err
		}
	}
	return ln, nil
}

func ended(c net.Conn) error {
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		return errors.Join(errors.New("the client's end did not come"), err)
	}
	return nil
}

func TestSweep(t *testing.T) {
	const each = 300
	ns := space(t)
	err := ns.Do(func() error {
		for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
			ln, err := leave(addr, each)
			if err != nil {
				return err
			}
			defer ln.Close()
		}
		var n int
		var err error
		testwait.Met(patience, func() bool {
			n, err = Leftover(nil)
			return err != nil || n == 2*each
		})
		if err != nil {
			return err
		}
		if n != 2*each {
			t.Errorf("%d connections have ended, %d are left", 2*each, n)
		}
		switch err := Sweep(nil); {
		case errors.Is(err, unix.EOPNOTSUPP):
			t.Skipf("this kernel ends no socket in TIME_WAIT: %v", err)
		case err != nil:
			return err
		}
		if n, err = Leftover(nil); n != 0 {
			t.Errorf("%d are left after the sweep", n)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSweepOfSome(t *testing.T) {
	const each = 5
	ns := space(t)
	err := ns.Do(func() error {
		var at []netip.AddrPort
		for _, addr := range []string{"127.0.0.1:0", "127.0.0.1:0", "[::1]:0"} {
			ln, err := leave(addr, each)
			if err != nil {
				return err
			}
			defer ln.Close()
			at = append(at, ln.Addr().(*net.TCPAddr).AddrPort())
		}
		to := func(a netip.AddrPort) Ends {
			return func(_, remote netip.AddrPort) bool { return remote == a }
		}
		count := func(of Ends, want int) {
			t.Helper()
			n := -1
			if !testwait.Met(patience, func() bool {
				var err error
				if n, err = Leftover(of); err != nil {
					t.Fatal(err)
				}
				return n == want
			}) {
				t.Errorf("%d are left, not %d", n, want)
			}
		}
		for _, a := range at {
			count(to(a), each)
		}
		for i, a := range []netip.AddrPort{at[0], at[2]} {
			switch err := Sweep(to(a)); {
			case errors.Is(err, unix.EOPNOTSUPP):
				t.Skipf("this kernel ends no socket in TIME_WAIT: %v", err)
			case err != nil:
				return err
			}
			count(to(a), 0)
			count(nil, each*(2-i))
		}
		count(to(at[1]), each)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestOpens(t *testing.T) {
	const n = 7
	ns := space(t)
	err := ns.Do(func() error {
		active, passive, err := Opens()
		if err != nil {
			return err
		}
		ln, err := leave("127.0.0.1:0", n)
		if err != nil {
			return err
		}
		defer ln.Close()
		active2, passive2, err := Opens()
		if active2-active != n || passive2-passive != n {
			t.Errorf("%d connections: %d begun, %d accepted", n, active2-active, passive2-passive)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestArrivals(t *testing.T) {
	const n = 5
	ns := space(t)
	err := ns.Do(func() error {
		before, err := Arrivals()
		if err != nil {
			return err
		}
		for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
			ln, err := leave(addr, n)
			if err != nil {
				return err
			}
			defer ln.Close()
			server, err := net.ListenPacket("udp", addr)
			if err != nil {
				return err
			}
			defer server.Close()
			client, err := net.Dial("udp", server.LocalAddr().String())
			if err != nil {
				return err
			}
			defer client.Close()
			for range n {
				if _, err := client.Write([]byte("x")); err != nil {
					return err
				}
				if _, _, err := server.ReadFrom(make([]byte, 1)); err != nil {
					return err
				}
			}
		}
		after, err := Arrivals()
		if after-before != 4*n {
			t.Errorf("%d arrivals, want %d", after-before, 4*n)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
