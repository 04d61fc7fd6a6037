package capture

import (
	"net"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// TestRingOfUDP captures datagrams to a port, of which one is larger than what is kept of it, and
// no TCP packet of the same port.
func TestRingOfUDP(t *testing.T) {
	for _, at := range []string{"127.0.0.1:7001", "[::1]:7001"} {
		inside(t, func() {
			r, err := Open(Heads.UDP(), 7001)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			exchange(t, at, "not captured")
			server, err := net.ListenPacket("udp", at)
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			c, err := net.Dial("udp", at)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			words := []string{"hello", "", strings.Repeat("x", 4000)}
			for _, w := range words {
				if _, err := c.Write([]byte(w)); err != nil {
					t.Fatal(err)
				}
			}
			got := map[bool][]Packet{} // by direction
			testwait.Until(t, patience, "all datagrams have come", func() bool {
				r.Read(func(p *Packet) {
					x := *p
					x.Payload = append([]byte(nil), p.Payload...)
					got[p.Out] = append(got[p.Out], x)
				})
				return len(got[true]) >= len(words) && len(got[false]) >= len(words)
			})
			for _, all := range got {
				for i, p := range all {
					if i >= len(words) || !p.UDP || p.Size != len(words[i]) ||
						!strings.HasPrefix(words[i], string(p.Payload)) || len(p.Payload) > 160 ||
						p.Src.String() != c.LocalAddr().String() || p.Dst.String() != at {
						t.Errorf("%s: packet %d: %+v", at, i, p)
					}
				}
			}
		})
	}
}
