// Package capture records the TCP or UDP packets of a network namespace, each with the time at
// which a device sent or received it.
//
// The kernel writes packets into a ring of memory blocks (TPACKET_V3), and the reader looks at full
// blocks when it likes: a reader that is woken up for each packet delays it by 50 to 100 µs. The
// ring is left out of core dumps, and ends with the process.
package capture

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Retire is the longest time after which the kernel passes on a block that is not full.
const Retire = 50 * time.Millisecond

// Size is what a ring holds, in bytes: of all packets, and of each one.
type Size struct {
	ring, packet int
	opens        bool // only of packets that open connections
	udp          bool // of UDP packets, instead of TCP's
	bridged      bool // of frames for other machines, too
}

// Bridged returns the size for a capture that has frames for other machines, too, as a bridge's
// port receives them.
func (s Size) Bridged() Size {
	s.bridged = true
	return s
}

// UDP returns the size for a capture of all UDP packets.
func (s Size) UDP() Size {
	s.udp, s.opens = true, false
	return s
}

// Times returns the size of a ring that holds n times as much.
func (s Size) Times(n int) Size {
	s.ring *= n
	return s
}

// Sizes of a ring. Large bridges a reader that stops for a second at 50,000 packets/s. Begins holds
// the beginnings of many packets, Heads their headers, and Opens only packets with SYN.
var (
	Large  = Size{ring: 32 << 20, packet: snap}
	Small  = Size{ring: 1 << 20, packet: snap}
	Begins = Size{ring: 32 << 20, packet: 4 << 10}
	Heads  = Size{ring: 32 << 20, packet: 160}
	Opens  = Size{ring: 1 << 20, packet: 160, opens: true}
)

const (
	blockSize = 512 << 10 // a multiple of the page size, and more than a packet has
	frameSize = 2048
	snap      = 256 << 10
)

// Ring receives the packets of one network namespace. Not for concurrent use.
type Ring struct {
	fd      int
	mem     []byte
	next    int // block
	bridged bool
	program []unix.SockFilter
}

// Open starts a capture in the calling thread's network namespace. It records TCP packets, or UDP
// packets if the size is for them, with one of the ports, or all of them if there is none, and
// needs CAP_NET_RAW.
func Open(size Size, ports ...uint16) (*Ring, error) {
	r, err := open(size, ports)
	if err != nil {
		return nil, fmt.Errorf("capture packets: %w", err)
	}
	return r, nil
}

func open(size Size, ports []uint16) (r *Ring, err error) {
	program, err := filter(size, ports)
	if err != nil {
		return nil, err
	}
	// Without a protocol, the socket gets no packets before it has the filter.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	r = &Ring{fd: fd, bridged: size.bridged, program: program}
	if err := r.prepare(max(size.ring/blockSize, 2)); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *Ring) prepare(blocks int) (err error) {
	err = unix.SetsockoptInt(r.fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V3)
	if err != nil {
		return err
	}
	err = unix.SetsockoptTpacketReq3(r.fd, unix.SOL_PACKET, unix.PACKET_RX_RING,
		&unix.TpacketReq3{Block_size: blockSize, Block_nr: uint32(blocks), Frame_size: frameSize,
			Frame_nr:       uint32(blocks * blockSize / frameSize),
			Retire_blk_tov: uint32(Retire.Milliseconds())})
	if err != nil {
		return err
	}
	r.mem, err = unix.Mmap(r.fd, 0, blocks*blockSize, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_SHARED)
	if err != nil {
		return err
	}
	if err := unix.Madvise(r.mem, unix.MADV_DONTDUMP); err != nil {
		return err
	}
	return r.Resume()
}

// Arm ends the capture until Resume, which then begins it at once: the kernel takes some milliseconds
// to bind a paused capture. Meanwhile packets take a little longer.
func (r *Ring) Arm() error {
	if err := r.filter([]unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}}); err != nil { // none
		return err
	}
	return r.bind(unix.ETH_P_ALL) // others see no outgoing packets
}

// Resume goes on after Pause or Arm.
func (r *Ring) Resume() error {
	if err := r.Arm(); err != nil { // once more costs nothing: the kernel binds only what changes
		return err
	}
	return r.filter(r.program)
}

// Pause ends the capture until Resume. Meanwhile no packet takes longer. Packets that were captured
// before can be read after Retire.
func (r *Ring) Pause() error {
	const unused = 0x88b5 // IEEE's protocol for experiments
	return r.bind(unused)
}

func (r *Ring) filter(program []unix.SockFilter) error {
	err := unix.SetsockoptSockFprog(r.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
	if err != nil {
		return fmt.Errorf("choose the packets of a capture: %w", err)
	}
	return nil
}

func (r *Ring) bind(protocol uint16) error {
	err := unix.Bind(r.fd, &unix.SockaddrLinklayer{Protocol: protocol<<8 | protocol>>8})
	if err != nil {
		return fmt.Errorf("bind a capture to a protocol: %w", err)
	}
	return nil
}

// Close ends the capture.
func (r *Ring) Close() error {
	var err error
	if r.mem != nil {
		err = unix.Munmap(r.mem)
		r.mem = nil
	}
	return errors.Join(err, unix.Close(r.fd))
}

// Read calls f with each packet that the kernel has passed on, in the order in which it saw them.
// It does not wait, and reads each block at most once, for packets may come as fast as f takes
// them. The packet is valid until f returns.
func (r *Ring) Read(f func(*Packet)) {
	for range len(r.mem) / blockSize {
		block, head, passed := r.block(r.next)
		if !passed {
			return
		}
		read(block, head, r.bridged, f)
		atomic.StoreUint32(&head.Block_status, unix.TP_STATUS_KERNEL)
		r.next = (r.next + 1) % (len(r.mem) / blockSize)
	}
}

// Half reports whether at least half of the ring has packets that were not read.
func (r *Ring) Half() bool {
	n := len(r.mem) / blockSize
	_, _, passed := r.block((r.next + n/2 - 1) % n)
	return passed
}

// block returns a block and its head, and whether the kernel has passed it on.
func (r *Ring) block(i int) (block []byte, head *unix.TpacketHdrV1, passed bool) {
	block = r.mem[i*blockSize:][:blockSize]
	head = (*unix.TpacketHdrV1)(unsafe.Pointer(
		&(*unix.TpacketBlockDesc)(unsafe.Pointer(&block[0])).Hdr))
	return block, head, atomic.LoadUint32(&head.Block_status)&unix.TP_STATUS_USER != 0
}

const (
	addressAt = 48 // TPACKET_ALIGN(sizeof(struct tpacket3_hdr))
	deviceAt  = 4  // in struct sockaddr_ll
	typeAt    = 10
	addressIs = 20 // its size
)

func read(block []byte, head *unix.TpacketHdrV1, bridged bool, f func(*Packet)) {
	at := head.Offset_to_first_pkt
	var p Packet // of all, because f lets it escape
	for range head.Num_pkts {
		h := (*unix.Tpacket3Hdr)(unsafe.Pointer(&block[at]))
		address := block[at+addressAt:][:addressIs]
		p = Packet{At: int64(h.Sec)*int64(time.Second) + int64(h.Nsec),
			Device: int(*(*int32)(unsafe.Pointer(&address[deviceAt])))}
		ours := true
		switch address[typeAt] {
		case unix.PACKET_OUTGOING:
			p.Out = true
		case unix.PACKET_HOST:
		case unix.PACKET_OTHERHOST:
			p.Bridged, ours = true, bridged
		default: // a broadcast
			ours = false
		}
		start := at + uint32(h.Net)
		if ours && p.parse(block[start:start+h.Snaplen], int(h.Len)) {
			f(&p)
		}
		at += h.Next_offset
	}
}

// Lost returns the number of packets since its last call for which the ring had no room.
func (r *Ring) Lost() (int, error) {
	s, err := unix.GetsockoptTpacketStatsV3(r.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return 0, fmt.Errorf("read the number of lost packets: %w", err)
	}
	return int(s.Drops), nil
}
