package capture

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// TCP flags.
const (
	FIN = 1 << iota
	SYN
	RST
	_
	ACK
)

// Packet is a TCP or UDP packet that a device of the namespace sent or received. Large ones are
// those before segmentation, or after segments were joined.
type Packet struct {
	UDP      bool  // it has neither sequence numbers nor flags and timestamps
	At       int64 // CLOCK_REALTIME, ns
	Device   int   // its index
	Out      bool  // sent, after the device's queue
	Bridged  bool  // for another machine: only a bridge whose port the device is may pass it on
	TTL      uint8 // or hop limit: each router takes one off
	Src, Dst netip.AddrPort
	Seq, Ack uint32
	Flags    uint8
	// TSVal is the timestamps option's, in the sender's ms; 0: it has none.
	TSVal uint32
	// Payload may be the beginning only of Size bytes.
	Payload []byte
	Size    int
}

const (
	tcpHeader = 20
	udpHeader = 8

	optionEnd, optionNothing, optionTimes = 0, 1, 8
	timesSize                             = 10
)

// parse decodes a packet of size bytes that starts at the IP header. b may be its beginning only.
func (p *Packet) parse(b []byte, size int) bool {
	if len(b) == 0 {
		return false
	}
	switch b[0] >> 4 {
	case 4:
		head := int(b[0]&0xf) * 4
		if head < 20 || len(b) < head {
			return false
		}
		// A packet longer than the field can say has 0 there, and no padding.
		if says := int(binary.BigEndian.Uint16(b[2:])); says >= head {
			size = min(size, says)
		}
		p.TTL, p.UDP = b[8], b[9] == unix.IPPROTO_UDP
		return p.transport(netip.AddrFrom4([4]byte(b[12:])), netip.AddrFrom4([4]byte(b[16:])),
			b[head:min(size, len(b))], size-head)
	case 6:
		const head = 40
		if len(b) < head {
			return false
		}
		src, dst := netip.AddrFrom16([16]byte(b[8:])), netip.AddrFrom16([16]byte(b[24:]))
		if says := int(binary.BigEndian.Uint16(b[4:])); says > 0 {
			size = min(size, head+says)
		}
		p.TTL, p.UDP = b[7], b[6] == unix.IPPROTO_UDP
		return p.transport(src, dst, b[head:min(size, len(b))], size-head)
	}
	return false
}

func (p *Packet) transport(src, dst netip.Addr, b []byte, size int) bool {
	if p.UDP {
		return p.datagram(src, dst, b, size)
	}
	return p.segment(src, dst, b, size)
}

// datagram decodes a UDP packet. Of a fragmented one, Size has what the other fragments hold, too.
func (p *Packet) datagram(src, dst netip.Addr, b []byte, size int) bool {
	if len(b) < udpHeader {
		return false
	}
	p.Src = netip.AddrPortFrom(src, binary.BigEndian.Uint16(b))
	p.Dst = netip.AddrPortFrom(dst, binary.BigEndian.Uint16(b[2:]))
	if says := int(binary.BigEndian.Uint16(b[4:])); says >= udpHeader {
		size = says
	}
	p.Payload, p.Size = b[udpHeader:min(size, len(b))], size-udpHeader
	return true
}

func (p *Packet) segment(src, dst netip.Addr, b []byte, size int) bool {
	if len(b) < tcpHeader {
		return false
	}
	head := int(b[12]>>4) * 4
	if head < tcpHeader || len(b) < head {
		return false
	}
	p.Src = netip.AddrPortFrom(src, binary.BigEndian.Uint16(b))
	p.Dst = netip.AddrPortFrom(dst, binary.BigEndian.Uint16(b[2:]))
	p.Seq, p.Ack = binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
	p.Flags = b[13]
	p.times(b[tcpHeader:head])
	p.Payload, p.Size = b[head:], size-head
	return true
}

// times reads the timestamps option.
func (p *Packet) times(options []byte) {
	for len(options) > 0 {
		switch options[0] {
		case optionEnd:
			return
		case optionNothing:
			options = options[1:]
			continue
		}
		if len(options) < 2 || options[1] < 2 || int(options[1]) > len(options) {
			return
		}
		if options[0] == optionTimes && options[1] == timesSize {
			p.TSVal = binary.BigEndian.Uint32(options[2:])
			return
		}
		options = options[options[1]:]
	}
}
