package sock

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// On a busy machine the kernel may tell of a connection's end too late, which the tally says.
func TestFollow(t *testing.T) {
	testwait.Unhindered(t, patience, func(u testing.TB) { follow(t, u) })
}

func follow(t *testing.T, u testing.TB) {
	t.Helper()
	ns := space(t)
	err := ns.Do(func() error {
		var at []netip.AddrPort
		for range 2 {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			defer l.Close()
			go testnet.Accept(l, func(c net.Conn) { _, _ = io.Copy(c, c) })
			at = append(at, l.Addr().(*net.TCPAddr).AddrPort())
		}
		talk := func(to netip.AddrPort, bytes int) net.Conn {
			c, err := net.Dial("tcp", to.String())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Write(make([]byte, bytes)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(c, make([]byte, bytes)); err != nil {
				t.Fatal(err)
			}
			return c
		}
		old := talk(at[0], 10)
		defer old.Close()
		f, err := Follow(at[0])
		if err != nil {
			return err
		}
		const ended = 40
		for range ended {
			talk(at[0], 1000).Close()
			talk(at[1], 1000).Close()
		}
		defer talk(at[0], 500).Close()
		got, err := f.Stop()
		if err != nil {
			return err
		}
		want := Tally{Connections: ended + 1, Sent: 1000*ended + 500, Received: 1000*ended + 500}
		if got.RTT <= 0 {
			u.Errorf("no round-trip time: %+v", got)
		}
		if more := got.Received - want.Received; more > 0 && more <= ended {
			got.Received = want.Received // its FIN
		}
		if got.Range < 1000 || got.Ports < 1 || got.Ports > ended+3 {
			u.Errorf("%d of %d ports", got.Ports, got.Range)
		}
		if got.Segments < 4*ended || got.Segments > 10*(ended+1) { // SYN, ACK, data, FIN
			u.Errorf("sent %d segments", got.Segments)
		}
		got.RTT, got.Ports, got.Range, got.Segments = 0, 0, 0, 0
		if got != want {
			u.Errorf("%+v, want %+v", got, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFollowFailures(t *testing.T) {
	ns := space(t)
	err := ns.Do(func() error {
		l, err := net.Listen("tcp", "127.0.0.1:5000") // not in the range below
		if err != nil {
			return err
		}
		at := l.Addr().(*net.TCPAddr).AddrPort()
		const ports = 4
		if err := sysctl.Set("net.ipv4.ip_local_port_range", "40000 40003"); err != nil {
			return err
		}
		f, err := Follow(at)
		if err != nil {
			return err
		}
		var all []net.Conn
		defer func() {
			for _, c := range all {
				c.Close()
			}
		}()
		for range ports { // synchronously: Go's dialler leaves this namespace's thread
			c, err := dialHere(at)
			if err != nil {
				return err
			}
			all = append(all, c)
		}
		for range 2 {
			if _, err := dialHere(at); !errors.Is(err, unix.EADDRNOTAVAIL) {
				t.Errorf("with all ports used: %v", err)
			}
		}
		for _, c := range all {
			c.Close()
		}
		all = nil
		l.Close()
		if err := Sweep(nil); err != nil {
			t.Log(err)
		}
		if err := sysctl.Set("net.ipv4.ip_local_port_range", "41000 41003"); err != nil {
			return err
		}
		if _, err := dialHere(at); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("without a listener: %v", err)
		}
		got, err := f.Stop()
		if err != nil {
			return err
		}
		if got.NoPort != 2 || got.Refused != 1 || got.Connections != ports || got.Range != ports {
			t.Errorf("%+v", got)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func dialHere(to netip.AddrPort) (net.Conn, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "dialled")
	defer file.Close()
	err = unix.Connect(fd, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
	if err != nil {
		return nil, err
	}
	return net.FileConn(file)
}
