package sock

import (
	"net"
	"testing"
)

func TestBound(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	out, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	in, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	holds := func(want bool) {
		t.Helper()
		if got, err := Bound("tcp", port); err != nil || got != want {
			t.Errorf("Bound = %t, %v", got, err)
		}
		named := func(all []Socket) (is bool) {
			for _, s := range all {
				is = is || s.Listening && s.Local.Port() == port
			}
			return is
		}
		asked, err := Listeners()
		if err != nil {
			t.Skipf("no sock_diag: %v", err)
		}
		read, err := inProc("self", "tcp")
		if err != nil || named(asked) != want || named(read) != want {
			t.Errorf("by sock_diag %t, by /proc %t, %v", named(asked), named(read), err)
		}
	}
	holds(true)
	l.Close()
	holds(false)

	u, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port = uint16(u.LocalAddr().(*net.UDPAddr).Port)
	if got, err := Bound("udp", port); err != nil || !got {
		t.Errorf("Bound of UDP = %t, %v", got, err)
	}
	u.Close()
	if got, err := Bound("udp", port); err != nil || got {
		t.Errorf("Bound of a closed UDP socket = %t, %v", got, err)
	}
}
