package sock

import (
	"io"
	"net"
	"net/netip"
	"testing"
)

// Connections count that began after Follow, whether they have ended or not, and what went
// over each; those to other addresses, and those that were there, do not.
func TestFollow(t *testing.T) {
	ns := space(t)
	err := ns.Do(func() error {
		var at []netip.AddrPort
		for range 2 {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			defer l.Close()
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					go func() {
						_, _ = io.Copy(c, c)
						c.Close()
					}()
				}
			}()
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
			t.Errorf("no round-trip time: %+v", got)
		}
		if more := got.Received - want.Received; more > 0 && more <= ended {
			got.Received = want.Received // its FIN
		}
		got.RTT = 0
		if got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
