package dial

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/conntrack"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// scanner sends SYN segments by a raw socket. If one is answered, the client's kernel answers with
// RST, because it does not know the connection. Of UDP it sends datagrams that nobody answers.
type scanner struct {
	net     *Net
	proto   string // "tcp" or "udp"
	from    *netns.NS
	all     *scanners   // those of the same call of Net.Scan
	ruled   []*netns.NS // others redirect no packets, and track no connections
	raw     int
	holder  int // socket that reserves the port
	source  netip.AddrPort
	addr    netip.Addr
	head    []byte
	sum     uint32 // checksum of pseudo header and header, without the destination port
	six     bool
	open    map[uint16]bool // ports that answered, or that rules redirect
	replied map[uint16]bool // ports that answered or reset
	drops   uint32          // number of answers that did not fit into the socket's buffer
}

var errReplied = errors.New("all ports replied")

const (
	scanPart  = 64   // segments between two reads of answers
	scanCheck = 8192 // segments between two checks of connection tracking

	// The kernel keeps a connection that was reset for ten seconds, unless a rule sets another
	// timeout. A copy does not have the machine's.
	scanKept = 3 * time.Second
)

// Scan returns for each call, in order, the ports of its address that rules redirect, wherever they
// lead, and the TCP ports that answer the client. The calls' own ports do not matter. ruled has the
// namespaces with rules. The Net must not be used concurrently.
func (n *Net) Scan(ctx context.Context, calls []Call, ports []uint16, ruled []*netns.NS) (
	out [][]uint16, err error) {
	if err := n.prepare(calls); err != nil {
		return nil, err
	}
	all := &scanners{asked: time.Now()}
	defer func() {
		for _, s := range all.list {
			s.close()
		}
	}()
	for _, c := range calls {
		addr := c.To.Addr().Unmap()
		s := &scanner{net: n, proto: c.Proto, from: c.From, addr: addr, six: addr.Is6(), raw: -1,
			holder: -1, all: all, ruled: ruled, open: map[uint16]bool{}, replied: map[uint16]bool{}}
		all.list = append(all.list, s)
		if c.Proto == "udp" {
			err = s.datagrams(ctx, c, ports)
		} else {
			err = s.run(ctx, c, ports)
		}
		if err != nil {
			return nil, fmt.Errorf("scan %s: %w", addr, err)
		}
	}
	if err := all.repeat(ctx, ports); err != nil {
		return nil, err
	}
	if err := all.redirected(ruled); err != nil {
		return nil, err
	}
	for _, s := range all.list {
		out = append(out, slices.Sorted(maps.Keys(s.open)))
	}
	return out, nil
}

// run makes one scan, without what scanners.redirected adds.
func (s *scanner) run(ctx context.Context, c Call, ports []uint16) error {
	err := s.from.Do(func() error { return s.prepare(c) })
	if errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH) {
		return nil
	}
	if err == nil && s.net.dropped == nil {
		_, err = s.dropped()
	}
	if err == nil {
		err = s.scan(ctx, ports, scanWait)
	}
	ports = slices.DeleteFunc(slices.Clone(ports), func(p uint16) bool { return s.replied[p] })
	if err != nil || len(ports) == 0 {
		return err
	}
	dropped, err := s.dropped()
	if err != nil {
		return err
	}
	// Segments are also lost, without being counted, while neighbours are resolved.
	again := scanWait
	if dropped { // because a queue or table was full
		again = wait
	}
	if dropped || len(s.replied) > 0 {
		err = s.scan(ctx, ports, again)
	}
	return err
}

// reserve opens the socket that has the port from which s sends. It must be called in the client's
// thread.
func (s *scanner) reserve(c Call) error {
	ip := c.To.Addr()
	// A connected UDP socket shows the source address that the kernel chooses.
	probe, err := newSocket("udp", ip)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(probe) }()
	source := &attempt{Call: c, fd: probe}
	if err := source.bind(); err != nil {
		return err
	}
	to, err := sockaddr(c.To)
	if err == nil {
		err = unix.Connect(probe, to)
	}
	if err != nil {
		return err
	}
	src := local(probe).Addr()
	bound, err := sockaddr(netip.AddrPortFrom(src, 0))
	if err != nil {
		return err
	}
	if s.holder, err = newSocket(s.proto, ip); err != nil {
		return err
	}
	if err := unix.Bind(s.holder, bound); err != nil {
		return err
	}
	s.source = netip.AddrPortFrom(src.Unmap(), local(s.holder).Port())
	return nil
}

// datagrams sends a datagram to each port. Only the tables of connection tracking show what rules
// did to it: stand-ins do not answer it.
func (s *scanner) datagrams(ctx context.Context, c Call, ports []uint16) error {
	err := s.from.Do(func() error { return s.reserve(c) })
	if errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.sendDatagrams(ctx, ports)
}

func (s *scanner) sendDatagrams(ctx context.Context, ports []uint16) error {
	return s.each(ctx, ports, func(port uint16) error {
		to, err := sockaddr(netip.AddrPortFrom(s.addr, port))
		if err == nil {
			_ = unix.Sendto(s.holder, []byte{0}, 0, to) // repeat sends it again
		}
		return err
	})
}

// each calls send for each port. In between, it saves what the kernel may forget.
func (s *scanner) each(ctx context.Context, ports []uint16, send func(uint16) error) error {
	for i, p := range ports {
		if i%scanPart == 0 {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			if err := s.all.keep(s.ruled); err != nil {
				return err
			}
			s.read()
		}
		if i%scanCheck == 0 {
			if err := s.makeRoom(); err != nil {
				return err
			}
		}
		if err := send(p); err != nil {
			return err
		}
	}
	return nil
}

// prepare opens the sockets. It must be called in the client's thread.
func (s *scanner) prepare(c Call) error {
	if err := s.reserve(c); err != nil {
		return err
	}
	ip, port := c.To.Addr(), s.source.Port()
	sa, err := sockaddr(netip.AddrPortFrom(ip, 0))
	if err != nil {
		return err
	}
	bound, err := sockaddr(netip.AddrPortFrom(s.source.Addr(), 0))
	if err != nil {
		return err
	}
	s.raw, err = unix.Socket(family(ip), unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC,
		unix.IPPROTO_TCP)
	if err != nil {
		return err
	}
	if err := s.filter(port); err != nil {
		return err
	}
	if err := unix.Bind(s.raw, bound); err != nil {
		return err
	}
	if err := unix.Connect(s.raw, sa); err != nil {
		return err
	}
	s.compose(s.source.Addr(), ip.Unmap(), port)
	return nil
}

// filter makes the socket pass only segments to the port that have ACK and either SYN or RST.
func (s *scanner) filter(port uint16) error {
	program := []bpf.Instruction{bpf.LoadConstant{Dst: bpf.RegX}} // IPv6: without its header
	if !s.six {
		program = []bpf.Instruction{bpf.LoadMemShift{Off: 0}}
	}
	err := attach(s.raw, append(program,
		bpf.LoadIndirect{Off: 2, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(port), SkipTrue: 4},
		bpf.LoadIndirect{Off: 13, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: flagACK, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: flagSYN | flagRST, SkipTrue: 1},
		bpf.RetConstant{Val: snap},
		bpf.RetConstant{Val: 0}))
	if err != nil {
		return err
	}
	enlarge(s.raw)
	return options(s.raw, [3]int{unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1})
}

func (s *scanner) compose(src, dst netip.Addr, port uint16) {
	const size = 24 // with an option
	b := make([]byte, size)
	binary.BigEndian.PutUint16(b, port)
	binary.BigEndian.PutUint32(b[4:], rand.Uint32())
	b[12], b[13] = size/4<<4, flagSYN
	binary.BigEndian.PutUint16(b[14:], 64240)            // window
	binary.BigEndian.PutUint32(b[20:], 2<<24|4<<16|1220) // maximum segment size
	s.head = b
	for _, part := range [][]byte{src.AsSlice(), dst.AsSlice(), b} {
		for i := 0; i < len(part); i += 2 {
			s.sum += uint32(binary.BigEndian.Uint16(part[i:]))
		}
	}
	s.sum += unix.IPPROTO_TCP + size
}

func (s *scanner) close() {
	for _, fd := range []int{s.raw, s.holder} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// scan sends a segment to each port and waits until all have replied, at most for wait.
func (s *scanner) scan(ctx context.Context, ports []uint16, wait time.Duration) error {
	all := len(s.replied) + len(ports)
	if err := s.each(ctx, ports, s.send); err != nil {
		return err
	}
	err := s.net.attempt(ctx, nil, manner{least: wait, look: func() error {
		if s.read(); len(s.replied) >= all {
			return errReplied
		}
		return s.all.keep(s.ruled)
	}})
	if errors.Is(err, errReplied) {
		return nil
	}
	return err
}

func (s *scanner) send(port uint16) error {
	sum := s.sum + uint32(port)
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	binary.BigEndian.PutUint16(s.head[2:], port)
	binary.BigEndian.PutUint16(s.head[16:], ^uint16(sum))
	const tries = 4 // a write may also return the ICMP error about an earlier segment
	for range tries {
		_, err := unix.Write(s.raw, s.head)
		switch {
		case err == nil, errors.Is(err, unix.EPERM):
			return nil
		case gotOf(err) == replica.Failed && !errors.Is(err, unix.ENOBUFS) &&
			!errors.Is(err, unix.EAGAIN):
			return err
		}
		s.read()
	}
	return nil
}

// read reads segments; of UDP there are none.
func (s *scanner) read() {
	if s.raw < 0 {
		return
	}
	var b [128]byte
	var control [64]byte
	for {
		n, k, _, _, err := unix.Recvmsg(s.raw, b[:], control[:], 0)
		if errors.Is(err, unix.EAGAIN) {
			return
		}
		if err != nil {
			continue // an ICMP error
		}
		segment := b[:n]
		if !s.six {
			segment = b[min(int(b[0]&0xf)*4, n):n]
		}
		if len(segment) < 14 {
			continue
		}
		port := binary.BigEndian.Uint16(segment)
		s.replied[port] = true
		if segment[13]&flagSYN != 0 {
			s.open[port] = true
		}
		all, _ := unix.ParseSocketControlMessage(control[:k])
		for _, m := range all {
			if m.Header.Type == unix.SO_RXQ_OVFL && len(m.Data) >= 4 {
				s.drops = binary.NativeEndian.Uint32(m.Data)
			}
		}
	}
}

// scanners has the scans that one call makes.
type scanners struct {
	list  []*scanner
	asked time.Time // when keep last asked
}

// redirected finds the ports that rules redirect to a server that did not answer: to another
// machine, or where nothing listens. It asks at once for all scans, because the kernel looks through
// the connections of all namespaces.
func (all *scanners) redirected(ruled []*netns.NS) error {
	by := map[string]map[netip.AddrPort][]*scanner{}
	for _, s := range all.list {
		if s.source.IsValid() {
			if by[s.proto] == nil {
				by[s.proto] = map[netip.AddrPort][]*scanner{}
			}
			by[s.proto][s.source] = append(by[s.proto][s.source], s)
		}
	}
	for proto, from := range by {
		for _, ns := range ruled {
			err := ns.Do(func() error {
				_, err := conntrack.Translations(proto, func(t conntrack.Translation) bool {
					for _, s := range from[t.From] {
						if t.To.Addr() == s.addr && t.Now != t.To {
							s.open[t.To.Port()] = true
						}
					}
					return false
				})
				return err
			})
			if err != nil && !errors.Is(err, unix.EINVAL) { // the kernel has no connection tracking
				return err
			}
		}
	}
	return nil
}

// repeat sends all datagrams once more, because those were lost that came while neighbours were
// resolved, and waits until they have arrived.
func (all *scanners) repeat(ctx context.Context, ports []uint16) error {
	for _, s := range all.list {
		if s.proto != "udp" || !s.source.IsValid() {
			continue
		}
		if err := s.sendDatagrams(ctx, ports); err != nil {
			return fmt.Errorf("scan %s: %w", s.addr, err)
		}
	}
	if !slices.ContainsFunc(all.list, func(s *scanner) bool { return s.proto == "udp" }) {
		return nil
	}
	return all.list[0].net.attempt(ctx, nil, manner{least: scanWait})
}

// keep calls redirected before the kernel forgets what a slow machine's earlier segments met.
func (all *scanners) keep(ruled []*netns.NS) error {
	if time.Since(all.asked) < scanKept {
		return nil
	}
	err := all.redirected(ruled)
	all.asked = time.Now()
	return err
}

// makeRoom empties connection tracking tables that this scan or earlier ones may have filled.
func (s *scanner) makeRoom() error {
	for _, ns := range s.ruled {
		full := false
		err := ns.Do(func() error {
			use, err := conntrack.Read()
			full = err == nil && use.Max > 0 && use.Entries+scanCheck > use.Max*3/4
			return err
		})
		if err == nil && full {
			if err = s.all.redirected([]*netns.NS{ns}); err == nil {
				err = ns.Do(conntrack.Flush)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// dropped reports whether the kernel dropped packets for lack of space since the last call for the
// Net. The first one returns false.
func (s *scanner) dropped() (bool, error) {
	n := 0
	for _, ns := range s.net.spaces {
		var here int
		err := ns.Do(func() (err error) { here, err = overflows(); return err })
		if err != nil {
			return false, err
		}
		n += here
	}
	all, err := counters(softnetStat) // of all namespaces
	n += all["softnet.dropped"]
	before := s.net.dropped
	s.net.dropped = &n
	return s.drops > 0 || before != nil && n != *before, err
}
