package dial

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
)

// id identifies a connection, even after NAT: by the sequence number of its first segment, or by
// the token of its request.
type id struct {
	proto  uint8
	number uint32
}

// packet is a connection's first packet, the answer to it, or an ICMP error about one of them.
type packet struct {
	id
	reply    bool
	icmp     bool
	code     uint8 // the ICMP error's code
	src, dst netip.AddrPort
}

// sighting is a packet seen at a device.
type sighting struct {
	packet
	place  int // index in the watcher's captures
	space  int
	device string
	port   bool // of a bridge
	out    bool
	at     int64 // nanoseconds
}

// capture sees the packets of all devices of a namespace.
type capture struct {
	place   int
	space   int
	fd      int
	devices map[int]device
	seen    []sighting
}

type device struct {
	name string
	port bool // of a bridge
}

func newCapture(ns *netns.NS, place, space int) (c *capture, err error) {
	c = &capture{place: place, space: space}
	err = ns.Do(func() error {
		if c.devices, err = devices(); err != nil {
			return err
		}
		// Without a protocol, the socket gets no packets before it has the filter.
		c.fd, err = unix.Socket(unix.AF_PACKET,
			unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		if err := c.prepare(); err != nil {
			return errors.Join(err, unix.Close(c.fd))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("capture packets: %w", err)
	}
	return c, nil
}

func (c *capture) prepare() error {
	if err := attach(c.fd, filter); err != nil {
		return err
	}
	enlarge(c.fd)
	if err := options(c.fd, [3]int{unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1},
		[3]int{unix.SOL_PACKET, unix.PACKET_AUXDATA, 1}); err != nil {
		return err
	}
	const all = unix.ETH_P_ALL<<8 | unix.ETH_P_ALL>>8 // network byte order
	return unix.Bind(c.fd, &unix.SockaddrLinklayer{Protocol: all})
}

// deviceOf returns the device of the calling thread's namespace, which must be the capture's, that
// has the address, or "".
func (c *capture) deviceOf(addr netip.Addr) string {
	all, err := link.ReadAddresses()
	if err != nil {
		return ""
	}
	for _, m := range all {
		if own, ok := link.ParseAddress(m); ok && own.Prefix.Addr() == addr {
			return c.devices[own.Index].name
		}
	}
	return ""
}

// devices returns the devices of the calling thread's namespace by index.
func devices() (map[int]device, error) {
	b, err := syscall.NetlinkRIB(unix.RTM_GETLINK, unix.AF_UNSPEC)
	if err != nil {
		return nil, err
	}
	messages, err := syscall.ParseNetlinkMessage(b)
	if err != nil {
		return nil, err
	}
	out := map[int]device{}
	for i := range messages {
		attrs, err := syscall.ParseNetlinkRouteAttr(&messages[i])
		if err != nil || messages[i].Header.Type != unix.RTM_NEWLINK {
			continue
		}
		var d device
		for _, a := range attrs {
			switch a.Attr.Type {
			case unix.IFLA_IFNAME:
				d.name = string(bytes.TrimRight(a.Value, "\x00"))
			case unix.IFLA_MASTER:
				d.port = true
			}
		}
		index := (*unix.IfInfomsg)(unsafe.Pointer(&messages[i].Data[0])).Index
		out[int(index)] = d
	}
	return out, nil
}

// filter passes TCP segments with SYN or RST, and all UDP and ICMP packets.
var filter = []bpf.Instruction{
	bpf.LoadAbsolute{Off: 0, Size: 1},
	bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xf0},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0x60, SkipTrue: 6},
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0x40, SkipTrue: 13},
	// IPv4
	bpf.LoadAbsolute{Off: 9, Size: 1},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_UDP, SkipTrue: 10},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_ICMP, SkipTrue: 9},
	bpf.LoadMemShift{Off: 0},
	bpf.Jump{Skip: 4},
	// IPv6
	bpf.LoadAbsolute{Off: 6, Size: 1},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_UDP, SkipTrue: 5},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_ICMPV6, SkipTrue: 4},
	bpf.LoadConstant{Dst: bpf.RegX, Val: 40},
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.IPPROTO_TCP, SkipTrue: 3},
	bpf.LoadIndirect{Off: 13, Size: 1},
	bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: flagSYN | flagRST, SkipTrue: 1},
	bpf.RetConstant{Val: snap},
	bpf.RetConstant{Val: 0},
}

func (c *capture) close() { _ = unix.Close(c.fd) }

// read records the packets that were captured since the last call. It returns the number of those
// that were lost.
func (c *capture) read() (lost int, err error) {
	var b [snap]byte
	var control [128]byte
	for {
		n, k, _, sa, err := unix.Recvmsg(c.fd, b[:], control[:], 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.ENETDOWN) {
			return 0, err
		}
		if err != nil {
			stats, err := unix.GetsockoptTpacketStats(c.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
			if err != nil {
				return 0, err
			}
			return int(stats.Drops), nil
		}
		from, ok := sa.(*unix.SockaddrLinklayer)
		if !ok {
			continue
		}
		at := c.devices[from.Ifindex]
		switch from.Pkttype {
		case unix.PACKET_OUTGOING, unix.PACKET_HOST:
		case unix.PACKET_OTHERHOST:
			if !at.port { // the frame is for another namespace
				continue
			}
		default:
			continue
		}
		ns, tagged := ancillary(control[:k])
		if !at.port && tagged { // seen at the VLAN's device, too
			continue
		}
		if p, ok := decode(b[:n]); ok {
			c.seen = append(c.seen, sighting{packet: p, place: c.place, space: c.space,
				device: at.name, port: at.port, out: from.Pkttype == unix.PACKET_OUTGOING,
				at: ns})
		}
	}
}

// ancillary returns when a packet came, in ns; 0: unknown. tagged means that its frame had a VLAN's
// tag.
func ancillary(control []byte) (ns int64, tagged bool) {
	all, _ := unix.ParseSocketControlMessage(control)
	for _, m := range all {
		size := len(m.Data)
		switch {
		case m.Header.Type == unix.SCM_TIMESTAMPNS && size >= int(unsafe.Sizeof(unix.Timespec{})):
			ns = (*unix.Timespec)(unsafe.Pointer(&m.Data[0])).Nano()
		case m.Header.Level == unix.SOL_PACKET && m.Header.Type == unix.PACKET_AUXDATA &&
			size >= int(unsafe.Sizeof(unix.TpacketAuxdata{})):
			status := (*unix.TpacketAuxdata)(unsafe.Pointer(&m.Data[0])).Status
			tagged = status&unix.TP_STATUS_VLAN_VALID != 0
		}
	}
	return ns, tagged
}

// decode decodes a packet that starts at the IP header. b may be truncated.
func decode(b []byte) (p packet, ok bool) {
	if len(b) == 0 {
		return p, false
	}
	switch b[0] >> 4 {
	case 4:
		const fragment = 0x1fff
		head := int(b[0]&0xf) * 4
		if len(b) < 20 || head < 20 || len(b) < head ||
			binary.BigEndian.Uint16(b[6:])&fragment != 0 {
			return p, false
		}
		size := int(binary.BigEndian.Uint16(b[2:]))
		return transport(b[9], netip.AddrFrom4([4]byte(b[12:])), netip.AddrFrom4([4]byte(b[16:])),
			b[head:max(head, min(size, len(b)))])
	case 6:
		const head = 40
		if len(b) < head {
			return p, false
		}
		size := head + int(binary.BigEndian.Uint16(b[4:]))
		return transport(b[6], netip.AddrFrom16([16]byte(b[8:])), netip.AddrFrom16([16]byte(b[24:])),
			b[head:min(size, len(b))])
	}
	return p, false
}

func transport(proto uint8, src, dst netip.Addr, b []byte) (p packet, ok bool) {
	if len(b) < 8 {
		return p, false
	}
	p.proto = proto
	p.src = netip.AddrPortFrom(src, binary.BigEndian.Uint16(b))
	p.dst = netip.AddrPortFrom(dst, binary.BigEndian.Uint16(b[2:]))
	switch proto {
	case unix.IPPROTO_TCP:
		p.number = binary.BigEndian.Uint32(b[4:])
		if len(b) < 14 {
			return p, true // the first segment in an ICMP error
		}
		switch flags := b[13]; {
		case flags&flagSYN != 0 && flags&flagACK == 0:
			return p, true
		case flags&flagACK != 0 && flags&(flagSYN|flagRST) != 0:
			p.reply, p.number = true, binary.BigEndian.Uint32(b[8:])-1
			return p, true
		}
	case unix.IPPROTO_UDP:
		p.number, ok = token(b[8:])
		p.reply = !isRequest(b[8:])
		return p, ok
	case unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6:
		if b[0] != 3 && proto == unix.IPPROTO_ICMP || b[0] != 1 && proto == unix.IPPROTO_ICMPV6 {
			return p, false // not "destination unreachable"
		}
		about, ok := decode(b[8:])
		return packet{id: about.id, reply: !about.reply, icmp: true, code: b[1],
			src: netip.AddrPortFrom(src, 0), dst: netip.AddrPortFrom(dst, 0)}, ok && !about.icmp
	}
	return p, false
}

// startStamping returns a socket that makes the kernel record when packets arrive. It returns once
// the kernel does so.
func startStamping() (fd int, err error) {
	ns, err := netns.New()
	if err != nil {
		return 0, err
	}
	defer ns.Close()
	home := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0)
	err = ns.Do(func() error {
		if err := link.Up("lo"); err != nil {
			return err
		}
		if fd, err = newSocket("udp", home.Addr()); err != nil {
			return err
		}
		err := options(fd, [3]int{unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1})
		if err == nil {
			err = unix.Bind(fd, &unix.SockaddrInet4{Addr: home.Addr().As4()})
		}
		const tries = 1000
		for i := 0; err == nil && i < tries; i++ {
			var stamped bool
			if stamped, err = stamps(fd); stamped {
				return nil
			}
			time.Sleep(time.Millisecond)
		}
		return errors.Join(err, unix.Close(fd))
	})
	return fd, err
}

// stamps reports whether the kernel records when datagrams arrive.
func stamps(fd int) (bool, error) {
	to, err := unix.Getsockname(fd)
	if err != nil {
		return false, err
	}
	if err := unix.Sendto(fd, []byte("x"), 0, to); err != nil {
		return false, err
	}
	var b [1]byte
	var control [64]byte
	before := time.Now().UnixNano()
	_, n, _, _, err := unix.Recvmsg(fd, b[:], control[:], 0)
	if errors.Is(err, unix.EAGAIN) {
		return false, nil
	}
	at, _ := ancillary(control[:n])
	return at > 0 && at < before, err
}
