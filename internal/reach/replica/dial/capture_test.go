package dial

import (
	"encoding/binary"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// ipv4 returns a packet with a header and the payload.
func ipv4(proto byte, payload ...byte) []byte {
	b := make([]byte, 20, 20+len(payload))
	b[0], b[9] = 0x45, proto
	binary.BigEndian.PutUint16(b[2:], uint16(20+len(payload)))
	copy(b[12:], []byte{192, 0, 2, 1, 192, 0, 2, 2})
	return append(b, payload...)
}

func segment(flags byte) []byte {
	b := make([]byte, 20)
	copy(b, []byte{0, 1, 0, 2, 0, 0, 0, 7, 0, 0, 0, 8, 0x50, flags})
	return b
}

func TestDecode(t *testing.T) {
	p, ok := decode(ipv4(unix.IPPROTO_TCP, segment(flagSYN)...))
	want := packet{id: id{6, 7}, src: to("192.0.2.1:1"), dst: to("192.0.2.2:2")}
	if !ok || p != want {
		t.Errorf("SYN: %+v", p)
	}
	p, ok = decode(ipv4(unix.IPPROTO_TCP, segment(flagSYN|flagACK)...))
	if !ok || !p.reply || p.number != 7 {
		t.Errorf("SYN, ACK: %+v", p)
	}
	if p, ok := decode(ipv4(unix.IPPROTO_TCP, segment(flagACK)...)); ok {
		t.Errorf("ACK: %+v", p)
	}
	request := fmt.Appendf(make([]byte, 8), requestForm, 9)
	p, ok = decode(ipv4(unix.IPPROTO_UDP, request...))
	if !ok || p.reply || p.number != 9 {
		t.Errorf("request: %+v", p)
	}
	unreachable := append([]byte{3, 13, 0, 0, 0, 0, 0, 0}, ipv4(unix.IPPROTO_UDP, request...)...)
	p, ok = decode(ipv4(unix.IPPROTO_ICMP, unreachable...))
	if !ok || !p.icmp || !p.reply || p.code != 13 || p.number != 9 {
		t.Errorf("ICMP: %+v", p)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(ipv4(unix.IPPROTO_TCP, segment(flagSYN)...))
	f.Add(ipv4(unix.IPPROTO_ICMP, append([]byte{3, 1, 0, 0, 0, 0, 0, 0},
		ipv4(unix.IPPROTO_TCP, segment(flagSYN)...)...)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, ok := decode(b); ok && (!p.src.IsValid() || !p.dst.IsValid()) {
			t.Errorf("%+v", p)
		}
	})
}
