package dial

import (
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
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

// A VLAN's frame counts where it is at the VLAN's device, not where it still has the tag, unless a
// bridge forwards it.
func TestTagged(t *testing.T) {
	l := newLAN(t)
	c, err := newCapture(l.machine, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	var mac net.HardwareAddr
	l.do(l.machine, func() error {
		eth0, err := net.InterfaceByName("eth0")
		if err == nil {
			mac = eth0.HardwareAddr
		}
		return err
	})
	for _, x := range []struct {
		from   *netns.NS
		device string
		want   []uint32
	}{{l.other, "eth0", []uint32{2}}, {l.k2, "veth2", []uint32{1, 2}}} {
		l.send(x.from, mac, 1, 0x81, 0, 0, 30) // VLAN 30
		l.send(x.from, mac, 2)
		var got []uint32
		testwait.Until(t, time.Minute, "the frame without a tag is seen", func() bool {
			if _, err := c.read(); err != nil {
				t.Fatal(err)
			}
			got = nil
			for _, s := range c.seen {
				if s.device == x.device && s.proto == unix.IPPROTO_TCP {
					got = append(got, s.number)
				}
			}
			return slices.Contains(got, 2)
		})
		if !slices.Equal(got, x.want) {
			t.Errorf("%s: %v, want %v", x.device, got, x.want)
		}
	}
}

// send sends a segment with a sequence number from eth0, perhaps with a tag.
func (l *lan) send(from *netns.NS, to net.HardwareAddr, number byte, tag ...byte) {
	l.Helper()
	b := segment(flagSYN)
	b[7] = number
	frame := slices.Concat(to, []byte{2, 0, 0, 0, 0, 9}, tag, []byte{8, 0},
		ipv4(unix.IPPROTO_TCP, b...))
	l.do(from, func() error {
		eth0, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: eth0.Index})
	})
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
