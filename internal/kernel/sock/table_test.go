package sock

import (
	"cmp"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

func TestTable(t *testing.T) {
	ns := space(t)
	err := ns.Do(func() error {
		for _, a := range []struct{ network, addr string }{{"tcp4", "127.0.0.1:80"},
			{"tcp6", "[::1]:81"}, {"tcp", "[::]:82"}, {"tcp6", "[::]:83"}} {
			ln, err := net.Listen(a.network, a.addr)
			if err != nil {
				return err
			}
			defer ln.Close()
		}
		pc, err := net.ListenPacket("udp4", "127.0.0.1:84")
		if err != nil {
			return err
		}
		defer pc.Close()
		c, err := net.Dial("tcp", "127.0.0.1:80")
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := c.Write(make([]byte, 1000)); err != nil {
			return err
		}
		all, err := Table()
		if err != nil {
			return err
		}
		checkTable(t, all)
		tid, err := os.Readlink("/proc/thread-self")
		if err != nil {
			return err
		}
		proc, err := inProc(tid, "tcp", "udp")
		for _, s := range all {
			s.V6Only, s.Received, s.Sent = false, 0, 0 // ListenersOf lacks them
			s.Waiting, s.Backlog, s.Quiet = 0, 0, 0
			if !slices.Contains(proc, s) {
				t.Errorf("not in /proc: %+v", s)
			}
		}
		for _, s := range proc {
			if s.Listening && !slices.ContainsFunc(all, func(o Socket) bool {
				return o.Local == s.Local && o.Inode == s.Inode
			}) {
				t.Errorf("only in /proc: %+v", s)
			}
		}
		if len(proc) == 0 {
			t.Error("/proc has no sockets")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func checkTable(t *testing.T, all []Socket) {
	t.Helper()
	find := func(proto, local string) Socket {
		for _, s := range all {
			if s.Proto == proto && s.Listening && s.Local == netip.MustParseAddrPort(local) &&
				s.Inode != 0 {
				return s
			}
		}
		t.Errorf("nothing listens on %s %s: %+v", proto, local, all)
		return Socket{}
	}
	// Nobody accepts.
	if l := find("tcp", "127.0.0.1:80"); l.Waiting != 1 || l.Backlog < 1 ||
		!slices.ContainsFunc(all, func(s Socket) bool {
			return s.Local == l.Local && !s.Listening && s.Inode == 0 && s.Quiet < time.Minute
		}) {
		t.Errorf("%+v", all)
	}
	if l := find("tcp", "[::1]:81"); l.Waiting != 0 {
		t.Errorf("%+v", l)
	}
	four, six := netip.MustParseAddrPort("127.0.0.1:80"), netip.MustParseAddrPort("[::1]:81")
	towards := map[netip.AddrPort]int{four: 0, six: 0}
	err := Towards(towards)
	if err != nil || len(towards) != 2 || towards[four] != 1 || towards[six] != 0 {
		t.Errorf("%v, %v", towards, err)
	}
	if find("tcp", "[::]:82").V6Only {
		t.Error("port 82 takes IPv4 too")
	}
	if !find("tcp", "[::]:83").V6Only {
		t.Error("port 83 takes no IPv4")
	}
	find("udp", "127.0.0.1:84")
	var sent, received uint64
	for _, s := range all {
		if !s.Listening {
			sent, received = sent+s.Sent, received+s.Received
		}
	}
	if sent < 1000 || received != 1000 {
		t.Errorf("sent %d, received %d, want 1000", sent, received)
	}
}

// What is read again is what Table has at that time, of the connections that are still there.
func TestAgain(t *testing.T) {
	err := space(t).Do(func() error {
		l, err := net.Listen("tcp", "[::]:80")
		if err != nil {
			return err
		}
		defer l.Close()
		var dialled, accepted []net.Conn
		for i := range atOnce + 6 {
			d, err := net.Dial("tcp", []string{"127.0.0.1:80", "[::1]:80"}[i%2])
			if err != nil {
				return err
			}
			defer d.Close()
			a, err := l.Accept()
			if err != nil {
				return err
			}
			defer a.Close()
			dialled, accepted = append(dialled, d), append(accepted, a)
		}
		before, err := connections()
		if err != nil {
			return err
		}
		if err := errors.Join(dialled[0].Close(), accepted[0].Close()); err != nil {
			return err
		}
		for i := range dialled[1:] {
			if _, err := accepted[i+1].Write(make([]byte, 100+i)); err != nil {
				return err
			}
			if _, err := io.ReadFull(dialled[i+1], make([]byte, 100+i)); err != nil {
				return err
			}
		}
		var got, want []Socket
		testwait.Until(t, patience, "all is acknowledged", func() bool {
			if want, err = connections(); err != nil {
				t.Fatal(err)
			}
			return !slices.ContainsFunc(want, func(s Socket) bool { return s.Sent+s.Received < 100 })
		})
		if got, err = Again(before); err != nil {
			return err
		}
		for i := range got {
			got[i].Quiet = 0
		}
		if slices.SortFunc(got, byEnds); len(got) != 2*(atOnce+5) || !slices.Equal(got, want) {
			t.Errorf("again: %d of %d: %+v, want %+v", len(got), len(before), got[:2], want[:2])
		}
		none, err := Again(nil)
		if len(none) > 0 {
			t.Errorf("of none: %+v", none)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// connections returns those of Table, ordered, without the time since their last packet.
func connections() (out []Socket, err error) {
	all, err := Table()
	for _, s := range all {
		if !s.Listening {
			s.Quiet = 0
			out = append(out, s)
		}
	}
	slices.SortFunc(out, byEnds)
	return out, err
}

func byEnds(a, b Socket) int {
	return cmp.Or(a.Local.Compare(b.Local), a.Remote.Compare(b.Remote))
}
