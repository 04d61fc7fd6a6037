package writes

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// TestRecorderOfUDP records the datagrams of a socket that is not connected, and neither those to
// it nor the bytes of a TCP connection.
func TestRecorderOfUDP(t *testing.T) {
	for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
		server, err := net.ListenPacket("udp", at)
		if err != nil {
			t.Skip(err) // no IPv6
		}
		defer server.Close()
		client, err := net.Dial("udp", server.LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		port := func(a net.Addr) uint16 { return a.(*net.UDPAddr).AddrPort().Port() }
		r, err := Open(Of{UDP: true, Local: []uint16{port(server.LocalAddr())}})
		if u := (*machine.UnsupportedError)(nil); errors.As(err, &u) {
			pathtest.SkipOrFail(t, "%s", u)
		}
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		words := []string{"reply", "", "ab"}
		before := clock.Now()
		for _, w := range words {
			if _, err := client.Write([]byte("request")); err != nil {
				t.Fatal(err)
			}
			if _, err := server.WriteTo([]byte(w), client.LocalAddr()); err != nil {
				t.Fatal(err)
			}
		}
		after := clock.Now()
		var all []Event
		testwait.Until(t, patience, "all datagrams are recorded", func() bool {
			if err := r.Read(func(e *Event) { all = append(all, *e) }); err != nil {
				t.Fatal(err)
			}
			return len(all) >= len(words)
		})
		if len(all) != len(words) {
			t.Fatalf("%s: %+v", at, all)
		}
		for i, e := range all {
			if e.Kind != Datagram || int(e.Len) != len(words[i]) || e.Thread == 0 ||
				e.At < before || e.At > after ||
				netip.AddrPortFrom(e.LocalAddr, e.Local).String() != server.LocalAddr().String() ||
				netip.AddrPortFrom(e.RemoteAddr,
					e.Remote).String() != client.LocalAddr().String() ||
				len(words[i]) >= 4 && e.Seq != binary.BigEndian.Uint32([]byte(words[i])) {
				t.Errorf("%s: datagram %d: %+v", at, i, e)
			}
		}
	}
}
