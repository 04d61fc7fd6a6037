package observe

import (
	"net/netip"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
)

// TestPorted checks the addresses that packets get which came to a bridge and its port.
func TestPorted(t *testing.T) {
	at := func(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }
	a, b, server := at("10.8.0.2:4000"), at("10.8.0.3:4000"), at("10.8.0.1:53")
	published, loopback, gateway := at("10.8.0.1:5301"), at("127.0.0.1:4000"), at("10.8.0.1:4000")
	datagram := func(src, dst netip.AddrPort, atPort bool) *capture.Packet {
		return &capture.Packet{Src: src, Dst: dst, UDP: true, Bridged: atPort,
			Payload: []byte("the same")}
	}
	opens := func(src, dst netip.AddrPort, flags uint8, atPort bool) *capture.Packet {
		return &capture.Packet{Src: src, Dst: dst, Seq: 7, Flags: flags, Bridged: atPort}
	}
	sent := func(src, dst netip.AddrPort, udp bool) *capture.Packet {
		return &capture.Packet{Src: src, Dst: dst, UDP: udp, Out: true, Seq: 8}
	}
	const opened = capture.SYN | capture.ACK
	for name, tt := range map[string]struct {
		packets  []*capture.Packet
		src, dst netip.AddrPort // of the last one
	}{
		"two clients": {[]*capture.Packet{datagram(a, server, true), datagram(b, server, true),
			datagram(a, server, false)}, a, server},
		"request": {[]*capture.Packet{datagram(a, published, true), datagram(a, server, false)},
			a, server},
		"its answer": {[]*capture.Packet{datagram(a, published, true), datagram(a, server, false),
			sent(published, a, true)}, server, a},
		"answer": {[]*capture.Packet{datagram(a, gateway, true), datagram(a, loopback, false)},
			a, gateway},
		"connection": {[]*capture.Packet{opens(a, published, capture.SYN, true),
			opens(a, server, capture.SYN, false), sent(published, a, false)}, server, a},
		"accepted": {[]*capture.Packet{opens(a, gateway, opened, true),
			opens(a, loopback, opened, false)}, a, gateway},
		"the next one": {[]*capture.Packet{opens(a, gateway, opened, true),
			opens(a, loopback, opened, false), opens(a, loopback, opened, false)}, a, loopback},
		"unchanged": {[]*capture.Packet{opens(a, gateway, opened, true),
			opens(a, gateway, opened, false)}, a, gateway},
	} {
		t.Run(name, func(t *testing.T) {
			var all ported
			for _, p := range tt.packets {
				all.restore(1, p, func(space int, port uint16) bool {
					return space == 1 && port == server.Port()
				})
			}
			if p := tt.packets[len(tt.packets)-1]; p.Src != tt.src || p.Dst != tt.dst {
				t.Errorf("%s to %s, want %s to %s", p.Src, p.Dst, tt.src, tt.dst)
			}
		})
	}
}
